/* test_sentinel.c - behind sentinels: who the primary is, and what becomes of
 * leases and waits when it is another. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

#include "ask.h"
#include "topology.h"

#include "store/redis/redis_store.h"

#include <pthread.h>

typedef struct scene {
    topology tp;
    char url[SERVER_URL_MAX];
    dibs_client *one;
    dibs_client *other;
} scene;

static scene sc;

static int setup(void **state)
{
    *state = &sc;
    IN_TIME(topology_start(&sc.tp, NULL));
    topology_url(&sc.tp, sc.url);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    topology_stop(&sc.tp);
    return 0;
}

/* The topology is one for all, whole at the start of each test. */
static int begin(void **state)
{
    *state = &sc;
    if (!topology_heal(&sc.tp))
        return -1;
    sc.one = world_client(sc.url, 15000);
    sc.other = world_client(sc.url, 15000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        server_resume(&sc.tp.sentinels[i]); /* A test that failed left it so. */
    dibs_close(sc.one);
    dibs_close(sc.other);
    return 0;
}

static server *primary(void)
{
    return &sc.tp.servers[sc.tp.primary];
}

static void kill_primary(void)
{
    int before = sc.tp.primary;

    server_kill(&sc.tp.servers[before]);
    IN_TIME(topology_await_switch(&sc.tp, before));
}

/* When a sentinel has announced another primary; on a thread, as the test is
 * waiting in a call by then. */
typedef struct herald {
    asker as;
    pthread_t thread;
    _Atomic(dibsx_nsec) heard_at;
} herald;

static void *herald_main(void *arg)
{
    herald *hd = arg;
    char *text = asker_read(&hd->as); /* that it has subscribed */

    free(text);
    text = asker_read(&hd->as);
    if (text)
        atomic_store(&hd->heard_at, dibsx_now());
    free(text);
    return NULL;
}

static void herald_start(herald *hd)
{
    static const char *const words[] = {"SUBSCRIBE", "+switch-master", NULL};

    *hd = (herald){.heard_at = 0};
    assert_true(asker_open(&hd->as, sc.tp.sentinels[0].socket));
    assert_true(asker_send(&hd->as, words));
    assert_int_equal(pthread_create(&hd->thread, NULL, herald_main, hd), 0);
}

static dibsx_nsec herald_end(herald *hd)
{
    pthread_join(hd->thread, NULL);
    asker_close(&hd->as);
    return atomic_load(&hd->heard_at);
}

/* A step that begins while there is no primary ends well, with the next one. */
static void a_step_waits_for_the_next_primary(void **state)
{
    dibs_lock *lock = world_lock(sc.one, "step", NULL);
    int before = sc.tp.primary;
    dibsx_nsec done_at;
    herald hd;

    (void)state;
    CHECK(DIBS_OK, dibs_ping(sc.one, NULL, err));
    herald_start(&hd);
    server_kill(&sc.tp.servers[before]);
    /* A connection that was just used is not looked at before it is used again,
     * and what was sent on it might have been done. */
    world_sleep_ms(150);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    done_at = dibsx_now();
    IN_TIME(topology_await_switch(&sc.tp, before));
    print_message("first success %lld ms after +switch-master\n",
                  (long long)((done_at - herald_end(&hd)) / DIBSX_MS));
    dibs_lock_free(lock);
}

/* What the replicas had goes on: the same lease, under the same fence. */
static void a_lease_outlives_a_failover(void **state)
{
    loss lost = {0};
    dibs_lock *lock =
        world_lock(sc.one, "kept",
                   DIBS_LOCK_OPTS(.ttl_ms = 10000, .durability = "wait:1",
                                  .on_lost = note_loss, .on_lost_arg = &lost));
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(dibs_lock_replicas_acked(lock) >= 1);
    fence = dibs_lock_fence(lock);
    kill_primary();
    world_await_renewal(sc.one);
    assert_int_equal(dibs_lock_fence(lock), fence);
    assert_int_equal(atomic_load(&lost.count), 0);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

static void *acquire_main(void *arg)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(arg, &err);

    if (rc != DIBS_OK)
        fprintf(stderr, "acquire: %s\n", err.message);
    return (void *)(uintptr_t)rc;
}

/* Waits go on, and the doorbell is heard at the new primary. */
static void a_wait_rides_through(void **state)
{
    dibs_lock *held =
        world_lock(sc.one, "ride",
                   DIBS_LOCK_OPTS(.ttl_ms = 20000, .durability = "wait:2"));
    dibs_lock *wanted =
        world_lock(sc.other, "ride", DIBS_LOCK_OPTS(.wait_ms = 30000));
    dibs_stats stats = {.size = sizeof(stats)};
    pthread_t thread;
    void *rc = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(held, err));
    assert_int_equal(pthread_create(&thread, NULL, acquire_main, wanted), 0);
    world_await_waiters(sc.one, "ride", 1);
    kill_primary();
    world_await_waiters(sc.one, "ride", 1);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    pthread_join(thread, &rc);
    assert_status((uintptr_t)rc, DIBS_OK);
    assert_true(dibs_lock_fence(wanted) > 0);
    dibs_stats_get(sc.other, &stats);
    assert_int_equal(stats.failed, 0);
    dibs_lock_free(held);
    dibs_lock_free(wanted);
}

static void *reserve_main(void *arg)
{
    dibs_item *item = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_queue_reserve(arg, 30000, &item, &err);

    if (rc == DIBS_OK)
        rc = dibs_item_ack(item, &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "reserve: %s\n", err.message);
    dibs_item_free(item);
    return (void *)(uintptr_t)rc;
}

static uint64_t count_waiting(dibs_client *cl, const char *queue)
{
    dibs_queue_info at = {.size = sizeof(at)};

    return dibs_queue_stats(cl, queue, &at, NULL) == DIBS_OK ? at.waiting : 0;
}

/* A consumer that waits gets what is pushed to the next primary. */
static void waiting_survives_failover(void **state)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    dibs_queue *taken = NULL, *fed = NULL;
    pthread_t thread;
    void *rc = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_queue_new(sc.one, "ride", NULL, &taken, err));
    CHECK(DIBS_OK, dibs_queue_new(sc.other, "ride", NULL, &fed, err));
    assert_int_equal(pthread_create(&thread, NULL, reserve_main, taken), 0);
    while (count_waiting(sc.other, "ride") == 0)
        IN_TIME(dibsx_now() < end);
    kill_primary();
    CHECK(DIBS_OK, dibs_queue_push(fed, "x", 1, NULL, NULL, err));
    pthread_join(thread, &rc);
    assert_status((uintptr_t)rc, DIBS_OK);
    dibs_queue_free(fed);
    dibs_queue_free(taken);
}

/* A switch without a crash: the old primary lives on as a replica. */
static void a_planned_switch_is_followed(void **state)
{
    dibs_lock *lock = world_lock(sc.one, "planned", NULL);
    dibsx_nsec done_at;
    herald hd;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    herald_start(&hd);
    IN_TIME(topology_fail_over(&sc.tp, 0));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    done_at = dibsx_now();
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    print_message("first success %lld ms after +switch-master\n",
                  (long long)((done_at - herald_end(&hd)) / DIBSX_MS));
    dibs_lock_free(lock);
}

/* A replica that was promoted refuses writes until others follow it. */
static void a_step_waits_for_replicas(void **state)
{
    const char *const durability[] = {"async", "wait:1"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dibs_lock *lock =
            world_lock(sc.one, "alone",
                       DIBS_LOCK_OPTS(.durability = durability[i]));
        server_refusal rf;

        assert_true(server_refusal_begin(&rf, primary()));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        server_refusal_end(&rf);
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        dibs_lock_free(lock);
    }
}

static void *promote_main(void *arg)
{
    server *sv = arg;

    world_sleep_ms(300);
    (void)server_tell(sv, "REPLICAOF", "NO", "ONE", NULL);
    return NULL;
}

/* A replica that refuses to write is proof, whatever the sentinels say. */
static void a_demoted_primary_is_not_believed(void **state)
{
    dibs_lock *lock = world_lock(sc.one, "demoted", NULL);
    server *sv = primary();
    pthread_t thread;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_true(server_tell(sv, "REPLICAOF", "127.0.0.1",
                            sc.tp.ports[(sc.tp.primary + 1) % 3], NULL));
    assert_int_equal(pthread_create(&thread, NULL, promote_main, sv), 0);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    pthread_join(thread, NULL);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

/* One that is stopped is passed over; those that the URL does not name are
 * learned from one that it does. */
static void sentinels_stand_in_for_each_other(void **state)
{
    dibs_client *cl;

    (void)state;
    server_pause(&sc.tp.sentinels[0]);
    cl = world_client(sc.url, 5000);
    CHECK(DIBS_OK, dibs_ping(cl, NULL, err));
    dibs_close(cl);
    server_resume(&sc.tp.sentinels[0]);
}

static void the_others_are_learned(void **state)
{
    char url[SERVER_URL_MAX];
    dibs_client *cl;

    (void)state;
    snprintf(url, sizeof(url), "redis-sentinel://127.0.0.1:%d/" TOPOLOGY_NAME,
             sc.tp.sentinels[1].port);
    cl = world_client(url, 5000);
    server_pause(&sc.tp.sentinels[1]);
    assert_true(
        server_tell(primary(), "CLIENT", "KILL", "TYPE", "normal", NULL));
    /* The first may yet be sent on what was cut. */
    (void)!dibs_ping(cl, NULL, NULL);
    CHECK(DIBS_OK, dibs_ping(cl, NULL, err));
    dibs_close(cl);
    server_resume(&sc.tp.sentinels[1]);
}

static dibs_status
open_at(const char *scheme, int port, const char *path, dibs_error *err)
{
    char url[SERVER_URL_MAX];
    dibs_client *cl = NULL;
    dibs_status rc;

    snprintf(url, sizeof(url), "%s://127.0.0.1:%d%s", scheme, port, path);
    rc = dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = 2000), &cl, err);
    if (rc == DIBS_OK)
        rc = dibs_ping(cl, NULL, err);
    dibs_close(cl);
    return rc;
}

static dibs_status open_with(const char *path, dibs_error *err)
{
    return open_at("redis-sentinel", sc.tp.sentinels[0].port, path, err);
}

static void a_name_that_is_not_known_is_refused(void **state)
{
    dibs_error err = {0};

    (void)state;
    assert_status(open_with("/nobody", &err), DIBS_INVALID);
    assert_non_null(strstr(err.message, "nobody"));
}

/* A URL and the other side are of two kinds: the error says what to write. */
static void the_wrong_kind_of_server_is_named(void **state)
{
    const int sentinel = sc.tp.sentinels[0].port;
    dibs_error err = {0};
    char told[96];

    (void)state;
    assert_status(open_at("redis-sentinel", primary()->port, "/" TOPOLOGY_NAME,
                          &err),
                  DIBS_REFUSED);
    snprintf(told, sizeof(told),
             "127.0.0.1:%d is no sentinel; name the sentinels (port 26379), or "
             "write redis:",
             primary()->port);
    assert_non_null(strstr(err.message, told));
    assert_status(open_at("redis", sentinel, "", &err), DIBS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a sentinel write redis-sentinel:"));
    assert_status(open_at("redis-cluster", sentinel, "", &err),
                  DIBS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "a sentinel write redis-sentinel:"));
}

/* Time that has run out says nothing about the name. */
static void sentinels_that_hang_are_waited_for(void **state)
{
    char url[SERVER_URL_MAX + 32];
    dibs_client *cl;
    dibs_lock *lock;

    (void)state;
    snprintf(url, sizeof(url), "%s?connect_timeout=150ms", sc.url);
    cl = world_client(url, 5000);
    lock = world_lock(cl, "hung", NULL);
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        server_pause(&sc.tp.sentinels[i]);
    assert_true(
        server_tell(primary(), "CLIENT", "KILL", "TYPE", "normal", NULL));
    /* As above: until it is looked at before it is used. */
    world_sleep_ms(150);
    CHECK(DIBS_UNAVAIL, dibs_lock_try(lock, err));
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++)
        server_resume(&sc.tp.sentinels[i]);
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* A primary that was demoted behind the sentinels' back: who waits for replicas
 * tells the others of it once, and tries on without cutting them off each time. */
static void a_demotion_is_told_once(void **state)
{
    const dibs__ask ask = {.name = "demoted",
                           .owner = "0123456789abcdef0123456789abcdef",
                           .permits = 1,
                           .ttl_ms = 1000,
                           .who = "test",
                           .replicas = 1};
    server *before = primary();
    dibs__store *st = NULL;
    dibs__answer ans;
    uint64_t moves;

    (void)state;
    CHECK(DIBS_OK, dibs__store_open(sc.url, dibsx_after_ms(dibsx_now(), 5000),
                                    &st, err));
    CHECK(DIBS_OK,
          st->ops->lease->acquire(st, &ask, dibsx_after_ms(dibsx_now(), 5000),
                                  &ans, err));
    moves = dibs__sentinel_moves(dibs__redis_of(st)->sentinel);
    assert_true(server_tell(before, "REPLICAOF", "127.0.0.1",
                            sc.tp.ports[(sc.tp.primary + 1) % TOPOLOGY_SERVERS],
                            NULL));
    CHECK(DIBS_UNAVAIL,
          st->ops->lease->acquire(st, &ask, dibsx_after_ms(dibsx_now(), 1000),
                                  &ans, err));
    moves = dibs__sentinel_moves(dibs__redis_of(st)->sentinel) - moves;
    print_message("told %d times\n", (int)moves);
    IN_TIME(moves > 0);
    assert_in_range(moves, 1, 2);
    assert_true(server_tell(before, "REPLICAOF", "NO", "ONE", NULL));
    dibs__store_close(st);
    IN_TIME(topology_mend(&sc.tp));
}

static dibs_client *
open_as(const char *login, const char *user, const char *password)
{
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url),
             "redis-sentinel://%s127.0.0.1:%d/" TOPOLOGY_NAME
             "?sentinel_user=%s&sentinel_password=%s",
             login, sc.tp.sentinels[0].port, user, password);
    return world_client(url, 5000);
}

/* Users and passwords of the two sides are not mixed up. */
static void both_sides_have_users_of_their_own(void **state)
{
    dibs_client *cl;
    char *list;

    (void)state;
    assert_true(server_tell(&sc.tp.sentinels[0], "ACL", "SETUSER", "guard",
                            "on", ">of-the-sentinel", "allchannels", "+@all",
                            NULL));
    assert_true(server_tell(primary(), "ACL", "SETUSER", "app", "on",
                            ">of-the-server", "~*", "&*", "+@all", NULL));
    CHECK(DIBS_DENIED, open_with("/" TOPOLOGY_NAME
                                 "?sentinel_user=guard&sentinel_password=no",
                                 err));
    CHECK(DIBS_OK, open_with("/" TOPOLOGY_NAME "/3?sentinel_user=guard&"
                             "sentinel_password=of-the-sentinel",
                             err));
    cl = open_as("app:of-the-server@", "guard", "of-the-sentinel");
    list = server_ask(primary(), "CLIENT", "LIST", NULL);
    assert_non_null(list);
    assert_non_null(strstr(list, "user=app"));
    assert_null(strstr(list, "user=guard"));
    free(list);
    list = server_ask(&sc.tp.sentinels[0], "CLIENT", "LIST", NULL);
    assert_non_null(list);
    assert_non_null(strstr(list, "user=guard"));
    assert_null(strstr(list, "user=app"));
    free(list);
    dibs_close(cl);
}

/* Too few replicas: it is given back, and the message says how many there were. */
static void what_too_few_have_is_not_granted(void **state)
{
    dibs_lock *lock =
        world_lock(sc.one, "durable",
                   DIBS_LOCK_OPTS(.ttl_ms = 1000, .durability = "wait:3"));
    dibs_lock *plain = world_lock(sc.other, "durable", NULL);
    dibs_stats stats = {.size = sizeof(stats)};
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_UNAVAIL, dibs_lock_try(lock, &why));
    IN_TIME(strstr(why.message, "acknowledged by 2 of 3 replicas") != NULL);
    dibs_stats_get(sc.one, &stats);
    assert_int_equal(stats.under_replicated, 1);
    CHECK(DIBS_OK, dibs_lock_try(plain, err));
    dibs_lock_free(lock);
    dibs_lock_free(plain);
}

/* A renewal that no replica has does not make the lease longer. */
static void a_renewal_counts_once_replicas_have_it(void **state)
{
    loss lost = {0};
    dibs_lock *lock =
        world_lock(sc.one, "renewed",
                   DIBS_LOCK_OPTS(.ttl_ms = 1500, .durability = "wait:1",
                                  .on_lost = note_loss, .on_lost_arg = &lost));
    dibsx_nsec end_at;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_await_renewal(sc.one);
    topology_cut(&sc.tp);
    end_at = end_of(lock);
    await_loss(&lost, WORLD_BOUND_MS);
    IN_TIME(atomic_load(&lost.told_at) <=
            dibsx_after_ms(end_at, WORLD_LATE_MS));
    dibs_lock_free(lock);
    IN_TIME(topology_mend(&sc.tp));
}

static dibs_queue *durable_queue(dibs_client *cl, const char *name)
{
    dibs_queue *queue = NULL;

    CHECK(DIBS_OK,
          dibs_queue_new(cl, name, DIBS_QUEUE_OPTS(.durability = "wait:1"),
                         &queue, err));
    return queue;
}

static uint64_t items_of(dibs_client *cl, const char *name)
{
    dibs_queue_info info = {.size = sizeof(info)};

    CHECK(DIBS_OK, dibs_queue_stats(cl, name, &info, err));
    return info.ready + info.out;
}

/* Too few replicas: the item is there, or done, and the call says that it may not be so
 * after a failover. */
static void what_too_few_have_of_a_queue_is_unknown(void **state)
{
    dibs_client *cl = world_client(sc.url, 1000);
    dibs_queue *queue = durable_queue(cl, "few");
    dibs_item *item = NULL;
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_OK, dibs_queue_push(queue, "a", 1, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_queue_reserve(queue, WORLD_BOUND_MS, &item, err));
    topology_cut(&sc.tp);
    CHECK(DIBS_UNKNOWN, dibs_item_ack(item, &why));
    assert_non_null(strstr(why.message, "too few replicas"));
    dibs_item_free(item);
    assert_int_equal(items_of(cl, "few"), 0);
    CHECK(DIBS_UNKNOWN, dibs_queue_push(queue, "b", 1, NULL, NULL, &why));
    assert_non_null(strstr(why.message, "acknowledged by 0 of 1 replicas"));
    assert_int_equal(items_of(cl, "few"), 1);
    IN_TIME(topology_mend(&sc.tp));
    CHECK(DIBS_OK, dibs_queue_push(queue, "c", 1, NULL, NULL, err));
    assert_int_equal(items_of(cl, "few"), 2);
    dibs_queue_free(queue);
    dibs_close(cl);
}

static void *push_main(void *arg)
{
    return (void *)(uintptr_t)dibs_queue_push(arg, "x", 1, NULL, NULL, NULL);
}

static void await_waits(long long count)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    while (server_info(primary(), "commandstats", "cmdstat_wait") < count) {
        IN_TIME(dibsx_now() < until);
        world_sleep_ms(10);
    }
}

/* A push waits for replicas that are away: it is one item, which they have then. */
static void a_push_that_replicas_have_survives(void **state)
{
    dibs_queue *queue = durable_queue(sc.one, "kept");
    dibs_item *item = NULL;
    pthread_t thread;
    void *rc = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_queue_push(queue, "w", 1, NULL, NULL, err));
    topology_cut(&sc.tp);
    assert_true(server_tell(primary(), "CONFIG", "RESETSTAT", NULL));
    assert_int_equal(pthread_create(&thread, NULL, push_main, queue), 0);
    await_waits(2);
    IN_TIME(topology_mend(&sc.tp));
    pthread_join(thread, &rc);
    IN_TIME((uintptr_t)rc != DIBS_UNKNOWN);
    assert_status((uintptr_t)rc, DIBS_OK);
    kill_primary();
    assert_int_equal(items_of(sc.other, "kept"), 2);
    CHECK(DIBS_OK, dibs_queue_reserve(queue, WORLD_BOUND_MS, &item, err));
    CHECK(DIBS_OK, dibs_item_ack(item, err));
    dibs_item_free(item);
    dibs_queue_free(queue);
}

/* Readers become a writer, and a waiter is served, only with the replicas. */
static void conversions_and_hand_overs_are_durable(void **state)
{
    const dibs_lock_opts *shared =
        DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .durability = "wait:1");
    dibs_lock *reader = world_lock(sc.one, "turned", shared);
    dibs_lock *wanted =
        world_lock(sc.other, "turned",
                   DIBS_LOCK_OPTS(.wait_ms = 10000, .durability = "wait:2"));
    pthread_t thread;
    void *rc = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(reader, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(reader, err));
    assert_int_equal(pthread_create(&thread, NULL, acquire_main, wanted), 0);
    world_await_waiters(sc.one, "turned", 1);
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    pthread_join(thread, &rc);
    assert_status((uintptr_t)rc, DIBS_OK);
    assert_int_equal(dibs_lock_replicas_acked(wanted), 2);
    dibs_lock_free(reader);
    dibs_lock_free(wanted);
}

/* A downgrade that is done and that the server refuses to confirm is not said to be
 * undone: its owner would believe that it still writes alone. */
static void an_unconfirmed_conversion_is_unknown(void **state)
{
    dibs_lock *lock = world_lock(sc.one, "unconfirmed",
                                 DIBS_LOCK_OPTS(.durability = "wait:1"));
    dibs_lock *reader = world_lock(sc.other, "unconfirmed",
                                   DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_status rc;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(
        server_tell(primary(), "ACL", "SETUSER", "default", "-wait", NULL));
    rc = dibs_lock_downgrade(lock, NULL);
    assert_true(
        server_tell(primary(), "ACL", "SETUSER", "default", "+wait", NULL));
    assert_status(rc, DIBS_UNKNOWN);
    CHECK(DIBS_OK, dibs_lock_try(reader, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(lock, err));
    dibs_lock_free(reader);
    dibs_lock_free(lock);
}

typedef struct sight {
    bool durable;
} sight;

static bool look(const dibs_lease_info *info, void *arg)
{
    sight *st = arg;

    st->durable = info->holder_count == 1 &&
                  strstr(info->holders[0].meta, "durability=wait:2") != NULL;
    return true;
}

static void others_see_how_durable_it_is(void **state)
{
    dibs_lock *lock =
        world_lock(sc.one, "shown", DIBS_LOCK_OPTS(.durability = "wait:2"));
    sight st = {.durable = false};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_show(sc.other, "shown", look, &st, err));
    assert_true(st.durable);
    dibs_lock_free(lock);
}

/* How many findings of the audit are about one of the subjects. */
static void count_findings(const dibs_finding *finding, void *arg)
{
    static const char *const subjects[] = {"sentinels", "quorum", "isolation"};
    int *count = arg;

    for (size_t i = 0; i < 3; i++)
        *count += strcmp(finding->subject, subjects[i]) == 0;
    if (strcmp(finding->subject, "sentinels") == 0)
        assert_int_equal(finding->severity, DIBS_FINE);
    if (strcmp(finding->subject, "isolation") == 0)
        assert_int_equal(finding->severity, DIBS_CAUTION);
}

static void the_audit_tells_the_topology(void **state)
{
    int count = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_audit(sc.one, count_findings, &count, err));
    assert_int_equal(count, 3);
}

#define SCENE_TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(the_audit_tells_the_topology),
        SCENE_TEST(a_name_that_is_not_known_is_refused),
        SCENE_TEST(the_wrong_kind_of_server_is_named),
        SCENE_TEST(both_sides_have_users_of_their_own),
        SCENE_TEST(sentinels_stand_in_for_each_other),
        SCENE_TEST(sentinels_that_hang_are_waited_for),
        SCENE_TEST(the_others_are_learned),
        SCENE_TEST(a_demoted_primary_is_not_believed),
        SCENE_TEST(a_step_waits_for_replicas),
        SCENE_TEST(what_too_few_have_is_not_granted),
        SCENE_TEST(conversions_and_hand_overs_are_durable),
        SCENE_TEST(an_unconfirmed_conversion_is_unknown),
        SCENE_TEST(others_see_how_durable_it_is),
        SCENE_TEST(what_too_few_have_of_a_queue_is_unknown),
        SCENE_TEST(a_push_that_replicas_have_survives),
        SCENE_TEST(a_renewal_counts_once_replicas_have_it),
        SCENE_TEST(a_demotion_is_told_once),
        SCENE_TEST(a_planned_switch_is_followed),
        SCENE_TEST(a_step_waits_for_the_next_primary),
        SCENE_TEST(a_lease_outlives_a_failover),
        SCENE_TEST(waiting_survives_failover),
        SCENE_TEST(a_wait_rides_through),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
