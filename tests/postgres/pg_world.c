/* pg_world.c - see pg_world.h. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include <errno.h>
#include <time.h>

pg_server world_sv;

int world_begin(void **state)
{
    (void)state;
    return pg_start(&world_sv) ? 0 : -1;
}

int world_end(void **state)
{
    (void)state;
    pg_stop(&world_sv);
    return 0;
}

dibs_client *world_client(const char *url)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK, dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = WORLD_STEP_MS),
                             &cl, err));
    return cl;
}

dibs_lock *
world_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    dibs_lock *lock = NULL;

    CHECK(DIBS_OK, dibs_lock_new(cl, name, opts, &lock, err));
    return lock;
}

dibs_status world_try_until(dibs_lock *lock, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);
    dibs_error err = {0};
    dibs_status rc = dibs_lock_try(lock, &err);

    while (rc != DIBS_OK && dibsx_now() < end) {
        world_sleep_ms(5);
        rc = dibs_lock_try(lock, &err);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "the last try: %s: %s\n", dibs_status_name(rc),
                err.message);
    return rc;
}

void world_sleep_ms(int64_t span_ms)
{
    struct timespec span = {.tv_sec = (time_t)(span_ms / 1000),
                            .tv_nsec = (long)(span_ms % 1000) * 1000000};

    while (nanosleep(&span, &span) != 0 && errno == EINTR)
        continue;
}

int64_t world_ms_since(dibsx_nsec from_at)
{
    return (dibsx_now() - from_at) / DIBSX_MS;
}
