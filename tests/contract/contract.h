/* contract.h - what the contract suite shares.
 *
 * The suite knows a store by its URL alone, so that every store runs it
 * unchanged. Each test gets three handles on the store with open doorbells and
 * a name of its own; whoever asks for something is an actor, with an owner of
 * its own, on one of the handles. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONTRACT_H
#define DIBS_CONTRACT_H

#include "check.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    CONTRACT_HANDLES = 3,
    CONTRACT_HEARD = 256, /* notices kept per handle until they are asked for */
    CONTRACT_ENTRIES = 64,  /* entries of a name that a test looks at */
    CONTRACT_STEP_MS = 5000 /* what a step may take */
};

/* How long to wait for what a working store does at once, and by how much two
 * clocks may disagree about a short span. */
#define CONTRACT_BOUND_MS pace_ms(4000)
enum { CONTRACT_DRIFT_MS = 5 };

typedef struct contract {
    dibs__store *st[CONTRACT_HANDLES];
    int bell[CONTRACT_HANDLES];
    dibs__notice heard[CONTRACT_HANDLES][CONTRACT_HEARD];
    size_t heard_count[CONTRACT_HANDLES];
    char name[64]; /* used by no other test, in no other run */
} contract;

typedef struct actor {
    contract *t;
    size_t handle;
    char owner[DIBS_OWNER_SIZE];
    dibs__ask ask; /* an exclusive one for 10 s; change what is of interest */
    dibs__answer ans;    /* to the last ask */
    dibsx_nsec asked_at; /* before that was sent */
    bool may_fail;       /* that the store cannot is one of the answers */
    dibs_error err;
} actor;

/* Each runs one group of tests and returns how many failed. */
int contract_lease(void);
int contract_renew(void);
int contract_leave(void);
int contract_kind(void);
int contract_reader(void);
int contract_permit(void);
int contract_wait(void);
int contract_place(void);
int contract_doorbell(void);
int contract_convert(void);
int contract_durable(void);
int contract_lacks(void);
int contract_all(void);
int contract_yield(void);
int contract_value(void);
int contract_change(void);
int contract_log(void);
int contract_events(void);
int contract_topic(void);
int contract_rate(void);
int contract_meter(void);
int contract_roster(void);
int contract_roster_twin(void);
int contract_queue(void);
int contract_queue_care(void);
int contract_queue_crowd(void);
int contract_queue_done(void);
int contract_queue_peers(void);
int contract_queue_twin(void);
int contract_commit(void);
int contract_index(void);
int contract_monitor(void);
int contract_thread(void);

/* NULL when the store can do it, else why it cannot. */
const char *contract_lack(dibs__ability what);

void contract_url_set(const char *url);
dibs__store *contract_open(void); /* closed with dibs__store_close() */

/* Opens the doorbell of a handle. A server that takes its time has none at first. */
void contract_open_doorbell(contract *t, size_t handle);
int contract_setup(void **state);
int contract_teardown(void **state);

#define CONTRACT_TEST(fn)                                                      \
    cmocka_unit_test_setup_teardown(fn, contract_setup, contract_teardown)

/* Skips the test where the store says that it cannot do this, and prints why.
 * On the thread of the test alone. */
void contract_needs(const contract *t, dibs__ability what);

/* A fresh owner, or name, into `out`. */
void contract_owner(char out[DIBS_OWNER_SIZE]);
void contract_name(char *out, size_t size, const char *label);

/* How long a lease lasts that is to end soon: longer on a slow machine, but no longer
 * than places and claims do. */
int64_t contract_brief_ms(int64_t span_ms);

dibsx_nsec contract_soon(void); /* a deadline that no working store misses */
int64_t contract_ms_since(dibsx_nsec from_at);

/* Waits for a moment. Only for what is defined by time: expiry. */
void contract_sleep_until(dibsx_nsec until);

/* Ends the program when the test has worked for so long, sleep apart, that a place or a
 * claim may have ended meanwhile: for what is wrong and may be so for that reason. */
void contract_check_pace(void);

/* As in check.h. Also a status that is none of lateness may be due to a place that was
 * lost. */
#undef assert_status
#define assert_status(call, expected)                                          \
    do {                                                                       \
        dibs_status rc_ = (dibs_status)(call);                                 \
        if (rc_ != (expected)) {                                               \
            contract_check_pace();                                             \
            FAIL_OF(rc_, "%s is %s, not %s", #call, dibs_status_name(rc_),     \
                    dibs_status_name(expected));                               \
        }                                                                      \
    } while (0)

/* An actor of a fresh owner on the test's name; one that shares it; one that
 * wants permits of it. */
actor contract_actor(contract *t, size_t handle);
actor contract_sharer(contract *t, size_t handle);
actor contract_permits(contract *t, size_t handle, uint32_t permits,
                       uint32_t capacity);

dibs_status actor_try(actor *a);   /* asks without joining the queue */
dibs_status actor_queue(actor *a); /* asks, joining the queue */
dibs_status actor_renew(actor *a, int64_t ttl_ms, int64_t *left_ms);
dibs_status actor_release(actor *a);
dibs_status actor_leave(actor *a, bool unanswered, int64_t keep_ms);

/* Turns its lease, under the fence of the last answer, which stays as it is. */
dibs_status actor_convert(actor *a, dibs__mode mode, const actor *to,
                          int64_t ttl_ms, dibs__answer *ans);

/* Asks until the answer is not DIBS_BUSY, with the flags of the ask. It is late after
 * `bound_ms`. */
dibs_status actor_until(actor *a, int64_t bound_ms);

/* Waits for a notice to this owner; false when none comes in time. */
bool actor_notified(actor *a, dibs__notice_kind kind, uint64_t *fence);

/* True when a notice to this owner is there by now; does not wait. */
bool actor_hears(actor *a, dibs__notice_kind kind);

/* No such notice to this owner is there, nor on its way: what is sent after it has
 * come meanwhile. */
void actor_expect_quiet(actor *a, dibs__notice_kind kind);

/* The waiter `next` was served by the step before: it is notified, above its
 * watermark, and holds a claim under that fence. */
void actor_expect_claim(actor *next);

/* The entries of a name, copied; 0 when the name is not in use. */
typedef struct contract_view {
    dibs__entry entries[CONTRACT_ENTRIES];
    size_t count;
} contract_view;
size_t contract_look(contract *t, const char *name, contract_view *out);

/* Looks until there are so many, as others expire. */
void contract_await(contract *t, const char *name, size_t count,
                    contract_view *out);

#endif
