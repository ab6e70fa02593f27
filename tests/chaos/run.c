/* run.c - runs workers on a store while faults are on them and on it, and has
 * what they wrote down looked at.
 *
 *     chaos [--on GROUND | --url URL] [OPTION...] FOLDER
 *
 * The workers and the bank are processes of this program (`chaos --worker ...`).
 * The main thread looks after the workers; each lane of faults on the store has a
 * thread, which lives until the servers that it started have been stopped. */
/* SPDX-License-Identifier: MIT */
#include "bank.h"
#include "hosting.h"
#include "net.h"
#include "pace.h"
#include "plan.h"
#include "promise.h"
#include "seed.h"
#include "worker.h"

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

/* A name must be free so long after its last holder died: its ttl, a claim, a
 * place, and time for a busy machine. */
#define SETTLE_MS INT64_C(30000)

enum { LANES_MAX = 4, PLAN_SHOWN = 20 };

typedef struct wishes {
    const char *url;
    const char *folder;
    int64_t seconds;
    uint64_t seed;
    uint32_t workers, rest_us;
    bool plan;
    bool no_check;
    wanted faults;
} wishes;

typedef struct run run;

typedef struct lane {
    run *rn;
    int number;
    pthread_t thread;
    bool started;
} lane;

struct run {
    wishes ws;
    ground gr;
    crew cw;
    pthread_mutex_t mutex;
    lane lanes[LANES_MAX];
    atomic_bool healing; /* no more faults */
    atomic_bool done;    /* lanes may end */
    atomic_int busy;     /* lanes with a fault */
    atomic_bool broken;  /* the store, or the bank, is not there in time */
    pid_t bank;
};

static void sleep_ms(int64_t span_ms)
{
    poll(NULL, 0, (int)span_ms);
}

/* Sleeps in parts, to be told when the faults are over. */
static void sleep_unless_healing(run *rn, int64_t span_ms)
{
    int64_t until = now_ns() + span_ms * 1000000;

    while (!atomic_load(&rn->healing) && now_ns() < until)
        sleep_ms(5);
}

/* What happened without a fault has to be known to the checker. */
static void note_unasked(run *rn)
{
    fault_entry *entry;

    if (!rn->gr.changed || !rn->gr.changed())
        return;
    entry = crew_note(&rn->cw, UNASKED, NOBODY, 0, LOSS_SPLIT);
    if (entry)
        entry->to_ns = now_ns();
}

static bool strike_store(lane *ln, const planned *pd)
{
    const ground_fault *ft = pd->on_store;
    fault_entry *entry =
        crew_note(&ln->rn->cw, ft->name, NOBODY, pd->dice, fault_loss(ft));
    bool ok = ft->strike(ln->number, pd->dice);

    if (ok && ft->heal) {
        sleep_unless_healing(ln->rn, pd->span_ms);
        ok = ft->heal(ln->number);
    }
    if (entry)
        entry->to_ns = now_ns();
    if (!(ft->flags & (FAULT_ROLES | FAULT_LOSSY | FAULT_SPLIT)))
        note_unasked(ln->rn);
    else if (ln->rn->gr.settled)
        ln->rn->gr.settled();
    if (!ok)
        fprintf(stderr, "the store did not come back from \"%s\"\n", ft->name);
    return ok;
}

static void *lane_main(void *arg)
{
    lane *ln = arg;
    run *rn = ln->rn;
    planned pd;
    plan pl;

    plan_init(&pl, &rn->gr, ln->number, rn->ws.seed, &rn->ws.faults);
    while (!atomic_load(&rn->healing) && !atomic_load(&rn->broken) &&
           plan_next(&pl, &pd)) {
        sleep_unless_healing(rn, pd.gap_ms);
        if (atomic_load(&rn->healing))
            break;
        note_unasked(rn);
        if (!strike_store(ln, &pd))
            atomic_store(&rn->broken, true);
    }
    atomic_fetch_sub(&rn->busy, 1);
    while (!atomic_load(&rn->done))
        sleep_ms(5);
    return NULL;
}

static void start_lanes(run *rn)
{
    for (int i = 0; i < rn->gr.lanes && i < LANES_MAX; i++) {
        lane *ln = &rn->lanes[i];

        *ln = (lane){.rn = rn, .number = i};
        atomic_fetch_add(&rn->busy, 1);
        ln->started = pthread_create(&ln->thread, NULL, lane_main, ln) == 0;
        if (!ln->started)
            atomic_fetch_sub(&rn->busy, 1);
    }
}

static void end_lanes(run *rn)
{
    atomic_store(&rn->done, true);
    for (int i = 0; i < LANES_MAX; i++)
        if (rn->lanes[i].started)
            pthread_join(rn->lanes[i].thread, NULL);
}

/* The workers are disturbed from here. */
static void disturb(run *rn)
{
    int64_t until = steady_ns() + rn->ws.seconds * 1000000000;
    int64_t next_ns;
    planned pd;
    plan pl;
    bool some;

    plan_init(&pl, &rn->gr, -1, rn->ws.seed, &rn->ws.faults);
    some = plan_next(&pl, &pd);
    next_ns = steady_ns() + pd.gap_ms * 1000000;
    while (steady_ns() < until && !atomic_load(&rn->broken)) {
        sleep_ms(5);
        crew_tend(&rn->cw);
        if (!some || steady_ns() < next_ns)
            continue;
        crew_strike(&rn->cw, pd.on_worker, pd.dice, pd.span_ms);
        (void)plan_next(&pl, &pd);
        next_ns = steady_ns() + pd.gap_ms * 1000000;
    }
}

/* Everything is healed; then all must be well for a while. */
static void calm_down(run *rn)
{
    run_file *rf = rn->cw.run;
    int64_t until;

    atomic_store(&rn->healing, true);
    crew_heal_all(&rn->cw);
    while (atomic_load(&rn->busy) > 0) {
        crew_tend(&rn->cw);
        sleep_ms(5);
    }
    atomic_store(&rf->calm_ns, now_ns());
    until = now_ns() + pace_ms(rn->gr.calm_ms) * INT64_C(1000000);
    while (now_ns() < until) {
        crew_tend(&rn->cw);
        sleep_ms(5);
    }
    atomic_store(&rf->ended_ns, now_ns());
    atomic_store(&rf->over, true);
    crew_end(&rn->cw);
    note_unasked(rn);
}

static bool count_one(const dibs_lease_info *info, void *arg)
{
    (void)info;
    ++*(unsigned *)arg;
    return true;
}

/* Nothing is held or waited for once all are gone and their time is up. In a process
 * with the clocks of the workers. */
static int settle_main(const char *folder)
{
    run_file *rf = map_file(folder, "run", sizeof(*rf));
    int64_t until = now_ns() + pace_ms(SETTLE_MS) * INT64_C(1000000);
    unsigned left = LEFT_UNKNOWN;
    dibs_client *cl = NULL;
    dibs_error err = {0};

    while (left > 0 && now_ns() < until) {
        unsigned seen = 0;

        if (!cl && dibs_open(rf->url, NULL, &cl, &err) != DIBS_OK)
            cl = NULL;
        if (cl &&
            dibs_lease_list(cl, "chaos-", count_one, &seen, &err) == DIBS_OK)
            left = seen;
        if (left > 0)
            sleep_ms(50);
    }
    if (left == LEFT_UNKNOWN)
        fprintf(stderr, "the store told nothing after the run: %s\n",
                err.message);
    dibs_close(cl);
    atomic_store(&rf->left, left);
    return 0;
}

/* Values of a run before are of no concern. */
static bool clear_values(run *rn, const char *url)
{
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(url, NULL, &cl, &err);

    if (rc != DIBS_OK) {
        fprintf(stderr, "chaos: %s\n", err.message);
        atomic_store(&rn->broken, pace_explains(rc));
        return false;
    }
    for (int i = 0; i < VALUES; i++) {
        char key[NAME_ROOM];

        snprintf(key, sizeof(key), "chaos-value-%d", i);
        if (dibs_state_delete(cl, key, DIBS_VERSION_ANY, &err) ==
            DIBS_UNSUPPORTED)
            break;
    }
    dibs_close(cl);
    return true;
}

static bool start_bank(run *rn)
{
    int64_t until = now_ns() + pace_ms(10000) * INT64_C(1000000);
    int fd = -1;

    rn->bank = fork();
    if (rn->bank == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(rn->cw.self, rn->cw.self, "--bank", rn->cw.folder, (char *)NULL);
        _exit(127);
    }
    while (rn->bank > 0 && fd < 0 && now_ns() < until) {
        sleep_ms(2);
        fd = bank_connect(rn->cw.folder);
    }
    if (fd >= 0)
        close(fd);
    else if (rn->bank > 0)
        atomic_store(&rn->broken, true);
    return fd >= 0;
}

static void end_bank(const run *rn)
{
    if (rn->bank <= 0)
        return;
    kill(rn->bank, SIGKILL);
    while (waitpid(rn->bank, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void write_run(run *rn)
{
    run_file *rf = rn->cw.run;

    snprintf(rf->topology, sizeof(rf->topology), "%s", rn->gr.topology);
    snprintf(rf->durability, sizeof(rf->durability), "%s", rn->gr.durability);
    rf->seed = rn->ws.seed;
    rf->ttl_ms = rn->gr.ttl_ms;
    rf->wait_ms = rn->gr.wait_ms;
    rf->stop_ms = rn->gr.ttl_ms / 10;
    rf->timeout_ms = rn->gr.timeout_ms;
    rf->workers = rn->ws.workers;
    rf->rest_us = rn->ws.rest_us;
    rf->patient = rn->gr.patient;
    rf->began_ns = now_ns();
}

/* False when it could not be run; what it did is for the checker to judge. */
static bool run_all(run *rn)
{
    run_file *rf = rn->cw.run;
    bool ok = true;

    write_run(rn);
    if (rn->ws.url)
        snprintf(rf->url, sizeof(rf->url), "%s", rn->ws.url);
    else
        ok = rn->gr.begin(&rn->cw, rf->url);
    ok = ok && clear_values(rn, rf->url) && start_bank(rn);
    if (ok) {
        rf->began_ns = now_ns();
        crew_start(&rn->cw);
        start_lanes(rn);
        disturb(rn);
        calm_down(rn);
        crew_do(&rn->cw, "--settle");
    }
    if (!rn->ws.url)
        rn->gr.end();
    end_lanes(rn);
    end_bank(rn);
    return ok && !atomic_load(&rn->broken);
}

static int check(const run *rn)
{
    fflush(stdout);
    execl(CHAOS_CHECK, CHAOS_CHECK, rn->ws.folder, (char *)NULL);
    perror(CHAOS_CHECK);
    return 2;
}

static void show_plan(const run *rn)
{
    for (int i = -1; i < rn->gr.lanes; i++) {
        int64_t at_ms = 0;
        planned pd;
        plan pl;

        plan_init(&pl, &rn->gr, i, rn->ws.seed, &rn->ws.faults);
        printf("lane %d:", i + 1);
        for (int k = 0; k < PLAN_SHOWN && plan_next(&pl, &pd); k++) {
            at_ms += pd.gap_ms;
            printf(" %s@%.2fs+%.2fs/%llx",
                   pd.on_worker ? pd.on_worker->name : pd.on_store->name,
                   (double)at_ms / 1e3, (double)pd.span_ms / 1e3,
                   (unsigned long long)pd.dice);
            at_ms += pd.on_store ? pd.span_ms : 0;
        }
        printf("\n");
    }
}

static void usage(FILE *out)
{
    static const char *const losses[] = {"", " (lossy)", " (split)"};

    fprintf(
        out,
        "usage: chaos [--on GROUND | --url URL] [OPTION...] FOLDER\n"
        "  --seconds N    how long faults go on (20)\n"
        "  --seed N       repeats the plan of faults (1)\n"
        "  --workers N    processes (16)\n"
        "  --rest US      how long at most one rests after each turn (0)\n"
        "  --faults A,B   only these\n"
        "  --lossy        also those that lose what the store had answered\n"
        "  --ttl MS, --durability WORD, --promises ROW  for --url\n"
        "  --plan         show the plan only\n"
        "  --no-check     leave the history to `check FOLDER`\n"
        "faults on workers:\n");
    for (const crew_fault *ft = crew_faults; ft->name; ft++)
        fprintf(out, "  %-10s %s\n", ft->name, ft->what);
    for (size_t i = 0; ground_at(i); i++) {
        fprintf(out, "faults on %s:\n", ground_at(i)->name);
        for (const ground_fault *ft = ground_at(i)->faults; ft && ft->name;
             ft++)
            fprintf(out, "  %-10s %s%s%s\n", ft->name, ft->what,
                    losses[fault_loss(ft)],
                    ft->flags & FAULT_ROOT ? " (root)" : "");
    }
}

enum {
    ON = 1,
    URL,
    SECS,
    SEED,
    WORKERS,
    REST,
    FAULTS,
    LOSSY,
    SPLIT,
    TTL,
    DURABLE,
    ROW
};
enum { PLAN = ROW + 1, NO_CHECK, HELP };

static const struct option options[] = {
    {"on", required_argument, NULL, ON},
    {"url", required_argument, NULL, URL},
    {"seconds", required_argument, NULL, SECS},
    {"seed", required_argument, NULL, SEED},
    {"workers", required_argument, NULL, WORKERS},
    {"rest", required_argument, NULL, REST},
    {"faults", required_argument, NULL, FAULTS},
    {"lossy", no_argument, NULL, LOSSY},
    {"split", no_argument, NULL, SPLIT},
    {"ttl", required_argument, NULL, TTL},
    {"durability", required_argument, NULL, DURABLE},
    {"promises", required_argument, NULL, ROW},
    {"plan", no_argument, NULL, PLAN},
    {"no-check", no_argument, NULL, NO_CHECK},
    {"help", no_argument, NULL, HELP},
    {0},
};

/* False when there is no such ground. */
static bool set_ground(run *rn, int option, const char *word)
{
    const ground *found = option == ON ? ground_find(word) : NULL;

    if (option == URL) {
        rn->ws.url = word;
        ground_of_url(word, &rn->gr);
    }
    if (found)
        rn->gr = *found;
    return option == URL || found;
}

static bool set_option(run *rn, int option, const char *word)
{
    uint64_t number = word ? strtoull(word, NULL, 10) : 0;

    switch (option) {
    case ON:
    case URL:
        return set_ground(rn, option, word);
    case SECS:
        rn->ws.seconds = (int64_t)number;
        return true;
    case SEED:
        rn->ws.seed = number;
        return true;
    case WORKERS:
        rn->ws.workers = (uint32_t)number;
        return number > 0 && number <= WORKERS_MAX;
    case REST:
        rn->ws.rest_us = (uint32_t)number;
        return number < 1000000;
    case FAULTS:
        rn->ws.faults.names = word;
        return true;
    case LOSSY:
        rn->ws.faults.lost = LOSS_WRITES;
        return true;
    case SPLIT:
        rn->ws.faults.lost = LOSS_SPLIT;
        return true;
    case TTL:
        rn->gr.ttl_ms = (int64_t)number;
        return number >= 10;
    case DURABLE:
        rn->gr.durability = word;
        return true;
    case ROW:
        rn->gr.topology = word;
        return promise_has(word);
    case PLAN:
        rn->ws.plan = true;
        return true;
    case NO_CHECK:
        rn->ws.no_check = true;
        return true;
    default:
        return false;
    }
}

static bool read_line(run *rn, int argc, char **argv)
{
    int option;

    rn->ws = (wishes){.seconds = 20, .seed = seed_of_run(), .workers = 16};
    rn->gr = ground_sqlite;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == HELP) {
            usage(stdout);
            exit(0);
        }
        if (!set_option(rn, option, optarg))
            return false;
    }
    rn->ws.folder = argv[optind];
    return optind + 1 == argc || (rn->ws.plan && optind == argc);
}

static void open_files(run *rn)
{
    pthread_mutex_init(&rn->mutex, NULL);
    rn->cw.self = "/proc/self/exe";
    rn->cw.folder = rn->ws.folder;
    rn->cw.mutex = &rn->mutex;
#ifdef CHAOS_SHIM
    rn->cw.shim = hosting_preload(CHAOS_SHIM);
#endif
    share_sleep(rn->ws.folder);
    rn->cw.run = map_file(rn->ws.folder, "run", sizeof(*rn->cw.run));
    rn->cw.faults = map_file(rn->ws.folder, "faults", sizeof(*rn->cw.faults));
}

int main(int argc, char **argv)
{
    static run rn;

    if (argc == 5 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv[2], (uint32_t)strtoul(argv[3], NULL, 10),
                           (uint32_t)strtoul(argv[4], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "--bank") == 0)
        return bank_main(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--settle") == 0)
        return settle_main(argv[2]);
    if (!read_line(&rn, argc, argv)) {
        usage(stderr);
        return 2;
    }
    rn.ws.faults.root =
        !rn.ws.url && geteuid() == 0 && (!rn.gr.net || net_enter());
#ifdef CHAOS_SHIM
    rn.ws.faults.clocks = true;
#endif
    if (rn.ws.plan) {
        show_plan(&rn);
        return 0;
    }
    open_files(&rn);
    printf("%s, seed %llu, %lld s%s\n", rn.ws.url ? rn.ws.url : rn.gr.name,
           (unsigned long long)rn.ws.seed, (long long)rn.ws.seconds,
           rn.ws.url || rn.ws.faults.root
               ? ""
               : "; faults that take root are left out");
    fflush(stdout);
    if (!run_all(&rn))
        return atomic_load(&rn.broken) ? PACE_MISSED : 2;
    return rn.ws.no_check ? 0 : check(&rn);
}
