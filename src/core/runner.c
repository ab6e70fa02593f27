/* runner.c - the threads of asynchronous calls; see runner.h.
 *
 * Callbacks run on a runner or on the program's thread, without the mutex. */
/* SPDX-License-Identifier: MIT */
#include "core/runner.h"

#include "base/alloc.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/thread.h"
#include "base/uncancel.h"
#include "core/client.h"
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void init_list(dibs__call_list *list)
{
    list->first = NULL;
    list->end = &list->first;
    list->count = 0;
}

static void append_node(dibs__call_list *list, dibs__call_node *node)
{
    node->next = NULL;
    node->at = list->end;
    *list->end = node;
    list->end = &node->next;
    list->count++;
}

static void prepend_node(dibs__call_list *list, dibs__call_node *node)
{
    node->next = list->first;
    node->at = &list->first;
    if (list->first)
        list->first->at = &node->next;
    else
        list->end = &node->next;
    list->first = node;
    list->count++;
}

static void unlink_from(dibs__call_list *list, dibs__call_node *node)
{
    *node->at = node->next;
    if (node->next)
        node->next->at = node->at;
    else
        list->end = node->at;
    node->at = NULL;
    list->count--;
}

static dibs__call_node *pop_node(dibs__call_list *list)
{
    dibs__call_node *node = list->first;

    if (node)
        unlink_from(list, node);
    return node;
}

/* One call of the system for all that ends until the program has read the event. */
static void set_event(dibs__async *as)
{
    if (!as->announced)
        dibsx_event_set(as->fd);
    as->announced = true;
}

/* A call has ended: wakes the thread that runs its callback. */
static void announce_ended(dibs__async *as, dibs__runner *rn)
{
    if (as->fd >= 0) {
        set_event(as);
        pthread_cond_broadcast(&rn->cl->over);
        return;
    }
    for (size_t i = 0; !rn->idle && i < DIBS__RUNNERS; i++)
        if (as->runners[i].idle)
            rn = &as->runners[i];
    pthread_cond_signal(&rn->cond);
}

/* Runs a callback that was removed from the list. The close of the client waits for its
 * end. Locks: cl->mutex, let go for the callback. */
static bool run_callback(dibs_client *cl, dibs__call_node *node)
{
    dibs__async *as = cl->async;
    bool ran;

    as->calling++;
    ran = node->run(node);
    as->calling--;
    pthread_cond_broadcast(&cl->over);
    return ran;
}

/* Thread: a runner. */
static void *runner_main(void *arg)
{
    dibs__runner *rn = arg;
    dibs_client *cl = rn->cl;
    dibs__async *as = cl->async;
    dibs__call_node *node;

    pthread_mutex_lock(&cl->mutex);
    while (!as->stopping) {
        if (as->fd < 0 && (node = pop_node(&as->ended)) != NULL) {
            (void)run_callback(cl, node);
        } else if ((node = pop_node(&rn->ready)) != NULL) {
            (void)node->run(node);
        } else {
            rn->idle = true;
            pthread_cond_wait(&rn->cond, &cl->mutex);
            rn->idle = false;
        }
    }
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

static void stop_runners(dibs_client *cl)
{
    dibs__async *as = cl->async;

    as->stopping = true;
    for (size_t i = 0; i < DIBS__RUNNERS; i++)
        pthread_cond_signal(&as->runners[i].cond);
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < DIBS__RUNNERS; i++)
        if (as->runners[i].running)
            pthread_join(as->runners[i].thread, NULL);
    pthread_mutex_lock(&cl->mutex);
}

/* Waits for the calls, which are cancelled, and for their callbacks, then ends
 * the runners. Where the program would run the callbacks, this thread does.
 * Locks: cl->mutex, let go meanwhile. */
static void close_calls(dibs_client *cl, dibs__attached *at)
{
    dibs__async *as = (dibs__async *)(void *)at;
    dibs__call_node *node;

    while (as->calls > 0 || as->calling > 0) {
        node = as->fd >= 0 ? pop_node(&as->ended) : NULL;
        if (node)
            (void)run_callback(cl, node);
        else
            pthread_cond_wait(&cl->over, &cl->mutex);
    }
    stop_runners(cl);
}

static void free_async(dibs_client *cl, dibs__attached *at)
{
    dibs__async *as = (dibs__async *)(void *)at;

    cl->async = NULL;
    if (as->fd >= 0)
        close(as->fd);
    for (size_t i = 0; i < DIBS__RUNNERS; i++) {
        pthread_cond_destroy(&as->runners[i].cond);
        dibsx_free(as->runners[i].room);
    }
    dibsx_free(as);
}

/* Made when it is first needed; NULL: no memory. Locks: cl->mutex. */
static dibs__async *async_of(dibs_client *cl)
{
    dibs__async *as = cl->async;

    if (as || (as = dibsx_zalloc(sizeof(*as))) == NULL)
        return as;
    as->fd = -1;
    init_list(&as->ended);
    for (size_t i = 0; i < DIBS__RUNNERS; i++) {
        as->runners[i].cl = cl;
        init_list(&as->runners[i].ready);
        pthread_cond_init(&as->runners[i].cond, NULL);
    }
    as->attached.close = close_calls;
    as->attached.free = free_async;
    dibs__attach(cl, &as->attached);
    cl->async = as;
    return as;
}

static dibs_status start_runner(dibs__runner *rn, dibs_error *err)
{
    int failed =
        rn->running ? 0 : dibsx_thread_start(&rn->thread, runner_main, rn);

    if (failed)
        return dibsx_fail_at(err, DIBS_NOMEM, dibsx_errno_name(failed),
                             "cannot start a thread for asynchronous calls");
    rn->running = true;
    return DIBS_OK;
}

bool dibs__runner_attach(dibs_client *cl)
{
    return async_of(cl) != NULL;
}

dibs_status dibs__runner_enter(dibs_client *cl, uint64_t key,
                               dibs__runner **out, dibs_error *err)
{
    dibs__async *as = async_of(cl);
    dibs_status rc;

    if (cl->closing)
        return dibsx_fail(err, DIBS_INVALID, "the client is being closed");
    if (!as)
        return dibsx_nomem(err, "an asynchronous call");
    *out = &as->runners[key % DIBS__RUNNERS];
    rc = start_runner(*out, err);
    if (rc == DIBS_OK)
        as->calls++;
    return rc;
}

void dibs__runner_leave(dibs_client *cl)
{
    cl->async->calls--;
    pthread_cond_broadcast(&cl->over);
}

bool dibs__runner_is_idle(const dibs__runner *rn)
{
    return rn->idle && !rn->ready.first;
}

void dibs__runner_add(dibs__runner *rn, dibs__call_node *step, bool first)
{
    if (first)
        prepend_node(&rn->ready, step);
    else
        append_node(&rn->ready, step);
    pthread_cond_signal(&rn->cond);
}

dibs__call_node *
dibs__runner_take(dibs__runner *rn, bool (*run)(dibs__call_node *node))
{
    if (!rn->ready.first || rn->ready.first->run != run)
        return NULL;
    return pop_node(&rn->ready);
}

void dibs__runner_post(dibs__runner *rn, dibs__call_node *callback)
{
    append_node(&rn->cl->async->ended, callback);
    announce_ended(rn->cl->async, rn);
}

static bool unlink_node(dibs__call_list *list, dibs__call_node *node)
{
    if (!node->at)
        return false;
    unlink_from(list, node);
    return true;
}

bool dibs__runner_remove(dibs__runner *rn, dibs__call_node *step)
{
    return unlink_node(&rn->ready, step);
}

bool dibs__runner_unpost(dibs__runner *rn, dibs__call_node *callback)
{
    return unlink_node(&rn->cl->async->ended, callback);
}

int dibs_async_fd(dibs_client *cl)
{
    DIBSX_UNCANCEL;
    dibs__async *as;
    int fd;

    if (dibs__client_usable(cl, NULL) != DIBS_OK)
        return -1;
    pthread_mutex_lock(&cl->mutex);
    as = async_of(cl);
    if (as && as->fd < 0) {
        as->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (as->fd >= 0 && as->ended.count > 0)
            set_event(as);
    }
    fd = as ? as->fd : -1;
    pthread_mutex_unlock(&cl->mutex);
    return fd;
}

int dibs_async_timeout_ms(dibs_client *cl)
{
    bool waiting;

    if (dibs__client_usable(cl, NULL) != DIBS_OK)
        return -1;
    pthread_mutex_lock(&cl->mutex);
    waiting = cl->async && cl->async->fd >= 0 && cl->async->ended.count > 0;
    pthread_mutex_unlock(&cl->mutex);
    return waiting ? 0 : -1;
}

size_t dibs_async_process(dibs_client *cl)
{
    DIBSX_UNCANCEL;
    dibs__async *as;
    dibs__call_node *node;
    size_t count, ran = 0;
    uint64_t events;

    if (dibs__client_usable(cl, NULL) != DIBS_OK)
        return 0;
    pthread_mutex_lock(&cl->mutex);
    as = cl->async;
    if (as && as->fd >= 0) {
        while (read(as->fd, &events, sizeof(events)) < 0 && errno == EINTR)
            continue;
        as->announced = false;
        /* Calls that end meanwhile are left for the next time. */
        for (count = as->ended.count; count > 0; count--)
            if ((node = pop_node(&as->ended)) != NULL && run_callback(cl, node))
                ran++;
        if (as->ended.count > 0)
            set_event(as);
    }
    pthread_mutex_unlock(&cl->mutex);
    return ran;
}
