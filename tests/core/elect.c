/* elect.c - elections through the public interface. Names of tests that follow a bug
 * of another project are in docs/track-record.md. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* All that the callbacks of a candidate were told. */
typedef struct diary {
    pthread_mutex_t mutex;
    int gained, lost;
    uint64_t gained_term, lost_term;
    dibs_lost_why why;
    bool in_turn;
    dibs_status check_when_lost;
    dibs_client *rival; /* tries the lease when the candidate has lost */
    const char *name;
    dibs_status rival_rc;
} diary;

static void note_gained(dibs_election *el, uint64_t term, void *arg)
{
    diary *d = arg;

    (void)el;
    pthread_mutex_lock(&d->mutex);
    d->in_turn = d->in_turn && d->gained == d->lost && term > d->gained_term;
    d->gained++;
    d->gained_term = term;
    pthread_mutex_unlock(&d->mutex);
}

static dibs_status try_lease(dibs_client *cl, const char *name)
{
    dibs_lock *lock = core_lock(cl, name, NULL);
    dibs_status rc = dibs_lock_try(lock, NULL);

    dibs_lock_free(lock);
    return rc;
}

static void
note_lost(dibs_election *el, uint64_t term, dibs_lost_why why, void *arg)
{
    diary *d = arg;

    pthread_mutex_lock(&d->mutex);
    d->check_when_lost = dibs_election_check(el);
    if (d->rival)
        d->rival_rc = try_lease(d->rival, d->name);
    d->in_turn =
        d->in_turn && d->gained == d->lost + 1 && term == d->gained_term;
    d->lost++;
    d->lost_term = term;
    d->why = why;
    pthread_mutex_unlock(&d->mutex);
}

static diary new_diary(void)
{
    return (diary){.mutex = PTHREAD_MUTEX_INITIALIZER, .in_turn = true};
}

static dibs_election *
candidate(dibs_client *cl, const char *name, const char *member, diary *d)
{
    dibs_election *el = NULL;

    CHECK(DIBS_OK,
          dibs_election_new(
              cl, name,
              DIBS_ELECTION_OPTS(.member = member, .ttl_ms = pace_ms(30000),
                                 .on_gained = d ? note_gained : NULL,
                                 .on_lost = d ? note_lost : NULL, .arg = d),
              &el, err));
    return el;
}

static void lead(dibs_election *el)
{
    CHECK(DIBS_OK, dibs_election_wait(el, pace_ms(30000), err));
}

typedef struct queue {
    dibs_client *cl;
    const char *name;
    uint32_t count;
} queue;

static bool has_candidates(void *arg)
{
    queue *q = arg;
    dibs_leader now;
    dibs_status rc = dibs_leader_get(q->cl, q->name, &now, NULL);

    return (rc == DIBS_OK || rc == DIBS_NOTFOUND) && now.candidates == q->count;
}

/* So many wait in the queue. A quorum has none. */
static void await_candidates(dibs_client *cl, const char *name, uint32_t count)
{
    queue q = {.cl = cl, .name = name, .count = count};

    core_until(has_candidates, &q);
}

static void campaign(dibs_election *el)
{
    CHECK(DIBS_OK, dibs_election_campaign(el, err));
}

static void resign(dibs_election *el)
{
    CHECK(DIBS_OK, dibs_election_resign(el, err));
}

static void one_leads_and_the_next_after_it(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary one = new_diary(), two = new_diary();
    dibs_election *a = candidate(cl, name, "a", &one);
    dibs_election *b = candidate(other, name, "b", &two);
    uint64_t term;

    (void)state;
    assert_status(dibs_election_check(a), DIBS_LOST);
    assert_true(dibs_election_term(a) == 0);
    lead(a);
    term = dibs_election_term(a);
    assert_true(term > 0);
    assert_status(dibs_election_check(a), DIBS_OK);
    CHECK(DIBS_TIMEOUT, dibs_election_wait(b, 0, err));
    assert_status(dibs_election_check(b), DIBS_LOST);
    await_candidates(cl, name, 1);
    resign(a);
    assert_status(dibs_election_check(a), DIBS_LOST);
    lead(b);
    assert_true(dibs_election_term(b) > term);
    resign(b);
    assert_true(one.gained == 1 && one.lost == 1 && one.in_turn);
    assert_true(one.why == DIBS_LOST_RESIGNED && one.lost_term == term);
    assert_true(two.gained == 1 && two.lost == 1 && two.in_turn);
    lead(a); /* A resigned candidate may campaign again. */
    dibs_election_free(a);
    assert_true(one.gained == 2 && one.lost == 2 && one.in_turn);
    dibs_election_free(b);
    dibs_close(cl);
    dibs_close(other);
}

/* Belief ends first; the lease is there until the work has stopped. */
static void belief_ends_before_release(void **state)
{
    dibs_client *cl = core_open(), *rival = core_open();
    char name[64];
    diary d = new_diary();
    dibs_election *el;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    d.rival = rival;
    d.name = name;
    el = candidate(cl, name, "a", &d);
    lead(el);
    resign(el);
    assert_status(d.check_when_lost, DIBS_LOST);
    assert_status(d.rival_rc, DIBS_BUSY);
    CHECK(DIBS_OK, try_lease(rival, name));
    dibs_election_free(el);
    dibs_close(cl);
    dibs_close(rival);
}

static void failed_campaign_leaves_no_place(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *a = candidate(cl, name, "a", NULL);
    dibs_election *b = candidate(cl, name, "b", &d);

    (void)state;
    lead(a);
    campaign(b);
    await_candidates(cl, name, 1);
    resign(b);
    await_candidates(cl, name, 0);
    assert_true(d.gained == 0 && d.lost == 0); /* lost_never_without_gained */
    resign(b);
    dibs_election_free(b);
    dibs_election_free(a);
    dibs_close(cl);
}

static bool has_lost(void *arg)
{
    diary *d = arg;
    bool lost;

    pthread_mutex_lock(&d->mutex);
    lost = d->lost > 0;
    pthread_mutex_unlock(&d->mutex);
    return lost;
}

/* The lease is taken away; nobody told the leader of an error. */
static void place_deleted_behind_its_back(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *el = NULL;
    struct pollfd fd = {.events = POLLIN};
    uint64_t term;

    (void)state;
    CHECK(DIBS_OK,
          dibs_election_new(cl, name,
                            DIBS_ELECTION_OPTS(.flags = DIBS_ELECTION_STOPS,
                                               .ttl_ms = pace_ms(30000),
                                               .on_gained = note_gained,
                                               .on_lost = note_lost, .arg = &d),
                            &el, err));
    lead(el);
    term = dibs_election_term(el);
    fd.fd = dibs_election_lost_fd(el);
    assert_true(fd.fd >= 0);
    assert_int_equal(poll(&fd, 1, 0), 0);
    CHECK(DIBS_OK, dibs_lease_break(other, name, 0, "test", NULL, err));
    IN_TIME(poll(&fd, 1, (int)pace_ms(30000)) == 1);
    core_until(has_lost, &d);
    assert_true(d.why == DIBS_LOST_TAKEN && d.lost_term == term);
    dibs_election_stopped(el);
    lead(el); /* It campaigns again. */
    assert_true(dibs_election_term(el) > term);
    assert_int_equal(poll(&fd, 1, 0), 0);
    dibs_election_free(el);
    assert_true(d.in_turn && d.gained == d.lost);
    dibs_close(cl);
    dibs_close(other);
}

/* A leader that is gone has a ttl of its own, and the candidate waits for what is left
 * of that. */
static void others_ttl_is_theirs(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *gone = core_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 300));
    dibs_election *el = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_election_new(cl, name,
                                     DIBS_ELECTION_OPTS(.ttl_ms = 24 * 3600000),
                                     &el, err));
    CHECK(DIBS_OK, dibs_lock_acquire(gone, err));
    dibs_lock_leave(gone);
    CHECK(DIBS_OK, dibs_election_wait(el, pace_ms(10000), err));
    dibs_election_free(el);
    dibs_lock_free(gone);
    dibs_close(cl);
}

static bool is_over(void *arg)
{
    return dibs_election_wait(arg, -1, NULL) == DIBS_LOST;
}

static void once_is_one_term(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_election *el = NULL;

    (void)state;
    CHECK(DIBS_OK,
          dibs_election_new(cl, name,
                            DIBS_ELECTION_OPTS(.flags = DIBS_ELECTION_ONCE),
                            &el, err));
    lead(el);
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
    while (dibs_election_check(el) == DIBS_OK)
        poll(NULL, 0, 1);
    core_until(has_candidates, &(queue){.cl = cl, .name = name});
    core_until(is_over, el);
    dibs_election_free(el);
    dibs_close(cl);
}

/* As `dibs leader --transfer` asks for it. */
static void name_heir(dibs_client *cl, const char *name, const char *member)
{
    char key[DIBS_NAME_MAX + 16];

    snprintf(key, sizeof(key), "dibs.heir/%s", name);
    CHECK(DIBS_OK, dibs_state_set(cl, key, member, strlen(member),
                                  pace_ms(30000), NULL, err));
}

/* One that waits, and one that does not: the leader leads on, and hands over. The lease
 * goes on when on_lost has returned. */
static void a_lead_is_handed_over_when_another_process_asks(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *a = candidate(cl, name, "a", &d);
    dibs_election *b = candidate(cl, name, "b", NULL);
    dibs_election *c = candidate(other, name, "c", NULL);

    (void)state;
    lead(a);
    campaign(b);
    await_candidates(cl, name, 1);
    name_heir(other, name, "nobody");
    campaign(c);
    await_candidates(cl, name, 2);
    assert_status(dibs_election_check(a), DIBS_OK);
    d.rival = other;
    d.name = name;
    name_heir(other, name, "c");
    lead(c); /* Though b came first. */
    assert_status(dibs_election_check(a), DIBS_LOST);
    assert_status(dibs_election_check(b), DIBS_LOST);
    assert_true(d.lost == 1 && d.why == DIBS_LOST_RESIGNED);
    assert_status(d.rival_rc, DIBS_BUSY);
    assert_true(dibs_election_term(c) > d.lost_term);
    await_candidates(cl, name, 2); /* a campaigns on. */
    dibs_election_free(a);
    dibs_election_free(b);
    dibs_election_free(c);
    dibs_close(cl);
    dibs_close(other);
}

static void a_lead_is_handed_to_a_member(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *a = candidate(cl, name, "a", &d);
    dibs_election *b = candidate(cl, name, "b", NULL);
    dibs_election *c = candidate(other, name, "c", NULL);
    dibs_leader now;
    uint64_t term;

    (void)state;
    CHECK(DIBS_LOST, dibs_election_transfer(a, "c", err));
    lead(a);
    term = dibs_election_term(a);
    CHECK(DIBS_NOTFOUND, dibs_election_transfer(a, "c", err));
    assert_status(dibs_election_check(a), DIBS_OK);
    campaign(b);
    await_candidates(cl, name, 1);
    campaign(c);
    await_candidates(cl, name, 2);
    CHECK(DIBS_OK, dibs_election_transfer(a, "c", err));
    lead(c); /* Though b came first. */
    assert_true(dibs_election_term(c) > term);
    assert_status(dibs_election_check(b), DIBS_LOST);
    CHECK(DIBS_OK, dibs_leader_get(cl, name, &now, err));
    assert_string_equal(now.member, "c");
    assert_true(now.term == dibs_election_term(c));
    await_candidates(cl, name, 2); /* a campaigns on. */
    assert_true(d.lost == 1 && d.why == DIBS_LOST_RESIGNED);
    dibs_election_free(a);
    dibs_election_free(b);
    dibs_election_free(c);
    dibs_close(cl);
    dibs_close(other);
}

static void *wait_in_queue(void *arg)
{
    CHECK(DIBS_OK, dibs_lock_acquire(arg, NULL));
    return NULL;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

typedef struct transfer {
    dibs_client *cl;
    const char *name, *expected;
    dibs_election *el;
} transfer;

static void *transfer_to_deaf(void *arg)
{
    CHECK(DIBS_OK, dibs_election_transfer(((transfer *)arg)->el, "deaf", err));
    return NULL;
}

static bool is_named(void *arg)
{
    const transfer *tr = arg;
    char key[DIBS_NAME_MAX + 16];
    dibs_value value = {0};
    bool named;

    snprintf(key, sizeof(key), "dibs.heir/%s", tr->name);
    named = dibs_state_get(tr->cl, key, &value, NULL) == DIBS_OK &&
            strcmp(value.data, tr->expected) == 0;
    dibs_value_free(&value);
    return named;
}

/* An operator names another candidate while a transfer waits for its own. */
static void a_later_transfer_is_not_forgotten(void **state)
{
    static const char *const meta[] = {"member=deaf", NULL};
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_election *a = candidate(cl, name, "a", NULL);
    dibs_lock *heir =
        core_lock(other, name,
                  DIBS_LOCK_OPTS(.ttl_ms = pace_ms(30000),
                                 .wait_ms = pace_ms(60000), .meta = meta));
    transfer tr = {.cl = other, .name = name, .expected = "deaf", .el = a};
    pthread_t waiter, leader;

    (void)state;
    lead(a);
    assert_int_equal(pthread_create(&waiter, NULL, wait_in_queue, heir), 0);
    await_candidates(cl, name, 1);
    assert_int_equal(pthread_create(&leader, NULL, transfer_to_deaf, &tr), 0);
    core_until(is_named, &tr);
    name_heir(other, name, "later");
    tr.expected = "later";
    pthread_join(leader, NULL);
    assert_true(is_named(&tr));
    pthread_join(waiter, NULL);
    dibs_lock_free(heir);
    dibs_election_free(a);
    dibs_close(cl);
    dibs_close(other);
}

/* An operator asked first: the program hears of that, and may ask again. */
static void a_transfer_does_not_end_that_of_another(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_election *a = candidate(cl, name, "a", NULL);
    dibs_election *c = candidate(other, name, "c", NULL);
    transfer tr = {.cl = other, .name = name, .expected = "absent"};
    char key[DIBS_NAME_MAX + 16];

    (void)state;
    lead(a);
    campaign(c);
    await_candidates(cl, name, 1);
    name_heir(other, name, "absent");
    CHECK(DIBS_BUSY, dibs_election_transfer(a, "c", err));
    assert_true(is_named(&tr));
    assert_status(dibs_election_check(a), DIBS_OK);
    snprintf(key, sizeof(key), "dibs.heir/%s", name);
    CHECK(DIBS_OK, dibs_state_delete(other, key, DIBS_VERSION_ANY, err));
    CHECK(DIBS_OK, dibs_election_transfer(a, "c", err));
    lead(c);
    dibs_election_free(a);
    dibs_election_free(c);
    dibs_close(cl);
    dibs_close(other);
}

/* An heir that listens leaves its place for a better one when it hears its name: a lease
 * that goes back before goes to another. One that does not listen keeps its place. */
static void an_heir_has_time_to_hear_its_name(void **state)
{
    static const char *const meta[] = {"member=deaf", NULL};
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_election *a = candidate(cl, name, "a", NULL);
    dibs_lock *heir =
        core_lock(other, name,
                  DIBS_LOCK_OPTS(.ttl_ms = pace_ms(30000),
                                 .wait_ms = pace_ms(60000), .meta = meta));
    int64_t begun_ms;
    pthread_t thread;

    (void)state;
    lead(a);
    assert_int_equal(pthread_create(&thread, NULL, wait_in_queue, heir), 0);
    await_candidates(cl, name, 1);
    begun_ms = now_ms();
    CHECK(DIBS_OK, dibs_election_transfer(a, "deaf", err));
    assert_true(now_ms() - begun_ms >= 1000);
    pthread_join(thread, NULL);
    assert_status(dibs_lock_check(heir), DIBS_OK);
    assert_status(dibs_election_check(a), DIBS_LOST);
    dibs_lock_free(heir);
    dibs_election_free(a);
    dibs_close(cl);
    dibs_close(other);
}

static void a_leader_is_seen(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    const char *meta[] = {"address=10.0.0.1:80", "zone=b", NULL};
    dibs_election *el = NULL;
    dibs_leader now;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_leader_get(cl, name, &now, err));
    assert_true(now.term == 0 && now.member[0] == '\0');
    CHECK(DIBS_OK, dibs_election_new(cl, name, DIBS_ELECTION_OPTS(.meta = meta),
                                     &el, err));
    lead(el);
    CHECK(DIBS_OK, dibs_leader_get(cl, name, &now, err));
    assert_true(now.term == dibs_election_term(el));
    assert_non_null(strchr(now.member, ':'));
    assert_string_equal(now.meta, "address=10.0.0.1:80\tzone=b");
    assert_true(now.left_ms > 0 && now.candidates == 0);
    dibs_election_free(el);
    dibs_close(cl);
}

/* The next report that is not of nobody, who may come between two leaders. */
static dibs_leader next_leader(dibs_leader_watch *watch)
{
    dibs_leader now;

    do {
        CHECK(DIBS_OK,
              dibs_leader_watch_next(watch, pace_ms(30000), &now, err));
    } while (now.term == 0);
    return now;
}

static void leaders_are_watched_in_order(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_election *a = candidate(other, name, "a", NULL);
    dibs_election *b = candidate(other, name, "b", NULL);
    dibs_leader_watch *watch = NULL;
    dibs_leader now, last;

    (void)state;
    CHECK(DIBS_OK, dibs_leader_watch_new(cl, name, &watch, err));
    CHECK(DIBS_OK, dibs_leader_watch_next(watch, pace_ms(30000), &now, err));
    assert_true(now.term == 0);
    CHECK(DIBS_TIMEOUT, dibs_leader_watch_next(watch, 0, &now, err));
    lead(a);
    now = next_leader(watch);
    assert_string_equal(now.member, "a");
    campaign(b);
    await_candidates(cl, name, 1);
    resign(a);
    last = next_leader(watch);
    assert_string_equal(last.member, "b");
    assert_true(last.term > now.term);
    resign(b);
    CHECK(DIBS_OK, dibs_leader_watch_next(watch, pace_ms(30000), &now, err));
    assert_true(now.term == 0);
    dibs_leader_watch_free(watch);
    dibs_election_free(a);
    dibs_election_free(b);
    dibs_close(cl);
    dibs_close(other);
}

/* A program that closes its client leaves nothing behind, and no thread. */
static void closing_ends_the_campaign(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *a = candidate(cl, name, "a", &d);
    dibs_election *b = candidate(cl, name, "b", NULL);
    dibs_leader_watch *watch = NULL;
    dibs_leader now;

    (void)state;
    CHECK(DIBS_OK, dibs_leader_watch_new(cl, name, &watch, err));
    lead(a);
    campaign(b);
    await_candidates(other, name, 1);
    dibs_close(cl);
    assert_true(d.lost == 1 && d.in_turn);
    assert_status(dibs_election_check(a), DIBS_LOST);
    CHECK(DIBS_INVALID, dibs_election_campaign(a, err));
    CHECK(DIBS_NOTFOUND, dibs_leader_get(other, name, &now, err));
    dibs_election_free(a);
    dibs_election_free(b);
    dibs_leader_watch_free(watch);
    dibs_close(other);
}

static void *wait_and_free(void *arg)
{
    dibs_status rc = dibs_election_wait(arg, -1, NULL);

    dibs_election_free(arg);
    return rc == DIBS_CANCELLED ? NULL : arg;
}

/* By the thread whose wait the close ends. */
static void an_election_may_be_freed_while_its_client_is_closed(void **state)
{
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_election *leader = candidate(other, name, "leader", NULL);

    (void)state;
    lead(leader);
    for (int i = 0; i < 10; i++) {
        dibs_client *cl = core_open();
        pthread_t thread;
        void *wrong;

        assert_int_equal(pthread_create(&thread, NULL, wait_and_free,
                                        candidate(cl, name, "a", NULL)),
                         0);
        await_candidates(other, name, 1);
        dibs_close(cl);
        assert_int_equal(pthread_join(thread, &wrong), 0);
        assert_null(wrong);
    }
    dibs_election_free(leader);
    dibs_close(other);
}

static void a_name_in_use_otherwise_is_told(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *permit =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 2));
    dibs_election *el = candidate(cl, name, "a", NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(permit, err));
    CHECK(DIBS_MISMATCH, dibs_election_wait(el, -1, err));
    dibs_lock_free(permit);
    dibs_election_free(el);
    dibs_close(cl);
}

static void bad_calls_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_election *el;
    char name[250];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK(DIBS_INVALID, dibs_election_new(cl, "", NULL, &el, err));
    assert_null(el);
    CHECK(DIBS_INVALID, dibs_election_new(NULL, "e", NULL, &el, err));
    CHECK(DIBS_INVALID, dibs_election_new(cl, name, NULL, &el, err));
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, "e", DIBS_ELECTION_OPTS(.ttl_ms = 50), &el,
                            err));
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, "e",
                            DIBS_ELECTION_OPTS(.ttl_ms = 1000, .stop_ms = 501),
                            &el, err));
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, "e", DIBS_ELECTION_OPTS(.stop_ms = INT64_MAX),
                            &el, err));
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, "e",
                            DIBS_ELECTION_OPTS(.minimum_nodes = 1,
                                               .heartbeat_ms = INT64_MAX),
                            &el, err));
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, "e", DIBS_ELECTION_OPTS(.member = ""), &el,
                            err));
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, "e", DIBS_ELECTION_OPTS(.flags = 64), &el,
                            err));
    CHECK(DIBS_INVALID, dibs_election_campaign(NULL, err));
    CHECK(DIBS_INVALID, dibs_election_wait(NULL, 0, err));
    CHECK(DIBS_INVALID, dibs_election_resign(NULL, err));
    CHECK(DIBS_INVALID, dibs_election_transfer(NULL, "a", err));
    assert_int_equal(dibs_election_lost_fd(NULL), -1);
    dibs_election_stopped(NULL);
    dibs_election_free(NULL);
    dibs_leader_watch_cancel(NULL);
    dibs_leader_watch_free(NULL);
    dibs_close(cl);
}

static dibs_election *node(dibs_client *cl, const char *name, uint32_t minimum,
                           uint32_t flags, diary *d)
{
    dibs_election *el = NULL;

    CHECK(DIBS_OK,
          dibs_election_new(cl, name,
                            DIBS_ELECTION_OPTS(.ttl_ms = pace_ms(900),
                                               .flags = flags,
                                               .minimum_nodes = minimum,
                                               .on_gained = note_gained,
                                               .on_lost = note_lost, .arg = d),
                            &el, err));
    return el;
}

/* A leader needs so many members, itself among them; when too few are left, it has
 * lost, and leads again when another one comes. */
static void a_leader_needs_enough_members(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *el = node(cl, name, 2, DIBS_ELECTION_QUICK, &d);
    dibs_member *member = NULL;
    dibs_leader now;
    dibs_error few = {0};
    dibs_status rc;

    (void)state;
    assert_status(dibs_election_wait(el, pace_ms(50), &few), DIBS_TIMEOUT);
    IN_TIME(strstr(few.message, "fewer than 2 members") != NULL);
    CHECK(DIBS_OK,
          dibs_member_join(other, name,
                           DIBS_MEMBER_OPTS(.flags = DIBS_MEMBER_QUICK),
                           &member, err));
    lead(el);
    /* Its lease and its seat are short. */
    rc = dibs_leader_get(other, name, &now, NULL);
    IN_TIME(rc != DIBS_NOTFOUND);
    assert_status(rc, DIBS_OK);
    IN_TIME(now.members == 2);
    dibs_member_leave(member);
    core_until(has_lost, &d);
    IN_TIME(d.why == DIBS_LOST_FEW);
    assert_status(dibs_election_check(el), DIBS_LOST);
    CHECK(DIBS_OK,
          dibs_member_join(other, name,
                           DIBS_MEMBER_OPTS(.flags = DIBS_MEMBER_QUICK),
                           &member, err));
    lead(el);
    resign(el);
    CHECK(DIBS_NOTFOUND, dibs_leader_get(other, name, &now, err));
    assert_int_equal(now.members,
                     1); /* A resigned candidate gives its seat up. */
    assert_true(d.gained == d.lost && d.in_turn);
    dibs_member_leave(member);
    dibs_election_free(el);
    dibs_close(cl);
    dibs_close(other);
}

static bool has_leader(void *arg)
{
    queue *q = arg;
    dibs_leader now;

    return dibs_leader_get(q->cl, q->name, &now, NULL) == DIBS_OK;
}

/* Seats that these members had at another server have ended by then. */
static void the_first_leader_comes_a_seat_ttl_later(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    diary one = new_diary(), two = new_diary();
    dibs_election *a = node(cl, name, 2, 0, &one);
    dibs_election *b = node(other, name, 2, 0, &two);
    queue q = {.cl = cl, .name = name};
    int64_t began = now_ms();

    (void)state;
    campaign(a);
    campaign(b);
    core_until(has_leader, &q);
    assert_true(now_ms() - began >= pace_ms(900) / 2);
    dibs_election_free(a);
    dibs_election_free(b);
    dibs_close(cl);
    dibs_close(other);
}

static void minimum_nodes_is_checked(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    diary d = new_diary();
    dibs_election *el = NULL;

    (void)state;
    CHECK(DIBS_INVALID,
          dibs_election_new(cl, name,
                            DIBS_ELECTION_OPTS(.minimum_nodes = 2,
                                               .ttl_ms = 1000, .stop_ms = 200,
                                               .heartbeat_ms = 200),
                            &el, err));
    CHECK(DIBS_OK, dibs_latch_count_down(cl, name, 2, "a", NULL, err));
    el = node(cl, name, 1, 0, &d);
    CHECK(DIBS_MISMATCH, dibs_election_wait(el, pace_ms(30000), err));
    dibs_election_free(el);
    dibs_close(cl);
}

int core_elect_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_leads_and_the_next_after_it),
        cmocka_unit_test(belief_ends_before_release),
        cmocka_unit_test(failed_campaign_leaves_no_place),
        cmocka_unit_test(place_deleted_behind_its_back),
        cmocka_unit_test(others_ttl_is_theirs),
        cmocka_unit_test(once_is_one_term),
        cmocka_unit_test(a_lead_is_handed_to_a_member),
        cmocka_unit_test(a_lead_is_handed_over_when_another_process_asks),
        cmocka_unit_test(an_heir_has_time_to_hear_its_name),
        cmocka_unit_test(a_later_transfer_is_not_forgotten),
        cmocka_unit_test(a_transfer_does_not_end_that_of_another),
        cmocka_unit_test(a_leader_is_seen),
        cmocka_unit_test(leaders_are_watched_in_order),
        cmocka_unit_test(closing_ends_the_campaign),
        cmocka_unit_test(an_election_may_be_freed_while_its_client_is_closed),
        cmocka_unit_test(a_name_in_use_otherwise_is_told),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(a_leader_needs_enough_members),
        cmocka_unit_test(the_first_leader_comes_a_seat_ttl_later),
        cmocka_unit_test(minimum_nodes_is_checked),
    };

    return cmocka_run_group_tests_name("elect", tests, NULL, NULL);
}
