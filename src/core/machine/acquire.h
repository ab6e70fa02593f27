/* acquire.h - the acquire machine, without I/O: it decides on the next step.
 *
 *   STARTED --> LISTENING --> READY <-----------+----------+----------+
 *                            ^  |  asked        |          |          |
 *              time, notice  |  v               |          |          |
 *          WAITING, BACKING -+  ASKED           |          |          |
 *               ^               |  |  refused   |          |          |
 *               +-- goes on ----+  +--------+   | ask anew |          |
 *               |                           v   |          |          |
 *               +-- time up, cancelled --> LEAVING         |          |
 *                                           |   fell back  |     time |
 *                              end of a try +----> FALLING_BACK       |
 *                                           +----------------------> PAUSING
 *                                           +--> OVER
 *
 * READY asks. WAITING has a place in the queue. BACKING waits because the store
 * failed, or has no queue. LEAVING releases what the store has or may have of the
 * owner. FALLING_BACK changes to the fallback store. PAUSING waits between two tries.
 * A try ends in FALLING_BACK if the store was away and there is a fallback, in PAUSING
 * if it was busy or away and there are retries left, else in OVER. It ends in OVER at once
 * when the lease is held.
 *
 * Invariants, checked by dibs__acquire_check():
 *   (1) Asks are sent in READY only, one at a time: ASKED until the answer.
 *   (2) It is OVER with DIBS_OK only while the lease is valid. A lease that lapsed
 *       before the caller had it is released, and another owner asks.
 *   (3) In FALLING_BACK, PAUSING, and OVER without DIBS_OK, the owner has nothing:
 *       what the store had or may have had was released before.
 *   (4) Every sleep has an end, in WAITING and BACKING not after `until`.
 *   (5) Every try that is not cancelled asks at least once.
 *   (6) A try falls back once at most, and only if there is a fallback.
 *   (7) It is OVER with DIBS_UNAVAIL only when the store has nothing of it. If a
 *       release had no answer, it is DIBS_UNKNOWN.
 *
 * Threads: none of its own; the client's mutex guards it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_MACHINE_ACQUIRE_H
#define DIBS_CORE_MACHINE_ACQUIRE_H

#include "base/rand.h"
#include "core/machine/lease.h"

typedef enum dibs__acquire_state {
    DIBS__ACQUIRE_STARTED,
    DIBS__ACQUIRE_LISTENING,
    DIBS__ACQUIRE_READY,
    DIBS__ACQUIRE_ASKED,
    DIBS__ACQUIRE_WAITING,
    DIBS__ACQUIRE_BACKING,
    DIBS__ACQUIRE_LEAVING,
    DIBS__ACQUIRE_FALLING_BACK,
    DIBS__ACQUIRE_PAUSING,
    DIBS__ACQUIRE_OVER
} dibs__acquire_state;

/* The options of an acquire. */
typedef struct dibs__acquire_terms {
    int64_t wait_ms; /* of each try; 0: once, negative: without limit */
    uint32_t retries;
    int64_t retry_delay_ms;
    bool listen;     /* the doorbell is to be open before the first ask */
    bool fallback;   /* there is a fallback for a store that is away */
    bool asks_again; /* the store has no queue: a waiter asks again */
} dibs__acquire_terms;

typedef struct dibs__acquire {
    dibs__acquire_state state;
    dibs__acquire_terms terms; /* `retries` are those left */
    dibsx_prng *jitter;        /* borrowed */
    bool cancelled;            /* the wait is to end */
    bool nudged;               /* a notice may have been lost: ask again */
    bool asked;                /* there was an ask in this try */
    bool on_fallback;          /* this try uses the fallback */
    bool contended;            /* was refused or queued at some time */
    bool reached;              /* the owner may have something in the store */
    bool doubtful;             /* ... as an earlier one, whose release failed */
    bool under_replicated;     /* the store answers, and too few replicas do */
    bool fell_back;            /* a try used the fallback, this or an earlier */
    uint32_t polls; /* sleeps in the queue that nothing but time ended */
    uint32_t tries; /* begun: 1 in the first */
    uint32_t
        place; /* in the queue, from 1 on, as the latest answer has it; 0: that
                       gave none, or the owner leaves */
    int64_t backoff_ms;
    dibs_status answer;    /* the latest */
    dibs_status rc;        /* OVER: how it ended; LEAVING: how the try ends,
                              DIBS_OK to ask anew */
    dibsx_nsec started_at; /* the whole */
    dibsx_nsec until;      /* the end of this try */
    dibsx_nsec wake_at;    /* the end of this sleep */
} dibs__acquire;

/* The next step of the driver, which reports each but SLEEP and DONE when it
 * has done it. */
typedef enum dibs__acquire_step {
    DIBS__ACQUIRE_LISTEN, /* open the doorbell; then listened */
    DIBS__ACQUIRE_ASK,    /* asked, send, answered; from FREE by a new owner */
    DIBS__ACQUIRE_SLEEP,  /* until wake_at, or until something happens */
    DIBS__ACQUIRE_LEAVE,  /* give up what the owner has; then left */
    DIBS__ACQUIRE_FALL_BACK, /* use the fallback store; then fell_back */
    DIBS__ACQUIRE_DONE       /* `rc` is how it ended */
} dibs__acquire_step;

void dibs__acquire_start(dibs__acquire *aq, const dibs__acquire_terms *terms,
                         dibsx_prng *jitter, dibsx_nsec now);

/* Returns the next step. Time, a notice, a nudge and a cancel may change it,
 * and so does a lease that lapses. */
dibs__acquire_step
dibs__acquire_next(dibs__acquire *aq, const dibs__lease *ls, dibsx_nsec now);

void dibs__acquire_listened(dibs__acquire *aq, dibsx_nsec now);

/* Around an ask, after dibs__lease_asked() and dibs__lease_answered(). When there
 * was no owner to ask for, it is answered without having been asked. */
void dibs__acquire_asked(dibs__acquire *aq, const dibs__lease *ls);
void dibs__acquire_answered(dibs__acquire *aq, const dibs__lease *ls,
                            dibs_status rc, const dibs__answer *ans,
                            dibsx_nsec now);

/* `rc` is the answer to the release. */
void dibs__acquire_left(dibs__acquire *aq, const dibs__lease *ls,
                        dibs_status rc, dibsx_nsec now);
void dibs__acquire_fell_back(dibs__acquire *aq, dibs_status rc, dibsx_nsec now);

/* Whether it goes on if the store fails now. */
bool dibs__acquire_waits(const dibs__acquire *aq, dibsx_nsec now);

/* When an ask that is sent now must have ended: at the end of the wait, though
 * with a fair chance, and by `limit`. */
dibsx_nsec dibs__acquire_ask_until(const dibs__acquire *aq, dibsx_nsec limit,
                                   dibsx_nsec now);

/* Fails with DIBS_TIMEOUT. `err` (may be NULL) is that of the latest ask: what it
 * says of the holder, a second ago at most, goes into the message. */
dibs_status dibs__acquire_late(const char *name, dibs_error *err);

/* Turns the error detail of the latest ask into that of the acquire. */
void dibs__acquire_explain(const dibs__acquire *aq, const char *name,
                           dibs_error *err);

/* Aborts when an invariant does not hold. */
void dibs__acquire_check(const dibs__acquire *aq, const dibs__lease *ls);

#endif
