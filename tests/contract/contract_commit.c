/* contract_commit.c - commits: values and indexes change together or not at all, and an
 * answer says why not. */
/* SPDX-License-Identifier: MIT */
#include "contract_commit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { RING = 64, ROUNDS = 8 };

#define HOUR_US (INT64_C(3600) * 1000000)

const char *commit_name(const contract *t, const char *what)
{
    static char ring[RING][128];
    static size_t next;
    char *out = ring[next++ % RING];

    snprintf(out, sizeof(ring[0]), "%s{c}%s", t->name, what);
    return out;
}

dibs_status commit_send(contract *t, size_t handle, dibs__commit *items,
                        size_t count, dibs_error *err)
{
    dibs__store *st = t->st[handle];

    return st->ops->commit->commit(st, items, count, contract_soon(), err);
}

dibs_status commit_one(contract *t, size_t handle, dibs__commit *item)
{
    dibs_error err = {0};
    dibs_status rc = commit_send(t, handle, item, 1, &err);

    if (rc != DIBS_OK)
        print_message("commit: %s\n", err.message);
    assert_status(rc, DIBS_OK);
    assert_true(item->now_us > 0);
    return item->rc;
}

uint64_t commit_changes(contract *t, dibs__change *changes, size_t change_count)
{
    dibs__commit item = {.changes = changes, .change_count = change_count};

    assert_status(commit_one(t, 0, &item), DIBS_OK);
    assert_true(item.version > 0);
    return item.version;
}

typedef struct text {
    char *out;
    size_t size, len;
} text;

static void add_entry(size_t look, const char *member, int64_t at, void *arg)
{
    text *to = arg;

    to->len += (size_t)snprintf(to->out + to->len, to->size - to->len,
                                "%s@%" PRId64 " ", member, at);
    assert_true(to->len < to->size);
    assert_int_equal(look, 0);
}

void index_text(contract *t, dibs__index_look *look, char *out, size_t size)
{
    text to = {.out = out, .size = size};
    dibs__store *st = t->st[2];
    dibs_error err = {0};
    int64_t now_us = 0;

    out[0] = '\0';
    assert_status(st->ops->commit->first(st, look, 1, contract_soon(), &now_us,
                                         add_entry, &to, &err),
                  DIBS_OK);
    assert_true(now_us > 0);
}

const char *index_all(contract *t, const char *index)
{
    static char out[CONTRACT_DUMP];
    dibs__index_look look = {.index = index,
                             .up_to = DIBS__INDEX_AT_MAX,
                             .limit = DIBS__LOOK_LIMIT_MAX};

    index_text(t, &look, out, sizeof(out));
    assert_int_equal(look.next, -1);
    return out;
}

void commit_dump(contract *t, const char *const *keys, size_t key_count,
                 const char *const *indexes, size_t index_count,
                 char out[CONTRACT_DUMP])
{
    dibs_value values[DIBS__GET_MANY_MAX];
    dibs__store *st = t->st[1];
    dibs_error err = {0};
    size_t len = 0;

    out[0] = '\0';
    assert_status(st->ops->commit->get_many(st, keys, key_count,
                                            contract_soon(), values, &err),
                  DIBS_OK);
    for (size_t i = 0; i < key_count; i++) {
        len += (size_t)snprintf(out + len, CONTRACT_DUMP - len,
                                "%s=%" PRIu64 "/%s/%s\n", keys[i],
                                values[i].version,
                                values[i].data ? (char *)values[i].data : "-",
                                values[i].expires_ms < 0 ? "ever" : "ttl");
        dibs_value_free(&values[i]);
    }
    for (size_t i = 0; i < index_count; i++)
        len += (size_t)snprintf(out + len, CONTRACT_DUMP - len, "%s: %s\n",
                                indexes[i], index_all(t, indexes[i]));
    assert_true(len < CONTRACT_DUMP);
}

/* Checks a value, and returns its version. */
static uint64_t value_is(contract *t, const char *key, const char *data)
{
    dibs__store *st = t->st[1];
    dibs_error err = {0};
    dibs_value value = {0};
    uint64_t version;
    dibs_status rc =
        st->ops->value->get(st, key, contract_soon(), &value, &err);

    assert_status(rc, data ? DIBS_OK : DIBS_NOTFOUND);
    if (data)
        assert_string_equal(value.data, data);
    version = value.version;
    dibs_value_free(&value);
    return version;
}

static dibs_status put_value(contract *t, const char *key, const char *data,
                             uint64_t expected, uint64_t *version)
{
    dibs__store *st = t->st[2];
    dibs__put put = {.key = key,
                     .data = data,
                     .len = strlen(data),
                     .expected = expected};
    dibs_error err = {0};

    return st->ops->value->put(st, &put, contract_soon(), version, &err);
}

static void all_of_it_is_done(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *b = commit_name(t, "b");
    const char *due = commit_name(t, "due"), *live = commit_name(t, "live");
    dibs__change changes[] = {PUT(a, "one"), PUT(b, ""), ENTER(due, "x", 7),
                              ENTER(due, "y", 3), ENTER(live, "x", 0)};
    dibs__commit item = {.changes = changes, .change_count = 5};

    assert_status(commit_one(t, 0, &item), DIBS_OK);
    assert_int_equal(value_is(t, a, "one"), item.version);
    assert_int_equal(value_is(t, b, ""), item.version);
    assert_int_equal(changes[2].size, 2);
    assert_int_equal(changes[3].size, 2);
    assert_int_equal(changes[4].size, 1);
    assert_string_equal(index_all(t, due), "y@3 x@7 ");
    assert_string_equal(index_all(t, live), "x@0 ");
}

static void what_is_taken_away_goes(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *due = commit_name(t, "due"),
               *none = commit_name(t, "nothing");
    dibs__change changes[] = {ENTER(due, "y", 9), DELETE(a), LEAVE(due, "x"),
                              LEAVE(due, "nobody"), DELETE(none)};
    dibs__check absent = {.key = none, .version = DIBS_VERSION_NONE};
    dibs__commit item = {.checks = &absent,
                         .check_count = 1,
                         .changes = changes,
                         .change_count = 5};

    COMMIT(t, PUT(a, "one"), ENTER(due, "x", 7), ENTER(due, "y", 3));
    assert_status(commit_one(t, 1, &item), DIBS_OK);
    assert_int_equal(changes[0].size, 1);
    value_is(t, a, NULL);
    value_is(t, none, NULL);
    assert_string_equal(index_all(t, due), "y@9 ");
    COMMIT(t, LEAVE(due, "y"));
    assert_string_equal(index_all(t, due), "");
}

/* Each kind of change, behind a check or a clock that is in the way. */
static void expect_refusal(contract *t, const dibs__commit *why, dibs_status rc)
{
    const char *a = commit_name(t, "a"), *b = commit_name(t, "b");
    const char *due = commit_name(t, "due"), *more = commit_name(t, "more");
    char topic[DIBS__TOPIC_MAX];
    dibs__change changes[] = {PUT(a, "new"),       DELETE(b),
                              ENTER(due, "x", 1),  ENTER(due, "z", 2),
                              ENTER(more, "x", 1), LEAVE(due, "y"),
                              TELL(topic, 5)};
    dibs__commit item = *why;
    actor heard = contract_actor(t, 1);
    dibs__store *st = t->st[1];
    char before[CONTRACT_DUMP], after[CONTRACT_DUMP];
    dibs_error err = {0};

    snprintf(topic, sizeof(topic), "value:%s", commit_name(t, "bell"));
    dibs__topic_address(topic, heard.owner);
    assert_status(st->ops->topic->ear(st, topic, true, contract_soon(), &err),
                  DIBS_OK);
    item.changes = changes;
    item.change_count = 7;
    commit_dump(t, (const char *[]){a, b}, 2, (const char *[]){due, more}, 2,
                before);
    assert_status(commit_one(t, 0, &item), rc);
    dibs__commit_fini(&item, 1);
    commit_dump(t, (const char *[]){a, b}, 2, (const char *[]){due, more}, 2,
                after);
    assert_string_equal(before, after);
    assert_int_equal(item.version, 0);
    actor_expect_quiet(&heard, DIBS__NOTICE_CHANGED);
}

static void a_refused_commit_changes_nothing(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *due = commit_name(t, "due");
    dibs__commit item = {.check_count = 1,
                         .checks = &(dibs__check){.key = a, .version = 0}};
    uint64_t version = COMMIT(t, PUT(a, "1"), PUT(commit_name(t, "b"), "2"),
                              ENTER(due, "x", 5), ENTER(due, "y", 6));
    dibs__check checks[] = {{.key = a, .version = version},
                            {.key = commit_name(t, "none"), .version = 7}};

    expect_refusal(t, &item, DIBS_STALE);
    item.check_count = 2;
    item.checks = checks;
    expect_refusal(t, &item, DIBS_STALE);
    item.check_count = 1;
    item.not_before_us = DIBS__INDEX_AT_MAX;
    expect_refusal(t, &item, DIBS_EARLY);
    item.not_before_us = 0;
    item.not_after_us = 1;
    expect_refusal(t, &item, DIBS_LATE);
}

static void stale_says_which_check_and_what_is_there(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *b = commit_name(t, "b");
    uint64_t version = COMMIT(t, PUT(a, "1"));
    uint64_t other = 0;
    dibs__check checks[] = {{.key = a, .version = version},
                            {.key = b, .version = DIBS_VERSION_NONE},
                            {.key = commit_name(t, "c"), .version = 9}};
    dibs__commit item = {.checks = checks, .check_count = 3};

    assert_status(put_value(t, b, "of a put", DIBS_VERSION_ANY, &other),
                  DIBS_OK);
    assert_status(commit_one(t, 0, &item), DIBS_STALE);
    assert_int_equal(item.failed, 1);
    assert_int_equal(item.found.version, other);
    assert_int_equal(item.found.len, 8);
    assert_memory_equal(item.found.data, "of a put", 9);
    assert_int_equal(item.found.expires_ms, -1);
    dibs__commit_fini(&item, 1);

    checks[1].version = other;
    assert_status(commit_one(t, 0, &item), DIBS_STALE);
    assert_int_equal(item.failed, 2);
    assert_int_equal(item.found.version, 0);
    assert_null(item.found.data);
    item.check_count = 2;
    assert_status(commit_one(t, 0, &item), DIBS_OK);
}

static void the_clock_of_the_store_decides(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a");
    dibs__change changes[] = {PUT(a, "1")};
    dibs__commit item = {.changes = changes, .change_count = 1};
    int64_t now_us;

    assert_status(commit_one(t, 0, &item), DIBS_OK);
    now_us = item.now_us;
    item.not_before_us = now_us + HOUR_US;
    assert_status(commit_one(t, 0, &item), DIBS_EARLY);
    item.not_before_us = now_us;
    item.not_after_us = now_us + HOUR_US;
    assert_status(commit_one(t, 0, &item), DIBS_OK);
    item.not_before_us = 0;
    item.not_after_us = now_us - 1000000;
    assert_status(commit_one(t, 0, &item), DIBS_LATE);

    /* The clock is looked at before the checks are. */
    item.checks = &(dibs__check){.key = a, .version = 1};
    item.check_count = 1;
    assert_status(commit_one(t, 0, &item), DIBS_LATE);
    assert_null(item.found.data);
    item.not_after_us = 0;
    item.check_count = 0;

    item.not_before_us = now_us + pace_ms(20) * 1000;
    while (commit_one(t, 0, &item) == DIBS_EARLY)
        assert_true(item.now_us < item.not_before_us);
    assert_status(item.rc, DIBS_OK);
    assert_true(item.now_us >= item.not_before_us);
}

static void versions_rise_and_never_come_back(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a");
    uint64_t last = 0, next = 0;

    assert_status(put_value(t, a, "x", DIBS_VERSION_ANY, &last), DIBS_OK);
    for (int i = 0; i < 4; i++) {
        next = COMMIT(t, PUT(a, "y"));
        assert_true(next > last);
        last = next;
        next = COMMIT(t, DELETE(a));
        assert_true(next > last);
        last = next;
        assert_status(put_value(t, a, "x", DIBS_VERSION_NONE, &next), DIBS_OK);
        assert_true(next > last);
        last = next;
    }
    /* Without a value too. */
    assert_true(COMMIT(t, ENTER(commit_name(t, "due"), "x", 1)) > 0);
}

static void values_expire_and_a_put_without_ttl_stays(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *b = commit_name(t, "b");
    int64_t ttl_ms = contract_brief_ms(60);
    dibs__change changes[] = {PUT(a, "soon gone"), PUT(b, "stays")};
    dibs__commit item = {.changes = changes, .change_count = 2};
    dibs__check absent = {.key = a, .version = DIBS_VERSION_NONE};
    dibsx_nsec until;

    changes[0].ttl_ms = changes[1].ttl_ms = ttl_ms;
    assert_status(commit_one(t, 0, &item), DIBS_OK);
    COMMIT(t, PUT(b, "stays"));
    until = dibsx_after_ms(dibsx_now(), ttl_ms + CONTRACT_DRIFT_MS);
    contract_sleep_until(until);
    value_is(t, b, "stays");
    item.checks = &absent;
    item.check_count = 1;
    changes[0].ttl_ms = HOUR_US / 1000;
    changes[1].ttl_ms = 0;
    assert_status(commit_one(t, 0, &item), DIBS_OK);
    assert_status(commit_one(t, 0, &item), DIBS_STALE);
    assert_string_equal(item.found.data, "soon gone");
    assert_true(item.found.expires_ms > 0 &&
                item.found.expires_ms <= HOUR_US / 1000);
    dibs__commit_fini(&item, 1);
}

/* Topics are told the version, or the number that they are given. */
static void changes_are_told(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *due = commit_name(t, "due");
    char topics[3][DIBS__TOPIC_MAX];
    dibs__store *st = t->st[1];
    dibs_error err = {0};
    uint64_t version, number;
    actor ears[3];

    snprintf(topics[0], sizeof(topics[0]), "value:%s", a);
    snprintf(topics[1], sizeof(topics[1]), "value:%s", commit_name(t, "bell"));
    snprintf(topics[2], sizeof(topics[2]), "value:%s", commit_name(t, "gong"));
    for (size_t i = 0; i < 3; i++) {
        ears[i] = contract_actor(t, 1);
        dibs__topic_address(topics[i], ears[i].owner);
        assert_status(st->ops->topic->ear(st, topics[i], true, contract_soon(),
                                          &err),
                      DIBS_OK);
    }
    version = COMMIT(t, PUT(a, "1"), ENTER(due, "x", 1), TELL(topics[1], 0),
                     TELL(topics[2], UINT64_C(1) << 40));
    for (size_t i = 0; i < 3; i++) {
        IN_TIME(actor_notified(&ears[i], DIBS__NOTICE_CHANGED, &number));
        assert_int_equal(number, i == 2 ? UINT64_C(1) << 40 : version);
    }
    COMMIT(t, DELETE(a));
    IN_TIME(actor_notified(&ears[0], DIBS__NOTICE_CHANGED, &number));
    assert_int_equal(number, 0);
    COMMIT(t, DELETE(a), TELL(topics[1], 3));
    IN_TIME(actor_notified(&ears[1], DIBS__NOTICE_CHANGED, &number));
    actor_expect_quiet(&ears[0], DIBS__NOTICE_CHANGED);
}

/* Commits of one step: some refused, in several slots, none in the way of another. */
static void many_are_independent(void **state)
{
    contract *t = *state;
    dibs__commit items[DIBS__COMMITS_MAX];
    dibs__change changes[DIBS__COMMITS_MAX][2];
    dibs__check checks[DIBS__COMMITS_MAX];
    char keys[DIBS__COMMITS_MAX][128], indexes[4][128];
    dibs_error err = {0};

    for (size_t i = 0; i < 4; i++)
        snprintf(indexes[i], sizeof(indexes[i]), "%s{s%zu}due", t->name, i);
    for (size_t i = 0; i < DIBS__COMMITS_MAX; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%s{s%zu}%zu", t->name, i % 4, i);
        changes[i][0] = (dibs__change)PUT(keys[i], keys[i]);
        changes[i][1] =
            (dibs__change)ENTER(indexes[i % 4], keys[i], (int64_t)i);
        checks[i] =
            (dibs__check){.key = keys[i], .version = i % 8 == 5 ? 77 : 0};
        items[i] = (dibs__commit){.checks = &checks[i],
                                  .check_count = 1,
                                  .changes = changes[i],
                                  .change_count = 2,
                                  .not_before_us =
                                      i % 16 == 3 ? DIBS__INDEX_AT_MAX : 0};
    }
    assert_status(commit_send(t, 0, items, DIBS__COMMITS_MAX, &err), DIBS_OK);
    for (size_t i = 0; i < DIBS__COMMITS_MAX; i++) {
        bool done = i % 8 != 5 && i % 16 != 3;

        assert_status(items[i].rc, i % 16 == 3  ? DIBS_EARLY
                                   : i % 8 == 5 ? DIBS_STALE
                                                : DIBS_OK);
        assert_true(items[i].now_us > 0);
        assert_int_equal(value_is(t, keys[i], done ? keys[i] : NULL),
                         items[i].version);
    }
    dibs__commit_fini(items, DIBS__COMMITS_MAX);
}

/* Of two that expect the same, in one step, one is done. */
static void one_of_two_wins(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a"), *due = commit_name(t, "due");
    dibs__change changes[2][2] = {{PUT(a, "x"), ENTER(due, "x", 1)},
                                  {PUT(a, "y"), ENTER(due, "y", 1)}};
    dibs__check check = {.key = a, .version = 0};
    dibs__commit items[2];
    dibs_error err = {0};
    size_t won;

    for (size_t i = 0; i < 2; i++)
        items[i] = (dibs__commit){.checks = &check,
                                  .check_count = 1,
                                  .changes = changes[i],
                                  .change_count = 2};
    assert_status(commit_send(t, 0, items, 2, &err), DIBS_OK);
    won = items[0].rc == DIBS_OK ? 0 : 1;
    assert_status(items[won].rc, DIBS_OK);
    assert_status(items[!won].rc, DIBS_STALE);
    assert_int_equal(items[!won].found.version, items[won].version);
    assert_string_equal(items[!won].found.data, won ? "y" : "x");
    assert_string_equal(index_all(t, due), won ? "y@1 " : "x@1 ");
    dibs__commit_fini(items, 2);
}

/* Commits of one step that write the same value have versions of their own. */
static void no_version_is_used_twice(void **state)
{
    contract *t = *state;
    const char *a = commit_name(t, "a");
    dibs__change changes[ROUNDS];
    dibs__commit items[ROUNDS];
    dibs_error err = {0};
    uint64_t last = 0;

    for (size_t i = 0; i < ROUNDS; i++) {
        changes[i] = (dibs__change)PUT(a, "x");
        items[i] = (dibs__commit){.changes = &changes[i], .change_count = 1};
    }
    assert_status(commit_send(t, 0, items, ROUNDS, &err), DIBS_OK);
    for (size_t i = 0; i < ROUNDS; i++) {
        assert_status(items[i].rc, DIBS_OK);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(items[i].version, items[k].version);
        last = items[i].version > last ? items[i].version : last;
    }
    assert_int_equal(value_is(t, a, "x"), last);
}

typedef struct adder {
    contract *t;
    size_t handle;
    const char *a, *b;
    dibs_status rc;
} adder;

/* Adds one to both values, from what it reads. Values that were read at one moment are
 * never ahead of each other: both are added to together, and one of them alone. */
static dibs_status add_to_both(adder *ad)
{
    dibs__check checks[2];
    dibs__change changes[2];
    dibs__commit item = {.checks = checks,
                         .check_count = 2,
                         .changes = changes,
                         .change_count = 2};
    const char *const keys[] = {ad->a, ad->b};
    dibs__store *st = ad->t->st[ad->handle];
    long number[2] = {0, 0};
    char words[2][24];
    dibs_value found[2];
    dibs_error err = {0};

    if (st->ops->commit->get_many(st, keys, 2, contract_soon(), found, &err) !=
        DIBS_OK)
        return DIBS_UNAVAIL;
    for (size_t i = 0; i < 2; i++) {
        if (found[i].data)
            number[i] = strtol(found[i].data, NULL, 10);
        snprintf(words[i], sizeof(words[i]), "%ld", number[i] + 1);
        checks[i] = (dibs__check){.key = keys[i], .version = found[i].version};
        changes[i] = (dibs__change)PUT(keys[i], words[i]);
        dibs_value_free(&found[i]);
    }
    if (number[0] < number[1])
        return DIBS_INTERNAL;
    if (commit_send(ad->t, ad->handle, &item, 1, &err) != DIBS_OK)
        return DIBS_UNAVAIL;
    dibs__commit_fini(&item, 1);
    return item.rc;
}

static void *add_often(void *arg)
{
    adder *ad = arg;

    for (int done = 0; done < ROUNDS && ad->rc == DIBS_OK; done++) {
        do
            ad->rc = add_to_both(ad);
        while (ad->rc == DIBS_STALE);
    }
    return NULL;
}

/* A commit and a step on one value do not overwrite each other. */
static void no_update_is_lost(void **state)
{
    contract *t = *state;
    adder adders[2] = {{.t = t, .handle = 0}, {.t = t, .handle = 1}};
    const char *a = commit_name(t, "a"), *b = commit_name(t, "b");
    char sum[24];
    pthread_t threads[2];

    for (size_t i = 0; i < 2; i++) {
        adders[i].a = a;
        adders[i].b = b;
        assert_int_equal(pthread_create(&threads[i], NULL, add_often,
                                        &adders[i]),
                         0);
    }
    for (int done = 0; done < ROUNDS; done++) {
        dibs__store *st = t->st[2];
        dibs_error err = {0};
        int64_t total;

        assert_status(st->ops->value->add(st, a, 1, contract_soon(), &total,
                                          &err),
                      DIBS_OK);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_status(adders[i].rc, DIBS_OK);
    }
    snprintf(sum, sizeof(sum), "%d", 3 * ROUNDS);
    value_is(t, a, sum);
    snprintf(sum, sizeof(sum), "%d", 2 * ROUNDS);
    value_is(t, b, sum);
}

enum { ENTERERS = 3 };

typedef struct enterer {
    contract *t;
    size_t handle;
    const char *index;
    uint64_t sizes[ROUNDS];
    dibs_status rc;
} enterer;

/* Enters members of its own, each with a commit. */
static void *enter_often(void *arg)
{
    enterer *en = arg;

    for (int i = 0; i < ROUNDS && en->rc == DIBS_OK; i++) {
        char member[24];
        dibs__change change = ENTER(en->index, member, i);
        dibs__commit item = {.changes = &change, .change_count = 1};
        dibs_error err = {0};

        snprintf(member, sizeof(member), "%zu-%d", en->handle, i);
        en->rc = commit_send(en->t, en->handle, &item, 1, &err);
        en->sizes[i] = change.size;
    }
    return NULL;
}

/* So that of many that enter an index one knows that it was the last. */
static void each_size_is_answered_once(void **state)
{
    contract *t = *state;
    enterer enterers[ENTERERS];
    const char *index = commit_name(t, "done");
    bool seen[ENTERERS * ROUNDS] = {false};
    pthread_t threads[ENTERERS];

    for (size_t i = 0; i < ENTERERS; i++) {
        enterers[i] = (enterer){.t = t, .handle = i, .index = index};
        assert_int_equal(pthread_create(&threads[i], NULL, enter_often,
                                        &enterers[i]),
                         0);
    }
    for (size_t i = 0; i < ENTERERS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < ENTERERS; i++) {
        assert_status(enterers[i].rc, DIBS_OK);
        for (size_t k = 0; k < ROUNDS; k++) {
            uint64_t size = enterers[i].sizes[k];

            assert_in_range(size, 1, ENTERERS * ROUNDS);
            assert_false(seen[size - 1]);
            seen[size - 1] = true;
        }
    }
}

/* All of them have one slot in a cluster, and share what a slot has. */
static void values_are_read_beside_a_roster(void **state)
{
    contract *t = *state;
    const char *const keys[] = {commit_name(t, "a"), commit_name(t, "b")};
    char id[DIBS_OWNER_SIZE], dump[CONTRACT_DUMP], expected[CONTRACT_DUMP];
    dibs__meet seat = {.name = commit_name(t, "seats"),
                       .id = id,
                       .who = "host:1 contract",
                       .verb = DIBS__SIT,
                       .ttl_ms = 60000};
    dibs__store *st = t->st[0];
    dibs_error err = {0};

    contract_owner(id);
    assert_status(st->ops->roster->meet(st, &seat, 1, contract_soon(), &err),
                  DIBS_OK);
    assert_status(seat.rc, DIBS_OK);
    commit_dump(t, keys, 2, NULL, 0, dump);
    snprintf(expected, sizeof(expected), "%s=0/-/ttl\n%s=0/-/ttl\n", keys[0],
             keys[1]);
    assert_string_equal(dump, expected);
}

int contract_commit(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(all_of_it_is_done),
        CONTRACT_TEST(values_are_read_beside_a_roster),
        CONTRACT_TEST(what_is_taken_away_goes),
        CONTRACT_TEST(a_refused_commit_changes_nothing),
        CONTRACT_TEST(stale_says_which_check_and_what_is_there),
        CONTRACT_TEST(the_clock_of_the_store_decides),
        CONTRACT_TEST(versions_rise_and_never_come_back),
        CONTRACT_TEST(values_expire_and_a_put_without_ttl_stays),
        CONTRACT_TEST(changes_are_told),
        CONTRACT_TEST(many_are_independent),
        CONTRACT_TEST(one_of_two_wins),
        CONTRACT_TEST(no_version_is_used_twice),
        CONTRACT_TEST(no_update_is_lost),
        CONTRACT_TEST(each_size_is_answered_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
