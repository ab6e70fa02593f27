/* contract_index.c - indexes, reads of several values, the bounds of commits, and random
 * commits on this store and on the embedded one, whose rule is store/ledger.c. */
/* SPDX-License-Identifier: MIT */
#include "contract_commit.h"

#include "base/rand.h"
#include "seed.h"
#include <inttypes.h>
#include <stdlib.h>

enum { KEYS = 4, INDEXES = 2, MEMBERS = 5, STEPS = 120, LONG = 16 };

static void entries_are_in_order(void **state)
{
    contract *t = *state;
    const char *due = commit_name(t, "due");

    COMMIT(t, ENTER(due, "b", 5), ENTER(due, "a", 5), ENTER(due, "Z", 5),
           ENTER(due, "\xc3\xa9", 5), ENTER(due, "ab", 5),
           ENTER(due, "late", 9), ENTER(due, "early", 0),
           ENTER(due, "last", DIBS__INDEX_AT_MAX));
    assert_string_equal(index_all(t, due),
                        "early@0 Z@5 a@5 ab@5 b@5 \xc3\xa9@5 late@9 "
                        "last@9007199254740991 ");
    COMMIT(t, ENTER(due, "late", 1), ENTER(due, "a", 10));
    assert_string_equal(index_all(t, due),
                        "early@0 late@1 Z@5 ab@5 b@5 \xc3\xa9@5 a@10 "
                        "last@9007199254740991 ");
}

typedef struct look_case {
    int64_t from, up_to;
    uint32_t skip, limit;
    const char *shown;
    int64_t next;
} look_case;

static void a_look_has_bounds_and_a_next_number(void **state)
{
    static const look_case cases[] = {
        {0, 100, 0, 10, "a@1 b@2 c@2 d@7 ", -1},
        {0, 2, 0, 10, "a@1 b@2 c@2 ", 7},
        {0, 6, 0, 2, "a@1 b@2 ", 2},
        {0, 0, 0, 10, "", 1},
        {0, 100, 0, 0, "", 1},
        {2, 100, 0, 10, "b@2 c@2 d@7 ", -1},
        {2, 100, 1, 1, "c@2 ", 7},
        {3, 100, 0, 0, "", 7},
        {8, 100, 0, 10, "", -1},
        {0, 100, 4, 10, "", -1},
        {7, 2, 0, 10, "", 7},
    };
    contract *t = *state;
    const char *due = commit_name(t, "due");
    char shown[256];

    COMMIT(t, ENTER(due, "d", 7), ENTER(due, "a", 1), ENTER(due, "c", 2),
           ENTER(due, "b", 2));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dibs__index_look look = {.index = due,
                                 .from = cases[i].from,
                                 .up_to = cases[i].up_to,
                                 .skip = cases[i].skip,
                                 .limit = cases[i].limit};

        index_text(t, &look, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].shown);
        assert_int_equal(look.next, cases[i].next);
    }
}

/* What is entered from now on has the moment of the store's clock. */
static void now_is_that_of_the_store(void **state)
{
    contract *t = *state;
    const char *due = commit_name(t, "due");
    int64_t hour_us = INT64_C(3600) * 1000000;
    dibs__change changes[] = {ENTER(due, "now", 0),
                              ENTER(due, "later", hour_us)};
    dibs__commit item = {.changes = changes, .change_count = 2};
    dibs__index_look look = {.index = due,
                             .up_to = DIBS__UP_TO_NOW,
                             .limit = 10};
    char shown[256], expected[256];

    changes[0].from_now = changes[1].from_now = true;
    assert_status(commit_one(t, 0, &item), DIBS_OK);
    index_text(t, &look, shown, sizeof(shown));
    snprintf(expected, sizeof(expected), "now@%" PRId64 " ", item.now_us);
    assert_string_equal(shown, expected);
    assert_int_equal(look.next, item.now_us + hour_us);
}

typedef struct seen {
    char text[1024];
    size_t len;
} seen;

static void add_seen(size_t look, const char *member, int64_t at, void *arg)
{
    seen *to = arg;

    to->len += (size_t)snprintf(to->text + to->len, sizeof(to->text) - to->len,
                                "%zu:%s@%" PRId64 " ", look, member, at);
}

static void several_indexes_are_looked_at_in_one_step(void **state)
{
    contract *t = *state;
    const char *due = commit_name(t, "due"), *live = commit_name(t, "live");
    char other[128];
    dibs__index_look looks[] = {
        {.index = live, .up_to = 9, .limit = 9},
        {.index = commit_name(t, "none"), .up_to = 9, .limit = 9},
        {.index = due, .up_to = 9, .limit = 1},
        {.index = other, .up_to = 9, .limit = 9},
        {.index = live, .up_to = 1, .limit = 9},
    };
    dibs__store *st = t->st[1];
    seen all = {.len = 0};
    dibs_error err = {0};
    int64_t now_us = 0;

    snprintf(other, sizeof(other), "%s{other}", t->name);
    COMMIT(t, ENTER(due, "x", 1), ENTER(due, "y", 3), ENTER(live, "z", 2));
    COMMIT(t, ENTER(other, "far", 4));
    assert_status(st->ops->commit->first(st, looks, 5, contract_soon(), &now_us,
                                         add_seen, &all, &err),
                  DIBS_OK);
    assert_string_equal(all.text, "0:z@2 2:x@1 3:far@4 ");
    assert_int_equal(looks[0].next, -1);
    assert_int_equal(looks[1].next, -1);
    assert_int_equal(looks[2].next, 3);
    assert_int_equal(looks[3].next, -1);
    assert_int_equal(looks[4].next, 2);
    assert_true(now_us > 0);
}

static void many_values_are_read_at_once(void **state)
{
    contract *t = *state;
    char names[DIBS__GET_MANY_MAX][128];
    const char *keys[DIBS__GET_MANY_MAX];
    dibs_value values[DIBS__GET_MANY_MAX];
    dibs__store *st = t->st[2];
    dibs_error err = {0};

    for (size_t i = 0; i < DIBS__GET_MANY_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "%s{m%zu}%zu", t->name, i % 3, i);
        keys[i] = names[i];
        if (i % 16 == 1)
            COMMIT(t, PUT(keys[i], keys[i]));
    }
    keys[2] = keys[1];
    assert_status(st->ops->commit->get_many(st, keys, DIBS__GET_MANY_MAX,
                                            contract_soon(), values, &err),
                  DIBS_OK);
    for (size_t i = 0; i < DIBS__GET_MANY_MAX; i++) {
        bool there = i % 16 == 1 || i == 2;

        assert_int_equal(values[i].version != 0, there);
        if (there)
            assert_string_equal(values[i].data, keys[i]);
        else
            assert_null(values[i].data);
        dibs_value_free(&values[i]);
    }
}

/* As much as one commit can have. */
static void the_largest_commit_fits(void **state)
{
    contract *t = *state;
    dibs__change *changes = calloc(DIBS__CHANGES_MAX, sizeof(*changes));
    dibs__check checks[DIBS__CHECKS_MAX];
    char(*names)[256] = calloc(DIBS__CHANGES_MAX, sizeof(*names));
    char(*keys)[128] = calloc(DIBS__CHECKS_MAX, sizeof(*keys));
    char *bytes = calloc(1, DIBS_VALUE_MAX);
    const char *due = commit_name(t, "due");
    dibs__commit item = {.checks = checks,
                         .check_count = DIBS__CHECKS_MAX,
                         .changes = changes,
                         .change_count = DIBS__CHANGES_MAX};

    assert_true(changes && names && keys && bytes);
    memset(bytes, 'x', DIBS_VALUE_MAX);
    for (size_t i = 0; i < DIBS__CHECKS_MAX; i++) {
        snprintf(keys[i], sizeof(*keys), "%s{c}%zu", t->name, i);
        checks[i] = (dibs__check){.key = keys[i], .version = 0};
        changes[i] = (dibs__change)PUT(keys[i], "x");
    }
    changes[0].data = bytes;
    changes[0].len = DIBS_VALUE_MAX;
    for (size_t i = DIBS__CHECKS_MAX; i < DIBS__CHANGES_MAX; i++) {
        memset(names[i], 'm', DIBS_NAME_MAX);
        snprintf(names[i], 8, "%zu", i);
        names[i][strlen(names[i])] = '-';
        changes[i] = (dibs__change)ENTER(due, names[i], (int64_t)i);
    }
    assert_status(commit_one(t, 0, &item), DIBS_OK);
    assert_int_equal(changes[DIBS__CHANGES_MAX - 1].size,
                     DIBS__CHANGES_MAX - DIBS__CHECKS_MAX);
    assert_status(commit_one(t, 0, &item), DIBS_STALE);
    assert_int_equal(item.found.len, DIBS_VALUE_MAX);
    assert_memory_equal(item.found.data, bytes, DIBS_VALUE_MAX);
    dibs__commit_fini(&item, 1);
    free(changes);
    free(names);
    free(keys);
    free(bytes);
}

/* Sends a commit that is refused, behind one that would do. */
static void expect_invalid(contract *t, dibs__commit bad, const char *message)
{
    const char *a = commit_name(t, "a");
    dibs__change change = PUT(a, "never");
    dibs__commit items[] = {{.changes = &change, .change_count = 1}, bad};
    dibs__store *st = t->st[0];
    dibs_value value = {0};
    dibs_error err = {0};

    assert_status(commit_send(t, 0, items, 2, &err), DIBS_INVALID);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, err.message);
    assert_status(items[0].rc, DIBS_INVALID);
    assert_status(items[1].rc, DIBS_INVALID);
    assert_status(st->ops->value->get(st, a, contract_soon(), &value, &err),
                  DIBS_NOTFOUND);
}

static void bad_change(contract *t, dibs__change change, const char *message)
{
    expect_invalid(t, (dibs__commit){.changes = &change, .change_count = 1},
                   message);
}

static void commits_that_no_store_takes(void **state)
{
    contract *t = *state;
    const char *b = commit_name(t, "b"), *due = commit_name(t, "due");
    char bare[2][128], text[DIBS_NAME_MAX + 2];
    dibs__change put = PUT(b, "x"), enter = ENTER(due, "x", 1);
    dibs__commit none = {.changes = NULL};
    dibs__commit item = {.changes = &put, .change_count = 1};

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    expect_invalid(t, none, "neither checks nor changes");
    item.not_before_us = -1;
    expect_invalid(t, item, "negative moment");
    item = (dibs__commit){.checks =
                              &(dibs__check){.key = b, .version = UINT64_MAX},
                          .check_count = 1};
    expect_invalid(t, item, "is no check");
    bad_change(t, (dibs__change)PUT("", "x"), "is empty");
    bad_change(t, (dibs__change)PUT(text, "x"), "longer than 255 bytes");
    bad_change(t, (dibs__change)ENTER(due, "", 1), "is empty");
    bad_change(t, (dibs__change)ENTER(due, text, 1), "longer than 255 bytes");
    bad_change(t, (dibs__change)TELL("no kind", 1), "is no topic");
    bad_change(t, (dibs__change)TELL("roster:x", 1), "is no topic");
    put.ttl_ms = -1;
    bad_change(t, put, "negative");
    put.ttl_ms = 0;
    put.len = DIBS_VALUE_MAX + 1;
    bad_change(t, put, "bytes; at most");
    enter.at = -1;
    bad_change(t, enter, "is not from 0");
    enter.at = DIBS__INDEX_AT_MAX + 1;
    bad_change(t, enter, "is not from 0");
    enter.at = DIBS__INDEX_SPAN_MAX_US + 1;
    enter.from_now = true;
    bad_change(t, enter, "is not from 0");

    /* The same thing twice, and names of two slots. */
    item = (dibs__commit){.changes = (dibs__change[]){PUT(b, "x"), DELETE(b)},
                          .change_count = 2};
    expect_invalid(t, item, "twice");
    item.changes = (dibs__change[]){ENTER(due, "x", 1), LEAVE(due, "x")};
    expect_invalid(t, item, "twice");
    for (size_t i = 0; i < 2; i++)
        snprintf(bare[i], sizeof(bare[i]), "%s%zu", t->name, i);
    item.changes = (dibs__change[]){PUT(bare[0], "x"), PUT(bare[1], "x")};
    expect_invalid(t, item, "{tag}");
    item.changes = (dibs__change[]){PUT(bare[0], "x"), ENTER(bare[0], "x", 1)};
    expect_invalid(t, item, "{tag}");
    item.changes = (dibs__change[]){PUT(b, "x"), PUT(bare[1], "x")};
    expect_invalid(t, item, "{tag}");
    item.checks = &(dibs__check){.key = bare[0]};
    item.check_count = 1;
    item.changes = (dibs__change[]){PUT(bare[1], "x"), PUT(bare[1], "x")};
    item.change_count = 1;
    expect_invalid(t, item, "{tag}");
    item.changes = (dibs__change[]){PUT(bare[0], "one needs no tag")};
    assert_status(commit_one(t, 0, &item), DIBS_OK);
}

static void steps_that_are_too_large(void **state)
{
    static char bytes[DIBS_VALUE_MAX];
    static dibs__change changes[DIBS__CHANGES_MAX + 1];
    static dibs__commit items[DIBS__COMMITS_MAX + 1];
    static const char *keys[DIBS__GET_MANY_MAX + 1];
    static dibs_value values[DIBS__GET_MANY_MAX + 1];
    static dibs__index_look looks[DIBS__LOOKS_MAX + 1];
    static char names[DIBS__CHANGES_MAX + 1][128];
    contract *t = *state;
    dibs__store *st = t->st[0];
    dibs_error err = {0};
    int64_t now_us;

    for (size_t i = 0; i <= DIBS__CHANGES_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "%s{c}%zu", t->name, i);
        changes[i] = (dibs__change){.verb = DIBS__CHANGE_PUT,
                                    .key = names[i],
                                    .data = bytes,
                                    .len = sizeof(bytes)};
    }
    items[0].changes = changes;
    items[0].change_count = DIBS__CHANGES_MAX + 1;
    assert_status(commit_send(t, 0, items, 1, &err), DIBS_INVALID);
    items[0].change_count = DIBS__COMMIT_DATA_MAX / DIBS_VALUE_MAX + 1;
    assert_status(commit_send(t, 0, items, 1, &err), DIBS_INVALID);
    assert_non_null(strstr(err.message, "send fewer"));
    for (size_t i = 0; i <= DIBS__COMMITS_MAX; i++)
        items[i] = (dibs__commit){.changes = &changes[0], .change_count = 1};
    assert_status(commit_send(t, 0, items, DIBS__COMMITS_MAX + 1, &err),
                  DIBS_INVALID);
    assert_status(commit_send(t, 0, items, 0, &err), DIBS_INVALID);
    for (size_t i = 0; i <= DIBS__GET_MANY_MAX; i++)
        keys[i] = names[i];
    assert_status(st->ops->commit->get_many(st, keys, DIBS__GET_MANY_MAX + 1,
                                            contract_soon(), values, &err),
                  DIBS_INVALID);
    for (size_t i = 0; i <= DIBS__LOOKS_MAX; i++)
        looks[i].index = names[i];
    assert_status(st->ops->commit->first(st, looks, DIBS__LOOKS_MAX + 1,
                                         contract_soon(), &now_us, add_seen,
                                         NULL, &err),
                  DIBS_INVALID);
    looks[0].limit = DIBS__LOOK_LIMIT_MAX + 1;
    assert_status(st->ops->commit->first(st, looks, 1, contract_soon(), &now_us,
                                         add_seen, NULL, &err),
                  DIBS_INVALID);
}

/* ---- the twin */

typedef struct twin {
    contract t[2]; /* of these only the handles and the name */
    dibsx_prng prng;
    char keys[KEYS][128], indexes[INDEXES][128];
    uint64_t versions[2][KEYS];
} twin;

static uint64_t below(twin *tw, uint64_t end)
{
    return dibsx_prng_below(&tw->prng, end);
}

/* A random commit, whose checks are often right. The versions differ at the two
 * stores, so each has its own. */
static void make_commit(twin *tw, dibs__check checks[2][2],
                        dibs__change changes[LONG], dibs__commit item[2])
{
    static const char *const members[MEMBERS] = {"a", "b", "c", "d", "e"};
    static const char *const texts[] = {"", "x", "longer"};
    int64_t not_before_us = below(tw, 12) == 0 ? DIBS__INDEX_AT_MAX : 0;
    size_t check_count = below(tw, 3), count = 0;

    for (size_t i = 0; i < check_count; i++) {
        size_t key = below(tw, KEYS);
        bool wrong = below(tw, 5) == 0;

        for (size_t s = 0; s < 2; s++)
            checks[s][i] =
                (dibs__check){.key = tw->keys[key],
                              .version = wrong ? tw->versions[s][key] + 1
                                               : tw->versions[s][key]};
    }
    for (size_t i = 0; i < KEYS; i++) {
        uint64_t dice = below(tw, 6);
        const char *data = texts[below(tw, 3)];

        if (dice == 0)
            changes[count++] = (dibs__change)DELETE(tw->keys[i]);
        else if (dice < 3)
            changes[count++] = (dibs__change)PUT(tw->keys[i], data);
    }
    for (size_t i = 0; i < INDEXES * MEMBERS; i++) {
        uint64_t dice = below(tw, 8);
        const char *index = tw->indexes[i % INDEXES];
        const char *member = members[i / INDEXES];

        if (dice == 0)
            changes[count++] = (dibs__change)LEAVE(index, member);
        else if (dice < 3)
            changes[count++] =
                (dibs__change)ENTER(index, member, (int64_t)below(tw, 6));
        if (dice == 1)
            changes[count - 1].uncounted = true;
    }
    for (size_t s = 0; s < 2; s++)
        item[s] = (dibs__commit){.checks = checks[s],
                                 .check_count = check_count,
                                 .change_count = count,
                                 .not_before_us = not_before_us};
}

static void match_found(twin *tw, const dibs__commit item[2])
{
    size_t key = 0;

    assert_int_equal(item[0].failed, item[1].failed);
    assert_int_equal(item[0].found.len, item[1].found.len);
    if (item[1].found.len)
        assert_string_equal(item[0].found.data, item[1].found.data);
    while (item[0].checks[item[0].failed].key != tw->keys[key])
        key++;
    for (size_t s = 0; s < 2; s++)
        assert_int_equal(item[s].found.version, tw->versions[s][key]);
}

static void note_versions(twin *tw, const dibs__commit item[2])
{
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < item[s].change_count; i++)
            for (size_t k = 0; k < KEYS; k++)
                if (item[s].changes[i].key == tw->keys[k])
                    tw->versions[s][k] =
                        item[s].changes[i].verb == DIBS__CHANGE_PUT
                            ? item[s].version
                            : 0;
}

static void commit_both(twin *tw)
{
    dibs__check checks[2][2];
    dibs__change changes[2][LONG];
    dibs__commit item[2];

    make_commit(tw, checks, changes[0], item);
    if (item[0].check_count + item[0].change_count == 0)
        return;
    memcpy(changes[1], changes[0], item[0].change_count * sizeof(*changes[0]));
    for (size_t s = 0; s < 2; s++) {
        item[s].changes = changes[s];
        (void)commit_one(&tw->t[s], 0, &item[s]);
    }
    assert_status(item[0].rc, item[1].rc);
    for (size_t i = 0; i < item[0].change_count; i++)
        assert_int_equal(changes[0][i].size, changes[1][i].size);
    if (item[0].rc == DIBS_STALE)
        match_found(tw, item);
    if (item[0].rc == DIBS_OK)
        note_versions(tw, item);
    for (size_t s = 0; s < 2; s++)
        dibs__commit_fini(&item[s], 1);
}

/* All values and indexes are the same at both. */
static void match_all(twin *tw)
{
    for (size_t i = 0; i < INDEXES; i++) {
        char here[CONTRACT_DUMP];

        snprintf(here, sizeof(here), "%s",
                 index_all(&tw->t[0], tw->indexes[i]));
        assert_string_equal(here, index_all(&tw->t[1], tw->indexes[i]));
    }
    for (size_t s = 0; s < 2; s++) {
        dibs__store *st = tw->t[s].st[0];
        const char *keys[KEYS];
        dibs_value values[KEYS];
        dibs_error err = {0};

        for (size_t k = 0; k < KEYS; k++)
            keys[k] = tw->keys[k];
        assert_status(st->ops->commit->get_many(st, keys, KEYS, contract_soon(),
                                                values, &err),
                      DIBS_OK);
        for (size_t k = 0; k < KEYS; k++) {
            assert_int_equal(values[k].version, tw->versions[s][k]);
            dibs_value_free(&values[k]);
        }
    }
}

static void random_commits_do_what_the_rule_does(void **state)
{
    contract *t = *state;
    twin tw = {.t = {*t}};
    dibs_error err = {0};

    tw.prng.state = seed_of_run();
    for (size_t i = 0; i < CONTRACT_HANDLES; i++)
        assert_status(dibs__store_open("memory:commit_twin", contract_soon(),
                                       &tw.t[1].st[i], &err),
                      DIBS_OK);
    for (size_t i = 0; i < KEYS; i++)
        snprintf(tw.keys[i], sizeof(tw.keys[i]), "%s{w}k%zu", t->name, i);
    for (size_t i = 0; i < INDEXES; i++)
        snprintf(tw.indexes[i], sizeof(tw.indexes[i]), "%s{w}i%zu", t->name, i);
    for (int i = 0; i < STEPS; i++) {
        commit_both(&tw);
        if (i % 20 == 19)
            match_all(&tw);
    }
    for (size_t i = 0; i < CONTRACT_HANDLES; i++)
        dibs__store_close(tw.t[1].st[i]);
}

int contract_index(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(entries_are_in_order),
        CONTRACT_TEST(a_look_has_bounds_and_a_next_number),
        CONTRACT_TEST(now_is_that_of_the_store),
        CONTRACT_TEST(several_indexes_are_looked_at_in_one_step),
        CONTRACT_TEST(many_values_are_read_at_once),
        CONTRACT_TEST(the_largest_commit_fits),
        CONTRACT_TEST(commits_that_no_store_takes),
        CONTRACT_TEST(steps_that_are_too_large),
        CONTRACT_TEST(random_commits_do_what_the_rule_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
