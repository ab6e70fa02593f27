/* live.pml - that everybody gets a turn: the same queue as handoff.pml, with time
 * that presses.
 *
 * An exchange with the store takes no time. Every ring may be lost, LOSSES asks
 * and renewals fail, CRASHES owners die without a word. A tick does not pass while
 * a step is due: a waiter asks every POLL ticks. A holder first renews after a
 * third of what it was given, be it a claim or a whole lease, then every tick; a sticky
 * one that was handed a claim renews it at once, to learn whether another waits. Nobody
 * uses what it holds for longer than USE. What must hold is a bound on how
 * long anybody waits. A sticky holder keeps the lease after use until it learns
 * that another wants it. */
/* SPDX-License-Identifier: MIT */

#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef BOUND
#define BOUND 10
#endif

#define TTL   3
#define CLAIM 3
#define PLACE 3 /* so long a waiter keeps its place after an ask */
#define POLL  1
#define USE   2

#define NONE CLIENTS
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)

#define AWAY    0
#define WAITING 1
#define USING   2
#define RESTING 3 /* sticky: not in use, not given up */
#define DEAD    4

/* The store. */
byte holder = NONE, hleft;
byte pos[CLIENTS];   /* in the queue, from 1; 0: not in it */
byte place[CLIENTS]; /* what is left of its place */

/* The clients. */
byte state[CLIENTS];
byte due[CLIENTS];   /* ticks until it must act */
byte use[CLIENTS];   /* ticks until it is done */
byte valid[CLIENTS];
bool wanted[CLIENTS];
byte waited[CLIENTS];
byte losses = LOSSES, crashes = CRASHES;

/* For use within a step; zero between steps. */
byte j, n, head;

inline tidy() { j = 0; n = 0; head = 0 }

inline leave_queue(k) {
    for (j : 0 .. CLIENTS - 1) { if :: pos[j] > pos[k] -> pos[j]-- :: else fi }
    pos[k] = 0; place[k] = 0
}

inline serve(asker) {
    head = NONE;
    for (j : 0 .. CLIENTS - 1) { if :: pos[j] == 1 -> head = j :: else fi }
    if
    :: holder == NONE && head != NONE ->
        holder = head;
        hleft = (head == asker -> TTL : CLAIM);
        printf("  store: %c has it\n", 'A' + head);
        n = head;
        leave_queue(n)
    :: else
    fi
}

#ifdef STICKY
#define FIRST_RENEWAL 0
#else
#define FIRST_RENEWAL (hleft / 3)
#endif

inline take_up(i) {
    state[i] = USING; valid[i] = hleft; due[i] = FIRST_RENEWAL; use[i] = USE;
    wanted[i] = false; waited[i] = 0
}

inline do_ask(i) {
    printf("%c: asks\n", 'A' + i);
    state[i] = WAITING;
    due[i] = POLL;
    if
    :: holder != i && pos[i] == 0 ->
        n = 1;
        for (j : 0 .. CLIENTS - 1) { n = n + (pos[j] > 0) }
        pos[i] = n
    :: else
    fi;
    place[i] = PLACE;
    serve(i);
    if :: holder == i -> place[i] = 0; take_up(i) :: else fi
}

inline do_renew(i) {
    valid[i] = TTL; hleft = TTL; due[i] = 1;
#ifndef NO_RULE_8
    for (j : 0 .. CLIENTS - 1) { wanted[i] = wanted[i] || pos[j] > 0 }
#endif
}

inline do_release(i) {
    printf("%c: releases\n", 'A' + i);
    if :: holder == i -> holder = NONE; hleft = 0 :: else fi;
    state[i] = AWAY; valid[i] = 0; due[i] = 0; use[i] = 0; wanted[i] = false;
    serve(NONE)
}

#define HAS(i) (state[i] == USING || state[i] == RESTING)
#define DONE(i) (state[i] == USING && use[i] == 0)
#define GIVES_UP(i) (state[i] == RESTING && wanted[i])

#ifdef NO_POLL
#define POLLS false
#else
#define POLLS true
#endif

proctype Client(byte i) {
end:
    do
    :: d_step { state[i] == AWAY -> do_ask(i); tidy() }
    :: d_step { state[i] == WAITING && due[i] == 0 && POLLS -> do_ask(i); tidy() }
    :: d_step { state[i] == WAITING && due[i] == 0 && losses > 0 && POLLS ->
            losses--; due[i] = POLL; printf("%c: asks in vain\n", 'A' + i) }
    /* A ring is heard, if it is. */
    :: d_step { state[i] == WAITING && holder == i ->
            printf("%c: hears its ring\n", 'A' + i); take_up(i) }
    :: d_step { HAS(i) && due[i] == 0 -> do_renew(i); tidy() }
    :: d_step { HAS(i) && due[i] == 0 && losses > 0 -> losses--; due[i] = 1 }
#ifdef STICKY
    :: d_step { DONE(i) && !wanted[i] -> state[i] = RESTING; printf("%c: rests\n", 'A' + i) }
    :: d_step { state[i] == RESTING && !wanted[i] -> state[i] = USING; use[i] = USE }
    /* The ring of another that wants it. */
    :: d_step { HAS(i) && !wanted[i] && (pos[0] + pos[1] + pos[CLIENTS - 1] > 0) -> wanted[i] = true }
    :: d_step { (DONE(i) && wanted[i]) || GIVES_UP(i) -> do_release(i); tidy() }
#else
    :: d_step { DONE(i) -> do_release(i); tidy() }
#endif
    :: d_step { state[i] != AWAY && state[i] != DEAD && crashes > 0 ->
            crashes--; printf("%c: dies\n", 'A' + i);
            state[i] = DEAD; due[i] = 0; use[i] = 0; valid[i] = 0; wanted[i] = false; waited[i] = 0 }
    :: d_step { state[i] == DEAD && holder != i && pos[i] == 0 -> state[i] = AWAY } /* another */
    od
}

/* Nothing is due: time may pass. */
#define URGENT(i) ((state[i] == WAITING && due[i] == 0 && POLLS) || (HAS(i) && due[i] == 0) || \
                   DONE(i) || GIVES_UP(i))

proctype Clock() {
end:
    do
    :: d_step { !URGENT(0) && !URGENT(1) && !URGENT(CLIENTS - 1) ->
            printf("tick\n");
            hleft = LESS(hleft, 1);
            if :: hleft == 0 -> holder = NONE :: else fi;
            for (n : 0 .. CLIENTS - 1) {
                place[n] = LESS(place[n], 1);
                due[n] = LESS(due[n], 1);
                use[n] = LESS(use[n], 1);
                valid[n] = LESS(valid[n], 1);
                if
                :: HAS(n) && valid[n] == 0 -> state[n] = AWAY; due[n] = 0; use[n] = 0; wanted[n] = false
                :: else
                fi;
                if
                :: state[n] == WAITING -> waited[n]++; assert(waited[n] <= BOUND)
                :: else
                fi
            }
            for (n : 0 .. CLIENTS - 1) {
                if :: pos[n] > 0 && place[n] == 0 -> leave_queue(n) :: else fi
            }
            tidy() }
    od
}

init {
    atomic {
        for (n : 0 .. CLIENTS - 1) { run Client(n) }
        run Clock();
        n = 0
    }
}
