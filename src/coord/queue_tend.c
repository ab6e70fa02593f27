/* queue_tend.c - tends the lanes of a client, all in one step, and tells of losses.
 *
 * The timer of a queue goes off for the next tend, for the end of a validity or a limit,
 * and for a request that nobody waits for. Two jobs do the rest: neither the keeper nor
 * a callback waits for the store. */
/* SPDX-License-Identifier: MIT */
#include "coord/queue_lane.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include <string.h>

enum { TENDS = 64, TOGETHER_PART = 2, RETRY_MS = 20 };

static dibs_queue *queue_of_timer(dibs__timer *timer)
{
    return (dibs_queue *)(void *)((char *)timer - offsetof(dibs_queue, timer));
}

static dibs_item *item_of(dibs__lane_item *lane)
{
    return (dibs_item *)(void *)lane;
}

/* Whether the next request has something in it beside a wait. */
static bool has_wish(const dibs_queue *q)
{
    return q->machine.asking || q->wanted.first || q->forced ||
           q->request.stray_count > 0;
}

bool dibs__ask_due(const dibs_queue *q, dibsx_nsec now, dibsx_nsec *until)
{
    const dibs__waiter *w =
        (const dibs__waiter *)(const void *)q->waiters.first;
    dibsx_nsec at = DIBSX_NEVER;

    *until = DIBSX_NEVER;
    if (q->driving)
        return false;
    if (has_wish(q) || (w && q->hungry))
        at = 0;
    else if (w || q->placed)
        at = q->placed ? q->look_at : 0;
    for (; w && at > 0; w = (const dibs__waiter *)(const void *)w->node.next)
        if (!w->asked)
            at = 0;
    if (at == DIBSX_NEVER)
        return false;
    *until = at > q->ask_at ? at : q->ask_at;
    return *until <= now;
}

static pthread_cond_t *settling_thread(const dibs_item *item)
{
    return item && item->settler && !item->settler->call ? item->settler->cond
                                                         : NULL;
}

/* A thread that can send the next request; NULL: none waits. */
static pthread_cond_t *find_thread(const dibs_queue *q)
{
    pthread_cond_t *cond = NULL;

    for (dibsx_fifo_node *at = q->waiters.first; at; at = at->next)
        if (!((dibs__waiter *)(void *)at)->call)
            return &((dibs__waiter *)(void *)at)->cond;
    for (dibsx_fifo_node *at = q->wanted.first; at && !cond; at = at->next)
        cond = settling_thread(dibs__item_of_node(at));
    for (size_t i = 0;
         i < q->request.ask.settle_count && q->machine.asking && !cond; i++)
        cond = settling_thread(q->request.items[i]);
    return cond;
}

void dibs__ask_pass_on(dibs_queue *q)
{
    dibsx_nsec until;
    pthread_cond_t *cond = find_thread(q);

    if (cond && dibs__ask_due(q, dibsx_now(), &until)) {
        pthread_cond_signal(cond);
    } else if (!cond && dibs__ask_due(q, dibsx_now(), &until)) {
        if (!q->job.queued && dibs__worker_add(q->cl, &q->job))
            q->refs++;
    } else if (!cond && until != DIBSX_NEVER) {
        dibs__tend_set(q);
    }
}

/* The next end of a limit, or of the validity of all. */
static dibsx_nsec loss_at(const dibs_queue *q)
{
    dibsx_nsec at = DIBSX_NEVER;

    if (q->machine.count > 0 && q->machine.state == DIBS__LANE_OPEN)
        at = q->machine.valid_until;
    for (dibs__lane_item *lane = q->machine.first; lane; lane = lane->next) {
        dibsx_nsec until = atomic_load(&item_of(lane)->limit_until);

        if (until < at && item_of(lane)->state == DIBS__ITEM_HELD)
            at = until;
    }
    return at;
}

/* When the next wait of a call is over. */
static dibsx_nsec late_at(const dibs_queue *q)
{
    dibsx_nsec at = DIBSX_NEVER;

    for (dibsx_fifo_node *node = q->waiters.first; node; node = node->next) {
        const dibs__waiter *w = (const dibs__waiter *)(const void *)node;

        if (w->call && w->deadline < at)
            at = w->deadline;
    }
    return at;
}

static void end_late_waits(dibs_queue *q, dibsx_nsec now)
{
    dibsx_fifo_node *node = q->waiters.first;

    while (node) {
        dibs__waiter *w = (dibs__waiter *)(void *)node;

        node = node->next;
        if (!w->call || w->deadline > now)
            continue;
        dibs__hold_leave(q, w);
        w->rc = dibs__hold_fail_late(q, &w->err);
        dibs__hold_end_wait(w);
    }
}

/* Whether a loss is to be announced that no thread will come to. */
static bool is_untold(const dibs_queue *q)
{
    return q->lost.first && !q->calling && !q->all->lost_job.queued;
}

void dibs__tend_set(dibs_queue *q)
{
    dibsx_nsec now = dibsx_now(), soon = dibsx_after_ms(now, RETRY_MS);
    dibsx_nsec at = loss_at(q), tend_at = dibs__consumer_tend_at(&q->machine);
    dibsx_nsec until;

    if (tend_at < at)
        at = tend_at;
    if (late_at(q) < at)
        at = late_at(q);
    (void)dibs__ask_due(q, now, &until);
    if (until < at && !find_thread(q) && !q->job.queued)
        at = until > soon ? until : soon;
    if (is_untold(q) && soon < at)
        at = soon;
    if (dibs__queue_is_over(q))
        at = DIBSX_NEVER;
    dibs__timer_set(q->cl, &q->timer, at);
}

/* Ends what is over by now: deliveries beyond their limit, and the lane. */
static void end_late(dibs_queue *q, dibsx_nsec now)
{
    dibs__lane_item *lane = q->machine.first;

    while (lane) {
        dibs_item *item = item_of(lane);

        lane = lane->next;
        if (atomic_load(&item->limit_until) <= now &&
            item->state == DIBS__ITEM_HELD)
            dibs__hold_lose(item);
    }
    dibs__consumer_look(&q->machine, now);
    if (q->machine.state == DIBS__LANE_ENDED && q->life)
        dibs__hold_lose_all(q);
}

/* Thread: the keeper. */
void dibs__tend_fire(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    dibs_queue *q = queue_of_timer(timer);

    end_late(q, now);
    end_late_waits(q, now);
    if (is_untold(q))
        (void)dibs__worker_add(cl, &q->all->lost_job);
    dibs__ask_pass_on(q);
    if (dibs__consumer_tend_at(&q->machine) > now)
        dibs__tend_set(q);
    else if (dibs__worker_add(cl, &q->all->tend_job))
        dibs__timer_set(cl, timer, loss_at(q));
    else
        dibs__timer_set(cl, timer, dibsx_after_ms(now, RETRY_MS));
}

typedef struct tends {
    dibs__tend items[TENDS];
    char names[TENDS][DIBS_NAME_MAX + 1];
    dibs_queue *queues[TENDS];
    size_t count;
    dibsx_nsec sent_at;
    int64_t least_ms; /* the shortest ttl of all lanes, also of those not due */
} tends;

/* All that are due soon go with the first one that is. The others wait for this step
 * if they become due meanwhile. */
static void collect_tends(dibs__queues *all, tends *t, dibsx_nsec now)
{
    bool due = false;

    t->count = 0;
    t->sent_at = now;
    t->least_ms = INT64_MAX;
    for (dibs_queue *q = all->first; q; q = q->next) {
        dibsx_nsec at = dibs__consumer_tend_at(&q->machine);
        int64_t ttl_ms = q->machine.ttl_ms;

        end_late(q, now);
        if (q->machine.state != DIBS__LANE_OPEN || at == DIBSX_NEVER ||
            dibs__queue_is_over(q))
            continue;
        if (ttl_ms < t->least_ms)
            t->least_ms = ttl_ms;
        if (t->count == TENDS ||
            at > dibsx_after_ms(now, ttl_ms / 3 / TOGETHER_PART))
            continue;
        due = due || at <= now;
        memcpy(t->names[t->count], q->name, sizeof(q->name));
        t->queues[t->count] = q;
        t->items[t->count] = (dibs__tend){.queue = t->names[t->count],
                                          .lane = q->machine.lane,
                                          .span_ms = ttl_ms};
        t->count++;
    }
    if (!due)
        t->count = 0;
    for (size_t i = 0; i < t->count; i++)
        dibs__consumer_tend(&t->queues[i]->machine, now);
}

/* One that was freed meanwhile is not in the list any more. */
static dibs_queue *find_queue(dibs__queues *all, const dibs_queue *wanted)
{
    dibs_queue *q = all->first;

    while (q && q != wanted)
        q = q->next;
    return q;
}

static void take_tend(dibs__queues *all, dibs_queue *q, const dibs__tend *item,
                      dibs_status rc, dibsx_nsec sent_at)
{
    q = find_queue(all, q);
    if (!q || q->machine.lane != item->lane)
        return;
    dibs__consumer_tended(&q->machine, sent_at, dibsx_now(),
                          rc == DIBS_OK ? item->rc : rc);
    if (q->machine.state == DIBS__LANE_ENDED)
        dibs__hold_lose_all(q);
    dibs__hold_publish(q);
}

/* Locks: cl->mutex, let go meanwhile. */
static void send_tends(dibs_client *cl, dibs__queues *all, tends *t)
{
    dibsx_nsec deadline = dibs__client_deadline(cl, t->sent_at);
    dibsx_nsec end = dibsx_after_ms(t->sent_at, t->least_ms / 3);
    dibs_status rc;

    if (end < deadline)
        deadline = end;
    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, NULL);
    if (rc == DIBS_OK)
        rc = cl->st->ops->queue->tend(cl->st, t->items, t->count, deadline,
                                      NULL);
    pthread_mutex_lock(&cl->mutex);
    for (size_t i = 0; i < t->count; i++)
        take_tend(all, t->queues[i], &t->items[i], rc, t->sent_at);
}

/* Thread: a worker. */
void dibs__tend_run(dibs_client *cl, dibs__job *job)
{
    dibs__queues *all =
        (dibs__queues *)(void *)((char *)job -
                                 offsetof(dibs__queues, tend_job));
    tends t;

    if (all->tending)
        return;
    all->tending = true;
    for (collect_tends(all, &t, dibsx_now()); t.count > 0;
         collect_tends(all, &t, dibsx_now()))
        send_tends(cl, all, &t);
    all->tending = false;
    for (dibs_queue *q = all->first; q; q = q->next) {
        dibs__tend_set(q);
        if (!dibs__queue_is_over(q))
            dibs__ask_pass_on(q);
    }
    pthread_cond_broadcast(&cl->over);
}

/* Locks: cl->mutex, let go for the callback. */
static void tell_loss(dibs_queue *q, dibs_item *item)
{
    dibs_client *cl = q->cl;
    bool tells = !item->freed && !item->told && !q->freed;

    item->told = true;
    pthread_mutex_unlock(&cl->mutex);
    if (tells) {
        dibs__log(cl, DIBS_LOG_WARN, "queue",
                  "lost the delivery of item %llu of %s",
                  (unsigned long long)item->lane.token.id,
                  dibs__name_short(cl, q->name));
        q->opts.on_lost(item, q->opts.arg);
    }
    pthread_mutex_lock(&cl->mutex);
    q->calling = false;
    (void)dibs__item_unref(item);
    pthread_cond_broadcast(&cl->over);
}

/* A queue whose loss no thread announces yet; NULL: none. */
static dibs_queue *find_lost(dibs__queues *all)
{
    dibs_queue *q = all->first;

    while (q && (q->calling || !q->lost.first))
        q = q->next;
    return q;
}

/* Thread: a worker. A callback that takes its time delays those of its queue alone: the
 * job is added again for the others. */
void dibs__tend_tell(dibs_client *cl, dibs__job *job)
{
    dibs__queues *all =
        (dibs__queues *)(void *)((char *)job -
                                 offsetof(dibs__queues, lost_job));
    dibs_queue *q;

    while ((q = find_lost(all)) != NULL) {
        q->calling = true;
        if (find_lost(all))
            (void)dibs__worker_add(cl, job);
        tell_loss(q, dibs__item_of_node(dibsx_fifo_pop(&q->lost)));
    }
}
