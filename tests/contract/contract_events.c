/* contract_events.c - logs as events need them: an entry is appended once, a reader can
 * see what it missed, limits and trims leave the newest, and listeners are told. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PLENTY = 1000, MANY = 60 };

static dibs__append entry_of(const contract *t, uint64_t lane, uint64_t number)
{
    return (dibs__append){.topic = t->name,
                          .lane = lane,
                          .number = number,
                          .data = "0123456789",
                          .len = 10,
                          .keep = PLENTY};
}

static dibs_status
append(contract *t, size_t handle, const dibs__append *what, uint64_t *position)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};

    return st->ops->log->append(st, what, contract_soon(), position, &err);
}

static uint64_t must_append(contract *t, const dibs__append *what)
{
    uint64_t position = 0;

    assert_status(append(t, 0, what, &position), DIBS_OK);
    assert_true(position > 0);
    return position;
}

static dibs__log_span bounds_of(contract *t)
{
    dibs__log_span span;
    dibs_error err = {0};

    assert_status(t->st[1]->ops->log->bounds(t->st[1], t->name, contract_soon(),
                                             &span, &err),
                  DIBS_OK);
    return span;
}

static uint64_t trim(contract *t, uint64_t through)
{
    uint64_t gone = 12345;
    dibs_error err = {0};

    assert_status(t->st[2]->ops->log->trim(t->st[2], t->name, through,
                                           contract_soon(), &gone, &err),
                  DIBS_OK);
    return gone;
}

typedef struct chain {
    uint64_t positions[8 * MANY];
    uint64_t priors[8 * MANY];
    size_t count;
} chain;

static bool collect(const dibs__log_entry *entry, void *arg)
{
    chain *c = arg;

    assert_true(c->count < 8 * MANY);
    c->positions[c->count] = entry->position;
    c->priors[c->count++] = entry->prior;
    return true;
}

static const chain *read_chain(contract *t, uint64_t after)
{
    static chain c;
    dibs_error err = {0};

    c.count = 0;
    assert_status(t->st[1]->ops->log->read(t->st[1], t->name, after,
                                           (size_t)8 * MANY, contract_soon(),
                                           collect, &c, &err),
                  DIBS_OK);
    return &c;
}

static void a_repeat_appends_nothing(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 77, 1);
    uint64_t first = must_append(t, &what), again = 0;

    assert_status(append(t, 1, &what, &again), DIBS_OK);
    assert_int_equal(again, first);
    assert_int_equal(read_chain(t, 0)->count, 1);
    what.number = 2;
    assert_true(must_append(t, &what) > first);
    what.number = 1;
    assert_status(append(t, 1, &what, &again), DIBS_LOST);
    assert_int_equal(read_chain(t, 0)->count, 2);
}

/* The memory of a writer is not in its entries. */
static void a_repeat_of_what_was_trimmed_appends_nothing(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 77, 1), other = entry_of(t, 78, 1);
    uint64_t first = must_append(t, &what), again = 0;

    (void)must_append(t, &other);
    assert_int_equal(trim(t, first), 1);
    assert_status(append(t, 0, &what, &again), DIBS_OK);
    assert_int_equal(again, first);
    assert_int_equal(read_chain(t, 0)->count, 1);
}

static void writers_and_topics_do_not_mix(void **state)
{
    contract *t = *state;
    const char *ends[] = {"", "a", "{a}", "{", "a}", "a{b}c"};
    char topic[96];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        dibs__append what = entry_of(t, DIBS__LANE_MAX, DIBS__LANE_MAX);
        uint64_t first, again = 0;

        snprintf(topic, sizeof(topic), "%s%s", t->name, ends[i]);
        what.topic = topic;
        first = must_append(t, &what);
        assert_status(append(t, 1, &what, &again), DIBS_OK);
        assert_int_equal(again, first);
        what.lane = 1;
        assert_true(must_append(t, &what) > first);
    }
}

static void without_a_lane_each_append_counts(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 0, 0);

    assert_true(must_append(t, &what) < must_append(t, &what));
    assert_int_equal(read_chain(t, 0)->count, 2);
}

static void each_entry_knows_the_one_before(void **state)
{
    contract *t = *state;
    const chain *c;

    for (uint64_t i = 1; i <= MANY; i++) {
        dibs__append what = entry_of(t, 1 + i % 3, i);

        (void)must_append(t, &what);
    }
    c = read_chain(t, 0);
    assert_int_equal(c->count, MANY);
    assert_int_equal(c->priors[0], 0);
    for (size_t i = 1; i < c->count; i++)
        assert_int_equal(c->priors[i], c->positions[i - 1]);
}

static void the_bounds_are_those_of_the_topic(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 9, 1);
    dibs__log_span span = bounds_of(t);
    uint64_t first, last = 0;

    assert_int_equal(span.first + span.last + span.count, 0);
    assert_int_equal(span.bytes, 0);
    first = must_append(t, &what);
    for (what.number = 2; what.number <= 5; what.number++)
        last = must_append(t, &what);
    span = bounds_of(t);
    assert_int_equal(span.first, first);
    assert_int_equal(span.last, last);
    assert_int_equal(span.count, 5);
    assert_int_equal(span.bytes, 50);
}

/* A reader behind the trim sees from the entry that follows what it has missed. */
static void trimmed_entries_are_a_gap(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 9, 1);
    uint64_t positions[5];
    const chain *c;

    for (; what.number <= 5; what.number++)
        positions[what.number - 1] = must_append(t, &what);
    assert_int_equal(trim(t, positions[2] - 1), 2);
    assert_int_equal(trim(t, positions[2]), 1);
    assert_int_equal(trim(t, positions[2]), 0);
    c = read_chain(t, positions[0]);
    assert_int_equal(c->count, 2);
    assert_int_equal(c->positions[0], positions[3]);
    assert_int_equal(c->priors[0], positions[2]);
    assert_int_equal(bounds_of(t).first, positions[3]);
    assert_int_equal(bounds_of(t).count, 2);
    assert_int_equal(bounds_of(t).bytes, 20);
}

static void positions_go_on_after_all_were_trimmed(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 9, 1);
    dibs__log_span span;
    uint64_t last, next;
    const chain *c;

    (void)must_append(t, &what);
    what.number = 2;
    last = must_append(t, &what);
    assert_int_equal(trim(t, UINT64_MAX), 2);
    assert_int_equal(trim(t, UINT64_MAX), 0);
    span = bounds_of(t);
    assert_int_equal(span.first + span.count, 0);
    assert_int_equal(span.bytes, 0);
    assert_int_equal(span.last, last);
    assert_int_equal(read_chain(t, 0)->count, 0);
    what.number = 3;
    next = must_append(t, &what);
    c = read_chain(t, 0);
    assert_int_equal(c->count, 1);
    assert_int_equal(c->positions[0], next);
    assert_int_equal(c->priors[0], last);
    assert_int_equal(bounds_of(t).count, 1);
    assert_int_equal(bounds_of(t).bytes, 10);
    assert_int_equal(trim(t, UINT64_MAX), 1);
}

static void a_trim_of_nothing_is_none(void **state)
{
    contract *t = *state;

    assert_int_equal(trim(t, UINT64_MAX), 0);
    assert_int_equal(bounds_of(t).last, 0);
}

static void what_is_beyond_the_bytes_goes(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 9, 1);
    dibs__log_span span;
    uint64_t last = 0;

    what.keep_bytes = 45;
    for (; what.number <= MANY; what.number++)
        last = must_append(t, &what);
    span = bounds_of(t);
    assert_int_equal(span.last, last);
    assert_int_equal(span.count, 4);
    assert_int_equal(span.bytes, 40);
    what.keep_bytes = 1; /* The newest stays. */
    last = must_append(t, &what);
    span = bounds_of(t);
    assert_int_equal(span.count, 1);
    assert_int_equal(span.first, last);
}

static void what_is_too_old_goes(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 9, 1);
    dibsx_nsec begun_at = dibsx_now();
    uint64_t first = must_append(t, &what);

    what.number = 2;
    what.keep_ms = INT64_C(100) * 365 * 86400 * 1000;
    (void)must_append(t, &what);
    assert_int_equal(bounds_of(t).first, first);
    contract_sleep_until(dibsx_after_ms(begun_at, 60));
    what.number = 3;
    what.keep_ms = 1;
    contract_sleep_until(dibsx_after_ms(dibsx_now(), 5));
    (void)must_append(t, &what);
    assert_int_equal(bounds_of(t).count, 1);
}

static void an_append_tells_its_topic(void **state)
{
    contract *t = *state;
    dibs__append what = entry_of(t, 9, 1);
    char topic[DIBS__TOPIC_MAX];
    actor a = contract_actor(t, 1);
    uint64_t position, told = 0;
    dibs_error err = {0};

    contract_needs(t, DIBS__CAN_TOPIC);
    dibs__topic_of_log(t->name, topic);
    dibs__topic_address(topic, a.owner);
    assert_status(t->st[1]->ops->topic->ear(t->st[1], topic, true,
                                            contract_soon(), &err),
                  DIBS_OK);
    position = must_append(t, &what);
    IN_TIME(actor_notified(&a, DIBS__NOTICE_CHANGED, &told));
    assert_int_equal(told, position);
}

typedef struct tail {
    contract *t;
    atomic_bool ended;
    atomic_int wrong;
    size_t seen;
} tail;

typedef struct place {
    uint64_t at;
    size_t seen;
    bool wrong;
} place;

static bool follow(const dibs__log_entry *entry, void *arg)
{
    place *p = arg;

    p->wrong = p->wrong || entry->prior != p->at || entry->position <= p->at;
    p->at = entry->position;
    p->seen++;
    return true;
}

static void count_wrong(atomic_int *wrong, dibs_status rc)
{
    if (pace_explains(rc))
        MISSED("a step is %s", dibs_status_name(rc));
    if (rc != DIBS_OK)
        atomic_fetch_add(wrong, 1);
}

static void *read_tail(void *arg)
{
    tail *r = arg;
    dibs__store *st = r->t->st[2];
    place p = {0};
    bool last;

    do {
        dibs_error err = {0};
        dibs_status rc;

        last = atomic_load(&r->ended);
        rc = st->ops->log->read(st, r->t->name, p.at, PLENTY, contract_soon(),
                                follow, &p, &err);
        count_wrong(&r->wrong, rc);
    } while (!last);
    r->seen = p.seen;
    if (p.wrong)
        atomic_fetch_add(&r->wrong, 1);
    return NULL;
}

typedef struct writer {
    contract *t;
    uint64_t lane;
    atomic_int *wrong;
    pthread_t thread;
} writer;

static void *write_many(void *arg)
{
    writer *w = arg;

    for (uint64_t i = 1; i <= MANY; i++) {
        dibs__append what = entry_of(w->t, w->lane, i);
        uint64_t position;

        count_wrong(w->wrong, append(w->t, w->lane % 2, &what, &position));
    }
    return NULL;
}

/* Entries appear in the order of their positions: a reader that follows closely meets
 * no entry whose predecessor it has not seen. */
static void reader_misses_no_commit_out_of_order(void **state)
{
    enum { WRITERS = 3 };
    contract *t = *state;
    tail reader = {.t = t};
    writer writers[WRITERS];
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, read_tail, &reader), 0);
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.t = t, .lane = i + 1, .wrong = &reader.wrong};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_many,
                                        &writers[i]),
                         0);
    }
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    atomic_store(&reader.ended, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&reader.wrong), 0);
    assert_int_equal(reader.seen, WRITERS * MANY);
}

int contract_events(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(a_repeat_appends_nothing),
        CONTRACT_TEST(a_repeat_of_what_was_trimmed_appends_nothing),
        CONTRACT_TEST(writers_and_topics_do_not_mix),
        CONTRACT_TEST(without_a_lane_each_append_counts),
        CONTRACT_TEST(each_entry_knows_the_one_before),
        CONTRACT_TEST(the_bounds_are_those_of_the_topic),
        CONTRACT_TEST(trimmed_entries_are_a_gap),
        CONTRACT_TEST(positions_go_on_after_all_were_trimmed),
        CONTRACT_TEST(a_trim_of_nothing_is_none),
        CONTRACT_TEST(what_is_beyond_the_bytes_goes),
        CONTRACT_TEST(what_is_too_old_goes),
        CONTRACT_TEST(an_append_tells_its_topic),
        CONTRACT_TEST(reader_misses_no_commit_out_of_order),
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
