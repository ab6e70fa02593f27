/* test_rosters.c - lists of groups, barriers and latches on a server that has many. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "redis_world.h"

#include "store/store.h"

enum { LATCHES = 5000, GROUPS = 3, AT_ONCE = 25, LONG_MS = 600000 };

static void make_latches(const char *url)
{
    dibs__store *st = NULL;

    CHECK(DIBS_OK,
          dibs__store_open(url, dibsx_after_ms(dibsx_now(), 30000), &st, err));
    for (int i = 0; i < LATCHES; i += AT_ONCE) {
        dibs__meet items[AT_ONCE];
        char names[AT_ONCE][32];

        for (int k = 0; k < AT_ONCE; k++) {
            /* Some come before the groups, some behind them. */
            snprintf(names[k], sizeof(names[k]), "%c-latch-%05d",
                     k % 2 ? 'a' : 'z', i + k);
            items[k] = (dibs__meet){.name = names[k],
                                    .id = "one",
                                    .verb = DIBS__COUNT,
                                    .need = 3,
                                    .ttl_ms = LONG_MS};
        }
        CHECK(DIBS_OK,
              st->ops->roster->meet(st, items, AT_ONCE,
                                    dibsx_after_ms(dibsx_now(), 30000), err));
        for (int k = 0; k < AT_ONCE; k++)
            assert_status(items[k].rc, DIBS_BUSY);
    }
    dibs__store_close(st);
}

/* The names of a list, which come in order, each once. */
typedef struct listing {
    size_t count;
    char last[DIBS_NAME_MAX + 1];
} listing;

static void note_name(listing *ls, const char *name)
{
    assert_true(strcmp(ls->last, name) < 0);
    snprintf(ls->last, sizeof(ls->last), "%s", name);
    ls->count++;
}

static bool note_group(const dibs_group_info *info, void *arg)
{
    assert_int_equal(info->members, 1);
    note_name(arg, info->group);
    return true;
}

static bool
note_latch(const char *name, const dibs_latch_state *latch, void *arg)
{
    assert_int_equal(latch->count, 3);
    assert_int_equal(latch->left, 2);
    note_name(arg, name);
    return true;
}

/* The answers come late, so that the list takes longer than one request may. */
static void a_list_goes_on_while_the_server_answers(void **state)
{
    enum { TIMEOUT_MS = 3000, DELAY_MS = 50 };
    world *w = *state;
    listing groups = {0};
    dibs_client *far;
    dibsx_nsec start;
    char url[64];
    static proxy px;

    make_latches(w->url);
    assert_true(proxy_start(&px, w->sv.port));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", px.port);
    far = world_client(url, TIMEOUT_MS);
    proxy_slow(&px, DELAY_MS, 0, 0);
    start = dibsx_now();
    CHECK(DIBS_OK, dibs_group_list(far, "", note_group, &groups, err));
    assert_int_equal(groups.count, 0);
    assert_true(dibsx_now() - start > TIMEOUT_MS * DIBSX_MS);
    proxy_slow(&px, 0, 0, 0);
    dibs_close(far);
    proxy_stop(&px);
}

static long long count_scans(const world *w)
{
    return server_info(&w->sv, "commandstats", "cmdstat_scan");
}

/* Each scan reads all keys, so that one for every thousand latches would make the list
 * of many a long one. */
static void a_long_list_scans_the_keys_twice(void **state)
{
    world *w = *state;
    listing groups = {0}, latches = {0};
    long long once, twice;

    make_latches(w->url);
    CHECK(DIBS_OK, dibs_group_list(w->other, "", note_group, &groups, err));
    once = count_scans(w);
    assert_true(once >= LATCHES / 1000);
    CHECK(DIBS_OK, dibs_latch_list(w->other, "", note_latch, &latches, err));
    twice = count_scans(w) - once;
    assert_int_equal(latches.count, LATCHES);
    assert_in_range(twice, once, 3 * once);
}

static void a_kind_is_found_among_many_of_another(void **state)
{
    world *w = *state;
    dibs_member *members[GROUPS] = {NULL};
    listing groups = {0}, latches = {0}, some = {0};

    make_latches(w->url);
    for (int i = 0; i < GROUPS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "group-%d", i);
        CHECK(DIBS_OK, dibs_member_join(w->one, name, NULL, &members[i], err));
    }
    CHECK(DIBS_OK, dibs_group_list(w->other, "", note_group, &groups, err));
    assert_int_equal(groups.count, GROUPS);
    CHECK(DIBS_OK, dibs_latch_list(w->other, "", note_latch, &latches, err));
    assert_int_equal(latches.count, LATCHES);
    CHECK(DIBS_OK,
          dibs_latch_list(w->other, "a-latch-0001", note_latch, &some, err));
    assert_int_equal(some.count, 5);
    for (int i = 0; i < GROUPS; i++)
        dibs_member_leave(members[i]);
}

static bool count_entry(const dibs__seat_entry *entry, void *arg)
{
    assert_true(entry->counts);
    ++*(size_t *)arg;
    return true;
}

/* The reply that has all of them would be longer than a client takes. */
static void a_roll_call_of_a_large_latch_has_an_end(void **state)
{
    static const char fill[] =
        "local pairs = {} for i = 1, 200000 do "
        "pairs[#pairs + 1] = '=' .. i pairs[#pairs + 1] = '+' "
        "if #pairs == 2000 then redis.call('HSET', KEYS[1], unpack(pairs)) "
        "pairs = {} end end "
        "return redis.call('HSET', KEYS[1], 'here', '200001')";
    world *w = *state;
    dibs__meet count = {.name = "large",
                        .id = "one",
                        .verb = DIBS__COUNT,
                        .need = DIBS_LATCH_MAX,
                        .ttl_ms = LONG_MS};
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), 30000);
    dibs__roster_head head;
    dibs__store *st = NULL;
    size_t entries = 0;

    CHECK(DIBS_OK, dibs__store_open(w->url, until, &st, err));
    CHECK(DIBS_OK, st->ops->roster->meet(st, &count, 1, until, err));
    assert_true(
        server_tell(&w->sv, "EVAL", fill, "1", "dibs:roster:{large}", NULL));
    CHECK(DIBS_OK, st->ops->roster->roll_call(st, "large", until, &head,
                                              count_entry, &entries, err));
    assert_int_equal(head.here, 200001);
    assert_int_equal(entries, DIBS__ROLL_CALL_MAX);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST_FORGETFUL(a_list_goes_on_while_the_server_answers),
        WORLD_TEST_FORGETFUL(a_long_list_scans_the_keys_twice),
        WORLD_TEST_FORGETFUL(a_kind_is_found_among_many_of_another),
        WORLD_TEST_FORGETFUL(a_roll_call_of_a_large_latch_has_an_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
