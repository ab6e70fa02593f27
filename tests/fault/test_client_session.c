/* test_client_session.c - the session of a client: seats in one batch, steps without an
 * answer, seats that are lost, and the end of the client. */
/* SPDX-License-Identifier: MIT */
#include "coord/session.h"
#include "core/worker.h"
#include "fault_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MANY = DIBS__MEET_MAX + 3, TTL_MS = 60000, OFTEN_MS = 20 };

typedef struct member {
    dibs__session_seat seat;
    int sat, kept, lost, late, unknown;
    dibs__meet last; /* its texts are not kept */
    dibsx_nsec sent_at;
} member;

/* Thread: a worker. Locks: cl->mutex. */
static void note_answer(dibs_client *cl, dibs__session_seat *seat,
                        const dibs__meet *answer, dibsx_nsec sent_at)
{
    member *m = seat->arg;

    (void)cl;
    m->last = *answer;
    m->sent_at = sent_at;
    m->sat += answer->rc == DIBS_OK && answer->verb == DIBS__SIT;
    m->kept += answer->rc == DIBS_OK && answer->verb == DIBS__KEEP;
    m->lost += answer->rc == DIBS_LOST;
    m->late += answer->rc == DIBS_TIMEOUT;
    m->unknown += answer->rc == DIBS_UNKNOWN;
}

static void fill_member(member *m, const char *name)
{
    *m = (member){.seat = {.name = name,
                           .who = "host:1 label",
                           .need = 1,
                           .ttl_ms = TTL_MS,
                           .sits = true,
                           .told = note_answer}};
    m->seat.arg = m;
}

static void join_all(dibs_client *cl, member *members, size_t count)
{
    pthread_mutex_lock(&cl->mutex);
    for (size_t i = 0; i < count; i++)
        CHECK(DIBS_OK, dibs__session_add(cl, &members[i].seat, err));
    pthread_mutex_unlock(&cl->mutex);
}

/* Waits until a count of the member is so high. */
static void await_count(dibs_client *cl, const int *count, int least)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    bool enough;

    do {
        pthread_mutex_lock(&cl->mutex);
        enough = *count >= least;
        pthread_mutex_unlock(&cl->mutex);
        IN_TIME(enough || dibsx_now() < end);
        usleep(500);
    } while (!enough);
}

/* The member as it is now. */
static member see(dibs_client *cl, const member *m)
{
    member seen;

    pthread_mutex_lock(&cl->mutex);
    seen = *m;
    pthread_mutex_unlock(&cl->mutex);
    return seen;
}

/* Then no answer changes the member any more. */
static void leave_session(dibs_client *cl, member *m)
{
    pthread_mutex_lock(&cl->mutex);
    dibs__session_leave(cl, &m->seat);
    pthread_mutex_unlock(&cl->mutex);
}

static bool count_seat(const dibs__seat_entry *seat, void *arg)
{
    *(size_t *)arg += seat->counts;
    return true;
}

/* The seats that count, as another client sees them. */
static size_t seats_of(world *w, const char *name)
{
    dibs_client *cl = w->other;
    dibs__roster_head head;
    size_t count = 0;
    dibs_status rc =
        cl->st->ops->roster->roll_call(cl->st, name,
                                       dibs__client_deadline(cl, dibsx_now()),
                                       &head, count_seat, &count, NULL);

    if (rc != DIBS_NOTFOUND)
        assert_status(rc, DIBS_OK);
    return count;
}

static void all_seats_go_in_one_step(void **state)
{
    world *w = *state;
    static member members[MANY];
    static char names[MANY][16];
    member first;
    int before = world_seen(w, DIBS__STEP_MEET);

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "group %d", i % 5);
        fill_member(&members[i], names[i]);
    }
    join_all(w->one, members, MANY);
    for (int i = 0; i < MANY; i++)
        await_count(w->one, &members[i].kept, 1);
    assert_int_equal(seats_of(w, "group 0"), 7);
    first = see(w->one, &members[0]);
    assert_true(first.last.left_ms > 0);
    assert_true(first.last.clock_us > 0);
    assert_true(first.sent_at > 0 && first.sent_at < dibsx_now());
    /* Each seat sits and is kept: at most two steps for each DIBS__MEET_MAX. */
    IN_TIME(world_seen(w, DIBS__STEP_MEET) - before <= 4);
    dibs_close(w->one);
    w->one = NULL;
    for (int i = 0; i < 5; i++)
        assert_int_equal(seats_of(w, names[i]), 0);
}

static void an_answer_that_is_lost_takes_no_second_seat(void **state)
{
    world *w = *state;
    member m;
    int unknown;

    fill_member(&m, "group");
    m.seat.every_ms = OFTEN_MS;
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_AFTER, 1);
    join_all(w->one, &m, 1);
    await_count(w->one, &m.kept, 1);
    unknown = see(w->one, &m).unknown;
    IN_TIME(unknown <= 1);
    assert_int_equal(unknown, 1);
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_BEFORE, 1);
    await_count(w->one, &m.unknown, 2);
    await_count(w->one, &m.kept, 3);
    assert_int_equal(see(w->one, &m).sat, 1);
    assert_int_equal(seats_of(w, "group"), 1);
    pthread_mutex_lock(&w->one->mutex);
    dibs__session_leave(w->one, &m.seat);
    dibs__session_leave(w->one, &m.seat);
    pthread_mutex_unlock(&w->one->mutex);
    assert_int_equal(seats_of(w, "group"), 0);
}

/* A request of which the answer does not come until the test says so. */
typedef struct slow_job {
    dibs__job job; /* first, so that one is the other */
    bool begun;
    bool *ends;
    pthread_cond_t *cond;
} slow_job;

static void hang_job(dibs_client *cl, dibs__job *job)
{
    slow_job *slow = (slow_job *)(void *)job;

    slow->begun = true;
    while (!*slow->ends)
        pthread_cond_wait(slow->cond, &cl->mutex);
}

static void requests_that_hang_cost_no_seat(void **state)
{
    enum { HANGING = 6 };
    world *w = *state;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    static bool ends;
    static slow_job slow[HANGING];
    member m;

    pthread_mutex_lock(&w->one->mutex);
    for (int i = 0; i < HANGING; i++) {
        slow[i] =
            (slow_job){.job = {.run = hang_job}, .ends = &ends, .cond = &cond};
        assert_true(dibs__worker_add(w->one, &slow[i].job));
    }
    pthread_mutex_unlock(&w->one->mutex);
    fill_member(&m, "group");
    m.seat.every_ms = OFTEN_MS;
    join_all(w->one, &m, 1);
    await_count(w->one, &m.kept, 3);
    leave_session(w->one, &m);
    pthread_mutex_lock(&w->one->mutex);
    /* Two of them wait for a thread. */
    IN_TIME(slow[0].begun);
    assert_false(slow[HANGING - 1].begun);
    ends = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&w->one->mutex);
}

/* The handle keeps the client alive. */
static void a_closed_client_begins_no_job(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *lock = world_lock(cl, "k", NULL);
    slow_job job = {.job = {.run = hang_job}};

    dibs_close(cl);
    pthread_mutex_lock(&cl->mutex);
    assert_false(dibs__worker_add(cl, &job.job));
    pthread_mutex_unlock(&cl->mutex);
    dibs_lock_free(lock);
}

/* Ends a seat behind the back of its session. */
static void take_seat_away(world *w, const member *m)
{
    dibs_client *cl = w->other;
    dibs__meet item = {.name = m->seat.name, .verb = DIBS__LEAVE};
    char id[DIBS_OWNER_SIZE];

    pthread_mutex_lock(&w->one->mutex);
    snprintf(id, sizeof(id), "%s", m->seat.id);
    item.fence = m->seat.fence;
    pthread_mutex_unlock(&w->one->mutex);
    item.id = id;
    CHECK(DIBS_OK,
          cl->st->ops->roster->meet(cl->st, &item, 1,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    err));
    assert_status(item.rc, DIBS_OK);
}

static void a_lost_seat_is_taken_anew_under_another_id(void **state)
{
    world *w = *state;
    char id[DIBS_OWNER_SIZE];
    member m;

    fill_member(&m, "group");
    m.seat.every_ms = OFTEN_MS;
    join_all(w->one, &m, 1);
    await_count(w->one, &m.kept, 1);
    pthread_mutex_lock(&w->one->mutex);
    snprintf(id, sizeof(id), "%s", m.seat.id);
    pthread_mutex_unlock(&w->one->mutex);
    take_seat_away(w, &m);
    await_count(w->one, &m.sat, 2);
    leave_session(w->one, &m);
    assert_int_equal(m.lost, 1);
    assert_string_not_equal(m.seat.id, id);
}

static void a_seat_of_its_owner_is_not_taken_again(void **state)
{
    world *w = *state;
    dibs__meet item = {.name = "barrier",
                       .id = "0123456789abcdef0123456789abcdef",
                       .verb = DIBS__SIT,
                       .flags = DIBS__MEET_FIXED,
                       .need = 2,
                       .ttl_ms = TTL_MS};
    dibs_client *cl = w->one;
    member m;

    CHECK(DIBS_OK,
          cl->st->ops->roster->meet(cl->st, &item, 1,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    err));
    fill_member(&m, "barrier");
    m.seat.sits = false;
    m.seat.need = 2;
    m.seat.every_ms = OFTEN_MS;
    m.seat.fence = item.number;
    snprintf(m.seat.id, sizeof(m.seat.id), "%s", item.id);
    join_all(cl, &m, 1);
    await_count(cl, &m.kept, 2);
    take_seat_away(w, &m);
    await_count(cl, &m.lost, 1);
    leave_session(cl, &m);
    assert_int_equal(m.lost, 1);
    assert_int_equal(m.sat, 0);
}

/* As a request that the store does long after it was sent. */
static void a_dated_request_that_is_late_is_refused(void **state)
{
    world *w = *state;
    int kept;
    member m;

    fill_member(&m, "group");
    m.seat.every_ms = OFTEN_MS;
    m.seat.dated = true;
    join_all(w->one, &m, 1);
    await_count(w->one, &m.kept, 2);
    pthread_mutex_lock(&w->one->mutex);
    IN_TIME(m.late == 0);
    /* The answer to a request under way would bring the right clock. */
    while (m.seat.due_at == DIBSX_NEVER) {
        pthread_mutex_unlock(&w->one->mutex);
        usleep(500);
        pthread_mutex_lock(&w->one->mutex);
    }
    m.seat.clock_us = 1;
    m.seat.clock_at = dibsx_now();
    kept = m.kept;
    pthread_mutex_unlock(&w->one->mutex);
    await_count(w->one, &m.kept, kept + 3);
    leave_session(w->one, &m);
    IN_TIME(m.late <= 1);
    assert_int_equal(m.late, 1);
}

/* A cluster of which one server hangs: a step does its items one by one, and ends at the
 * one that gets no answer. */
static const dibs__roster_ops *whole_ops;

static dibs_status
meet_hanging(dibs__store *st, dibs__meet *items, size_t count,
             dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    dibs__meet_clear(items, count, DIBS_UNAVAIL);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        if (strcmp(items[i].name, "hangs") != 0)
            rc = whole_ops->meet(st, &items[i], 1, deadline, err);
        else
            rc = items[i].rc = DIBS_UNKNOWN;
    return rc;
}

static void a_server_that_hangs_costs_no_seat_of_another(void **state)
{
    world *w = *state;
    dibs_client *cl = w->one;
    const dibs__store_ops *ops = cl->st->ops;
    static dibs__roster_ops roster;
    static dibs__store_ops hanging;
    member hangs, fine;

    roster = *ops->roster;
    hanging = *ops;
    whole_ops = ops->roster;
    roster.meet = meet_hanging;
    hanging.roster = &roster;
    fill_member(&fine, "fine");
    fill_member(&hangs, "hangs");
    fine.seat.every_ms = hangs.seat.every_ms = OFTEN_MS;
    cl->st->ops = &hanging;
    pthread_mutex_lock(&cl->mutex);
    CHECK(DIBS_OK, dibs__session_add(cl, &fine.seat, err));
    CHECK(DIBS_OK, dibs__session_add(cl, &hangs.seat, err));
    pthread_mutex_unlock(&cl->mutex);
    await_count(cl, &hangs.unknown, 10);
    leave_session(cl, &fine);
    leave_session(cl, &hangs);
    cl->st->ops = ops;
    assert_true(fine.kept > 1);
}

/* The first request of the join was done, or not sent. */
static void a_seat_that_may_be_taken_is_not_denied(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, pace_ms(100));
    dibs_member *m = NULL;

    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_member_join(cl, "group", NULL, &m, err));
    assert_null(m);
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_DROP_AFTER, -1);
    CHECK(DIBS_UNKNOWN, dibs_member_join(cl, "group", NULL, &m, err));
    assert_null(m);
    assert_int_equal(seats_of(w, "group"), 0); /* It does not count yet. */
    world_fault(w, DIBS__STEP_MEET, DIBS__FAULT_NONE, 1);
    world_fault_then(w, DIBS__STEP_MEET, DIBS__FAULT_FAIL);
    CHECK(DIBS_UNKNOWN, dibs_member_join(cl, "group", NULL, &m, err));
    assert_null(m);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(all_seats_go_in_one_step),
        WORLD_TEST(an_answer_that_is_lost_takes_no_second_seat),
        WORLD_TEST(requests_that_hang_cost_no_seat),
        WORLD_TEST(a_closed_client_begins_no_job),
        WORLD_TEST(a_lost_seat_is_taken_anew_under_another_id),
        WORLD_TEST(a_seat_of_its_owner_is_not_taken_again),
        WORLD_TEST(a_dated_request_that_is_late_is_refused),
        WORLD_TEST(a_server_that_hangs_costs_no_seat_of_another),
        WORLD_TEST(a_seat_that_may_be_taken_is_not_denied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
