/* bench_lock.c - how long one acquire and one release take, on a free name.
 *
 *     bench_lock URL PAIRS [sticky | check]
 *
 * With sticky the lease stays between them, so that no round trip is made. With
 * check it is dibs_lock_check() on a held lock that is measured, many calls to a
 * sample. Prints one line; see samples_print(). */
/* SPDX-License-Identifier: MIT */
#include "bench/samples.h"

#include <dibs/dibs.h>
#include <stdlib.h>
#include <string.h>

static void pair(dibs_lock *lock)
{
    dibs_error err;

    if (dibs_lock_acquire(lock, &err) != DIBS_OK)
        give_up("acquire", err.message);
    if (dibs_lock_release(lock, &err) != DIBS_OK)
        give_up("release", err.message);
}

/* The clock costs about as much as a check: so many share one reading. */
enum { CHECKS = 1000 };

static void measure_check(dibs_lock *lock, size_t count)
{
    int64_t began = now_ns();
    dibs_error err;
    samples s;

    samples_init(&s, count);
    if (dibs_lock_acquire(lock, &err) != DIBS_OK)
        give_up("acquire", err.message);
    for (size_t i = 0; i < count; i++) {
        int64_t before = now_ns();

        for (size_t j = 0; j < CHECKS; j++)
            if (dibs_lock_check(lock) != DIBS_OK)
                give_up("check", "the lease was lost");
        samples_add(&s, (now_ns() - before) / CHECKS);
    }
    samples_print(&s, (now_ns() - began) / CHECKS);
    samples_fini(&s);
}

static void measure(dibs_lock *lock, size_t pairs)
{
    samples s;
    int64_t began;

    samples_init(&s, pairs);
    /* The first ones start threads and fill caches. */
    for (size_t i = 0; i < pairs / 10; i++)
        pair(lock);
    began = now_ns();
    for (size_t i = 0; i < pairs; i++) {
        int64_t before = now_ns();

        pair(lock);
        samples_add(&s, now_ns() - before);
    }
    samples_print(&s, now_ns() - began);
    samples_fini(&s);
}

int main(int argc, char **argv)
{
    const char *what = argc == 4 ? argv[3] : "";
    long pairs = argc >= 3 ? strtol(argv[2], NULL, 10) : 0;
    bool sticky = strcmp(what, "sticky") == 0;
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err;

    if (pairs < 1 || pairs > 10000000)
        give_up("usage", "bench_lock URL PAIRS (1 to 10,000,000) "
                         "[sticky | check]");
    if (dibs_open(argv[1], PATIENT, &client, &err) != DIBS_OK)
        give_up("open", err.message);
    if (dibs_lock_new(client, "bench",
                      DIBS_LOCK_OPTS(.flags = sticky ? DIBS_LOCK_STICKY : 0),
                      &lock, &err) != DIBS_OK)
        give_up("lock", err.message);
    if (strcmp(what, "check") == 0)
        measure_check(lock, (size_t)pairs);
    else
        measure(lock, (size_t)pairs);
    dibs_lock_free(lock);
    dibs_close(client);
    return 0;
}
