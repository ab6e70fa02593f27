/* quorum.pml - one name at a majority of independent nodes: a proposed fence, its
 * write-back, renewal, fill, release, restarts that forget.
 *
 * An owner is one acquisition. A request executes at its node at any time after it
 * was sent, even after its owner has ceased to care, or never; its answer may be
 * lost. A tick moves all clocks at once; no step is ever due. Fences are moments
 * of the nodes' clock, as in the code, which ends at END. NO_RULE_n takes out rule
 * n of docs/design.md. */
/* SPDX-License-Identifier: MIT */

#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef NODES
#define NODES 3
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef END
#define END 4
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef RETRIES
#define RETRIES 0 /* of an acquire, by A as the same owner */
#endif
#ifndef REPEATS
#define REPEATS 0 /* times that A asks again for what it holds */
#endif
#ifndef WORN
#define WORN 0 /* an earlier owner, long gone, was given this fence by one node */
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif
#ifndef LATE
#define LATE 1 /* what is under way goes on when its owner has ended */
#endif
#ifndef FILLS
#define FILLS 1
#endif

/* How far ahead of its clock a node takes a fence, and how far from it a client's
 * proposal may be. */
#define AHEAD 1
#ifdef NO_RULE_11_AHEAD
#define MAY_GIVE(x) true
#define REACH (TTL + 1)
#else
#define MAY_GIVE(x) ((x) <= now + AHEAD)
#define REACH AHEAD
#endif

#ifdef NO_RULE_11_QUIET
#define QUIET (TTL - 1)
#else
#define QUIET TTL
#endif

#define MAJORITY (NODES / 2 + 1)
#define NONE OWNERS
#define AT(i, n) ((i) * NODES + (n))
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define MAX(a, b) ((a) > (b) -> (a) : (b))

#define IDLE    0
#define ASKING  1
#define RAISING 2 /* writing the highest fence back */
#define BACK    3 /* not won: giving back what there is of it */
#define HELD    4
#define OVER    5

/* Requests under way to a node, as bits. */
#define GRANT   1
#define RAISE   2
#define RENEW   4
#define FILL    8
#define RELEASE 16
#define BURY    32 /* a release that leaves a tombstone */

mtype = { yes, no };

/* The nodes. */
byte who[NODES] = NONE;
byte nfence[NODES], nleft[NODES];
byte last[NODES]; /* the highest fence given or taken over */
byte from[NODES]; /* after a restart, when it votes again */
byte restarts = RESTARTS;

/* The owners. */
byte state[OWNERS];
byte prop[OWNERS];  /* the fence it proposes */
byte fence[OWNERS]; /* to be written back, or its own */
byte age[OWNERS];   /* since the acquire, or the renewal, was sent */
byte valid[OWNERS];
byte tries[OWNERS];
bool renewing[OWNERS];

/* For each owner and node. */
byte todo[OWNERS * NODES];
mtype vote[OWNERS * NODES];
byte vfence[OWNERS * NODES], vleft[OWNERS * NODES];
#if REPEATS
bool vagain[OWNERS * NODES]; /* it was the owner's before it asked */
byte repeats = REPEATS;
bool repeating; /* A asks again */
#define REPEATING(i) ((i) == 0 && repeating)
#else
#define REPEATING(i) false
#endif
#define ASKS(i) (state[i] == ASKING || REPEATING(i))
#ifdef NO_RULE_3
bool done[OWNERS * NODES]; /* its release has been carried out */
#endif

byte now = 1;
byte top; /* the highest fence that anybody has believed in */

/* For use within a step; zero between steps. */
byte j, k, x, f, n, given;

#ifdef NO_RULE_10
#define EFFECTIVE (GRANT | FILL | RAISE)
#elif defined(NO_RULE_3)
#define EFFECTIVE (GRANT | FILL | BURY)
#else
#define EFFECTIVE (GRANT | FILL)
#endif

/* ---- what must hold */

#define BELIEVES(o) (state[o] == HELD && valid[o] > 0)

/* What can have no effect any more is as good as gone. */
inline drop_idle() {
    for (j : 0 .. OWNERS - 1) {
        x = 0;
        for (k : 0 .. NODES - 1) {
            if
            :: state[j] == OVER && who[k] != j && !(todo[AT(j, k)] & EFFECTIVE) -> todo[AT(j, k)] = 0
            :: else
            fi;
            x = x | todo[AT(j, k)]
        }
        if :: state[j] == OVER && !(x & (RAISE | RENEW | FILL)) -> fence[j] = 0 :: else fi;
        if :: !(x & GRANT) && !ASKS(j) -> prop[j] = 0 :: else fi
    }
}

inline check() {
    drop_idle();
    n = 0;
    for (j : 0 .. OWNERS - 1) { n = n + BELIEVES(j) }
    assert(n <= 1);
    n = 0; j = 0; k = 0; x = 0; f = 0; given = 0
}

/* ---- a node: quorum_grant.lua, quorum_renew.lua, release.lua */

#define VOTES(m) (now >= from[m])

/* Nodes are alike: the first to be used is called 0, the next 1. */
#define TOUCHED(m) (last[m] > 0 || from[m] > 0)
#define IN_TURN(m) ((m) == 0 || TOUCHED(m) || TOUCHED((m) - 1))

inline hold(i, m, token, span) {
#ifdef NO_RULE_3
    assert(!done[AT(i, m)]); /* who has left is granted nothing */
#endif
    who[m] = i; nfence[m] = token; nleft[m] = span;
    last[m] = MAX(last[m], token)
}

inline tell(i, m, round, token, span) {
    if
    :: round -> vote[AT(i, m)] = yes; vfence[AT(i, m)] = token; vleft[AT(i, m)] = span
    :: else
    fi
}

/* The floor after a restart is the moment from which it votes. */
#ifdef NO_RULE_11_FLOOR
#define FLOOR(m) 0
#else
#define FLOOR(m) from[m]
#endif

#ifdef NO_NODE_MAX
#define GIVEN(i, m) prop[i]
#else
#define GIVEN(i, m) MAX(MAX(prop[i], last[m] + 1), FLOOR(m))
#endif

inline do_grant(i, m) {
    if
    :: VOTES(m) && who[m] == i ->
        printf("  node %d: is %c's already\n", m, 'A' + i);
#ifdef NO_RULE_4_FENCE
        tell(i, m, ASKS(i), prop[i], nleft[m])
#elif defined(NO_RULE_4)
        tell(i, m, ASKS(i), nfence[m], TTL)
#else
        tell(i, m, ASKS(i), nfence[m], nleft[m])
#endif
#if REPEATS
        ; vagain[AT(i, m)] = ASKS(i)
#endif
    :: VOTES(m) && who[m] == NONE && MAY_GIVE(GIVEN(i, m)) ->
        given = GIVEN(i, m);
        hold(i, m, given, TTL);
        tell(i, m, ASKS(i), given, TTL);
        printf("  node %d: grants %c fence %d\n", m, 'A' + i, given)
    :: else -> printf("  node %d: refuses %c\n", m, 'A' + i)
    fi
}

inline do_raise(i, m) {
    if
#ifdef NO_RULE_10
    :: VOTES(m) ->
        if :: who[m] == i -> nfence[m] = MAX(nfence[m], fence[i]) :: else fi;
#else
    :: VOTES(m) && who[m] == i && nfence[m] <= fence[i] ->
        nfence[m] = fence[i];
#endif
        last[m] = MAX(last[m], fence[i]);
#ifdef NO_RULE_9
        tell(i, m, state[i] == RAISING, fence[i], TTL);
#else
        tell(i, m, state[i] == RAISING, fence[i], nleft[m]);
#endif
        printf("  node %d: has fence %d for %c\n", m, fence[i], 'A' + i)
    :: else -> printf("  node %d: does not hold for %c\n", m, 'A' + i)
    fi
}

inline do_renew(i, m) {
    if
    :: VOTES(m) && who[m] == i && nfence[m] == fence[i] ->
        nleft[m] = TTL;
        tell(i, m, renewing[i], fence[i], TTL);
        printf("  node %d: renews %c\n", m, 'A' + i)
    :: VOTES(m) && !(who[m] == i && nfence[m] == fence[i]) && renewing[i] -> vote[AT(i, m)] = no
    :: else
    fi
}

/* The node lacks what a majority has, and gets exactly that. */
inline do_fill(i, m) {
    if
    :: VOTES(m) && (who[m] == i || who[m] == NONE) && MAY_GIVE(fence[i]) ->
        hold(i, m, fence[i], TTL);
        printf("  node %d: is filled for %c, fence %d\n", m, 'A' + i, fence[i])
    :: else
    fi
}

/* With a tombstone, what the owner has under way to the node comes to nothing. */
inline do_release(i, m) {
    printf("  node %d: releases %c\n", m, 'A' + i);
    if :: who[m] == i -> who[m] = NONE; nfence[m] = 0; nleft[m] = 0 :: else fi;
    if
    :: todo[AT(i, m)] & BURY ->
#ifdef NO_RULE_3
        todo[AT(i, m)] = todo[AT(i, m)] & ~(BURY | RELEASE);
        done[AT(i, m)] = true
#else
        todo[AT(i, m)] = 0
#endif
    :: else -> todo[AT(i, m)] = todo[AT(i, m)] & ~RELEASE
    fi
}

/* ---- an owner: src/store/quorum/lease.c and renew.c under src/core/machine/lease.c */

inline forget_votes(i) {
    for (j : 0 .. NODES - 1) {
        vote[AT(i, j)] = 0; vfence[AT(i, j)] = 0; vleft[AT(i, j)] = 0
#if REPEATS
        ; vagain[AT(i, j)] = false
#endif
    }
}

inline send(i, what) {
    for (j : 0 .. NODES - 1) { todo[AT(i, j)] = todo[AT(i, j)] | what }
}

#define SAID(i, m) (vote[AT(i, m)] == yes)
#define SENT(i, m) todo[AT(i, m)]
#if NODES == 3
#define YESES(i) (SAID(i, 0) + SAID(i, 1) + SAID(i, 2))
#define UNDER_WAY(i) (SENT(i, 0) | SENT(i, 1) | SENT(i, 2))
#elif NODES == 5
#define YESES(i) (SAID(i, 0) + SAID(i, 1) + SAID(i, 2) + SAID(i, 3) + SAID(i, 4))
#define UNDER_WAY(i) (SENT(i, 0) | SENT(i, 1) | SENT(i, 2) | SENT(i, 3) | SENT(i, 4))
#endif

/* The fence of a majority, or the highest; given: by a majority. */
inline count_fences(i) {
    f = 0; given = 0;
    for (j : 0 .. NODES - 1) {
        n = 0;
        for (k : 0 .. NODES - 1) {
            n = n + (vote[AT(i, k)] == yes && vfence[AT(i, k)] == vfence[AT(i, j)])
        }
        if
        :: vote[AT(i, j)] == yes && n >= MAJORITY -> f = vfence[AT(i, j)]; given = 1
        :: vote[AT(i, j)] == yes && n < MAJORITY && !given -> f = MAX(f, vfence[AT(i, j)])
        :: else
        fi
    }
}

#if REPEATS
/* x: A may hold it under another fence than f: no majority has it under others since
 * before it asked. */
inline count_doubt(i) {
    x = 0;
    for (j : 0 .. NODES - 1) {
        n = 0;
        for (k : 0 .. NODES - 1) {
            n = n + (vote[AT(i, k)] != yes || !vagain[AT(i, k)] || vfence[AT(i, k)] == vfence[AT(i, j)])
        }
        if
        :: vote[AT(i, j)] == yes && vagain[AT(i, j)] && vfence[AT(i, j)] != f && n >= MAJORITY -> x = 1
        :: else
        fi
    }
}

/* What is answered to who asks again is what it believes in; nothing else is
 * written over that. In doubt there is no answer. */
inline decide_repeat(i) {
    count_fences(i);
    count_doubt(i);
#ifndef NO_RULE_13
    if
    :: given || !x -> assert(f == fence[i])
    :: else -> printf("%c: is in doubt about its fence\n", 'A' + i)
    fi;
#else
    assert(f == fence[i]);
#endif
    repeating = false;
    forget_votes(i)
}

inline repeat(i) {
    printf("%c: asks again for what it holds\n", 'A' + i);
    repeats--;
    repeating = true;
    prop[i] = now;
    forget_votes(i);
    send(i, GRANT)
}
#endif

/* x: what a majority leaves of it. */
inline count_left(i) {
    x = TTL;
    do
    :: x == 0 -> break
    :: else ->
        n = 0;
        for (j : 0 .. NODES - 1) { n = n + (vote[AT(i, j)] == yes && vleft[AT(i, j)] >= x) }
        if :: n >= MAJORITY -> break :: else -> x-- fi
    od
}

inline become_held(i) {
    count_left(i);
    x = LESS(x, age[i]);
    forget_votes(i);
    if
    :: x > 0 ->
        assert(fence[i] > top); /* of all who believed, the latest has the highest */
        top = fence[i];
        state[i] = HELD; valid[i] = x; age[i] = 0;
        printf("%c: holds, fence %d, valid for %d\n", 'A' + i, fence[i], x)
    :: else -> state[i] = BACK; fence[i] = 0
    fi
}

#ifdef NO_RULE_10 /* any node may take it over */
#define RAISED_AT(i, m) true
#else
#define RAISED_AT(i, m) SAID(i, m)
#endif

inline decide(i) {
    count_fences(i);
    fence[i] = f;
    if
#ifdef NO_WRITE_BACK
    :: true -> become_held(i)
#else
    :: given -> become_held(i)
#endif
    :: else ->
        printf("%c: got different fences, writes back %d\n", 'A' + i, f);
        state[i] = RAISING;
#ifdef NO_RULE_9 /* counts from the write-back */
        age[i] = 0;
#endif
        for (j : 0 .. NODES - 1) {
            if :: RAISED_AT(i, j) -> todo[AT(i, j)] = todo[AT(i, j)] | RAISE :: else fi
        }
        forget_votes(i)
    fi
}

inline end_owner(i) {
#if !LATE
    for (j : 0 .. NODES - 1) { todo[AT(i, j)] = 0 }
#endif
    send(i, BURY);
    state[i] = OVER; valid[i] = 0; renewing[i] = false; age[i] = 0; tries[i] = 0;
#if REPEATS
    if :: i == 0 -> repeating = false; repeats = 0 :: else fi;
#endif
    forget_votes(i)
}

inline renewed(i) {
    x = LESS(TTL, age[i]);
    valid[i] = MAX(valid[i], x);
    printf("%c: is renewed, valid for %d\n", 'A' + i, valid[i]);
    for (j : 0 .. NODES - 1) {
        if
        :: FILLS && vote[AT(i, j)] == no -> todo[AT(i, j)] = todo[AT(i, j)] | FILL
        :: else
        fi
    }
    renewing[i] = false; age[i] = 0;
    forget_votes(i)
}

/* A try that was not won gives back what it was granted. The owner may ask once
 * more when that was answered; else its release could end what it gets. */
#ifdef NO_RULE_7
#define MAY_RETRY(i) (tries[i] > 0)
#else
#define MAY_RETRY(i) (tries[i] > 0 && !(UNDER_WAY(i) & RELEASE))
#endif

/* Owners are alike: A is the first to ask. */
#define ASKS_NEXT(i) (state[i] == IDLE && ((i) == 0 || state[(i) - 1] != IDLE))

#define MAY_ASK(i) (ASKS_NEXT(i) || (state[i] == BACK && MAY_RETRY(i)))

inline ask(i, token) {
    if :: state[i] == BACK -> tries[i]-- :: else fi;
    prop[i] = token;
    printf("%c: asks, proposing %d\n", 'A' + i, prop[i]);
    state[i] = ASKING; age[i] = 0;
    send(i, GRANT)
}

inline give_back(i) {
    printf("%c: gives back what it has got\n", 'A' + i);
    for (j : 0 .. NODES - 1) {
        if :: SAID(i, j) -> todo[AT(i, j)] = todo[AT(i, j)] | RELEASE :: else fi
    }
    state[i] = BACK; fence[i] = 0; age[i] = 0;
    forget_votes(i)
}

inline start_renewing(i) {
    printf("%c: renews\n", 'A' + i);
    send(i, RENEW);
    renewing[i] = true; age[i] = 0;
    forget_votes(i)
}

proctype Owner(byte i) {
end:
    do
    :: d_step { MAY_ASK(i) -> ask(i, now); check() }
    :: d_step { MAY_ASK(i) -> ask(i, now + REACH); check() }
    :: d_step { state[i] == ASKING && YESES(i) >= MAJORITY ->
            decide(i); check() }
    :: d_step { state[i] == RAISING && YESES(i) >= MAJORITY ->
            become_held(i); check() }
    :: d_step { state[i] == HELD && renewing[i] && YESES(i) >= MAJORITY ->
            renewed(i); check() }
    :: d_step { (state[i] == ASKING || state[i] == RAISING) && tries[i] > 0 ->
            give_back(i); check() }
#if REPEATS
    :: d_step { i == 0 && BELIEVES(i) && !renewing[i] && repeats > 0 ->
            repeat(i); check() }
    :: d_step { REPEATING(i) && BELIEVES(i) && YESES(i) >= MAJORITY ->
            decide_repeat(i); check() }
#endif
    :: d_step { BELIEVES(i) && RENEWALS && !REPEATING(i) ->
            start_renewing(i); check() }
    /* Leaves, or crashes: then the release never arrives. */
    :: d_step { state[i] != IDLE && state[i] != OVER ->
            printf("%c: leaves\n", 'A' + i); end_owner(i); check() }
    od
}

#define IS(what) (todo[AT(i, m)] & what)
#define DID(what) todo[AT(i, m)] = todo[AT(i, m)] & ~(what)

/* What owner i has under way to node m. */
proctype Link(byte i; byte m) {
end:
    do
    :: d_step { IS(GRANT) && IN_TURN(m) ->
            DID(GRANT); do_grant(i, m); check() }
    :: d_step { IS(RAISE) ->
            DID(RAISE); do_raise(i, m); check() }
    :: d_step { IS(RENEW) ->
            DID(RENEW); do_renew(i, m); check() }
    :: d_step { IS(FILL) && IN_TURN(m) ->
            DID(FILL); do_fill(i, m); check() }
    /* An answer that a majority can do without is late. */
    :: d_step { SAID(i, m) && YESES(i) > MAJORITY ->
            vote[AT(i, m)] = 0; vfence[AT(i, m)] = 0; vleft[AT(i, m)] = 0;
#if REPEATS
            vagain[AT(i, m)] = false
#endif
        }
    :: d_step { IS(RELEASE) || IS(BURY) ->
            do_release(i, m); check() }
    od
}

/* A node forgets everything, and starts again. */
proctype Node(byte m) {
end:
    do
    :: d_step { restarts > 0 && TOUCHED(m) ->
            printf("  node %d: restarts and has forgotten everything\n", m);
            restarts--;
            who[m] = NONE; nfence[m] = 0; nleft[m] = 0; last[m] = 0;
            from[m] = now + QUIET;
            check() }
    od
}

proctype Clock() {
end:
    do
    :: d_step { now < END ->
            printf("tick: it is %d\n", now + 1);
            now++;
            for (j : 0 .. NODES - 1) {
                nleft[j] = LESS(nleft[j], 1);
                if :: nleft[j] == 0 -> who[j] = NONE; nfence[j] = 0 :: else fi
            }
            for (k : 0 .. OWNERS - 1) {
                if
                :: state[k] == ASKING || state[k] == RAISING || renewing[k] ->
                    age[k] = (age[k] < TTL -> age[k] + 1 : TTL)
                :: else
                fi;
                if
                :: valid[k] > 0 ->
                    valid[k]--;
#ifndef NO_RULE_6
                    if :: valid[k] == 0 -> printf("%c: has lost it\n", 'A' + k); x = k; end_owner(x) :: else fi
#endif
                :: else
                fi
            }
            check() }
    od
}

init {
    atomic {
        tries[0] = RETRIES;
        last[0] = WORN;
        for (j : 0 .. OWNERS - 1) {
            run Owner(j);
            for (k : 0 .. NODES - 1) { run Link(j, k) }
        }
        for (k : 0 .. NODES - 1) { run Node(k) }
        run Clock();
        j = 0; k = 0
    }
}
