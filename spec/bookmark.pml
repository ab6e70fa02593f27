/* bookmark.pml - a step waits at a bookmark; CALLERS resume it, and its own time may end it.
 *
 * A caller takes the lock workflow:RUN:bookmark:ID without waiting (busy: "already in
 * progress"), works, and commits the result on the version that it read. It may stand still
 * until its lock is another's, and it may die.
 *
 * Checked: I12, the step goes on once, and the caller that is told "ok" gave the data; one
 * caller works at a time, as long as it believes in its lock.
 *
 * Switches take a rule out:
 *   NO_VERSION  the commit does not compare the version: the lock alone is to do
 *   NO_LOCK     no lock is taken */
/* SPDX-License-Identifier: MIT */

#define CALLERS 2
#define OUT 0
#define IN 1      /* holds the lock, has read the record */
#define WORKS 2
#define OK 3      /* told: resumed, with its data */
#define BUSY 4    /* told: already in progress */
#define LATE_ 5   /* told: was resumed before, or timed out */
bool waiting = true; byte ver = 1, resumed, winner = CALLERS; bool timed;
byte holder = CALLERS; byte pc[CALLERS], rv[CALLERS]; bool believes[CALLERS];
byte n, w, i;
inline check() {
    w = 0; for (i : 0 .. CALLERS - 1) { w = w + (pc[i] == WORKS && believes[i]) }
    assert(w <= 1);                                        /* one works at a time, as long as it believes in its lock */
    assert(resumed + timed <= 1);                          /* it goes on once */
    for (i : 0 .. CALLERS - 1) { assert(pc[i] != OK || winner == i) }  /* who is told ok gave the data */
    i = 0; w = 0
}
active proctype world() {
    do
    :: atomic { waiting -> waiting = false; timed = true; ver++; check() }          /* the sweep: its time is up */
    :: atomic { select(n : 0 .. CALLERS - 1);
        if
#ifdef NO_LOCK
        :: pc[n] == OUT -> believes[n] = true; rv[n] = ver; if :: waiting -> pc[n] = WORKS :: else -> pc[n] = LATE_ fi
#else
        :: pc[n] == OUT && holder == CALLERS -> holder = n; believes[n] = true; rv[n] = ver;
            if :: waiting -> pc[n] = WORKS :: else -> pc[n] = LATE_; holder = CALLERS; believes[n] = false fi
        :: pc[n] == OUT && holder != CALLERS -> pc[n] = BUSY
#endif
        :: believes[n] -> believes[n] = false                                       /* validity ends */
        :: holder == n && !believes[n] -> holder = CALLERS                          /* then the lease */
        :: pc[n] == WORKS ->                                                        /* commits, maybe long after */
#ifdef NO_VERSION
            if :: true -> resumed++; waiting = false; ver++; winner = n; pc[n] = OK fi;
#else
            if :: ver == rv[n] && waiting -> resumed++; waiting = false; ver++; winner = n; pc[n] = OK :: else -> pc[n] = LATE_ fi;
#endif
            if :: holder == n -> holder = CALLERS :: else fi; believes[n] = false
        :: pc[n] == BUSY -> pc[n] = OUT                                             /* tries again */
        :: else
        fi; n = 0; check() }
    od
}
