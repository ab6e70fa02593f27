/* graph.pml - the graph of a run: A and B, C that needs both, and D that needs C and has
 * `when: always`.
 *
 * The record of the run has all steps and one version. Each step runs at a node of its own,
 * and ends well or fails. The node reads the record, enters the end, settles what follows from
 * it, and commits; after another version, or without an answer, it reads again. A request
 * without an answer may be carried out later. CONTINUE: A has `on_failure: continue`; else
 * its failure is that of the run, as B's is.
 *
 * Checked:
 *   I11 a step opens once, after its needs: C if both are met, D when C has ended, however;
 *   with nothing under way, each step has ended: C is SKIPPED if a need is not met, and D
 *   has run.
 *
 * Switches take rules of src/jobs/run_graph.h out:
 *   NO_VERSION  the commit writes what the node worked out, whatever is there by now
 *   TWO_STEPS   the end is entered first; a second commit looks what
 *               follows, and its node may die in between
 *   ANY_NEED    a step opens when one of its needs is met
 *   AT_ONCE     `always` opens as soon as the run fails, whatever its needs do */
/* SPDX-License-Identifier: MIT */

#define STEPS 4
#define A 0
#define B 1
#define C 2
#define D 3
#define PENDING 0
#define READY   1
#define OK      2
#define FAILED  3
#define SKIPPED 4
#define ENDED(s) (s >= OK)
#ifdef CONTINUE
#define MET_A(s) (s == OK || s == FAILED)
#else
#define MET_A(s) (s == OK)
#endif
#define MET_B(s) (s == OK)

byte state[STEPS], ver = 1, opened[STEPS];      /* the store */
byte pc[STEPS];                                 /* of a node: 0 idle, 1 has read, 2 sent, 3 looks what follows, 4 done */
byte rv[STEPS], rs[STEPS * STEPS], out[STEPS];  /* what it read, and how its step ended */
bool late[STEPS];
byte w[STEPS], i, n;                            /* the record as it is written */
bool yes;

/* What follows from the ends of steps, in w. */
inline settle() {
    if
    :: w[C] == PENDING && (!MET_A(w[A]) && ENDED(w[A]) || !MET_B(w[B]) && ENDED(w[B])) -> w[C] = SKIPPED
#ifdef ANY_NEED
    :: w[C] == PENDING && (MET_A(w[A]) || MET_B(w[B])) -> w[C] = READY; opened[C]++
#else
    :: w[C] == PENDING && MET_A(w[A]) && MET_B(w[B]) -> w[C] = READY; opened[C]++
#endif
    :: else
    fi;
#ifdef AT_ONCE
    if :: w[D] == PENDING && (ENDED(w[C]) || w[A] == FAILED || w[B] == FAILED) -> w[D] = READY; opened[D]++ :: else fi
#else
    if :: w[D] == PENDING && ENDED(w[C]) -> w[D] = READY; opened[D]++ :: else fi
#endif
}

inline read(x) { rv[x] = ver; for (i : 0 .. STEPS - 1) { rs[x * STEPS + i] = state[i] } i = 0 }

inline commit(x) {
    yes = true;
#if !defined(NO_VERSION) && !defined(TWO_STEPS)
    if :: ver != rv[x] -> yes = false :: else fi;
#endif
    if
    :: yes ->
#ifdef TWO_STEPS
        state[x] = out[x];
#else
        for (i : 0 .. STEPS - 1) { w[i] = rs[x * STEPS + i] }
        i = 0; w[x] = out[x]; settle();
        for (i : 0 .. STEPS - 1) { state[i] = w[i]; w[i] = 0 }
        i = 0;
#endif
        ver++
    :: else fi
}

inline follow() { /* the second commit of TWO_STEPS */
    for (i : 0 .. STEPS - 1) { w[i] = state[i] }
    i = 0; settle();
    for (i : 0 .. STEPS - 1) { state[i] = w[i]; w[i] = 0 }
    i = 0
}

inline check() {
    assert(opened[C] <= 1 && opened[D] <= 1);
    assert(!(state[C] == READY || state[C] == OK || state[C] == FAILED) || MET_A(state[A]) && MET_B(state[B]));
    assert(!(state[D] != PENDING) || ENDED(state[C]))
}

/* Nothing is under way: nothing is left, either. */
inline quiet() {
    yes = true;
    for (i : 0 .. STEPS - 1) {
        if :: late[i] || state[i] == READY || pc[i] != 0 && pc[i] != 4 -> yes = false :: else fi
    }
    i = 0;
    if :: yes -> assert(ENDED(state[A]) && ENDED(state[B]) && ENDED(state[C]) && (state[D] == OK || state[D] == FAILED))
       :: else fi;
    yes = false
}

active proctype world() {
    atomic { state[A] = READY; state[B] = READY; opened[A] = 1; opened[B] = 1 }
    do
    :: atomic { select(n : 0 .. STEPS - 1);
        if
        :: pc[n] == 0 && (state[n] == READY || out[n] != 0) ->
            if :: out[n] == 0 -> if :: out[n] = OK :: out[n] = FAILED fi :: else fi;
            read(n);
            if :: ENDED(state[n]) -> pc[n] = 4 :: else -> pc[n] = 1 fi /* it was entered before: the answer was lost */
        :: pc[n] == 1 -> pc[n] = 2
        :: pc[n] == 2 -> commit(n);
#ifdef TWO_STEPS
            pc[n] = 3
#else
            if :: yes -> if :: pc[n] = 4 :: pc[n] = 0 fi :: else -> pc[n] = 0 fi
#endif
        :: pc[n] == 2 && !late[n] -> late[n] = true; pc[n] = 0         /* no answer; it may yet be carried out */
        :: pc[n] == 3 -> follow(); pc[n] = 4
        :: pc[n] == 3 -> pc[n] = 4                                     /* dies in between */
        :: late[n] && pc[n] == 4 -> commit(n); late[n] = false
        :: late[n] -> late[n] = false
        :: else
        fi; yes = false; n = 0; check(); quiet() }
    od
}
