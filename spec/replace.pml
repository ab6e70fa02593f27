/* replace.pml - concurrency: replace, and with QUEUE concurrency: queue. The ticks 1..K each
 * make a run; a run that lives has to end before the next begins.
 *
 * The state of the job names the run that lives and the one that follows it. A tick and the
 * end of a run are commits on that state. Under replace the run that lives is told to end,
 * and one that followed it never begins. The order to end may be lost: the node then finds
 * it in the record when it next looks. Under queue the run that lives ends by itself; a tick
 * that finds one waiting is skipped, and the time of one that waits may be over. A node may
 * die; its trees are dead before its lease ends.
 *
 * Checked: I10, one tree lives at a time; no run follows when none lives; runs begin in the
 * order of their ticks; no run waits that the state does not name, and it names none that has
 * ended.
 *
 * Switches take rules of src/jobs/run_machine.h out:
 *   NO_VERSION  a tick is carried out on what was read, whatever happened since
 *   AT_ONCE     the new run is ready at once, while the old one is told to end
 *   END_FIRST   the end is committed before the tree is dead
 *   FREE_DEAD   the run of a dead node is ended before its lease is
 *   OVERWRITE   (queue) a tick takes the place of the run that waits
 *   STAYS       (queue) a run whose time is over stays the one that follows
 *   PASSED_OVER the end of a run does not let the next one begin */
/* SPDX-License-Identifier: MIT */

#ifndef K
#define K 3
#endif
#define NODES 2
#ifdef END_FIRST
#define KILL(n, i) skip
#else
#define KILL(n, i) proc[n * (K + 1) + i] = false
#endif
#define NONE 0
#define WAIT 1
#define READY 2
#define RUN 3
#define ENDED 4
#define SKIPPED 5
#if defined(QUEUE) && !defined(OVERWRITE)
#define HAS_PLACE && ts_ == 0
#else
#define HAS_PLACE
#endif
byte live, succ, ver = 1;             /* the job's record */
byte st[K + 1], owner[K + 1];         /* the runs' */
bool cancel[K + 1], ring[NODES];
byte ticks;                           /* ticks dealt with */
byte tv, tl, ts_; bool treq;          /* a tick on its way: what was read */
bool dead[NODES], proc[NODES * (K + 1)], lease[NODES] = true;
byte last;                            /* the run that began last */
byte alive, i, n;

inline check() {
    alive = 0;
    for (i : 0 .. NODES * (K + 1) - 1) { alive = alive + proc[i] }
    assert(alive <= 1);
    assert(succ == 0 || live != 0);   /* nobody waits behind nobody */
    assert(succ == 0 || st[succ] == WAIT);
    assert(live == 0 || st[live] == READY || st[live] == RUN);
    for (i : 1 .. K) { assert(st[i] != WAIT || succ == i) }
    i = 0; alive = 0
}
inline end_run(r) { /* one commit: the run ends, its successor is ready */
    st[r] = ENDED; ver++;
#ifdef PASSED_OVER
    if :: live == r -> live = 0 :: else fi
#else
    if :: live == r -> live = succ; if :: succ -> st[succ] = READY; succ = 0 :: else fi
       :: else fi
#endif
}
active proctype world() {
    do
    :: atomic { !treq && ticks < K -> treq = true; tv = ver; tl = live; ts_ = succ; check() }   /* reads */
    :: atomic { treq ->                                                                        /* commits */
#ifdef NO_VERSION
        if :: true ->
#else
        if :: ver == tv ->
#endif
              ticks++; ver++;
              if
              :: tl == 0 -> st[ticks] = READY; live = ticks
#ifdef QUEUE
#ifndef OVERWRITE
              :: tl != 0 && ts_ != 0 -> st[ticks] = SKIPPED
#endif
#endif
              :: tl != 0 HAS_PLACE ->
#ifndef QUEUE
                  if :: ts_ -> st[ts_] = ENDED :: else fi;
                  cancel[tl] = true;
                  if :: ring[owner[tl]] = true :: skip fi;
#endif
#ifdef AT_ONCE
                  st[ticks] = READY; live = ticks
#else
                  st[ticks] = WAIT; succ = ticks
#endif
              fi
           :: else fi;
        treq = false; tv = 0; tl = 0; ts_ = 0; check() }
#ifdef QUEUE
    :: atomic { succ != 0 -> st[succ] = ENDED; ver++;                                          /* its time is over */
#ifndef STAYS
        succ = 0;
#endif
        check() }
#endif
    :: atomic { select(n : 0 .. NODES - 1);
        if
        :: !dead[n] && live && st[live] == READY ->
            assert(live > last); last = live;
            st[live] = RUN; owner[live] = n; ver++; proc[n * (K + 1) + live] = true
        :: !dead[n] -> /* the process of one of its runs ends by itself, or is told to: killed first, then the commit */
            for (i : 1 .. K) { if :: proc[n * (K + 1) + i] && st[i] == RUN -> KILL(n, i); end_run(i); break
                     :: proc[n * (K + 1) + i] && st[i] == ENDED -> proc[n * (K + 1) + i] = false; break
                     :: else fi }
            i = 0; ring[n] = false
        :: !dead[n] && (n == 1) -> dead[n] = true              /* dies; guard or deadline kills the tree before the lease ends */
        :: dead[n] && lease[n] -> lease[n] = false; for (i : 1 .. K) { proc[n * (K + 1) + i] = false } i = 0
        :: !dead[n] ->
            for (i : 1 .. K) {
                if
#ifdef FREE_DEAD
                :: st[i] == RUN && owner[i] != n && dead[owner[i]] -> end_run(i)
#else
                :: st[i] == RUN && owner[i] != n && !lease[owner[i]] -> end_run(i)
#endif
                :: else fi
            }
            i = 0
        :: else
        fi; n = 0; check() }
    od
}
