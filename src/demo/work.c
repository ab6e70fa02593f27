/* work.c - a worker's clients, its lock, and the way to stop all that is under way.
 *
 * Owns the clients and the list of holds, which is under the mutex. Operations run
 * on threads of the HTTP server and on the worker's own; stop comes from its main
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "demo/work.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/text.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN_MAX = 160 }; /* bytes of an operation in the metadata */

dibs_status dibs__demo_work_init(dibs__demo_work *work, int id,
                                 const dibs__demo_opts *opts, dibs_error *err)
{
    dibs_status rc;

    *work = (dibs__demo_work){.id = id, .opts = opts};
    rc = dibs__demo_feed_init(&work->feed, err);
    if (rc != DIBS_OK)
        return rc;
    work->log = (dibs__demo_log){.put = dibs__demo_put_out,
                                 .feed = &work->feed,
                                 .worker = id,
                                 .json = opts->json,
                                 .colour = opts->colour};
    work->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (work->stop_fd < 0) {
        dibs__demo_feed_fini(&work->feed);
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                             "cannot open an eventfd: %s", strerror(errno));
    }
    pthread_mutex_init(&work->mutex, NULL);
    pthread_cond_init(&work->none, NULL);
    return DIBS_OK;
}

void dibs__demo_work_fini(dibs__demo_work *work)
{
    if (work->data != work->locks)
        dibs_close(work->data);
    dibs_close(work->locks);
    pthread_cond_destroy(&work->none);
    pthread_mutex_destroy(&work->mutex);
    close(work->stop_fd);
    dibs__demo_feed_fini(&work->feed);
}

/* Losses are the operation's to tell. */
static void
hear(dibs_log_level level, const char *event, const char *message, void *arg)
{
    const dibs__demo_work *work = arg;

    if (strcmp(event, "lost") != 0)
        dibs__demo_say(&work->log,
                       level == DIBS_LOG_ERROR ? DIBS__DEMO_BAD
                                               : DIBS__DEMO_PLAIN,
                       event, NULL, "%s: %s", event, message);
}

dibs_status dibs__demo_work_open(dibs__demo_work *work, dibs_error *err)
{
    const dibs__demo_opts *opts = work->opts;
    char label[32];
    dibs_client_opts client = {.size = sizeof(client),
                               .prefix = opts->prefix,
                               .label = label,
                               .ttl_ms = opts->ttl_ms,
                               .timeout_ms = opts->timeout_ms,
                               .log = hear,
                               .log_arg = work,
                               .log_level = DIBS_LOG_WARN,
                               .share_events = true};
    dibs_status rc;

    snprintf(label, sizeof(label), "worker-%d", work->id);
    rc = dibs_open(opts->url, &client, &work->locks, err);
    if (rc == DIBS_OK && opts->data_url)
        rc = dibs_open(opts->data_url, &client, &work->data, err);
    else
        work->data = work->locks;
    return rc;
}

static bool enlist(dibs__demo_work *work, dibs__demo_hold *hold)
{
    bool fine;

    pthread_mutex_lock(&work->mutex);
    fine = !work->stopping;
    if (fine) {
        hold->next = work->holds;
        work->holds = hold;
    }
    pthread_mutex_unlock(&work->mutex);
    return fine;
}

static void delist(dibs__demo_work *work, dibs__demo_hold *hold)
{
    dibs__demo_hold **at = &work->holds;

    pthread_mutex_lock(&work->mutex);
    while (*at != hold)
        at = &(*at)->next;
    *at = hold->next;
    if (!work->holds)
        pthread_cond_signal(&work->none);
    pthread_mutex_unlock(&work->mutex);
}

/* How much of an operation's name is shown: metadata is short, and no character is
 * cut in two. */
static int shown_len(const char *operation)
{
    size_t len = strlen(operation);

    if (len > SHOWN_MAX)
        for (len = SHOWN_MAX; len > 0 && (operation[len] & 0xc0) == 0x80;)
            len--;
    return (int)len;
}

dibs_status
dibs__demo_take(dibs__demo_work *work, dibs__demo_hold *hold,
                const char *operation, int64_t wait_ms, dibs_error *err)
{
    char primary[32], what[DIBS__DEMO_NAME_MAX + 16];
    const char *meta[] = {primary, NULL, NULL};
    dibs_status rc;

    /* By this the primary knows its own when it clears up. */
    snprintf(primary, sizeof(primary), "primary=%ld", (long)getppid());
    snprintf(what, sizeof(what), "operation=%.*s", shown_len(operation),
             operation);
    /* Metadata has no control characters. */
    if (!dibsx_text_flaw(what, strlen(what)))
        meta[1] = what;
    rc = dibs_lock_new(work->locks, DIBS__DEMO_LOCK,
                       DIBS_LOCK_OPTS(.wait_ms = wait_ms, .meta = meta),
                       &hold->lock, err);
    if (rc != DIBS_OK)
        return rc;
    if (!enlist(work, hold)) {
        dibs_lock_free(hold->lock);
        return dibsx_fail(err, DIBS_CANCELLED, "the worker stops");
    }
    rc = dibs_lock_acquire(hold->lock, err);
    if (rc != DIBS_OK) {
        delist(work, hold);
        dibs_lock_free(hold->lock);
    }
    return rc;
}

dibs_status
dibs__demo_drop(dibs__demo_work *work, dibs__demo_hold *hold, dibs_error *err)
{
    dibs_status rc = dibs_lock_release(hold->lock, err);

    delist(work, hold);
    dibs_lock_free(hold->lock);
    return rc;
}

dibs_status dibs__demo_sleep(dibs__demo_work *work, dibs_lock *lock,
                             int64_t span_ms, dibs_error *err)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), span_ms);
    struct pollfd fds[] = {{.fd = work->stop_fd, .events = POLLIN},
                           {.fd = lock ? dibs_lock_lost_fd(lock) : -1,
                            .events = POLLIN}};
    int64_t left_ms;

    do {
        left_ms = dibsx_wait_ms(until, dibsx_now());
        if (poll(fds, 2, left_ms > INT_MAX ? INT_MAX : (int)left_ms) < 0)
            continue;
        if (fds[0].revents)
            return dibsx_fail(err, DIBS_CANCELLED, "the worker stops");
        if (fds[1].revents)
            return dibsx_fail(err, DIBS_LOST, "the lock was lost");
    } while (left_ms > 0);
    return DIBS_OK;
}

/* A cancel that comes before the wait has begun is not heard, hence again. */
void dibs__demo_work_stop(dibs__demo_work *work)
{
    struct timespec soon;

    (void)eventfd_write(work->stop_fd, 1);
    pthread_mutex_lock(&work->mutex);
    work->stopping = true;
    while (work->holds) {
        for (dibs__demo_hold *hold = work->holds; hold; hold = hold->next)
            dibs_lock_cancel(hold->lock);
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 20000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&work->none, &work->mutex, &soon);
    }
    pthread_mutex_unlock(&work->mutex);
}
