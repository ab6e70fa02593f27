/* test_cluster.c - one cluster for all tests: where keys are, what is refused, and
 * what becomes of leases and values while a slot is half moved or a master does not
 * answer. */
/* SPDX-License-Identifier: MIT */
#include "cluster_stage.h"
#include "hosting.h"

#include "store/redis/cluster/slot.h"
#include "store/redis/keys.h"
#include "store/store.h"

static const char *acl_file;

static bool exists(const char *key)
{
    char *reply = server_ask(home_of(key), "EXISTS", key, NULL);
    bool found = reply && strcmp(reply, "1") == 0;

    free(reply);
    return found;
}

static dibs__store *open_store(void)
{
    dibs__store *st = NULL;

    CHECK(DIBS_OK, dibs__store_open(cw_url, dibsx_after_ms(dibsx_now(), 5000),
                                    &st, err));
    return st;
}

/* A slot that one master gives to another; and where it began. */
typedef struct move {
    int slot;
    int from;
    int to;
} move;

static move begin_move(const char *key)
{
    move mv = {.slot = slot_of(key)};

    mv.from = cluster_server_of(&cw, mv.slot);
    for (int i = 0; i < CLUSTER_NODES && mv.to == 0; i++) {
        int other = cluster_server_of(&cw, i * DIBS__SLOTS / CLUSTER_NODES);

        if (other >= 0 && other != mv.from)
            mv.to = other + 1;
    }
    mv.to--;
    assert_true(mv.from >= 0 && mv.to >= 0);
    assert_true(cluster_move_begin(&cw, mv.slot, mv.from, mv.to));
    return mv;
}

static void move_keys(const move *mv)
{
    assert_true(cluster_move_keys(&cw, mv->slot, mv->from, mv->to, 0));
}

static void end_move(const move *mv)
{
    assert_true(cluster_move_end(&cw, mv->slot, mv->from, mv->to));
}

static void each_slot_has_its_fence(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);

    (void)state;
    for (int i = 0; i < 20; i++) {
        char name[32], tag[DIBS__SLOT_TAG], fence[40], none[40];
        dibs_lock *lock;

        snprintf(name, sizeof(name), "fenced-%d", i);
        dibs__slot_tag(slot_of(name), tag);
        snprintf(fence, sizeof(fence), "dibs:fence:{%s}", tag);
        snprintf(none, sizeof(none), "dibs:none:{%s}", tag);
        lock = world_lock(cl, name, NULL);
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        assert_true(exists(name));
        assert_true(exists(fence));
        assert_false(exists(none));
        dibs_lock_free(lock);
        assert_false(exists(name));
    }
    dibs_close(cl);
}

static dibs_status
take_both(dibs__store *st, const char *one, const char *other, dibs_error *err)
{
    char owners[2][DIBS_OWNER_SIZE] = {"0123456789abcdef0123456789abcdef",
                                       "1123456789abcdef0123456789abcdef"};
    dibs__ask asks[2] = {
        {.name = one, .owner = owners[0], .permits = 1, .ttl_ms = 200},
        {.name = other, .owner = owners[1], .permits = 1, .ttl_ms = 200}};
    dibs__answer answers[2];
    size_t blocked;

    asks[0].who = asks[1].who = "host:1 test";
    return st->ops->lease->acquire_all(st, asks, 2,
                                       dibsx_after_ms(dibsx_now(), 5000),
                                       answers, &blocked, err);
}

static void a_set_in_one_step_needs_one_slot(void **state)
{
    dibs__store *st = open_store();
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_OK, take_both(st, "set{x}-1", "set{x}-2", err));
    assert_status(take_both(st, "set-1", "set-2", &why), DIBS_UNSUPPORTED);
    assert_non_null(strstr(why.message, "{tag}"));
    dibs__store_close(st);
}

typedef struct listing {
    int count;
    bool sorted;
    char last[64];
} listing;

static bool note_item(const dibs_state_item *item, void *arg)
{
    listing *ls = arg;

    ls->sorted = ls->sorted && strcmp(ls->last, item->key) < 0;
    snprintf(ls->last, sizeof(ls->last), "%s", item->key);
    ls->count++;
    return true;
}

static bool
note_name(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    const dibs_state_item item = {.key = name};

    assert_int_equal(count, 1);
    assert_true(entries[0].holder);
    return note_item(&item, arg);
}

static void a_list_is_of_all_masters(void **state)
{
    enum { MANY = 60 };
    dibs_client *cl = world_client(cw_url, 5000);
    dibs__store *st = open_store();
    listing values = {.sorted = true}, names = {.sorted = true};
    dibs_lock *locks[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        char key[32];

        snprintf(key, sizeof(key), "listed-%02d", i);
        CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, 0, NULL, err));
        locks[i] = world_lock(cl, key, NULL);
        CHECK(DIBS_OK, dibs_lock_try(locks[i], err));
    }
    CHECK(DIBS_OK, dibs_state_list(cl, "listed-", note_item, &values, err));
    CHECK(DIBS_OK,
          st->ops->lease->list(st, "listed-", dibsx_after_ms(dibsx_now(), 5000),
                               note_name, &names, err));
    assert_int_equal(values.count, MANY);
    assert_int_equal(names.count, MANY);
    assert_true(values.sorted && names.sorted);
    for (int i = 0; i < MANY; i++)
        dibs_lock_free(locks[i]);
    dibs__store_close(st);
    dibs_close(cl);
}

static bool
note_latch(const char *name, const dibs_latch_state *latch, void *arg)
{
    const dibs_state_item item = {.key = name};

    assert_int_equal(latch->left, 1);
    return note_item(&item, arg);
}

static void expect_latches(dibs_client *cl, int count)
{
    listing latches = {.sorted = true};

    CHECK(DIBS_OK, dibs_latch_list(cl, "latch-", note_latch, &latches, err));
    assert_int_equal(latches.count, count);
    assert_true(latches.sorted);
}

/* More than are read together, on all masters; then one is not where it was. */
static void a_list_of_latches_follows_a_slot(void **state)
{
    enum { MANY = 300 };
    dibs_client *cl = world_client(cw_url, 5000);
    move mv;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        char name[32];
        uint32_t left;

        snprintf(name, sizeof(name), "latch-%03d", i);
        CHECK(DIBS_OK, dibs_latch_count_down(cl, name, 2, "a", &left, err));
    }
    expect_latches(cl, MANY);
    mv = begin_move("dibs:roster:{latch-000}");
    move_keys(&mv);
    end_move(&mv);
    expect_latches(cl, MANY);
    dibs_close(cl);
}

/* Of a count, meet_plain.lua leaves out the look at seats that end. */
static void a_count_takes_the_short_way(void **state)
{
    const server *sv = home_of("dibs:roster:{counted}");
    dibs_client *cl = world_client(cw_url, 5000);
    long long before;
    uint32_t left;

    (void)state;
    CHECK(DIBS_OK, dibs_latch_count_down(cl, "counted", 3, "a", &left, err));
    before = server_info(sv, "commandstats", "cmdstat_zrangebyscore");
    CHECK(DIBS_OK, dibs_latch_count_down(cl, "counted", 3, "b", &left, err));
    assert_int_equal(left, 1);
    assert_int_equal(server_info(sv, "commandstats", "cmdstat_zrangebyscore"),
                     before);
    dibs_close(cl);
}

static void expect_message(dibs_listener *listener, const char *text)
{
    dibs_message got;

    CHECK(DIBS_OK, dibs_listener_next(listener, WORLD_BOUND_MS, &got, err));
    assert_false(got.missed);
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.data, text, got.len);
}

/* Those who listen are with the server that the slot moves from, until it has moved. */
static void messages_are_heard_while_a_slot_moves(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_listener *listener = NULL;
    move mv;

    (void)state;
    CHECK(DIBS_OK, dibs_listener_new(cl, "{talk}", &listener, err));
    CHECK(DIBS_OK, dibs_message_send(cl, "{talk}", "one", 3, err));
    expect_message(listener, "one");
    mv = begin_move("{talk}");
    CHECK(DIBS_OK, dibs_message_send(cl, "{talk}", "two", 3, err));
    expect_message(listener, "two");
    move_keys(&mv);
    end_move(&mv);
    dibs_listener_free(listener);
    dibs_close(cl);
}

static void check_value(dibs_client *cl, const char *key, const char *text)
{
    dibs_value value = {0};

    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_string_equal(value.data, text);
    dibs_value_free(&value);
}

/* All keys of the script are there when it comes, so that a server would let it
 * begin; and it deletes one that it then could not write. */
static void nothing_is_half_done_while_a_slot_moves(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_client *hasty = world_client(cw_url, 300);
    move mv;

    (void)state;
    CHECK(DIBS_OK, dibs_state_set(cl, "moving", "old", 3, 0, NULL, err));
    mv = begin_move("dibs:value:moving");
    CHECK(DIBS_UNAVAIL,
          dibs_state_set(hasty, "moving", "new", 3, 0, NULL, err));
    check_value(cl, "moving", "old");
    move_keys(&mv);
    /* Now it is asked for at the other, which wants ASKING first. */
    check_value(cl, "moving", "old");
    CHECK(DIBS_UNAVAIL,
          dibs_state_set(hasty, "moving", "new", 3, 0, NULL, err));
    check_value(cl, "moving", "old");
    end_move(&mv);
    CHECK(DIBS_OK, dibs_state_set(cl, "moving", "new", 3, 0, NULL, err));
    check_value(cl, "moving", "new");
    dibs_close(hasty);
    dibs_close(cl);
}

/* Two commits in one step, each in a slot of its own. */
static void commit_two(dibs__store *st, const char *text, int64_t limit_ms,
                       dibs_status first)
{
    dibs__change changes[2][3];
    dibs__commit items[2];
    static const char *const names[2][2] = {{"co{m}mit", "in{m}dex"},
                                            {"co{n}mit", "in{n}dex"}};

    for (size_t i = 0; i < 2; i++) {
        changes[i][0] = (dibs__change){.verb = DIBS__CHANGE_PUT,
                                       .key = names[i][0],
                                       .data = text,
                                       .len = strlen(text)};
        changes[i][1] = (dibs__change){.verb = DIBS__CHANGE_LEAVE,
                                       .key = names[i][1],
                                       .member = "old"};
        changes[i][2] = (dibs__change){.verb = DIBS__CHANGE_ENTER,
                                       .key = names[i][1],
                                       .member = text};
        items[i] = (dibs__commit){.changes = changes[i], .change_count = 3};
    }
    items[0].change_count = items[1].change_count =
        strcmp(text, "old") == 0 ? 1 : 3;
    CHECK(DIBS_OK,
          st->ops->commit->commit(st, items, 2,
                                  dibsx_after_ms(dibsx_now(), limit_ms), err));
    assert_status(items[0].rc, first);
    assert_status(items[1].rc, DIBS_OK);
}

static void a_commit_waits_for_its_slot_alone(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs__store *st = open_store();
    move mv;

    (void)state;
    commit_two(st, "old", 5000, DIBS_OK);
    mv = begin_move("dibs:value:co{m}mit");
    commit_two(st, "new", 300, DIBS_UNAVAIL);
    check_value(cl, "co{m}mit", "old");
    check_value(cl, "co{n}mit", "new");
    move_keys(&mv);
    commit_two(st, "new", 300, DIBS_UNAVAIL);
    check_value(cl, "co{m}mit", "old");
    end_move(&mv);
    commit_two(st, "newer", 5000, DIBS_OK);
    check_value(cl, "co{m}mit", "newer");
    dibs__store_close(st);
    dibs_close(cl);
}

/* However long it takes, and wherever its keys are just now. */
static void a_lease_is_kept_while_its_slot_moves(void **state)
{
    const dibs_lock_opts shared = {.size = sizeof(shared),
                                   .ttl_ms = 600,
                                   .mode = DIBS_SHARED};
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_lock *alone =
        world_lock(cl, "kept{m}-1", DIBS_LOCK_OPTS(.ttl_ms = 600));
    dibs_lock *reader = world_lock(cl, "kept{m}-2", &shared);
    uint64_t fence;
    move mv;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(alone, err));
    CHECK(DIBS_OK, dibs_lock_try(reader, err));
    fence = dibs_lock_fence(alone);
    mv = begin_move("kept{m}-1");
    world_sleep_ms(1200);
    CHECK(DIBS_OK, dibs_lock_check(alone));
    CHECK(DIBS_OK, dibs_lock_check(reader));
    move_keys(&mv);
    world_sleep_ms(1200);
    CHECK(DIBS_OK, dibs_lock_check(alone));
    CHECK(DIBS_OK, dibs_lock_check(reader));
    end_move(&mv);
    world_sleep_ms(400);
    CHECK(DIBS_OK, dibs_lock_release(alone, err));
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    CHECK(DIBS_OK, dibs_lock_try(alone, err));
    assert_true(dibs_lock_fence(alone) > fence);
    dibs_lock_free(alone);
    dibs_lock_free(reader);
    dibs_close(cl);
}

static void
no_news(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    (void)lock;
    (void)rc;
    (void)err;
    (void)arg;
}

/* A waiter that came before the move is served after it. */
static void a_queue_moves_with_its_name(void **state)
{
    dibs_client *one = world_client(cw_url, 5000);
    dibs_client *other = world_client(cw_url, 5000);
    dibs_lock *held = world_lock(one, "queued{q}", NULL);
    dibs_lock *waiter =
        world_lock(other, "queued{q}", DIBS_LOCK_OPTS(.wait_ms = 10000));
    dibs__store *st = open_store();
    move mv;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(held, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(waiter, no_news, NULL, err));
    world_await_waiters(one, "queued{q}", 1);
    mv = begin_move("queued{q}");
    move_keys(&mv);
    end_move(&mv);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    world_await(waiter, DIBS_LOCK_HELD, WORLD_BOUND_MS);
    dibs__store_close(st);
    dibs_lock_free(waiter);
    dibs_lock_free(held);
    dibs_close(other);
    dibs_close(one);
}

/* What was found about one subject. */
typedef struct look {
    const char *subject;
    dibs_severity severity;
    char found[400];
} look;

static void note_finding(const dibs_finding *finding, void *arg)
{
    look *lk = arg;

    if (strcmp(finding->subject, lk->subject) != 0 ||
        finding->severity < lk->severity)
        return;
    lk->severity = finding->severity;
    snprintf(lk->found, sizeof(lk->found), "%s", finding->found);
}

static look look_at(dibs_client *cl, const char *subject)
{
    look lk = {.subject = subject};

    CHECK(DIBS_OK, dibs_audit(cl, note_finding, &lk, err));
    if (!lk.found[0])
        fail_msg("nothing was found about %s", subject);
    return lk;
}

/* Each master has one replica: a write that needs one is refused by the replica
 * that takes over. */
static void the_audit_misses_a_spare_replica(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    const server *master = &cw.sv[cluster_server_of(&cw, 0)];
    look lk = {.subject = "failover"};
    char port[16];

    (void)state;
    CHECK(DIBS_OK, dibs_audit(cl, note_finding, &lk, err));
    assert_string_equal(lk.found, "");
    assert_true(server_tell(master, "CONFIG", "SET", "min-replicas-to-write",
                            "1", NULL));
    lk = look_at(cl, "failover");
    assert_true(server_tell(master, "CONFIG", "SET", "min-replicas-to-write",
                            "0", NULL));
    snprintf(port, sizeof(port), ":%d", master->port);
    assert_int_equal(lk.severity, DIBS_CAUTION);
    assert_non_null(strstr(lk.found, "the loss of one server"));
    assert_non_null(strstr(lk.found, port));
    dibs_close(cl);
}

static void the_audit_looks_at_every_master(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    int node = cluster_server_of(&cw, 0);
    char port[16], strict[SERVER_URL_MAX + 16];
    dibs_client *none = NULL;
    move mv;
    look lk;

    (void)state;
    lk = look_at(cl, "cluster");
    assert_int_equal(lk.severity, DIBS_FINE);
    assert_string_equal(lk.found, "3 masters, 3 replicas");
    assert_int_equal(look_at(cl, "slots").severity, DIBS_FINE);
    assert_int_equal(look_at(cl, "coverage").severity, DIBS_NOTE);
    assert_non_null(strstr(look_at(cl, "eviction").found, "all 3 masters"));
    lk = look_at(cl, "doorbells");
    assert_int_equal(lk.severity, DIBS_FINE);
    assert_non_null(strstr(lk.found, "all 3 masters"));
    assert_int_equal(look_at(cl, "persistence").severity, DIBS_CAUTION);
    mv = begin_move("audited");
    assert_int_equal(look_at(cl, "moves").severity, DIBS_CAUTION);
    end_move(&mv);
    assert_true(server_tell(&cw.sv[node], "CONFIG", "SET", "maxmemory", "100mb",
                            "maxmemory-policy", "allkeys-lru", NULL));
    lk = look_at(cl, "eviction");
    snprintf(port, sizeof(port), ":%d", cw.sv[node].port);
    assert_int_equal(lk.severity, DIBS_DANGER);
    assert_non_null(strstr(lk.found, port));
    snprintf(strict, sizeof(strict), "%s?strict=1", cw_url);
    CHECK(DIBS_REFUSED, dibs_open(strict, NULL, &none, err));
    assert_true(server_tell(&cw.sv[node], "CONFIG", "SET", "maxmemory", "0",
                            "maxmemory-policy", "noeviction", NULL));
    dibs_close(cl);
}

/* Unless the cluster is told to refuse everything while one slot is not served,
 * which is what it does by default until the failover is over. */
static void a_master_that_hangs_costs_the_leases_of_others_nothing(void **state)
{
    enum { LEASES = 12 };
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_lock *locks[LEASES];
    bool theirs[LEASES];
    int hung = cluster_server_of(&cw, 0);
    dibsx_nsec end;

    (void)state;
    for (int i = 0; i < CLUSTER_NODES; i++)
        assert_true(server_tell(&cw.sv[i], "CONFIG", "SET",
                                "cluster-require-full-coverage", "no", NULL));
    assert_int_equal(look_at(cl, "coverage").severity, DIBS_FINE);
    for (int i = 0; i < LEASES; i++) {
        char name[32];

        snprintf(name, sizeof(name), "hanging-%d", i);
        theirs[i] = cluster_server_of(&cw, slot_of(name)) != hung;
        locks[i] = world_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 1800));
        CHECK(DIBS_OK, dibs_lock_try(locks[i], err));
    }
    server_pause(&cw.sv[hung]);
    end = dibsx_after_ms(dibsx_now(), 4000);
    while (dibsx_now() < end) {
        for (int i = 0; i < LEASES; i++)
            if (theirs[i])
                CHECK(DIBS_OK, dibs_lock_check(locks[i]));
        world_sleep_ms(20);
    }
    server_resume(&cw.sv[hung]);
    for (int i = 0; i < LEASES; i++)
        dibs_lock_free(locks[i]);
    dibs_close(cl);
}

/* The node that follows the one at `port`. */
static server *replica_of(int port)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (server_info(&cw.sv[i], "replication", "master_port") == port)
            return &cw.sv[i];
    fail_msg("nobody follows %d", port);
    return NULL;
}

static void a_durable_lease_is_had_by_the_replica_of_its_slot(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_lock *lock =
        world_lock(cl, "durable{a}",
                   DIBS_LOCK_OPTS(.ttl_ms = 2000, .durability = "wait:1"));
    dibs_stats stats = {.size = sizeof(stats)};
    server *replica = replica_of(home_of("durable{a}")->port);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_int_equal(dibs_lock_replicas_acked(lock), 1);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    server_pause(replica);
    CHECK(DIBS_UNAVAIL, dibs_lock_try(lock, err));
    server_resume(replica);
    dibs_stats_get(cl, &stats);
    IN_TIME(stats.under_replicated == 1);
    assert_false(exists("durable{a}"));
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* Durable locks, the first twelve on the master of the lowest slots, whose leases are
 * renewed first, and the others elsewhere. */
enum { LAGGING = 12, DURABLE = LAGGING + 3 };

static void take_durable(dibs_client *cl, int node, dibs_lock *locks[DURABLE])
{
    int there = 0, elsewhere = LAGGING;

    for (int i = 0; there < LAGGING || elsewhere < DURABLE; i++) {
        char name[32];
        dibs_lock **at = NULL;

        snprintf(name, sizeof(name), "lagging-%d", i);
        if (cluster_server_of(&cw, slot_of(name)) != node)
            at = elsewhere < DURABLE ? &locks[elsewhere++] : NULL;
        else if (there < LAGGING)
            at = &locks[there++];
        if (!at)
            continue;
        *at =
            world_lock(cl, name,
                       DIBS_LOCK_OPTS(.ttl_ms = 2000, .durability = "wait:1"));
        CHECK(DIBS_OK, dibs_lock_try(*at, err));
    }
}

static void replicas_that_lag_cost_the_leases_of_others_nothing(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_lock *locks[DURABLE];
    int node = cluster_server_of(&cw, 0);
    server *replica = replica_of(cw.sv[node].port);
    dibsx_nsec end;

    (void)state;
    take_durable(cl, node, locks);
    server_pause(replica);
    end = dibsx_after_ms(dibsx_now(), 5000);
    while (dibsx_now() < end) {
        for (int i = LAGGING; i < DURABLE; i++)
            IN_TIME(dibs_lock_check(locks[i]) == DIBS_OK);
        world_sleep_ms(20);
    }
    server_resume(replica);
    for (int i = 0; i < DURABLE; i++)
        dibs_lock_free(locks[i]);
    dibs_close(cl);
}

/* Connections that are kept lead to the master of before. */
static void a_durable_lease_follows_its_slot(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_lock *lock =
        world_lock(cl, "durable{m}",
                   DIBS_LOCK_OPTS(.ttl_ms = 900, .durability = "wait:1"));
    uint64_t fence;
    move mv;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    mv = begin_move("durable{m}");
    world_sleep_ms(1500);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    move_keys(&mv);
    world_sleep_ms(1500);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    end_move(&mv);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(dibs_lock_fence(lock) > fence);
    assert_int_equal(dibs_lock_replicas_acked(lock), 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void say_owner(const move *mv, int node, int owner)
{
    char slot[16];

    snprintf(slot, sizeof(slot), "%d", mv->slot);
    assert_true(server_tell(&cw.sv[node], "CLUSTER", "SETSLOT", slot, "NODE",
                            cw.id[owner], NULL));
}

static long long errors_of(const move *mv)
{
    return server_info(&cw.sv[mv->from], "stats", "total_error_replies") +
           server_info(&cw.sv[mv->to], "stats", "total_error_replies");
}

/* Each of two masters names the other one. Who asks goes to and fro until its time
 * is up, and leaves them time for others. */
static void masters_that_disagree_are_not_pestered(void **state)
{
    enum { TIME_MS = 2000, ASKS_MAX = 300 };
    dibs_client *cl = world_client(cw_url, TIME_MS);
    dibs_lock *lock = world_lock(cl, "disputed", NULL);
    move mv = begin_move("disputed");
    dibsx_nsec from_at;
    long long before;
    dibs_error why = {0};
    dibs_status rc;

    (void)state;
    say_owner(&mv, mv.from, mv.to);
    say_owner(&mv, mv.to, mv.from);
    before = errors_of(&mv);
    from_at = dibsx_now();
    rc = dibs_lock_try(lock, &why);
    assert_in_range(errors_of(&mv) - before, 1, ASKS_MAX);
    if (rc == DIBS_OK) { /* Valkey's masters may come to agree by themselves. */
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    } else {
        /* On a slow machine the last answer may not be in. */
        assert_true(rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
        assert_true(why.retriable);
        print_message("%s\n", why.message);
        assert_true(world_ms_since(from_at) > TIME_MS / 2);
    }
    say_owner(&mv, mv.to, mv.to);
    say_owner(&mv, mv.from, mv.to);
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void a_wrong_scheme_is_named(void **state)
{
    char text[SERVER_URL_MAX];
    dibs_client *cl = NULL;
    dibs_error why = {0};
    dibs_status rc;
    dibs_lock *lock;
    server plain;

    (void)state;
    server_url(&cw.sv[cluster_server_of(&cw, 0)], text);
    cl = world_client(text, 2000);
    lock = world_lock(cl, "hello", NULL); /* of slot 866 */
    rc = dibs_lock_try(lock, &why);
    if (rc == DIBS_OK) {
        dibs_lock_free(lock);
        lock = world_lock(cl, "foo", NULL); /* of slot 12182 */
        rc = dibs_lock_try(lock, &why);
    }
    CHECK(DIBS_UNSUPPORTED, rc);
    assert_non_null(strstr(why.message, "redis-cluster:"));
    dibs_lock_free(lock);
    dibs_close(cl);
    assert_true(server_start_forgetful(&plain, NULL));
    snprintf(text, sizeof(text), "redis-cluster://127.0.0.1:%d", plain.port);
    CHECK(DIBS_REFUSED, dibs_open(text, NULL, &cl, &why));
    assert_non_null(strstr(why.message, "redis:"));
    server_stop(&plain);
}

/* Nobody answers: that is known at once, and no reason to wait for a failover. */
static void a_cluster_that_is_away_is_unavailable(void **state)
{
    dibsx_nsec began_at = dibsx_now();
    char text[SERVER_URL_MAX];
    dibs_client *cl = NULL;

    (void)state;
    snprintf(text, sizeof(text), "redis-cluster://127.0.0.1:%d,127.0.0.1:%d",
             hosting_free_port(), hosting_free_port());
    CHECK(DIBS_UNAVAIL,
          dibs_open(text, DIBS_CLIENT_OPTS(.timeout_ms = 60000), &cl, err));
    IN_TIME(world_ms_since(began_at) < pace_ms(30000));
}

/* A replica that was promoted refuses writes until others follow it. */
static void a_step_waits_for_replicas(void **state)
{
    const char *const durability[] = {"async", "wait:1"};
    dibs_client *cl = world_client(cw_url, 15000);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dibs_lock *lock =
            world_lock(cl, "alone",
                       DIBS_LOCK_OPTS(.durability = durability[i]));
        server_refusal rf;

        assert_true(server_refusal_begin(&rf, home_of("alone")));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        server_refusal_end(&rf);
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        dibs_lock_free(lock);
    }
    dibs_close(cl);
}

/* Assigns all slots once a client has asked for them. */
static void *assign_main(void *arg)
{
    const server *sv = arg;

    while (server_info(sv, "commandstats", "cmdstat_cluster|slots") < 1)
        world_sleep_ms(2);
    (void)server_tell(sv, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
    return NULL;
}

/* In the first seconds of a cluster its servers answer and serve nothing. */
static void a_new_cluster_is_waited_for(void **state)
{
    const char *const args[] = {"--cluster-enabled", "yes", NULL};
    char text[SERVER_URL_MAX];
    server sv;
    dibs_client *cl;
    dibs_lock *lock;
    pthread_t thread;

    (void)state;
    assert_true(server_start(&sv, args));
    snprintf(text, sizeof(text), "redis-cluster://127.0.0.1:%d", sv.port);
    assert_int_equal(pthread_create(&thread, NULL, assign_main, &sv), 0);
    cl = world_client(text, 15000);
    pthread_join(thread, NULL);
    lock = world_lock(cl, "first", NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
    server_stop(&sv);
}

/* The user of docs/redis-acl.md can do here what it can do on one server. */
static void the_least_rights_are_enough(void **state)
{
    listing values = {.sorted = true};
    dibs_client *cl;
    dibs_lock *lock;
    look lk;
    move mv;

    (void)state;
    cl = client_of_user(acl_file, NULL);
    lock = world_lock(cl, "rights:a", DIBS_LOCK_OPTS(.ttl_ms = 600));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_state_set(cl, "rights:v", "x", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_list(cl, "rights:", note_item, &values, err));
    assert_int_equal(values.count, 1);
    mv = begin_move("rights:a");
    move_keys(&mv);
    world_sleep_ms(1000);
    CHECK(DIBS_OK, dibs_lock_check(lock));
    end_move(&mv);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    lk = look_at(cl, "coverage");
    assert_null(strstr(lk.found, "not known"));
    assert_int_equal(look_at(cl, "doorbells").severity, DIBS_FINE);
    dibs_lock_free(lock);
    dibs_close(cl);
    cl = client_of_user(acl_file, "-spublish");
    assert_int_equal(look_at(cl, "doorbells").severity, DIBS_NOTE);
    dibs_close(cl);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_slot_has_its_fence),
        cmocka_unit_test(a_set_in_one_step_needs_one_slot),
        cmocka_unit_test(a_list_is_of_all_masters),
        cmocka_unit_test(a_list_of_latches_follows_a_slot),
        cmocka_unit_test(a_count_takes_the_short_way),
        cmocka_unit_test(messages_are_heard_while_a_slot_moves),
        cmocka_unit_test(nothing_is_half_done_while_a_slot_moves),
        cmocka_unit_test(a_commit_waits_for_its_slot_alone),
        cmocka_unit_test(a_lease_is_kept_while_its_slot_moves),
        cmocka_unit_test(a_queue_moves_with_its_name),
        cmocka_unit_test(the_audit_looks_at_every_master),
        cmocka_unit_test(the_audit_misses_a_spare_replica),
        cmocka_unit_test(the_least_rights_are_enough),
        cmocka_unit_test(masters_that_disagree_are_not_pestered),
        cmocka_unit_test(a_wrong_scheme_is_named),
        cmocka_unit_test(a_cluster_that_is_away_is_unavailable),
        cmocka_unit_test(a_step_waits_for_replicas),
        cmocka_unit_test(a_new_cluster_is_waited_for),
        cmocka_unit_test(a_durable_lease_is_had_by_the_replica_of_its_slot),
        cmocka_unit_test(replicas_that_lag_cost_the_leases_of_others_nothing),
        cmocka_unit_test(a_durable_lease_follows_its_slot),
        cmocka_unit_test(
            a_master_that_hangs_costs_the_leases_of_others_nothing),
    };

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: test_cluster docs/redis-acl.md [PATTERN]\n");
        return 2;
    }
    if (argc == 3)
        cmocka_set_test_filter(argv[2]);
    acl_file = argv[1];
    return cmocka_run_group_tests(tests, cluster_stage_begin,
                                  cluster_stage_end);
}
