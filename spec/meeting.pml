/* meeting.pml - that nobody waits for ever: the barrier of barrier.pml, with time that
 * presses.
 *
 * An exchange with the store takes no time. Every ring may be lost, LOSSES requests
 * fail, and one party dies; another takes its place when its seat has ended. A tick does
 * not pass while a step is due: who waits asks every POLL ticks, and who does not wait
 * works for WORK ticks at most, while its seat is kept. What must hold is a bound on how
 * long a call takes, whatever it ends in. Numbers come round after GENS. */
/* SPDX-License-Identifier: MIT */

#ifndef PARTIES
#define PARTIES 3
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef BOUND
#define BOUND 7
#endif
#ifndef GENS
#define GENS 5
#endif

#define TTL  3 /* of a seat */
#define POLL 1
#define WORK 2
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)

mtype = { WORKS, WAITS, DEAD };

/* The store. */
byte gen = 1, here;
bool seated[PARTIES];
byte left[PARTIES];

/* The parties. */
mtype state[PARTIES] = WORKS;
byte due[PARTIES];    /* ticks until it must act */
byte joined[PARTIES]; /* WAITS: the generation in which it is counted */
byte waited[PARTIES];
byte losses = LOSSES;
bool death = true;

/* For use within a step; zero between steps. */
byte j;

inline next_generation() {
    printf("  store: generation %d is over, %d were here\n", gen, here);
    gen = gen % GENS + 1;
    here = 0
}

inline end_seats() {
    for (j : 0 .. PARTIES - 1) {
        if
        :: seated[j] && left[j] == 0 ->
            seated[j] = false;
            printf("  store: the seat of %c ends\n", 'A' + j);
            if :: here > 0 -> next_generation() :: else fi
        :: else
        fi
    }
}

inline end_call(p) { state[p] = WORKS; due[p] = WORK; waited[p] = 0; joined[p] = 0 }

inline ask(p) {
    printf("%c: asks\n", 'A' + p);
    end_seats();
    seated[p] = true; left[p] = TTL; due[p] = POLL;
    if
    :: state[p] == WORKS -> state[p] = WAITS; joined[p] = gen; here++
    :: else
    fi;
    if :: here == PARTIES -> next_generation() :: else fi;
    if :: joined[p] != gen -> end_call(p) :: else fi;
    j = 0
}

#ifdef NO_POLL
#define POLLS false
#else
#define POLLS true
#endif

#define DUE(p) (state[p] != DEAD && due[p] == 0 && (state[p] == WORKS || POLLS))
#define VACANT(p) (state[p] == DEAD && left[p] == 0)

proctype Party(byte p) {
end:
    do
    :: d_step { DUE(p) -> ask(p) }
    :: d_step { state[p] == WORKS && due[p] > 0 -> ask(p) }
    :: d_step { DUE(p) && losses > 0 -> losses--; due[p] = 1; printf("%c: asks in vain\n", 'A' + p) }
    :: d_step { state[p] == WAITS && joined[p] != gen ->
            printf("%c: hears the ring\n", 'A' + p); end_call(p) }
    :: d_step { state[p] != DEAD && death ->
            death = false; printf("%c: dies\n", 'A' + p);
            state[p] = DEAD; waited[p] = 0; joined[p] = 0; due[p] = 0 }
    :: d_step { VACANT(p) -> end_seats(); state[p] = WORKS; due[p] = 0; j = 0 } /* another */
    od
}

/* Nothing is due: time may pass. */
#define URGENT(p) (DUE(p) || VACANT(p))

proctype Clock() {
end:
    do
    :: d_step { !URGENT(0) && !URGENT(1) && !URGENT(PARTIES - 1) ->
            printf("tick\n");
            for (j : 0 .. PARTIES - 1) {
                left[j] = LESS(left[j], 1);
                due[j] = LESS(due[j], 1);
                if :: state[j] == WORKS && seated[j] -> left[j] = TTL :: else fi;
                if
                :: state[j] == WAITS -> waited[j]++; assert(waited[j] <= BOUND)
                :: else
                fi
            }
            j = 0 }
    od
}

init {
    atomic {
        for (j : 0 .. PARTIES - 1) { run Party(j) }
        run Clock();
        j = 0
    }
}
