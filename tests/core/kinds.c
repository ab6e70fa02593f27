/* kinds.c - readers and writers, permits, and what a holder may agree to: through
 * the public interface, on every store. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <string.h>

static void readers_share_and_writers_do_not(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_lock *b = core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_lock *writer = core_lock(cl, name, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(a, err));
    CHECK(DIBS_OK, dibs_lock_acquire(b, err));
    assert_true(dibs_lock_fence(b) > dibs_lock_fence(a));
    CHECK(DIBS_BUSY, dibs_lock_try(writer, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    CHECK(DIBS_BUSY, dibs_lock_try(writer, err));
    CHECK(DIBS_OK, dibs_lock_release(b, err));
    CHECK(DIBS_OK, dibs_lock_try(writer, err));
    CHECK(DIBS_BUSY, dibs_lock_try(a, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_lock_free(writer);
    dibs_close(cl);
}

typedef struct renewals {
    dibs_client *cl;
    uint64_t count;
} renewals;

static bool were_confirmed(void *arg)
{
    const renewals *rn = arg;
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(rn->cl, &stats);
    return stats.renewed >= rn->count;
}

static void await_renewals(dibs_client *cl, uint64_t count)
{
    core_until(were_confirmed, &(renewals){cl, count});
}

static void every_reader_is_renewed(void **state)
{
    dibs_client *clients[] = {core_open(), core_open()};
    const char *name = core_name();
    dibs_lock *readers[4];
    dibs_lock *writer = core_lock(clients[0], name, NULL);
    dibs_status rc;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        readers[i] = core_lock(clients[i % 2], name,
                               DIBS_LOCK_OPTS(.mode = DIBS_SHARED,
                                              .ttl_ms = pace_ms(1000)));
        CHECK(DIBS_OK, dibs_lock_acquire(readers[i], err));
    }
    /* Three of each, one a third of the ttl: longer than any had at first. */
    for (size_t i = 0; i < COUNT_OF(clients); i++)
        await_renewals(clients[i], 8);
    rc = dibs_lock_try(writer, NULL);
    IN_TIME(rc != DIBS_OK);
    assert_status(rc, DIBS_BUSY);
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        CHECK(DIBS_OK, dibs_lock_renew(readers[i], err));
        CHECK(DIBS_OK, dibs_lock_release(readers[i], err));
        dibs_lock_free(readers[i]);
    }
    CHECK(DIBS_OK, dibs_lock_try(writer, err));
    dibs_lock_free(writer);
    for (size_t i = 0; i < COUNT_OF(clients); i++)
        dibs_close(clients[i]);
}

static void an_upgrade_is_atomic_or_refused(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_lock *b = core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    uint64_t fence;

    (void)state;
    CHECK(DIBS_LOST, dibs_lock_upgrade(a, err));
    CHECK(DIBS_OK, dibs_lock_acquire(a, err));
    CHECK(DIBS_OK, dibs_lock_acquire(b, err));
    fence = dibs_lock_fence(a);
    CHECK(DIBS_BUSY, dibs_lock_upgrade(a, err));
    assert_int_equal(dibs_lock_fence(a), fence);
    CHECK(DIBS_OK, dibs_lock_check(a));
    CHECK(DIBS_OK, dibs_lock_release(b, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(a, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(a, err));
    assert_true(dibs_lock_fence(a) > fence);
    fence = dibs_lock_fence(a);
    CHECK(DIBS_BUSY, dibs_lock_try(b, err));
    CHECK(DIBS_OK, dibs_lock_renew(a, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(a, err));
    assert_int_equal(dibs_lock_fence(a), fence);
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    CHECK(DIBS_OK, dibs_lock_renew(a, err));
    CHECK(DIBS_OK, dibs_lock_release(a, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(b, err));
    CHECK(DIBS_OK, dibs_lock_release(b, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

static void permits_are_counted(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *one =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 3));
    dibs_lock *two = core_lock(cl, name,
                               DIBS_LOCK_OPTS(.mode = DIBS_PERMITS,
                                              .permits = 2, .capacity = 3));
    dibs_lock *more =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 3));
    dibs_lock *odd =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 4));
    dibs_lock *mutex = core_lock(cl, name, NULL);
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(one, err));
    CHECK(DIBS_OK, dibs_lock_acquire(two, err));
    CHECK(DIBS_BUSY, dibs_lock_acquire(more, err));
    CHECK(DIBS_MISMATCH, dibs_lock_acquire(odd, &why));
    assert_non_null(strstr(why.message, "3"));
    assert_non_null(strstr(why.message, "4"));
    CHECK(DIBS_MISMATCH, dibs_lock_acquire(mutex, err));
    CHECK(DIBS_INVALID, dibs_lock_upgrade(one, err));
    CHECK(DIBS_OK, dibs_lock_release(one, err));
    CHECK(DIBS_OK, dibs_lock_acquire(more, err));
    dibs_lock_free(one);
    dibs_lock_free(two);
    dibs_lock_free(more);
    dibs_lock_free(odd);
    dibs_lock_free(mutex);
    dibs_close(cl);
}

static void what_cannot_be_had_is_refused(void **state)
{
    static const char *const no_value[] = {"key", NULL};
    static const char *const no_key[] = {"=value", NULL};
    dibs_client *cl = core_open();
    const dibs_lock_opts *const bad[] = {
        DIBS_LOCK_OPTS(.mode = (dibs_lock_mode)7),
        DIBS_LOCK_OPTS(.mode = DIBS_PERMITS),
        DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .permits = 3, .capacity = 2),
        DIBS_LOCK_OPTS(.permits = 2),
        DIBS_LOCK_OPTS(.capacity = 2),
        DIBS_LOCK_OPTS(.flags = 1u << 20),
        DIBS_LOCK_OPTS(.flags = DIBS_LOCK_STICKY, .hold_min_ms = 5),
        DIBS_LOCK_OPTS(.flags = DIBS_LOCK_STICKY | DIBS_LOCK_NO_RENEW),
        DIBS_LOCK_OPTS(.lock_delay_ms = -1),
        DIBS_LOCK_OPTS(.lock_delay_ms = 24 * 3600 * 1000),
        DIBS_LOCK_OPTS(.progress_ms = -1),
        DIBS_LOCK_OPTS(.meta = no_value),
        DIBS_LOCK_OPTS(.meta = no_key),
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        dibs_lock *lock;

        CHECK(DIBS_INVALID, dibs_lock_new(cl, "x", bad[i], &lock, err));
        assert_null(lock);
    }
    dibs_close(cl);
}

static void a_transfer_voids_the_old_handle_at_once(void **state)
{
    dibs_client *here = core_open();
    dibs_client *there = core_open();
    const char *name = core_name();
    dibs_lock *from = core_lock(here, name, DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *to = core_lock(there, name, DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *other = core_lock(here, name, NULL);
    char token[DIBS_TOKEN_SIZE];
    uint64_t fence;

    (void)state;
    CHECK(DIBS_LOST, dibs_lock_transfer(from, token, err));
    assert_string_equal(token, "");
    CHECK(DIBS_OK, dibs_lock_acquire(from, err));
    fence = dibs_lock_fence(from);
    CHECK(DIBS_OK, dibs_lock_transfer(from, token, err));
    CHECK(DIBS_LOST, dibs_lock_check(from));
    assert_int_equal(dibs_lock_fence(from), 0);
    CHECK(DIBS_LOST, dibs_lock_release(from, err));
    CHECK(DIBS_BUSY, dibs_lock_try(other, err));
    CHECK(DIBS_OK, dibs_lock_accept(to, token, err));
    assert_true(dibs_lock_fence(to) > fence);
    CHECK(DIBS_BUSY, dibs_lock_try(from, err));
    CHECK(DIBS_OK, dibs_lock_release(to, err));
    CHECK(DIBS_LOST, dibs_lock_accept(to, token, err));
    CHECK(DIBS_OK, dibs_lock_try(from, err));
    dibs_lock_free(from);
    dibs_lock_free(to);
    dibs_lock_free(other);
    dibs_close(there);
    dibs_close(here);
}

/* Whoever has the token may come; one of them gets the lease. */
static void a_transfer_is_accepted_once(void **state)
{
    dibs_client *here = core_open();
    dibs_client *there = core_open();
    const char *name = core_name();
    dibs_lock *from = core_lock(here, name, NULL);
    dibs_lock *first = core_lock(there, name, DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *second = core_lock(here, name, DIBS_LOCK_OPTS(.ttl_ms = 60000));
    char token[DIBS_TOKEN_SIZE];

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(from, err));
    CHECK(DIBS_OK, dibs_lock_transfer(from, token, err));
    CHECK(DIBS_OK, dibs_lock_accept(first, token, err));
    CHECK(DIBS_LOST, dibs_lock_accept(second, token, err));
    CHECK(DIBS_LOST, dibs_lock_check(second));
    CHECK(DIBS_OK, dibs_lock_check(first));
    CHECK(DIBS_OK, dibs_lock_renew(first, err));
    CHECK(DIBS_BUSY, dibs_lock_try(second, err));
    CHECK(DIBS_OK, dibs_lock_release(first, err));
    CHECK(DIBS_OK, dibs_lock_try(second, err));
    dibs_lock_free(from);
    dibs_lock_free(first);
    dibs_lock_free(second);
    dibs_close(there);
    dibs_close(here);
}

static void bad_tokens_are_refused(void **state)
{
    static const char *const bad[] = {
        NULL,
        "",
        "x",
        "0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef.",
        "0123456789abcdef0123456789abcdef.0",
        "0123456789abcdef0123456789abcdef.-5",
        "0123456789abcdef0123456789abcdef.5x",
        "0123456789abcdef0123456789abcdeg.5",
        "0123456789abcdef0123456789abcdef.99999999999999999999",
        "0123456789abcdef0123456789abcdef.5",
        "0123456789abcdef0123456789abcdef.5.",
        "0123456789abcdef0123456789abcdef.5.q",
        "0123456789abcdef0123456789abcdef.5.xx",
        "0123456789abcdef0123456789abcdef..x",
        "0123456789abcdef0123456789abcdeg.5.x",
        "0123456789abcdef0123456789abcdef.99999999999999999999.x",
    };
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(DIBS_INVALID, dibs_lock_accept(lock, bad[i], err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* Hands a lease of one mode on to a handle of another, which does not get it. */
static void hand_on(dibs_lock *from, dibs_lock *odd, dibs_lock *to)
{
    char token[DIBS_TOKEN_SIZE];
    dibs_error why = {0};

    CHECK(DIBS_OK, dibs_lock_acquire(from, err));
    CHECK(DIBS_OK, dibs_lock_transfer(from, token, err));
    CHECK(DIBS_MISMATCH, dibs_lock_accept(odd, token, &why));
    assert_non_null(strstr(why.message, "shared"));
    assert_int_equal(dibs_lock_state_get(odd), DIBS_LOCK_FREE);
    CHECK(DIBS_OK, dibs_lock_accept(to, token, err));
    CHECK(DIBS_OK, dibs_lock_release(to, err));
}

static void a_lease_stays_what_it_is_when_it_is_handed_on(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    const dibs_lock_opts *some =
        DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 2);
    dibs_lock *writer = core_lock(cl, name, NULL);
    dibs_lock *writer2 = core_lock(cl, name, NULL);
    dibs_lock *reader =
        core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_lock *reader2 =
        core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_lock *permit = core_lock(cl, name, some);
    dibs_lock *permit2 = core_lock(cl, name, some);
    char token[DIBS_TOKEN_SIZE];

    (void)state;
    hand_on(writer, reader, writer2);
    hand_on(reader, writer, reader2);
    hand_on(permit, reader, permit2);

    /* As it is in the end, not as it was asked for. */
    CHECK(DIBS_OK, dibs_lock_acquire(writer, err));
    CHECK(DIBS_OK, dibs_lock_downgrade(writer, err));
    CHECK(DIBS_OK, dibs_lock_transfer(writer, token, err));
    CHECK(DIBS_MISMATCH, dibs_lock_accept(writer2, token, err));
    CHECK(DIBS_OK, dibs_lock_accept(reader, token, err));
    CHECK(DIBS_OK, dibs_lock_try(reader2, err));
    CHECK(DIBS_BUSY, dibs_lock_upgrade(reader, err));
    dibs_lock_free(writer);
    dibs_lock_free(writer2);
    dibs_lock_free(reader);
    dibs_lock_free(reader2);
    dibs_lock_free(permit);
    dibs_lock_free(permit2);
    dibs_close(cl);
}

/* Leaves the lease of one handle to another. */
static void leave_to(dibs_lock *from, dibs_lock *to)
{
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence = dibs_lock_fence(from);

    dibs_lock_owner(from, owner);
    dibs_lock_leave(from);
    CHECK(DIBS_OK, dibs_lock_adopt(to, owner, fence, err));
    assert_int_equal(dibs_lock_fence(to), fence);
}

static void what_was_adopted_is_asked_about(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT);
    const dibs_lock_opts *share = DIBS_LOCK_OPTS(.mode = DIBS_SHARED);
    dibs_lock *from = core_lock(other, name, share);
    dibs_lock *reader = core_lock(other, name, share);
    dibs_lock *writer = core_lock(cl, name, opts);
    dibs_lock *second = core_lock(cl, name, opts);
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(from, err));
    CHECK(DIBS_OK, dibs_lock_acquire(reader, err));
    leave_to(from, writer);
    CHECK(DIBS_BUSY, dibs_lock_upgrade(writer, err));
    CHECK(DIBS_INVALID, dibs_lock_try(writer, err));
    CHECK(DIBS_BUSY, dibs_lock_try(second, err));
    CHECK(DIBS_OK, dibs_lock_release(reader, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(writer, err));
    CHECK(DIBS_BUSY, dibs_lock_try(reader, err));

    /* What is a writer's already stays so, under its fence. */
    fence = dibs_lock_fence(writer);
    leave_to(writer, second);
    CHECK(DIBS_OK, dibs_lock_upgrade(second, err));
    assert_int_equal(dibs_lock_fence(second), fence);
    CHECK(DIBS_OK, dibs_lock_try(writer, err));
    CHECK(DIBS_BUSY, dibs_lock_try(reader, err));
    CHECK(DIBS_OK, dibs_lock_release(writer, err));
    leave_to(second, writer);
    CHECK(DIBS_OK, dibs_lock_downgrade(writer, err));
    CHECK(DIBS_OK, dibs_lock_try(reader, err));
    dibs_lock_free(from);
    dibs_lock_free(reader);
    dibs_lock_free(writer);
    dibs_lock_free(second);
    dibs_close(other);
    dibs_close(cl);
}

/* What was adopted goes on as what the handle is for, if it can. */
static void what_was_adopted_is_handed_on(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *a = core_lock(cl, name, NULL);
    dibs_lock *b = core_lock(cl, name, NULL);
    dibs_lock *reader =
        core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    char token[DIBS_TOKEN_SIZE];

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(a, err));
    leave_to(a, b);
    CHECK(DIBS_OK, dibs_lock_transfer(b, token, err));
    CHECK(DIBS_OK, dibs_lock_accept(a, token, err));
    CHECK(DIBS_BUSY, dibs_lock_try(reader, err));
    CHECK(DIBS_OK, dibs_lock_upgrade(a, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_lock_free(reader);
    dibs_close(cl);
}

static void who_entered_through_another_adopts_nothing(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .flags = DIBS_LOCK_REENTRANT);
    dibs_lock *from = core_lock(cl, name, DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
    dibs_lock *host = core_lock(cl, name, opts);
    dibs_lock *guest = core_lock(cl, name, opts);
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(from, err));
    dibs_lock_owner(from, owner);
    fence = dibs_lock_fence(from);
    dibs_lock_leave(from);
    CHECK(DIBS_OK, dibs_lock_acquire(host, err));
    CHECK(DIBS_OK, dibs_lock_acquire(guest, err));
    CHECK(DIBS_INVALID, dibs_lock_adopt(guest, owner, fence, err));
    assert_int_equal(dibs_lock_fence(guest), dibs_lock_fence(host));
    CHECK(DIBS_OK, dibs_lock_release(guest, err));
    CHECK(DIBS_OK, dibs_lock_release(host, err));
    CHECK(DIBS_OK, dibs_lock_adopt(guest, owner, fence, err));
    dibs_lock_free(from);
    dibs_lock_free(host);
    dibs_lock_free(guest);
    dibs_close(cl);
}

static bool is_lost(void *arg)
{
    return dibs_lock_state_get(arg) == DIBS_LOCK_LOST;
}

static void no_tick_no_renewal(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *idle = core_lock(cl, core_name(),
                                DIBS_LOCK_OPTS(.ttl_ms = pace_ms(300),
                                               .progress_ms = pace_ms(50)));
    dibs_lock *busy = core_lock(cl, core_name(),
                                DIBS_LOCK_OPTS(.ttl_ms = pace_ms(300),
                                               .progress_ms = pace_ms(150)));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(idle, err));
    CHECK(DIBS_OK, dibs_lock_acquire(busy, err));
    while (!is_lost(idle)) {
        dibs_lock_tick(busy);
        poll(NULL, 0, 5);
    }
    CHECK(DIBS_OK, dibs_lock_check(busy));
    CHECK(DIBS_OK, dibs_lock_release(busy, err));
    CHECK(DIBS_LOST, dibs_lock_release(idle, err));
    dibs_lock_free(idle);
    dibs_lock_free(busy);
    dibs_close(cl);
}

/* Without a tick there would be no renewal at all: the first one is later than its time. */
static void a_tick_lets_renewals_go_on(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(),
                                DIBS_LOCK_OPTS(.ttl_ms = pace_ms(600),
                                               .progress_ms = pace_ms(150)));
    dibs_stats stats = {.size = sizeof(stats)};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    do {
        poll(NULL, 0, 5);
        dibs_lock_tick(lock);
        CHECK(DIBS_OK, dibs_lock_check(lock));
        dibs_stats_get(cl, &stats);
    } while (stats.renewed < 2);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static int64_t left_of;

static bool see_left(const dibs_lease_info *info, void *arg)
{
    (void)arg;
    left_of = info->holders[0].left_ms;
    return true;
}

/* A clean release does not make anybody wait; only a death does. */
static void a_lock_delay_is_for_those_who_come_after_a_death(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.ttl_ms = 2000, .lock_delay_ms = 60000));
    dibs_lock *next = core_lock(cl, name, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(dibs_lock_valid_ms(lock) <= 2000);
    IN_TIME(dibs_lock_valid_ms(lock) > 0);
    CHECK(DIBS_OK, dibs_lease_show(cl, name, see_left, NULL, err));
    IN_TIME(left_of > 55000);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    assert_true(dibs_lock_valid_ms(lock) <= 2000);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(next, err));
    CHECK(DIBS_OK, dibs_lock_release(next, err));

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    dibs_lock_leave(lock);
    CHECK(DIBS_BUSY, dibs_lock_try(next, err));
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
    dibs_lock_free(lock);
    dibs_lock_free(next);
    dibs_close(cl);
}

/* Whichever way the lease is turned. */
static void a_lock_delay_is_not_believed_after_a_conversion(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .ttl_ms = 20000,
                                 .lock_delay_ms = 60000));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(dibs_lock_valid_ms(lock) <= 20000);
    CHECK(DIBS_OK, dibs_lock_upgrade(lock, err));
    assert_true(dibs_lock_valid_ms(lock) <= 20000);
    CHECK(DIBS_OK, dibs_lock_downgrade(lock, err));
    assert_true(dibs_lock_valid_ms(lock) <= 20000);
    CHECK(DIBS_OK, dibs_lease_show(cl, name, see_left, NULL, err));
    IN_TIME(left_of > 55000);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static bool see_meta(const dibs_lease_info *info, void *arg)
{
    const dibs_party *holder = &info->holders[0];

    (void)arg;
    assert_string_equal(holder->label, "nightly? run");
    assert_string_equal(holder->meta, "job=7\tzone=eu west");
    assert_string_equal(holder->identity, "worker-3");
    return true;
}

static void others_see_label_identity_and_metadata(void **state)
{
    static const char *const meta[] = {"job=7", "zone=eu west", NULL};
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.label = "nightly\t run",
                                 .identity = "worker-3", .meta = meta));
    dibs_lock *other = core_lock(cl, name, NULL);
    dibs_error why = {0};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lease_show(cl, name, see_meta, NULL, err));
    CHECK(DIBS_BUSY, dibs_lock_try(other, &why));
    assert_null(strchr(why.message, '\t'));
    dibs_lock_free(lock);
    dibs_lock_free(other);
    dibs_close(cl);
}

int core_kinds_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_share_and_writers_do_not),
        cmocka_unit_test(every_reader_is_renewed),
        cmocka_unit_test(an_upgrade_is_atomic_or_refused),
        cmocka_unit_test(permits_are_counted),
        cmocka_unit_test(what_cannot_be_had_is_refused),
        cmocka_unit_test(a_transfer_voids_the_old_handle_at_once),
        cmocka_unit_test(a_transfer_is_accepted_once),
        cmocka_unit_test(bad_tokens_are_refused),
        cmocka_unit_test(a_lease_stays_what_it_is_when_it_is_handed_on),
        cmocka_unit_test(what_was_adopted_is_asked_about),
        cmocka_unit_test(what_was_adopted_is_handed_on),
        cmocka_unit_test(who_entered_through_another_adopts_nothing),
        cmocka_unit_test(no_tick_no_renewal),
        cmocka_unit_test(a_tick_lets_renewals_go_on),
        cmocka_unit_test(a_lock_delay_is_for_those_who_come_after_a_death),
        cmocka_unit_test(a_lock_delay_is_not_believed_after_a_conversion),
        cmocka_unit_test(others_see_label_identity_and_metadata),
    };

    return cmocka_run_group_tests_name("core kinds", tests, NULL, NULL);
}
