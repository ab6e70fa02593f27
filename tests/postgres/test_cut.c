/* test_cut.c - answers that are cut off at every byte or do not come at all, by a
 * proxy between the client and the server. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"
#include "proxy.h"

enum { TTL_MS = 1000, CLOCK_LEN = 16 };

/* A client behind a proxy, and a rival that is not. */
typedef struct place {
    proxy px;
    dibs_client *cl;
    dibs_client *other;
    dibs_lock *lock;
    dibs_lock *rival;
} place;

static void enter(place *at)
{
    char url[PG_URL_MAX];

    assert_true(proxy_start(&at->px, world_sv.port));
    snprintf(url, sizeof(url), "postgres://dibs@127.0.0.1:%d/postgres",
             at->px.port);
    at->cl = world_client(url, WORLD_STEP_MS);
    pg_url(&world_sv, url);
    at->other = world_client(url, WORLD_STEP_MS);
    at->lock = world_lock(at->cl, "k", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    at->rival = world_lock(at->other, "k", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
}

static void leave(place *at)
{
    dibs_lock_free(at->rival);
    dibs_lock_free(at->lock);
    dibs_close(at->other);
    dibs_close(at->cl);
    proxy_stop(&at->px);
}

/* Nobody has it, or will have it once a ttl is over. */
static void assert_free(place *at, uint64_t *fence)
{
    assert_int_equal(dibs_lock_fence(at->lock), 0);
    CHECK(DIBS_OK, world_try_until(at->rival, TTL_MS + WORLD_SLACK_MS));
    assert_true(dibs_lock_fence(at->rival) > *fence);
    *fence = dibs_lock_fence(at->rival);
    CHECK(DIBS_OK, dibs_lock_release(at->rival, err));
}

/* The bytes of the answers to one call. */
static long measure(place *at, dibs_status (*call)(dibs_lock *, dibs_error *))
{
    proxy_arm(&at->px, -1);
    CHECK(DIBS_OK, call(at->lock, err));
    assert_true(atomic_load(&at->px.passed) > 0);
    return atomic_load(&at->px.passed);
}

static void an_acquire_cut_at_any_byte_is_unknown(void **state)
{
    place at;
    uint64_t fence = 0;
    long len;

    (void)state;
    enter(&at);
    len = measure(&at, dibs_lock_try);
    CHECK(DIBS_OK, dibs_lock_release(at.lock, err));
    for (long n = 0; n < len; n++) {
        dibsx_nsec from_at = dibsx_now();
        dibs_error why = {0};
        int before = atomic_load(&at.px.cuts);
        dibs_status rc;

        CHECK(DIBS_OK, dibs_ping(at.cl, NULL, err));
        proxy_arm(&at.px, n);
        rc = dibs_lock_try(at.lock, &why);
        /* A renewal may have come in between when the bytes were measured. */
        IN_TIME(rc != DIBS_OK || atomic_load(&at.px.cuts) > before);
        IN_TIME(atomic_load(&at.px.cuts) >= n);
        CHECK(DIBS_UNKNOWN, rc);
        assert_true(strlen(why.message) > 10);
        IN_TIME(world_ms_since(from_at) <=
                pace_ms(WORLD_STEP_MS + WORLD_SLACK_MS));
        proxy_arm(&at.px, -1);
        assert_free(&at, &fence);
    }
    print_message("cut at each of %ld bytes\n", len);
    leave(&at);
}

/* Asked again, the server says that there is nothing left to give back. */
static void a_release_cut_at_any_byte_is_done(void **state)
{
    place at;
    uint64_t fence = 0;
    long len;

    (void)state;
    enter(&at);
    CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
    len = measure(&at, dibs_lock_release);
    for (long n = 0; n < len; n++) {
        CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
        assert_true(dibs_lock_fence(at.lock) > fence);
        proxy_arm(&at.px, n);
        CHECK(DIBS_OK, dibs_lock_release(at.lock, err));
        proxy_arm(&at.px, -1);
        assert_free(&at, &fence);
    }
    leave(&at);
}

/* Getting to know each other, cut at every byte: nothing was sent, or the call
 * goes on with another connection. */
static void a_handshake_cut_at_any_byte_changes_nothing(void **state)
{
    place at;
    char url[PG_URL_MAX];
    long len;

    (void)state;
    enter(&at);
    /* By another name, or it would share the connections that there are. */
    snprintf(url, sizeof(url),
             "postgres://dibs@127.0.0.1:%d/postgres?application_name=cut",
             at.px.port);
    proxy_arm(&at.px, -1);
    dibs_close(world_client(url, WORLD_STEP_MS));
    len = atomic_load(&at.px.passed);
    assert_true(len > 100);
    for (long n = 0; n < len; n += 7) {
        dibs_client *cl = NULL;
        dibs_status rc;

        proxy_arm(&at.px, n);
        rc = dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = WORLD_STEP_MS), &cl,
                       NULL);
        /* The clock of the server, at the end, is not always of one length. */
        assert_status(rc, cl ? DIBS_OK : DIBS_UNAVAIL);
        assert_true(cl == NULL || n >= len - CLOCK_LEN);
        dibs_close(cl);
    }
    proxy_arm(&at.px, -1);
    leave(&at);
}

static void an_answer_that_does_not_come_is_unknown(void **state)
{
    dibsx_nsec from_at;
    uint64_t fence = 0;
    place at;

    (void)state;
    enter(&at);
    CHECK(DIBS_OK, dibs_ping(at.cl, NULL, err));
    proxy_swallow(&at.px, true);
    from_at = dibsx_now();
    CHECK(DIBS_UNKNOWN, dibs_lock_try(at.lock, err));
    IN_TIME(world_ms_since(from_at) <= pace_ms(WORLD_STEP_MS + WORLD_SLACK_MS));
    proxy_swallow(&at.px, false);
    assert_free(&at, &fence);
    CHECK(DIBS_OK, dibs_lock_try(at.lock, err));
    assert_true(dibs_lock_fence(at.lock) > fence);
    leave(&at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_acquire_cut_at_any_byte_is_unknown),
        cmocka_unit_test(a_release_cut_at_any_byte_is_done),
        cmocka_unit_test(a_handshake_cut_at_any_byte_changes_nothing),
        cmocka_unit_test(an_answer_that_does_not_come_is_unknown),
    };

    return cmocka_run_group_tests_name("postgres cut", tests, world_begin,
                                       world_end);
}
