/* bench_calls.c - how fast nodes of the job engine execute functions.
 *
 *     bench_calls URL flow RUNS          starts RUNS runs, then one node executes them
 *     bench_calls URL burst JOBS NODES   JOBS jobs are due in one instant; NODES nodes
 *
 * flow prints one line: the runs a second that were started, and those that were executed.
 * burst prints the ticks a second, the lateness of the calls in microseconds (p50, p95,
 * p99), and that of the last: from the instant on the wall clock, which the store on this
 * machine has too, to the function's first line. A node is a thread with a client of its
 * own, as a program would have it. */
/* SPDX-License-Identifier: MIT */
#include "bench/samples.h"

#include <dibs/jobs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES_MAX = 8, SLOTS = 32 };

/* The jobs must be in the store before they are due: so many of them a second. */
enum { PUBLISHED_A_SECOND = 500, LEAD_S = 5 };

static dibs_jobs *nodes[NODES_MAX];
static size_t node_count;
static size_t wanted;
static atomic_size_t called;
static int64_t *late_us;

static int64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The last of all calls ends the nodes. */
static dibs_status note_call(dibs_run *run, void *arg, dibs_error *err)
{
    size_t at = atomic_fetch_add(&called, 1);

    (void)arg;
    (void)err;
    if (at < wanted)
        late_us[at] = wall_us() - dibs_run_tick_us(run);
    if (at + 1 == wanted)
        for (size_t i = 0; i < node_count; i++)
            dibs_jobs_stop(nodes[i]);
    return DIBS_OK;
}

/* The jobs are those of the first: the others have functions alone. */
static dibs_jobs *open_node(const char *url, size_t i, dibs_client **client)
{
    char set[16];
    dibs_error err = {0};
    dibs_jobs *jobs;

    snprintf(set, sizeof(set), "bench-%zu", i);
    if (dibs_open(url, PATIENT, client, &err) != DIBS_OK)
        give_up("open", err.message);
    if (dibs_jobs_open(*client,
                       DIBS_JOBS_OPTS(.board = "bench", .set = set,
                                      .slots = SLOTS, .version = wall_us()),
                       &jobs, &err) != DIBS_OK ||
        dibs_jobs_function(jobs, "note", note_call, NULL, &err) != DIBS_OK)
        give_up("node", err.message);
    return jobs;
}

static void define(dibs_jobs *jobs, const char *name, const char *schedule)
{
    dibs_error err = {0};

    if (dibs_jobs_define(jobs, name,
                         DIBS_JOB_OPTS(.call = "note", .schedule = schedule,
                                       .more = "history: {ok: 1}"),
                         &err) != DIBS_OK)
        give_up("define", err.message);
}

static void *run_node(void *arg)
{
    dibs_error err = {0};

    if (dibs_jobs_run(arg, &err) != DIBS_OK)
        give_up("run", err.message);
    return NULL;
}

/* Runs all nodes until the last call. */
static void run_nodes(void)
{
    pthread_t threads[NODES_MAX];

    for (size_t i = 0; i < node_count; i++)
        if (pthread_create(&threads[i], NULL, run_node, nodes[i]) != 0)
            give_up("thread", "cannot be started");
    for (size_t i = 0; i < node_count; i++)
        pthread_join(threads[i], NULL);
}

static void flow(const char *url)
{
    dibs_client *client;
    dibs_error err = {0};
    char run[DIBS_RUN_SIZE];
    int64_t begun_at, started_at;

    node_count = 1;
    nodes[0] = open_node(url, 0, &client);
    define(nodes[0], "flow", NULL);
    if (dibs_jobs_publish(nodes[0], &err) != DIBS_OK)
        give_up("publish", err.message);
    begun_at = now_ns();
    for (size_t i = 0; i < wanted; i++)
        if (dibs_job_start(client, "bench/flow", NULL, run, &err) != DIBS_OK)
            give_up("start", err.message);
    started_at = now_ns();
    run_nodes();
    printf("%.0f %.0f\n",
           (double)wanted * 1e9 / (double)(started_at - begun_at),
           (double)wanted * 1e9 / (double)(now_ns() - started_at));
    dibs_jobs_close(nodes[0]);
    dibs_close(client);
}

/* "second minute hour day month * year" */
static void schedule_of(time_t at, char *out, size_t size)
{
    struct tm tm;

    gmtime_r(&at, &tm);
    snprintf(out, size, "%d %d %d %d %d * %d", tm.tm_sec, tm.tm_min, tm.tm_hour,
             tm.tm_mday, tm.tm_mon + 1, tm.tm_year + 1900);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void burst(const char *url)
{
    const time_t due =
        time(NULL) + LEAD_S + (time_t)(wanted / PUBLISHED_A_SECOND);
    dibs_client *clients[NODES_MAX];
    dibs_error err = {0};
    char schedule[64], name[32];

    for (size_t i = 0; i < node_count; i++)
        nodes[i] = open_node(url, i, &clients[i]);
    schedule_of(due, schedule, sizeof(schedule));
    for (size_t i = 0; i < wanted; i++) {
        snprintf(name, sizeof(name), "j%zu", i);
        define(nodes[0], name, schedule);
    }
    if (dibs_jobs_publish(nodes[0], &err) != DIBS_OK)
        give_up("publish", err.message);
    if (time(NULL) + 1 >= due)
        give_up("publish",
                "the jobs were not in the store before their instant");
    run_nodes();
    qsort(late_us, wanted, sizeof(*late_us), by_size);
    printf("%.0f %lld %lld %lld %lld\n",
           (double)wanted * 1e6 / (double)late_us[wanted - 1],
           (long long)late_us[wanted / 2],
           (long long)late_us[wanted * 95 / 100],
           (long long)late_us[wanted * 99 / 100],
           (long long)late_us[wanted - 1]);
    for (size_t i = 0; i < node_count; i++) {
        dibs_jobs_close(nodes[i]);
        dibs_close(clients[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4 || (strcmp(argv[2], "burst") == 0 && argc != 5)) {
        fprintf(stderr,
                "usage: bench_calls URL flow RUNS | URL burst JOBS NODES\n");
        return 64;
    }
    wanted = strtoul(argv[3], NULL, 10);
    late_us = calloc(wanted, sizeof(*late_us));
    if (wanted == 0 || !late_us)
        give_up("room", "for no samples");
    if (strcmp(argv[2], "flow") == 0) {
        flow(argv[1]);
    } else {
        node_count = strtoul(argv[4], NULL, 10);
        if (node_count == 0 || node_count > NODES_MAX)
            give_up("nodes", "1 to 8");
        burst(argv[1]);
    }
    free(late_us);
    return 0;
}
