/* async_libevent.c - two tasks of a libevent loop share a lock.
 *
 *     async_libevent [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <event2/event.h>
#include <stdio.h>

static struct event_base *base;
static char first[] = "first", second[] = "second";
static int turns;

static void
granted(dibs_lock *lock, dibs_status status, const dibs_error *err, void *task)
{
    if (status == DIBS_OK)
        printf("the %s task has it, under fence %llu\n", (const char *)task,
               (unsigned long long)dibs_lock_fence(lock));
    else
        fprintf(stderr, "%s\n", err->message);
    if (dibs_lock_release_async(lock, NULL, NULL, NULL) != DIBS_OK ||
        ++turns == 2)
        event_base_loopbreak(base);
}

static void on_readable(evutil_socket_t fd, short what, void *client)
{
    (void)fd;
    (void)what;
    dibs_async_process(client);
}

int main(int argc, char **argv)
{
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.wait_ms = 10000);
    dibs_client *client = NULL;
    dibs_lock *a = NULL, *b = NULL;
    struct event *readable;

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, NULL) != DIBS_OK)
        return 1;
    base = event_base_new();
    readable = event_new(base, dibs_async_fd(client), EV_READ | EV_PERSIST,
                         on_readable, client);
    event_add(readable, NULL);
    if (dibs_lock_new(client, "turn", opts, &a, NULL) == DIBS_OK &&
        dibs_lock_new(client, "turn", opts, &b, NULL) == DIBS_OK &&
        dibs_lock_acquire_async(a, granted, first, NULL) == DIBS_OK &&
        dibs_lock_acquire_async(b, granted, second, NULL) == DIBS_OK)
        event_base_dispatch(base);
    event_free(readable);
    event_base_free(base);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(client);
    return turns == 2 ? 0 : 1;
}
