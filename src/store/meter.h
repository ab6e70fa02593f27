/* meter.h - the meter step of the store contract, and its rule.
 *
 * A meter counts calls that ended well, badly or slowly, in a window that slides, for
 * one version of a value. With another version the count begins anew: the calls of an
 * earlier version are counted no more, and reports of them are refused. So who changes
 * the value if it is still of this version decides by calls of this version alone.
 *
 * The window is up to DIBS__METER_CELLS cells, each with the calls of a tenth of it. A
 * cell that began before the window counts no more, so that too few are counted, never
 * too many. The clock is the store's. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_METER_H
#define DIBS_STORE_METER_H

#include "base/clock.h"
#include <dibs/types.h>

struct dibs__store;

enum {
    DIBS__METER_CELLS = 10,
    DIBS__METER_MARKS = 32, /* bits for reporters */
    DIBS__METER_STATE = 32, /* of the bytes of the value, with a NUL */
    DIBS__METER_TEXT = 1024
};

/* A report is of no more calls, and a window no longer. */
#define DIBS__METER_CALLS_MAX INT64_C(1000000000)
#define DIBS__METER_MAX_MS    INT64_C(86400000)

typedef struct dibs__meter {
    const char *key;   /* of the value */
    uint64_t version;  /* that the calls were begun under; 0: there was none */
    int64_t window_ms; /* 1 to DIBS__METER_MAX_MS */
    int64_t good;      /* calls, as the next two; all 0: only a look */
    int64_t bad;
    int64_t slow;  /* these are among the good and the bad */
    uint32_t mark; /* the reporter's, below DIBS__METER_MARKS; it is set with
                      calls that were bad or slow */
} dibs__meter;

typedef struct dibs__sums {
    int64_t good; /* in the window, with this report */
    int64_t bad;
    int64_t slow;
    uint32_t reporters; /* of bad or slow calls: at least so many; two with the
                           same mark count as one */
    uint64_t version;   /* of the value; 0: there is none */
    int64_t expires_ms; /* of the value, from now; -1: never */
    char state[DIBS__METER_STATE]; /* its first bytes, up to a NUL */
} dibs__sums;

typedef struct dibs__meter_ops {
    /* DIBS_OK: counted. DIBS_STALE: the value has another version; nothing was
     * counted, and of *out only what is about the value is set. DIBS_INVALID: as
     * dibs__meter_check() has it. NOT idempotent: a report that had no answer may
     * have been counted, and is not sent again. */
    dibs_status (*meter)(struct dibs__store *st, const dibs__meter *report,
                         dibsx_nsec deadline, dibs__sums *out, dibs_error *err);
} dibs__meter_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__METER_STEPS(X) X(meter, METER)

typedef struct dibs__meter_cell {
    int64_t start_ms; /* on the clock of the store */
    int64_t good, bad, slow;
    uint32_t marks;
} dibs__meter_cell;

/* All that a store keeps of a meter. Zeroed: nothing was counted. */
typedef struct dibs__meter_window {
    uint64_t version;
    size_t count;
    dibs__meter_cell cells[DIBS__METER_CELLS]; /* the newest first */
} dibs__meter_window;

/* Refuses what cannot be counted, with DIBS_INVALID. Every store starts with it.
 * Pure, as all that follow. */
DIBS_MUST_CHECK dibs_status dibs__meter_check(const dibs__meter *report,
                                              dibs_error *err);

/* The rule, for a report whose version is that of the value. True: *window has changed
 * and is to be kept for report->window_ms. Lua and PL/pgSQL have it too (meter.lua,
 * meter.sql). */
bool dibs__meter_add(dibs__meter_window *window, const dibs__meter *report,
                     int64_t now_ms, dibs__sums *out);

/* A window as text: VERSION, then START GOOD BAD SLOW MARKS of each cell. False when it
 * is none. */
void dibs__meter_write(const dibs__meter_window *window,
                       char out[DIBS__METER_TEXT]);
bool dibs__meter_read(const char *text, dibs__meter_window *out);

/* Puts the first bytes of the value into the answer. */
void dibs__meter_state(dibs__sums *out, const void *data, size_t len);

/* The status of a step whose answer is `out`. */
DIBS_MUST_CHECK dibs_status dibs__meter_status(const dibs__meter *report,
                                               const dibs__sums *out,
                                               dibs_error *err);

#endif
