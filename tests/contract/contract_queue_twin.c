/* contract_queue_twin.c - queues: the rule has several renderings, and each does what the
 * embedded store does, whose steps are those of store/deliver.c.
 *
 * Nothing here becomes due while the test runs, so it does not rest on time. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

#include "base/rand.h"
#include "seed.h"

enum {
    STEPS = 200,
    LANES = 4,
    PUSHERS = 2,
    FEW = 3,
    HAD_MAX = 64,
    NUMBERS_MAX = 8192,
    FAR_MS = 3600000
};

/* A delivery at both stores. */
typedef struct pair {
    dibs__token token[2];
} pair;

typedef struct twin_lane {
    uint64_t lane, number;
    uint64_t stamp[2];
    const char *as;
    dibs__reserve last; /* the request, to be sent again */
    pair settled[FEW], heard;
    dibs__settle_verb verbs[FEW];
    int64_t ms[FEW];
    pair had[HAD_MAX];
    size_t had_count;
} twin_lane;

typedef struct got {
    dibs__token token;
    uint32_t lost;
    int32_t priority;
    bool limited;
    size_t len;
    char data[16]; /* the beginning */
} got;

typedef struct answer {
    got items[TAKEN_MAX];
    size_t count;
} answer;

/* A number that both stores have drawn, each its own. `of` is the lane of a stamp, and the
 * item of a fence where that rises for each item alone (store/queue.h): others may have
 * the same number. */
typedef struct drawn {
    enum { AN_ID, A_FENCE, A_STAMP } what;
    uint64_t of[2], number[2];
} drawn;

typedef struct twin {
    contract *t;
    dibs__store *st[2];
    dibsx_prng prng;
    drawn numbers[NUMBERS_MAX];
    size_t count;
    twin_lane lanes[LANES];
    struct {
        uint64_t lane, number;
    } pushers[PUSHERS];
    dibs__push_item items[FEW]; /* of the last push */
    size_t pushed;
    answer answers[2];
    bool
        plain; /* mostly plain items and acks, which have scripts of their own */
} twin;

static uint64_t below(twin *tw, uint64_t end)
{
    return dibsx_prng_below(&tw->prng, end);
}

/* Lanes of a seed are always the same ones, whatever a store orders by them. */
static uint64_t draw_lane(twin *tw)
{
    return (dibsx_prng_next(&tw->prng) >> 11) | 1;
}

/* Ids, fences and stamps differ, but each of one store is one of the other. */
static void match_drawn(twin *tw, drawn new)
{
    for (size_t i = 0; i < tw->count; i++) {
        const drawn *old = &tw->numbers[i];

        if (old->what != new.what || old->of[0] != new.of[0] ||
            old->of[1] != new.of[1])
            continue;
        if (old->number[0] == new.number[0] ||
            old->number[1] == new.number[1]) {
            assert_int_equal(old->number[0], new.number[0]);
            assert_int_equal(old->number[1], new.number[1]);
            return;
        }
    }
    assert_true(tw->count < NUMBERS_MAX);
    tw->numbers[tw->count++] = new;
}

static void match_ids(twin *tw, uint64_t here, uint64_t there)
{
    match_drawn(tw, (drawn){.what = AN_ID, .number = {here, there}});
}

static void match_fences(twin *tw, const dibs__token *a, const dibs__token *b)
{
    bool of_item = strncmp(tw->st[0]->ops->scheme, "postgres", 8) == 0;

    match_drawn(tw, (drawn){.what = A_FENCE,
                            .of = {of_item ? a->id : 0, of_item ? b->id : 0},
                            .number = {a->fence, b->fence}});
}

static void
match_stamps(twin *tw, const twin_lane *ln, uint64_t here, uint64_t there)
{
    match_drawn(tw, (drawn){.what = A_STAMP,
                            .of = {ln->lane, ln->lane},
                            .number = {here, there}});
}

static void match_status(const char *what, const dibs_status rc[2])
{
    if (rc[0] == rc[1])
        return;
    /* One that did not answer in time. */
    for (size_t i = 0; i < 2; i++)
        IN_TIME(rc[i] != DIBS_UNAVAIL && rc[i] != DIBS_UNKNOWN);
    fail_msg("%s: %s here, %s there", what, dibs_status_name(rc[0]),
             dibs_status_name(rc[1]));
}

/* ---- pushes */

static dibs__push_item any_item(twin *tw)
{
    static const char *const names[] = {"a", "b", "c"};
    static const char *const workers[] = {"anna", "bert", "carl"};
    static const char data[2000] = "0123456789abcde";
    dibs__push_item item = {.data = data,
                            .len = below(tw, 16),
                            .to = "",
                            .dedup = ""};

    if (below(tw, tw->plain ? 16 : 2) != 0)
        return item;
    if (below(tw, 3) == 0)
        item.len = sizeof(data); /* not kept with the plain ones */
    item.priority = below(tw, 2) ? (int32_t)below(tw, 5) - 2 : 0;
    item.tries = below(tw, 4) == 0 ? 1 + (uint32_t)below(tw, 2) : 0;
    item.delay_ms = below(tw, 6) == 0 ? FAR_MS : 0;
    if (below(tw, 3) == 0)
        item.to = workers[below(tw, 3)];
    if (below(tw, 3) == 0) {
        item.dedup = names[below(tw, 3)];
        item.dedup_ms = below(tw, 8) == 0 ? FAR_MS : 0;
    }
    return item;
}

static void push_both(twin *tw)
{
    size_t who = below(tw, PUSHERS);
    bool again = below(tw, 6) == 0 && tw->pushers[who].number > 0;
    dibs__push_item items[2][FEW];
    dibs_status rc[2];

    if (!again) {
        tw->pushers[who].number += below(tw, 30) == 0 ? 2 : 1;
        tw->pushed = 1 + below(tw, FEW);
        for (size_t i = 0; i < tw->pushed; i++)
            tw->items[i] = any_item(tw);
    }
    for (size_t s = 0; s < 2; s++) {
        dibs__push push = {.queue = tw->t->name,
                           .lane = tw->pushers[who].lane,
                           .number = tw->pushers[who].number,
                           .items = items[s],
                           .count = tw->pushed};
        dibs_error err = {0};

        memcpy(items[s], tw->items, sizeof(tw->items));
        rc[s] = tw->st[s]->ops->queue->push(tw->st[s], &push, contract_soon(),
                                            &err);
    }
    match_status("push", rc);
    for (size_t i = 0; i < tw->pushed && rc[0] == DIBS_OK; i++) {
        assert_int_equal(items[0][i].duplicate, items[1][i].duplicate);
        match_ids(tw, items[0][i].id, items[1][i].id);
    }
    if (rc[0] == DIBS_LOST) {
        tw->pushers[who].lane = draw_lane(tw);
        tw->pushers[who].number = 0;
    }
}

/* ---- reserves */

static void note_delivery(const dibs__delivery *delivery, void *arg)
{
    answer *out = arg;
    got *item = &out->items[out->count++];

    assert_true(out->count < TAKEN_MAX);
    memset(item, 0, sizeof(*item));
    item->token = delivery->token;
    item->lost = delivery->lost;
    item->priority = delivery->priority;
    item->limited = delivery->limit_ms > 0;
    item->len = delivery->len;
    memcpy(item->data, delivery->data,
           item->len < sizeof(item->data) ? item->len : sizeof(item->data) - 1);
}

static void match_answers(twin *tw, twin_lane *ln)
{
    const answer *a = &tw->answers[0], *b = &tw->answers[1];

    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const got *x = &a->items[i], *y = &b->items[i];

        match_ids(tw, x->token.id, y->token.id);
        match_fences(tw, &x->token, &y->token);
        assert_int_equal(x->token.attempt, y->token.attempt);
        assert_int_equal(x->lost, y->lost);
        assert_int_equal(x->priority, y->priority);
        assert_int_equal(x->limited, y->limited);
        assert_int_equal(x->len, y->len);
        assert_string_equal(x->data, y->data);
        ln->had[ln->had_count % HAD_MAX].token[0] = x->token;
        ln->had[ln->had_count++ % HAD_MAX].token[1] = y->token;
    }
}

/* Sends the request to both, each with its own tokens. */
static void send_both(twin *tw, twin_lane *ln)
{
    dibs__settlement settle[2][FEW];
    dibs__reserve ask[2];
    dibs_status rc[2];

    for (size_t s = 0; s < 2; s++) {
        dibs_error err = {0};

        ask[s] = ln->last;
        ask[s].seen = ln->number == 1 ? 0 : ln->stamp[s];
        ask[s].settle = settle[s];
        ask[s].heard = &ln->heard.token[s];
        for (size_t i = 0; i < ask[s].settle_count; i++)
            settle[s][i] = (dibs__settlement){.verb = ln->verbs[i],
                                              .token = ln->settled[i].token[s],
                                              .ms = ln->ms[i],
                                              .reason = "why"};
        tw->answers[s].count = 0;
        rc[s] = tw->st[s]->ops->queue->reserve(tw->st[s], &ask[s],
                                               contract_soon(), note_delivery,
                                               &tw->answers[s], &err);
    }
    match_status("reserve", rc);
    if (rc[0] != DIBS_OK) {
        assert_status(rc[0], DIBS_LOST);
        ln->lane = draw_lane(tw);
        ln->number = ln->had_count = 0;
        return;
    }
    match_stamps(tw, ln, ask[0].stamp, ask[1].stamp);
    assert_int_equal(ask[0].due_ms < 0, ask[1].due_ms < 0);
    for (size_t i = 0; i < ln->last.settle_count; i++) {
        const dibs_status one[2] = {settle[0][i].rc, settle[1][i].rc};

        match_status("settle", one);
    }
    match_answers(tw, ln);
    if (below(tw, 5) == 0) /* The answer was lost. */
        send_both(tw, ln);
    ln->stamp[0] = ask[0].stamp;
    ln->stamp[1] = ask[1].stamp;
}

/* Mostly acks; of what the lane has, or had. */
static void choose_settlements(twin *tw, twin_lane *ln)
{
    static const dibs__settle_verb verbs[] = {
        DIBS__ITEM_ACK,  DIBS__ITEM_ACK,     DIBS__ITEM_NACK,  DIBS__ITEM_NACK,
        DIBS__ITEM_DEAD, DIBS__ITEM_UNBEGUN, DIBS__ITEM_EXTEND};
    size_t known = ln->had_count < HAD_MAX ? ln->had_count : HAD_MAX;
    size_t latest = known < 4 ? known : 4;
    bool plain = below(tw, tw->plain ? 16 : 2) != 0;

    ln->last.settle_count = known == 0 ? 0 : below(tw, FEW + 1);
    for (size_t i = 0; i < ln->last.settle_count; i++) {
        ln->settled[i] =
            ln->had[(ln->had_count - 1 - below(tw, latest)) % HAD_MAX];
        ln->verbs[i] = plain ? DIBS__ITEM_ACK
                             : verbs[below(tw, sizeof(verbs) / sizeof(*verbs))];
        ln->ms[i] = below(tw, 3) == 0 ? FAR_MS : 0;
    }
}

static void reserve_both(twin *tw)
{
    size_t who = below(tw, LANES);
    twin_lane *ln = &tw->lanes[who];

    ln->number++;
    ln->last = (dibs__reserve){.queue = tw->t->name,
                               .lane = ln->lane,
                               .number = ln->number,
                               .span_ms = FAR_MS,
                               .as = ln->as};
    if (ln->number > 1) {
        ln->last.want = (uint32_t)below(tw, 4);
        ln->last.wait = below(tw, 2) == 0;
        ln->last.hands = (uint32_t)below(tw, 3);
        ln->last.limit_ms = below(tw, 6) == 0 ? FAR_MS : 0;
        choose_settlements(tw, ln);
        if (ln->had_count > 0 && below(tw, 6) == 0) {
            ln->heard = ln->had[(ln->had_count - 1) % HAD_MAX];
            ln->last.heard_count = 1;
        }
        if (below(tw, 40) == 0)
            ln->number = ++ln->last.number; /* a gap */
    }
    send_both(tw, ln);
}

/* ---- the others */

static void leave_both(twin *tw)
{
    twin_lane *ln = &tw->lanes[below(tw, LANES)];

    for (size_t s = 0; s < 2; s++)
        CHECK(DIBS_OK,
              tw->st[s]->ops->queue->leave(tw->st[s], tw->t->name, ln->lane,
                                           contract_soon(), err));
}

static void tend_both(twin *tw)
{
    twin_lane *ln = &tw->lanes[below(tw, LANES)];
    dibs__tend items[2];

    for (size_t s = 0; s < 2; s++) {
        items[s] = (dibs__tend){.queue = tw->t->name,
                                .lane = ln->lane,
                                .span_ms = FAR_MS};
        CHECK(DIBS_OK, tw->st[s]->ops->queue->tend(tw->st[s], &items[s], 1,
                                                   contract_soon(), err));
    }
    match_status("tend", (dibs_status[]){items[0].rc, items[1].rc});
    assert_int_equal(items[0].ready, items[1].ready);
}

static void set_both(twin *tw)
{
    static const uint32_t all[] = {DIBS__SET_PAUSED, DIBS__SET_SERIAL,
                                   DIBS__SET_CAP,    DIBS__SET_TRIES,
                                   DIBS__SET_DEADS,  DIBS__SET_LOST_MAX};
    uint32_t fields = all[below(tw, sizeof(all) / sizeof(*all))];
    /* After two losses an item is delayed for some seconds. */
    dibs__queue_conf conf = {.paused = below(tw, 3) == 0,
                             .serial = below(tw, 3) == 0,
                             .cap = (uint32_t)below(tw, 3) * 20,
                             .tries = (uint32_t)below(tw, 4),
                             .deads = (uint32_t)below(tw, 6),
                             .lost_max = 1 + (uint32_t)below(tw, 2)};

    for (size_t s = 0; s < 2; s++)
        CHECK(DIBS_OK,
              tw->st[s]->ops->queue_admin->set(tw->st[s], tw->t->name, fields,
                                               &conf, contract_soon(), err));
}

static void purge_both(twin *tw)
{
    uint32_t places = 1u << below(tw, 4);
    size_t purged[2];

    for (size_t s = 0; s < 2; s++)
        CHECK(DIBS_OK, tw->st[s]->ops->queue_admin->purge(
                           tw->st[s], tw->t->name, places, DIBS__PURGE_MAX,
                           contract_soon(), &purged[s], err));
    assert_int_equal(purged[0], purged[1]);
}

static void redrive_both(twin *tw)
{
    size_t redriven[2], max = 1 + below(tw, 3);
    dibs_status rc[2];

    for (size_t s = 0; s < 2; s++) {
        dibs_error err = {0};

        rc[s] = tw->st[s]->ops->queue_admin->redrive(tw->st[s], tw->t->name, 0,
                                                     max, contract_soon(),
                                                     &redriven[s], &err);
    }
    match_status("redrive", rc);
    assert_int_equal(redriven[0], redriven[1]);
}

typedef struct seen {
    dibs__item_view item[256];
    size_t count;
} seen;

static bool note_view(const dibs__item_view *item, void *arg)
{
    seen *out = arg;

    out->item[out->count] = *item;
    return ++out->count < 256;
}

static void match_place(twin *tw, dibs__item_place place)
{
    static seen all[2];

    for (size_t s = 0; s < 2; s++) {
        all[s].count = 0;
        CHECK(DIBS_OK,
              tw->st[s]->ops->queue_admin->peek(tw->st[s], tw->t->name, place,
                                                0, 256, contract_soon(),
                                                note_view, &all[s], err));
    }
    assert_int_equal(all[0].count, all[1].count);
    for (size_t i = 0; i < all[0].count; i++) {
        const dibs__item_view *a = &all[0].item[i], *b = &all[1].item[i];

        if (place != DIBS__PLACE_DEAD) /* redriven ones are new here */
            match_ids(tw, a->id, b->id);
        assert_int_equal(a->priority, b->priority);
        assert_int_equal(a->attempts, b->attempts);
        assert_int_equal(a->lost, b->lost);
        assert_int_equal(a->lane, b->lane);
        assert_int_equal(a->len, b->len);
        assert_string_equal(a->to, b->to);
        assert_string_equal(a->dedup, b->dedup);
        assert_string_equal(a->reason, b->reason);
    }
}

static void match_stats(const dibs__queue_stats *a, const dibs__queue_stats *b)
{
    assert_int_equal(a->conf.paused, b->conf.paused);
    assert_int_equal(a->conf.serial, b->conf.serial);
    assert_int_equal(a->conf.cap, b->conf.cap);
    assert_int_equal(a->conf.tries, b->conf.tries);
    assert_int_equal(a->conf.deads, b->conf.deads);
    assert_int_equal(a->conf.lost_max, b->conf.lost_max);
    assert_int_equal(a->ready, b->ready);
    assert_int_equal(a->later, b->later);
    assert_int_equal(a->out, b->out);
    assert_int_equal(a->dead, b->dead);
    assert_int_equal(a->lanes, b->lanes);
    assert_int_equal(a->waiting, b->waiting);
    assert_int_equal(a->pushed, b->pushed);
    assert_int_equal(a->delivered, b->delivered);
    assert_int_equal(a->acked, b->acked);
    assert_int_equal(a->nacked, b->nacked);
    assert_int_equal(a->lost, b->lost);
    assert_int_equal(a->died, b->died);
    assert_int_equal(a->dropped, b->dropped);
    assert_int_equal(a->purged, b->purged);
}

/* The oldest is as old as the clock of its store says. */
static void match_stores(twin *tw)
{
    dibs__queue_stats stats[2];

    for (size_t s = 0; s < 2; s++)
        CHECK(DIBS_OK,
              tw->st[s]->ops->queue_admin->stats(tw->st[s], tw->t->name,
                                                 contract_soon(), &stats[s],
                                                 err));
    match_stats(&stats[0], &stats[1]);
    match_place(tw, DIBS__PLACE_READY);
    match_place(tw, DIBS__PLACE_LATER);
    match_place(tw, DIBS__PLACE_OUT);
    match_place(tw, DIBS__PLACE_DEAD);
}

static void do_as_twin(twin *tw)
{
    switch (below(tw, 40)) {
    case 0:
        leave_both(tw);
        break;
    case 1:
        if (!tw->plain)
            set_both(tw);
        break;
    case 2:
        if (below(tw, 3) == 0)
            purge_both(tw);
        break;
    case 3:
        redrive_both(tw);
        break;
    case 4:
        tend_both(tw);
        break;
    default:
        if (below(tw, 3) == 0)
            push_both(tw);
        else
            reserve_both(tw);
        break;
    }
}

static void live_as_twins(contract *t, bool plain)
{
    static const char *const workers[LANES] = {"anna", "bert", "", "anna"};
    static twin tw;

    memset(&tw, 0, sizeof(tw));
    tw.t = t;
    tw.plain = plain;
    tw.prng.state = seed_of_run() * 2 + plain;
    tw.st[0] = tw.t->st[0];
    CHECK(DIBS_OK,
          dibs__store_open("memory:", contract_soon(), &tw.st[1], err));
    for (size_t i = 0; i < LANES; i++) {
        tw.lanes[i].lane = draw_lane(&tw);
        tw.lanes[i].as = workers[i];
    }
    for (size_t i = 0; i < PUSHERS; i++)
        tw.pushers[i].lane = draw_lane(&tw);
    for (size_t s = 0; s < 2; s++)
        CHECK(DIBS_OK,
              tw.st[s]->ops->queue_admin->set(
                  tw.st[s], tw.t->name, DIBS__SET_LOST_MAX,
                  &(dibs__queue_conf){.lost_max = 2}, contract_soon(), err));
    for (size_t i = 0; i < STEPS; i++) {
        do_as_twin(&tw);
        if (i % 4 == 0)
            match_stores(&tw);
    }
    dibs__store_close(tw.st[1]);
}

static void every_store_has_the_same_rule(void **state)
{
    live_as_twins(*state, false);
}

static void every_store_has_the_same_rule_for_plain_items(void **state)
{
    live_as_twins(*state, true);
}

int contract_queue_twin(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(every_store_has_the_same_rule),
        CONTRACT_TEST(every_store_has_the_same_rule_for_plain_items),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
