/* verbs.c - the table of verbs and looking things up in it. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/verbs.h"

#include <string.h>

const char dibs__common_exits[] =
    "64 the command line is wrong\n"
    "69 the store is out of reach\n"
    "70 an internal failure, or the output could not be written\n"
    "77 permission or authentication was refused\n"
    "78 the configuration is wrong, or the store is unfit to be used\n";

const dibs__verb dibs__verbs[] = {
    {.name = "run",
     .operands = "NAME [--] COMMAND [ARG...]",
     .summary = "run a command while holding a lock",
     .about =
         "Takes the lock NAME, runs COMMAND, and gives the lock back. Among "
         "all processes that use the same store, one holds the lock at a "
         "time; the others wait, or give up as -n and -w say.\n"
         "With -s many may hold it together, and -x (the default) then means "
         "alone: readers and a writer. Later readers do not overtake a "
         "waiting writer. With -p N the name is a semaphore: the command holds "
         "one of N permits, or --take K of them. A name that is in use as the "
         "other kind, or with another N, is refused (exit code 64). --also "
         "NAME holds further names at the same time, all of them or none.\n"
         "The lease is renewed while the command runs. When it is lost, by a "
         "store that stays away or a machine that slept, the whole process "
         "tree of the command is ended before another may start (see "
         "--on-lost). When the command ends, dibs also ends the processes that "
         "it left running (--signal, then KILL after --kill-after), and then "
         "gives the lock back.\n"
         "On a terminal, a command that is stopped (^Z) stops dibs too, and "
         "with it the renewal: unless it is continued in time, the lease runs "
         "out and the command is killed. Without a terminal the lease is kept "
         "while the command is stopped.\n"
         "The command finds DIBS_LOCK_NAME, DIBS_LOCK_TOKEN (the fencing "
         "token), DIBS_LOCK_OWNER and DIBS_LOCK_TTL_MS in its environment. "
         "With --also these are of the first name, DIBS_LOCK_COUNT is how "
         "many there are, and DIBS_LOCK_NAME_1, DIBS_LOCK_TOKEN_1, "
         "DIBS_LOCK_NAME_2 and so on are of each, in the order given. "
         "Options may stand before NAME, or between NAME and COMMAND.\n"
         "With --progress the command must write a byte now and then to the "
         "file descriptor whose number is in DIBS_PROGRESS_FD; when it does "
         "not, the lease is not renewed, and the command is ended before it "
         "runs out (see --on-lost). So a command that hangs does not keep the "
         "lock.\n"
         "A dibs run inside the command, of a name that is held around it, "
         "runs at once under that lock, if it gives enough: an exclusive lock "
         "for a shared one, but not the other way round.\n"
         "There is no option for sticky leases, which programs can keep "
         "between two uses: a run is one use, and gives back what it took "
         "when it ends.\n",
     .examples =
         "A cron job on many machines, run by one of them, silently skipped "
         "by the others:\n"
         "  dibs run -n -E 0 nightly-backup -- ./backup.sh\n"
         "Wait at most two minutes, and never run longer than an hour:\n"
         "  dibs run -w 2m --max-run 1h report -- make report\n"
         "At most four at once, over all machines:\n"
         "  dibs run -p 4 transcode -- ./transcode.sh\n"
         "Readers beside each other, the writer alone:\n"
         "  dibs run -s catalogue -- ./report.sh\n"
         "  dibs run -x catalogue -- ./import.sh\n"
         "Two accounts at once, without fear of a deadlock:\n"
         "  dibs run account:7 --also account:9 -- ./transfer.sh 7 9\n"
         "A loop that is ended when it hangs:\n"
         "  dibs run --progress 1m sync -c 'while ./step; "
         "do echo >&$DIBS_PROGRESS_FD; done'\n"
         "A shell command line:\n"
         "  dibs run cleanup -c 'find /var/cache/app -mtime +7 -delete'\n",
     .exits = "0-255 the command's own exit code\n"
              "75 the lock is busy, or was not granted in time (-E)\n"
              "122 the lease was lost while the command ran\n"
              "124 --max-run ended the command\n"
              "125 dibs itself failed around the command\n"
              "126 the command was found but cannot be run\n"
              "127 the command was not found\n"
              "128+N the command died of signal N\n",
     .min_operands = 1,
     .max_operands = -1,
     .kind = DIBS__COMMAND,
     .tail = true,
     .run = dibs__verb_run},
    {.name = "acquire",
     .operands = "NAME",
     .summary = "take a lock and leave it taken",
     .about =
         "Takes the lock NAME for --ttl and prints its token, OWNER:FENCE, by "
         "which release, renew and check know it. Nothing renews it: without "
         "renew or release it ends by itself after --ttl.\n"
         "With --also several names are taken, all of them or none. Then "
         "there is a line for each, its token, a space and its name, in the "
         "order given; a token file has the same lines, and release, renew and "
         "check find theirs in it.\n"
         "Prefer run where it fits: it cannot forget to release, and it stops "
         "the work when the lock is lost.\n",
     .examples = "Lock around several steps of a script:\n"
                 "  token=$(dibs acquire deploy --ttl 10m -w 1m) || exit\n"
                 "  dibs release deploy --token \"$token\"\n"
                 "With a file, as between ExecStartPre and ExecStopPost:\n"
                 "  dibs acquire unit --token-file /run/unit.token\n",
     .exits = "0 taken\n"
              "75 the lock is busy, or was not granted in time (-E)\n"
              "128+N ended by signal N while waiting\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_acquire},
    {.name = "release",
     .operands = "NAME",
     .summary = "give back what acquire took",
     .about = "Needs --token or --token-file. The next in the queue is served "
              "at once.\n",
     .examples = "Release by the token's file:\n"
                 "  dibs release unit --token-file /run/unit.token\n",
     .exits = "0 given back\n"
              "122 it was held no longer\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_release},
    {.name = "renew",
     .operands = "NAME",
     .summary = "extend what acquire took",
     .about = "Needs --token or --token-file. The lease lasts --ttl from now; "
              "it is never made shorter.\n",
     .examples = "Half an hour more:\n"
                 "  dibs renew deploy --ttl 30m --token \"$token\"\n",
     .exits = "0 extended\n"
              "122 it is held no longer\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_renew},
    {.name = "check",
     .operands = "NAME",
     .summary = "tell whether a lock is held, or still held by a token",
     .about = "Without a token: is anyone holding NAME? With one: is it still "
              "the holder? Changes nothing.\n",
     .examples = "Stop when the lock is gone:\n"
                 "  dibs check -q deploy --token \"$token\" || exit\n",
     .exits = "0 held; with a token: held by it\n"
              "1 free (only without a token)\n"
              "122 the token holds it no longer\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_check},
    {.name = "ls",
     .operands = "[PREFIX]",
     .summary = "list the locks in use",
     .about =
         "One line per holder: in which mode (exclusive, shared, or how many "
         "of how many permits), who, for how long, how much of the lease is "
         "left, its fence, and how many wait. PREFIX lists only names that "
         "begin with it.\n"
         "A holder is marked stale when its process has ended on this host, "
         "or when it has not renewed in time. Its lease still runs.\n",
     .examples = "All locks of a workflow, as JSON:\n"
                 "  dibs ls --json workflow:\n"
                 "Leases whose holder seems to be gone:\n"
                 "  dibs ls --stale\n",
     .exits = "0 listed, even when there are none\n",
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_ls},
    {.name = "show",
     .operands = "NAME",
     .summary = "show one lock with its holders and its queue",
     .about = "Waiters come in the order in which they will be served.\n",
     .examples = "The holder of a lock:\n"
                 "  dibs show nightly-backup\n",
     .exits = "0 shown\n"
              "1 nobody holds it and nobody waits\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_show},
    {.name = "watch",
     .operands = "[PREFIX]",
     .summary = "print changes of locks as they happen",
     .about =
         "First what is there (held, waiting), then one line per change: "
         "granted, released, stale (its holder seems to be gone), joined (the "
         "queue) and left (it). With --json each line is an object. Goes on "
         "until it is interrupted.\n",
     .examples = "Follow the locks of a workflow:\n"
                 "  dibs watch --interval 200ms workflow:\n",
     .exits = "128+N ended by signal N\n",
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_watch},
    {.name = "stats",
     .operands = "[PREFIX]",
     .summary = "show how much locks are used and waited for",
     .about =
         "First the names in use: how many hold them, how many wait, and how "
         "long the first of these has waited. Then what became of all "
         "acquires of each name, the most contended first: attempts, how many "
         "were acquired, refused or not granted in time (busy), lost, ended "
         "by an error (failed), how many had to wait or were refused "
         "(contended), and how long the waiting and the holding took: in half "
         "of the cases at most P50, in 95 of a hundred at most P95.\n"
         "The second part is of those who share their statistics in the "
         "store, which costs them a little: run and acquire with "
         "--share-stats, DIBS_SHARE_STATS=1 or share_stats: yes in the "
         "configuration, programs with share_stats in their options. It is "
         "as of a few seconds ago and forgets a name after a day without "
         "use.\n",
     .examples = "The most contended names:\n"
                 "  dibs stats | head\n",
     .exits = "0 shown, even when there is nothing\n",
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_stats},
    {.name = "deadlocks",
     .operands = "[PREFIX]",
     .summary = "find holders that wait for each other",
     .about =
         "Prints each circle: who holds what, and waits for what, and who "
         "holds that. Among names that begin with PREFIX, if it is given. "
         "Owners are compared by host, process and thread, so a circle "
         "through several processes, as of nested dibs run, is not found. "
         "Names acquired with run --also cannot deadlock.\n"
         "To end one, break one of its leases, or let the waits be bounded "
         "(-w).\n",
     .examples = "As a check:\n"
                 "  dibs deadlocks --json >/tmp/circles || mail-them\n",
     .exits = "0 there is none\n"
              "1 there is at least one\n"
              "128+N with --watch: ended by signal N\n",
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_deadlocks},
    {.name = "break",
     .operands = "NAME | --stale [PREFIX]",
     .summary = "take a lock away from its holder, or ask for it",
     .about =
         "Needs --if-token FENCE (break only what you have seen) or --force. "
         "Asks on a terminal; elsewhere --yes is needed. The trail records "
         "what was broken, by whom and why (dibs trail).\n"
         "--stale breaks every lease whose holder seems to be gone, as ls "
         "--stale lists them, of names that begin with PREFIX, if it is "
         "given.\n"
         "--ask breaks nothing: it asks the holder to give the lock back, and "
         "says how many holders can hear that: programs that listen, and "
         "dibs run with --on-yield.\n"
         "The holder learns of it at its next renewal at the latest. Until "
         "then it still works: only what checks the fencing token is "
         "protected.\n",
     .examples = "Break the lease that show printed:\n"
                 "  dibs break nightly --if-token 1731628800000000 "
                 "--reason 'host is gone'\n"
                 "Ask first:\n"
                 "  dibs break nightly --ask\n",
     .exits = "0 broken; with --stale also when there was nothing; with "
              "--ask: somebody can hear it\n"
              "1 nobody holds it, the fence is another, the answer was no, or "
              "nobody can hear it\n",
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_break},
    {.name = "trail",
     .operands = "[PREFIX]",
     .summary = "show what was done to locks by force",
     .about =
         "One line for each lease that was broken: when, which name and "
         "fence, who had it, who broke it, and why. The store keeps the latest "
         "thousand or so. Only names that begin with PREFIX, if it is given. "
         "With --follow each line is printed as it comes; with --json as "
         "well, each is an object.\n",
     .examples = "Breaks of the nightly lock, and by whom:\n"
                 "  dibs trail nightly\n",
     .exits = "0 shown, even when it is empty\n"
              "128+N with --follow: ended by signal N\n",
     .max_operands = 1,
     .kind = DIBS__LOCKS,
     .run = dibs__verb_trail},
    {.name = "state",
     .operands = "VERB",
     .summary = "read and change shared values",
     .about = "A value is bytes under a key, with a version and perhaps an "
              "expiry. A version is never used twice, so a compare-and-set "
              "cannot mistake a new value for an old one.\n"},
    {.name = "state get",
     .operands = "KEY",
     .summary = "print a value",
     .examples = "The version and the value, for a later cas:\n"
                 "  dibs state get --with-version phase | "
                 "{ read -r version value; ...; }\n",
     .exits = "0 printed\n"
              "1 there is no such key\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__KEYS,
     .run = dibs__verb_state_get},
    {.name = "state set",
     .operands = "KEY VALUE",
     .summary = "write a value",
     .about = "VALUE - reads standard input to its end. Put -- before a value "
              "that begins with a dash.\n",
     .examples = "For an hour:\n"
                 "  dibs state set --expires 1h maintenance on\n",
     .exits = "0 written, and safe on disk\n",
     .min_operands = 2,
     .max_operands = 2,
     .kind = DIBS__KEYS,
     .run = dibs__verb_state_set},
    {.name = "state cas",
     .operands = "KEY VERSION VALUE",
     .summary = "write a value if its version is still the same",
     .about = "VERSION 0 means that there must be nothing under the key. VALUE "
              "- reads standard input.\n",
     .examples = "Only if nobody was first:\n"
                 "  dibs state cas phase 0 started\n",
     .exits = "0 written, and safe on disk\n"
              "1 another version is there; nothing was changed\n",
     .min_operands = 3,
     .max_operands = 3,
     .kind = DIBS__KEYS,
     .run = dibs__verb_state_cas},
    {.name = "state del",
     .operands = "KEY",
     .summary = "delete a value",
     .exits = "0 deleted\n"
              "1 there is no such key, or it is at another version\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__KEYS,
     .run = dibs__verb_state_del},
    {.name = "state add",
     .operands = "KEY [N]",
     .summary = "add to a number and print the sum",
     .about = "Adds N, or 1. Nothing under the key counts as 0. N may be "
              "negative.\n",
     .examples = "Count down:\n"
                 "  dibs state add remaining -1\n",
     .exits = "0 added\n"
              "64 the value is not an integer, or the sum would not fit\n",
     .min_operands = 1,
     .max_operands = 2,
     .kind = DIBS__KEYS,
     .run = dibs__verb_state_add},
    {.name = "state ls",
     .operands = "[PREFIX]",
     .summary = "list keys with size, version and expiry",
     .exits = "0 listed, even when there are none\n",
     .max_operands = 1,
     .kind = DIBS__KEYS,
     .run = dibs__verb_state_ls},
    {.name = "store",
     .operands = "VERB",
     .summary = "set up what a store keeps in a database",
     .about = "A PostgreSQL store keeps its tables and functions in a schema, "
              "which is made once. Other stores need nothing, and say so.\n"},
    {.name = "store status",
     .summary = "say which version of the schema there is",
     .exits = "0 it is ready, or none is needed\n"
              "1 it is to be made, or of another version\n",
     .run = dibs__verb_store_status},
    {.name = "store init",
     .summary = "make the schema, unless it is there",
     .about = "Needs the right to create a schema in the database, or one that "
              "is there and empty. In one transaction; many may do it at "
              "once.\n",
     .examples = "Once, as the owner of the database:\n"
                 "  dibs --url postgres://owner@db.example/app store init\n",
     .exits = "0 it is ready\n"
              "78 there is one of another version\n",
     .run = dibs__verb_store_init},
    {.name = "store upgrade",
     .summary = "bring the schema up to the version of this dibs",
     .about = "A dibs that is older than the schema refuses it, so upgrade the "
              "programs first.\n",
     .exits = "0 it is ready\n"
              "78 there is none, or it is of a newer dibs\n",
     .run = dibs__verb_store_upgrade},
    {.name = "demo",
     .summary = "run a small cluster of workers that share one lock",
     .about =
         "A primary process starts workers, watches them, and starts those "
         "that die again. Each worker has an HTTP server on the loopback "
         "interface, on the port of --http-port plus its number, with GET "
         "/status, GET /ads, POST /update and GET /health. At the start each "
         "does --operations operations on one shared value, which only the "
         "holder of a lock may change: the log shows who waits for whom, and "
         "on a terminal a line at the bottom shows the holder and the queue. "
         "SIGINT and SIGTERM stop all of it within five seconds.\n"
         "The value is ADS_REDLOCK (dibs state get ADS_REDLOCK), the lock "
         "locks:ADS_REDLOCK (dibs show locks:ADS_REDLOCK). When the value was "
         "last initialised is in WARMUP_LAST_SUCCESSFUL: that is done at most "
         "once a minute, whoever starts.\n"
         "The variables NUM_WORKERS and HTTP_PORT stand for --workers and "
         "--http-port; with REDIS_HOST or REDIS_PORT, and without --url, the "
         "store is the Redis server there.\n"
         "A redlock: store keeps no values; they are then in the first of its "
         "servers, or where --data-url says.\n",
     .examples =
         "On the embedded store; stop it with ^C:\n"
         "  dibs demo\n"
         "From another terminal:\n"
         "  curl http://localhost:3001/status\n"
         "  curl -X POST http://localhost:3002/update "
         "-H 'Content-Type: application/json' "
         "-d '{\"operationName\": \"Manual Update\", \"duration\": 2000}'\n"
         "On a Redis server:\n"
         "  REDIS_HOST=localhost REDIS_PORT=6379 NUM_WORKERS=4 "
         "HTTP_PORT=3000 dibs demo\n",
     .exits = "0 stopped by SIGINT or SIGTERM\n"
              "75 a port is in use\n",
     .run = dibs__verb_demo},
    {.name = "ping",
     .summary = "ask the store for a sign of life and time it",
     .examples = "As the health check of a container:\n"
                 "  dibs ping -q\n",
     .exits = "0 it answered\n",
     .run = dibs__verb_ping},
    {.name = "doctor",
     .summary = "look the store over and say what weakens its guarantees",
     .exits = "0 nothing dangerous was found\n"
              "1 something breaks a guarantee\n",
     .run = dibs__verb_doctor},
    {.name = "config",
     .summary = "print the configuration in force and where it comes from",
     .about = "Flags win over DIBS_* variables, these over configuration "
              "files, these over defaults. Passwords are not shown.\n",
     .examples = "Is this file right?\n"
                 "  dibs config --config ./dibs.yaml\n",
     .exits = "0 printed\n"
              "78 a setting is wrong; the message says where\n",
     .run = dibs__verb_config},
    {.name = "completion",
     .operands = "bash|zsh|fish",
     .summary = "print the completion script of a shell",
     .examples = "In ~/.bashrc:\n"
                 "  source <(dibs completion bash)\n",
     .exits = "0 printed\n",
     .min_operands = 1,
     .max_operands = 1,
     .kind = DIBS__SHELLS,
     .plain = true,
     .run = dibs__verb_completion},
    {.name = "help",
     .operands = "[VERB...]",
     .summary = "show help, for everything or for one verb",
     .exits = "0 shown\n",
     .max_operands = 2,
     .kind = DIBS__VERBS,
     .plain = true,
     .run = dibs__verb_help},
    {.name = "version",
     .summary = "print the version",
     .exits = "0 printed\n",
     .plain = true,
     .run = dibs__verb_version},
};

const size_t dibs__verb_count = sizeof(dibs__verbs) / sizeof(dibs__verbs[0]);

const char *dibs__verb_word(const dibs__verb *verb)
{
    const char *space = strrchr(verb->name, ' ');

    return space ? space + 1 : verb->name;
}

bool dibs__verb_is_in(const dibs__verb *verb, const char *group)
{
    const char *word = dibs__verb_word(verb);
    size_t len = strlen(group);

    if (len == 0)
        return word == verb->name;
    return word == verb->name + len + 1 && memcmp(verb->name, group, len) == 0;
}

const dibs__verb *dibs__verb_in(const char *group, const char *word)
{
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (dibs__verb_is_in(&dibs__verbs[i], group) &&
            strcmp(dibs__verb_word(&dibs__verbs[i]), word) == 0)
            return &dibs__verbs[i];
    }
    return NULL;
}

const dibs__verb *dibs__verb_find(const char *name)
{
    for (size_t i = 0; i < dibs__verb_count; i++) {
        if (strcmp(dibs__verbs[i].name, name) == 0)
            return &dibs__verbs[i];
    }
    return NULL;
}
