/* test_cluster_doorbells.c - doorbells in a cluster: over sharded channels where
 * the servers have them and the user may, and the ordinary way where not. */
/* SPDX-License-Identifier: MIT */
#include "cluster_stage.h"
#include "hosting.h"

#include "store/redis/cluster/slot.h"

static const char *acl_file;

/* Whether somebody listens at the server to the slot of the name. */
static bool is_listened(const server *sv, const char *name)
{
    char tag[DIBS__SLOT_TAG], pattern[48];
    char *channels;
    bool found;

    dibs__slot_tag(slot_of(name), tag);
    snprintf(pattern, sizeof(pattern), "dibs:bell:{%s}:*", tag);
    channels = server_ask(sv, "PUBSUB", "SHARDCHANNELS", pattern, NULL);
    found = channels && strncmp(channels, "dibs:bell:", 10) == 0;
    free(channels);
    return found;
}

static void await_listened(const server *sv, const char *name)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    while (!is_listened(sv, name)) {
        if (dibsx_now() >= end)
            MISSED("nobody listens to the slot of %s", name);
        world_sleep_ms(2);
    }
}

static void reset_calls(void)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        assert_true(server_tell(&cw.sv[i], "CONFIG", "RESETSTAT", NULL));
}

/* How often a command was run at any server since then. */
static long long calls_of(const char *command)
{
    long long calls = 0;
    char field[48];

    snprintf(field, sizeof(field), "cmdstat_%s", command);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        long long own = server_info(&cw.sv[i], "commandstats", field);

        calls += own > 0 ? own : 0;
    }
    return calls;
}

static uint64_t notices_of(const dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    return stats.rings;
}

static void
no_news(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    (void)lock;
    (void)rc;
    (void)err;
    (void)arg;
}

/* One who holds and one who waits. */
typedef struct pair {
    const char *name;
    dibs_client *to;
    dibs_lock *held;
    dibs_lock *waiter;
} pair;

static pair begin_wait(dibs_client *from, dibs_client *to, const char *name)
{
    pair pr = {.name = name, .to = to};

    pr.held = world_lock(from, name, NULL);
    pr.waiter = world_lock(to, name, DIBS_LOCK_OPTS(.wait_ms = 30000));
    CHECK(DIBS_OK, dibs_lock_try(pr.held, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(pr.waiter, no_news, NULL, err));
    world_await_waiters(from, name, 1);
    return pr;
}

/* True when it was a notice that brought the lease: who waits asks by itself now and
 * then, which may come first once in a while. */
static bool end_wait(pair *pr)
{
    uint64_t before = notices_of(pr->to);
    bool notified;

    CHECK(DIBS_OK, dibs_lock_release(pr->held, err));
    world_await(pr->waiter, DIBS_LOCK_HELD, WORLD_BOUND_MS);
    notified = notices_of(pr->to) > before;
    dibs_lock_free(pr->waiter);
    dibs_lock_free(pr->held);
    return notified;
}

/* A lease goes from one to another who waits for it; as end_wait(). */
static bool
hand_over(dibs_client *from, dibs_client *to, const char *name, bool listened)
{
    pair pr = begin_wait(from, to, name);

    if (listened)
        await_listened(home_of(name), name);
    return end_wait(&pr);
}

/* How often a word is in what the servers say to a command. */
static int mentions(const char *const ask[3], const char *word)
{
    int count = 0;

    for (int i = 0; i < CLUSTER_NODES; i++) {
        char *text = server_ask(&cw.sv[i], ask[0], ask[1], ask[2], NULL);

        for (const char *at = text; at && (at = strstr(at, word)); at++)
            count++;
        free(text);
    }
    return count;
}

/* Who listens to the ordinary channel as well, and nobody else. */
static void await_one_listener(void)
{
    static const char *const listeners[3] = {"CLIENT", "LIST"};
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    while (mentions(listeners, " flags=P ") != 1 ||
           mentions(listeners, " sub=1 psub=0 ssub=1 ") != 1) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(20);
    }
}

/* Over one connection in the end. */
static void a_waiter_is_notified_in_its_slot(void **state)
{
    dibs_client *one = world_client(cw_url, 5000);
    dibs_client *other = world_client(cw_url, 5000);
    bool notified = false;

    (void)state;
    reset_calls();
    for (int i = 0; i < 3; i++)
        notified = hand_over(one, other, "rung", true) || notified;
    IN_TIME(notified);
    IN_TIME(calls_of("spublish") == 3);
    IN_TIME(calls_of("publish") == 0);
    await_one_listener();
    dibs_close(other);
    dibs_close(one);
    IN_TIME(!is_listened(home_of("rung"), "rung"));
}

/* The connections that listen to so many sharded channels. */
static int listeners_at(const server *sv, int channels)
{
    char *list = server_ask(sv, "CLIENT", "LIST", NULL);
    char field[24];
    int count = 0;

    snprintf(field, sizeof(field), " ssub=%d ", channels);
    for (const char *at = list; at && (at = strstr(at, field)); at++)
        count++;
    free(list);
    return count;
}

/* Its ears are told to stop while they are being woken for the first wait. */
static void who_has_just_begun_to_wait_can_close(void **state)
{
    dibs_client *holder = world_client(cw_url, 5000);
    dibs_lock *held = world_lock(holder, "closing", NULL);
    int waited = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(held, err));
    for (int i = 0; i < 200; i++) {
        dibs_client *cl = world_client(cw_url, 5000);
        dibs_lock *lock =
            world_lock(cl, "closing",
                       DIBS_LOCK_OPTS(.wait_ms = pace_ms(1 + i % 3)));
        dibsx_nsec from_at;
        dibs_status rc = dibs_lock_acquire(lock, NULL);

        /* To connect can take longer than the wait; then it did not begin. Leaving the
         * queue has a limit of its own: the server may be late. */
        if (rc == DIBS_TIMEOUT || rc == DIBS_UNKNOWN)
            waited++;
        else
            assert_status(rc, DIBS_UNAVAIL);
        dibs_lock_free(lock);
        from_at = dibsx_now();
        dibs_close(cl);
        IN_TIME(world_ms_since(from_at) < pace_ms(WORLD_BOUND_MS));
    }
    IN_TIME(waited > 20);
    dibs_lock_free(held);
    dibs_close(holder);
}

/* With one connection for all slots of a master. */
static void waits_at_all_masters_are_notified(void **state)
{
    enum { EACH = 2, ALL = EACH * CLUSTER_MASTERS };
    dibs_client *one = world_client(cw_url, 5000);
    dibs_client *other = world_client(cw_url, 5000);
    char names[ALL][16];
    int found[CLUSTER_MASTERS] = {0}, count = 0;
    uint64_t notices = 0;
    pair pairs[ALL];

    (void)state;
    for (int i = 0; count < ALL; i++) {
        int node;

        snprintf(names[count], sizeof(names[count]), "all-%d", i);
        node = cluster_server_of(&cw, slot_of(names[count]));
        if (node >= 0 && node < CLUSTER_MASTERS && found[node]++ < EACH)
            count++;
    }
    for (int i = 0; i < ALL; i++)
        pairs[i] = begin_wait(one, other, names[i]);
    for (int i = 0; i < ALL; i++)
        await_listened(home_of(names[i]), names[i]);
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        assert_int_equal(listeners_at(&cw.sv[i], EACH), 1);
    reset_calls();
    for (int i = 0; i < ALL; i++)
        notices += end_wait(&pairs[i]);
    IN_TIME(notices >= ALL - EACH + 1);
    IN_TIME(calls_of("spublish") == ALL);
    IN_TIME(calls_of("publish") == 0);
    dibs_close(other);
    dibs_close(one);
}

/* Slots that were not asked for of late make room. */
static void only_so_many_slots_are_listened_to(void **state)
{
    enum { MANY = 300, MOST = 256 };
    static const char *const channels[3] = {"PUBSUB", "SHARDCHANNELS"};
    dibs_client *one = world_client(cw_url, 5000);
    dibs_client *other = world_client(cw_url, 5000);
    char name[32];
    int count;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many-%d", i);
        (void)hand_over(one, other, name, false);
    }
    await_listened(home_of(name), name);
    count = mentions(channels, "dibs:bell:");
    assert_true(count > MOST / 2 && count <= MOST);
    dibs_close(other);
    dibs_close(one);
}

/* The new master is listened to by who waits; and until it is, the notice comes the
 * ordinary way. */
static void a_waiter_is_notified_after_its_slot_has_moved(void **state)
{
    dibs_client *one = world_client(cw_url, 5000);
    dibs_client *other = world_client(cw_url, 5000);
    int slot = slot_of("moved");
    int from = cluster_server_of(&cw, slot);
    int to = (from + 1) % CLUSTER_MASTERS;
    pair pr = begin_wait(one, other, "moved");

    (void)state;
    await_listened(&cw.sv[from], "moved");
    assert_true(cluster_move(&cw, slot, to, 0));
    assert_false(is_listened(&cw.sv[from], "moved"));
    await_listened(&cw.sv[to], "moved");
    reset_calls();
    (void)end_wait(&pr);
    IN_TIME(server_info(&cw.sv[to], "commandstats", "cmdstat_spublish") == 1);
    IN_TIME(calls_of("publish") == 0);
    pr = begin_wait(one, other, "moved");
    assert_true(cluster_move(&cw, slot, from, 0));
    (void)end_wait(&pr);
    dibs_close(other);
    dibs_close(one);
}

static void a_waiter_is_served_after_a_failover(void **state)
{
    dibs_client *one = world_client(cw_url, 10000);
    dibs_client *other = world_client(cw_url, 10000);
    pair pr = begin_wait(one, other, "crashed");
    int node = cluster_server_of(&cw, slot_of("crashed"));
    int64_t failover_ms;

    (void)state;
    await_listened(&cw.sv[node], "crashed");
    IN_TIME(cluster_crash(&cw, node, &failover_ms));
    await_listened(home_of("crashed"), "crashed");
    reset_calls();
    (void)end_wait(&pr);
    IN_TIME(calls_of("spublish") == 1);
    IN_TIME(calls_of("publish") == 0);
    dibs_close(other);
    dibs_close(one);
}

/* Whose connection is cut asks again, and is listened to again. */
static void a_waiter_whose_connections_are_cut_is_served(void **state)
{
    dibs_client *one = world_client(cw_url, 5000);
    dibs_client *other = world_client(cw_url, 5000);
    const server *home = home_of("cut");
    pair pr = begin_wait(one, other, "cut");

    (void)state;
    await_listened(home, "cut");
    assert_true(server_tell(home, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
    await_listened(home, "cut");
    (void)end_wait(&pr);
    dibs_close(other);
    dibs_close(one);
}

static void
a_client_that_may_not_listen_there_is_notified_elsewhere(void **state)
{
    dibs_client *poor = client_of_user(acl_file, "-ssubscribe");
    dibs_client *rich = world_client(cw_url, 5000);
    bool notified = false, back = false;

    (void)state;
    reset_calls();
    for (int i = 0; i < 3; i++)
        notified = hand_over(rich, poor, "rights:a", false) || notified;
    IN_TIME(notified);
    IN_TIME(calls_of("publish") == 3);
    assert_false(is_listened(home_of("rights:a"), "rights:a"));
    reset_calls();
    for (int i = 0; i < 3; i++)
        back = hand_over(poor, rich, "rights:a", true) || back;
    IN_TIME(back);
    IN_TIME(calls_of("spublish") == 3);
    IN_TIME(calls_of("publish") == 0);
    dibs_close(rich);
    dibs_close(poor);
}

static void a_client_that_may_not_notify_there_does_so_elsewhere(void **state)
{
    dibs_client *poor = client_of_user(acl_file, "-spublish");
    dibs_client *rich = world_client(cw_url, 5000);
    bool notified = false;

    (void)state;
    reset_calls();
    for (int i = 0; i < 3; i++)
        notified = hand_over(poor, rich, "rights:b", true) || notified;
    IN_TIME(notified);
    IN_TIME(calls_of("publish") == 3);
    dibs_close(rich);
    dibs_close(poor);
}

/* As those before Redis 7.0; a cluster of one. */
static void servers_without_sharded_channels_are_fine(void **state)
{
    char bus[16], text[64];
    const char *const args[] = {"--cluster-enabled",
                                "yes",
                                "--cluster-port",
                                bus,
                                "--rename-command",
                                "SSUBSCRIBE",
                                "",
                                "--rename-command",
                                "SPUBLISH",
                                "",
                                NULL};
    dibs_client *one, *other;
    bool notified = false;
    server old;

    (void)state;
    snprintf(bus, sizeof(bus), "%d", hosting_free_port());
    assert_true(server_start_forgetful(&old, args));
    assert_true(
        server_tell(&old, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL));
    snprintf(text, sizeof(text), "redis-cluster://127.0.0.1:%d", old.port);
    one = world_client(text, 5000);
    other = world_client(text, 5000);
    CHECK(DIBS_OK, dibs_ping(one, NULL, err));
    for (int i = 0; i < 3; i++)
        notified = hand_over(one, other, "old", false) || notified;
    IN_TIME(notified);
    IN_TIME(server_info(&old, "commandstats", "cmdstat_publish") == 3);
    dibs_close(other);
    dibs_close(one);
    server_stop(&old);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiter_is_notified_in_its_slot),
        cmocka_unit_test(who_has_just_begun_to_wait_can_close),
        cmocka_unit_test(waits_at_all_masters_are_notified),
        cmocka_unit_test(only_so_many_slots_are_listened_to),
        cmocka_unit_test(a_waiter_is_notified_after_its_slot_has_moved),
        cmocka_unit_test(a_waiter_whose_connections_are_cut_is_served),
        cmocka_unit_test(
            a_client_that_may_not_listen_there_is_notified_elsewhere),
        cmocka_unit_test(a_client_that_may_not_notify_there_does_so_elsewhere),
        cmocka_unit_test(servers_without_sharded_channels_are_fine),
        cmocka_unit_test(a_waiter_is_served_after_a_failover),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: test_cluster_doorbells docs/redis-acl.md\n");
        return 2;
    }
    acl_file = argv[1];
    return cmocka_run_group_tests(tests, cluster_stage_begin,
                                  cluster_stage_end);
}
