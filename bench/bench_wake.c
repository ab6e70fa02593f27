/* bench_wake.c - how long after a release a waiter in another process has it.
 *
 *     bench_wake URL ROUNDS [sticky]
 *
 * The parent holds the lease; a forked child blocks in dibs_lock_acquire(). The
 * time runs from just before the parent's release to the child's return. With
 * sticky the parent has released, and keeps the lease until the child asks: the
 * time runs from just before the parent tells the child to. Prints one line; see
 * samples_print(). */
/* SPDX-License-Identifier: MIT */
#include "bench/samples.h"

#include <dibs/dibs.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char name[] = "bench-wake";

typedef struct side {
    dibs_client *client;
    dibs_lock *lock;
    int in, out; /* pipes from and to the other process */
} side;

static void tell(int fd, int64_t word)
{
    if (write(fd, &word, sizeof(word)) != sizeof(word))
        give_up("pipe", strerror(errno));
}

/* False when the other side has closed. */
static bool hear(int fd, int64_t *word)
{
    return read(fd, word, sizeof(*word)) == sizeof(*word);
}

static void side_open(side *s, const char *url, bool sticky)
{
    dibs_error err;

    if (dibs_open(url, PATIENT, &s->client, &err) != DIBS_OK)
        give_up("open", err.message);
    if (dibs_lock_new(s->client, name,
                      DIBS_LOCK_OPTS(.wait_ms = 60000,
                                     .flags = sticky ? DIBS_LOCK_STICKY : 0),
                      &s->lock, &err) != DIBS_OK)
        give_up("lock", err.message);
}

static void side_close(side *s)
{
    close(s->out);
    dibs_lock_free(s->lock);
    dibs_close(s->client);
}

static void acquire(side *s)
{
    dibs_error err;

    if (dibs_lock_acquire(s->lock, &err) != DIBS_OK)
        give_up("acquire", err.message);
}

static void release(side *s)
{
    dibs_error err;

    if (dibs_lock_release(s->lock, &err) != DIBS_OK)
        give_up("release", err.message);
}

/* The child: at each word takes the lease, says when it had it, gives it up. */
static int wait_in_turn(side *s, const char *url)
{
    int64_t word;

    side_open(s, url, false);
    while (hear(s->in, &word)) {
        int64_t had_at;

        acquire(s);
        had_at = now_ns();
        release(s);
        tell(s->out, had_at);
    }
    side_close(s);
    return 0;
}

static bool note_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return false;
}

/* Until the child is queued, and then as long again as it needs to block. */
static void await_waiter(side *s)
{
    const struct timespec moment = {0, 1000000};
    size_t waiters = 0;
    dibs_error err;

    do {
        nanosleep(&moment, NULL);
        if (dibs_lease_show(s->client, name, note_waiters, &waiters, &err) !=
            DIBS_OK)
            give_up("show", err.message);
    } while (waiters == 0);
    nanosleep(&moment, NULL);
}

/* The moment from which the waiter could have it. */
static int64_t hand_over(side *s, bool sticky)
{
    int64_t from;

    acquire(s);
    if (sticky) {
        release(s);
        from = now_ns();
        tell(s->out, 1);
        return from;
    }
    tell(s->out, 1);
    await_waiter(s);
    from = now_ns();
    release(s);
    return from;
}

static void measure(side *s, size_t rounds, bool sticky)
{
    int64_t began = now_ns(), from, had_at;
    samples times;

    samples_init(&times, rounds);
    for (size_t i = 0; i < rounds; i++) {
        from = hand_over(s, sticky);
        if (!hear(s->in, &had_at))
            give_up("child", "ended early");
        samples_add(&times, had_at - from);
    }
    samples_print(&times, now_ns() - began);
    samples_fini(&times);
}

int main(int argc, char **argv)
{
    bool sticky = argc == 4 && strcmp(argv[3], "sticky") == 0;
    long rounds = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
    int there[2], back[2], status = 0;
    pid_t child;

    if (rounds < 1 || rounds > 1000000)
        give_up("usage", "bench_wake URL ROUNDS (1 to 1,000,000) [sticky]");
    if (pipe(there) || pipe(back) || (child = fork()) < 0)
        give_up("fork", strerror(errno));
    if (child == 0) {
        close(there[1]);
        close(back[0]);
        return wait_in_turn(&(side){.in = there[0], .out = back[1]}, argv[1]);
    }
    close(there[0]);
    close(back[1]);
    side parent = {.in = back[0], .out = there[1]};
    side_open(&parent, argv[1], sticky);
    measure(&parent, (size_t)rounds, sticky);
    side_close(&parent);
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
