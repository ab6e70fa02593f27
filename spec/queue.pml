/* queue.pml - one queue at one store: lanes, numbered requests, deliveries, hand-over.
 *
 * LANES clients with one lane each, which ends for good; NUMBERS requests of each at most,
 * of which the first opens the lane. One producer pushes ITEMS. No step is ever due:
 * a client may stand still, and a request, an answer or a ring be under way, for any
 * number of ticks, or be lost. A request without an answer is sent again as it was. One
 * earlier copy of each lane's requests may be carried out later (LATE), and its answer
 * is read by nobody. A ring means "ask", which a client may do at any time, so that a ring
 * has no step of its own. RESTARTS: the store goes back to any earlier state once.
 *
 * Checked after every step:
 *   (1) Whoever believes in a delivery has it at the store, under that fence, for at
 *       least as long. So no two work on an item.
 *   (2) An item is accepted once. Its consumer is not told that it was not, and nobody
 *       else is told that it was.
 *   (3) A push makes one item.
 *   (4) An answered push is there until it is accepted.
 *   (5) What a live lane has, its client knows, or the next answer tells it, or ends the
 *       lane: nothing is stuck.
 *   (6) Nothing is ready while a live lane waits.
 *   (7) The fences of an item rise.
 *   (8) Nothing is delivered to a lane that has ended and has no client.
 * After a restart that lost something only (5), (6) and (7). */
/* SPDX-License-Identifier: MIT */

#ifndef LANES
#define LANES 2
#endif
#ifndef NUMBERS
#define NUMBERS 4
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
#ifndef TTL
#define TTL 1 /* the span of a lane that has something */
#endif
#ifndef PLACE
#define PLACE TTL /* ... that has nothing */
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef LATE_PUSH
#define LATE_PUSH LATE
#endif
#ifndef TENDS
#define TENDS 0
#endif
#ifndef NACKS
#define NACKS 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif

#define AT(k, it)  ((k) * ITEMS + (it))
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)

mtype = { ABSENT, READY, OUT, ACKED };  /* an item: src/store/deliver.h */
mtype = { NEW, OPEN, GONE };            /* a client */
mtype = { NONE, OK, LOST };             /* an outcome */

/* The store: items. */
mtype place[ITEMS] = ABSENT;
byte of_lane[ITEMS], fence[ITEMS];
byte told[ITEMS]; /* the number whose answer has it; 0: unheard */
byte pushed;      /* the last number of the producer */
byte mark;        /* the last fence */

/* The store: lanes. */
bool known[LANES], waits[LANES];
byte left[LANES], number[LANES], stamp[LANES];
mtype result[LANES] = NONE; /* of the settlement, as it is kept */
#ifdef SPLIT_PLACE
bool looked[LANES]; /* it found nothing, and has no place yet */
#endif

/* The clients. */
mtype state[LANES] = NEW;
byte valid[LANES];
byte last[LANES];         /* the number that was sent last */
byte seen[LANES];         /* the stamp of the last answer */
byte hand[LANES * ITEMS]; /* the fence of what it works on */

/* What is under way: a request, or its answer. */
bool busy[LANES], req[LANES], ans[LANES];
bool again[LANES]; /* it was sent more than once */
byte age[LANES];   /* ticks since it was sent */
byte settles[LANES], token[LANES], span[LANES]; /* settles: the item + 1 */
bool nacks[LANES], wants[LANES];
mtype rc[LANES] = NONE, outcome[LANES] = NONE;
byte got[LANES * ITEMS], got_stamp[LANES];
bool tend[LANES], tended[LANES];
byte tend_age[LANES], tend_left[LANES];

/* A copy that is late. */
bool late[LANES], late_nacks[LANES], late_wants[LANES];
byte late_number[LANES], late_seen[LANES], late_settles[LANES];
byte late_token[LANES], late_span[LANES];

/* The producer: item i is its number i + 1. */
byte sent, answered;
bool push_req, push_ans, push_late[ITEMS];

/* For the checks alone. */
byte made[ITEMS], accepted[ITEMS];
byte ok_fence[ITEMS]; /* the token that was accepted */
byte highest[ITEMS];
bool ended[LANES], went_back;

#if RESTARTS
/* What a restart goes back to. */
bool kept, back;
mtype k_place[ITEMS] = ABSENT, k_result[LANES] = NONE;
byte k_of_lane[ITEMS], k_fence[ITEMS], k_told[ITEMS], k_pushed, k_mark;
bool k_known[LANES], k_waits[LANES];
byte k_left[LANES], k_number[LANES], k_stamp[LANES];
#endif

/* For use within a step; zero between steps. */
byte i, j, v, w, x;
bool known_fence;
mtype says, did;
byte gives[ITEMS];
byte c_number, c_seen, c_settles, c_token, c_span; /* the request that is carried out */
bool c_nacks, c_wants, c_late;

/* ---- what must hold */

#define HAS(k, it) (known[k] && place[it] == OUT && of_lane[it] == k)
#define BELIEVES(k, it) (state[k] == OPEN && valid[k] > 0 && hand[AT(k, it)] > 0)
/* The next new number of this client ends its lane. */
#define REFUSED(k) ((!busy[k] && (seen[k] != stamp[k] || last[k] != number[k])) || \
                    (busy[k] && ans[k] && (got_stamp[k] != stamp[k] || last[k] != number[k])) || \
                    (busy[k] && last[k] > number[k] && \
                     (last[k] != number[k] + 1 || seen[k] != stamp[k])))
#define KNOWS(k, it) (hand[AT(k, it)] == fence[it] || told[it] == 0 || \
                      (busy[k] && settles[k] == it + 1 && token[k] == fence[it]) || \
                      (busy[k] && told[it] == last[k]))

inline check() {
    for (j : 0 .. LANES - 1) {
        for (i : 0 .. ITEMS - 1) {
            if
            :: !went_back && BELIEVES(j, i) ->
                assert(HAS(j, i) && fence[i] == hand[AT(j, i)] && left[j] >= valid[j]) /* (1) */
            :: else
            fi;
            if
            :: state[j] == OPEN && HAS(j, i) && left[j] > 0 && !REFUSED(j) ->
                assert(KNOWS(j, i)) /* (5) */
            :: else
            fi;
            assert(!(place[i] == READY && known[j] && waits[j] && left[j] > 0)) /* (6) */
        }
    }
    for (i : 0 .. ITEMS - 1) {
        assert(went_back || (made[i] <= 1 && accepted[i] <= 1)); /* (2), (3) */
        assert(went_back || answered <= i || place[i] != ABSENT) /* (4) */
    }
}

/* What can no longer matter is forgotten. */
inline forget() {
    for (j : 0 .. LANES - 1) {
        if
        :: state[j] == GONE ->
            valid[j] = 0; last[j] = 0; seen[j] = 0; busy[j] = false; req[j] = false;
            ans[j] = false; tended[j] = false;
            for (i : 0 .. ITEMS - 1) { hand[AT(j, i)] = 0 }
        :: else
        fi;
        if
        :: !busy[j] -> again[j] = false; age[j] = 0; settles[j] = 0; token[j] = 0;
            span[j] = 0; nacks[j] = false; wants[j] = false
        :: else
        fi;
        if
        :: !ans[j] -> rc[j] = NONE; outcome[j] = NONE; got_stamp[j] = 0;
            for (i : 0 .. ITEMS - 1) { got[AT(j, i)] = 0 }
        :: else
        fi;
#if !RESTARTS && !defined(NO_NUMBER) && !defined(NO_TOKEN_LANE)
        /* One that the store will refuse is as good as lost. */
        if
        :: late[j] && (known[j] -> late_number[j] < number[j] : late_number[j] != 1) ->
            late[j] = false
        :: else
        fi;
#endif
        if
        :: !late[j] -> late_nacks[j] = false; late_wants[j] = false; late_number[j] = 0;
            late_seen[j] = 0; late_settles[j] = 0; late_token[j] = 0; late_span[j] = 0
        :: else
        fi;
        if
        :: !known[j] -> waits[j] = false; left[j] = 0; number[j] = 0; stamp[j] = 0;
            result[j] = NONE
        :: else
        fi;
        if :: state[j] == GONE && !late[j] -> ended[j] = false :: else fi;
        if :: !tend[j] -> tend_age[j] = 0 :: else fi;
        if :: !tended[j] -> tend_left[j] = 0 :: else fi
    }
    for (i : 0 .. ITEMS - 1) {
        if :: place[i] != OUT -> of_lane[i] = 0; fence[i] = 0; told[i] = 0 :: else fi
    }
#if RESTARTS
    if
    :: back ->
        kept = false; k_pushed = 0; k_mark = 0;
        for (i : 0 .. ITEMS - 1) {
            k_place[i] = ABSENT; k_of_lane[i] = 0; k_fence[i] = 0; k_told[i] = 0
        }
        for (j : 0 .. LANES - 1) {
            k_result[j] = NONE; k_known[j] = false; k_waits[j] = false; k_left[j] = 0;
            k_number[j] = 0; k_stamp[j] = 0
        }
    :: else
    fi
#endif
}

inline tidy() {
    forget(); check();
    j = 0; v = 0; w = 0; says = NONE; did = NONE;
    c_number = 0; c_seen = 0; c_settles = 0; c_token = 0; c_span = 0;
    c_nacks = false; c_wants = false; c_late = false;
#if !RESTARTS
    mark = 0;
#endif
    for (i : 0 .. ITEMS - 1) { gives[i] = 0 }
    i = 0
}

/* ---- the store: src/store/deliver.c */

#if RESTARTS
inline draw_fence(it) { mark++; assert(mark > highest[it]); highest[it] = mark /* (7) */ }
#else
inline is_fence_known() {
    known_fence = false;
    for (x : 0 .. ITEMS - 1) {
        known_fence = known_fence || fence[x] == mark || ok_fence[x] == mark
    }
    for (x : 0 .. LANES * ITEMS - 1) {
        known_fence = known_fence || hand[x] == mark || got[x] == mark
    }
    for (x : 0 .. LANES - 1) {
        known_fence = known_fence || token[x] == mark || late_token[x] == mark
    }
}

/* One that nobody knows: their order matters after a restart alone. */
inline draw_fence(it) {
    mark = 0;
    do
    :: mark++; is_fence_known(); if :: !known_fence -> break :: else fi
    od;
    x = 0; known_fence = false
}
#endif

inline give(it, k, in_answer) {
    draw_fence(it);
    assert(!ended[k]); /* (8) */
    place[it] = OUT; of_lane[it] = k; fence[it] = mark; told[it] = in_answer
}

inline end_lane(k) {
    known[k] = false; ended[k] = true;
    for (i : 0 .. ITEMS - 1) {
        if
        :: place[i] == OUT && of_lane[i] == k ->
            printf("  store: item %d comes back from %c\n", i, 'A' + k); place[i] = READY
        :: else
        fi
    }
}

inline begin_step() {
    for (j : 0 .. LANES - 1) {
        if
        :: known[j] && left[j] == 0 -> printf("  store: lane %c has run out\n", 'A' + j); end_lane(j)
        :: else
        fi
    }
}

inline serve_lanes() {
#ifdef NO_HAND
    skip
#else
    for (i : 0 .. ITEMS - 1) {
        for (j : 0 .. LANES - 1) {
            if
            :: place[i] == READY && known[j] && waits[j] ->
                waits[j] = false; give(i, j, 0);
                printf("  store: hands item %d to %c, fence %d\n", i, 'A' + j, mark)
            :: else
            fi
        }
    }
#endif
}

#if RESTARTS
#define IS_KEPT(k) (kept && k_known[k] && k_stamp[k] == v)
#else
#define IS_KEPT(k) false
#endif

/* One that nobody knows: all that matters is whether two are the same. */
inline draw_stamp(k) {
    v = 1;
    do
    :: stamp[k] == v || seen[k] == v || (ans[k] && got_stamp[k] == v) ||
       (late[k] && late_seen[k] == v) || IS_KEPT(k) -> v++
    :: else -> break
    od;
    stamp[k] = v; v = 0
}

inline tell_items(k, number_of, repeat) {
    for (i : 0 .. ITEMS - 1) {
        if
        :: HAS(k, i) && (told[i] == number_of || told[i] == 0) ->
#ifdef NO_UNHEARD
            if :: told[i] != 0 -> gives[i] = fence[i] :: else fi;
#else
            gives[i] = fence[i];
#endif
#ifdef REPEAT_EATS
            told[i] = number_of
#else
            if :: !repeat -> told[i] = number_of :: else fi
#endif
        :: else
        fi
    }
}

#ifdef NO_TOKEN_LANE /* a settlement is known by its item */
#define IS_DELIVERY(k, it, f) (place[it] == OUT)
#else
#define IS_DELIVERY(k, it, f) (HAS(k, it) && fence[it] == f)
#endif

inline settle(k, it, f, nack) {
    did = LOST;
    if
    :: IS_DELIVERY(k, it, f) && nack ->
        did = OK; place[it] = READY; printf("  store: %c gives item %d back\n", 'A' + k, it)
    :: IS_DELIVERY(k, it, f) && !nack ->
        did = OK; place[it] = ACKED; accepted[it]++; ok_fence[it] = f;
        printf("  store: accepts item %d of %c\n", it, 'A' + k)
    :: else
    fi
}

inline take_item(k, num) {
    v = 0;
    for (i : 0 .. ITEMS - 1) {
        if
        :: v == 0 && place[i] == READY ->
            v = 1; give(i, k, num); gives[i] = mark;
            printf("  store: gives item %d to %c, fence %d\n", i, 'A' + k, mark)
        :: else
        fi
    }
}

/* A request of the next number. */
inline do_reserve(k, num, item, f, nack, want, spn) {
    if :: item > 0 -> settle(k, item - 1, f, nack) :: else fi;
    result[k] = did;
    w = 0;
    for (i : 0 .. ITEMS - 1) { w = w + HAS(k, i) }
    if :: left[k] < spn || w == 0 -> left[k] = spn :: else fi;
    number[k] = num; waits[k] = false;
    draw_stamp(k);
    tell_items(k, num, false);
    w = 0;
    for (i : 0 .. ITEMS - 1) { w = w + (gives[i] > 0) }
    if :: want && w == 0 -> take_item(k, num); w = v :: else fi;
    if
    :: want && w == 0 ->
#ifdef SPLIT_PLACE
        looked[k] = true
#else
        waits[k] = true
#endif
    :: else
    fi;
    v = 0; w = 0
}

inline open_lane(k, spn, want) {
    known[k] = true; number[k] = 1; left[k] = spn; result[k] = NONE; waits[k] = false;
    draw_stamp(k);
    if :: state[k] != GONE -> ended[k] = false :: else fi;
#ifdef FIRST_TAKES
    if :: want -> take_item(k, 1); v = 0 :: else fi
#endif
}

#ifdef NO_NUMBER
#define IS_REPEAT(k, num) false
#define IS_OVER(k, num)   false
#else
#define IS_REPEAT(k, num) (num == number[k])
#define IS_OVER(k, num)   (num < number[k])
#endif
#ifdef NO_GAP
#define IS_GAP(k, num, saw) false
#else
#ifdef NO_STAMP
#define IS_GAP(k, num, saw) (num > number[k] + 1)
#else
#ifdef NO_NUMBER
#define IS_GAP(k, num, saw) false
#else
#define IS_GAP(k, num, saw) (num > number[k] + 1 || saw != stamp[k])
#endif
#endif
#endif

inline reserve(k, num, saw, item, f, nack, want, spn) {
    says = OK; did = NONE;
    begin_step();
    if
    :: !known[k] && num == 1 -> printf("  store: opens %c\n", 'A' + k); open_lane(k, spn, want)
    :: !known[k] && num != 1 -> says = LOST;
#ifdef NO_TOKEN_LANE
        if :: item > 0 -> settle(k, item - 1, f, nack); did = NONE :: else fi
#endif
    :: known[k] && IS_OVER(k, num) -> says = LOST
    :: known[k] && IS_REPEAT(k, num) ->
        printf("  store: number %d of %c again\n", num, 'A' + k);
        did = result[k];
        tell_items(k, num, true);
        if :: left[k] < spn -> left[k] = spn :: else fi
    :: known[k] && !IS_OVER(k, num) && !IS_REPEAT(k, num) && IS_GAP(k, num, saw) ->
        printf("  store: number %d of %c is not the next\n", num, 'A' + k);
        says = LOST; end_lane(k)
    :: else ->
        printf("  store: number %d of %c\n", num, 'A' + k);
        do_reserve(k, num, item, f, nack, want, spn)
    fi;
    serve_lanes()
}

#ifdef NO_NUMBER_PUSH
#define IS_NEXT_PUSH(it) true
#else
#ifdef PUSH_BY_ITEM /* an item is known while it lives */
#define IS_NEXT_PUSH(it) (place[it] != READY && place[it] != OUT)
#else
#define IS_NEXT_PUSH(it) (pushed == it)
#endif
#endif

inline push(it) {
    begin_step();
    if
    :: IS_NEXT_PUSH(it) ->
        printf("  store: makes item %d\n", it);
        pushed = it + 1; place[it] = READY; made[it]++
    :: else
    fi;
    serve_lanes()
}

/* ---- a client */

inline make_late(k) {
    late[k] = true; late_number[k] = last[k]; late_seen[k] = seen[k];
    late_settles[k] = settles[k]; late_token[k] = token[k]; late_nacks[k] = nacks[k];
    late_wants[k] = wants[k]; late_span[k] = span[k]
}

inline give_up(k) {
#if LATE
    if :: req[k] && !late[k] -> make_late(k) :: else fi;
#endif
    state[k] = GONE
}

#ifdef NO_BELIEF_END
#define END_BELIEF(k, it) skip
#else
#define END_BELIEF(k, it) hand[AT(k, it)] = 0
#endif

/* `how`: 0 settles only, 1 wants one too, 2 the same with a nack. */
inline send(k, item, how) {
    last[k]++; busy[k] = true; req[k] = true; age[k] = 0;
    settles[k] = item; nacks[k] = how == 2; wants[k] = how > 0; span[k] = PLACE;
    if
    :: item > 0 -> token[k] = hand[AT(k, item - 1)]; END_BELIEF(k, item - 1)
    :: else
    fi;
    printf("%c: sends number %d, settles %d, wants %d\n", 'A' + k, last[k], item, wants[k]);
    for (i : 0 .. ITEMS - 1) {
        if :: hand[AT(k, i)] > 0 -> span[k] = TTL :: else fi
    }
}

inline set_valid(k) {
#ifdef VALID_FROM_ANSWER
    v = span[k];
#else
    v = LESS(span[k], age[k]);
#endif
    w = 0;
    for (i : 0 .. ITEMS - 1) { w = w + hand[AT(k, i)] }
    if :: w == 0 || valid[k] < v -> valid[k] = v :: else fi;
#ifndef TEND_ACROSS
    tend[k] = false; tended[k] = false;
#endif
    v = 0; w = 0
}

inline be_told(k) {
    v = settles[k];
    if
    :: v > 0 && !went_back && !nacks[k] ->
        assert(outcome[k] != OK || ok_fence[v - 1] == token[k]); /* (2) */
        assert(outcome[k] != LOST || ok_fence[v - 1] != token[k])
    :: else
    fi;
    v = 0
}

inline be_lost(k) {
    v = settles[k];
#ifdef LOST_MEANS_NOT
    assert(went_back || v == 0 || nacks[k] || ok_fence[v - 1] != token[k]); /* (2) */
#else
    assert(went_back || again[k] || v == 0 || nacks[k] || ok_fence[v - 1] != token[k]);
#endif
    v = 0;
    printf("%c: its lane is lost\n", 'A' + k);
    give_up(k)
}

inline hear(k) {
    if
    :: rc[k] == LOST -> be_lost(k)
    :: else ->
        be_told(k);
        set_valid(k); /* before the new ones: of an empty hand it is set */
        seen[k] = got_stamp[k];
        for (i : 0 .. ITEMS - 1) {
#ifdef IGNORE_BEYOND
            if :: got[AT(k, i)] > 0 && wants[k] -> hand[AT(k, i)] = got[AT(k, i)] :: else fi
#else
            if :: got[AT(k, i)] > 0 -> hand[AT(k, i)] = got[AT(k, i)] :: else fi
#endif
        }
        printf("%c: is answered number %d, valid for %d\n", 'A' + k, last[k], valid[k])
    fi;
    busy[k] = false; ans[k] = false
}

#define MAY_SEND(k) (state[k] == OPEN && !busy[k] && last[k] < NUMBERS)

proctype Client(byte k) {
end:
    do
    :: atomic {
        if
        :: d_step { state[k] == NEW && (k == 0 || state[k - 1] != NEW) -> state[k] = OPEN; i = 0; w = 1 }
        :: d_step { MAY_SEND(k) -> i = 0; w = 1 }
        :: d_step { MAY_SEND(k) && BELIEVES(k, 0) -> i = 1; w = 1 }
        :: d_step { MAY_SEND(k) && BELIEVES(k, 0) -> i = 1; w = 0 }
#if ITEMS > 1
        :: d_step { MAY_SEND(k) && BELIEVES(k, 1) -> i = 2; w = 1 }
#endif
#if NACKS
        :: d_step { MAY_SEND(k) && BELIEVES(k, 0) -> i = 1; w = 2 }
#endif
        fi;
        d_step { send(k, i, w); tidy() } }
    :: atomic {
        if
        :: d_step { ans[k] -> hear(k) }
        :: d_step { ans[k] ->
            printf("%c: the answer is lost; sends it again\n", 'A' + k);
            ans[k] = false; req[k] = true; again[k] = true; age[k] = 0 }
#if LATE
        :: d_step { req[k] && !late[k] ->
            printf("%c: sends it again; the first is late\n", 'A' + k);
            make_late(k); again[k] = true; age[k] = 0 }
#endif
#ifdef NO_WAIT_ANSWER /* goes on with the next number */
        :: d_step { state[k] == OPEN && busy[k] && last[k] < NUMBERS ->
            printf("%c: waits no longer for the answer\n", 'A' + k);
            if :: req[k] -> make_late(k) :: else fi;
            seen[k] = stamp[k]; busy[k] = false; req[k] = false; ans[k] = false }
#endif
#if TENDS
        :: d_step { state[k] == OPEN && valid[k] > 0 && !tend[k] && !tended[k] ->
            printf("%c: renews its lane\n", 'A' + k); tend[k] = true }
        :: d_step { tended[k] ->
            if :: valid[k] > 0 && valid[k] < tend_left[k] -> valid[k] = tend_left[k] :: else fi;
            tended[k] = false }
#endif
        /* A leave that comes later does no more than the end of its time. */
        :: d_step { state[k] == OPEN -> give_up(k); printf("%c: crashes\n", 'A' + k) }
        :: d_step { state[k] == OPEN && known[k] ->
            give_up(k); printf("%c: leaves\n", 'A' + k);
            begin_step();
            if :: known[k] -> end_lane(k) :: else fi;
            serve_lanes(); j = 0 }
        fi;
        d_step { tidy() } }
    od
}

inline answer(k) {
    req[k] = false; ans[k] = true; rc[k] = says; outcome[k] = did;
    got_stamp[k] = stamp[k];
    for (i : 0 .. ITEMS - 1) { got[AT(k, i)] = gives[i] }
}

proctype Link(byte k) {
end:
    do
    :: atomic {
        if
        :: d_step { req[k] ->
            c_number = last[k]; c_seen = seen[k]; c_settles = settles[k]; c_token = token[k];
            c_nacks = nacks[k]; c_wants = wants[k]; c_span = span[k] }
        :: d_step { late[k] ->
            printf("  store: a late one of %c\n", 'A' + k);
            late[k] = false; c_late = true;
            c_number = late_number[k]; c_seen = late_seen[k]; c_settles = late_settles[k];
            c_token = late_token[k]; c_nacks = late_nacks[k]; c_wants = late_wants[k];
            c_span = late_span[k] }
        fi;
        d_step {
            reserve(k, c_number, c_seen, c_settles, c_token, c_nacks, c_wants, c_span);
            if :: !c_late -> answer(k) :: else fi;
            tidy() } }
#if TENDS
    :: d_step { tend[k] ->
            tend[k] = false;
            if
            :: known[k] && left[k] > 0 ->
                if :: left[k] < TTL -> left[k] = TTL :: else fi;
                tended[k] = state[k] == OPEN; tend_left[k] = LESS(TTL, tend_age[k])
            :: else
            fi;
            tidy() }
#endif
#ifdef SPLIT_PLACE
    :: d_step { looked[k] -> looked[k] = false; waits[k] = known[k]; tidy() }
#endif
    od
}

proctype Producer() {
end:
    do
    :: atomic {
        if
        :: d_step { sent == answered && sent < ITEMS ->
            sent++; push_req = true; printf("P: pushes item %d\n", sent - 1); w = ITEMS }
        :: d_step { push_req -> push_req = false; push_ans = true; w = sent - 1 }
        :: d_step { push_ans -> push_ans = false; answered = sent; w = ITEMS }
        :: d_step { push_ans ->
            printf("P: the answer is lost; sends it again\n");
            push_ans = false; push_req = true; w = ITEMS }
#if LATE_PUSH
        :: d_step { push_req && !push_late[sent - 1] ->
            printf("P: sends it again; the first is late\n");
            push_late[sent - 1] = true; w = ITEMS }
        :: d_step { push_late[0] ->
            printf("  store: a late push\n"); push_late[0] = false; w = 0 }
#endif
        fi;
        d_step { if :: w < ITEMS -> push(w) :: else fi; tidy() } }
    od
}

#if RESTARTS
inline keep_state() {
    kept = true; k_pushed = pushed; k_mark = mark;
    for (i : 0 .. ITEMS - 1) {
        k_place[i] = place[i]; k_of_lane[i] = of_lane[i]; k_fence[i] = fence[i];
        k_told[i] = told[i]
    }
    for (j : 0 .. LANES - 1) {
        k_result[j] = result[j]; k_known[j] = known[j]; k_waits[j] = waits[j];
        k_left[j] = left[j]; k_number[j] = number[j]; k_stamp[j] = stamp[j]
    }
}

inline go_back() {
    printf("  store: starts anew, without its tail\n");
    back = true; went_back = true; pushed = k_pushed;
#ifdef COUNTER /* the clock does not carry the fences */
    mark = k_mark;
#endif
    for (i : 0 .. ITEMS - 1) {
        place[i] = k_place[i]; of_lane[i] = k_of_lane[i]; fence[i] = k_fence[i];
        told[i] = k_told[i]
    }
    for (j : 0 .. LANES - 1) {
        result[j] = k_result[j]; known[j] = k_known[j]; waits[j] = k_waits[j];
        left[j] = k_left[j]; number[j] = k_number[j]; stamp[j] = k_stamp[j];
        ended[j] = ended[j] && !known[j]
    }
}
#endif

proctype Clock() {
end:
    do
    :: atomic {
        if
        :: d_step { printf("tick\n");
            for (j : 0 .. LANES - 1) {
                left[j] = LESS(left[j], 1); valid[j] = LESS(valid[j], 1);
                tend_left[j] = LESS(tend_left[j], 1);
                if :: busy[j] && age[j] < TTL -> age[j]++ :: else fi;
                if :: tend[j] && tend_age[j] < TTL -> tend_age[j]++ :: else fi
            };
            j = 0 }
#if RESTARTS
        :: d_step { !kept && !back -> keep_state(); j = 0 }
        :: d_step { kept && !back -> go_back(); j = 0 }
#endif
        fi;
        d_step { tidy() } }
    od
}

init {
    atomic {
        for (j : 0 .. LANES - 1) { run Client(j); run Link(j) }
        run Producer();
        run Clock();
        d_step { says = NONE; did = NONE; j = 0 }
    }
}
