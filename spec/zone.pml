/* zone.pml - the ticks of one job, by nodes with different zone data.
 *
 * The schedule has the local times 1..K. A new law moves them by an hour: table 0 has the
 * local time k at the moment 2k, table 1 at 2k+1. The state of the job keeps when it is due
 * next, as moment and as local time, as its last writer saw it. A node that ticks obeys
 * it, and writes the next by its own table.
 *
 * Checked: I4, a local time runs once, and none is left out.
 *
 * NO_LOCAL takes rule 4 of src/jobs/cron.h out: the next is only a later moment, and may be
 * the same local time. */
/* SPDX-License-Identifier: MIT */

#ifndef K
#define K 3
#endif
byte now, last, loc, next = 2, nextlocal = 1, ran[K + 2];
byte k;
inline follow(table) { /* the first local time after the last tick, by this table */
    k = 1;
    do
#ifdef NO_LOCAL
    :: k <= K && !(2 * k + table > last) -> k++
    :: k > K || 2 * k + table > last -> break
#else
    :: k <= K && !(k > loc && 2 * k + table > last) -> k++
    :: k > K || (k > loc && 2 * k + table > last) -> break
#endif
    od;
    next = 2 * k + table; nextlocal = k; k = 0
}
active proctype world() {
    byte t;
    do
    :: atomic { now < 2 * K + 3 -> now++ }
    :: atomic { nextlocal <= K && now >= next -> select(t : 0 .. 1);
        last = next; loc = nextlocal; ran[loc]++; assert(ran[loc] <= 1);
        follow(t);
        t = 0 }
    :: now == 2 * K + 3 && nextlocal > K -> for (k : 1 .. K) { assert(ran[k] == 1) } break
    od
}
