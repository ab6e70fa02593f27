/* test_commits.c - commits on a server: what they cost, a server that has lost its scripts,
 * has no memory left or does not answer, and keys that hold something else. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

#include "store/store.h"

#define V "dibs:value:"
#define I "dibs:index:"

typedef struct board {
    const server *sv;
    dibs__store *st;
} board;

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), 30000);
}

static board board_open(const world *w)
{
    board bd = {.sv = &w->sv};

    CHECK(DIBS_OK, dibs__store_open(w->url, soon(), &bd.st, err));
    return bd;
}

/* The status of the step if it is none of the commit. */
static dibs_status
commit(board *bd, dibs__change *changes, size_t count, dibs_error *err)
{
    dibs__commit item = {.changes = changes, .change_count = count};
    dibs_status rc = bd->st->ops->commit->commit(bd->st, &item, 1, soon(), err);

    assert_status(item.rc, rc);
    return rc;
}

static dibs__change put(const char *key, const char *data)
{
    return (dibs__change){.verb = DIBS__CHANGE_PUT,
                          .key = key,
                          .data = data,
                          .len = strlen(data)};
}

static dibs__change
on_index(dibs__change_verb verb, const char *index, const char *member)
{
    return (
        dibs__change){.verb = verb, .key = index, .member = member, .at = 7};
}

static void expect_reply(const board *bd, const char *want, const char *command,
                         const char *key, const char *word)
{
    char *text = server_ask(bd->sv, command, key, word, NULL);

    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
}

/* The commands of a kind since the last CONFIG RESETSTAT. */
static int64_t count_calls(const server *sv, const char *command)
{
    char *text = server_ask(sv, "INFO", "commandstats", NULL), want[64];
    const char *at;
    int64_t calls;

    assert_non_null(text);
    snprintf(want, sizeof(want), "cmdstat_%s:calls=", command);
    at = strstr(text, want);
    calls = at ? strtoll(strchr(at, '=') + 1, NULL, 10) : 0;
    free(text);
    return calls;
}

/* As many as fit into one step, each with a value of its own. */
static void commit_many(board *bd, int64_t at)
{
    dibs__commit items[DIBS__COMMITS_MAX];
    dibs__change changes[DIBS__COMMITS_MAX];
    char keys[DIBS__COMMITS_MAX][24];
    uint64_t last = 0;

    for (size_t i = 0; i < DIBS__COMMITS_MAX; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%zu-%d", i, (int)at);
        changes[i] = put(keys[i], "x");
        items[i] = (dibs__commit){.changes = &changes[i], .change_count = 1};
    }
    CHECK(DIBS_OK, bd->st->ops->commit->commit(bd->st, items, DIBS__COMMITS_MAX,
                                               soon(), err));
    for (size_t i = 0; i < DIBS__COMMITS_MAX; i++) {
        assert_status(items[i].rc, DIBS_OK);
        assert_true(i < 2 || items[i].version > last);
        last = items[i].version;
    }
}

/* A server that was restarted has no scripts: one commit brings the text along, and the
 * others are sent once more. None is done twice. */
static void a_lost_script_costs_one_round(void **state)
{
    board bd = board_open(*state);

    commit_many(&bd, 1);
    assert_true(server_tell(bd.sv, "CONFIG", "RESETSTAT", NULL));
    commit_many(&bd, 2);
    assert_int_equal(count_calls(bd.sv, "evalsha"), DIBS__COMMITS_MAX);
    assert_int_equal(count_calls(bd.sv, "hset"), DIBS__COMMITS_MAX);

    assert_true(server_tell(bd.sv, "SCRIPT", "FLUSH", NULL));
    assert_true(server_tell(bd.sv, "CONFIG", "RESETSTAT", NULL));
    commit_many(&bd, 3);
    assert_int_equal(count_calls(bd.sv, "eval"), 1);
    assert_int_equal(count_calls(bd.sv, "hset"), DIBS__COMMITS_MAX);
    dibs__store_close(bd.st);
}

/* The end of things frees memory, and is done with all that belongs to it. */
static void at_maxmemory_only_what_grows_is_refused(void **state)
{
    dibs__change begin[] = {put("{b}run", "begun"),
                            on_index(DIBS__CHANGE_ENTER, "{b}live", "run")};
    dibs__change more[] = {put("{b}run", "more"),
                           on_index(DIBS__CHANGE_ENTER, "{b}due", "run")};
    dibs__change end[] = {put("{b}run", "ended"),
                          on_index(DIBS__CHANGE_ENTER, "{b}runs", "run"),
                          on_index(DIBS__CHANGE_LEAVE, "{b}live", "run")};
    dibs__change gone[] = {{.verb = DIBS__CHANGE_DELETE, .key = "{b}run"}};
    board bd = board_open(*state);
    dibs_error err = {0};

    assert_status(commit(&bd, begin, 2, &err), DIBS_OK);
    assert_true(server_tell(bd.sv, "CONFIG", "SET", "maxmemory", "1", NULL));
    assert_status(commit(&bd, more, 2, &err), DIBS_UNAVAIL);
    assert_non_null(strstr(err.message, "maxmemory"));
    expect_reply(&bd, "begun", "HGET", V "{b}run", "data");
    expect_reply(&bd, "0", "EXISTS", I "{b}due", NULL);
    /* No slow machine explains a refusal. */
    assert_int_equal(commit(&bd, end, 3, &err), DIBS_OK);
    expect_reply(&bd, "ended", "HGET", V "{b}run", "data");
    expect_reply(&bd, "1", "ZCARD", I "{b}runs", NULL);
    expect_reply(&bd, "0", "EXISTS", I "{b}live", NULL);
    assert_int_equal(commit(&bd, gone, 1, &err), DIBS_OK);
    expect_reply(&bd, "0", "EXISTS", V "{b}run", NULL);
    dibs__store_close(bd.st);
}

/* What another program keeps under such a key stays, and so does all else. */
static void a_key_of_another_kind_refuses_all(void **state)
{
    dibs__change both[] = {on_index(DIBS__CHANGE_LEAVE, "{b}live", "run"),
                           put("{b}a", "new"), put("{b}odd", "new"),
                           on_index(DIBS__CHANGE_ENTER, "{b}odd", "run")};
    dibs__change begin[] = {on_index(DIBS__CHANGE_ENTER, "{b}live", "run"),
                            put("{b}a", "old")};
    board bd = board_open(*state);
    dibs_error err = {0};

    assert_status(commit(&bd, begin, 2, &err), DIBS_OK);
    assert_true(server_tell(bd.sv, "SET", V "{b}odd", "theirs", NULL));
    assert_status(commit(&bd, both, 3, &err), DIBS_INTERNAL);
    both[2] = (dibs__change){.verb = DIBS__CHANGE_DELETE, .key = "{b}odd"};
    assert_status(commit(&bd, both, 3, &err), DIBS_INTERNAL);
    expect_reply(&bd, "theirs", "GET", V "{b}odd", NULL);
    assert_true(server_tell(bd.sv, "DEL", V "{b}odd", NULL));
    assert_true(server_tell(bd.sv, "SET", I "{b}odd", "theirs", NULL));
    assert_status(commit(&bd, both, 4, &err), DIBS_INTERNAL);
    both[3].verb = DIBS__CHANGE_LEAVE;
    assert_status(commit(&bd, both, 4, &err), DIBS_INTERNAL);
    expect_reply(&bd, "theirs", "GET", I "{b}odd", NULL);
    expect_reply(&bd, "old", "HGET", V "{b}a", "data");
    expect_reply(&bd, "1", "ZCARD", I "{b}live", NULL);
    dibs__store_close(bd.st);
}

static void without_a_fence_nothing_is_done(void **state)
{
    dibs__change begin[] = {on_index(DIBS__CHANGE_ENTER, "{b}live", "run")};
    dibs__change end[] = {on_index(DIBS__CHANGE_LEAVE, "{b}live", "run")};
    board bd = board_open(*state);
    dibs_error err = {0};

    assert_status(commit(&bd, begin, 1, &err), DIBS_OK);
    assert_true(
        server_tell(bd.sv, "SET", "dibs:fence", "9007199254740991", NULL));
    assert_status(commit(&bd, end, 1, &err), DIBS_INTERNAL);
    assert_non_null(strstr(err.message, "dibs:fence"));
    expect_reply(&bd, "1", "ZCARD", I "{b}live", NULL);
    assert_true(server_tell(bd.sv, "DEL", "dibs:fence", NULL));
    assert_status(commit(&bd, end, 1, &err), DIBS_OK);
    dibs__store_close(bd.st);
}

/* Two that want their values to be absent. */
static dibs_status
commit_two(board *bd, dibs__commit items[2], dibsx_nsec deadline)
{
    static const dibs__check checks[2] = {{.key = "one"}, {.key = "two"}};
    static dibs__change changes[2];

    changes[0] = put("one", "mine");
    changes[1] = put("two", "mine");
    for (size_t i = 0; i < 2; i++)
        items[i] = (dibs__commit){.checks = &checks[i],
                                  .check_count = 1,
                                  .changes = &changes[i],
                                  .change_count = 1};
    return bd->st->ops->commit->commit(bd->st, items, 2, deadline, NULL);
}

/* Sent again as they were they are done, or are found done. */
static void without_an_answer_each_is_in_doubt(void **state)
{
    board bd = board_open(*state);
    dibs__commit items[2];
    char span[24];
    dibs_status rc;

    snprintf(span, sizeof(span), "%lld", (long long)pace_ms(300));
    assert_true(server_tell(bd.sv, "CLIENT", "PAUSE", span, NULL));
    rc = commit_two(&bd, items, dibsx_after_ms(dibsx_now(), pace_ms(60)));
    IN_TIME(rc == DIBS_UNKNOWN);
    for (size_t i = 0; i < 2; i++) {
        assert_true(items[i].rc == DIBS_UNKNOWN);
        assert_int_equal(items[i].now_us, 0);
    }
    IN_TIME(commit_two(&bd, items, soon()) == DIBS_OK);
    for (size_t i = 0; i < 2; i++)
        if (items[i].rc != DIBS_OK) {
            assert_status(items[i].rc, DIBS_STALE);
            assert_string_equal(items[i].found.data, "mine");
        }
    dibs__commit_fini(items, 2);
    dibs__store_close(bd.st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_lost_script_costs_one_round),
        WORLD_TEST(at_maxmemory_only_what_grows_is_refused),
        WORLD_TEST(a_key_of_another_kind_refuses_all),
        WORLD_TEST(without_a_fence_nothing_is_done),
        WORLD_TEST(without_an_answer_each_is_in_doubt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
