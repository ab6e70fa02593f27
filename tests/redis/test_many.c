/* test_many.c - the script that does the steps of a group: what each of its
 * members is answered, and what the server has then. */
/* SPDX-License-Identifier: MIT */
#include "pipeline_world.h"

#include "store/redis/keys.h"
#include "store/redis/script.h"

/* Members of a group, as words with spaces between. */
typedef struct party {
    const char *keys;
    const char *rest; /* from the number of those who ask on */
} party;

static int setup(void **state)
{
    static server sv;
    dibs_error err = {0};

    *state = &sv;
    if (dibs__script_load(&err) != DIBS_OK)
        return -1;
    return server_start_forgetful(&sv, NULL) ? 0 : -1;
}

static int teardown(void **state)
{
    server_stop(*state);
    return 0;
}

/* The number of words. */
static int add_words(dibs__words *words, const char *text)
{
    int count = 0;

    for (; *text; count++) {
        size_t len = strcspn(text, " ");

        dibs__words_add(words, text, len);
        text += len + (text[len] == ' ');
    }
    return count;
}

/* Runs the script for them; free the reply. */
static redisReply *run(piped *pd, party pt)
{
    dibs__words words = {.count = 0}, keys = {.count = 0};
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), 10000);
    redisReply *reply = NULL;
    dibs__route *rt = NULL;
    dibs_error err = {0};
    char key_count[16];
    dibs_status rc;

    snprintf(key_count, sizeof(key_count), "%d", 1 + add_words(&keys, pt.keys));
    dibs__script_begin(&words, DIBS__SCRIPT_batch, key_count);
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    add_words(&words, pt.keys);
    add_words(&words, pt.rest);
    rc = dibs__route_new(&pd->conf, NULL, DIBS__REQUEST_STEP, &rt, &err);
    if (rc == DIBS_OK)
        rc = dibs__script_run(rt, DIBS__SCRIPT_batch, &words, deadline, &reply,
                              &err);
    if (rc != DIBS_OK)
        FAIL_OF(rc, "%s", err.message);
    dibs__route_free(rt);
    return reply;
}

/* 'F' for a fence above *last, 'n' for nil, or the digit that it is. */
static char letter_of(const redisReply *item, long long *last)
{
    long long fence;

    if (item->type == REDIS_REPLY_NIL)
        return 'n';
    if (item->type == REDIS_REPLY_INTEGER)
        return (char)('0' + item->integer);
    assert_int_equal(item->type, REDIS_REPLY_STRING);
    fence = strtoll(item->str, NULL, 10);
    assert_true(fence > *last);
    *last = fence;
    return 'F';
}

static void expect_answers(piped *pd, party pt, const char *answers)
{
    redisReply *reply = run(pd, pt);
    char got[32] = "";
    long long fence = 0;

    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_true(reply->elements < sizeof(got));
    for (size_t i = 0; i < reply->elements; i++)
        got[i] = letter_of(reply->element[i], &fence);
    assert_string_equal(got, answers);
    dibs__reply_free(reply);
}

/* Also when all names were free before the group came. */
static void a_name_is_granted_once(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect_answers(&pd,
                   (party){"a a:party b b:party a a:party",
                           "3 one 90000 me two 90000 me three 90000 me"},
                   "FFn");
    expect(&pd, "HGET a owner", "one");
    expect(&pd, "HGET b owner", "two");
    pipe_close(&pd);
}

static void what_is_held_or_waited_for_is_not_granted(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "HSET held owner somebody", "1");
    expect(&pd, "HSET awaited:party somebody 1", "1");
    expect_answers(&pd,
                   (party){"held held:party awaited awaited:party c c:party",
                           "3 one 90000 me two 90000 me three 90000 me"},
                   "nnF");
    expect(&pd, "HGET held owner", "somebody");
    expect(&pd, "EXISTS awaited", "0");
    pipe_close(&pd);
}

/* A lease that is given up is no grant for who asks in the same group: whether
 * somebody waits is for the step alone to see. */
static void only_the_owner_gives_up(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "HSET mine owner me", "1");
    expect(&pd, "HSET other owner somebody", "1");
    expect_answers(&pd,
                   (party){"mine mine:party mine other none",
                           "1 next 90000 me me me me"},
                   "n011");
    expect(&pd, "EXISTS mine", "0");
    expect(&pd, "HGET other owner", "somebody");
    pipe_close(&pd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_granted_once),
        cmocka_unit_test(what_is_held_or_waited_for_is_not_granted),
        cmocka_unit_test(only_the_owner_gives_up),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
