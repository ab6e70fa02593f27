/* watch.c - the holder of the lock and its waiters.
 *
 * Owns a thread, which talks to the store; the text is under the mutex. */
/* SPDX-License-Identifier: MIT */
#include "demo/watch.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "demo/demo.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { INTERVAL_MS = 200 };

static void put_party(dibsx_buf *out, const dibs_party *party)
{
    dibsx_text_clean(out, *party->label ? party->label : party->host);
    if (!*party->label)
        dibsx_buf_printf(out, ":%lld", (long long)party->pid);
}

static bool each(const dibs_lease_info *info, void *arg)
{
    dibsx_buf *out = arg;
    char age[32];

    dibsx_buf_puts(out, "lock: ");
    if (info->holder_count == 0)
        dibsx_buf_puts(out, "free");
    for (size_t i = 0; i < info->holder_count; i++) {
        dibsx_duration_text(info->holders[i].age_ms, age, sizeof(age));
        dibsx_buf_puts(out, "held by ");
        put_party(out, &info->holders[i]);
        dibsx_buf_printf(out, " for %s (fence %llu)%s", age,
                         (unsigned long long)info->holders[i].fence,
                         info->holders[i].stale ? ", who is gone" : "");
    }
    dibsx_buf_printf(out, " | %zu waiting", info->waiter_count);
    for (size_t i = 0; i < info->waiter_count; i++) {
        dibsx_buf_puts(out, i ? ", " : ": ");
        put_party(out, &info->waiters[i]);
    }
    return true;
}

void dibs__demo_look(dibs_client *cl, int port, dibsx_buf *out)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lease_show(cl, DIBS__DEMO_LOCK, each, out, &err);

    if (rc == DIBS_NOTFOUND) {
        dibsx_buf_printf(out,
                         "lock: free | 0 waiting | try: curl -X POST "
                         "http://localhost:%d/update",
                         port);
    } else if (rc != DIBS_OK) {
        dibsx_buf_reset(out);
        dibsx_buf_puts(out, "the store is away: ");
        dibsx_text_clean(out, err.message);
    }
}

static void publish(dibs__demo_watch *watch, const dibsx_buf *text)
{
    pthread_mutex_lock(&watch->mutex);
    if (dibsx_buf_ok(text))
        snprintf(watch->text, sizeof(watch->text), "%s", dibsx_buf_text(text));
    pthread_mutex_unlock(&watch->mutex);
    (void)eventfd_write(watch->fd, 1);
}

static void *watch_main(void *arg)
{
    dibs__demo_watch *watch = arg;
    struct pollfd stop = {.fd = watch->stop_fd, .events = POLLIN};
    dibsx_buf text;

    dibsx_buf_init(&text, 64 * 1024);
    do {
        dibsx_buf_reset(&text);
        dibs__demo_look(watch->cl, watch->port, &text);
        publish(watch, &text);
    } while (poll(&stop, 1, INTERVAL_MS) <= 0);
    dibsx_buf_fini(&text);
    return NULL;
}

void dibs__demo_watch_start(dibs__demo_watch *watch, dibs_client *cl, int port)
{
    *watch = (dibs__demo_watch){.cl = cl, .port = port};
    pthread_mutex_init(&watch->mutex, NULL);
    watch->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->fd >= 0 && watch->stop_fd >= 0 &&
        dibsx_thread_start(&watch->thread, watch_main, watch) == 0)
        return;
    if (watch->fd >= 0)
        close(watch->fd);
    if (watch->stop_fd >= 0)
        close(watch->stop_fd);
    watch->fd = -1;
}

void dibs__demo_watch_stop(dibs__demo_watch *watch)
{
    if (watch->fd < 0)
        return;
    (void)eventfd_write(watch->stop_fd, 1);
    pthread_join(watch->thread, NULL);
    close(watch->fd);
    close(watch->stop_fd);
    pthread_mutex_destroy(&watch->mutex);
    watch->fd = -1;
}

void dibs__demo_watch_take(dibs__demo_watch *watch,
                           char out[DIBS__DEMO_STATUS_MAX])
{
    eventfd_t count;

    (void)eventfd_read(watch->fd, &count);
    pthread_mutex_lock(&watch->mutex);
    memcpy(out, watch->text, DIBS__DEMO_STATUS_MAX);
    pthread_mutex_unlock(&watch->mutex);
}
