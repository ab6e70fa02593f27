/* test_acl.c - the least-privileged user of the documentation: it can do all
 * that dibs does under its prefix, and nothing elsewhere. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"
#include "setuser.h"

#include "store/store.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

static const char *acl_file;

/* The first client of the world is the user's, with the prefix; the other is an
 * administrator's. */
static int start(void **state)
{
    world *w = calloc(1, sizeof(*w));

    *state = w;
    if (!w || !server_start(&w->sv, NULL) ||
        !setuser(&w->sv, acl_file, "workflow:"))
        return -1;
    snprintf(w->url, sizeof(w->url), "redis://dibs:%s@127.0.0.1:%d",
             SETUSER_PASSWORD, w->sv.port);
    CHECK(DIBS_OK, dibs_open(w->url, DIBS_CLIENT_OPTS(.prefix = "workflow:"),
                             &w->one, err));
    server_url(&w->sv, w->url);
    w->other = world_client(w->url, 2000);
    return 0;
}

static void *acquire(void *arg)
{
    return (void *)(uintptr_t)dibs_lock_acquire(arg, NULL);
}

static uint64_t notices_of(const dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    return stats.rings;
}

/* Names with a tag and names that are escaped have other keys. */
static void locks_and_doorbells_work(void **state)
{
    static const char *const names[] = {"plain", "{tag}:of", "odd}", "x~queue"};
    world *w = *state;

    for (size_t i = 0; i < 4; i++) {
        dibs_lock *lock =
            world_lock(w->one, names[i], DIBS_LOCK_OPTS(.ttl_ms = 900));
        dibs_lock *waiter =
            world_lock(w->one, names[i],
                       DIBS_LOCK_OPTS(.wait_ms = WORLD_BOUND_MS));
        pthread_t thread;
        void *rc = NULL;

        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        world_await_renewal(w->one);
        assert_int_equal(pthread_create(&thread, NULL, acquire, waiter), 0);
        world_await_waiters(w->one, names[i], 1);
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        assert_int_equal(pthread_join(thread, &rc), 0);
        assert_status((uintptr_t)rc, DIBS_OK);
        dibs_lock_free(waiter);
        dibs_lock_free(lock);
    }
    /* Any of them may have asked again before its notice came. */
    IN_TIME(notices_of(w->one) >= 1);
}

static bool count_names(const dibs_lease_info *info, void *arg)
{
    (void)info;
    ++*(size_t *)arg;
    return true;
}

static bool count_keys(const dibs_state_item *item, void *arg)
{
    (void)item;
    ++*(size_t *)arg;
    return true;
}

static void looking_breaking_and_values_work(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_value value = {0};
    size_t names = 0, keys = 0;
    uint32_t broken = 0;
    int64_t sum = 0;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lease_list(w->one, "", count_names, &names, err));
    assert_int_equal(names, 1);
    CHECK(DIBS_OK, dibs_lease_break(w->one, "k", 0, NULL, &broken, err));
    assert_int_equal(broken, 1);
    CHECK(DIBS_OK, dibs_state_set(w->one, "v", "7", 1, 60000, NULL, err));
    CHECK(DIBS_OK, dibs_state_add(w->one, "v", 35, &sum, err));
    assert_int_equal(sum, 42);
    CHECK(DIBS_OK, dibs_state_get(w->one, "v", &value, err));
    assert_string_equal(value.data, "42");
    CHECK(DIBS_OK, dibs_state_list(w->one, "", count_keys, &keys, err));
    assert_int_equal(keys, 1);
    CHECK(DIBS_OK, dibs_state_delete(w->one, "v", value.version, err));
    dibs_value_free(&value);
    dibs_lock_free(lock);
}

static bool count_entries(const dibs__log_entry *entry, void *arg)
{
    (void)entry;
    ++*(size_t *)arg;
    return true;
}

#define OWNER "0123456789abcdef0123456789abcdef"
#define HEIR  "fedcba9876543210fedcba9876543210"

/* The user's steps, which know no prefix. */
static dibs__store *open_store(const world *w)
{
    char url[SERVER_URL_MAX];
    dibs__store *st = NULL;

    snprintf(url, sizeof(url), "redis://dibs:%s@127.0.0.1:%d", SETUSER_PASSWORD,
             w->sv.port);
    CHECK(DIBS_OK,
          dibs__store_open(url, dibsx_after_ms(dibsx_now(), 2000), &st, err));
    return st;
}

static void sets_conversions_and_logs_work(void **state)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    dibs__store *st = open_store(*state);
    dibs__ask asks[2] = {
        {.name = "workflow:k", .owner = OWNER, .ttl_ms = 9000, .who = "h:1"},
        {.name = "workflow:{t}:l", .owner = HEIR, .ttl_ms = 9000, .who = "h:1"},
    };
    dibs__conversion turn = {.name = "workflow:k",
                             .owner = OWNER,
                             .mode = DIBS__SHARED,
                             .to_owner = HEIR};
    dibs__answer answers[2];
    size_t blocked = 0, count = 0;
    uint64_t position = 0;
    uint32_t asked = 0;

    CHECK(DIBS_OK, st->ops->lease->acquire_all(st, asks, 2, deadline, answers,
                                               &blocked, err));
    turn.fence = answers[0].fence;
    CHECK(DIBS_OK, st->ops->lease->convert(st, &turn, deadline, answers, err));
    CHECK(DIBS_OK,
          st->ops->lease->yield(st, "workflow:k", 0, deadline, &asked, err));
    CHECK(DIBS_OK, st->ops->log->append(st,
                                        &(dibs__append){.topic = "workflow:t",
                                                        .data = "x",
                                                        .len = 1,
                                                        .keep = 9},
                                        deadline, &position, err));
    CHECK(DIBS_OK, st->ops->log->read(st, "workflow:t", 0, 9, deadline,
                                      count_entries, &count, err));
    assert_int_equal(count, 1);
    CHECK(DIBS_DENIED,
          st->ops->log->append(
              st,
              &(dibs__append){.topic = "t", .data = "x", .len = 1, .keep = 9},
              deadline, &position, err));
    CHECK(DIBS_DENIED, st->ops->log->read(st, "t", 0, 9, deadline,
                                          count_entries, &count, err));
    asks[1].name = "elsewhere";
    CHECK(DIBS_DENIED, st->ops->lease->acquire_all(st, asks, 2, deadline,
                                                   answers, &blocked, err));
    dibs__store_close(st);
}

typedef struct findings {
    size_t count;
    size_t untold;
    bool user;
} findings;

static void note(const dibs_finding *finding, void *arg)
{
    findings *all = arg;

    all->count++;
    if (strstr(finding->found, "not known"))
        all->untold++;
    if (strcmp(finding->subject, "user") == 0)
        all->user = strcmp(finding->found, "dibs") == 0;
}

static void the_audit_learns_all(void **state)
{
    world *w = *state;
    findings all = {0};

    CHECK(DIBS_OK, dibs_audit(w->one, note, &all, err));
    assert_true(all.count >= 6);
    assert_int_equal(all.untold, 0);
    assert_true(all.user);
}

/* Without the prefix, the same user is refused; what is there stays. */
static void names_elsewhere_are_denied(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->other, "elsewhere", NULL);
    dibs_client *cl = NULL;
    dibs_lock *rival;
    char url[SERVER_URL_MAX];

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    snprintf(url, sizeof(url), "redis://dibs:%s@127.0.0.1:%d", SETUSER_PASSWORD,
             w->sv.port);
    cl = world_client(url, 2000);
    rival = world_lock(cl, "elsewhere", NULL);
    CHECK(DIBS_DENIED, dibs_lock_try(rival, err));
    CHECK(DIBS_DENIED, dibs_lease_break(cl, "elsewhere", 0, NULL, NULL, err));
    CHECK(DIBS_DENIED, dibs_state_set(cl, "v", "x", 1, 0, NULL, err));
    assert_true(dibs_lock_fence(lock) > 0);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(rival);
    dibs_close(cl);
    dibs_lock_free(lock);
}

/* Writes as the administrator, and waits for the report of the user's watch. Whether
 * that is called merged. */
static bool change_and_see(world *w, dibs_watch *watch, const char *text)
{
    dibs_change ch;

    CHECK(DIBS_OK, dibs_state_set(w->other, "workflow:v", text, strlen(text), 0,
                                  NULL, err));
    CHECK(DIBS_OK, dibs_watch_next(watch, WORLD_BOUND_MS, &ch, err));
    assert_string_equal(ch.value.data, text);
    dibs_value_free(&ch.value);
    return ch.merged;
}

static void watches_are_told(void **state)
{
    world *w = *state;
    dibs_watch *watch = NULL;

    CHECK(DIBS_OK, dibs_state_watch(w->one, "v", &watch, err));
    (void)change_and_see(w, watch, "1");
    IN_TIME(!change_and_see(w, watch, "2"));
    dibs_watch_free(watch);
}

/* A user from before there were watches: it looks for itself. */
static void a_watch_without_the_channel_looks_for_itself(void **state)
{
    world *w = *state;
    dibs_watch *watch = NULL;

    assert_true(server_tell(&w->sv, "ACL", "SETUSER", "dibs", "resetchannels",
                            "&dibs:bell:*", "-pubsub|numsub", NULL));
    CHECK(DIBS_OK, dibs_state_watch(w->one, "v", &watch, err));
    (void)change_and_see(w, watch, "1");
    assert_true(change_and_see(w, watch, "2"));
    CHECK(DIBS_OK, dibs_state_set(w->one, "v", "3", 1, 0, NULL, err));
    assert_true(change_and_see(w, watch, "4"));
    dibs_watch_free(watch);
}

/* What dibs does not need, its user may not do. */
static void the_rest_of_the_server_is_closed(void **state)
{
    static const char *const wanted[][4] = {
        {"FLUSHALL"},
        {"KEYS", "*"},
        {"CONFIG", "SET", "save", ""},
        {"SHUTDOWN"},
        {"GET", "other"},
        {"SET", "other", "x"},
        {"EVAL", "return 1", "1", "other"},
        {"DEBUG", "SLEEP", "1"},
        {"SCRIPT", "FLUSH"},
        {"XTRIM", "dibs:log:workflow:t", "MAXLEN", "0"},
        {"XRANGE", "other", "-", "+"},
        {"ACL", "LIST"},
        {"CLIENT", "LIST"},
        {"CLIENT", "KILL", "TYPE", "normal"},
        {"SUBSCRIBE", "others"},
        {"PUBLISH", "others", "x"},
        {"REPLICAOF", "NO", "ONE"},
        {"MONITOR"},
    };
    world *w = *state;

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        char *text = server_ask(&w->sv, "ACL", "DRYRUN", "dibs", wanted[i][0],
                                wanted[i][1], wanted[i][2], wanted[i][3], NULL);

        assert_non_null(text);
        if (strstr(text, "permissions") == NULL)
            fail_msg("%s %s: %s", wanted[i][0],
                     wanted[i][1] ? wanted[i][1] : "", text);
        free(text);
    }
}

#define ACL_TEST(fn) cmocka_unit_test_setup_teardown(fn, start, world_teardown)

/* A candidate whose password is refused goes on, and leads when it is right again. */
static void campaign_outlives_a_new_password(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->other, "workflow:e", NULL);
    dibs_election *el = NULL;
    dibs_leader now;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_election_new(w->one, "e", NULL, &el, err));
    CHECK(DIBS_OK, dibs_election_campaign(el, err));
    do
        CHECK(DIBS_OK, dibs_leader_get(w->other, "workflow:e", &now, err));
    while (now.candidates == 0);
    assert_true(server_tell(&w->sv, "ACL", "SETUSER", "dibs", "resetpass",
                            ">another", NULL));
    assert_true(server_tell(&w->sv, "CLIENT", "KILL", "USER", "dibs", NULL));
    assert_status(dibs_election_wait(el, WORLD_BOUND_MS, NULL), DIBS_DENIED);
    assert_true(server_tell(&w->sv, "ACL", "SETUSER", "dibs", "resetpass",
                            ">" SETUSER_PASSWORD, NULL));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    while (dibs_election_wait(el, WORLD_BOUND_MS, NULL) == DIBS_DENIED)
        poll(NULL, 0, 1);
    IN_TIME(dibs_election_check(el) == DIBS_OK);
    dibs_election_free(el);
    dibs_lock_free(lock);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ACL_TEST(locks_and_doorbells_work),
        ACL_TEST(looking_breaking_and_values_work),
        ACL_TEST(sets_conversions_and_logs_work),
        ACL_TEST(watches_are_told),
        ACL_TEST(a_watch_without_the_channel_looks_for_itself),
        ACL_TEST(the_audit_learns_all),
        ACL_TEST(names_elsewhere_are_denied),
        ACL_TEST(the_rest_of_the_server_is_closed),
        ACL_TEST(campaign_outlives_a_new_password),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: test_acl FILE\n");
        return 2;
    }
    acl_file = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
