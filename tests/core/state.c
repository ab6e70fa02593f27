/* state.c - shared values through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <stdio.h>
#include <string.h>

static void set_get_delete(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    dibs_value value;
    uint64_t version = 0;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_state_get(cl, key, &value, err));
    assert_null(value.data);
    CHECK(DIBS_OK,
          dibs_state_set(cl, key, "one\0\xff\xc3o", 7, 0, &version, err));
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_int_equal(value.len, 7);
    assert_memory_equal(value.data, "one\0\xff\xc3o", 8);
    assert_int_equal(value.version, version);
    assert_int_equal(value.expires_ms, -1);
    dibs_value_free(&value);
    assert_null(value.data);
    CHECK(DIBS_STALE, dibs_state_delete(cl, key, version + 1, err));
    CHECK(DIBS_OK, dibs_state_delete(cl, key, version, err));
    CHECK(DIBS_NOTFOUND, dibs_state_delete(cl, key, DIBS_VERSION_ANY, err));
    dibs_close(cl);
}

static void compare_and_set(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    uint64_t first = 0, second = 0;

    (void)state;
    CHECK(DIBS_OK,
          dibs_state_cas(cl, key, DIBS_VERSION_NONE, "a", 1, 0, &first, err));
    CHECK(DIBS_STALE,
          dibs_state_cas(cl, key, DIBS_VERSION_NONE, "b", 1, 0, &second, err));
    assert_int_equal(second, first);
    CHECK(DIBS_OK, dibs_state_cas(cl, key, first, "b", 1, 0, &second, err));
    assert_true(second > first);
    CHECK(DIBS_STALE, dibs_state_cas(cl, key, first, "c", 1, 0, NULL, err));
    dibs_close(cl);
}

static void adds(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    int64_t sum = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_state_add(cl, key, 40, &sum, err));
    CHECK(DIBS_OK, dibs_state_add(cl, key, 2, &sum, err));
    assert_int_equal(sum, 42);
    CHECK(DIBS_OK, dibs_state_add(cl, key, -50, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(cl, key, "no", 2, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_add(cl, key, 1, &sum, err));
    dibs_close(cl);
}

static bool has_expired(void *arg)
{
    dibs_value value;
    dibs_client *cl = ((void **)arg)[0];
    dibs_status rc = dibs_state_get(cl, ((void **)arg)[1], &value, NULL);

    dibs_value_free(&value);
    return rc == DIBS_NOTFOUND;
}

static void expires(void **state)
{
    dibs_client *cl = core_open();
    char key[64];
    void *arg[2] = {cl, key};
    dibs_value value;

    (void)state;
    strncpy(key, core_name(), sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, 60000, NULL, err));
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_in_range(value.expires_ms, 50000, 60000);
    dibs_value_free(&value);
    CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, 100, NULL, err));
    core_until(has_expired, arg);
    dibs_close(cl);
}

static void bad_values_are_refused(void **state)
{
    static char big[DIBS_VALUE_MAX + 1];
    dibs_client *cl = core_open();
    const char *key = core_name();

    (void)state;
    CHECK(DIBS_INVALID,
          dibs_state_set(cl, key, big, sizeof(big), 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_set(cl, key, "x", 1, -1, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_set(cl, "", "x", 1, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_add(cl, "\t", 1, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_delete(cl, NULL, 0, err));
    dibs_close(cl);
}

typedef struct seen {
    char keys[4][96];
    size_t count;
} seen;

static bool note_key(const dibs_state_item *item, void *arg)
{
    seen *sn = arg;

    strncpy(sn->keys[sn->count], item->key, sizeof(sn->keys[0]) - 1);
    return ++sn->count < 4;
}

static void lists_without_the_prefix(void **state)
{
    dibs_client *cl = NULL;
    const char *prefix = core_name();
    seen sn = {0};

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = prefix), &cl, err));
    CHECK(DIBS_OK, dibs_state_set(cl, "/b", "1", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(cl, "/a", "1", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(cl, ":c", "1", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_list(cl, "/", note_key, &sn, err));
    assert_int_equal(sn.count, 2);
    assert_string_equal(sn.keys[0], "/a");
    assert_string_equal(sn.keys[1], "/b");
    dibs_close(cl);
}

/* A client whose names are its own. */
static dibs_client *open_board(void)
{
    static char prefix[96];
    dibs_client *cl = NULL;

    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = prefix), &cl, err));
    return cl;
}

#define PUT(key, text)                                                         \
    {                                                                          \
        .verb = DIBS_COMMIT_PUT, .name = (key), .data = (text),                \
        .len = strlen(text)                                                    \
    }
#define ENTER(index, who, number)                                              \
    {                                                                          \
        .verb = DIBS_COMMIT_ENTER, .name = (index), .member = (who),           \
        .at = (number)                                                         \
    }
#define LEAVE(index, who)                                                      \
    {                                                                          \
        .verb = DIBS_COMMIT_LEAVE, .name = (index), .member = (who)            \
    }

static bool note_entry(const dibs_index_entry *entry, void *arg)
{
    char *to = arg;

    snprintf(to + strlen(to), 128 - strlen(to), "%d:%s@%d ", (int)entry->look,
             entry->member, (int)entry->at);
    return strlen(to) < 20;
}

static void commits_change_all_or_nothing(void **state)
{
    dibs_client *cl = open_board();
    dibs_commit_change changes[] = {PUT("{b}run", "one"), PUT("{b}job", "two"),
                                    ENTER("{b}due", "x", 7),
                                    ENTER("{b}due", "y", 3)};
    dibs_commit_check check = {"{b}run", DIBS_VERSION_NONE};
    dibs_commit commit = {.checks = &check,
                          .check_count = 1,
                          .changes = changes,
                          .change_count = 4};
    dibs_value values[3];
    const char *const keys[] = {"{b}job", "{b}none", "{b}run"};

    (void)state;
    changes[2].counted = true;
    CHECK(DIBS_OK, dibs_state_commit(cl, &commit, 1, err));
    assert_int_equal(changes[2].size, 2);
    assert_int_equal(changes[3].size, 0);
    assert_true(commit.version > 0 && commit.now_us > 0);
    CHECK(DIBS_OK, dibs_state_get_many(cl, keys, 3, values, err));
    assert_string_equal(values[0].data, "two");
    assert_int_equal(values[0].version, commit.version);
    assert_int_equal(values[1].version, 0);
    assert_int_equal(values[2].version, commit.version);
    for (size_t i = 0; i < 3; i++)
        dibs_value_free(&values[i]);
    CHECK(DIBS_STALE, dibs_state_commit(cl, &commit, 1, err));
    assert_status(commit.rc, DIBS_STALE);
    assert_int_equal(commit.failed, 0);
    assert_string_equal(commit.found.data, "one");
    dibs_commit_free(&commit, 1);
    assert_null(commit.found.data);
    dibs_close(cl);
}

static void commits_know_the_clock_of_the_store(void **state)
{
    dibs_client *cl = open_board();
    dibs_commit_change changes[] = {PUT("{b}run", "one")};
    dibs_commit commits[] = {
        {.changes = changes, .change_count = 1, .not_after_us = 1},
        {.changes = changes, .change_count = 1},
        {.changes = changes,
         .change_count = 1,
         .not_before_us = DIBS_INDEX_AT_MAX},
    };
    dibs_error err = {0};

    (void)state;
    assert_status(dibs_state_commit(cl, commits, 3, &err), DIBS_LATE);
    assert_non_null(strstr(err.message, "late on the store's clock"));
    assert_false(err.retriable);
    assert_status(commits[0].rc, DIBS_LATE);
    assert_status(commits[1].rc, DIBS_OK);
    assert_status(commits[2].rc, DIBS_EARLY);
    assert_status(dibs_state_commit(cl, &commits[2], 1, &err), DIBS_EARLY);
    assert_true(err.retriable);
    dibs_close(cl);
}

static void indexes_show_their_first_entries(void **state)
{
    dibs_client *cl = open_board();
    dibs_commit_change changes[] = {ENTER("{b}due", "b", 2),
                                    ENTER("{b}due", "a", 2),
                                    ENTER("{b}due", "c", 9),
                                    ENTER("{b}live", "z", 0)};
    dibs_commit commit = {.changes = changes, .change_count = 4};
    dibs_commit_change leaves[] = {LEAVE("{b}live", "z")};
    dibs_commit left = {.changes = leaves, .change_count = 1};
    dibs_index_look looks[] = {{.index = "{b}live", .limit = 9},
                               {.index = "{b}due", .up_to = 5, .limit = 9}};
    char seen_text[128] = "";
    int64_t now_us = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_state_commit(cl, &commit, 1, err));
    CHECK(DIBS_OK,
          dibs_index_first(cl, looks, 2, &now_us, note_entry, seen_text, err));
    assert_string_equal(seen_text, "0:z@0 1:a@2 1:b@2 ");
    assert_int_equal(looks[0].next, -1);
    assert_int_equal(looks[1].next, 9);
    assert_true(now_us > 0);
    CHECK(DIBS_OK, dibs_state_commit(cl, &left, 1, err));
    seen_text[0] = '\0';
    looks[1].up_to = DIBS_INDEX_NOW;
    looks[1].limit = 1;
    CHECK(DIBS_OK,
          dibs_index_first(cl, looks, 2, NULL, note_entry, seen_text, err));
    assert_string_equal(seen_text, "1:a@2 ");
    assert_int_equal(looks[1].next, 2);
    dibs_close(cl);
}

static void a_watch_sees_what_a_commit_writes(void **state)
{
    dibs_client *cl = open_board();
    dibs_commit_change changes[] = {PUT("{b}run", "one"), PUT("{b}job", "1")};
    dibs_commit commit = {.changes = changes, .change_count = 2};
    dibs_watch *watch = NULL;
    dibs_change change;

    (void)state;
    CHECK(DIBS_OK, dibs_state_watch(cl, "{b}run", &watch, err));
    CHECK(DIBS_OK, dibs_watch_next(watch, pace_ms(60000), &change, err));
    assert_int_equal(change.value.version, 0);
    CHECK(DIBS_OK, dibs_state_commit(cl, &commit, 1, err));
    CHECK(DIBS_OK, dibs_watch_next(watch, pace_ms(60000), &change, err));
    assert_int_equal(change.value.version, commit.version);
    assert_string_equal(change.value.data, "one");
    dibs_value_free(&change.value);
    dibs_watch_free(watch);
    dibs_close(cl);
}

static void
refuse_change(dibs_client *cl, dibs_commit_change change, const char *message)
{
    dibs_commit commit = {.changes = &change, .change_count = 1};
    dibs_error err = {0};

    assert_status(dibs_state_commit(cl, &commit, 1, &err), DIBS_INVALID);
    assert_status(commit.rc, DIBS_INVALID);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, err.message);
}

static void bad_commits_are_refused(void **state)
{
    static dibs_commit many[DIBS_COMMITS_MAX + 1];
    static const char *keys[DIBS_GET_MANY_MAX + 1];
    static dibs_value values[DIBS_GET_MANY_MAX + 1];
    dibs_client *cl = open_board();
    dibs_commit_change two[] = {PUT("a", "x"), PUT("b", "x")};
    dibs_commit commit = {.changes = two, .change_count = 2};
    dibs_index_look look = {.index = "", .limit = 1};

    (void)state;
    CHECK(DIBS_INVALID, dibs_state_commit(cl, &commit, 1, err));
    commit.change_count = DIBS_CHANGES_MAX + 1;
    CHECK(DIBS_INVALID, dibs_state_commit(cl, &commit, 1, err));
    commit.change_count = 0;
    CHECK(DIBS_INVALID, dibs_state_commit(cl, &commit, 1, err));
    CHECK(DIBS_INVALID, dibs_state_commit(cl, many, DIBS_COMMITS_MAX + 1, err));
    CHECK(DIBS_INVALID, dibs_state_commit(cl, many, 0, err));
    refuse_change(cl, (dibs_commit_change){.verb = 9, .name = "x"}, "no verb");
    refuse_change(cl, (dibs_commit_change)PUT("", "x"), "empty");
    refuse_change(cl, (dibs_commit_change)ENTER("x", NULL, 1), "NULL");
    refuse_change(cl, (dibs_commit_change)ENTER("x", "a\tb", 1), "member");
    refuse_change(cl, (dibs_commit_change)ENTER("x", "", 1), "empty");
    refuse_change(cl, (dibs_commit_change)ENTER("x", "y", -1), "from 0 to");
    CHECK(DIBS_INVALID,
          dibs_state_get_many(cl, keys, DIBS_GET_MANY_MAX + 1, values, err));
    CHECK(DIBS_INVALID, dibs_state_get_many(cl, keys, 1, values, err));
    CHECK(DIBS_INVALID,
          dibs_index_first(cl, &look, 1, NULL, note_entry, NULL, err));
    dibs_close(cl);
}

int core_state_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_get_delete),
        cmocka_unit_test(compare_and_set),
        cmocka_unit_test(adds),
        cmocka_unit_test(expires),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(lists_without_the_prefix),
        cmocka_unit_test(commits_change_all_or_nothing),
        cmocka_unit_test(commits_know_the_clock_of_the_store),
        cmocka_unit_test(indexes_show_their_first_entries),
        cmocka_unit_test(a_watch_sees_what_a_commit_writes),
        cmocka_unit_test(bad_commits_are_refused),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
