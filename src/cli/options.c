/* options.c - the table of options and looking things up in it. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/options.h"
#include "cli/verbs.h"
#include "config/settings.h"

#include <assert.h>
#include <string.h>

#define MINUTES(n) DIBS__MINUTES(n)
#define DAYS(n)    DIBS__DAYS(n)
#define YEAR       DAYS(366)

#define URLS                                                                   \
    "sqlite:|redis://|rediss://|redis+unix://|redis-sentinel://|"              \
    "rediss-sentinel://|redis-cluster://|rediss-cluster://|redlock://|"        \
    "postgres://|memory:"

const dibs__option dibs__options[] = {
    /* Options of every verb. */
    {DIBS__SETTING_URL, .metavar = "URL", .offers = URLS "|file:",
     .otherwise = "an embedded store of this user's own, under "
                  "$XDG_STATE_HOME/dibs or ~/.local/state/dibs; for root, "
                  "/var/lib/dibs",
     .verbs = "*",
     .help = "The store to use, such as sqlite:/var/lib/dibs/locks.db; sqlite: "
             "alone is the default. A path "
             "that begins with /, ./ or ../ is a file of the embedded store. "
             "file:PATH reads the URL from a file, to keep passwords out of "
             "command lines and environments."},
    {DIBS__SETTING_PREFIX, .metavar = "TEXT", .otherwise = "none", .verbs = "*",
     .help = "Text put before every lock name and state key, such as "
             "workflow:. Names are shown without it."},
    {DIBS__SETTING_STORE_TIMEOUT, .metavar = "DUR", .verbs = "*",
     .help = "The time limit of one operation in the store."},
    {DIBS__SETTING_CONFIG, .metavar = "FILE",
     .otherwise = "/etc/dibs/dibs.yaml, then $XDG_CONFIG_HOME/dibs/config.yaml",
     .verbs = "*",
     .help = "Read this configuration file instead of the usual ones."},
    {DIBS__SETTING_COLOR, .aliases = "colour", .metavar = "WHEN", .verbs = "*",
     .help = "Whether to use colour: auto uses it on a terminal, except when "
             "NO_COLOR is set or TERM is dumb."},
    {.name = "quiet",
     .letter = 'q',
     .verbs = "*",
     .help = "Say nothing on standard error; the exit code tells."},
    {.name = "verbose",
     .letter = 'v',
     .verbs = "*",
     .help = "Say on standard error what is being done; twice for more."},
    {DIBS__SETTING_LOG_LEVEL, .metavar = "LEVEL", .verbs = "*",
     .help = "How much the library says on standard error. -v is info and -vv "
             "is debug; trace shows every event in the life of a lease, with "
             "its time."},
    {.name = "help",
     .letter = 'h',
     .verbs = "*",
     .help = "Show help and stop."},
    {.name = "version",
     .letter = 'V',
     .verbs = "*",
     .help = "Show the version and stop."},

    /* Taking a lock. */
    {.name = "shared",
     .letter = 's',
     .verbs = "run,acquire",
     .help = "Hold the lock beside others that share it: a reader."},
    {.name = "exclusive",
     .letter = 'x',
     .verbs = "run,acquire",
     .help = "Hold the lock alone: a mutex, or the writer among readers. This "
             "is the default."},
    {.name = "permits",
     .letter = 'p',
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = UINT32_MAX,
     .verbs = "run,acquire",
     .help = "Use the name as a semaphore of N permits, and hold one of "
             "them; every user of the name must give the same N."},
    {.name = "take",
     .type = DIBS__INT,
     .metavar = "K",
     .min = 1,
     .max = UINT32_MAX,
     .initial = "1",
     .verbs = "run,acquire",
     .help = "With --permits: hold K of the permits at once."},
    {.name = "also",
     .type = DIBS__TEXT,
     .metavar = "NAME",
     .many = true,
     .verbs = "run,acquire",
     .help = "Hold this name as well: all or none; cannot deadlock. May be "
             "given again."},
    {DIBS__SETTING_ENABLED, .verbs = "run",
     .help = "Take the lock although a variable or file says enabled: no. "
             "With no, run needs no store: it runs the command without a lock, "
             "and says so on standard error. For one machine that works "
             "alone, such as a developer's."},
    {.name = "nonblock",
     .aliases = "nb",
     .letter = 'n',
     .verbs = "run,acquire",
     .help =
         "Do not wait: give up at once when the lock is busy. Not with -w."},
    {DIBS__SETTING_WAIT, .aliases = "timeout", .letter = 'w', .metavar = "DUR",
     .otherwise = "wait without limit", .verbs = "run,acquire",
     .help = "Wait at most this long for the lock, and for a store that is "
             "not up; 0 is the same as -n. Without it dibs waits for the lock "
             "alone. -n wins over a variable or file that says how long."},
    {.name = "wait",
     .letter = 'w',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .initial = "0s",
     .otherwise = "do not wait",
     .verbs = "ping",
     .help = "Wait at most this long for a store that is not up yet."},
    {.name = "conflict-exit-code",
     .letter = 'E',
     .type = DIBS__INT,
     .metavar = "N",
     .max = 255,
     .initial = "75",
     .verbs = "run,acquire,wait",
     .help = "The exit code when the lock is busy or was not granted in time. "
             "Under cron, -E 0 makes a skipped run a success."},
    {DIBS__SETTING_TTL, .metavar = "DUR",
     .verbs = "run,acquire,renew,elect,join,barrier",
     .help = "The length of the lease: if the holder dies, others wait this "
             "long. run and elect renew it every third of this; run also as "
             "--renew-every says."},
    {DIBS__SETTING_RENEW_EVERY, .metavar = "DUR",
     .otherwise = "a third of the ttl", .verbs = "run",
     .help = "Renew the lease this often, at most a third of --ttl. Sooner "
             "costs requests and notices sooner that the store has lost the "
             "lease. From a variable or file it is cut to a third of the ttl."},
    {DIBS__SETTING_RETRIES, .metavar = "N", .verbs = "run,acquire",
     .help = "Retry this many times when the lock is busy or the store is not "
             "up."},
    {DIBS__SETTING_RETRY_DELAY, .metavar = "DUR", .verbs = "run,acquire",
     .help = "Pause before each retry, with some jitter."},
    {DIBS__SETTING_ON_UNAVAILABLE, .metavar = "POLICY", .verbs = "run",
     .help = "When the store is unavailable: fail; local, hold the lock on "
             "this machine only, in the embedded store; or open, go on without "
             "a lock. The last two print a warning on standard error."},
    {DIBS__SETTING_DURABILITY, .metavar = "LEVEL",
     .offers = "async|wait:1|wait:2", .otherwise = "async",
     .verbs = "run,acquire",
     .help =
         "Replicas that must acknowledge a grant: async, none; or wait:K, K "
         "of them (1 to 9), so that a failover does not lose the lease. Redis "
         "only."},
    {.name = "hold-min",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = DAYS(1),
     .initial = "0s",
     .verbs = "run",
     .help = "Keep others out at least this long, even when the command ends "
             "sooner. Guards a short job against clocks that differ."},
    {.name = "hold-max",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .initial = "0s",
     .otherwise = "no bound",
     .verbs = "run",
     .help = "Hold the lock no longer than this. Shortly before, the command "
             "is ended as --on-lost says: it has --kill-after to end in, or a "
             "twentieth of DUR if that is less. 0 is no bound."},
    {DIBS__SETTING_OWNER, .aliases = "label", .metavar = "TEXT",
     .otherwise = "none", .verbs = "run,acquire,break,elect,join,barrier",
     .help = "A label that others see beside host and pid."},
    {.name = "meta",
     .type = DIBS__TEXT,
     .metavar = "KEY=VALUE",
     .many = true,
     .verbs = "run,acquire,join",
     .help = "A piece of information that others see with the lock, or with "
             "the member. May be given again."},
    {.name = "priority",
     .type = DIBS__INT,
     .metavar = "N",
     .min = -1000000,
     .max = 1000000,
     .initial = "0",
     .verbs = "run,acquire,elect",
     .help = "Among waiters, a higher priority is served first."},
    {.name = "barge",
     .verbs = "run,acquire",
     .help = "Take the lock whenever it is free, even when others are "
             "queued for it."},
    {.name = "lock-delay",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = DAYS(1),
     .initial = "0s",
     .verbs = "run,acquire",
     .help = "When this holder dies, the next one waits this much longer than "
             "the lease: time for what is still under way to end."},
    {DIBS__SETTING_SHARE_STATS, .verbs = "run,acquire",
     .help = "Add the use of this lock to the statistics in the store, which "
             "dibs stats shows."},

    /* Running a command. */
    {.name = "once",
     .type = DIBS__TEXT,
     .metavar = "SLOT",
     .offers = "minute|hour|day",
     .verbs = "run",
     .help = "Start at most once per slot, on whichever machine: minute, "
             "hour, day, or any text of your own, such as a date. A run that "
             "finds its slot used exits with 0; it says so on a terminal or "
             "with -v only."},
    {.name = "once-after",
     .type = DIBS__CHOICE,
     .metavar = "WHEN",
     .choices = "start|success",
     .initial = "start",
     .verbs = "run",
     .help = "With --once: what uses the slot up. start: a command that was "
             "started, also if it fails. success: a command that exited with "
             "0; after a failure the next run in the slot tries again, so "
             "that a command may run twice."},
    {.name = "on-lost",
     .type = DIBS__TEXT,
     .metavar = "POLICY",
     .offers = "kill|signal:HUP|signal:INT|signal:TERM|signal:USR1|"
               "signal:USR2|ignore|exec:",
     .initial = "kill",
     .verbs = "run",
     .help = "The action when the lease is lost while the command runs: kill "
             "(end it before another may start), signal:SIG, ignore, or "
             "exec:CMD."},
    {.name = "lost-exit-code",
     .type = DIBS__INT,
     .metavar = "N",
     .max = 255,
     .initial = "122",
     .verbs = "run",
     .help = "The exit code when the lease was lost while the command ran."},
    {.name = "on-yield",
     .type = DIBS__TEXT,
     .metavar = "POLICY",
     .offers = "ignore|signal:HUP|signal:INT|signal:TERM|signal:USR1|"
               "signal:USR2|exit",
     .initial = "ignore",
     .verbs = "run",
     .help = "The action when a user asks for the lock with dibs break "
             "--ask: ignore it, signal:SIG to the command, or exit (end the "
             "command as --max-run would, with its own exit code)."},
    {.name = "progress",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = DAYS(1),
     .initial = "0s",
     .otherwise = "not asked for",
     .verbs = "run",
     .help = "Renew the lease only while the command tells, at least this "
             "often, that it gets on: by any byte written to the file "
             "descriptor whose number is in DIBS_PROGRESS_FD."},
    {DIBS__SETTING_KILL_AFTER, .letter = 'k', .metavar = "DUR", .verbs = "run",
     .help = "How long the command has to end after --signal, before KILL."},
    {.name = "signal",
     .type = DIBS__TEXT,
     .metavar = "SIG",
     .offers = "HUP|INT|KILL|QUIT|TERM|USR1|USR2",
     .initial = "TERM",
     .verbs = "run",
     .help = "The signal that asks the command to end."},
    {.name = "max-run",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .initial = "0s",
     .otherwise = "no bound",
     .verbs = "run",
     .help = "End the command after this long, with exit code 124. 0 is no "
             "bound."},
    {.name = "command",
     .letter = 'c',
     .type = DIBS__TEXT,
     .metavar = "STRING",
     .verbs = "run",
     .help = "Run this string with sh -c instead of a command."},
    {.name = "stdin",
     .type = DIBS__CHOICE,
     .metavar = "WHICH",
     .choices = "inherit|null",
     .initial = "inherit",
     .verbs = "run",
     .help = "The standard input of the command."},
    {.name = "foreground",
     .verbs = "run",
     .help = "Leave the command in the process group of dibs, so that it may "
             "use the terminal."},
    {.name = "tree-unchecked",
     .verbs = "run",
     .help =
         "Run the command also where dibs can find no more of its processes "
         "than its process group: without a /proc for this PID namespace, "
         "and without the right to make a cgroup. A process that leaves the "
         "group may "
         "then outlive the lease. The lock is shown with tree=unchecked."},
    {.name = "status-fd",
     .type = DIBS__INT,
     .metavar = "N",
     .max = 1048576,
     .otherwise = "none",
     .verbs = "run",
     .help =
         "Write one JSON line about what happened to this file descriptor."},
    {.name = "dry-run",
     .verbs = "run",
     .help = "Take no lock and start nothing: print the store, the state of "
             "the lock, the settings in force and what would be done, with "
             "--json as JSON. The exit code is 0 if the command would start "
             "now or be skipped, that of -E if the lock is busy, and that of "
             "the failure if it would fail."},
    {.name = "no-fork",
     .letter = 'F',
     .verbs = "run",
     .help = "Refused: a lease that is renewed needs dibs beside the command."},

    /* The scripting halves. */
    {.name = "token",
     .type = DIBS__TEXT,
     .metavar = "TOKEN",
     .verbs = "release,renew,check",
     .help = "The token that acquire printed, OWNER:FENCE, or the one of "
             "dibs_lock_transfer(3). For check a fence is enough."},
    {.name = "token-file",
     .type = DIBS__TEXT,
     .metavar = "FILE",
     .verbs = "acquire,release,renew,check",
     .help = "The file for the token: acquire writes it, readable for its "
             "owner only; the others read it."},

    /* Looking, and taking away. */
    {.name = "json", .help = "Print JSON, with \"schema\":1 to tell its form."},
    {.name = "names",
     .verbs = "ls,state ls,members",
     .help = "Print only the names, one on a line."},
    {.name = "interval",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 10,
     .max = DAYS(1),
     .initial = "1s",
     .verbs = "watch,deadlocks,trail,members",
     .help = "How often to look; what comes and goes between two looks is not "
             "seen."},
    {.name = "interval",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 10,
     .max = DAYS(1),
     .initial = "250ms",
     .verbs = "wait",
     .help = "The longest pause between two looks. They come sooner at first, "
             "and when a lease ends."},
    {.name = "interval",
     .aliases = "delay",
     .letter = 'd',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 10,
     .max = DAYS(1),
     .initial = "1s",
     .verbs = "top",
     .help = "How often to look."},
    {.name = "iterations",
     .letter = 'n',
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = INT32_MAX,
     .otherwise = "without end on a terminal, once elsewhere",
     .verbs = "top",
     .help = "End after this many looks."},
    {.name = "once",
     .verbs = "top",
     .help = "Print one table and end, on a terminal too."},
    {.name = "sort",
     .type = DIBS__CHOICE,
     .metavar = "BY",
     .choices = "waiting|left|held|name",
     .initial = "waiting",
     .verbs = "top",
     .help = "The lock that comes first: the one with the most waiters, with "
             "the least left of its lease, held longest, or by name."},
    {.name = "wait",
     .aliases = "timeout",
     .letter = 'w',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .otherwise = "wait without limit",
     .verbs = "wait",
     .help = "Wait at most this long; 0 is the same as -n."},
    {.name = "nonblock",
     .aliases = "nb",
     .letter = 'n',
     .verbs = "wait",
     .help = "Do not wait: look once, and tell by the exit code."},
    {.name = "watch",
     .verbs = "deadlocks",
     .help = "Look again and again, and print what is new, until interrupted."},
    {.name = "follow",
     .letter = 'f',
     .verbs = "trail",
     .help = "Go on and print what is added, until interrupted."},
    {.name = "stale",
     .verbs = "ls,break",
     .help = "Only leases whose holder seems to be gone: its process has "
             "ended on this host, or it has not renewed when it should have."},
    {.name = "ask",
     .verbs = "break",
     .help = "Break nothing: ask the holder to give the lock back. The holder "
             "decides (--on-yield of run)."},
    {.name = "if-fence",
     .aliases = "if-token",
     .type = DIBS__TEXT,
     .metavar = "FENCE",
     .verbs = "break",
     .help =
         "Break only the lease with this fence, as show prints it. A token, "
         "OWNER:FENCE, will do as well."},
    {.name = "force",
     .verbs = "break",
     .help = "Break whatever lease there is."},
    {.name = "reason",
     .type = DIBS__TEXT,
     .metavar = "TEXT",
     .verbs = "break",
     .help = "The reason, for the log and the trail."},
    {.name = "yes",
     .letter = 'y',
     .verbs = "break",
     .help = "Do not ask; needed when there is no terminal."},

    /* A store for several users. */
    {.name = "group",
     .type = DIBS__TEXT,
     .metavar = "GROUP",
     .verbs = "store share",
     .help = "The group whose members share the store, by name or number."},

    /* Health. */
    {.name = "election",
     .type = DIBS__TEXT,
     .metavar = "NAME",
     .otherwise = "none is looked at",
     .verbs = "health",
     .help = "An election that must have a leader."},
    {.name = "group",
     .type = DIBS__TEXT,
     .metavar = "NAME",
     .otherwise = "none is looked at",
     .verbs = "health",
     .help = "A group that must have members."},
    {.name = "slow",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 1,
     .max = DAYS(1),
     .initial = "1s",
     .verbs = "health",
     .help = "A part that takes longer than this is slow."},

    /* State. */
    {.name = "expires",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = 100 * YEAR,
     .initial = "0s",
     .otherwise = "never",
     .verbs = "state set,state cas",
     .help = "Forget the value after this long. 0 keeps it for ever."},
    {.name = "if-version",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = INT64_MAX,
     .verbs = "state del",
     .help = "Delete only this version."},
    {.name = "raw",
     .verbs = "state get",
     .help = "Print the bytes as they are, without a newline after them."},
    {.name = "with-version",
     .verbs = "state get,state watch",
     .help = "Print the version and a space before the value."},
    {.name = "count",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = INT64_MAX,
     .otherwise = "go on without end",
     .verbs = "state watch",
     .help =
         "End after so many reports. The first is the value that is there."},
    {.name = "wait",
     .aliases = "timeout",
     .letter = 'w',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .otherwise = "wait without limit",
     .verbs = "state watch",
     .help = "Wait at most this long for each change."},

    /* Elections. */
    {.name = "stop",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = DAYS(1),
     .initial = "5s",
     .verbs = "elect,join",
     .help = "The time that the command has to end in after TERM, before it is "
             "killed; a quarter of the lease at most when the lead is lost."},
    {.name = "member",
     .type = DIBS__TEXT,
     .metavar = "NAME",
     .otherwise = "host:pid",
     .verbs = "join",
     .help = "The name that others see in place of host:pid."},
    {.name = "min-nodes",
     .aliases = "minimum-nodes",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 1000000,
     .otherwise = "members are not counted",
     .verbs = "elect",
     .help = "Lead only while so many members live, this one among them; the "
             "same number for all candidates."},
    {.name = "once",
     .verbs = "elect",
     .help = "Do not campaign again after a loss: exit with 122."},
    {.name = "follow",
     .letter = 'l',
     .verbs = "leader,members",
     .help = "Go on: a line per change."},

    /* Barriers. */
    {.name = "parties",
     .letter = 'n',
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = DIBS_BARRIER_MAX,
     .verbs = "barrier",
     .help = "How many parties wait for each other. Needed, but for show."},
    {.name = "withdraw",
     .verbs = "barrier",
     .help = "When -w is over, take back this arrival only: the others wait "
             "on. Without it the barrier breaks for all."},
    {.name = "wait",
     .aliases = "timeout",
     .letter = 'w',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .otherwise = "wait without limit",
     .verbs = "barrier",
     .help = "Wait at most this long for the other parties."},

    /* Latches. */
    {.name = "count",
     .aliases = "total",
     .letter = 'n',
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = DIBS_LATCH_MAX,
     .verbs = "latch count-down,latch wait",
     .help = "How many different ids must count down in all. Needed."},
    {.name = "id",
     .type = DIBS__TEXT,
     .metavar = "ID",
     .otherwise = "an id of its own",
     .verbs = "latch count-down",
     .help = "The id that counts, once however often it is given: that of a "
             "job, for one."},
    {.name = "wait",
     .aliases = "timeout",
     .letter = 'w',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .otherwise = "wait without limit",
     .verbs = "latch wait",
     .help = "Wait at most this long, also for a store that is not up; 0 looks "
             "once."},

    /* Circuit breakers. */
    {.name = "threshold",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 1000000000,
     .otherwise = "5 if no rate is given",
     .verbs = "breaker run",
     .help = "So many bad commands in the window open the breaker."},
    {.name = "rate",
     .type = DIBS__INT,
     .metavar = "PERCENT",
     .min = 1,
     .max = 100,
     .verbs = "breaker run",
     .help = "So many bad commands of a hundred open the breaker."},
    {.name = "min-calls",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 1000000000,
     .otherwise = "10",
     .verbs = "breaker run",
     .help = "The rates count from so many commands in the window on."},
    {.name = "window",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 1,
     .max = 86400000,
     .otherwise = "1m",
     .verbs = "breaker run,breaker show",
     .help = "Count the commands of this span."},
    {.name = "recovery",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 1,
     .max = 86400000,
     .otherwise = "30s; breaker open: until it is closed",
     .verbs = "breaker run,breaker open",
     .help = "The time from open to the first try."},
    {.name = "probes",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 1000,
     .otherwise = "1",
     .verbs = "breaker run",
     .help = "So many tries at a time, on all machines together."},
    {.name = "need",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 1000000,
     .otherwise = "1",
     .verbs = "breaker run",
     .help = "So many good tries close the breaker."},
    {.name = "probe-ttl",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 1,
     .max = 3600000,
     .otherwise = "10s",
     .verbs = "breaker run",
     .help = "A try that takes longer is void: give more than the command "
             "takes."},
    {.name = "min-clients",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 32,
     .otherwise = "1",
     .verbs = "breaker run",
     .help = "Bad commands of so many processes are needed to open it."},
    {.name = "slow",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 1,
     .max = 86400000,
     .verbs = "breaker run",
     .help = "A command that takes so long is slow."},
    {.name = "slow-percent",
     .type = DIBS__INT,
     .metavar = "PERCENT",
     .min = 1,
     .max = 100,
     .otherwise = "50",
     .verbs = "breaker run",
     .help = "With --slow: so many slow commands of a hundred open it."},
    {.name = "ramp",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 1,
     .max = 86400000,
     .otherwise = "all at once",
     .verbs = "breaker run",
     .help = "After it has closed, let a share of the commands run that rises "
             "to all of them in this time."},
    {.name = "fail-on",
     .type = DIBS__TEXT,
     .metavar = "CODES",
     .otherwise = "all but 0",
     .verbs = "breaker run",
     .help = "The exit codes that are bad: 1,4-7."},

    /* Rate limits. */
    {.name = "rate",
     .letter = 'r',
     .type = DIBS__TEXT,
     .metavar = "RATE",
     .verbs = "limit",
     .help = "Tokens and the span in which they are handed out: 100/s, 5/m, "
             "10/30s, 1000/h; a number alone is for each second. Needed."},
    {.name = "burst",
     .letter = 'b',
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = INT64_MAX,
     .otherwise = "the tokens of one span",
     .verbs = "limit",
     .help = "So many tokens may be taken at once, after a pause."},
    {.name = "tokens",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = INT64_MAX,
     .initial = "1",
     .verbs = "limit",
     .help = "Take so many tokens, at most the burst."},
    {.name = "wait",
     .aliases = "timeout",
     .letter = 'w',
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = YEAR,
     .initial = "0s",
     .otherwise = "do not wait",
     .verbs = "limit",
     .help = "Wait at most this long for the tokens. If they take longer, "
             "dibs refuses at once. An interrupted wait has used its tokens."},
    {.name = "conflict-exit-code",
     .letter = 'E',
     .type = DIBS__INT,
     .metavar = "N",
     .max = 255,
     .initial = "75",
     .verbs = "limit,breaker run",
     .help = "The exit code when the limit is reached or the breaker is open. "
             "Under cron, -E 0 makes a skipped run a success."},
    {.name = "on-unavailable",
     .type = DIBS__CHOICE,
     .metavar = "POLICY",
     .choices = "fail|open",
     .initial = "fail",
     .verbs = "limit",
     .help = "When the store is unavailable: fail; or open, go on without a "
             "limit, with a warning on standard error."},

    /* The demonstration. */
    {.name = "workers",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 64,
     .initial = "4",
     .verbs = "demo",
     .help = "How many workers to start (NUM_WORKERS)."},
    {.name = "http-port",
     .type = DIBS__INT,
     .metavar = "PORT",
     .min = 1,
     .max = 65534,
     .initial = "3000",
     .verbs = "demo",
     .help = "Worker N listens on this port plus N (HTTP_PORT)."},
    {.name = "operations",
     .type = DIBS__INT,
     .metavar = "N",
     .max = 1000000,
     .initial = "2",
     .verbs = "demo",
     .help = "How many operations each worker does when it starts."},
    {.name = "duration",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = MINUTES(1),
     .initial = "2s",
     .verbs = "demo",
     .help = "How long each of them takes."},
    {.name = "ttl",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .min = 10,
     .max = DAYS(1),
     .initial = "10s",
     .verbs = "demo",
     .help = "The length of the lease: how long others wait when a worker was "
             "killed while it held the lock."},
    {.name = "wait",
     .type = DIBS__DURATION,
     .metavar = "DUR",
     .max = DAYS(1),
     .initial = "10s",
     .verbs = "demo",
     .help = "How long POST /update waits for the lock before it answers that "
             "it could not be acquired."},
    {DIBS__SETTING_DATA_URL, .metavar = "URL", .offers = URLS,
     .otherwise =
         "where the locks are; with redlock:, the first of the servers",
     .verbs = "demo",
     .help = "The store of the values, if it is not the store of the locks."},
    {.name = "log-format",
     .type = DIBS__CHOICE,
     .metavar = "FORMAT",
     .choices = "text|json",
     .initial = "text",
     .verbs = "demo",
     .help = "Log lines for people, or as one JSON object each."},
    {.name = "worker",
     .type = DIBS__INT,
     .metavar = "N",
     .min = 1,
     .max = 64,
     .verbs = "demo",
     .hidden = true,
     .help = "Be worker N of a primary."},

    /* For the build. */
    {.name = "man",
     .type = DIBS__TEXT,
     .metavar = "DIR",
     .verbs = "help",
     .hidden = true,
     .help = "Write the man pages into this folder."},
    {.name = "doc",
     .verbs = "config",
     .hidden = true,
     .help = "Print docs/config.md."},
};

const size_t dibs__option_count =
    sizeof(dibs__options) / sizeof(dibs__options[0]);

static_assert(sizeof(dibs__options) / sizeof(dibs__options[0]) <=
                  DIBS__OPTION_MAX,
              "raise DIBS__OPTION_MAX");

bool dibs__option_global(const dibs__option *option)
{
    return option->verbs && option->verbs[0] == '*';
}

/* The verb's own row names it. */
static bool is_asked_for(const dibs__option *option, const char *verb)
{
    const dibs__verb *row = dibs__verb_find(verb);

    return row && dibs__list_has(row->options, ',', option->name,
                                 strlen(option->name));
}

bool dibs__option_has_verb(const dibs__option *option, const char *verb)
{
    return dibs__option_global(option) ||
           dibs__list_has(option->verbs, ',', verb, strlen(verb)) ||
           is_asked_for(option, verb);
}

static bool named(const dibs__option *option, const char *name, size_t len)
{
    return (strlen(option->name) == len &&
            memcmp(option->name, name, len) == 0) ||
           dibs__list_has(option->aliases, ',', name, len);
}

const dibs__option *
dibs__option_find(const char *verb, const char *name, size_t len)
{
    for (size_t i = 0; i < dibs__option_count; i++) {
        if (named(&dibs__options[i], name, len) &&
            dibs__option_has_verb(&dibs__options[i], verb))
            return &dibs__options[i];
    }
    return NULL;
}

const dibs__option *dibs__option_letter(const char *verb, char letter)
{
    for (size_t i = 0; i < dibs__option_count; i++) {
        if (dibs__options[i].letter == letter &&
            dibs__option_has_verb(&dibs__options[i], verb))
            return &dibs__options[i];
    }
    return NULL;
}
