/* crew.c - see crew.h. */
/* SPDX-License-Identifier: MIT */
#include "crew.h"
#include "pace.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A worker that has not ended so long after it was told to hangs. */
#define END_NS (pace_ms(60000) * INT64_C(1000000))

fault_entry *
crew_note(crew *cw, const char *name, uint32_t worker, uint64_t dice, loss lost)
{
    fault_entry *entry = NULL;
    unsigned count;

    pthread_mutex_lock(cw->mutex);
    count = atomic_load(&cw->faults->count);
    if (count < FAULTS_ROOM) {
        entry = &cw->faults->entries[count];
        *entry = (fault_entry){.from_ns = now_ns(),
                               .dice = dice,
                               .worker = worker,
                               .loss = (uint8_t)lost};
        snprintf(entry->name, sizeof(entry->name), "%s", name);
        atomic_store(&cw->faults->count, count + 1);
    }
    pthread_mutex_unlock(cw->mutex);
    return entry;
}

/* In the child, where little may be called; the environment was made before. */
static void become_worker(const crew *cw, char *const *words, char *const *env)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execve(cw->self, words, env);
    _exit(127);
}

/* The environment, with the clock of this worker. */
static char **make_env(const crew *cw, uint32_t number, char *room, size_t size)
{
    extern char **environ;
    size_t count = 0, used;
    char **env;

    while (environ[count])
        count++;
    env = calloc(count + 4, sizeof(*env));
    if (!env)
        exit(2);
    memcpy(env, environ, count * sizeof(*env));
    if (cw->shim) {
        used = (size_t)snprintf(room, size, "LD_PRELOAD=%s", cw->shim) + 1;
        env[count++] = room;
        env[count++] = room + used;
        used += (size_t)snprintf(room + used, size - used,
                                 "CLOCK_SHIM=%s/clock-%u", cw->folder, number) +
                1;
        env[count] = room + used;
        snprintf(room + used, size - used, "CLOCK_SHIM_SLEPT=%s/slept",
                 cw->folder);
    }
    return env;
}

static void start(crew *cw, uint32_t number)
{
    member *mb = &cw->members[number];
    char worker[16], life[16], room[3 * PATH_MAX];
    char mode[] = "--worker", *folder = strdup(cw->folder);
    char *self = strdup(cw->self);
    char *words[] = {self, mode, folder, worker, life, NULL};
    char **env = make_env(cw, number, room, sizeof(room));
    pid_t pid;

    snprintf(worker, sizeof(worker), "%u", number);
    snprintf(life, sizeof(life), "%u", ++mb->life);
    atomic_store(&cw->run->holding[number], false);
    atomic_store(&cw->run->ready[number], false);
    atomic_store(&cw->run->trials[number], 0);
    pid = fork();
    if (pid == 0)
        become_worker(cw, words, env);
    free(env);
    free(self);
    free(folder);
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    atomic_store(&mb->pid, pid);
}

void crew_start(crew *cw)
{
    for (uint32_t i = 0; i < cw->run->workers; i++) {
        char name[NAME_ROOM];

        snprintf(name, sizeof(name), "clock-%u", i);
        cw->members[i].ahead_us =
            map_file(cw->folder, name, 2 * sizeof(*cw->members[i].ahead_us));
        start(cw, i);
    }
}

static void heal(crew *cw, uint32_t number)
{
    member *mb = &cw->members[number];

    if (mb->fault && mb->fault->heal && atomic_load(&mb->pid))
        mb->fault->heal(cw, number);
    if (mb->entry && mb->entry->to_ns == 0)
        mb->entry->to_ns = now_ns();
    mb->fault = NULL;
    mb->entry = NULL;
}

/* A worker ends by our kill, or when the run is over, or its log is full; anything
 * else is a failure. */
static void bury(crew *cw, uint32_t number, int status)
{
    atomic_store(&cw->members[number].pid, 0);
    heal(cw, number);
    if (WIFEXITED(status) ? WEXITSTATUS(status) != 0
                          : WTERMSIG(status) != SIGKILL) {
        fprintf(stderr, "worker %u.%u ended with status 0x%x\n", number,
                cw->members[number].life, (unsigned)status);
        atomic_fetch_add(&cw->run->failures, 1);
    }
}

static bool reap(crew *cw, uint32_t number)
{
    pid_t pid = atomic_load(&cw->members[number].pid);
    int status;

    if (pid == 0)
        return true;
    if (waitpid(pid, &status, WNOHANG) != pid)
        return false;
    bury(cw, number, status);
    return true;
}

void crew_tend(crew *cw)
{
    for (uint32_t i = 0; i < cw->run->workers; i++) {
        if (cw->members[i].fault && now_ns() >= cw->members[i].heal_ns)
            heal(cw, i);
        if (reap(cw, i) && !atomic_load(&cw->run->over) &&
            atomic_load(&cw->run->failures) < cw->run->workers)
            start(cw, i);
    }
}

static uint32_t pick_victim(const crew *cw, uint64_t dice)
{
    uint32_t count = cw->run->workers;
    uint32_t number = (uint32_t)(dice % count);

    for (uint32_t i = 0; i < count && dice / count % 16 != 0; i++) {
        if (atomic_load(&cw->run->holding[number]))
            break;
        number = (number + 1) % count;
    }
    return number;
}

void crew_strike(crew *cw, const crew_fault *ft, uint64_t dice, int64_t span_ms)
{
    uint32_t number = pick_victim(cw, dice);
    member *mb = &cw->members[number];

    if (!atomic_load(&mb->pid) || mb->fault)
        return;
    mb->entry = crew_note(cw, ft->name, number, dice, LOSS_NONE);
    mb->fault = ft;
    mb->heal_ns = now_ns() + span_ms * 1000000;
    ft->strike(cw, number, dice);
}

void crew_heal_all(crew *cw)
{
    for (uint32_t i = 0; i < cw->run->workers; i++)
        if (cw->members[i].fault)
            heal(cw, i);
}

void crew_end(crew *cw)
{
    int64_t until = now_ns() + END_NS;
    bool left = true;

    while (left) {
        left = false;
        for (uint32_t i = 0; i < cw->run->workers; i++) {
            pid_t pid = atomic_load(&cw->members[i].pid);

            if (reap(cw, i))
                continue;
            left = true;
            if (now_ns() > until) {
                fprintf(stderr, "worker %u does not end\n", i);
                atomic_fetch_add(&cw->run->failures, 1);
                kill(pid, SIGKILL);
            }
        }
        poll(NULL, 0, 5);
    }
}

void crew_do(crew *cw, const char *mode)
{
    char room[3 * PATH_MAX];
    char *words[] = {strdup(cw->self), strdup(mode), strdup(cw->folder), NULL};
    char **env = make_env(cw, 0, room, sizeof(room));
    pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        become_worker(cw, words, env);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status != 0)
        atomic_fetch_add(&cw->run->failures, 1);
    free(env);
    for (size_t i = 0; words[i]; i++)
        free(words[i]);
}

void crew_limit(crew *cw, int resource, rlim_t limit)
{
    for (uint32_t i = 0; i < cw->run->workers; i++) {
        pid_t pid = atomic_load(&cw->members[i].pid);
        struct rlimit lm;

        if (pid == 0 || !atomic_load(&cw->run->ready[i]) ||
            prlimit(pid, (enum __rlimit_resource)resource, NULL, &lm) != 0)
            continue;
        lm.rlim_cur = limit < lm.rlim_max ? limit : lm.rlim_max;
        prlimit(pid, (enum __rlimit_resource)resource, &lm, NULL);
    }
}
