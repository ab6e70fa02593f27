/* breaker_machine.h - one client's part of a circuit breaker, without I/O. Pure.
 *
 * The state is a value of the store, `closed` or `open`; its version is what calls
 * belong to. Half-open is not a state: it is `open` and recovered, and then a call
 * needs a permit of the store: it is a probe.
 *
 *            bad calls of v1 reach the threshold, or a rate: put(open, if v1)
 *   CLOSED v1 ---------------------------------------------------------> OPEN v2
 *      ^                                        bad probe of v2:           |  | recovery
 *      |                                        put(open, if v2) = v3 <----+  v
 *      |   `need` good probes of v2: put(closed, if v2)                OPEN v2, recovered:
 *      +-------------------------------------------------------------- a probe for each
 *                                                                      of `probes` permits
 *
 * Beside that a client decides for itself. TRIPPED: its own calls reach the threshold,
 * and it waits for nobody. RESUMED: the store is away, and its own probes went well.
 * Each of these, and each version, is a generation of its own.
 *
 *   (C1) It opens only for bad calls that began under the version that is replaced.
 *   (C2) It closes only for good probes of the version that is replaced.
 *   (C3) No more than `probes` permits are valid, of all clients; a probe begins only
 *        under a valid one, in the generation that it was asked for in. A client
 *        without the store has one probe at a time.
 *   (C4) The permit of a probe that never ends is free after its ttl.
 *   (C5) No call is counted twice: a report that had no answer is forgotten.
 *   (C6) A change reaches a client by the notice of its topic, or by the next report
 *        or look. After an ear that begins to hear there is a look that begins later, and a
 *        look that a notice overtakes is followed by another.
 *   (C7) A notice that shows the state is believed if its version is higher than the one
 *        known. One that was late says that it recovers later than it does: the next look
 *        mends that.
 *
 * Time is an argument, on a clock that does not go back. Everything here is for one
 * thread at a time, but for the functions named _at_once (breaker_data.h). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_BREAKER_MACHINE_H
#define DIBS_COORD_BREAKER_MACHINE_H

#include "coord/breaker_data.h"

void dibs__breaker_init(dibs__breaker *br, const dibs__breaker_rules *rules,
                        bool shared, uint64_t seed);

typedef enum dibs__enter_todo {
    DIBS__ENTER_PASS,
    DIBS__ENTER_REFUSED,
    DIBS__ENTER_LOOK, /* sends dibs__breaker_report(), then enters again */
    DIBS__ENTER_ASK   /* asks for the permit pass->permit; then
                         dibs__breaker_answered() */
} dibs__enter_todo;

/* A call wants to begin. */
dibs__enter_todo dibs__breaker_enter(dibs__breaker *br, dibsx_nsec now,
                                     dibs__breaker_pass *pass);

/* The permit with this number, NULL when there is none. */
dibs__breaker_permit *dibs__breaker_permit_of(dibs__breaker *br, uint64_t id);

/* The store answered about a permit that lives until valid_until. PASS: the call is a
 * probe. REFUSED. LOOK: nothing is certain any more; the call enters again. */
dibs__enter_todo
dibs__breaker_answered(dibs__breaker *br, const dibs__breaker_pass *pass,
                       dibsx_nsec now, dibs_status rc, dibsx_nsec valid_until,
                       int64_t left_ms);

/* A call ended. A slow one is one that is too slow. */
void dibs__breaker_left(dibs__breaker *br, const dibs__breaker_pass *pass,
                        bool good, bool slow, dibsx_nsec now);

/* How long until a call may pass; 0: it may now; -1: nobody knows. Any
 * thread. */
int64_t dibs__breaker_retry_ms(const dibs__breaker *br, dibsx_nsec now);

/* The same, but for one that only looks until it has recovered. */
int64_t dibs__breaker_recover_ms(const dibs__breaker *br, dibsx_nsec now);

typedef enum dibs__breaker_todo {
    DIBS__BREAKER_SLEEP,   /* until `until` */
    DIBS__BREAKER_REPORT,  /* then dibs__breaker_metered() */
    DIBS__BREAKER_PUT,     /* then dibs__breaker_put_over() */
    DIBS__BREAKER_RELEASE, /* then dibs__breaker_released() */
    DIBS__BREAKER_EAR      /* it begins; then dibs__breaker_eared() */
} dibs__breaker_todo;

typedef struct dibs__breaker_act {
    dibsx_nsec until;
    dibs__meter report;        /* without the key */
    dibs__breaker_state state; /* PUT: that, in the place of `version`, */
    uint64_t version;
    int64_t ttl_ms;              /* ... for so long */
    dibs__breaker_permit permit; /* RELEASE */
} dibs__breaker_act;

/* The next thing to do beside calls. */
dibs__breaker_todo
dibs__breaker_next(dibs__breaker *br, dibsx_nsec now, dibs__breaker_act *act);

/* When there is something to do beside calls. */
dibsx_nsec dibs__breaker_wake_at(const dibs__breaker *br);

/* Whether something is to be sent before the breaker is given up; it is due then. */
bool dibs__breaker_pending(dibs__breaker *br, dibsx_nsec now);

/* Takes what is to be reported; it is not reported again. */
void dibs__breaker_report(dibs__breaker *br, dibsx_nsec now, dibs__meter *out);
void dibs__breaker_metered(dibs__breaker *br, dibsx_nsec sent_at,
                           dibsx_nsec now, dibs_status rc,
                           const dibs__sums *sums);

/* The value that the breaker was set to, by itself or by force. */
void dibs__breaker_put_over(dibs__breaker *br, const dibs__breaker_act *act,
                            dibsx_nsec now, dibs_status rc, uint64_t version);
void dibs__breaker_released(dibs__breaker *br, uint64_t id, dibsx_nsec now);
void dibs__breaker_eared(dibs__breaker *br, dibsx_nsec sent_at, dibsx_nsec now,
                         dibs_status rc);

/* The topic of the value told this version; and what it showed, "TTL_MS TEXT", if it did;
 * or tells may be missing. */
void dibs__breaker_told(dibs__breaker *br, uint64_t version, dibsx_nsec now);
void dibs__breaker_shown(dibs__breaker *br, uint64_t version, const char *shown,
                         dibsx_nsec now);
void dibs__breaker_missed(dibs__breaker *br, dibsx_nsec now);

/* Calls pass, as far as this client knows. */
bool dibs__breaker_passes(const dibs__breaker *br);

/* The text of a state in the store. */
const char *dibs__breaker_text(dibs__breaker_state state);
dibs__breaker_state dibs__breaker_parse(const char *text);

/* Checks C1 to C3, as far as one client can. NULL, or what does not hold. */
const char *dibs__breaker_check(const dibs__breaker *br, dibsx_nsec now);

#endif
