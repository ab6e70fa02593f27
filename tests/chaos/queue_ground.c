/* queue_ground.c - producers and consumers of two queues, while consumers are killed and
 * stopped, the store is killed, and connections are cut.
 *
 *     queue_ground [--on sqlite|redis|postgres] [OPTION...] FOLDER
 *
 * The processes are this program again. They write down what they do in a database of
 * their own (witness.h), at which check_queue.py looks in the end. */
/* SPDX-License-Identifier: MIT */
#include "queue_ground.h"

#include "driver.h"
#include "pace.h"
#include "seed.h"
#include "store/store.h"
#include "witness.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POOL_MEN = 6, LINE_MEN = 2, CONSUMERS = POOL_MEN + LINE_MEN };
enum { POOL_FEEDERS = 2, LINE_FEEDERS = 1 };
enum { PRODUCERS = POOL_FEEDERS + LINE_FEEDERS, MEN = CONSUMERS + PRODUCERS };

/* The queue is short, so that pushes meet a full one. A poison is nothing here: what is
 * lost however often comes back. */
enum { POOL_CAP = 10000, LINE_CAP = 100 };
enum { TTL_MS = 1000, DRAIN_MS = 150000, NEVER = 1000000 };
enum { LEAST = 200 };  /* items, however slow the machine is */
enum { PEEKED = 100 }; /* dead letters of a look */

typedef struct man {
    pid_t pid; /* 0: none */
    bool produces;
    int queue;
    uint64_t lives;
} man;

typedef struct wishes {
    const char *folder;
    int64_t seconds, kill_ms, store_ms;
    uint64_t items;
    uint64_t random;
    bool steps, lossy;
    const char *on;
} wishes;

static wishes ws = {.on = "sqlite",
                    .seconds = 20,
                    .kill_ms = 200,
                    .store_ms = 20000};
/* The grounds that lose nothing of what they answered, and how they are killed; and those
 * that lose their last writes with each death. */
static const driver_place places[] = {
    {"sqlite", NULL},      {"redis", "restart"},          {"cluster", "crash"},
    {"postgres", "crash"}, {"postgres-sync", "failover"}, {0},
};

static const driver_place lossy_places[] = {
    {"redis", "tail"},
    {"sentinel-async", "lossy"},
    {"postgres-standby", "lossy"},
    {0},
};

static control *ct;
static witness *wn;
static man men[MEN];
static uint64_t faults;
static size_t stopped = MEN; /* who is; MEN: nobody */

/* ---- processes */

static void start_man(size_t number)
{
    man *mn = &men[number];
    char queue[16], who[32];

    snprintf(queue, sizeof(queue), "%d", mn->queue);
    snprintf(who, sizeof(who), "%llu",
             (unsigned long long)(++mn->lives * MEN + number));
    mn->pid = fork();
    if (mn->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "queue_ground",
              mn->produces ? "--as-producer" : "--as-consumer", ws.folder,
              queue, who, (char *)NULL);
        _exit(127);
    }
    if (mn->pid < 0) {
        perror("fork");
        exit(2);
    }
}

static void start_men(void)
{
    for (size_t i = 0; i < MEN; i++) {
        men[i].produces = i >= CONSUMERS;
        men[i].queue =
            i < POOL_MEN || (i >= CONSUMERS && i < MEN - LINE_FEEDERS) ? POOL
                                                                       : LINE;
        start_man(i);
    }
}

/* Waits for the end of one, which was killed or told to. */
static void reap(man *mn)
{
    int status = 0;

    if (mn->pid == 0)
        return;
    while (waitpid(mn->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    mn->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        fprintf(stderr, "a process ended with %d\n", WEXITSTATUS(status));
        exit(2);
    }
}

/* Its items are another's when it goes on, and it does not know. */
static void stop_man(size_t number)
{
    stopped = number;
    kill(men[number].pid, SIGSTOP);
    faults++;
}

static void wake_man(void)
{
    if (stopped < MEN)
        kill(men[stopped].pid, SIGCONT);
    stopped = MEN;
}

static void kill_man(size_t number)
{
    if (men[number].pid == 0)
        return;
    if (number == stopped)
        stopped = MEN;
    kill(men[number].pid, SIGKILL);
    reap(&men[number]);
    start_man(number);
    faults++;
}

/* Whether somebody still pushes; those who have ended by themselves are done. */
static bool are_pushing(void)
{
    bool some = false;

    for (size_t i = CONSUMERS; i < MEN; i++) {
        siginfo_t info = {0};

        if (men[i].pid != 0 &&
            waitid(P_PID, (id_t)men[i].pid, &info,
                   WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0)
            reap(&men[i]);
        some = some || men[i].pid != 0;
    }
    return some;
}

/* ---- the store */

static void cut(void)
{
    faults++;
    driver_cut(100);
}

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(5000));
}

static dibs__store *reach(void)
{
    dibs__store *st = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs__store_open(ct->url, soon(), &st, &err);

    if (pace_explains(rc))
        MISSED("%s", err.message);
    if (rc != DIBS_OK)
        fprintf(stderr, "queue_ground: %s\n", err.message);
    return st;
}

static bool set_queue(dibs__store *st, int queue, dibs_error *err)
{
    const dibs__queue_conf conf = {.serial = queue == LINE,
                                   .cap = queue == LINE ? LINE_CAP : POOL_CAP,
                                   .tries = NEVER,
                                   .deads = NEVER,
                                   .lost_max = NEVER};

    return st->ops->queue_admin->set(st, queue_names[queue],
                                     DIBS__SET_SERIAL | DIBS__SET_CAP |
                                         DIBS__SET_TRIES | DIBS__SET_DEADS |
                                         DIBS__SET_LOST_MAX,
                                     &conf, soon(), err) == DIBS_OK;
}

/* Sets what the queues may do; *serial: whether the line was serial before. */
static bool make_queues(bool *serial)
{
    dibs__store *st = reach();
    dibs__queue_stats at = {.ready = 0};
    dibs_error err = {0};
    bool ok = st != NULL;

    *serial = st &&
              st->ops->queue_admin->stats(st, queue_names[LINE], soon(), &at,
                                          &err) == DIBS_OK &&
              at.conf.serial;
    for (int i = 0; ok && i < QUEUES; i++)
        ok = set_queue(st, i, &err);
    if (st && !ok)
        fprintf(stderr, "queue_ground: %s\n", err.message);
    dibs__store_close(st);
    return ok;
}

/* Kills the server and has it return; it may have lost the settings too, which are set
 * again. What was delivered until then was not in the order of the line. */
static bool kill_server(void)
{
    uint64_t from_us = wall_us(), to_us;
    bool serial, ok = driver_kill_server(300);

    if (!ws.lossy || !ok)
        return ok;
    to_us = wall_us();
    ok = make_queues(&serial);
    if (!serial)
        to_us = wall_us() + (uint64_t)ct->ttl_ms * 1000;
    witness_loss(wn, from_us, to_us);
    return ok;
}

/* The embedded store dies with all who have it open. */
static bool kill_store(void)
{
    faults++;
    if (!driver_is_embedded())
        return kill_server();
    for (size_t i = 0; i < MEN; i++)
        if (men[i].pid != 0)
            kill(men[i].pid, SIGKILL);
    for (size_t i = 0; i < MEN; i++)
        kill_man(i);
    return true;
}

/* What is left in the queues; true when that is nothing. */
static bool look(dibs__store *st, left all[QUEUES])
{
    bool empty = true;

    for (int i = 0; i < QUEUES; i++) {
        dibs__queue_stats at;
        dibs_error err = {0};

        if (st->ops->queue_admin->stats(st, queue_names[i], soon(), &at,
                                        &err) != DIBS_OK) {
            fprintf(stderr, "queue_ground: %s\n", err.message);
            all[i] = (left){.out = 1}; /* what is not seen may be left */
            return false;
        }
        all[i] = (left){.pushed = at.pushed,
                        .acked = at.acked,
                        .ready = at.ready,
                        .later = at.later,
                        .out = at.out,
                        .dead = at.dead,
                        .nacked = at.nacked,
                        .died = at.died};
        empty = empty && at.ready + at.later + at.out == 0;
    }
    return empty;
}

typedef struct letters {
    witness *wn;
    int queue;
    size_t count;
} letters;

static bool note_letter(const dibs__item_view *item, void *arg)
{
    letters *ls = arg;
    char text[24] = "";
    letter lt = {.id = item->id,
                 .attempts = item->attempts,
                 .lost = item->lost,
                 .reason = strtoull(item->reason, NULL, 10)};

    if (item->len < sizeof(text))
        memcpy(text, item->data, item->len);
    /* The library writes the headers in front, of which there are none. */
    lt.seq = strtoull(text + !isdigit((unsigned char)text[0]), NULL, 10);
    witness_letter(ls->wn, ls->queue, &lt);
    ls->count++;
    return true;
}

/* Writes down the dead letters that are left. */
static bool note_letters(dibs__store *st)
{
    for (int i = 0; i < QUEUES; i++) {
        letters ls = {.wn = wn, .queue = i};
        dibs_error err = {0};
        size_t before;

        do {
            before = ls.count;
            if (st->ops->queue_admin->peek(st, queue_names[i], DIBS__PLACE_DEAD,
                                           before, PEEKED, soon(), note_letter,
                                           &ls, &err) != DIBS_OK) {
                fprintf(stderr, "queue_ground: %s\n", err.message);
                return false;
            }
        } while (ls.count == before + PEEKED);
    }
    return true;
}

/* ---- the run */

/* False when the store did not come back. */
static bool disturb(void)
{
    int64_t until_ns = now_ns() + ws.seconds * INT64_C(1000000000);
    int64_t kill_ns = 0, producer_ns = 0, cut_ns = 0, stop_ns = 0;
    int64_t store_ns = now_ns() + ws.store_ms * 1000000;
    bool ok = true;

    while (ok && are_pushing() &&
           (ws.seconds == 0 || now_ns() < until_ns ||
            atomic_load(&ct->next_seq) < LEAST)) {
        poll(NULL, 0, 5);
        if (driver_is_due(&kill_ns, ws.kill_ms))
            kill_man(driver_draw() % CONSUMERS);
        if (driver_is_due(&producer_ns, 10 * ws.kill_ms))
            kill_man(CONSUMERS + driver_draw() % PRODUCERS);
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

static void end_men(void)
{
    atomic_store(&ct->over, true);
    for (size_t i = 0; i < MEN; i++)
        reap(&men[i]);
}

/* All ends when nothing is left to do. A dead letter may have been redriven after that was
 * seen: the consumers begin again then, and redrive no more. */
static void work_off(dibs__store *st, left all[QUEUES], int64_t until_ns)
{
    for (;;) {
        while (!look(st, all) && now_ns() < until_ns)
            poll(NULL, 0, 20);
        end_men();
        if (look(st, all) || now_ns() >= until_ns)
            return;
        atomic_store(&ct->ending, true);
        atomic_store(&ct->over, false);
        for (size_t i = 0; i < CONSUMERS; i++)
            start_man(i);
    }
}

/* Nothing more is pushed, and all that was is done; then all end. */
static bool drain(left all[QUEUES])
{
    int64_t until_ns = now_ns() + pace_ms(DRAIN_MS) * INT64_C(1000000);
    dibs__store *st;
    bool noted = false;

    wake_man();
    atomic_store(&ct->pushed, true);
    while (are_pushing() && now_ns() < until_ns)
        poll(NULL, 0, 5);
    st = reach();
    if (st) {
        work_off(st, all, until_ns);
        noted = note_letters(st);
    }
    end_men();
    dibs__store_close(st);
    return noted;
}

static int run_all(void)
{
    left all[QUEUES] = {{0}};
    bool ok = wn && driver_begin(ws.folder, "queue.db", ct->url);
    bool serial, back = true;

    ok = ok && make_queues(&serial);
    if (ok) {
        start_men();
        back = disturb();
        ok = drain(all) && back;
    }
    driver_end();
    for (int i = 0; ok && i < QUEUES; i++)
        witness_end(wn, i, &all[i], faults);
    witness_close(wn);
    if (!ok)
        return back ? 2 : PACE_MISSED;
    fflush(stdout);
    execl(CHECK_QUEUE, CHECK_QUEUE, ws.folder, (char *)NULL);
    perror(CHECK_QUEUE);
    return 2;
}

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: queue_ground [OPTION...] FOLDER\n"
        "  --on STORE      sqlite, redis, cluster, postgres or "
        "postgres-sync (sqlite)\n"
        "  --steps         on the steps of the store, in batches, instead of "
        "the library\n"
        "  --lossy         the store loses its last writes when it dies: "
        "redis, "
        "sentinel-async\n"
        "                  or postgres-standby\n"
        "  --items N       ends when so many have been pushed; 0: no such "
        "end (0)\n"
        "  --seconds N     ... when so much time is over; 0: no such end "
        "(20)\n"
        "  --kill-ms N     a consumer is killed so often (200)\n"
        "  --store-ms N    the store is (20000)\n"
        "  --seed N        repeats the choice of faults\n");
}

enum { ON = 1, STEPS, LOSSY, ITEMS, SECONDS, KILL, STORE, SEED, HELP };

static const struct option options[] = {
    {"on", required_argument, NULL, ON},
    {"steps", no_argument, NULL, STEPS},
    {"lossy", no_argument, NULL, LOSSY},
    {"items", required_argument, NULL, ITEMS},
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
        ws.on = word;
        return true;
    case LOSSY:
        ws.lossy = true;
        return true;
    case STEPS:
        ws.steps = true;
        return true;
    case ITEMS:
        ws.items = number;
        return true;
    case SECONDS:
        ws.seconds = (int64_t)number;
        return true;
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

static int be_man(const char *as, const char *folder, int queue, uint64_t who)
{
    bool produces = strcmp(as, "--as-producer") == 0;
    const control *own = map_file(folder, CONTROL, sizeof(*own));

    if (own->steps)
        return produces ? steps_producer(folder, queue, who)
                        : steps_consumer(folder, queue, who);
    return produces ? library_producer(folder, queue, who)
                    : library_consumer(folder, queue, who);
}

int main(int argc, char **argv)
{
    int option;

    if (argc == 5 && strncmp(argv[1], "--as-", 5) == 0)
        return be_man(argv[1], argv[2], (int)strtol(argv[3], NULL, 10),
                      strtoull(argv[4], NULL, 10));
    ws.random = seed_of_run();
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
        if (!set_option(option, optarg)) {
            usage(stderr);
            return 2;
        }
    if (optind + 1 != argc || (ws.items == 0 && ws.seconds == 0) ||
        !driver_choose(ws.lossy ? lossy_places : places, ws.on)) {
        usage(stderr);
        return 2;
    }
    ws.folder = argv[optind];
    printf("queues on %s, seed %llu\n", driver_ground->name,
           (unsigned long long)ws.random);
    driver_seed(ws.random);
    wn = witness_open(ws.folder);
    ct = map_file(ws.folder, CONTROL, sizeof(*ct));
    ct->items = ws.items ? ws.items : UINT64_MAX;
    ct->ttl_ms = pace_ms(TTL_MS);
    ct->steps = ws.steps;
    return run_all();
}
