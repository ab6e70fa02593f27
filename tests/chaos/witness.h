/* witness.h - a database of effects: what the processes of the queue ground did, written
 * down where no store of ours has a hand in it.
 *
 * An effect is committed before its item is acked, so an item that was accepted has one.
 * check_queue.py looks at it afterwards. The tables are in witness.c. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_WITNESS_H
#define DIBS_TESTS_CHAOS_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a request ended, as its process was told. */
typedef enum outcome {
    OUTCOME_NONE, /* it died before it was told */
    OUTCOME_OK,   /* made, or accepted */
    OUTCOME_NOT,  /* certainly not */
    OUTCOME_UNSURE,
    OUTCOME_GONE /* of a redrive: there is no such letter */
} outcome;

typedef struct pushed {
    uint64_t seq; /* the number of the item in this run: its data */
    uint64_t id;  /* with OUTCOME_OK */
    outcome how;
    uint64_t delay_ms; /* 0: none */
    uint32_t tries;    /* 0: the queue's */
    uint32_t worker;   /* whose it is; 0: anybody's */
    uint64_t sent_us;  /* on the wall clock, which is the store's too */
} pushed;

typedef enum ending { END_ACK, END_NACK, END_DEAD } ending;

typedef struct effect {
    uint64_t id, fence, seq;
    uint32_t attempt, lost;
    uint64_t at_us; /* when it had been delivered */
    ending end;     /* how it is to be settled, */
    uint64_t delay_ms;
    uint64_t sent_us; /* since when, */
    outcome how;      /* and what that was answered */
} effect;

/* A dead letter that is left. Its reason is the fence of the delivery that said so; 0: no
 * consumer did. */
typedef struct letter {
    uint64_t id, seq, reason;
    uint32_t attempts, lost;
} letter;

uint64_t wall_us(void);

typedef struct witness witness;

/* NULL when it cannot be opened; why is on stderr. Close it with witness_close(). */
witness *witness_open(const char *folder);
void witness_close(witness *wn); /* NULL is a no-op */

/* Each is one transaction; a failure ends the process. `who` tells one process from all
 * others. */
void witness_push(witness *wn, int queue, uint64_t who, const pushed *all,
                  size_t count);
void witness_pushed(witness *wn, const pushed *all, size_t count);
void witness_told(witness *wn, int queue, const effect *all, size_t count);

/* Before and after a redrive of the item that a delivery has made a dead letter. */
void witness_redrive(witness *wn, int queue, const effect *dead);
void witness_redriven(witness *wn, int queue, const effect *dead, outcome how);
void witness_letter(witness *wn, int queue, const letter *lt);

/* A process takes items as this worker. */
void witness_worker(witness *wn, uint64_t who, uint32_t worker);

/* Commits the effects if `is_valid` says so at the end; else there are none. */
bool witness_effects(witness *wn, int queue, uint64_t who, const effect *all,
                     size_t count, bool (*is_valid)(void *arg), void *arg);

/* What the store was told before the end of this span may be gone. */
void witness_loss(witness *wn, uint64_t from_us, uint64_t to_us);

/* What the store has at the end. */
typedef struct left {
    uint64_t pushed, acked, ready, later, out, dead, nacked, died;
} left;

void witness_end(witness *wn, int queue, const left *at_end, uint64_t faults);

#endif
