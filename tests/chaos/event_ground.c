/* event_ground.c - publishers of a topic and consumers of its groups, while both are killed
 * and stopped, the store is killed, connections are cut, and the topic is trimmed.
 *
 *     event_ground [--on sqlite|redis|postgres] [OPTION...] FOLDER
 *
 * The processes are this program again. They write down what they do in a database of
 * their own (event_witness.h), at which check_events.py looks in the end. */
/* SPDX-License-Identifier: MIT */
#include "event_ground.h"

#include "driver.h"
#include "event_witness.h"
#include "pace.h"
#include "seed.h"

#include <dibs/dibs.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EACH = 3, CONSUMERS = GROUPS * EACH, PUBLISHERS = 3 };
enum { TRIMMER = CONSUMERS + PUBLISHERS, MEN = TRIMMER + 1 };
enum { TTL_MS = 800, DRAIN_MS = 60000 };
enum { LEAST = 100 }; /* events, however slow the machine is */

typedef struct wishes {
    const char *folder;
    int64_t seconds, kill_ms, store_ms;
    uint64_t random;
} wishes;

static wishes ws = {.seconds = 20, .kill_ms = 1000, .store_ms = 20000};

/* The grounds that lose nothing of what they answered, and how they are killed. */
static const driver_place places[] = {
    {"sqlite", NULL},      {"redis", "restart"},          {"cluster", "crash"},
    {"postgres", "crash"}, {"postgres-sync", "failover"}, {0},
};

static event_control *ct;
static pid_t pids[MEN]; /* 0: none */
static uint64_t lives[MEN];
static uint64_t faults;
static size_t stopped = MEN; /* who is; MEN: nobody */

/* ---- processes */

static const char *role_of(size_t number)
{
    return number == TRIMMER     ? "--as-trimmer"
           : number >= CONSUMERS ? "--as-publisher"
                                 : "--as-consumer";
}

static void start_man(size_t number)
{
    char group[16], who[32];

    snprintf(group, sizeof(group), "%zu", number % GROUPS);
    snprintf(who, sizeof(who), "%" PRIu64, ++lives[number] * MEN + number);
    pids[number] = fork();
    if (pids[number] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "event_ground", role_of(number), ws.folder,
              group, who, (char *)NULL);
        _exit(127);
    }
    if (pids[number] < 0) {
        perror("fork");
        exit(2);
    }
}

/* Waits for the end of one, which was killed or told to. */
static void reap(size_t number)
{
    int status = 0;

    if (pids[number] == 0)
        return;
    while (waitpid(pids[number], &status, 0) < 0 && errno == EINTR)
        continue;
    pids[number] = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        fprintf(stderr, "a process ended with %d\n", WEXITSTATUS(status));
        exit(2);
    }
}

static void kill_man(size_t number)
{
    if (number == stopped)
        stopped = MEN;
    kill(pids[number], SIGKILL);
    reap(number);
    start_man(number);
    faults++;
}

static void wake_man(void)
{
    if (stopped < MEN)
        kill(pids[stopped], SIGCONT);
    stopped = MEN;
}

/* Its turn is another's when it goes on, and it does not know. */
static void stop_man(size_t number)
{
    stopped = number;
    kill(pids[number], SIGSTOP);
    faults++;
}

/* ---- the run */

/* The embedded store dies with all who have it open. */
static bool kill_store(void)
{
    faults++;
    if (!driver_is_embedded())
        return driver_kill_server(300);
    for (size_t i = 0; i < MEN; i++)
        kill(pids[i], SIGKILL);
    for (size_t i = 0; i < MEN; i++)
        kill_man(i);
    return true;
}

static void cut(void)
{
    faults++;
    driver_cut(100);
}

/* False when the store did not come back. */
static bool disturb(void)
{
    int64_t until_ns = now_ns() + ws.seconds * INT64_C(1000000000);
    int64_t kill_ns = 0, cut_ns = 0, stop_ns = 0;
    int64_t store_ns = now_ns() + ws.store_ms * 1000000;
    bool ok = true;

    while (ok && (now_ns() < until_ns || atomic_load(&ct->next_seq) < LEAST)) {
        poll(NULL, 0, 5);
        if (driver_is_due(&kill_ns, ws.kill_ms))
            kill_man(driver_draw() % TRIMMER);
        if (driver_is_due(&stop_ns,
                          ct->ttl_ms / 2 + (int64_t)(driver_draw() % 1000))) {
            bool rests = stopped < MEN;

            wake_man();
            if (!rests)
                stop_man(driver_draw() % CONSUMERS);
        }
        if (!driver_is_embedded() &&
            driver_is_due(&cut_ns, 50 + (int64_t)(driver_draw() % 1000)))
            cut();
        if (driver_is_due(&store_ns, ws.store_ms))
            ok = kill_store();
    }
    if (!ok)
        fprintf(stderr, "the store did not come back\n");
    return ok;
}

/* False: the store could not be reached. */
static bool try_last(uint64_t *last, dibs_error *err)
{
    dibs_client *cl = NULL;
    dibs_topic_state at = {0};
    dibs_status rc =
        dibs_open(ct->url, DIBS_CLIENT_OPTS(.timeout_ms = pace_ms(5000)), &cl,
                  err);

    if (rc == DIBS_OK)
        rc = dibs_events_show(cl, EVENT_TOPIC, &at, err);
    dibs_close(cl);
    *last = at.last;
    return rc == DIBS_OK;
}

/* The last position of the topic; 0 when the store stayed away. The last cut may not be
 * over yet. */
static uint64_t find_last(int64_t until_ns)
{
    dibs_error err = {0};
    uint64_t last = 0;

    while (!try_last(&last, &err) && now_ns() < until_ns)
        poll(NULL, 0, 20);
    if (last == 0)
        fprintf(stderr, "event_ground: %s\n", err.message);
    return last;
}

/* Nothing more is published, and each group comes to the end; then all end. If one does
 * not, the checker finds what it has not got. */
static bool drain(witness_db *wn)
{
    int64_t until_ns = now_ns() + pace_ms(DRAIN_MS) * INT64_C(1000000);
    uint64_t last;

    wake_man();
    atomic_store(&ct->published, true);
    for (size_t i = CONSUMERS; i < MEN; i++)
        reap(i);
    last = find_last(until_ns);
    for (uint64_t group = 0; group < GROUPS; group++)
        while (event_witness_last(wn, group) < last && now_ns() < until_ns)
            poll(NULL, 0, 20);
    atomic_store(&ct->over, true);
    for (size_t i = 0; i < CONSUMERS; i++)
        reap(i);
    event_witness_end(wn, last, faults);
    return last > 0;
}

static int run_all(void)
{
    witness_db *wn = event_witness_open(ws.folder);
    bool ok = wn && driver_begin(ws.folder, "events.db", ct->url);
    bool back = true;

    if (ok) {
        for (size_t i = 0; i < MEN; i++)
            start_man(i);
        back = disturb();
        ok = drain(wn) && back;
    }
    driver_end();
    witness_db_close(wn);
    if (!ok)
        return back ? 2 : PACE_MISSED;
    fflush(stdout);
    execl(CHECK_EVENTS, CHECK_EVENTS, ws.folder, (char *)NULL);
    perror(CHECK_EVENTS);
    return 2;
}

static void usage(FILE *out)
{
    fprintf(out, "usage: event_ground [OPTION...] FOLDER\n"
                 "  --on STORE      sqlite, redis, cluster, postgres or "
                 "postgres-sync (sqlite)\n"
                 "  --seconds N     ends when so much time is over (20)\n"
                 "  --kill-ms N     a publisher or consumer is killed so often "
                 "(1000)\n"
                 "  --store-ms N    the store is (20000)\n"
                 "  --seed N        repeats the choice of faults\n");
}

enum { ON = 1, SECONDS, KILL, STORE, SEED, HELP };

static const struct option options[] = {
    {"on", required_argument, NULL, ON},
    {"seconds", required_argument, NULL, SECONDS},
    {"kill-ms", required_argument, NULL, KILL},
    {"store-ms", required_argument, NULL, STORE},
    {"seed", required_argument, NULL, SEED},
    {"help", no_argument, NULL, HELP},
    {0},
};

static bool set_option(int option, const char *word)
{
    uint64_t number = word ? strtoull(word, NULL, 10) : 0;

    switch (option) {
    case ON:
        return driver_choose(places, word);
    case SECONDS:
        ws.seconds = (int64_t)number;
        return number > 0;
    case KILL:
        ws.kill_ms = (int64_t)number;
        return number > 0;
    case STORE:
        ws.store_ms = (int64_t)number;
        return number > 0;
    case SEED:
        ws.random = number;
        return number > 0;
    case HELP:
        usage(stdout);
        exit(0);
    default:
        return false;
    }
}

static int
be_man(const char *as, const char *folder, uint64_t group, uint64_t who)
{
    if (strcmp(as, "--as-trimmer") == 0)
        return event_trimmer(folder);
    return strcmp(as, "--as-publisher") == 0
               ? event_publisher(folder, who)
               : event_consumer(folder, group, who);
}

int main(int argc, char **argv)
{
    int option;

    if (argc == 5 && strncmp(argv[1], "--as-", 5) == 0)
        return be_man(argv[1], argv[2], strtoull(argv[3], NULL, 10),
                      strtoull(argv[4], NULL, 10));
    ws.random = seed_of_run();
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
        if (!set_option(option, optarg)) {
            usage(stderr);
            return 2;
        }
    if (optind + 1 != argc) {
        usage(stderr);
        return 2;
    }
    ws.folder = argv[optind];
    printf("events on %s, seed %llu\n", driver_ground->name,
           (unsigned long long)ws.random);
    driver_seed(ws.random);
    ct = map_file(ws.folder, EVENT_CONTROL, sizeof(*ct));
    ct->ttl_ms = pace_ms(TTL_MS);
    return run_all();
}
