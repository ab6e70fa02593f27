/* barrier.pml - one barrier: seats, arrivals, withdrawals, generations.
 *
 * MEMBERS clients call up to CALLS times each, at a barrier of PARTIES. One that lost
 * its seat, or gave its handle up, comes back under another of its IDS. No step is ever
 * due: a client may stand still, and a request, an answer or a ring be under way, for
 * any number of ticks, or be lost. Of each client one request that was given up may be
 * carried out later. The store does nothing more once ROOM numbers are nearly drawn.
 *
 * Checked:
 *   (1) A call is counted once at most, ever.
 *   (2) A generation opens when PARTIES live seats have arrived in it.
 *   (3) "Opened" and "broken" are told only to calls that are counted in a generation
 *       that did.
 *   (4) A call that ended in a time-out or a loss is in none that opens later. */
/* SPDX-License-Identifier: MIT */

#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef PARTIES
#define PARTIES 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef IDS
#define IDS 2
#endif
#ifndef TTL
#define TTL 1
#endif
#ifndef ROOM
#define ROOM 7
#endif
#ifndef BREAKS
#define BREAKS 0 /* a call that times out breaks the generation */
#endif

#define SEATS   (MEMBERS * IDS)
#define ALL     (MEMBERS * CALLS)
#define ID(m)   ((m) * IDS + life[m])
#define CALL(m) ((m) * CALLS + turn[m])
#define NOBODYS 2 /* a number that is no generation and no fence */

/* A client: the states of src/coord/barrier_machine.h, with OUT, SITTING and ASKING in one. */
mtype = { IN, ASKING, WAITING, LEAVING, GONE };
mtype = { SIT, ARRIVE, WITHDRAW };
mtype = { NONE, SENT, DONE };
mtype = { LOST, SAT, FULL, WAITS, OPENED, BROKEN, TIMEOUT };
mtype = { NEW, IDLE, ARRIVED }; /* of a seat: src/store/meet.h */

/* The store. */
byte mark = NOBODYS;  /* the last number that was drawn */
byte gen = 1, here;
byte fence[SEATS];    /* 0: there is no such seat */
byte rec[SEATS], from[SEATS], left[SEATS];
mtype kind[SEATS] = NEW;
bool opened[ROOM], broken[ROOM];

/* The clients. */
mtype state[MEMBERS] = IN;
byte life[MEMBERS], turn[MEMBERS];
byte has[MEMBERS];    /* the fence of its seat */
byte after[MEMBERS];  /* the record that the next call arrives after */
byte joined[MEMBERS]; /* WAITING: the generation in which it is counted */
mtype req[MEMBERS] = NONE;
mtype verb[MEMBERS];
mtype ans[MEMBERS];
byte number[MEMBERS]; /* of the answer */

/* A request that was given up and may still arrive. */
bool late[MEMBERS];
mtype late_verb[MEMBERS];
byte late_id[MEMBERS], late_fence[MEMBERS], late_after[MEMBERS], late_call[MEMBERS];

/* For the checks alone. */
byte times[ALL];    /* how often a call was counted */
byte counted[ALL];  /* in which generation; 0: in none */
bool over[ALL];     /* it has ended in a time-out or a loss */
#ifdef RING_ANY
byte rung;
#endif

/* For use within a step; zero between steps. */
byte i, j, n, x, what;
mtype says;

inline tidy() { i = 0; j = 0; n = 0; x = 0; what = 0; says = LOST }

/* ---- the store: src/store/meet.c */

inline draw() { mark++; assert(mark < ROOM) }

inline next_generation(opens) {
    if
    :: opens -> opened[gen] = true;
#ifdef RING_ANY
        rung = gen;
#endif
        printf("  store: generation %d opens\n", gen)
    :: else -> broken[gen] = true; printf("  store: generation %d breaks\n", gen)
    fi;
    draw(); gen = mark; here = 0
}

inline end_seat(s) {
    printf("  store: the seat of id %d ends\n", s);
#ifndef NO_BREAK
    if :: kind[s] != NEW && here > 0 -> next_generation(false) :: else fi;
#endif
    fence[s] = 0; rec[s] = 0; from[s] = 0; left[s] = 0; kind[s] = NEW
}

inline end_seats() {
#ifdef NO_END
    skip
#else
    for (i : 0 .. SEATS - 1) {
        if :: fence[i] != 0 && left[i] == 0 -> end_seat(i) :: else fi
    }
#endif
}

inline take_seat(s) {
    n = 0;
    for (i : 0 .. SEATS - 1) { n = n + (fence[i] != 0) }
    if
    :: fence[s] == 0 && n >= PARTIES -> says = FULL
    :: fence[s] == 0 && n < PARTIES -> draw(); fence[s] = mark; rec[s] = mark; left[s] = TTL
    :: else
    fi;
    if :: fence[s] != 0 -> says = SAT; what = fence[s] :: else fi
}

/* The last of PARTIES: all of them are there, and none has given up. */
inline check_opening() {
    n = 0;
    for (j : 0 .. SEATS - 1) { n = n + (left[j] > 0 && rec[j] == gen && kind[j] == ARRIVED) }
    assert(n == PARTIES);
    for (j : 0 .. ALL - 1) { assert(!(counted[j] == gen && over[j])) }
}

inline count(s, c) {
    from[s] = rec[s]; rec[s] = gen; kind[s] = ARRIVED; here++;
    times[c]++; counted[c] = gen;
    printf("  store: call %d is counted in generation %d, %d are here\n", c, gen, here);
    assert(times[c] <= 1);
    if :: here == PARTIES -> check_opening(); next_generation(true) :: else fi
}

inline answer_outcome(g) {
    what = g;
    if
    :: g == gen -> says = WAITS
    :: g != gen && opened[g] -> says = OPENED
    :: g != gen && broken[g] -> says = BROKEN
    fi
}

#ifdef NO_AFTER /* a seat that has not arrived in this generation arrives */
#define MATCHES(s, after_it) (rec[s] != gen || kind[s] != ARRIVED)
#else
#define MATCHES(s, after_it) (rec[s] == after_it)
#endif
#ifdef NO_FROM
#define IS_OF(s, after_it) true
#else
#define IS_OF(s, after_it) (from[s] == after_it)
#endif

inline arrive(s, after_it, c) {
    if :: MATCHES(s, after_it) -> count(s, c) :: else fi;
    x = rec[s];
    if
    :: !IS_OF(s, after_it) -> says = LOST
    :: IS_OF(s, after_it) && kind[s] != ARRIVED -> says = TIMEOUT; what = x
    :: else -> answer_outcome(x)
    fi
}

inline withdraw(s, after_it, c) {
    x = rec[s];
    if
    :: x != after_it && !IS_OF(s, after_it) -> says = LOST
    :: x != after_it && IS_OF(s, after_it) && kind[s] != ARRIVED -> says = TIMEOUT; what = x
    :: x != after_it && IS_OF(s, after_it) && kind[s] == ARRIVED && x != gen -> answer_outcome(x)
    :: else ->
        if
        :: x != after_it && BREAKS -> next_generation(false); counted[c] = 0
        :: x != after_it && !BREAKS -> here--; counted[c] = 0
        :: else
        fi;
        from[s] = after_it; kind[s] = IDLE; says = TIMEOUT;
#ifdef NO_MARK
        rec[s] = after_it; what = after_it
#else
        draw(); rec[s] = mark; what = mark
#endif
    fi
}

inline carry_out(v, s, fence_of, after_it, c) {
    says = LOST; what = 0;
    end_seats();
#ifdef NO_SEAT /* who arrives has a seat by that, and is known by its id */
    if
    :: fence[s] == 0 && after_it == NOBODYS -> fence[s] = NOBODYS; rec[s] = NOBODYS
    :: else
    fi;
#endif
    if
    :: v == SIT -> take_seat(s)
    :: v != SIT && (fence[s] == 0 || fence[s] != fence_of) -> says = LOST
    :: else ->
        left[s] = TTL;
        if :: kind[s] == NEW -> kind[s] = IDLE :: else fi;
        if :: v == ARRIVE -> arrive(s, after_it, c) :: else -> withdraw(s, after_it, c) fi
    fi
}

/* ---- a client: src/coord/barrier_machine.c */

inline send(m, v) { req[m] = SENT; verb[m] = v; printf("%c: sends %e\n", 'A' + m, v) }

inline end_call(m) {
    turn[m]++; joined[m] = 0;
    if :: turn[m] == CALLS -> state[m] = GONE :: else -> state[m] = IN fi
}

/* The id is not used again. */
inline lose_seat(m) {
    has[m] = 0; after[m] = 0;
    if
    :: state[m] == IN && life[m] + 1 < IDS -> life[m]++
    :: else -> state[m] = GONE
    fi
}

inline pass(m, g) {
    printf("%c: call %d passes\n", 'A' + m, CALL(m));
    assert(counted[CALL(m)] == g && opened[g]);
    after[m] = g; end_call(m)
}

inline fail(m, g) {
    printf("%c: call %d is broken\n", 'A' + m, CALL(m));
    assert(counted[CALL(m)] == g && broken[g]);
    after[m] = g; end_call(m)
}

inline time_out(m) {
    printf("%c: call %d times out\n", 'A' + m, CALL(m));
    assert(state[m] == LEAVING && counted[CALL(m)] == 0);
    over[CALL(m)] = true; after[m] = number[m]; end_call(m)
}

inline lose(m) {
    printf("%c: call %d is lost\n", 'A' + m, CALL(m));
    n = counted[CALL(m)];
    over[CALL(m)] = !(n != 0 && opened[n]);
    end_call(m); lose_seat(m)
}

inline hear(m) {
    req[m] = NONE;
    if
    :: ans[m] == SAT -> has[m] = number[m]; after[m] = number[m]
    :: ans[m] == FULL -> state[m] = IN
    :: ans[m] == LOST -> lose(m)
    :: ans[m] == WAITS && state[m] != LEAVING -> state[m] = WAITING; joined[m] = number[m]
    :: ans[m] == WAITS && state[m] == LEAVING
    :: ans[m] == OPENED -> pass(m, number[m])
    :: ans[m] == BROKEN -> fail(m, number[m])
    :: ans[m] == TIMEOUT -> time_out(m)
    fi;
    ans[m] = LOST; number[m] = 0
}

inline give_up_request(m) {
    printf("%c: gives up on %e, which may come late\n", 'A' + m, verb[m]);
    late[m] = true; late_verb[m] = verb[m]; late_id[m] = ID(m);
    late_fence[m] = has[m]; late_after[m] = after[m]; late_call[m] = CALL(m);
    req[m] = NONE
}

inline come_late(m) {
    printf("late: %e of %c, call %d\n", late_verb[m], 'A' + m, late_call[m]);
    carry_out(late_verb[m], late_id[m], late_fence[m], late_after[m], late_call[m]);
    late[m] = false; late_verb[m] = SIT; late_id[m] = 0;
    late_fence[m] = 0; late_after[m] = 0; late_call[m] = 0
}

#define FREE(m) (req[m] == NONE)
#define STORE_GOES_ON (mark + 2 < ROOM)

proctype Client(byte m) {
end:
    do
    /* What had no answer is sent again; asking again is also the poll. */
    :: d_step { state[m] == IN && FREE(m) -> state[m] = ASKING }
#ifdef NO_SEAT
    :: d_step { state[m] == ASKING && FREE(m) ->
            has[m] = NOBODYS;
            if :: after[m] == 0 -> after[m] = NOBODYS :: else fi;
            send(m, ARRIVE) }
#else
    :: d_step { state[m] == ASKING && FREE(m) && has[m] == 0 -> send(m, SIT) }
    :: d_step { state[m] == ASKING && FREE(m) && has[m] != 0 -> send(m, ARRIVE) }
#endif
    :: d_step { state[m] == WAITING && FREE(m) -> send(m, ARRIVE) }
    :: d_step { (state[m] == WAITING || (state[m] == ASKING && has[m] != 0)) && FREE(m) ->
            state[m] = LEAVING; send(m, WITHDRAW) }
    :: d_step { state[m] == LEAVING && FREE(m) -> send(m, WITHDRAW) }
    :: d_step { req[m] == SENT && STORE_GOES_ON ->
            carry_out(verb[m], ID(m), has[m], after[m], CALL(m));
            req[m] = DONE; ans[m] = says; number[m] = what; tidy() }
    :: d_step { req[m] == DONE -> hear(m); tidy() }
    /* A ring, heard at any time after the fact. */
#ifdef RING_ANY
    :: d_step { state[m] == WAITING && FREE(m) && rung != 0 -> pass(m, rung) }
#else
    :: d_step { state[m] == WAITING && FREE(m) && opened[joined[m]] -> pass(m, joined[m]) }
    :: d_step { state[m] == WAITING && FREE(m) && broken[joined[m]] -> fail(m, joined[m]) }
#endif
    :: d_step { req[m] == SENT && !late[m] -> give_up_request(m) }
    :: d_step { req[m] != NONE ->
            printf("%c: no answer\n", 'A' + m); req[m] = NONE; ans[m] = LOST; number[m] = 0 }
    :: d_step { late[m] && STORE_GOES_ON -> come_late(m); tidy() }
    /* The seat is kept between calls. */
    :: d_step { state[m] == IN && FREE(m) && has[m] != 0 && fence[ID(m)] == has[m] &&
                left[ID(m)] > 0 && left[ID(m)] < TTL ->
            left[ID(m)] = TTL;
            if :: kind[ID(m)] == NEW -> kind[ID(m)] = IDLE :: else fi }
    /* It dies, or gives the handle up: the call may count until its seat ends. */
    :: d_step { (state[m] == ASKING || state[m] == WAITING || state[m] == LEAVING) && FREE(m) &&
                life[m] + 1 < IDS ->
            printf("%c: gives up call %d\n", 'A' + m, CALL(m));
            end_call(m); lose_seat(m) }
    od
}

proctype Clock() {
end:
    do
    :: d_step { printf("tick\n");
            for (i : 0 .. SEATS - 1) { if :: left[i] > 0 -> left[i]-- :: else fi };
            tidy() }
    od
}

init {
    atomic {
        for (i : 0 .. MEMBERS - 1) { run Client(i) }
        run Clock();
        tidy()
    }
}
