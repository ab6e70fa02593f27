/* record.h - what a worker writes down of each acquire, in a file that is mapped
 * into memory and so survives the worker's being killed.
 *
 * All moments are on CLOCK_MONOTONIC of the one machine, in nanoseconds. A field
 * that was not reached is 0. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_HISTORY_RECORD_H
#define DIBS_TESTS_HISTORY_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WORKERS = 16,
    KEYS = 8,
    TTL_MS = 200,
    LOG_ROOM = 50000, /* records of one worker process */
    STOPS_ROOM = 100000
};

typedef enum key_kind {
    KEY_MUTEX,
    KEY_REENTRANT,
    KEY_READ_WRITE,
    KEY_SEMAPHORE
} key_kind;

enum { CAPACITY = 3 }; /* of each semaphore */

key_kind kind_of(uint32_t key);

/* One acquire, and the hold that came of it. The program relies on the lease from
 * granted_ns to believed_ns, the last moment at which it looked and was told that
 * the lease was valid; it claims nothing after that. */
typedef struct record {
    int64_t invoked_ns;
    int64_t queued_ns; /* the store had given it a place by then */
    int64_t granted_ns;
    int64_t believed_ns;
    uint64_t fence;
    uint32_t key;
    uint32_t permits; /* of CAPACITY; a reader is 0 */
    int32_t status;   /* of the acquire */
    int32_t release_status;
    bool exclusive;
    bool waited; /* joined the queue in order */
} record;

typedef struct record_log {
    uint32_t worker;
    atomic_uint count;
    record records[LOG_ROOM];
} record_log;

typedef struct stop {
    uint32_t worker;
    int64_t from_ns;
    int64_t to_ns;
} stop;

/* What all processes of a run share. The bank is what the locks protect: it takes
 * a write only under a fence that is not older than any it has seen. */
typedef struct shared {
    atomic_uint_fast64_t holds;
    uint64_t holds_wanted;
    atomic_uint_fast64_t accepted;
    atomic_uint_fast64_t refused;
    _Atomic(uint64_t) bank[KEYS];
    atomic_bool holding[WORKERS];
    atomic_uint stop_count;
    stop stops[STOPS_ROOM];
} shared;

int64_t now_ns(void);

/* Maps a file of this size, making it if it is not there; ends the process when
 * it cannot. */
void *map_file(const char *path, size_t size);

#endif
