/* test_audit.c - what the audit finds on a server, and what strict refuses. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

/* The finding about one subject. */
typedef struct look {
    const char *subject;
    bool seen;
    dibs_severity severity;
    bool advised;
} look;

static void note_finding(const dibs_finding *finding, void *arg)
{
    look *lk = arg;

    if (strcmp(finding->subject, lk->subject) != 0)
        return;
    lk->seen = true;
    lk->severity = finding->severity;
    lk->advised = finding->advice != NULL;
}

static look look_at(dibs_client *cl, const char *subject)
{
    look lk = {.subject = subject};

    CHECK(DIBS_OK, dibs_audit(cl, note_finding, &lk, err));
    if (!lk.seen)
        fail_msg("nothing was found about %s", subject);
    return lk;
}

static void tell(const world *w, const char *setting, const char *value)
{
    assert_true(server_tell(&w->sv, "CONFIG", "SET", setting, value, NULL));
}

static dibs_status open_strictly(const world *w, dibs_error *err)
{
    char url[SERVER_URL_MAX + 16];
    dibs_client *cl = NULL;
    dibs_status rc;

    snprintf(url, sizeof(url), "%s%cstrict=1", w->url,
             strchr(w->url, '?') ? '&' : '?');
    rc = dibs_open(url, NULL, &cl, err);
    dibs_close(cl);
    return rc;
}

static void a_server_that_is_set_well_is_fine(void **state)
{
    world *w = *state;

    assert_int_equal(look_at(w->one, "version").severity, DIBS_FINE);
    assert_int_equal(look_at(w->one, "role").severity, DIBS_FINE);
    assert_int_equal(look_at(w->one, "eviction").severity, DIBS_FINE);
    assert_true(look_at(w->one, "persistence").severity < DIBS_CAUTION);
    assert_int_equal(look_at(w->one, "clock").severity, DIBS_FINE);
    CHECK(DIBS_OK, open_strictly(w, err));
}

/* Every policy but noeviction deletes locks when memory is short. */
static void strict_refuses_a_server_that_evicts(void **state)
{
    static const char *const policies[] = {"allkeys-lru", "volatile-ttl"};
    world *w = *state;
    dibs_error refusal = {0};

    tell(w, "maxmemory", "100mb");
    for (size_t i = 0; i < 2; i++) {
        look lk;

        tell(w, "maxmemory-policy", policies[i]);
        lk = look_at(w->one, "eviction");
        assert_int_equal(lk.severity, DIBS_DANGER);
        assert_true(lk.advised);
        assert_status(open_strictly(w, &refusal), DIBS_REFUSED);
        assert_non_null(strstr(refusal.message, "eviction"));
    }
    tell(w, "maxmemory-policy", "noeviction");
    CHECK(DIBS_OK, open_strictly(w, err));
}

static void a_server_that_forgets_is_said_so(void **state)
{
    world *w = *state;
    look lk = look_at(w->one, "persistence");

    assert_true(lk.severity >= DIBS_CAUTION);
    assert_true(lk.advised);
}

static void a_server_that_puts_flushes_off_is_said_so(void **state)
{
    world *w = *state;
    look lk;

    tell(w, "no-appendfsync-on-rewrite", "yes");
    lk = look_at(w->one, "persistence");
    assert_int_equal(lk.severity, DIBS_CAUTION);
    assert_true(lk.advised);
}

static void a_replica_is_no_place_for_locks(void **state)
{
    world *w = *state;

    assert_true(server_tell(&w->sv, "REPLICAOF", "127.0.0.1", "1", NULL));
    assert_int_equal(look_at(w->one, "role").severity, DIBS_DANGER);
    assert_true(server_tell(&w->sv, "REPLICAOF", "NO", "ONE", NULL));
    assert_int_equal(look_at(w->one, "role").severity, DIBS_FINE);
}

/* Nothing is said of a server that writes without replicas. */
static void a_server_that_lacks_its_replicas_is_said_so(void **state)
{
    world *w = *state;
    look lk = {.subject = "failover"};

    CHECK(DIBS_OK, dibs_audit(w->one, note_finding, &lk, err));
    assert_false(lk.seen);
    tell(w, "min-replicas-to-write", "1");
    lk = look_at(w->one, "failover");
    assert_int_equal(lk.severity, DIBS_CAUTION);
    assert_true(lk.advised);
    tell(w, "min-replicas-to-write", "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_server_that_is_set_well_is_fine),
        WORLD_TEST(strict_refuses_a_server_that_evicts),
        WORLD_TEST_FORGETFUL(a_server_that_forgets_is_said_so),
        WORLD_TEST(a_server_that_puts_flushes_off_is_said_so),
        WORLD_TEST(a_replica_is_no_place_for_locks),
        WORLD_TEST(a_server_that_lacks_its_replicas_is_said_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
