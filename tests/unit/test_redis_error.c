/* test_redis_error.c - what error replies of a Redis server mean. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "store/redis/wire/error.h"
#include <string.h>

typedef struct expectation {
    const char *reply;
    dibs_status status;
    bool retriable;
    const char *origin;
} expectation;

static void expect(const expectation *ex)
{
    dibs_error err;

    memset(&err, 0xff, sizeof(err));
    assert_int_equal(dibs__redis_fail(ex->reply, &err), ex->status);
    assert_int_equal(err.status, ex->status);
    assert_int_equal(err.retriable, ex->retriable);
    assert_string_equal(err.origin, ex->origin);
    assert_true(strlen(err.message) > 0);
    assert_int_equal(dibs__redis_fail(ex->reply, NULL), ex->status);
}

/* As Redis 7 words them. */
static void errors_of_the_server(void **state)
{
    static const expectation all[] = {
        {"OOM command not allowed when used memory > 'maxmemory'.",
         DIBS_UNAVAIL, true, "OOM"},
        {"READONLY You can't write against a read only replica.", DIBS_UNAVAIL,
         true, "READONLY"},
        {"LOADING Redis is loading the dataset in memory", DIBS_UNAVAIL, true,
         "LOADING"},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL "
         "or SHUTDOWN NOSAVE.",
         DIBS_UNAVAIL, true, "BUSY"},
        {"UNKILLABLE Sorry the script already executed write commands against "
         "the dataset.",
         DIBS_UNAVAIL, true, "UNKILLABLE"},
        {"NOREPLICAS Not enough good replicas to write.", DIBS_UNAVAIL, true,
         "NOREPLICAS"},
        {"MISCONF Redis is configured to save RDB snapshots, but it's "
         "currently unable to persist to disk.",
         DIBS_UNAVAIL, true, "MISCONF"},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is "
         "set to 'no'.",
         DIBS_UNAVAIL, true, "MASTERDOWN"},
        {"CLUSTERDOWN The cluster is down", DIBS_UNAVAIL, true, "CLUSTERDOWN"},
        {"TRYAGAIN Multiple keys request during rehashing of slot",
         DIBS_UNAVAIL, true, "TRYAGAIN"},
        {"NOSCRIPT No matching script. Please use EVAL.", DIBS_UNAVAIL, true,
         "NOSCRIPT"},
        {"ERR max number of clients reached", DIBS_UNAVAIL, true, "ERR"},
        {"NOAUTH Authentication required.", DIBS_DENIED, false, "NOAUTH"},
        {"WRONGPASS invalid username-password pair or user is disabled.",
         DIBS_DENIED, false, "WRONGPASS"},
        {"NOPERM User dibs has no permissions to run the 'eval' command",
         DIBS_DENIED, false, "NOPERM"},
        {"DENIED Redis is running in protected mode because protected mode is "
         "enabled",
         DIBS_DENIED, false, "DENIED"},
        {"WRONGTYPE Operation against a key holding the wrong kind of value",
         DIBS_INTERNAL, false, "WRONGTYPE"},
        {"FOREIGN the key holds something that is not a lock", DIBS_INTERNAL,
         false, "FOREIGN"},
        {"MOVED 3999 127.0.0.1:6381", DIBS_UNSUPPORTED, false, "MOVED"},
        {"ASK 3999 127.0.0.1:6381", DIBS_UNSUPPORTED, false, "ASK"},
        {"CROSSSLOT Keys in request don't hash to the same slot",
         DIBS_UNSUPPORTED, false, "CROSSSLOT"},
        {"ERR unknown command 'EVALSHA', with args beginning with: ",
         DIBS_UNSUPPORTED, false, "ERR"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        expect(&all[i]);
}

/* A script says where it met the error: after it in version 7, before it in
 * earlier ones. */
static void errors_inside_a_script(void **state)
{
    static const expectation all[] = {
        {"OOM command not allowed when used memory > 'maxmemory'. script: "
         "01f5fa5a8aa2dd1f91518de11d29fe36265b187d, on @user_script:18.",
         DIBS_UNAVAIL, true, "OOM"},
        {"ERR Error running script (call to "
         "f_01f5fa5a8aa2dd1f91518de11d29fe3626"
         "5b187d): @user_script:18: @user_script: 18: -OOM command not allowed "
         "when used memory > 'maxmemory'.",
         DIBS_UNAVAIL, true, "OOM"},
        {"ERR Error running script (call to f_01f5): @user_script:3: "
         "@user_script: 3: -READONLY You can't write against a read only "
         "replica.",
         DIBS_UNAVAIL, true, "READONLY"},
        {"ERR The user executing the script can't run this command or "
         "subcommand script: 01f5, on @user_script:18.",
         DIBS_DENIED, false, "ERR"},
        {"NOPERM ACL failure in script: User dibs has no permissions to access "
         "one of the keys used as arguments",
         DIBS_DENIED, false, "NOPERM"},
        {"ERR ACL failure in script: No permissions to access a key",
         DIBS_DENIED, false, "ERR"},
        {"ERR user_script:19: -USEDUP the fences of this database are used up "
         "script: 01f5, on @user_script:19.",
         DIBS_INTERNAL, false, "USEDUP"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        expect(&all[i]);
}

static void replicas_that_are_missing(void **state)
{
    (void)state;
    assert_true(dibs__redis_lacks_replicas(
        "NOREPLICAS Not enough good replicas to write."));
    assert_true(dibs__redis_lacks_replicas(
        "ERR Error running script (call to f_01f5): @user_script:3: "
        "@user_script: 3: -NOREPLICAS Not enough good replicas to write."));
    assert_false(dibs__redis_lacks_replicas("NOREPLICASET is no code"));
    assert_false(dibs__redis_lacks_replicas("ERR unknown command"));
}

/* A script may have been at work before it met something unheard of. */
static void what_is_not_known_may_have_changed_something(void **state)
{
    static const char *const replies[] = {
        "ERR user_script:7: attempt to index a nil value",
        "ERR syntax error",
        "OOMPH not a code of ours",
        "ERR the word -OOMPH is none either",
        "BUSYGROUP Consumer Group name already exists",
        "",
    };
    dibs_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        assert_int_equal(dibs__redis_fail(replies[i], &err), DIBS_UNKNOWN);
        assert_true(err.retriable);
        assert_string_equal(err.origin, "ERR");
        assert_non_null(strstr(err.message, replies[i]));
    }
}

/* The code decides, not what else the message speaks of. */
static void the_first_word_counts(void **state)
{
    static const expectation ex = {"WRONGTYPE of a key called -OOM here",
                                   DIBS_INTERNAL, false, "WRONGTYPE"};

    (void)state;
    expect(&ex);
}

static void a_missing_script_is_told_apart(void **state)
{
    (void)state;
    assert_true(
        dibs__redis_no_script("NOSCRIPT No matching script. Please use EVAL."));
    assert_false(dibs__redis_no_script("ERR NOSCRIPT"));
    assert_false(dibs__redis_no_script("OOM command not allowed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_the_server),
        cmocka_unit_test(errors_inside_a_script),
        cmocka_unit_test(replicas_that_are_missing),
        cmocka_unit_test(what_is_not_known_may_have_changed_something),
        cmocka_unit_test(the_first_word_counts),
        cmocka_unit_test(a_missing_script_is_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
