/* minimum.pml - an election with minimum_nodes: a leader leads while MIN members are
 * counted, also when two stores answer for its name.
 *
 * Store 0 is the primary. At any moment store 1 takes over without the lease: a failover
 * that lost the latest writes. Store 0 goes on to serve those who still speak to it, and
 * each member goes over by itself, once. At one store the lease excludes (handoff.pml),
 * so that one leader of each is enough: A leads at store 0 and B at store 1, and the
 * lease is always to be had.
 *
 * A member sits by heartbeats. One to store 0 takes any time, and may be carried out
 * after its member has gone over; one to store 1 is carried out at once. The answer to A
 * and B says for how long MIN seats will live yet, and takes any time too. Members may
 * stand still. C may die and be started anew under another id, at either store.
 *
 * Checked: A and B never believe to lead at the same time. NO_RULE_Nn takes a rule out;
 * the rules are in spec/README.md. */
/* SPDX-License-Identifier: MIT */

#ifndef TTL
#define TTL 2 /* of a seat */
#endif
#ifndef BY
#define BY 1 /* a heartbeat that is older is refused */
#endif

#define MIN 2
#define MEMBERS 3
#define A 0
#define B 1
#define C 2
#define SETTLE (TTL + BY) /* so long after it was sent no seat of a heartbeat lives */
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define MORE(a, b) ((a) > (b) -> (a) : (b))

/* The stores: what is left of each seat. */
bool taken_over;
byte seat0[MEMBERS], seat1[MEMBERS];
byte settles1[MEMBERS];    /* the seat at store 1 does not count before this is 0 */
byte former, settles0;     /* at store 0: the seat of C before it was started anew, and
                              how long the one after does not count */

/* The members. */
bool over[MEMBERS];        /* has gone over to store 1 */
byte may_live[MEMBERS];    /* so long a seat of it at store 0 may live */
bool again;                /* C was started anew */
byte flying[MEMBERS];      /* B and C: the age of its heartbeat to store 0, and 1 */
bool of_former;            /* ... C's is of its former self */
byte enough[2], age[2];    /* the answer on its way to A, to B; 0: there is none */
byte leads[2];             /* A and B believe so for this long */
#ifdef NO_RULE_N6
byte before;               /* so long, by what B heard of store 0 before it went over */
#endif

/* For use within a step; zero between steps. */
byte i, j, n, x;

inline tidy() { i = 0; j = 0; n = 0; x = 0 }

inline check() { assert(!(leads[A] > 0 && leads[B] > 0)) }

/* ---- the stores: src/store/meet.c */

#define COUNTS0(m) (!((m) == C && settles0 > 0))
#define COUNTS1(m) (settles1[m] == 0)

/* The time left of the MINth longest seat. */
inline count_at_0() {
    for (i : 1 .. TTL) {
        n = (former >= i);
        for (j : 0 .. MEMBERS - 1) { n = n + (seat0[j] >= i && COUNTS0(j)) }
        if :: n >= MIN -> x = i :: else fi
    }
    answer_whole()
}

inline count_at_1() {
    for (i : 1 .. TTL) {
        n = 0;
        for (j : 0 .. MEMBERS - 1) { n = n + (seat1[j] >= i && COUNTS1(j)) }
        if :: n >= MIN -> x = i :: else fi
    }
    answer_whole()
}

inline answer_whole() {
#ifdef NO_RULE_N1
    if :: x > 0 -> x = TTL :: else fi
#else
    skip
#endif
}

/* ---- the members: src/coord/election_machine.c */

inline believe(m) {
#ifdef NO_RULE_N2
    n = enough[m];
#else
    n = LESS(enough[m], age[m]);
#endif
    if :: n > leads[m] -> leads[m] = n; printf("%c: leads for %d\n", 'A' + m, n) :: else fi;
    enough[m] = 0; age[m] = 0
}

/* B may hear how many store 0 counts, too; the lease is not to be had there. */
inline hear_before(m) {
#ifdef NO_RULE_N6
    if :: m == B -> count_at_0(); before = x :: else fi
#else
    skip
#endif
}

inline drop_heartbeat(m) { flying[m] = 0; of_former = of_former && m != C }

inline go_over(m) {
    over[m] = true;
    printf("%c: goes over to store 1\n", 'A' + m);
    if :: m == A -> enough[A] = 0; age[A] = 0 :: else fi;
#ifndef NO_RULE_N3
    settles1[m] = MORE(settles1[m], may_live[m]);
#endif
    may_live[m] = 0
}

inline start_anew(at_1) {
    again = true;
    printf("C: is started anew\n");
    former = seat0[C]; seat0[C] = 0; may_live[C] = 0;
    of_former = flying[C] > 0;
    over[C] = at_1;
#ifndef NO_RULE_N3_ANEW
    settles1[C] = SETTLE;
    settles0 = (at_1 -> 0 : SETTLE)
#endif
}

proctype LeaderAt0() {
end:
    do
    :: d_step { !over[A] && enough[A] == 0 && age[A] == 0 ->
            age[A] = 1; may_live[A] = SETTLE; printf("A: heartbeat to store 0\n") }
    :: d_step { !over[A] && enough[A] == 0 && age[A] > 0 && age[A] <= BY + 1 ->
            seat0[A] = TTL;
            count_at_0();
            printf("  store 0: heartbeat of A, enough for %d\n", x);
            enough[A] = x; age[A] = (x > 0 -> age[A] - 1 : 0);
            tidy() }
    :: d_step { !over[A] && enough[A] > 0 -> believe(A); tidy(); check() }
    :: d_step { age[A] > 0 || enough[A] > 0 -> age[A] = 0; enough[A] = 0 }
    od
}

proctype LeaderAt1() {
end:
    do
    :: d_step { over[B] && enough[B] == 0 ->
            seat1[B] = TTL;
            count_at_1();
            printf("  store 1: heartbeat of B, enough for %d\n", x);
            enough[B] = x; age[B] = 0;
            tidy() }
    :: d_step { over[B] && enough[B] > 0 -> believe(B); tidy(); check() }
    :: d_step { enough[B] > 0 -> age[B] = 0; enough[B] = 0 }
#ifdef NO_RULE_N6 /* granted by store 1 */
    :: d_step { over[B] && before > 0 ->
            leads[B] = MORE(leads[B], before); printf("B: leads for %d\n", before); before = 0; check() }
#endif
    od
}

proctype Member(byte m) {
end:
    do
    :: d_step { m != A && !over[m] && flying[m] == 0 ->
            flying[m] = 1; may_live[m] = SETTLE; printf("%c: heartbeat to store 0\n", 'A' + m) }
    :: d_step { flying[m] > 0 ->
            if
            :: m == C && of_former ->
                former = TTL; of_former = false; printf("  store 0: heartbeat of the former C\n")
            :: else ->
                seat0[m] = TTL; printf("  store 0: heartbeat of %c\n", 'A' + m); hear_before(m)
            fi;
            flying[m] = 0; tidy() }
    :: d_step { flying[m] > 0 -> drop_heartbeat(m) }
    :: d_step { m != B && over[m] && seat1[m] < TTL ->
            seat1[m] = TTL; printf("  store 1: heartbeat of %c\n", 'A' + m) }
    :: d_step { taken_over && !over[m] -> go_over(m) }
    od
}

/* C dies and is started anew, at either store. */
proctype Restart() {
end:
    do
    :: d_step { !again && !over[C] -> start_anew(false) }
    :: d_step { !again && !over[C] && taken_over -> start_anew(true) }
    od
}

/* ---- time */

inline pass_on_the_way() {
#ifndef NO_RULE_N5
    for (i : 0 .. MEMBERS - 1) {
        if :: flying[i] > 0 -> flying[i]++ :: else fi;
        if :: flying[i] > BY + 1 -> drop_heartbeat(i) :: else fi
    }
#endif
    if :: age[A] > 0 || enough[A] > 0 -> age[A]++ :: else fi;
    if :: enough[B] > 0 -> age[B]++ :: else fi;
#ifdef NO_RULE_N2
    if :: age[A] > BY + 1 -> age[A] = BY + 1 :: else fi;
    if :: age[B] > TTL -> age[B] = TTL :: else fi
#else
    /* An answer that leaves nothing to believe is as good as none. */
    if :: enough[A] == 0 && age[A] > BY + 1 -> age[A] = 0 :: else fi;
    for (i : 0 .. 1) {
        if :: enough[i] > 0 && age[i] >= enough[i] -> enough[i] = 0; age[i] = 0 :: else fi
    }
#endif
}

proctype World() {
end:
    do
    :: d_step { printf("tick\n");
            for (i : 0 .. MEMBERS - 1) {
                seat0[i] = LESS(seat0[i], 1); seat1[i] = LESS(seat1[i], 1);
                settles1[i] = LESS(settles1[i], 1); may_live[i] = LESS(may_live[i], 1)
            }
            former = LESS(former, 1); settles0 = LESS(settles0, 1);
            leads[A] = LESS(leads[A], 1); leads[B] = LESS(leads[B], 1);
#ifdef NO_RULE_N6
            before = LESS(before, 1);
#endif
            pass_on_the_way();
            tidy() }
    :: d_step { !taken_over ->
            taken_over = true; printf("store 1 takes over\n");
#ifdef NO_RULE_N4
            for (i : 0 .. MEMBERS - 1) { seat1[i] = seat0[i] }
#endif
            tidy() }
    od
}

init {
    atomic {
        run LeaderAt0(); run LeaderAt1();
        for (i : 0 .. MEMBERS - 1) { run Member(i) }
        run Restart(); run World();
        tidy()
    }
}
