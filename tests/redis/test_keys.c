/* test_keys.c - what people see of locks with redis-cli, and what is left of
 * them when they are over: nothing. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

#include "store/store.h"

#include <pthread.h>
#include <unistd.h>

/* The reply of a command as text, for as long as the test needs it. */
enum { TTL_MS = 30000 }; /* of locks that do not say */

static void assert_reply(char *reply, const char *expected)
{
    assert_non_null(reply);
    assert_string_equal(reply, expected);
    free(reply);
}

/* The value of a field of a hash. */
static void
read_field(const server *sv, const char *key, const char *field, char out[256])
{
    char *text = server_ask(sv, "HGET", key, field, NULL);

    assert_non_null(text);
    snprintf(out, 256, "%s", text);
    free(text);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* `KEYS pattern`, in order and with blanks between. */
static void read_keys(const server *sv, const char *pattern, char out[256])
{
    char *text = server_ask(sv, "KEYS", pattern, NULL);
    char *rest = text, *names[16];
    size_t count = 0, len = 0;

    assert_non_null(text);
    while (count < 16 && (names[count] = strsep(&rest, "\n")) != NULL)
        count++;
    qsort(names, count, sizeof(names[0]), by_name);
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(out + len, 256 - len, "%s%s", i ? " " : "",
                                names[i]);
    assert_true(len < 256);
    free(text);
}

static dibs_client *open_with_prefix(const world *w, const char *prefix)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.prefix = prefix), &cl, err));
    return cl;
}

static void a_lock_shows_its_owner_fence_and_holder(void **state)
{
    world *w = *state;
    dibs_lock *lock =
        world_lock(w->one, "retry-scheduler",
                   DIBS_LOCK_OPTS(.ttl_ms = 25000, .label = "nightly backup"));
    char owner[DIBS_OWNER_SIZE], host[128], text[256], expected[256];
    char *left;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    dibs_lock_owner(lock, owner);
    read_field(&w->sv, "retry-scheduler", "owner", text);
    assert_string_equal(text, owner);
    read_field(&w->sv, "retry-scheduler", "fence", text);
    assert_int_equal(strtoull(text, NULL, 10), dibs_lock_fence(lock));
    assert_int_equal(gethostname(host, sizeof(host)), 0);
    snprintf(expected, sizeof(expected), "%s:%ld nightly backup", host,
             (long)getpid());
    read_field(&w->sv, "retry-scheduler", "who", text);
    assert_string_equal(text, expected);
    left = server_ask(&w->sv, "PTTL", "retry-scheduler", NULL);
    assert_non_null(left);
    assert_in_range(strtol(left, NULL, 10), 20000, 25000);
    free(left);
    dibs_lock_free(lock);
}

/* The locks of a workflow engine, by the commands of its manual. */
static void the_locks_of_a_prefix_are_listed_by_it(void **state)
{
    static const char *const names[] = {"retry-scheduler", "timeout-scheduler",
                                        "resume-scheduler"};
    world *w = *state;
    dibs_client *cl = open_with_prefix(w, "workflow:");
    dibs_lock *locks[3];
    char text[256];

    for (size_t i = 0; i < 3; i++) {
        locks[i] = world_lock(cl, names[i], DIBS_LOCK_OPTS(.ttl_ms = 30000));
        CHECK(DIBS_OK, dibs_lock_acquire(locks[i], err));
    }
    read_keys(&w->sv, "workflow:*", text);
    assert_string_equal(text, "workflow:resume-scheduler "
                              "workflow:retry-scheduler "
                              "workflow:timeout-scheduler");
    assert_reply(server_ask(&w->sv, "TYPE", "workflow:retry-scheduler", NULL),
                 "hash");
    for (size_t i = 0; i < 3; i++)
        dibs_lock_free(locks[i]);
    read_keys(&w->sv, "workflow:*", text);
    assert_string_equal(text, "");
    dibs_close(cl);
}

/* All that is left is what every lock of the database shares. */
static void assert_nothing_left(const server *sv)
{
    char text[256];

    read_keys(sv, "*", text);
    assert_string_equal(text, "dibs:fence");
    assert_reply(server_ask(sv, "DBSIZE", NULL), "1");
}

static void a_released_lock_leaves_nothing(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_nothing_left(&w->sv);
    dibs_lock_free(lock);
}

/* Waits until the database has so many keys; expired ones count until the server
 * has come across them. What a busy machine was too late to give back ends with
 * its ttl. */
static void await_size(const server *sv, const char *size)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS + TTL_MS);
    bool is_so = false;

    while (!is_so) {
        char *text = server_ask(sv, "DBSIZE", NULL);

        is_so = text && strcmp(text, size) == 0;
        free(text);
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(10);
    }
}

static void an_expired_lock_leaves_nothing(void **state)
{
    world *w = *state;
    dibs_lock *lock =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = 100, .flags = DIBS_LOCK_NO_RENEW));

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    await_size(&w->sv, "1");
    assert_nothing_left(&w->sv);
    dibs_lock_free(lock);
}

static void expired_permits_leave_nothing(void **state)
{
    world *w = *state;
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 2, .ttl_ms = 100,
                       .flags = DIBS_LOCK_NO_RENEW);
    dibs_lock *one = world_lock(w->one, "k", opts);
    dibs_lock *other = world_lock(w->other, "k", opts);

    CHECK(DIBS_OK, dibs_lock_acquire(one, err));
    CHECK(DIBS_OK, dibs_lock_acquire(other, err));
    await_size(&w->sv, "1");
    assert_nothing_left(&w->sv);
    dibs_lock_free(one);
    dibs_lock_free(other);
}

static void *acquire(void *arg)
{
    return (void *)(uintptr_t)dibs_lock_acquire(arg, NULL);
}

/* Someone waited, was served and has left. */
static void a_queue_leaves_nothing(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_lock *waiter =
        world_lock(w->other, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = 900, .wait_ms = WORLD_BOUND_MS));
    dibs_lock *late =
        world_lock(w->other, "k", DIBS_LOCK_OPTS(.wait_ms = pace_ms(100)));
    pthread_t thread;
    void *rc = NULL;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(pthread_create(&thread, NULL, acquire, waiter), 0);
    world_await_waiters(w->one, "k", 1);
    CHECK(DIBS_TIMEOUT, dibs_lock_acquire(late, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((uintptr_t)rc, DIBS_OK);
    /* With a renewal under way it would leave a tombstone. */
    world_await_renewal(w->other);
    CHECK(DIBS_OK, dibs_lock_release(waiter, err));
    assert_nothing_left(&w->sv);
    dibs_lock_free(late);
    dibs_lock_free(waiter);
    dibs_lock_free(lock);
}

/* All keys but the one that all share are about to end by themselves. */
static void assert_all_end(const server *sv, long bound_ms)
{
    char text[256];
    char *rest = text, *key;

    read_keys(sv, "*", text);
    while ((key = strsep(&rest, " ")) != NULL) {
        char *left = server_ask(sv, "PTTL", key, NULL);

        assert_non_null(left);
        if (strcmp(key, "dibs:fence") != 0)
            assert_in_range(strtol(left, NULL, 10), 0, bound_ms);
        free(left);
    }
}

/* A client that is there for one request and never again. */
static void with_store(const world *w, dibs_status expected,
                       dibs_status (*request)(dibs__store *, dibs_error *))
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), 2000);
    dibs__store *st = NULL;

    CHECK(DIBS_OK, dibs__store_open(w->url, deadline, &st, err));
    CHECK(expected, request(st, err));
    dibs__store_close(st);
}

#define OWNER "0123456789abcdef0123456789abcdef"

static dibs_status join_queue(dibs__store *st, dibs_error *err)
{
    dibs__ask ask = {.name = "k",
                     .owner = OWNER,
                     .permits = 1,
                     .flags = DIBS__ASK_QUEUE,
                     .ttl_ms = 60000,
                     .who = "host:1"};
    dibs__answer ans;

    return st->ops->lease->acquire(st, &ask, dibsx_after_ms(dibsx_now(), 2000),
                                   &ans, err);
}

static dibs_status leave_tombstone(dibs__store *st, dibs_error *err)
{
    dibs__leave gone = {.name = "k", .owner = OWNER, .unanswered = true};

    return st->ops->lease->release(st, &gone, dibsx_after_ms(dibsx_now(), 2000),
                                   err);
}

/* As after an eviction, or by hand: the parts of a queue do not agree. */
static void a_queue_that_lost_a_key_goes_on(void **state)
{
    static const char *const parts[] = {"{k}~party", "{k}~queue", "{k}~place"};
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_lock *waiter =
        world_lock(w->other, "k", DIBS_LOCK_OPTS(.wait_ms = WORLD_BOUND_MS));

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        pthread_t thread;
        void *rc = NULL;

        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        assert_int_equal(pthread_create(&thread, NULL, acquire, waiter), 0);
        world_await_waiters(w->one, "k", 1);
        assert_reply(server_ask(&w->sv, "DEL", parts[i], NULL), "1");
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        assert_int_equal(pthread_join(thread, &rc), 0);
        assert_status((uintptr_t)rc, DIBS_OK);
        CHECK(DIBS_OK, dibs_lock_release(waiter, err));
    }
    dibs_lock_free(waiter);
    dibs_lock_free(lock);
}

static dibs_election *candidate(dibs_client *cl, const char *name)
{
    dibs_election *el = NULL;

    CHECK(DIBS_OK,
          dibs_election_new(cl, name,
                            DIBS_ELECTION_OPTS(.ttl_ms = pace_ms(3000)), &el,
                            err));
    return el;
}

static void lead(dibs_election *el)
{
    CHECK(DIBS_OK, dibs_election_wait(el, pace_ms(WORLD_SEAT_MS), err));
}

/* The place of one that waits, and then the lease that it has as a leader. */
static void election_whose_place_was_deleted_campaigns_again(void **state)
{
    world *w = *state;
    dibs_election *first = candidate(w->one, "k");
    dibs_election *next = candidate(w->other, "k");
    uint64_t term, again;

    lead(first);
    CHECK(DIBS_OK, dibs_election_campaign(next, err));
    world_await_waiters(w->one, "k", 1);
    assert_reply(server_ask(&w->sv, "DEL", "{k}~party", "{k}~queue",
                            "{k}~place", NULL),
                 "3");
    world_await_waiters(w->one, "k", 1);
    dibs_election_free(first);
    lead(next);
    term = dibs_election_term(next);
    IN_TIME(term > 0);
    assert_reply(server_ask(&w->sv, "DEL", "k", NULL), "1");
    while (dibs_election_term(next) == term)
        world_sleep_ms(2);
    lead(next);
    again = dibs_election_term(next);
    IN_TIME(again != 0);
    assert_true(again > term);
    dibs_election_free(next);
}

/* A waiter that died with its holder. */
static void an_abandoned_queue_ends_by_itself(void **state)
{
    world *w = *state;
    dibs_lock *lock =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.ttl_ms = 5000, .flags = DIBS_LOCK_NO_RENEW));
    dibsx_nsec from_at = dibsx_now();
    char text[256];

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    with_store(w, DIBS_BUSY, join_queue);
    read_keys(&w->sv, "*", text);
    IN_TIME(world_ms_since(from_at) < DIBS__PLACE_MS);
    assert_string_equal(text, "dibs:fence k {k}~party {k}~place {k}~queue");
    assert_all_end(&w->sv, 2 * DIBS__PLACE_MS);
    dibs_lock_free(lock);
}

static void a_tombstone_ends_by_itself(void **state)
{
    world *w = *state;
    char text[256];

    with_store(w, DIBS_LOST, leave_tombstone);
    read_keys(&w->sv, "k", text);
    assert_string_equal(text, "");
    read_keys(&w->sv, "*", text);
    assert_string_equal(text, "{k}~party {k}~place");
    assert_all_end(&w->sv, 2 * DIBS__TOMB_MS);
}

static void a_deleted_value_leaves_nothing(void **state)
{
    world *w = *state;

    CHECK(DIBS_OK, dibs_state_set(w->one, "v", "x", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(w->one, "e", "x", 1, 50, NULL, err));
    CHECK(DIBS_OK, dibs_state_delete(w->one, "v", DIBS_VERSION_ANY, err));
    await_size(&w->sv, "1");
    assert_nothing_left(&w->sv);
}

enum { MANY = 10000, BYTES_MAX = 400 };

/* Bytes of the server for each lock, all included. */
static void measure(const world *w, const char *label, double *bytes)
{
    static dibs_lock *locks[MANY];
    long long before = server_info(&w->sv, "memory", "used_memory");
    long long after;

    for (int i = 0; i < MANY; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s:job:%08d",
                 label[0] ? "labelled" : "plain", i);
        locks[i] = world_lock(w->one, name, DIBS_LOCK_OPTS(.label = label));
        CHECK(DIBS_OK, dibs_lock_acquire(locks[i], err));
    }
    after = server_info(&w->sv, "memory", "used_memory");
    *bytes = (double)(after - before) / (double)MANY;
    for (int i = 0; i < MANY; i++)
        dibs_lock_free(locks[i]);
}

static void a_held_lock_takes_few_bytes(void **state)
{
    world *w = *state;
    const char *long_label = "a label that is longer than most, as it tells "
                             "of the work and of who asked for it";
    double plain, labelled, verbose;

    measure(w, "", &plain);
    measure(w, "nightly backup", &labelled);
    measure(w, long_label, &verbose);
    print_message("bytes a held lock: %.0f, with a label %.0f, with a long "
                  "one %.0f\n",
                  plain, labelled, verbose);
    assert_true(plain <= (double)BYTES_MAX);
    assert_true(labelled <= (double)BYTES_MAX);
    assert_true(verbose <= (double)BYTES_MAX);
    await_size(&w->sv, "1");
}

static dibs_status draw_token(dibs__store *st, int64_t count, int64_t burst)
{
    const dibs__draw draw = {.name = "sms",
                             .cost = burst,
                             .least = 1,
                             .count = count,
                             .period_us = 1000000,
                             .burst = burst};
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), TTL_MS);
    dibs__drawn got;

    return st->ops->rate->draw(st, &draw, deadline, &got, NULL);
}

/* Servers before Redis 7.0 do not tell. */
static void assert_lives_while_it_counts(const server *sv)
{
    char *state = server_ask(sv, "GET", "dibs:rate:sms", NULL);
    char *until = server_ask(sv, "PEXPIRETIME", "dibs:rate:sms", NULL);

    assert_non_null(state);
    if (until && until[0] >= '0' && until[0] <= '9')
        assert_true(strtoll(until, NULL, 10) * 1000 >=
                    strtoll(state, NULL, 10));
    free(state);
    free(until);
}

/* A limit ends with what is out of it, and not before. */
static void no_key_without_ttl(void **state)
{
    world *w = *state;
    dibs__store *st = NULL;
    char *left;

    CHECK(DIBS_OK, dibs__store_open(w->url, dibsx_after_ms(dibsx_now(), TTL_MS),
                                    &st, err));
    for (int64_t i = 60; i < 70; i++) {
        assert_status(draw_token(st, 1, i), DIBS_OK);
        assert_lives_while_it_counts(&w->sv);
    }
    left = server_ask(&w->sv, "PTTL", "dibs:rate:sms", NULL);
    assert_non_null(left);
    assert_true(strtoll(left, NULL, 10) > 0 && strtoll(left, NULL, 10) < 69010);
    free(left);
    assert_reply(server_ask(&w->sv, "DEL", "dibs:rate:sms", NULL), "1");
    assert_status(draw_token(st, 1000, 1), DIBS_OK);
    dibs__store_close(st);
    while (strcmp(left = server_ask(&w->sv, "KEYS", "*", NULL), "") != 0) {
        free(left);
        usleep(1000);
    }
    free(left);
}

/* As if the server's clock had been set back by an hour: the limit goes on. */
static void a_clock_set_back_blocks_no_draw(void **state)
{
    dibsx_nsec begun_at = dibsx_now();
    world *w = *state;
    dibs__store *st = NULL;
    char text[96];

    CHECK(DIBS_OK,
          dibs__store_open(w->url, dibsx_after_ms(begun_at, TTL_MS), &st, err));
    snprintf(text, sizeof(text), "%lld %lld 0 1 50000",
             (long long)(dibsx_wall_us() + INT64_C(3600050000)),
             (long long)(dibsx_wall_us() + INT64_C(3600000000)));
    assert_reply(server_ask(&w->sv, "SET", "dibs:rate:sms", text, NULL), "OK");
    assert_status(draw_token(st, 20, 1), DIBS_BUSY);
    while (draw_token(st, 20, 1) != DIBS_OK) {
        IN_TIME(dibsx_now() < dibsx_after_ms(begun_at, TTL_MS));
        usleep(1000);
    }
    dibs__store_close(st);
}

/* Sets the meter, and reports a call that ended well: the sum of these, and what is kept
 * behind the newest cell. */
static void
report_beside(const world *w, dibs__store *st, const char *kept, char out[256])
{
    static const char key[] = "dibs:meter:{dibs:value:calls}";
    const dibs__meter report = {.key = "calls",
                                .window_ms = INT64_C(86400000),
                                .good = 1};
    dibs__sums sums;
    char *text;

    assert_reply(server_ask(&w->sv, "SET", key, kept, NULL), "OK");
    CHECK(DIBS_OK, st->ops->meter->meter(st, &report,
                                         dibsx_after_ms(dibsx_now(), TTL_MS),
                                         &sums, err));
    text = server_ask(&w->sv, "GET", key, NULL);
    assert_non_null(text);
    snprintf(out, 256, "%lld, kept %s", (long long)sums.good, text);
    free(text);
}

static void a_meter_goes_on_with_and_without_its_sums(void **state)
{
    enum { HOUR_MS = 3600000 };
    world *w = *state;
    dibs__store *st = NULL;
    long long now_ms = dibsx_wall_us() / 1000, newest = now_ms - HOUR_MS,
              old = now_ms - 9 * HOUR_MS, gone = now_ms - 25 * HOUR_MS;
    char kept[160], expected[256], got[256];

    CHECK(DIBS_OK, dibs__store_open(w->url, dibsx_after_ms(dibsx_now(), TTL_MS),
                                    &st, err));
    snprintf(kept, sizeof(kept), "0 %lld 3 1 0 2 %lld 4 0 0 0", newest, old);
    snprintf(expected, sizeof(expected),
             "8, kept 0 %lld 4 1 0 2 %lld 4 0 0 0;%lld,4,0,0,0", newest, old,
             old);
    report_beside(w, st, kept, got);
    assert_string_equal(got, expected);
    /* The sums are believed, so that no cell but the newest is read. */
    snprintf(kept, sizeof(kept), "0 %lld 3 1 0 2 %lld 4 0 0 0;%lld,40,0,0,0",
             newest, old, old);
    snprintf(expected, sizeof(expected),
             "44, kept 0 %lld 4 1 0 2 %lld 4 0 0 0;%lld,40,0,0,0", newest, old,
             old);
    report_beside(w, st, kept, got);
    assert_string_equal(got, expected);
    /* The oldest cell has left the window. */
    snprintf(kept, sizeof(kept), "0 %lld 3 1 0 2 %lld 4 0 0 0;%lld,4,0,0,0",
             newest, gone, gone);
    snprintf(expected, sizeof(expected), "4, kept 0 %lld 4 1 0 2;%lld,0,0,0,0",
             newest, newest);
    report_beside(w, st, kept, got);
    assert_string_equal(got, expected);
    /* The newest one is a tenth of the window old. */
    snprintf(kept, sizeof(kept), "0 %lld 4 0 0 0;%lld,0,0,0,0", old, old);
    snprintf(expected, sizeof(expected), " 1 0 0 0 %lld 4 0 0 0;%lld,4,0,0,0",
             old, old);
    report_beside(w, st, kept, got);
    assert_memory_equal(got, "5, kept 0 ", 10);
    assert_non_null(strstr(got, expected));
    /* It begins later, as the clock was set back. */
    newest = now_ms + 24LL * HOUR_MS;
    snprintf(kept, sizeof(kept), "0 %lld 4 0 0 0;%lld,0,0,0,0", newest, newest);
    report_beside(w, st, kept, got);
    assert_memory_equal(got, "1, kept 0 ", 10);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_lock_shows_its_owner_fence_and_holder),
        WORLD_TEST(the_locks_of_a_prefix_are_listed_by_it),
        WORLD_TEST(a_released_lock_leaves_nothing),
        WORLD_TEST(an_expired_lock_leaves_nothing),
        WORLD_TEST(expired_permits_leave_nothing),
        WORLD_TEST(a_queue_leaves_nothing),
        WORLD_TEST(a_queue_that_lost_a_key_goes_on),
        WORLD_TEST(election_whose_place_was_deleted_campaigns_again),
        WORLD_TEST(an_abandoned_queue_ends_by_itself),
        WORLD_TEST(a_tombstone_ends_by_itself),
        WORLD_TEST(a_deleted_value_leaves_nothing),
        WORLD_TEST(no_key_without_ttl),
        WORLD_TEST(a_clock_set_back_blocks_no_draw),
        WORLD_TEST(a_meter_goes_on_with_and_without_its_sums),
        WORLD_TEST_FORGETFUL(a_held_lock_takes_few_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
