/* async_libuv.c - two tasks of a libuv loop share a lock.
 *
 *     async_libuv [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>
#include <uv.h>

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
        uv_stop(uv_default_loop());
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    dibs_async_process(handle->data);
}

int main(int argc, char **argv)
{
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.wait_ms = 10000);
    uv_loop_t *loop = uv_default_loop();
    dibs_client *client = NULL;
    dibs_lock *a = NULL, *b = NULL;
    uv_poll_t readable;

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, NULL) != DIBS_OK)
        return 1;
    readable.data = client;
    uv_poll_init(loop, &readable, dibs_async_fd(client));
    uv_poll_start(&readable, UV_READABLE, on_readable);
    if (dibs_lock_new(client, "turn", opts, &a, NULL) == DIBS_OK &&
        dibs_lock_new(client, "turn", opts, &b, NULL) == DIBS_OK &&
        dibs_lock_acquire_async(a, granted, first, NULL) == DIBS_OK &&
        dibs_lock_acquire_async(b, granted, second, NULL) == DIBS_OK)
        uv_run(loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&readable, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(client);
    uv_loop_close(loop);
    return turns == 2 ? 0 : 1;
}
