/* contract_queue_crowd.c - queues: many clients at once, each on a thread and a handle of its
 * own, whose answers get lost.
 *
 * The threads only count what goes wrong; the test's own thread asserts. */
/* SPDX-License-Identifier: MIT */
#include "contract_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { EACH = 16, ALL = EACH * CONTRACT_HANDLES };

typedef struct crowd {
    contract *t;
    atomic_int acks[ALL]; /* of each item, told to somebody */
    atomic_int done;
    atomic_int wrong;
    atomic_int rc; /* of a failure that lateness may explain */
} crowd;

typedef struct member {
    crowd *all;
    size_t number;
    pthread_t thread;
    lane ln;
    pusher p;
} member;

static bool note_failure(crowd *all, dibs_status rc)
{
    if (rc == DIBS_OK)
        return false;
    all->rc = (int)rc;
    atomic_fetch_add(&all->wrong, 1);
    return true;
}

/* Each third request is sent again, as if its answer had been lost. */
static bool send_again(uint64_t number)
{
    return number % 3 == 0;
}

static bool push_all(member *m)
{
    for (int i = 0; i < EACH; i++) {
        char text[16];
        dibs_status rc;

        snprintf(text, sizeof(text), "%d", (int)m->number * EACH + i);
        rc = push_text(&m->p, text);
        if (rc == DIBS_OK && send_again(m->p.push.number))
            rc = pusher_send(&m->p);
        if (note_failure(m->all, rc))
            return false;
    }
    return true;
}

static void note_acks(crowd *all, const lane *ln, const int *items)
{
    for (size_t i = 0; i < ln->ask.settle_count; i++) {
        if (ln->settle[i].rc != DIBS_OK)
            atomic_fetch_add(&all->wrong, 1);
        else
            atomic_fetch_add(&all->acks[items[i]], 1);
        atomic_fetch_add(&all->done, 1);
    }
}

/* Takes up to four at a time, and settles them with the next request. */
static void *take_part(void *arg)
{
    member *m = arg;
    lane *ln = &m->ln;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 10 * CONTRACT_BOUND_MS);
    int items[8];

    if (!push_all(m))
        return NULL;
    ln->ask.number = 1;
    if (note_failure(m->all, lane_send(ln)))
        return NULL;
    while (atomic_load(&m->all->done) < ALL && dibsx_now() < end) {
        dibs_status rc;

        ln->ask.number++;
        ln->ask.seen = ln->ask.stamp;
        ln->ask.want = 4;
        rc = lane_send(ln);
        if (rc == DIBS_OK && send_again(ln->ask.number))
            rc = lane_send(ln);
        if (note_failure(m->all, rc))
            return NULL;
        note_acks(m->all, ln, items);
        ln->ask.settle_count = 0;
        if (ln->count == 0) /* The others should get their turn. */
            contract_sleep_until(dibsx_now() + 2 * DIBSX_MS);
        for (size_t i = 0; i < ln->count; i++) {
            items[i] = (int)strtol(ln->got[i].data, NULL, 10);
            lane_settle(ln, DIBS__ITEM_ACK, ln->got[i].token, 0, NULL);
        }
    }
    return NULL;
}

static void each_item_is_acked_once(void **state)
{
    contract *t = *state;
    static member members[CONTRACT_HANDLES];
    crowd all = {.t = t};

    for (size_t i = 0; i < CONTRACT_HANDLES; i++) {
        members[i] = (member){.all = &all,
                              .number = i,
                              .ln = queue_lane(t, i),
                              .p = queue_pusher(t, i)};
        assert_int_equal(pthread_create(&members[i].thread, NULL, take_part,
                                        &members[i]),
                         0);
    }
    for (size_t i = 0; i < CONTRACT_HANDLES; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    if (all.rc != DIBS_OK)
        FAIL_OF((dibs_status)all.rc, "a step is %s",
                dibs_status_name((dibs_status)all.rc));
    assert_int_equal(all.wrong, 0);
    IN_TIME(all.done == ALL);
    for (size_t i = 0; i < ALL; i++)
        assert_int_equal(all.acks[i], 1);
    assert_int_equal(queue_stats(t).acked, ALL);
    assert_int_equal(queue_stats(t).delivered, ALL);
    assert_int_equal(queue_stats(t).ready + queue_stats(t).out, 0);
}

int contract_queue_crowd(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(each_item_is_acked_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
