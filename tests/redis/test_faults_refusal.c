/* test_faults_refusal.c - a server that answers, but with a refusal: no memory,
 * read-only, busy, full, or not for this user. */
/* SPDX-License-Identifier: MIT */
#include "hosting.h"
#include "redis_world.h"

#include "ask.h"

#include <pthread.h>

enum { TTL_MS = 1500 };

/* Refused with the server's own code; nothing changed and it may be tried again
 * unless `status` says otherwise. */
static void
assert_refused(dibs_lock *lock, dibs_status status, const char *origin)
{
    dibs_error why = {0};

    assert_status(dibs_lock_try(lock, &why), status);
    if (strcmp(why.origin, origin) != 0)
        FAIL_OF(status, "%s, not %s: %s", why.origin, origin, why.message);
    assert_int_equal(why.retriable, status == DIBS_UNAVAIL);
    assert_int_equal(dibs_lock_fence(lock), 0);
    assert_true(strlen(why.message) > 10);
}

static void *acquire(void *arg)
{
    return (void *)(uintptr_t)dibs_lock_acquire(arg, NULL);
}

/* Whoever holds can renew, give back and hand over when memory has run out. */
static void at_maxmemory_only_acquire_is_refused(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
    dibs_lock *heir =
        world_lock(w->other, "k", DIBS_LOCK_OPTS(.wait_ms = WORLD_BOUND_MS));
    dibs_lock *fresh = world_lock(w->other, "n", NULL);
    pthread_t thread;
    void *rc = NULL;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(pthread_create(&thread, NULL, acquire, heir), 0);
    world_await_waiters(w->one, "k", 1);
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxmemory", "1", NULL));
    assert_refused(fresh, DIBS_UNAVAIL, "OOM");
    CHECK(DIBS_UNAVAIL, dibs_state_set(w->one, "v", "x", 1, 0, NULL, err));
    world_await_renewal(w->one);
    world_expect_held(lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((uintptr_t)rc, DIBS_OK);
    world_await_renewal(w->other);
    CHECK(DIBS_OK, dibs_lock_release(heir, err));
    assert_refused(fresh, DIBS_UNAVAIL, "OOM");
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxmemory", "0", NULL));
    CHECK(DIBS_OK, dibs_lock_try(fresh, err));
    dibs_lock_free(fresh);
    dibs_lock_free(heir);
    dibs_lock_free(lock);
}

/* The primary that it is told to follow does not exist, so it keeps what it has
 * and is read-only until it is told otherwise. */
static void a_server_turned_replica_is_doubted_and_healed(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock = world_lock_told(w->one, "k", 3000, &lost);
    dibs_lock *fresh = world_lock(w->other, "n", NULL);
    uint64_t fence;
    char port[16];

    snprintf(port, sizeof(port), "%d", hosting_free_port());
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    assert_true(server_tell(&w->sv, "REPLICAOF", "127.0.0.1", port, NULL));
    assert_refused(fresh, DIBS_UNAVAIL, "READONLY");
    world_await(lock, DIBS_LOCK_SUSPECT, 2500);
    assert_int_equal(dibs_lock_fence(lock), fence);
    assert_true(server_tell(&w->sv, "REPLICAOF", "NO", "ONE", NULL));
    world_await(lock, DIBS_LOCK_HELD, 2500);
    assert_int_equal(dibs_lock_fence(lock), fence);
    CHECK(DIBS_OK, dibs_lock_try(fresh, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(atomic_load(&lost.count), 0);
    dibs_lock_free(fresh);
    dibs_lock_free(lock);
}

static void a_holder_on_a_replica_is_told_in_time(void **state)
{
    world *w = *state;
    loss lost = {0};
    dibs_lock *lock = world_lock_told(w->one, "k", 1000, &lost);
    dibsx_nsec end_at;
    char port[16];

    snprintf(port, sizeof(port), "%d", hosting_free_port());
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(server_tell(&w->sv, "REPLICAOF", "127.0.0.1", port, NULL));
    end_at = end_of(lock);
    await_loss(&lost, WORLD_BOUND_MS);
    IN_TIME(atomic_load(&lost.told_at) <= end_at + WORLD_LATE_MS * DIBSX_MS);
    dibs_lock_free(lock);
}

/* A script that goes on for ever, until it is killed. */
static void begin_blocking(const server *sv, asker *as)
{
    static const char *const words[] = {"EVAL", "while true do end", "0", NULL};
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    bool busy = false;

    assert_true(asker_open(as, sv->socket));
    assert_true(asker_send(as, words));
    while (!busy) {
        char *reply = server_ask(sv, "GET", "x", NULL);

        busy = reply && strncmp(reply, "-BUSY", 5) == 0;
        free(reply);
        IN_TIME(dibsx_now() < end);
    }
}

static void a_blocking_script_is_waited_out(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 3000));
    dibs_lock *fresh = world_lock(w->other, "n", NULL);
    dibs_client *cl = NULL;
    dibs_error why = {0};
    asker as;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(
        server_tell(&w->sv, "CONFIG", "SET", "lua-time-limit", "20", NULL));
    begin_blocking(&w->sv, &as);
    assert_refused(fresh, DIBS_UNAVAIL, "BUSY");
    CHECK(DIBS_UNAVAIL, dibs_open(w->url, NULL, &cl, &why));
    assert_null(cl);
    world_await(lock, DIBS_LOCK_SUSPECT, 2500);
    assert_true(server_tell(&w->sv, "SCRIPT", "KILL", NULL));
    world_await(lock, DIBS_LOCK_HELD, 2500);
    CHECK(DIBS_OK, world_try_until(fresh, WORLD_BOUND_MS));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    asker_close(&as);
    dibs_lock_free(fresh);
    dibs_lock_free(lock);
}

enum { CLIENTS_MAX = 40 };

/* Takes every connection that the server has left. */
static size_t fill_up(const server *sv, asker *askers)
{
    static const char *const words[] = {"PING", NULL};
    size_t count = 0;
    bool room = true;

    while (room && count < CLIENTS_MAX) {
        asker *as = &askers[count];
        char *reply = NULL;

        assert_true(asker_open(as, sv->socket));
        if (asker_send(as, words))
            reply = asker_read(as);
        room = reply && strcmp(reply, "PONG") == 0;
        free(reply);
        if (room)
            count++;
        else
            asker_close(as);
    }
    return count;
}

static void a_full_server_is_told_apart(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    asker askers[CLIENTS_MAX];
    dibs_client *cl = NULL;
    dibs_error why = {0};
    size_t count;

    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxclients", "20", NULL));
    count = fill_up(&w->sv, askers);
    assert_true(count > 0 && count < CLIENTS_MAX);
    CHECK(DIBS_UNAVAIL, dibs_open(w->url, NULL, &cl, &why));
    IN_TIME(strstr(why.message, "clients") != NULL);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    for (size_t i = 0; i < count; i++)
        asker_close(&askers[i]);
    for (int i = 0; !cl && i < 1000; i++)
        if (dibs_open(w->url, NULL, &cl, &why) != DIBS_OK)
            world_sleep_ms(2);
    IN_TIME(cl != NULL);
    dibs_close(cl);
    dibs_lock_free(lock);
}

/* Opens as guest with a password; the password is in no message. */
static dibs_status
open_as(const world *w, const char *user, const char *password)
{
    char url[SERVER_URL_MAX];
    dibs_client *cl = NULL;
    dibs_error why = {0};
    dibs_status rc;

    snprintf(url, sizeof(url), "redis://%s:%s@127.0.0.1:%d", user, password,
             w->sv.port);
    rc = dibs_open(url, NULL, &cl, &why);
    if (rc == DIBS_OK) {
        assert_null(strstr(dibs_url(cl), password));
        dibs_close(cl);
    } else {
        assert_null(strstr(why.message, password));
        IN_TIME(!pace_explains(rc));
        assert_false(why.retriable);
        assert_true(strlen(why.message) > 10);
    }
    return rc;
}

static void a_wrong_password_is_denied(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_client *cl = NULL;

    assert_true(server_tell(&w->sv, "ACL", "SETUSER", "guest", "on",
                            ">correct-horse", "~*", "&*", "+@all", NULL));
    assert_status(open_as(w, "guest", "correct-horse"), DIBS_OK);
    assert_status(open_as(w, "guest", "battery-staple"), DIBS_DENIED);
    assert_status(open_as(w, "nobody", "correct-horse"), DIBS_DENIED);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "requirepass",
                            "secret-word", NULL));
    CHECK(DIBS_DENIED, dibs_open(w->url, NULL, &cl, err));
    assert_null(cl);
    assert_status(open_as(w, "", "battery-staple"), DIBS_DENIED);
    assert_status(open_as(w, "", "secret-word"), DIBS_OK);
    dibs_lock_free(lock);
}

/* A right that was taken away shows in the step that needs it. */
static void a_right_taken_away_is_denied(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_true(
        server_tell(&w->sv, "ACL", "SETUSER", "default", "-evalsha", NULL));
    assert_refused(lock, DIBS_DENIED, "NOPERM");
    assert_true(
        server_tell(&w->sv, "ACL", "SETUSER", "default", "+evalsha", NULL));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
}

/* Somebody else's key is left alone. */
static void a_key_of_another_kind_is_left_alone(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    char *text;

    assert_true(server_tell(&w->sv, "SET", "k", "mine", NULL));
    CHECK(DIBS_INTERNAL, dibs_lock_try(lock, err));
    text = server_ask(&w->sv, "GET", "k", NULL);
    assert_string_equal(text, "mine");
    free(text);
    assert_true(server_tell(&w->sv, "DEL", "k", NULL));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(at_maxmemory_only_acquire_is_refused),
        WORLD_TEST(a_server_turned_replica_is_doubted_and_healed),
        WORLD_TEST(a_holder_on_a_replica_is_told_in_time),
        WORLD_TEST(a_blocking_script_is_waited_out),
        WORLD_TEST(a_full_server_is_told_apart),
        WORLD_TEST(a_wrong_password_is_denied),
        WORLD_TEST(a_right_taken_away_is_denied),
        WORLD_TEST(a_key_of_another_kind_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
