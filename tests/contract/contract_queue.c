/* contract_queue.c - queues: order, delay, dedup ids, tokens, numbers, hand-over. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

#include "base/rand.h"

uint64_t queue_draw_lane(void)
{
    uint64_t bits;

    assert_true(dibsx_random(&bits, sizeof(bits)));
    return (bits >> 11) | 1;
}

lane queue_lane(contract *t, size_t handle)
{
    lane ln = {.t = t, .handle = handle};

    ln.ask = (dibs__reserve){.queue = t->name,
                             .lane = queue_draw_lane(),
                             .span_ms = LONG_MS,
                             .as = ""};
    return ln;
}

pusher queue_pusher(contract *t, size_t handle)
{
    pusher p = {.t = t, .handle = handle};

    p.item = (dibs__push_item){.to = "", .dedup = ""};
    p.push = (dibs__push){.queue = t->name, .lane = queue_draw_lane()};
    return p;
}

static void take_delivery(const dibs__delivery *delivery, void *arg)
{
    lane *ln = arg;
    taken *got = &ln->got[ln->count++];

    assert_true(ln->count < TAKEN_MAX);
    assert_true(delivery->len < sizeof(got->data));
    got->token = delivery->token;
    got->lost = delivery->lost;
    got->priority = delivery->priority;
    got->limit_ms = delivery->limit_ms;
    memcpy(got->data, delivery->data, delivery->len);
    got->data[delivery->len] = '\0';
}

dibs_status lane_send(lane *ln)
{
    dibs__store *st = ln->t->st[ln->handle];

    ln->count = 0;
    ln->ask.settle = ln->settle;
    return st->ops->queue->reserve(st, &ln->ask, contract_soon(), take_delivery,
                                   ln, &ln->err);
}

static dibs_status send_next(lane *ln)
{
    uint64_t seen = ln->ask.seen = ln->ask.stamp;
    dibs_status rc;

    ln->ask.number++;
    rc = lane_send(ln);
    if (rc != DIBS_OK && rc != DIBS_LOST)
        FAIL_OF(rc, "reserve: status %d: %s", (int)rc, ln->err.message);
    if (rc == DIBS_OK && ln->ask.number > 1)
        assert_true(ln->ask.stamp > seen);
    return rc;
}

void lane_open(lane *ln)
{
    ln->ask.stamp = 0;
    assert_status(send_next(ln), DIBS_OK);
    assert_int_equal(ln->count, 0);
    assert_true(ln->ask.stamp > 0);
}

dibs_status lane_next(lane *ln, uint32_t want, bool wait)
{
    dibs_status rc;

    ln->ask.want = want;
    ln->ask.wait = wait;
    rc = send_next(ln);
    ln->ask.settle_count = 0;
    return rc;
}

void lane_settle(lane *ln, dibs__settle_verb verb, dibs__token token,
                 int64_t ms, const char *reason)
{
    ln->settle[ln->ask.settle_count++] = (dibs__settlement){.verb = verb,
                                                            .token = token,
                                                            .ms = ms,
                                                            .reason = reason};
}

dibs_status lane_end(lane *ln, dibs__settle_verb verb, dibs__token token,
                     int64_t ms, const char *reason)
{
    lane_settle(ln, verb, token, ms, reason);
    assert_status(lane_next(ln, 0, false), DIBS_OK);
    return ln->settle[0].rc;
}

taken lane_take(lane *ln)
{
    assert_status(lane_next(ln, 1, false), DIBS_OK);
    assert_int_equal(ln->count, 1);
    return ln->got[0];
}

void lane_leave(lane *ln)
{
    dibs__store *st = ln->t->st[ln->handle];

    CHECK(DIBS_OK, st->ops->queue->leave(st, ln->ask.queue, ln->ask.lane,
                                         contract_soon(), err));
}

dibs_status pusher_send(pusher *p)
{
    dibs__store *st = p->t->st[p->handle];
    dibs_status rc;

    if (p->push.items == NULL) {
        p->push.items = &p->item;
        p->push.count = 1;
    }
    rc = st->ops->queue->push(st, &p->push, contract_soon(), &p->err);
    if (p->push.items == &p->item)
        p->push.items = NULL;
    return rc;
}

dibs_status push_text(pusher *p, const char *text)
{
    p->item.data = text;
    p->item.len = strlen(text);
    p->push.number++;
    return pusher_send(p);
}

uint64_t push_ok(pusher *p, const char *text)
{
    dibs_status rc = push_text(p, text);

    if (rc != DIBS_OK)
        FAIL_OF(rc, "push: status %d: %s", (int)rc, p->err.message);
    assert_true(p->item.id > 0);
    return p->item.id;
}

dibs__queue_stats queue_stats(contract *t)
{
    dibs__store *st = t->st[CONTRACT_HANDLES - 1];
    dibs__queue_stats stats;

    CHECK(DIBS_OK, st->ops->queue_admin->stats(st, t->name, contract_soon(),
                                               &stats, err));
    return stats;
}

void queue_set(contract *t, uint32_t fields, dibs__queue_conf conf)
{
    dibs__store *st = t->st[0];

    CHECK(DIBS_OK, st->ops->queue_admin->set(st, t->name, fields, &conf,
                                             contract_soon(), err));
}

static bool copy_view(const dibs__item_view *item, void *arg)
{
    queue_views *out = arg;

    out->item[out->count] = *item;
    snprintf(out->data[out->count], sizeof(out->data[0]), "%.*s",
             (int)item->len, (const char *)item->data);
    return ++out->count < VIEWS_MAX;
}

queue_views
queue_peek(contract *t, dibs__item_place place, size_t skip, size_t max)
{
    dibs__store *st = t->st[0];
    queue_views out = {.count = 0};

    CHECK(DIBS_OK,
          st->ops->queue_admin->peek(st, t->name, place, skip, max,
                                     contract_soon(), copy_view, &out, err));
    return out;
}

size_t queue_purge(contract *t, uint32_t places, size_t max)
{
    dibs__store *st = t->st[0];
    size_t purged = 0;

    CHECK(DIBS_OK, st->ops->queue_admin->purge(st, t->name, places, max,
                                               contract_soon(), &purged, err));
    return purged;
}

void queue_sleep(int64_t span_ms)
{
    contract_sleep_until(
        dibsx_after_ms(dibsx_now(), span_ms + CONTRACT_DRIFT_MS));
}

/* ---- order */

static void expect_order(lane *ln, const char *const *texts, size_t count)
{
    assert_status(lane_next(ln, DIBS__QUEUE_BATCH, false), DIBS_OK);
    assert_int_equal(ln->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(ln->got[i].data, texts[i]);
        if (i > 0)
            assert_true(ln->got[i].token.fence > ln->got[i - 1].token.fence);
    }
}

static void items_come_in_the_order_of_their_pushes(void **state)
{
    contract *t = *state;
    const char *const order[] = {"a", "b", "c"};
    pusher p = queue_pusher(t, 0), q = queue_pusher(t, 1);
    lane ln = queue_lane(t, 2);
    uint64_t first, second;

    first = push_ok(&p, "a");
    second = push_ok(&q, "b");
    assert_true(second > first);
    push_ok(&p, "c");
    lane_open(&ln);
    expect_order(&ln, order, 3);
    assert_int_equal(ln.got[0].token.id, first);
    assert_int_equal(ln.got[0].token.attempt, 1);
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    assert_int_equal(ln.count, 0);
}

static void a_batch_keeps_its_order(void **state)
{
    contract *t = *state;
    const char *const order[] = {"a", "b", "c"};
    dibs__push_item items[3];
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    for (size_t i = 0; i < 3; i++)
        items[i] = (dibs__push_item){.data = order[i],
                                     .len = 1,
                                     .to = "",
                                     .dedup = ""};
    p.push.items = items;
    p.push.count = 3;
    p.push.number = 1;
    assert_status(pusher_send(&p), DIBS_OK);
    assert_true(items[0].id < items[1].id && items[1].id < items[2].id);
    lane_open(&ln);
    expect_order(&ln, order, 3);
}

static void priority_holds_for_delayed_and_retried(void **state)
{
    contract *t = *state;
    const char *const order[] = {"high", "delayed", "plain", "late", "low"};
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    taken high;

    p.item.priority = -1;
    push_ok(&p, "low");
    p.item.priority = 0;
    push_ok(&p, "plain");
    p.item.priority = 5;
    push_ok(&p, "high");
    lane_open(&ln);
    high = lane_take(&ln);
    assert_string_equal(high.data, "high");
    p.item.priority = 1;
    p.item.delay_ms = 20;
    push_ok(&p, "delayed");
    p.item.priority = 0;
    push_ok(&p, "late");
    queue_sleep(20);
    assert_status(lane_end(&ln, DIBS__ITEM_NACK, high.token, 0, "again"),
                  DIBS_OK);
    expect_order(&ln, order, 5);
    assert_int_equal(ln.got[0].token.attempt, 2);
    assert_int_equal(ln.got[0].priority, 5);
}

/* It goes before what is younger; with a delay it goes behind what was ready then. */
static void a_returned_item_has_its_old_place(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    taken first;

    push_ok(&p, "a");
    push_ok(&p, "b");
    lane_open(&ln);
    first = lane_take(&ln);
    assert_status(lane_end(&ln, DIBS__ITEM_NACK, first.token, 0, NULL),
                  DIBS_OK);
    first = lane_take(&ln);
    assert_string_equal(first.data, "a");
    assert_status(lane_end(&ln, DIBS__ITEM_NACK, first.token, 20, NULL),
                  DIBS_OK);
    assert_true(queue_stats(t).later <= 1);
    first = lane_take(&ln);
    assert_string_equal(first.data, "b");
    queue_sleep(20);
    first = lane_take(&ln);
    assert_string_equal(first.data, "a");
    assert_int_equal(first.token.attempt, 3);
}

static void a_delayed_item_is_not_early(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    p.item.delay_ms = LONG_MS;
    push_ok(&p, "later");
    lane_open(&ln);
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    assert_int_equal(ln.count, 0);
    assert_true(ln.ask.due_ms > 0 && ln.ask.due_ms <= LONG_MS);
    assert_int_equal(queue_stats(t).later, 1);
    p.item.delay_ms = 20;
    push_ok(&p, "soon");
    assert_status(lane_next(&ln, 1, false), DIBS_OK);
    assert_true(ln.count == 1 || ln.ask.due_ms <= 20);
    queue_sleep(20);
    if (ln.count == 0)
        assert_string_equal(lane_take(&ln).data, "soon");
}

/* ---- pushes */

static void lost_push_reply_makes_one_item(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    uint64_t id = push_ok(&p, "once");
    char other[64];
    taken got;

    assert_status(pusher_send(&p), DIBS_OK);
    assert_int_equal(p.item.id, id);
    lane_open(&ln);
    got = lane_take(&ln);
    assert_int_equal(got.token.id, id);
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, got.token, 0, NULL), DIBS_OK);
    /* Also when it is done meanwhile. */
    assert_status(pusher_send(&p), DIBS_OK);
    assert_int_equal(p.item.id, id);
    assert_int_equal(queue_stats(t).ready, 0);
    p.push.number--;
    assert_status(pusher_send(&p), DIBS_LOST);
    p.push.number = 3;
    assert_status(pusher_send(&p), DIBS_LOST);
    p.push.lane = queue_draw_lane();
    assert_status(pusher_send(&p), DIBS_LOST);
    assert_int_equal(queue_stats(t).pushed, 1);
    contract_name(other, sizeof(other), "other");
    p.push.queue = other;
    assert_status(pusher_send(&p), DIBS_LOST);
}

static void duplicate_is_told(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0), q = queue_pusher(t, 1);
    lane ln = queue_lane(t, 0);
    uint64_t id;
    taken got;

    p.item.dedup = q.item.dedup = "order 42";
    id = push_ok(&p, "first");
    assert_false(p.item.duplicate);
    assert_int_equal(push_ok(&q, "second"), id);
    assert_true(q.item.duplicate);
    assert_status(pusher_send(&q), DIBS_OK);
    assert_true(q.item.duplicate);
    lane_open(&ln);
    got = lane_take(&ln);
    assert_string_equal(got.data, "first");
    push_ok(&q, "while it is out");
    assert_true(q.item.duplicate);
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, got.token, 0, NULL), DIBS_OK);
    assert_true(push_ok(&q, "anew") > id);
    assert_false(q.item.duplicate);
}

static void a_window_outlives_its_item(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    p.item.dedup = "windowed";
    p.item.dedup_ms = LONG_MS;
    push_ok(&p, "first");
    lane_open(&ln);
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, lane_take(&ln).token, 0, NULL),
                  DIBS_OK);
    push_ok(&p, "second");
    assert_true(p.item.duplicate);
    p.item.dedup = "short";
    p.item.dedup_ms = 1;
    push_ok(&p, "third");
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, lane_take(&ln).token, 0, NULL),
                  DIBS_OK);
    queue_sleep(1);
    push_ok(&p, "fourth");
    assert_false(p.item.duplicate);
}

static void a_batch_has_duplicates_of_its_own(void **state)
{
    contract *t = *state;
    dibs__push_item items[3];
    pusher p = queue_pusher(t, 0);

    for (size_t i = 0; i < 3; i++)
        items[i] = (dibs__push_item){.data = "x",
                                     .len = 1,
                                     .to = "",
                                     .dedup = i == 1 ? "" : "same"};
    p.push.items = items;
    p.push.count = 3;
    p.push.number = 1;
    queue_set(t, DIBS__SET_CAP, (dibs__queue_conf){.cap = 2});
    assert_status(pusher_send(&p), DIBS_OK);
    assert_true(items[2].duplicate && !items[0].duplicate);
    assert_int_equal(items[2].id, items[0].id);
    assert_int_equal(queue_stats(t).ready, 2);
}

static void a_full_queue_refuses_and_changes_nothing(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    taken got;

    queue_set(t, DIBS__SET_CAP, (dibs__queue_conf){.cap = 1});
    p.item.dedup = "";
    push_ok(&p, "a");
    p.item.dedup = "blocked";
    assert_status(push_text(&p, "b"), DIBS_FULL);
    assert_int_equal(queue_stats(t).ready, 1);
    lane_open(&ln);
    got = lane_take(&ln);
    assert_status(push_text(&p, "c"), DIBS_FULL);
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, got.token, 0, NULL), DIBS_OK);
    /* A late copy of a push that was refused makes nothing. */
    assert_status(pusher_send(&p), DIBS_FULL);
    assert_int_equal(queue_stats(t).ready, 0);
    /* A failed push does not block its id. */
    push_ok(&p, "d");
    assert_false(p.item.duplicate);
}

static void what_is_too_long_is_refused(void **state)
{
    contract *t = *state;
    static char large[DIBS__ITEM_MAX + 1];
    char name[DIBS__WORKER_MAX + 1];
    pusher p = queue_pusher(t, 0);

    p.push.number = 1;
    p.item.data = large;
    p.item.len = sizeof(large);
    assert_status(pusher_send(&p), DIBS_INVALID);
    p.item.len = 0;
    memset(name, 'w', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    p.item.to = name;
    assert_status(pusher_send(&p), DIBS_INVALID);
    p.item.to = "";
    name[DIBS__DEDUP_MAX + 1] = '\0';
    p.item.dedup = name;
    assert_status(pusher_send(&p), DIBS_INVALID);
    name[DIBS__DEDUP_MAX] = '\0';
    assert_status(pusher_send(&p), DIBS_OK);
}

static size_t large_len;

static void note_len(const dibs__delivery *delivery, void *arg)
{
    (void)arg;
    large_len = delivery->len;
}

static void the_largest_item_comes_whole(void **state)
{
    contract *t = *state;
    static char large[DIBS__ITEM_MAX];
    dibs__store *st = t->st[0];
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    memset(large, 'x', sizeof(large));
    p.push.number = 1;
    p.item.data = large;
    p.item.len = sizeof(large);
    assert_status(pusher_send(&p), DIBS_OK);
    lane_open(&ln);
    ln.ask.number = 2;
    ln.ask.seen = ln.ask.stamp;
    ln.ask.want = 1;
    CHECK(DIBS_OK, st->ops->queue->reserve(st, &ln.ask, contract_soon(),
                                           note_len, NULL, err));
    assert_int_equal(large_len, sizeof(large));
}

/* ---- tokens */

static void late_ack_is_refused(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0), b = queue_lane(t, 1);
    taken first, second;
    dibs__token wrong;

    push_ok(&p, "job");
    lane_open(&a);
    lane_open(&b);
    first = lane_take(&a);
    assert_status(lane_end(&b, DIBS__ITEM_ACK, first.token, 0, NULL),
                  DIBS_LOST);
    wrong = first.token;
    wrong.fence++;
    assert_status(lane_end(&a, DIBS__ITEM_ACK, wrong, 0, NULL), DIBS_LOST);
    wrong = first.token;
    wrong.attempt++;
    assert_status(lane_end(&a, DIBS__ITEM_DEAD, wrong, 0, NULL), DIBS_LOST);
    assert_status(lane_end(&a, DIBS__ITEM_NACK, first.token, 0, NULL), DIBS_OK);
    /* The same lane gets it again: the token before is stale all the same. */
    second = lane_take(&a);
    assert_int_equal(second.token.id, first.token.id);
    assert_true(second.token.fence > first.token.fence);
    assert_status(lane_end(&a, DIBS__ITEM_ACK, first.token, 0, NULL),
                  DIBS_LOST);
    assert_status(lane_end(&a, DIBS__ITEM_ACK, second.token, 0, NULL), DIBS_OK);
    assert_status(lane_end(&a, DIBS__ITEM_ACK, second.token, 0, NULL),
                  DIBS_LOST);
    assert_int_equal(queue_stats(t).acked, 1);
}

static void ack_after_redelivery_changes_nothing(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane dead = queue_lane(t, 0), b = queue_lane(t, 1);
    taken first, second;

    push_ok(&p, "job");
    lane_open(&dead);
    lane_open(&b);
    dead.ask.span_ms = contract_brief_ms(60);
    dead.ask.hands = 1;
    assert_status(lane_next(&dead, 1, false), DIBS_OK);
    first = dead.got[0];
    queue_sleep(dead.ask.span_ms);
    second = lane_take(&b);
    assert_int_equal(second.token.attempt, 2);
    assert_int_equal(second.lost, 1);
    lane_settle(&dead, DIBS__ITEM_ACK, first.token, 0, NULL);
    assert_status(lane_next(&dead, 0, false), DIBS_LOST);
    assert_status(lane_end(&b, DIBS__ITEM_ACK, second.token, 0, NULL), DIBS_OK);
    assert_int_equal(queue_stats(t).acked, 1);
    assert_int_equal(queue_stats(t).lost, 1);
}

static void a_lost_answer_is_given_again(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    uint64_t stamp;
    taken a, b;

    push_ok(&p, "a");
    push_ok(&p, "b");
    push_ok(&p, "c");
    lane_open(&ln);
    a = lane_take(&ln);
    lane_settle(&ln, DIBS__ITEM_ACK, a.token, 0, NULL);
    ln.ask.settle_count = 1;
    ln.ask.number++;
    ln.ask.seen = ln.ask.stamp;
    assert_status(lane_send(&ln), DIBS_OK);
    b = ln.got[0];
    ln.settle[0].rc = DIBS_INTERNAL;
    assert_status(lane_send(&ln), DIBS_OK);
    assert_int_equal(ln.settle[0].rc, DIBS_OK);
    assert_int_equal(ln.count, 1);
    assert_int_equal(ln.got[0].token.id, b.token.id);
    assert_int_equal(ln.got[0].token.fence, b.token.fence);
    assert_int_equal(ln.got[0].token.attempt, b.token.attempt);
    assert_string_equal(ln.got[0].data, "b");
    assert_int_equal(queue_stats(t).acked, 1);
    assert_int_equal(queue_stats(t).out, 1);
    stamp = ln.ask.stamp;
    ln.ask.settle_count = 0;
    ln.ask.number--;
    assert_status(lane_send(&ln), DIBS_LOST);
    ln.ask.number++;
    ln.ask.stamp = stamp;
    assert_string_equal(lane_take(&ln).data, "c");
}

static dibs_status settle_again(lane *ln, dibs__settle_verb verb)
{
    ln->ask.settle_count = 1;
    ln->settle[0].verb = verb;
    ln->settle[0].rc = DIBS_INTERNAL;
    return lane_send(ln);
}

/* What was settled in one way was not settled in another, whoever has the number. */
static void a_repeat_that_settles_otherwise_is_refused(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);

    for (dibs__settle_verb verb = 0; verb <= DIBS__ITEM_EXTEND; verb++)
        for (int lost = 0; lost < 2; lost++) {
            dibs_status rc = lost ? DIBS_LOST : DIBS_OK;
            lane ln = queue_lane(t, 0);
            taken got;

            push_ok(&p, "job");
            lane_open(&ln);
            got = lane_take(&ln);
            got.token.fence += (uint64_t)lost;
            assert_status(lane_end(&ln, verb, got.token, LONG_MS, NULL), rc);
            for (dibs__settle_verb other = 0; other <= DIBS__ITEM_EXTEND;
                 other++)
                assert_status(settle_again(&ln, other),
                              other == verb ? DIBS_OK : DIBS_INVALID);
            assert_status(settle_again(&ln, verb), DIBS_OK);
            assert_status(ln.settle[0].rc, rc);
            lane_leave(&ln);
        }
}

/* A lane that knows more than the store, or other things, has lost. */
static void a_gap_ends_the_lane(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0), b = queue_lane(t, 0), c = queue_lane(t, 0);
    uint64_t id = push_ok(&p, "job");
    dibs__queue_stats st;
    taken got;

    lane_open(&a);
    lane_take(&a);
    a.ask.number++;
    assert_status(lane_next(&a, 0, false), DIBS_LOST);
    assert_status(lane_next(&a, 0, false), DIBS_LOST);
    lane_open(&b);
    got = lane_take(&b);
    assert_int_equal(got.token.id, id);
    b.ask.stamp--;
    lane_settle(&b, DIBS__ITEM_ACK, got.token, 0, NULL);
    assert_status(lane_next(&b, 0, false), DIBS_LOST);
    lane_open(&c);
    queue_sleep(0);
    st = queue_stats(t);
    assert_int_equal(st.acked, 0);
    assert_int_equal(st.lost, 2);
    assert_int_equal(st.ready + st.later, 1);
    IN_TIME(st.later == 1); /* It is ready after a while. */
}

/* A store may have shorter ways for plain requests. */
static void plain_requests_have_no_other_rule(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__tend item;
    uint64_t id;
    taken got;

    push_ok(&p, "a");
    id = push_ok(&p, "b");
    assert_status(pusher_send(&p), DIBS_OK);
    assert_int_equal(p.item.id, id);
    assert_int_equal(queue_stats(t).pushed, 2);
    lane_open(&ln);
    got = lane_take(&ln);
    /* A lane that has an item is not shortened. */
    ln.ask.span_ms = 1;
    assert_status(lane_next(&ln, 0, false), DIBS_OK);
    queue_sleep(1);
    item = (dibs__tend){.queue = t->name, .lane = ln.ask.lane, .span_ms = 1};
    CHECK(DIBS_OK,
          t->st[0]->ops->queue->tend(t->st[0], &item, 1, contract_soon(), err));
    assert_status(item.rc, DIBS_OK);
    /* An ack that saw another stamp is of another history. */
    ln.ask.stamp--;
    lane_settle(&ln, DIBS__ITEM_ACK, got.token, 0, NULL);
    assert_status(lane_next(&ln, 0, false), DIBS_LOST);
    assert_int_equal(queue_stats(t).acked, 0);
}

static void the_first_number_takes_nothing(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0), other = queue_lane(t, 0);

    push_ok(&p, "job");
    ln.ask.want = 1;
    ln.ask.wait = true;
    lane_open(&ln);
    assert_int_equal(queue_stats(t).ready, 1);
    assert_int_equal(queue_stats(t).waiting, 0);
    assert_status(lane_send(&ln), DIBS_OK);
    assert_int_equal(ln.count, 0);
    other.ask.number = 1;
    assert_status(lane_next(&other, 1, false), DIBS_LOST);
    assert_int_equal(queue_stats(t).out, 0);
}

/* ---- hand-over */

static void a_push_hands_over_to_a_lane_that_waits(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 1);
    actor bell = contract_actor(t, 1);
    uint64_t id, fence = 0;

    lane_open(&ln);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    assert_int_equal(ln.count, 0);
    assert_int_equal(queue_stats(t).waiting, 1);
    id = push_ok(&p, "job");
    assert_int_equal(queue_stats(t).out, 1);
    assert_int_equal(queue_stats(t).waiting, 0);
    dibs__lane_address(ln.ask.lane, bell.owner);
    IN_TIME(actor_notified(&bell, DIBS__NOTICE_ITEMS, &fence));
    /* A repeat tells it, and keeps it unheard. */
    assert_status(lane_send(&ln), DIBS_OK);
    assert_int_equal(ln.count, 1);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    assert_int_equal(ln.count, 1);
    assert_int_equal(ln.got[0].token.id, id);
    assert_int_equal(ln.got[0].token.fence, fence);
    assert_status(lane_send(&ln), DIBS_OK);
    assert_int_equal(ln.count, 1);
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, ln.got[0].token, 0, NULL),
                  DIBS_OK);
}

/* By its whole token: an item that was handed over anew is not heard of yet. */
static void what_was_heard_is_not_told_again(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);
    dibs__token heard;

    lane_open(&ln);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    push_ok(&p, "job");
    assert_status(lane_send(&ln), DIBS_OK);
    heard = ln.got[0].token;
    ln.ask.heard = &heard;
    ln.ask.heard_count = 1;
    heard.fence--;
    assert_status(lane_send(&ln), DIBS_OK);
    assert_int_equal(ln.count, 1);
    heard.fence++;
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    assert_int_equal(ln.count, 0);
    ln.ask.heard_count = 0;
    assert_status(lane_end(&ln, DIBS__ITEM_ACK, heard, 0, NULL), DIBS_OK);
}

static void the_lane_that_asked_last_is_served(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane a = queue_lane(t, 0), b = queue_lane(t, 1);

    lane_open(&a);
    lane_open(&b);
    assert_status(lane_next(&a, 1, true), DIBS_OK);
    queue_sleep(1);
    assert_status(lane_next(&b, 1, true), DIBS_OK);
    push_ok(&p, "one");
    assert_status(lane_next(&a, 1, true), DIBS_OK);
    assert_int_equal(a.count, 0);
    assert_status(lane_next(&b, 0, false), DIBS_OK);
    assert_int_equal(b.count, 1);
    push_ok(&p, "two");
    assert_status(lane_next(&a, 0, false), DIBS_OK);
    assert_int_equal(a.count, 1);
}

/* As many as it wants: a client shares them out among its threads. */
static void a_lane_is_handed_what_it_wants(void **state)
{
    contract *t = *state;
    dibs__push_item items[3];
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 0);

    lane_open(&ln);
    assert_status(lane_next(&ln, 2, true), DIBS_OK);
    for (size_t i = 0; i < 3; i++)
        items[i] =
            (dibs__push_item){.data = "x", .len = 1, .to = "", .dedup = ""};
    p.push.items = items;
    p.push.count = 3;
    p.push.number = 1;
    assert_status(pusher_send(&p), DIBS_OK);
    assert_int_equal(queue_stats(t).out, 2);
    assert_int_equal(queue_stats(t).ready, 1);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    assert_int_equal(ln.count, 2);
}

/* Of many that wait one is told, so that a push costs one ask and no more. */
static void one_push_one_wake(void **state)
{
    enum { WAITERS = 200 };
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    static actor bells[WAITERS];
    uint64_t fence;
    int told = 0;

    for (size_t i = 0; i < WAITERS; i++) {
        lane ln = queue_lane(t, 1);

        ln.ask.span_ms = pace_ms(LONG_MS);
        bells[i] = contract_actor(t, 1);
        dibs__lane_address(ln.ask.lane, bells[i].owner);
        lane_open(&ln);
        if (i == WAITERS - 1)
            queue_sleep(1); /* it asks last for certain */
        assert_status(lane_next(&ln, 1, true), DIBS_OK);
    }
    push_ok(&p, "one");
    IN_TIME(actor_notified(&bells[WAITERS - 1], DIBS__NOTICE_ITEMS, &fence));
    assert_true(fence > p.item.id);
    actor_expect_quiet(&bells[WAITERS - 1], DIBS__NOTICE_ITEMS);
    for (size_t i = 0; i < WAITERS - 1; i++)
        told += actor_hears(&bells[i], DIBS__NOTICE_ITEMS);
    assert_int_equal(told, 0);
    IN_TIME(queue_stats(t).waiting == WAITERS - 1);
}

/* A delayed item that is due before all others is told to a lane that waits. */
static void a_waiter_is_told_of_an_earlier_delay(void **state)
{
    contract *t = *state;
    pusher p = queue_pusher(t, 0);
    lane ln = queue_lane(t, 1);
    actor bell = contract_actor(t, 1);
    uint64_t fence = 1;

    dibs__lane_address(ln.ask.lane, bell.owner);
    lane_open(&ln);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    assert_int_equal(ln.ask.due_ms, -1);
    p.item.delay_ms = LONG_MS;
    push_ok(&p, "later");
    IN_TIME(actor_notified(&bell, DIBS__NOTICE_ITEMS, &fence));
    assert_int_equal(fence, 0);
    assert_status(lane_next(&ln, 1, true), DIBS_OK);
    IN_TIME(ln.ask.due_ms > LONG_MS / 2);
    p.item.delay_ms = 2 * LONG_MS;
    push_ok(&p, "much later");
    actor_expect_quiet(&bell, DIBS__NOTICE_ITEMS);
}

int contract_queue(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(items_come_in_the_order_of_their_pushes),
        CONTRACT_TEST(a_batch_keeps_its_order),
        CONTRACT_TEST(priority_holds_for_delayed_and_retried),
        CONTRACT_TEST(a_returned_item_has_its_old_place),
        CONTRACT_TEST(a_delayed_item_is_not_early),
        CONTRACT_TEST(lost_push_reply_makes_one_item),
        CONTRACT_TEST(duplicate_is_told),
        CONTRACT_TEST(a_window_outlives_its_item),
        CONTRACT_TEST(a_batch_has_duplicates_of_its_own),
        CONTRACT_TEST(a_full_queue_refuses_and_changes_nothing),
        CONTRACT_TEST(what_is_too_long_is_refused),
        CONTRACT_TEST(the_largest_item_comes_whole),
        CONTRACT_TEST(late_ack_is_refused),
        CONTRACT_TEST(ack_after_redelivery_changes_nothing),
        CONTRACT_TEST(a_lost_answer_is_given_again),
        CONTRACT_TEST(a_repeat_that_settles_otherwise_is_refused),
        CONTRACT_TEST(a_gap_ends_the_lane),
        CONTRACT_TEST(plain_requests_have_no_other_rule),
        CONTRACT_TEST(the_first_number_takes_nothing),
        CONTRACT_TEST(a_push_hands_over_to_a_lane_that_waits),
        CONTRACT_TEST(what_was_heard_is_not_told_again),
        CONTRACT_TEST(the_lane_that_asked_last_is_served),
        CONTRACT_TEST(a_lane_is_handed_what_it_wants),
        CONTRACT_TEST(one_push_one_wake),
        CONTRACT_TEST(a_waiter_is_told_of_an_earlier_delay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
