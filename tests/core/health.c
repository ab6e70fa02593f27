/* health.c - the health check through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <stdio.h>
#include <string.h>

enum { PARTS_MAX = 8 };

typedef struct findings {
    size_t count;
    char names[PARTS_MAX][16];
    char details[PARTS_MAX][256];
    dibs_health_part parts[PARTS_MAX];
} findings;

static void note_part(const dibs_health_part *part, void *arg)
{
    findings *f = arg;

    assert_true(f->count < PARTS_MAX);
    snprintf(f->names[f->count], sizeof(f->names[0]), "%s", part->name);
    snprintf(f->details[f->count], sizeof(f->details[0]), "%s", part->detail);
    f->parts[f->count++] = *part;
}

/* How many locks and values the check has left behind. */
static bool count_lease(const dibs_lease_info *info, void *arg)
{
    (void)info;
    ++*(size_t *)arg;
    return true;
}

static bool count_value(const dibs_state_item *item, void *arg)
{
    (void)item;
    ++*(size_t *)arg;
    return true;
}

static size_t count_traces(dibs_client *cl)
{
    size_t count = 0;

    CHECK(DIBS_OK,
          dibs_lease_list(cl, "dibs.health/", count_lease, &count, err));
    CHECK(DIBS_OK,
          dibs_state_list(cl, "dibs.health/", count_value, &count, err));
    return count;
}

static dibs_health check(dibs_client *cl, const char *election,
                         const char *group, dibs_status rc, findings *f)
{
    dibs_health health = DIBS_UNHEALTHY;

    f->count = 0;
    CHECK(rc, dibs_health_check(cl,
                                DIBS_HEALTH_OPTS(.election = election,
                                                 .group = group,
                                                 .slow_ms = pace_ms(20000),
                                                 .each = note_part, .arg = f),
                                &health, err));
    return health;
}

static void a_store_is_healthy(void **state)
{
    dibs_client *cl = core_open();
    dibs_stats stats = {.size = sizeof(stats)};
    findings f;

    (void)state;
    assert_int_equal(check(cl, NULL, NULL, DIBS_OK, &f), DIBS_HEALTHY);
    assert_int_equal(f.count, 2);
    assert_string_equal(f.names[0], "lock");
    assert_string_equal(f.names[1], "state");
    for (size_t i = 0; i < f.count; i++) {
        assert_int_equal(f.parts[i].result, DIBS_PART_OK);
        assert_string_equal(f.details[i], "");
    }
    CHECK(DIBS_OK, dibs_health_check(cl, NULL, NULL, err));
    assert_int_equal(count_traces(cl), 0);
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.attempts, 0);
    dibs_close(cl);
}

static void a_missing_leader_degrades(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_election *election = NULL;
    findings f;

    (void)state;
    assert_int_equal(check(cl, name, NULL, DIBS_OK, &f), DIBS_DEGRADED);
    assert_int_equal(f.count, 3);
    assert_string_equal(f.names[2], "leader");
    assert_int_equal(f.parts[2].result, DIBS_PART_MISSING);
    CHECK(DIBS_OK,
          dibs_election_new(cl, name, DIBS_ELECTION_OPTS(.member = "first"),
                            &election, err));
    CHECK(DIBS_OK, dibs_election_wait(election, pace_ms(30000), err));
    assert_int_equal(check(cl, name, NULL, DIBS_OK, &f), DIBS_HEALTHY);
    assert_ptr_equal(strstr(f.details[2], "first leads "), f.details[2]);
    CHECK(DIBS_OK, dibs_election_check(election));
    dibs_election_free(election);
    dibs_close(cl);
}

static void a_group_must_have_members(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_member *member = NULL;
    findings f;

    (void)state;
    CHECK(DIBS_OK, dibs_member_join(cl, name, NULL, &member, err));
    assert_int_equal(check(cl, NULL, name, DIBS_OK, &f), DIBS_HEALTHY);
    assert_non_null(strstr(f.details[2], "has 1 member"));
    dibs_member_leave(member);
    assert_int_equal(check(cl, NULL, name, DIBS_OK, &f), DIBS_DEGRADED);
    assert_string_equal(f.names[2], "members");
    assert_int_equal(f.parts[2].result, DIBS_PART_MISSING);
    CHECK(DIBS_OK, dibs_latch_count_down(cl, name, 2, "job", NULL, err));
    assert_int_equal(check(cl, NULL, name, DIBS_MISMATCH, &f), DIBS_UNHEALTHY);
    assert_int_equal(f.parts[2].result, DIBS_PART_FAILED);
    dibs_close(cl);
}

static void malformed_options_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_health health = DIBS_HEALTHY;
    findings f;

    (void)state;
    CHECK(DIBS_INVALID, dibs_health_check(NULL, NULL, &health, err));
    assert_int_equal(health, DIBS_UNHEALTHY);
    CHECK(DIBS_INVALID,
          dibs_health_check(cl, &(dibs_health_opts){.size = 0}, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_health_check(cl, DIBS_HEALTH_OPTS(.slow_ms = -1), NULL, err));
    check(cl, "", NULL, DIBS_INVALID, &f);
    check(cl, NULL, "line\nend", DIBS_INVALID, &f);
    assert_int_equal(f.count, 0);
    dibs_close(cl);
}

int core_health_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_healthy),
        cmocka_unit_test(a_missing_leader_degrades),
        cmocka_unit_test(a_group_must_have_members),
        cmocka_unit_test(malformed_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
