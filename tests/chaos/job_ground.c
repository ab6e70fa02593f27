/* job_ground.c - nodes that execute jobs, while nodes are killed and stopped, their clocks
 * jump, the store is killed, and connections are cut.
 *
 *     job_ground [--on sqlite|redis|postgres] [OPTION...] FOLDER
 *
 * The nodes are `dibs work`. Each command that they execute writes into a file of
 * effects (job_effect.c), at which check_jobs.py looks in the end. */
/* SPDX-License-Identifier: MIT */
#include "driver.h"
#include "job_plan.h"
#include "pace.h"
#include "seed.h"

#include <dibs/client.h>
#include <dibs/state.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 5, LEAD_S = 2, SKEW_S = 600, STEP_MS = 2000, DRAIN_MS = 60000 };
enum { TTL_MS = 2500, VALUES_MAX = 64, TEXT = 64 };
enum {
    EXIT_AWAY = 69,
    EXIT_LATE = 75
};                           /* of dibs: no answer, or not in time */
enum { WALL, BOOT, CLOCKS }; /* of the shim */

typedef struct node {
    pid_t pid;
    int64_t start_ns; /* killed: when it starts again; 0: it runs */
    int64_t wake_ns;  /* stopped: until when; 0: it is not */
    _Atomic(int64_t) *ahead_us;
    char clock_path[PATH_MAX];
} node;

typedef struct wishes {
    const char *folder;
    int64_t seconds, kill_ms, store_ms, call_ms;
    uint64_t random;
} wishes;

static wishes ws = {.seconds = 20,
                    .kill_ms = 5000,
                    .store_ms = 30000,
                    .call_ms = 8000};
static const driver_place places[] = {{"sqlite", NULL},
                                      {"redis", "restart"},
                                      {"postgres", "crash"},
                                      {0}};

static char url[URL_ROOM];
static node nodes[NODES];
static pid_t callers;
static uint64_t kills, stops, store_kills, cuts, jumps, refused;

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "job_ground: %s\n", what);
    exit(2);
}

/* ---- clocks. Those who share a machine share its clock, and an embedded store has no
 * other: so there it is one that jumps, and else each node has its own. */

static _Atomic(int64_t) *clock_of(size_t i)
{
    return nodes[driver_is_embedded() ? 0 : i].ahead_us;
}

static void make_clocks(void)
{
    for (size_t i = 0; i < NODES; i++) {
        node *nd = &nodes[i];
        char name[32];

        snprintf(name, sizeof(name), "clock-%zu", driver_is_embedded() ? 0 : i);
        nd->ahead_us =
            map_file(ws.folder, name, CLOCKS * sizeof(*nd->ahead_us));
        if (snprintf(nd->clock_path, sizeof(nd->clock_path), "%s/%s", ws.folder,
                     name) >= (int)sizeof(nd->clock_path))
            give_up("the path of the folder is too long");
        atomic_store(&clock_of(i)[WALL],
                     ((int64_t)(driver_draw() % (2 * SKEW_S)) - SKEW_S) *
                         1000000);
    }
}

/* Of one machine by little: what is late at once is more than jobs of a second make. */
static void jump_clock(void)
{
    _Atomic(int64_t) *clock = clock_of(driver_draw() % NODES);
    int64_t most_ms = driver_is_embedded() ? STEP_MS : SKEW_S * 1000;
    int64_t us =
        ((int64_t)(driver_draw() % (uint64_t)(2 * most_ms)) - most_ms) * 1000;

    if (driver_is_embedded())
        atomic_fetch_add(&clock[WALL], us);
    else
        atomic_store(&clock[WALL], us);
    jumps++;
}

/* ---- processes */

/* With the clock of a node, unless it is NULL. What a node leaves behind that is killed is
 * in the folder of the ground. */
static pid_t start(char *const argv[], const node *nd, const char *log)
{
    char url_text[URL_ROOM + 16], clock[PATH_MAX + 16], path[PATH_MAX];
    char shim[PATH_MAX + 16], folder[PATH_MAX + 16];
    char *env[] = {url_text, (char[]){"PATH=/usr/local/bin:/usr/bin:/bin"},
                   folder,   nd ? clock : NULL,
                   shim,     NULL};
    int fd;
    pid_t pid;

    snprintf(url_text, sizeof(url_text), "DIBS_URL=%s", url);
    snprintf(clock, sizeof(clock), "CLOCK_SHIM=%s", nd ? nd->clock_path : "");
    snprintf(shim, sizeof(shim), "LD_PRELOAD=%s", CHAOS_SHIM);
    snprintf(folder, sizeof(folder), "TMPDIR=%s", ws.folder);
    snprintf(path, sizeof(path), "%s/%s", ws.folder, log);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid = fd < 0 ? -1 : fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fd, 1);
        dup2(fd, 2);
        execve(argv[0], argv, env);
        _exit(127);
    }
    if (pid < 0)
        give_up(strerror(errno));
    close(fd);
    return pid;
}

static void start_node(size_t i)
{
    char file[PATH_MAX], ttl[32], log[32];
    char *argv[] = {(char[]){DIBS_PROGRAM},
                    (char[]){"work"},
                    file,
                    (char[]){"--slots=12"},
                    ttl,
                    (char[]){"--look-every=300ms"},
                    (char[]){"--timeout-every=500ms"},
                    NULL};

    snprintf(file, sizeof(file), "%s/jobs.yaml", ws.folder);
    snprintf(ttl, sizeof(ttl), "--ttl=%lldms", (long long)pace_ms(TTL_MS));
    snprintf(log, sizeof(log), "node-%zu.log", i);
    nodes[i].pid = start(argv, &nodes[i], log);
    nodes[i].start_ns = nodes[i].wake_ns = 0;
}

static void start_callers(void)
{
    char script[] = JOB_CALLERS, folder[PATH_MAX], pause[32];
    char *argv[] = {script, (char[]){DIBS_PROGRAM}, folder, pause, NULL};

    snprintf(folder, sizeof(folder), "%s", ws.folder);
    snprintf(pause, sizeof(pause), "%.3f", (double)ws.call_ms / 1000);
    callers =
        start(argv, driver_is_embedded() ? &nodes[0] : NULL, "callers.log");
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Its trees die by themselves: nothing but the node is killed. */
static void kill_node(size_t i, int64_t pause_ms)
{
    if (nodes[i].start_ns)
        return;
    kill(nodes[i].pid, SIGKILL);
    reap(nodes[i].pid);
    nodes[i].start_ns = now_ns() + pause_ms * 1000000;
    nodes[i].wake_ns = 0;
    kills++;
}

/* For about as long as its lease lasts, or twice that. */
static void stop_node(size_t i)
{
    int64_t most_ms = 2 * pace_ms(TTL_MS);

    if (nodes[i].start_ns || nodes[i].wake_ns)
        return;
    kill(nodes[i].pid, SIGSTOP);
    nodes[i].wake_ns =
        now_ns() + (int64_t)(driver_draw() % (uint64_t)most_ms) * 1000000;
    stops++;
}

/* Nodes that are to go on do; one that ended by itself is a failure. */
static void tend_nodes(bool at_once)
{
    for (size_t i = 0; i < NODES; i++) {
        node *nd = &nodes[i];
        int status;

        if (nd->start_ns && (at_once || now_ns() >= nd->start_ns))
            start_node(i);
        else if (nd->wake_ns && (at_once || now_ns() >= nd->wake_ns)) {
            nd->wake_ns = 0;
            kill(nd->pid, SIGCONT);
        } else if (!nd->start_ns && waitpid(nd->pid, &status, WNOHANG) > 0) {
            /* It may have come up just when the store was away, or too slow. */
            if (!WIFEXITED(status) || (WEXITSTATUS(status) != EXIT_AWAY &&
                                       WEXITSTATUS(status) != EXIT_LATE))
                give_up("a node ended by itself; see its log");
            nd->start_ns = now_ns() + 200 * 1000000;
            refused++;
        }
    }
}

/* ---- the store */

/* The embedded store dies with all who have it open. */
static void kill_store(void)
{
    store_kills++;
    if (!driver_is_embedded()) {
        if (!driver_kill_server(1000))
            MISSED("the store did not come back");
        return;
    }
    for (size_t i = 0; i < NODES; i++)
        if (!nodes[i].start_ns)
            kill(nodes[i].pid, SIGKILL);
    for (size_t i = 0; i < NODES; i++)
        kill_node(i, 0);
}

static void cut(void)
{
    cuts++;
    driver_cut(300);
}

/* ---- the end: what the store has of it */

static bool count_entry(const dibs_index_entry *entry, void *arg)
{
    size_t *count = arg;

    (void)entry;
    ++*count;
    return true;
}

/* Nothing is due, ready, running, or waits for anything. */
static bool is_done(dibs_client *cl)
{
    static const char *const names[] = {"job/{main}/due", "job/{main}/ready/",
                                        "job/{main}/live", "job/{main}/retry",
                                        "job/{main}/resume"};
    dibs_index_look looks[sizeof(names) / sizeof(names[0])];
    size_t count = 0, n = sizeof(names) / sizeof(names[0]);

    for (size_t i = 0; i < n; i++)
        looks[i] = (dibs_index_look){.index = names[i],
                                     .up_to = DIBS_INDEX_AT_MAX,
                                     .limit = 1};
    return dibs_index_first(cl, looks, n, NULL, count_entry, &count, NULL) ==
               DIBS_OK &&
           count == 0;
}

typedef struct dump {
    dibs_client *cl;
    FILE *out;
    int64_t from_s, until_s;
    char text[VALUES_MAX][TEXT];
    const char *keys[VALUES_MAX];
    size_t count;
    uint64_t written;
    bool failed;
} dump;

/* Values as they are, behind their key. */
static void flush_dump(dump *dp)
{
    dibs_value values[VALUES_MAX];
    dibs_error err = {0};
    dibs_status rc;

    if (dp->count == 0 || dp->failed)
        return;
    rc = dibs_state_get_many(dp->cl, dp->keys, dp->count, values, &err);
    if (pace_explains(rc))
        MISSED("%s", err.message);
    if (rc != DIBS_OK) {
        fprintf(stderr, "job_ground: %s\n", err.message);
        dp->failed = true;
        return;
    }
    for (size_t i = 0; i < dp->count; i++) {
        if (values[i].version != 0) {
            fprintf(dp->out, "%s %.*s\n", dp->keys[i] + strlen("job/{main}/"),
                    (int)values[i].len, (const char *)values[i].data);
            dp->written++;
        }
        dibs_value_free(&values[i]);
    }
    dp->count = 0;
}

static void add_key(dump *dp, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_key(dump *dp, const char *format, ...)
{
    va_list args;

    if (dp->count == VALUES_MAX)
        flush_dump(dp);
    if (dp->failed)
        return;
    va_start(args, format);
    vsnprintf(dp->text[dp->count], TEXT, format, args);
    va_end(args);
    dp->keys[dp->count] = dp->text[dp->count];
    dp->count++;
}

static void dump_job(const char *job, void *arg)
{
    dump *dp = arg;

    add_key(dp, "job/{main}/state/%s", job);
    for (int64_t at_s = dp->from_s; at_s <= dp->until_s; at_s++) {
        time_t at = (time_t)at_s;
        struct tm parts;
        char tick[32];

        gmtime_r(&at, &parts);
        strftime(tick, sizeof(tick), "%Y%m%dT%H%M%SZ", &parts);
        add_key(dp, "job/{main}/run/%s@%s", job, tick);
    }
}

static bool dump_records(dibs_client *cl, int64_t from_s, int64_t until_s)
{
    dump dp = {.cl = cl, .from_s = from_s, .until_s = until_s};
    char path[PATH_MAX];
    uint64_t before = 1;

    snprintf(path, sizeof(path), "%s/records", ws.folder);
    dp.out = fopen(path, "we");
    if (!dp.out)
        return false;
    plan_each(dump_job, &dp);
    for (int i = 1; dp.written != before && !dp.failed; i++) {
        flush_dump(&dp);
        before = dp.written;
        add_key(&dp, "job/{main}/run/approve.%d", i);
        flush_dump(&dp);
    }
    return fclose(dp.out) == 0 && !dp.failed;
}

/* ---- the run */

/* About so long, so that it meets every moment of a second. */
static int64_t vary(int64_t span_ms)
{
    return span_ms / 2 + (int64_t)(driver_draw() % (uint64_t)span_ms);
}

static int64_t store_wall_s(void)
{
    int64_t ahead_us =
        driver_is_embedded() ? atomic_load(&clock_of(0)[WALL]) : 0;

    return time(NULL) + ahead_us / 1000000;
}

/* The jobs are in the store before the first of their ticks, which is returned: a job
 * is not due for what was before it was there. */
static int64_t load_jobs(void)
{
    char file[PATH_MAX];
    char *argv[] = {(char[]){DIBS_PROGRAM}, (char[]){"job"}, (char[]){"load"},
                    file, NULL};
    int64_t from_s = 0;

    snprintf(file, sizeof(file), "%s/jobs.yaml", ws.folder);
    for (int i = 1; store_wall_s() >= from_s; i++) {
        from_s = store_wall_s() + LEAD_S * i;
        if (!plan_write(ws.folder, i, from_s, from_s + ws.seconds - 1,
                        !driver_is_embedded()))
            exit(2);
        if (reap(start(argv, driver_is_embedded() ? &nodes[0] : NULL,
                       "load.log")) != 0)
            give_up("the jobs cannot be loaded; see load.log");
    }
    return from_s;
}

static void disturb(int64_t until_s)
{
    int64_t begun_ns = now_ns(), now = begun_ns;
    int64_t kill_ns = now + ws.kill_ms * 1000000, stop_ns = kill_ns;
    int64_t store_ns = now + ws.store_ms * 1000000, cut_ns = kill_ns;
    int64_t jump_ns = now;

    /* A clock that is set back again and again must not make it last for ever. */
    while (store_wall_s() <= until_s &&
           now_ns() - begun_ns < (ws.seconds + LEAD_S) * 2000000000) {
        poll(NULL, 0, 10);
        tend_nodes(false);
        if (driver_is_due(&kill_ns, vary(ws.kill_ms)))
            kill_node(driver_draw() % NODES, (int64_t)(driver_draw() % 2000));
        if (driver_is_due(&stop_ns, vary(ws.kill_ms)))
            stop_node(driver_draw() % NODES);
        if (driver_is_due(&jump_ns, 200 + (int64_t)(driver_draw() % 2000)))
            jump_clock();
        if (!driver_is_embedded() &&
            driver_is_due(&cut_ns, 100 + (int64_t)(driver_draw() % 3000)))
            cut();
        if (driver_is_due(&store_ns, vary(ws.store_ms)))
            kill_store();
    }
}

static int64_t effects_size(void)
{
    char path[PATH_MAX];
    struct stat info;

    snprintf(path, sizeof(path), "%s/effects", ws.folder);
    return stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
}

static void tell_callers(void)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/over", ws.folder);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(path);
    close(fd);
}

/* What was begun is brought to its end, by nodes that nothing happens to. That takes as
 * long as it does on a slow machine; nothing may happen for DRAIN_MS. */
static void drain(dibs_client *cl, int64_t until_s)
{
    int64_t until_ns = 0, seen = -1;
    bool called = false;

    tell_callers();
    if (store_wall_s() <= until_s) /* It was set back too often. */
        atomic_fetch_add(&clock_of(0)[WALL],
                         (until_s - store_wall_s() + 1) * 1000000);
    do {
        poll(NULL, 0, 100);
        tend_nodes(true);
        called = called || waitpid(callers, NULL, WNOHANG) == callers;
        if (effects_size() != seen) {
            seen = effects_size();
            until_ns = now_ns() + pace_ms(DRAIN_MS) * INT64_C(1000000);
        }
    } while ((!called || !is_done(cl)) && now_ns() < until_ns);
    if (!called) {
        fprintf(stderr, "job_ground: the callers did not come to an end\n");
        kill(callers, SIGKILL);
        reap(callers);
    }
}

static void end_nodes(void)
{
    for (size_t i = 0; i < NODES; i++)
        kill(nodes[i].pid, SIGTERM);
    for (size_t i = 0; i < NODES; i++) {
        int status = reap(nodes[i].pid);

        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            give_up("a node did not stop as it was asked to; see its log");
    }
}

static void note_faults(void)
{
    char path[PATH_MAX];
    FILE *out;

    snprintf(path, sizeof(path), "%s/faults", ws.folder);
    out = fopen(path, "we");
    if (!out)
        give_up(path);
    fprintf(out,
            "{\"kills\": %llu, \"stops\": %llu, \"store\": %llu, \"cuts\": "
            "%llu, \"jumps\": %llu, \"refused\": %llu}\n",
            (unsigned long long)kills, (unsigned long long)stops,
            (unsigned long long)store_kills, (unsigned long long)cuts,
            (unsigned long long)jumps, (unsigned long long)refused);
    fclose(out);
}

static int run_all(void)
{
    dibs_error err = {0};
    dibs_client *cl = NULL;
    int64_t from_s, until_s;
    dibs_status rc;
    bool ok;

    if (!driver_begin(ws.folder, "jobs.db", url))
        give_up("the store does not start");
    make_clocks();
    from_s = load_jobs();
    until_s = from_s + ws.seconds - 1;
    for (size_t i = 0; i < NODES; i++)
        start_node(i);
    start_callers();
    disturb(until_s);
    rc = dibs_open(url, NULL, &cl, &err);
    if (pace_explains(rc))
        MISSED("%s", err.message);
    if (rc != DIBS_OK)
        give_up(err.message);
    drain(cl, until_s);
    ok = dump_records(cl, from_s, until_s);
    end_nodes();
    dibs_close(cl);
    driver_end();
    note_faults();
    if (!ok)
        return 2;
    fflush(stdout);
    execl(CHECK_JOBS, CHECK_JOBS, ws.folder, (char *)NULL);
    perror(CHECK_JOBS);
    return 2;
}

static void usage(FILE *out)
{
    fprintf(out,
            "usage: job_ground [OPTION...] FOLDER\n"
            "  --on STORE      sqlite, redis or postgres (sqlite)\n"
            "  --ticks N       how many there are, %d each second (400)\n"
            "  --seconds N     ... by how long that takes (20)\n"
            "  --kill-ms N     a node is killed so often (5000)\n"
            "  --store-ms N    the store is (30000)\n"
            "  --call-ms N     a bookmark is resumed by 20 (8000)\n"
            "  --seed N        repeats the choice of faults\n",
            PLAN_TICKED);
}

enum { ON = 1, TICKS, SECONDS, KILL, STORE, CALL, SEED, HELP };

static const struct option options[] = {
    {"on", required_argument, NULL, ON},
    {"ticks", required_argument, NULL, TICKS},
    {"seconds", required_argument, NULL, SECONDS},
    {"kill-ms", required_argument, NULL, KILL},
    {"store-ms", required_argument, NULL, STORE},
    {"call-ms", required_argument, NULL, CALL},
    {"seed", required_argument, NULL, SEED},
    {"help", no_argument, NULL, HELP},
    {0},
};

static bool set_option(int option, const char *word)
{
    int64_t number = word ? strtoll(word, NULL, 10) : 0;

    switch (option) {
    case ON:
        return driver_choose(places, word);
    case TICKS:
        ws.seconds = (number + PLAN_TICKED - 1) / PLAN_TICKED;
        return number > 0;
    case SECONDS:
        ws.seconds = number;
        return number > 0;
    case KILL:
        ws.kill_ms = number;
        return number > 0;
    case STORE:
        ws.store_ms = number;
        return number > 0;
    case CALL:
        ws.call_ms = number;
        return number > 0;
    case SEED:
        ws.random = (uint64_t)number;
        return number > 0;
    case HELP:
        usage(stdout);
        exit(0);
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    int option;

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
    ws.folder = realpath(argv[optind], NULL);
    if (!ws.folder) {
        perror(argv[optind]);
        return 2;
    }
    printf("jobs on %s, seed %llu\n", driver_ground->name,
           (unsigned long long)ws.random);
    driver_seed(ws.random);
    return run_all();
}
