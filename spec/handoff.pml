/* handoff.pml - one name at one store: queue, claim, doorbell, renewal, loss,
 * tombstones.
 *
 * An owner is one acquisition. Its client, the requests it has under way, and the
 * store take one step at a time, in any order. A tick moves all clocks at once,
 * and no step is ever due: a client may stand still, and a request or a ring be
 * under way, for any number of ticks, or be lost. spec/README.md says what that
 * leaves out. NO_RULE_n takes out rule n of docs/design.md. */
/* SPDX-License-Identifier: MIT */

#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef TTL
#define TTL 3
#endif
#ifndef CLAIM
#define CLAIM 2
#endif

#ifndef LATE
#define LATE 1 /* a request that was given up may still arrive */
#endif

#define SPAN (TTL > CLAIM -> TTL : CLAIM)
#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)
#define NONE OWNERS

/* DRIFT: a client's clock may lose one tick in SPAN, and so much is not believed
 * of what the store gives. */
#if defined(DRIFT) && !defined(NO_DRIFT_RULE)
#define ALLOW 1
#else
#define ALLOW 0
#endif

/* Replays print fences as they are. The search renames them (see compact). */
#ifndef REAL_FENCES
#define REAL_FENCES 0
#endif

/* What an owner is to the store. */
#define NOBODY 0
#define WAITER 1
#define HOLDER 2
#define TOMB   3

/* The state of a client: those of src/core/machine/lease.h, with LOST and the end of the
 * owner in one. */
#define FREE   0
#define ASKING 1
#define QUEUED 2
#define HELD   3
#define OVER   4

/* A request under way, and what it was answered. */
#define ASK   1
#define RENEW 2
mtype = { yes, queue, no };

/* How an owner leaves. */
#define PLAIN 1
#define BURY  2

/* The store. */
byte role[OWNERS];
byte pos[OWNERS];   /* of a waiter, from 1 */
byte holder = NONE;
byte hfence, hleft; /* of the holder */
byte mark;          /* the watermark */
bool done[OWNERS];  /* its release has been carried out */

/* The clients. */
byte state[OWNERS];
byte age[OWNERS];   /* of the request under way, since it was sent */
byte since[OWNERS]; /* QUEUED: since the ask that was so answered was sent */
byte seen[OWNERS];  /* QUEUED: the watermark in that answer */
byte rung[OWNERS];  /* the highest ring that was heard */
byte fence[OWNERS];
byte valid[OWNERS]; /* what is left of it */
bool doubt[OWNERS]; /* a request had no answer */
bool slow[OWNERS];  /* DRIFT: its clock will lose a tick; */
byte tired[OWNERS]; /* ... none is lost again for so long */

/* What is under way. A request that was given up is late: its answer is read by
 * nobody. There may be any number of late ones. */
byte req[OWNERS];
mtype ans[OWNERS];
byte afence[OWNERS];
byte aleft[OWNERS]; /* of what was granted, counted from the sending */
bool late_ask[OWNERS], late_renew[OWNERS];
byte leave[OWNERS];
byte bell[OWNERS];  /* the fence of a ring */
#ifdef NO_RULE_3_CANCEL
bool waited[OWNERS];
#endif

/* For use within a step; zero between steps. */
byte j, v, w, f, n, head;
byte used;

#ifdef NO_RULE_6 /* both halves of it */
#define NO_RULE_6_FENCE
#define NO_RULE_6_FINAL
#endif

#ifdef NO_RULE_6_FENCE
#define IS_FENCE(k) true
#else
#define IS_FENCE(k) (hfence == fence[k])
#endif

/* ---- what must hold after every step */

#define BELIEVES(k) (state[k] == HELD && valid[k] > 0)

/* Whoever believes is the holder, under that fence, for at least as long. So no
 * two believe at once. */
inline check() {
    for (j : 0 .. OWNERS - 1) {
        assert(!BELIEVES(j) || holder == j);
        assert(!BELIEVES(j) || hfence == fence[j]);
        assert(!BELIEVES(j) || hleft >= valid[j])
    }
}

inline lower(x) { if :: x > v -> x-- :: else fi }

/* Fences are only compared, and the next is above all: so a fence that nobody
 * knows can be left out and those above it lowered. That keeps them few, however
 * many grants there are. */
inline compact() {
    v = LESS(mark, 1);
    do
    :: REAL_FENCES || v == 0 -> break
    :: else ->
        used = hfence == v;
        for (j : 0 .. OWNERS - 1) {
            used = used || seen[j] == v || rung[j] == v || fence[j] == v ||
                   afence[j] == v || bell[j] == v
        }
        if
        :: !used ->
            lower(mark); lower(hfence);
            for (j : 0 .. OWNERS - 1) {
                lower(seen[j]); lower(rung[j]); lower(fence[j]);
                lower(afence[j]); lower(bell[j])
            }
        :: else
        fi;
        v--
    od
}

/* A renewal that can no longer be of a lease is as good as lost. */
inline drop_late() {
    for (j : 0 .. OWNERS - 1) {
        late_renew[j] = late_renew[j] && holder == j && IS_FENCE(j);
        if :: state[j] == OVER && !late_renew[j] -> fence[j] = 0 :: else fi
    }
}

inline tidy() {
    j = 0; v = 0; w = 0; f = 0; n = 0; head = 0; used = 0
}

inline settle() { drop_late(); compact(); check(); tidy() }

/* ---- the store: src/store/grant.c */

inline leave_queue(k) {
    for (j : 0 .. OWNERS - 1) {
        if :: pos[j] > pos[k] -> pos[j]-- :: else fi
    }
    pos[k] = 0;
    role[k] = NOBODY
}

inline give(k, span) {
    assert(!done[k]); /* who has left is granted nothing */
    leave_queue(k);
    role[k] = HOLDER;
    mark++;
    holder = k; hfence = mark; hleft = span
}

/* Who is served while asking gets its ttl; another gets a claim and is rung. Of two
 * rings for one owner that are under way one is lost: this one, unless the other
 * was lost before. */
inline serve(asker) {
    head = NONE;
    for (j : 0 .. OWNERS - 1) {
        if :: role[j] == WAITER && pos[j] == 1 -> head = j :: else fi
    }
    if
    :: holder == NONE && head != NONE && head == asker -> give(head, TTL)
    :: holder == NONE && head != NONE && head != asker ->
        give(head, CLAIM);
        printf("  store: hands off to %c, fence %d\n", 'A' + head, mark);
        if
        :: (state[head] == ASKING || state[head] == QUEUED) && bell[head] == 0 -> bell[head] = mark
        :: else
        fi
    :: else
    fi
}

inline do_acquire(k) {
    w = 0;
    if
    :: role[k] == HOLDER -> w = hleft;
#ifdef NO_RULE_4
        w = TTL
#endif
    :: role[k] == TOMB
    :: else ->
        if
        :: role[k] == NOBODY ->
            n = 1;
            for (j : 0 .. OWNERS - 1) { n = n + (role[j] == WAITER) }
            role[k] = WAITER;
            pos[k] = n
        :: else
        fi;
        serve(k);
        if :: role[k] == HOLDER -> w = hleft :: else fi
    fi
}


#ifdef NO_RULE_5
#define RENEWED TTL
#else
#define RENEWED (hleft > TTL -> hleft : TTL)
#endif

inline do_renew(k) {
    w = 0;
    if
    :: role[k] == HOLDER && IS_FENCE(k) -> hleft = RENEWED; w = hleft
    :: else
    fi;
    serve(NONE)
}

inline do_release(k) {
    if
    :: role[k] == HOLDER ->
#ifdef NO_RULE_3_CANCEL /* the lease of one who thought it was waiting stays */
        if
        :: waited[k] -> skip
        :: else -> holder = NONE; role[k] = NOBODY
        fi
#else
        holder = NONE; role[k] = NOBODY
#endif
    :: role[k] == WAITER -> leave_queue(k)
    :: else
    fi;
    if :: holder == NONE -> hfence = 0; hleft = 0 :: else fi;
#ifndef NO_RULE_3
    if :: leave[k] == BURY -> role[k] = TOMB :: else fi;
#endif
    leave[k] = 0;
    done[k] = true;
    assert(role[k] != HOLDER);
    serve(NONE)
}

/* ---- a client: src/core/machine/lease.c */

inline forget_wait(i) { since[i] = 0; seen[i] = 0; rung[i] = 0 }

inline become_held(i, token, span) {
    state[i] = HELD; fence[i] = token; valid[i] = span;
    forget_wait(i);
    bell[i] = 0;
    printf("%c: holds, fence %d, valid for %d\n", 'A' + i, token, span)
}

#ifdef NO_RULE_1
#define COUNTS(i, token) (token > 0)
#else
#define COUNTS(i, token) (token > seen[i])
#endif

inline consider_ring(i, token) {
    if
    :: COUNTS(i, token) && CLAIM > since[i] + ALLOW ->
        f = token;
        become_held(i, f, CLAIM - since[i] - ALLOW)
    :: else
    fi
}

inline hear_ring(i) {
    f = bell[i];
    bell[i] = 0;
    printf("%c: hears its ring, fence %d\n", 'A' + i, f);
    if :: f > rung[i] -> rung[i] = f :: else fi;
    if
    :: state[i] == QUEUED -> consider_ring(i, f)
#ifdef NO_RULE_2 /* counts from an ask that has no answer yet */
    :: state[i] == ASKING && req[i] == ASK && CLAIM > age[i] + ALLOW ->
        req[i] = 0; late_ask[i] = true; doubt[i] = true;
        become_held(i, f, CLAIM - age[i] - ALLOW); age[i] = 0
#endif
    :: else
    fi
}

/* A request that was not answered may still arrive. */
inline give_up_request(i) {
#if LATE
    late_ask[i] = late_ask[i] || req[i] == ASK;
    late_renew[i] = late_renew[i] || req[i] == RENEW;
#endif
    req[i] = 0; ans[i] = 0; afence[i] = 0; aleft[i] = 0; age[i] = 0
}

/* The owner is nobody's any more; belief ends here. The fence stays known for the
 * late renewals that carry it. */
inline end_owner(i) {
    give_up_request(i);
    state[i] = OVER; valid[i] = 0; doubt[i] = false; bell[i] = 0; tired[i] = 0; slow[i] = false;
    forget_wait(i)
}

inline be_answered(i) {
    w = LESS(aleft[i], ALLOW);
    f = afence[i];
    n = ans[i];
    ans[i] = 0; afence[i] = 0; aleft[i] = 0;
    if
    :: state[i] == ASKING && n == yes && w > 0 -> become_held(i, f, w)
    :: state[i] == ASKING && n == yes && w == 0 -> skip /* asks again */
    :: state[i] == ASKING && n == queue ->
        printf("%c: is told that it is queued, watermark %d\n", 'A' + i, f);
        state[i] = QUEUED; seen[i] = f; since[i] = age[i];
        f = rung[i];
        if :: f > 0 -> consider_ring(i, f) :: else fi
    :: state[i] == HELD && n == yes ->
#ifndef NO_RULE_6_FINAL
        if
        :: valid[i] == 0 -> printf("%c: has lost it\n", 'A' + i); end_owner(i)
        :: else ->
#else
        if
        :: true ->
#endif
            if :: w > valid[i] -> valid[i] = w :: else fi;
            printf("%c: is renewed, valid for %d\n", 'A' + i, valid[i])
        fi
    :: state[i] == HELD && n == no ->
        printf("%c: is told that it is lost\n", 'A' + i); end_owner(i)
    :: else -> assert(false) /* an owner that has not left is never under a tombstone */
    fi;
    age[i] = 0
}

#define BUSY(i) (req[i] != 0 || ans[i] != 0)

inline start_leaving(i) {
    leave[i] = (doubt[i] || BUSY(i) -> BURY : PLAIN);
#ifdef NO_RULE_3_CANCEL
    waited[i] = state[i] != HELD;
#endif
    printf("%c: leaves\n", 'A' + i);
#ifndef NO_RULE_7
    end_owner(i)
#endif
}

proctype Client(byte i) {
end:
    do
    :: d_step { (state[i] == FREE || (state[i] == ASKING && !BUSY(i)) || state[i] == QUEUED) ->
            printf("%c: asks\n", 'A' + i);
            state[i] = ASKING; req[i] = ASK; age[i] = 0;
            forget_wait(i); /* what was rung before cannot count for this ask */
            settle() }
    :: d_step { ans[i] != 0 ->
            be_answered(i); settle() }
    :: d_step { bell[i] != 0 ->
            hear_ring(i); settle() }
    :: d_step { bell[i] != 0 ->
            bell[i] = 0; settle() } /* it is lost */
    :: d_step { BUSY(i) && (state[i] == ASKING || state[i] == HELD) ->
            printf("%c: has no answer in time\n", 'A' + i);
            give_up_request(i); doubt[i] = true; settle() }
    :: d_step { BELIEVES(i) && !BUSY(i) && !leave[i] ->
            printf("%c: renews\n", 'A' + i);
            req[i] = RENEW; age[i] = 0; settle() }
    /* What ran out here is running out there: nothing is sent. */
    :: d_step { state[i] == HELD && valid[i] == 0 ->
            printf("%c: finds it lost\n", 'A' + i); end_owner(i); settle() }
    :: d_step { (state[i] == ASKING || state[i] == QUEUED || BELIEVES(i)) && !leave[i] && !done[i] ->
            start_leaving(i); settle() }
    :: d_step { state[i] != FREE && state[i] != OVER ->
            printf("%c: crashes\n", 'A' + i); end_owner(i); settle() }
#ifdef DRIFT
    :: d_step { tired[i] == 0 && !slow[i] && state[i] != FREE && state[i] != OVER -> slow[i] = true }
#endif
    /* Nothing knows the owner any more, or its tombstone outlived all it had
     * asked: this place is another owner's. */
    :: d_step { state[i] == OVER && !late_ask[i] && !late_renew[i] && !leave[i] && (role[i] == NOBODY || role[i] == TOMB) ->
            role[i] = NOBODY; state[i] = FREE; done[i] = false; fence[i] = 0; settle() }
    od
}

/* What owner i has under way reaches the store, or does not. */
proctype Link(byte i) {
end:
    do
    :: d_step { req[i] == ASK ->
            req[i] = 0;
            do_acquire(i);
            if
            :: role[i] == HOLDER ->
                ans[i] = yes; afence[i] = hfence; aleft[i] = LESS(w, age[i]); age[i] = 0
            :: role[i] == TOMB -> ans[i] = no
            :: else -> ans[i] = queue; afence[i] = mark
            fi;
            printf("  store: %c asked: %e, fence %d, left %d\n", 'A' + i, ans[i], afence[i], aleft[i]);
            settle() }
    :: d_step { req[i] == RENEW ->
            req[i] = 0;
            do_renew(i);
            ans[i] = (w > 0 -> yes : no); aleft[i] = LESS(w, age[i]); age[i] = 0;
            printf("  store: %c renewed: %e, left %d\n", 'A' + i, ans[i], w);
            settle() }
    :: d_step { late_ask[i] ->
            printf("  store: a late ask of %c arrives\n", 'A' + i);
            do_acquire(i); settle() }
    :: d_step { late_renew[i] ->
            printf("  store: a late renewal of %c arrives\n", 'A' + i);
            do_renew(i); settle() }
    :: d_step { late_ask[i] || late_renew[i] ->
            late_ask[i] = false; late_renew[i] = false;
            settle() }
    :: d_step { leave[i] != 0 ->
            printf("  store: %c's release\n", 'A' + i);
            do_release(i); settle() }
    :: d_step { leave[i] != 0 ->
            leave[i] = 0; settle() }
    /* The place of a waiter ends, whenever that is. */
    :: d_step { role[i] == WAITER ->
            leave_queue(i); settle() }
    od
}

inline count_up(x) { if :: x < SPAN -> x++ :: else fi }

inline pass(k) {
    if :: req[k] != 0 || ans[k] == queue -> count_up(age[k]) :: else fi;
    aleft[k] = LESS(aleft[k], 1);
    if :: state[k] == QUEUED -> count_up(since[k]) :: else fi;
    if :: valid[k] > 0 -> valid[k]-- :: else fi
}

/* A clock that has lost a tick goes right for SPAN. */
proctype Clock() {
end:
    do
    :: d_step { true ->
            printf("tick\n");
            hleft = LESS(hleft, 1);
            if
            :: holder != NONE && hleft == 0 -> role[holder] = NOBODY; holder = NONE; hfence = 0
            :: else
            fi;
            for (n : 0 .. OWNERS - 1) {
                if
                :: slow[n] -> slow[n] = false; tired[n] = SPAN; printf("  but not for %c\n", 'A' + n)
                :: else -> pass(n); tired[n] = LESS(tired[n], 1)
                fi
            }
            settle() }
    od
}

init {
    atomic {
        for (n : 0 .. OWNERS - 1) { run Client(n); run Link(n) }
        run Clock();
        n = 0
    }
}
