/* main.c - runs workers on a store, kills and stops them at random, and checks
 * what they wrote down.
 *
 *     history FOLDER HOLDS SEED URL
 *
 * The workers are processes of their own program (`history --worker ...`), so that
 * each opens the store for itself. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "worker.h"

#include <dibs/dibs.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A name must be free so long after its last holder died: its ttl, a claim, a
 * place, and time for a busy machine. */
enum { SETTLE_MS = 20000 };

typedef struct child {
    pid_t pid;
    uint32_t life;
    bool stopped;
    int64_t resume_ns;
    stop *stopping;
} child;

typedef struct run {
    const char *self;
    const char *url;
    const char *folder;
    shared *sh;
    child children[WORKERS];
    uint64_t random;
    unsigned kills;
    unsigned failures;
} run;

static uint64_t pick(run *rn, uint64_t below)
{
    rn->random ^= rn->random << 13;
    rn->random ^= rn->random >> 7;
    rn->random ^= rn->random << 17;
    return rn->random % below;
}

static void start(run *rn, uint32_t number)
{
    child *ch = &rn->children[number];
    char worker[16], life[16];

    snprintf(worker, sizeof(worker), "%u", number);
    snprintf(life, sizeof(life), "%u", ++ch->life);
    fflush(stdout);
    ch->pid = fork();
    if (ch->pid == 0) {
        execl(rn->self, rn->self, "--worker", rn->url, rn->folder, worker, life,
              (char *)NULL);
        _exit(127);
    }
    if (ch->pid < 0) {
        perror("fork");
        exit(2);
    }
}

static bool is_over(const run *rn)
{
    return atomic_load(&rn->sh->holds) >= rn->sh->holds_wanted;
}

static void resume(child *ch)
{
    kill(ch->pid, SIGCONT);
    ch->stopping->to_ns = now_ns();
    ch->stopped = false;
}

/* Half of the stops outlast the ttl. */
static void stop_one(run *rn, uint32_t number)
{
    child *ch = &rn->children[number];
    unsigned count = atomic_load(&rn->sh->stop_count);

    if (count == STOPS_ROOM)
        return;
    ch->stopping = &rn->sh->stops[count];
    *ch->stopping = (stop){.worker = number, .from_ns = now_ns()};
    atomic_store(&rn->sh->stop_count, count + 1);
    kill(ch->pid, SIGSTOP);
    ch->stopped = true;
    ch->resume_ns = now_ns() + (int64_t)pick(rn, 2 * TTL_MS) * 1000000;
}

/* A worker ends by our kill, or when the run has its holds, or its log is full;
 * anything else is a failure. */
static void reap(run *rn)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < WORKERS; i++) {
            child *ch = &rn->children[i];

            if (ch->pid != pid)
                continue;
            ch->pid = 0;
            if (ch->stopped)
                ch->stopping->to_ns = now_ns();
            ch->stopped = false;
            if (WIFEXITED(status) ? WEXITSTATUS(status) != 0
                                  : WTERMSIG(status) != SIGKILL) {
                printf("worker %u ended with status 0x%x\n", i,
                       (unsigned)status);
                rn->failures++;
            }
            if (!is_over(rn) && rn->failures < WORKERS)
                start(rn, i);
        }
}

/* Mostly one that holds; now and then whoever it is. */
static uint32_t pick_victim(run *rn)
{
    uint32_t number = (uint32_t)pick(rn, WORKERS);

    for (int i = 0; i < WORKERS && pick(rn, 100) != 0; i++) {
        if (atomic_load(&rn->sh->holding[number]))
            break;
        number = (number + 1) % WORKERS;
    }
    return number;
}

static void resume_due(run *rn)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        if (rn->children[i].stopped && rn->children[i].pid &&
            now_ns() >= rn->children[i].resume_ns)
            resume(&rn->children[i]);
}

static void disturb(run *rn)
{
    uint32_t number = pick_victim(rn);
    child *ch = &rn->children[number];

    if (!ch->pid || ch->stopped || is_over(rn))
        return;
    if (pick(rn, 4) == 0) {
        kill(ch->pid, SIGKILL);
        rn->kills++;
    } else {
        stop_one(rn, number);
    }
}

static bool any_left(const run *rn)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        if (rn->children[i].pid)
            return true;
    return false;
}

static void work(run *rn)
{
    for (uint32_t i = 0; i < WORKERS; i++)
        start(rn, i);
    while (any_left(rn)) {
        poll(NULL, 0, (int)pick(rn, 40));
        resume_due(rn);
        if (pick(rn, 25) == 0)
            disturb(rn);
        reap(rn);
    }
}

static bool count_one(const dibs_lease_info *info, void *arg)
{
    (void)info;
    ++*(size_t *)arg;
    return true;
}

/* Nothing is held or waited for once all are gone and their time is up. */
static size_t check_settled(const run *rn)
{
    int64_t until = now_ns() + (int64_t)SETTLE_MS * 1000000;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    size_t left = 1;

    if (dibs_open(rn->url, NULL, &cl, &err) != DIBS_OK) {
        printf("violation: the store cannot be opened: %s\n", err.message);
        return 1;
    }
    while (left > 0 && now_ns() < until) {
        left = 0;
        if (dibs_lease_list(cl, "history-", count_one, &left, &err) != DIBS_OK)
            left = 1;
        if (left > 0)
            poll(NULL, 0, 50);
    }
    dibs_close(cl);
    if (left > 0)
        printf("violation: %zu names are in use after all have gone\n", left);
    return left;
}

static size_t check(const run *rn)
{
    history hs = {.stops = rn->sh->stops,
                  .stop_count = atomic_load(&rn->sh->stop_count)};
    size_t bad;

    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t life = 1; life <= rn->children[i].life; life++) {
            char path[512];

            snprintf(path, sizeof(path), "%s/log-%u-%u", rn->folder, i, life);
            if (access(path, F_OK) == 0 &&
                !history_add(&hs, map_file(path, sizeof(record_log)))) {
                printf("no memory for the history\n");
                exit(2);
            }
        }
    bad = history_check(&hs);
    history_fini(&hs);
    return bad;
}

static int run_all(run *rn)
{
    size_t bad;

    work(rn);
    bad = check_settled(rn) + check(rn) + rn->failures;
    printf("holds %llu, kills %u, stops %u, writes accepted %llu, refused "
           "%llu, violations %zu\n",
           (unsigned long long)atomic_load(&rn->sh->holds), rn->kills,
           atomic_load(&rn->sh->stop_count),
           (unsigned long long)atomic_load(&rn->sh->accepted),
           (unsigned long long)atomic_load(&rn->sh->refused), bad);
    return bad > 0;
}

static unsigned long number_of(const char *text)
{
    return strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
    run rn = {.self = "/proc/self/exe"};
    char path[512];

    if (argc == 6 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv[2], argv[3], (uint32_t)number_of(argv[4]),
                           (uint32_t)number_of(argv[5]));
    if (argc != 5) {
        fprintf(stderr, "usage: history FOLDER HOLDS SEED URL\n");
        return 2;
    }
    rn.url = argv[4];
    rn.folder = argv[1];
    rn.random = number_of(argv[3]) * 2654435761u + 1;
    snprintf(path, sizeof(path), "%s/shared", rn.folder);
    rn.sh = map_file(path, sizeof(*rn.sh));
    rn.sh->holds_wanted = number_of(argv[2]);
    printf("seed %s\n", argv[3]);
    return run_all(&rn);
}
