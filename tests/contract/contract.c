/* contract.c - handles, names, actors and notices for the contract suite.
 *
 * Runs on the thread of the test; asserts here fail the test that called. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include "base/rand.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Every store has names with so many permits. */
enum { FEW_PERMITS = 64 };

static const char *suite_url;

/* Of the test that runs, on all of its threads. */
static dibsx_nsec begun_at;
static _Atomic(int64_t) slept_ns;

void contract_url_set(const char *url)
{
    suite_url = url;
}

dibs__store *contract_open(void)
{
    dibs__store *st = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs__store_open(suite_url, contract_soon(), &st, &err);

    if (rc != DIBS_OK)
        FAIL_OF(rc, "open %s: status %d: %s", suite_url, (int)rc, err.message);
    assert_non_null(st);
    return st;
}

const char *contract_lack(dibs__ability what)
{
    dibs__store *st = contract_open();
    const char *why = dibs__store_cannot(st, what);

    dibs__store_close(st);
    return why;
}

void contract_needs(const contract *t, dibs__ability what)
{
    const char *why = dibs__store_cannot(t->st[0], what);

    if (!why)
        return;
    print_message("           %s\n", why);
    skip();
}

void contract_open_doorbell(contract *t, size_t handle)
{
    dibs__store *st = t->st[handle];
    dibsx_nsec end = contract_soon();
    dibs_error err = {0};
    dibs_status rc;

    t->bell[handle] = -1;
    while ((rc = st->ops->doorbell_open(st, end, &t->bell[handle], &err)) ==
               DIBS_UNAVAIL &&
           dibsx_now() < end)
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    if (rc != DIBS_OK)
        FAIL_OF(rc, "a doorbell: status %d: %s", (int)rc, err.message);
    assert_true(t->bell[handle] >= 0);
}

int contract_setup(void **state)
{
    contract *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    begun_at = dibsx_now();
    atomic_store(&slept_ns, 0);
    for (size_t i = 0; i < CONTRACT_HANDLES; i++) {
        t->st[i] = contract_open();
        contract_open_doorbell(t, i);
    }
    contract_name(t->name, sizeof(t->name), "main");
    *state = t;
    return 0;
}

int contract_teardown(void **state)
{
    contract *t = *state;

    for (size_t i = 0; i < CONTRACT_HANDLES; i++)
        dibs__store_close(t->st[i]);
    free(t);
    return 0;
}

void contract_owner(char out[DIBS_OWNER_SIZE])
{
    unsigned char bits[(DIBS_OWNER_SIZE - 1) / 2];

    assert_true(dibsx_random(bits, sizeof(bits)));
    dibsx_hex(bits, sizeof(bits), out);
}

void contract_name(char *out, size_t size, const char *label)
{
    unsigned char bits[8];
    char hex[2 * sizeof(bits) + 1];

    assert_true(dibsx_random(bits, sizeof(bits)));
    dibsx_hex(bits, sizeof(bits), hex);
    snprintf(out, size, "contract:%s:%s", hex, label);
}

int64_t contract_brief_ms(int64_t span_ms)
{
    int64_t slow_ms = pace_ms(span_ms);
    int64_t most_ms = span_ms + DIBS__CLAIM_MS / 3;

    return slow_ms < most_ms ? slow_ms : most_ms;
}

dibsx_nsec contract_soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(CONTRACT_STEP_MS));
}

int64_t contract_ms_since(dibsx_nsec from_at)
{
    return (dibsx_now() - from_at) / DIBSX_MS;
}

void contract_sleep_until(dibsx_nsec until)
{
    struct timespec at = {.tv_sec = (time_t)(until / DIBSX_SEC),
                          .tv_nsec = (long)(until % DIBSX_SEC)};
    dibsx_nsec now = dibsx_now();

    if (until > now)
        atomic_fetch_add(&slept_ns, until - now);
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

void contract_check_pace(void)
{
    int64_t worked_ns = dibsx_now() - begun_at - atomic_load(&slept_ns);

    if (begun_at != 0 && worked_ns / DIBSX_MS >= DIBS__PLACE_MS)
        MISSED("the test has worked for %" PRId64 " ms", worked_ns / DIBSX_MS);
}

actor contract_actor(contract *t, size_t handle)
{
    actor a = {.t = t, .handle = handle};

    contract_owner(a.owner);
    a.ask = (dibs__ask){.name = t->name,
                        .mode = DIBS__EXCLUSIVE,
                        .permits = 1,
                        .ttl_ms = 10000,
                        .who = "host:1 contract"};
    return a;
}

actor contract_sharer(contract *t, size_t handle)
{
    actor a = contract_actor(t, handle);

    a.ask.mode = DIBS__SHARED;
    return a;
}

actor contract_permits(contract *t, size_t handle, uint32_t permits,
                       uint32_t capacity)
{
    actor a = contract_actor(t, handle);

    a.ask.mode = DIBS__PERMITS;
    a.ask.permits = permits;
    a.ask.capacity = capacity;
    return a;
}

static dibs__store *store_of(const actor *a)
{
    return a->t->st[a->handle];
}

/* The status of a step. A store that works has one in time. */
static dibs_status in_time(const actor *a, dibs_status rc)
{
    if (!a->may_fail && (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN))
        MISSED("a step on %s is %s: %s", a->ask.name, dibs_status_name(rc),
               a->err.message);
    return rc;
}

static dibs_status ask(actor *a)
{
    dibs__store *st = store_of(a);

    a->ask.owner = a->owner;
    memset(&a->ans, 0, sizeof(a->ans));
    memset(&a->err, 0, sizeof(a->err));
    a->asked_at = dibsx_now();
    return in_time(a, st->ops->lease->acquire(st, &a->ask, contract_soon(),
                                              &a->ans, &a->err));
}

/* What an ask may want that not every store has. */
static void check_wants(const actor *a)
{
    if (a->ask.mode == DIBS__SHARED)
        contract_needs(a->t, DIBS__CAN_SHARE);
    if (a->ask.mode == DIBS__PERMITS &&
        (a->ask.permits > 1 || a->ask.capacity > FEW_PERMITS))
        contract_needs(a->t, DIBS__CAN_COUNT);
    if (a->ask.flags & DIBS__ASK_TELL)
        contract_needs(a->t, DIBS__CAN_RING);
    if (a->ask.priority != 0)
        contract_needs(a->t, DIBS__CAN_QUEUE);
}

dibs_status actor_try(actor *a)
{
    check_wants(a);
    a->ask.flags &= ~(uint32_t)DIBS__ASK_QUEUE;
    return ask(a);
}

dibs_status actor_queue(actor *a)
{
    dibs_status rc;

    check_wants(a);
    a->ask.flags |= DIBS__ASK_QUEUE;
    rc = ask(a);
    if (rc == DIBS_BUSY && !a->ans.queued)
        contract_needs(a->t, DIBS__CAN_QUEUE);
    return rc;
}

dibs_status actor_until(actor *a, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);
    dibs_status rc = ask(a);

    while (rc == DIBS_BUSY && dibsx_now() < end) {
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
        rc = ask(a);
    }
    IN_TIME(rc != DIBS_BUSY);
    return rc;
}

dibs_status actor_renew(actor *a, int64_t ttl_ms, int64_t *left_ms)
{
    dibs__store *st = store_of(a);
    dibs__renewal item = {.name = a->ask.name,
                          .owner = a->owner,
                          .fence = a->ans.fence,
                          .ttl_ms = ttl_ms,
                          .rc = DIBS_INTERNAL};
    dibs_status rc =
        st->ops->lease->renew(st, &item, 1, contract_soon(), &a->err);

    if (left_ms)
        *left_ms = item.left_ms;
    return in_time(a, rc == DIBS_OK ? item.rc : rc);
}

dibs_status actor_leave(actor *a, bool unanswered, int64_t keep_ms)
{
    dibs__store *st = store_of(a);
    dibs__leave leave = {.name = a->ask.name,
                         .owner = a->owner,
                         .unanswered = unanswered,
                         .keep_ms = keep_ms};

    return in_time(a, st->ops->lease->release(st, &leave, contract_soon(),
                                              &a->err));
}

dibs_status actor_release(actor *a)
{
    return actor_leave(a, false, 0);
}

dibs_status actor_convert(actor *a, dibs__mode mode, const actor *to,
                          int64_t ttl_ms, dibs__answer *ans)
{
    dibs__store *st = store_of(a);
    dibs__conversion turn = {.name = a->ask.name,
                             .owner = a->owner,
                             .fence = a->ans.fence,
                             .mode = mode,
                             .to_owner = to ? to->owner : a->owner,
                             .ttl_ms = ttl_ms};

    contract_needs(a->t, DIBS__CAN_CONVERT);
    memset(ans, 0, sizeof(*ans));
    memset(&a->err, 0, sizeof(a->err));
    return in_time(a, st->ops->lease->convert(st, &turn, contract_soon(), ans,
                                              &a->err));
}

/* Moves what the doorbell has into the memory of the handle. */
static void hear(contract *t, size_t handle)
{
    dibs__store *st = t->st[handle];
    size_t *count = &t->heard_count[handle];

    for (;;) {
        size_t room = CONTRACT_HEARD - *count;
        size_t max = room < 8 ? room : 8;
        size_t got = st->ops->doorbell_read(st, t->heard[handle] + *count, max);

        assert_true(got <= max);
        *count += got;
        if (got == 0 || room == 0)
            return;
    }
}

static bool recall(actor *a, dibs__notice_kind kind, uint64_t *fence)
{
    dibs__notice *heard = a->t->heard[a->handle];
    size_t *count = &a->t->heard_count[a->handle];

    for (size_t i = 0; i < *count; i++) {
        if (heard[i].kind != kind || strcmp(heard[i].owner, a->owner) != 0)
            continue;
        *fence = heard[i].fence;
        memmove(&heard[i], &heard[i + 1], (--*count - i) * sizeof(heard[i]));
        return true;
    }
    return false;
}

bool actor_hears(actor *a, dibs__notice_kind kind)
{
    uint64_t fence;

    hear(a->t, a->handle);
    return recall(a, kind, &fence);
}

bool actor_notified(actor *a, dibs__notice_kind kind, uint64_t *fence)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);

    contract_needs(a->t, DIBS__CAN_RING);
    for (;;) {
        struct pollfd bell = {.fd = a->t->bell[a->handle], .events = POLLIN};

        hear(a->t, a->handle);
        if (recall(a, kind, fence))
            return true;
        if (dibsx_now() >= end)
            return false;
        poll(&bell, 1, (int)dibsx_wait_ms(end, dibsx_now()));
    }
}

void actor_expect_quiet(actor *a, dibs__notice_kind kind)
{
    actor holder = contract_actor(a->t, CONTRACT_HANDLES - 1);
    actor waiter = contract_actor(a->t, a->handle);
    char name[64];
    uint64_t fence;

    contract_name(name, sizeof(name), "quiet");
    holder.ask.name = waiter.ask.name = name;
    assert_status(actor_try(&holder), DIBS_OK);
    assert_status(actor_queue(&waiter), DIBS_BUSY);
    assert_status(actor_release(&holder), DIBS_OK);
    IN_TIME(actor_notified(&waiter, DIBS__NOTICE_GRANTED, &fence));
    assert_false(recall(a, kind, &fence));
}

void actor_expect_claim(actor *next)
{
    uint64_t watermark = next->ans.fence;
    uint64_t fence = 0;

    assert_true(next->ans.queued);
    IN_TIME(actor_notified(next, DIBS__NOTICE_GRANTED, &fence));
    assert_true(fence > watermark);
    assert_status(actor_queue(next), DIBS_OK);
    /* It passes on when it is not asked for in time. */
    IN_TIME(next->ans.claim);
    assert_int_equal(next->ans.fence, fence);
    assert_true(next->ans.left_ms > 0);
    assert_true(next->ans.left_ms <= DIBS__CLAIM_MS);
}

static bool copy_entries(const char *name, const dibs__entry *entries,
                         size_t count, void *arg)
{
    contract_view *out = arg;

    (void)name;
    out->count = count < CONTRACT_ENTRIES ? count : CONTRACT_ENTRIES;
    memcpy(out->entries, entries, out->count * sizeof(*entries));
    return true;
}

size_t contract_look(contract *t, const char *name, contract_view *out)
{
    dibs__store *st = t->st[CONTRACT_HANDLES - 1];
    dibs_error err = {0};
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    rc = st->ops->lease->inspect(st, name, contract_soon(), copy_entries, out,
                                 &err);
    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    assert_int_equal(rc == DIBS_OK, out->count > 0);
    return out->count;
}

void contract_await(contract *t, const char *name, size_t count,
                    contract_view *out)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);

    while (contract_look(t, name, out) != count) {
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
}
