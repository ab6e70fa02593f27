/* record.h - what a run writes down, in files that are mapped into memory and so
 * survive the death of whoever writes them.
 *
 *   run              what is run, and what all processes share
 *   faults           each fault: when, on whom, until when
 *   bank             each read and write of the fenced resource
 *   log-WORKER-LIFE  the operations of one process
 *   slept            how long the machine is said to have slept, in microseconds
 *
 * All moments are on CLOCK_MONOTONIC of the one machine and what it slept, in
 * nanoseconds. A field that was not reached is 0, so an operation whose process died
 * has no answer. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_RECORD_H
#define DIBS_TESTS_CHAOS_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WORKERS_MAX = 64,
    KEYS = 8,         /* names that are leased */
    VALUES = 4,       /* values that are read and written */
    CAPACITY = 3,     /* of each semaphore */
    ELECTIONS = 2,    /* the second needs most workers alive */
    LATCH_COUNT = 12, /* ids that each latch waits for */
    PARTIES = 3,      /* of the one barrier */
    MEETERS = 4,      /* workers that come to it: one too many */
    MEET_MS = 400,    /* how long one that breaks it waits there */
    THRESHOLD = 3,    /* bad calls that open the one breaker */
    PROBES = 2,       /* of it at a time */
    NEED = 2,         /* good probes that close it */
    LIMIT_RATE = 50,  /* tokens each second, of the one limit */
    LIMIT_BURST = 10,
    CLAIM_MS = 3000,  /* who waited has the lease for so long at first */
    LOG_ROOM = 50000, /* records of one worker process */
    FAULTS_ROOM = 200000,
    BANK_ROOM = 8000000
};

#define NOBODY       UINT32_MAX /* a fault that is on no worker */
#define LEFT_UNKNOWN UINT32_MAX /* the store could not be asked */

typedef enum key_kind {
    KEY_MUTEX,
    KEY_STICKY, /* a mutex that is kept after release */
    KEY_REENTRANT,
    KEY_READ_WRITE,
    KEY_SEMAPHORE
} key_kind;

key_kind kind_of(uint32_t key);
const char *kind_name(key_kind kind);

typedef enum operation {
    OP_HOLD,
    OP_GET,
    OP_SET,
    OP_CAS,
    OP_LEAD,   /* a term, from gained to lost */
    OP_COUNT,  /* an id counts at a latch */
    OP_WAIT,   /* for a latch, or a look at it */
    OP_TAKE,   /* of tokens */
    OP_MEET,   /* a wait at the barrier; `fence` is its generation */
    OP_CALL,   /* behind the breaker, until released_ns */
    OP_PERMIT, /* a probe asks the store for one, and has it until released_ns */
    OP_CHANGE, /* of the state of the breaker */
    OP_PAUSE,  /* the process was not run, or its clock went forward */
    OP_HAND    /* a leader gives its term up */
} operation;

/* How it does. */
enum { HAND_RESIGN, HAND_ON };

/* The state of the breaker. */
enum { SEEN_NOTHING, SEEN_CLOSED, SEEN_OPEN };

/* One operation. A hold is an acquire and what came of it: the program relies on
 * the lease from from_ns, its first look that found it valid, until the end of the
 * validity that its last such look was told, or until it gave it back or was told
 * of its loss. It is there only if from_ns is, which is written last.
 *
 * A term is written by the callbacks of its election, `key`: gained at invoked_ns, lost from
 * told_ns to released_ns, and each as often as `value` and `expected` say. from_ns and
 * looked_ns are of looks that found it leading, missed_ns of the one in the lost
 * callback that did not.
 *
 * A leader gives the term `fence` of the election `key` up as `value` says.
 *
 * Each latch has a number, `key`, and is used for one round. `value` is the id that
 * counted, `expected` how many ids were missing by the answer.
 *
 * Of a call that the breaker let pass, `permits` is 1 for a probe with a permit of the store,
 * `exclusive` says that the client let a probe pass without one, and `value` is 1 when the
 * call was good. `fence` is the version of the state that it began under, `expected` that
 * state; SEEN_NOTHING: not known. A change replaces the version `expected` with `fence`,
 * which has the state `value`. */
typedef struct record {
    int64_t invoked_ns;
    int64_t returned_ns;
    int64_t queued_ns; /* the store had given it a place by then */
    int64_t from_ns;
    int64_t looked_ns; /* the last look that found it valid */
    int64_t valid_ns;  /* the end of its validity, as of that look */
    int64_t told_ns;   /* the loss was announced */
    int64_t missed_ns; /* a look found it lost */
    int64_t released_ns;
    uint64_t fence;    /* of a value: its version */
    uint64_t expected; /* version, of a compare-and-set */
    uint64_t value;    /* what was written or read */
    char owner[33];
    uint8_t op;       /* operation */
    bool exclusive;   /* alone, or the writer */
    bool waited;      /* joined the queue in order */
    uint32_t key;     /* of a value: which one */
    uint32_t permits; /* of CAPACITY; a reader is 0 */
    int32_t status;   /* of the call; meaningless until returned_ns */
    int32_t release_status;
} record;

typedef struct record_log {
    uint32_t worker;
    uint32_t life;
    int64_t began_ns;
    atomic_uint count;
    record records[LOG_ROOM];
} record_log;

/* What a store may have lost by a fault. */
typedef enum loss {
    LOSS_NONE,
    LOSS_WRITES, /* what it had answered */
    LOSS_SPLIT   /* ... with two at once who answer for it */
} loss;

enum { FAULT_NAME = 16 };

/* The boot clock of a worker, or with NOBODY of all, goes forward by more than the
 * ttl: the checker knows it by this name. */
#define SUSPEND "suspend"

/* Servers changed roles without a fault, some time before. */
#define UNASKED "unasked"

typedef struct fault_entry {
    int64_t from_ns;
    int64_t to_ns; /* healed; 0: never */
    uint64_t dice; /* what was drawn for it */
    uint32_t worker;
    uint8_t loss; /* loss: what the store may have lost by it */
    char name[FAULT_NAME];
} fault_entry;

typedef struct fault_log {
    atomic_uint count;
    fault_entry entries[FAULTS_ROOM];
} fault_log;

/* One request to the bank, in the order in which it was served. */
typedef struct bank_entry {
    int64_t at_ns;
    uint64_t fence;
    uint64_t value;    /* read, or to be written */
    uint64_t based_on; /* of a write: what was read before */
    uint32_t key;
    uint32_t worker;
    bool write;
    bool accepted;
} bank_entry;

typedef struct bank_log {
    atomic_uint count;
    bank_entry entries[BANK_ROOM];
} bank_log;

/* What a worker is asked to do to itself, as bits. */
enum {
    TRIAL_SIGNALS = 1, /* a signal every millisecond, while it is set */
    TRIAL_FORK = 2,
    TRIAL_CANCEL = 4,
    TRIAL_SLEEP = 8 /* its boot clock goes forward while it holds */
};

enum { URL_ROOM = 640, NAME_ROOM = 32 };

typedef struct run_file {
    char url[URL_ROOM];
    char topology[NAME_ROOM];
    char durability[16];
    uint64_t seed;
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t stop_ms;    /* of a leader */
    int64_t timeout_ms; /* of one step */
    uint32_t workers;
    uint32_t rest_us; /* at most, after each turn of a worker */
    bool patient; /* an acquire that waits must not fail, whatever the store */
    int64_t began_ns;
    _Atomic(int64_t) calm_ns; /* all faults were healed by then */
    _Atomic(int64_t) ended_ns;
    atomic_bool over; /* workers are to end */
    atomic_uint_fast64_t operations;
    atomic_uint_fast64_t holds;
    atomic_uint failures; /* workers that ended as none may */
    atomic_uint left;     /* names in use when all had gone, or LEFT_UNKNOWN */
    atomic_uint latch;    /* the one that is counted at */
    atomic_uint trials[WORKERS_MAX];
    atomic_uint trials_done;
    atomic_bool holding[WORKERS_MAX];
    atomic_bool ready[WORKERS_MAX]; /* has its files, and can do with fewer */
} run_file;

int64_t now_ns(void);
int64_t steady_ns(void); /* of the machine, without its sleep */

/* From now on the sleep of the machine counts here, too. */
void share_sleep(const char *folder);

/* All who share it have slept so long. */
void sleep_machine(int64_t span_us);

/* How long a sleep is after which no lease is left. */
int64_t sleep_us(int64_t ttl_ms, uint64_t dice);

/* Maps a file of the run, making it if it is not there; ends the process when it
 * cannot. */
void *map_file(const char *folder, const char *name, size_t size);

/* Whether a worker that gives up at the barrier breaks the generation. */
static inline bool breaks_barrier(uint32_t worker)
{
    return worker % 2 == 0;
}

/* How long it waits there: one that breaks nothing longer than the seat of a party that
 * died may last, so that it can hear of its end. */
static inline int64_t meet_ms(uint32_t worker, int64_t ttl_ms)
{
    return breaks_barrier(worker) ? MEET_MS : ttl_ms + 3000;
}

/* The name of a key in the store. */
void key_name(uint32_t key, char out[NAME_ROOM]);

/* The name of a worker's log. */
void log_name(uint32_t worker, uint32_t life, char out[NAME_ROOM]);

#endif
