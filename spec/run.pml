/* run.pml - one step of a run: claim, start, result, loss of the node, takeover, retry, cancel.
 *
 * A node is one incarnation with one lease; a node that died does not come back. The lease
 * ends at the store after TTL ticks without renewal, and the node's belief never outlasts
 * it. The guard kills the tree when belief ends and when the node dies. All changes of the
 * record are commits that name the version expected. A request may be carried out at any
 * later time or never, and its answer may be lost. CANCELS times somebody else changes the
 * record. With TWICE a claim only reserves, and a second commit begins the attempt: the form
 * of jobs with a lock.
 *
 * Checked:
 *   I5 one tree of the step lives at any time;
 *   I6 starts are at most ATTEMPTS;
 *   I7 a result is taken from the claimant alone;
 *   I8 a live node knows of the step if the record names it;
 *   I9 the step of a dead node is looked after.
 *
 * Switches take rules of src/jobs/task.h and run_machine.h out:
 *   NO_VERSION   a claim is taken if the record says READY, a result if it says RUN
 *   NO_REPEAT    a claim that is not answered is forgotten (5)
 *   NO_REREAD    a result that meets another version is dropped (9)
 *   NO_HOLD      a claim with too little of the lease left is forgotten (6)
 *   NO_CONFIRM   the command starts when the claim is sent (6)
 *   NO_GUARD     the tree lives on when belief has ended (7)
 *   NO_LEASE     the step is taken over from a node that lives (8)
 *   NODE_LIST    dead nodes are found in a list, from which those without runs go (8) */
/* SPDX-License-Identifier: MIT */

#ifndef NODES
#define NODES 2
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifdef NO_LEASE
#define GONE(o) true
#else
#define GONE(o) (left[o] == 0 && !struck[o])
#endif
#define READY 1
#define RUN   2
#define RETRY 3
#define ENDED 4
#define CLAIMED 5
/* what a node is doing */
#define IDLE 0
#define CLAIMING 1
#define RUNNING 2
#define ENDING 3
#define LOST 4
#define HELD 5     /* has the run, but not started it: too little left of the lease */
/* requests */
#define CLAIM 1
#define RESULT 2
#define TAKE 3
#define SWEEP 4
#define BEGIN 5

byte st = READY, ver = 1, owner = NODES, attempt;  /* the record */
byte left[NODES] = TTL, valid[NODES] = TTL;        /* the lease at the store, and belief in it */
byte ns[NODES], rk[NODES], rv[NODES], ans[NODES];  /* state; request under way: kind, version, answer (0 none, 1 yes, 2 no) */
byte lk[NODES], lv[NODES];                         /* late request */
byte mine[NODES];                                  /* version of the record as the node left it */
bool proc[NODES];                                  /* a process of the run is alive there */
byte starts, cancels = CANCELS;
bool yes, struck[NODES]; byte j, alive;

inline carry_out(n, kind, version) {
    yes = false;
    if
    :: kind == CLAIM ->
#ifdef NO_VERSION
        if :: st == READY -> yes = true :: else fi;
#else
        if :: st == READY && ver == version -> yes = true :: else fi;
#endif
        if :: yes -> owner = n; ver++;
#ifdef TWICE
                     st = CLAIMED
#else
                     st = RUN; attempt++
#endif
           :: else fi
    :: kind == BEGIN -> if :: st == CLAIMED && ver == version -> yes = true; st = RUN; attempt++; ver++ :: else fi
    :: kind == RESULT ->
#ifdef NO_VERSION
        if :: st == RUN -> yes = true :: else fi;
#else
        if :: st == RUN && ver == version -> yes = true :: else fi;
#endif
        if
        :: yes -> assert(owner == n); /* a result is accepted from whom the attempt belongs to */
            ver++;
            if :: st = ENDED                                  /* it ended well, or was cancelled */
               :: attempt < ATTEMPTS -> st = RETRY
               :: attempt >= ATTEMPTS -> st = ENDED fi;
            owner = NODES
        :: else fi
    :: kind == TAKE ->
        if :: (st == RUN || st == CLAIMED) && ver == version -> yes = true; ver++; owner = NODES;
              if :: st == CLAIMED -> st = READY
                 :: st == RUN && attempt < ATTEMPTS -> st = RETRY
                 :: st == RUN && attempt >= ATTEMPTS -> st = ENDED fi
           :: else fi
    :: kind == SWEEP ->
        if :: st == RETRY && ver == version -> yes = true; ver++; st = READY :: else fi
    fi
}

inline forget(n) { rk[n] = 0; rv[n] = 0; ans[n] = 0 }
inline put_off(n) { if :: rk[n] && ans[n] == 0 -> lk[n] = rk[n]; lv[n] = rv[n] :: else fi; forget(n) }
inline start(n) { proc[n] = true; starts++; ns[n] = RUNNING }
inline ask(n, kind, version) { rk[n] = kind; rv[n] = version; ans[n] = 0 }

inline check() {
    alive = 0;
    for (j : 0 .. NODES - 1) { alive = alive + proc[j] }
    assert(alive <= 1);                       /* I5 */
    assert(starts <= ATTEMPTS);
    /* Nobody waits for a node that lives and knows nothing of the run. */
    for (j : 0 .. NODES - 1) {
        assert(!((st == RUN || st == CLAIMED) && owner == j && left[j] && ns[j] == IDLE && !rk[j] && !lk[j]))
    }
    /* ... nor for one that is dead and that nobody looks after. */
    assert(!((st == RUN || st == CLAIMED) && left[owner] == 0 && struck[owner]));
    j = 0; alive = 0; yes = false
}

active proctype world() {
    byte n;
    do
    :: atomic { /* time */
        for (j : 0 .. NODES - 1) {
            if :: left[j] -> left[j]-- :: else fi;
            if :: valid[j] -> valid[j]--;
                  if :: valid[j] == 0 ->
#ifndef NO_GUARD
                         proc[j] = false;
#endif
                         put_off(j); ns[j] = LOST; mine[j] = 0
                     :: else fi
               :: else fi
        }
        check() }
    :: atomic { cancels && (st == RUN || st == CLAIMED) -> cancels--; ver++; check() } /* somebody else changes the record */
    :: atomic { select(n : 0 .. NODES - 1);
        if
        :: valid[n] && left[n] -> left[n] = TTL; valid[n] = TTL     /* renewed */
        :: valid[n] && left[n] -> left[n] = TTL                     /* ... and the answer was lost */
        :: valid[n] -> proc[n] = false; put_off(n); valid[n] = 0; ns[n] = LOST; mine[n] = 0 /* dies; the guard sees to the tree */
        :: ns[n] == LOST && proc[n] -> proc[n] = false              /* NO_GUARD: it notices at last */
        :: ns[n] == IDLE && st == READY && !rk[n] ->
            ns[n] = CLAIMING; ask(n, CLAIM, ver);
#ifdef NO_CONFIRM
            start(n)
#endif
        :: ns[n] == IDLE && st == RETRY && !rk[n] -> ask(n, SWEEP, ver)
        :: ns[n] == IDLE && (st == RUN || st == CLAIMED) && owner != n && !rk[n] && GONE(owner) -> ask(n, TAKE, ver)
        :: rk[n] && ans[n] == 0 -> carry_out(n, rk[n], rv[n]); if :: yes -> ans[n] = 1 :: else -> ans[n] = 2 fi
        :: lk[n] -> carry_out(n, lk[n], lv[n]); lk[n] = 0; lv[n] = 0
        :: lk[n] -> lk[n] = 0; lv[n] = 0
#ifdef NODE_LIST
        :: left[n] == 0 && !struck[n] && !(st == RUN && owner == n) -> struck[n] = true  /* by one of the others */
#endif
        :: rk[n] && ans[n] && ns[n] != LOST ->                        /* the answer */
            if
#ifdef TWICE
            :: rk[n] == CLAIM && st == CLAIMED && owner == n -> ask(n, BEGIN, ver)
            :: rk[n] == BEGIN && ans[n] == 2 && st == CLAIMED && owner == n -> ask(n, BEGIN, ver) /* another changed it */
            :: rk[n] == BEGIN && !(st == CLAIMED && owner == n) && !(st == RUN && owner == n) -> forget(n); ns[n] = IDLE
            :: rk[n] == CLAIM && !(st == CLAIMED && owner == n) -> forget(n); ns[n] = IDLE
            :: rk[n] == BEGIN && st == RUN && owner == n ->
#else
            :: rk[n] == CLAIM && (ans[n] == 1 || (st == RUN && owner == n)) ->
#endif
 /* granted, or an earlier one of its own was */
                forget(n); mine[n] = ver;
#ifdef NO_CONFIRM
                skip
#else
                if :: start(n)
                   :: valid[n] == 1 -> /* too little left */
#ifdef NO_HOLD
                       ns[n] = IDLE; mine[n] = 0
#else
                       ns[n] = HELD
#endif
                fi
#endif
#ifndef TWICE
            :: rk[n] == CLAIM && !(ans[n] == 1 || (st == RUN && owner == n)) -> forget(n); ns[n] = IDLE; proc[n] = false
#endif
            :: rk[n] == RESULT && ans[n] == 2 && st == RUN && owner == n ->
#ifdef NO_REREAD
                forget(n); ns[n] = IDLE; mine[n] = 0
#else
                mine[n] = ver; ask(n, RESULT, ver)
#endif
            :: rk[n] == RESULT && !(ans[n] == 2 && st == RUN && owner == n) -> forget(n); ns[n] = IDLE; mine[n] = 0
            :: rk[n] == TAKE || rk[n] == SWEEP -> forget(n)
            fi
        :: rk[n] && ns[n] != LOST && !lk[n] ->                        /* no answer */
            if
            :: rk[n] == CLAIM || rk[n] == BEGIN ->
#ifdef NO_REPEAT
                put_off(n); ns[n] = IDLE
#else
                yes = ans[n]; if :: !yes -> lk[n] = rk[n]; lv[n] = rv[n] :: else fi; ans[n] = 0
#endif
            :: rk[n] == RESULT -> if :: !ans[n] -> lk[n] = RESULT; lv[n] = rv[n] :: else fi; ans[n] = 0
            :: else -> put_off(n)
            fi
        :: ns[n] == HELD && valid[n] > 1 -> start(n)
        :: ns[n] == RUNNING && proc[n] && !rk[n] -> proc[n] = false; ns[n] = ENDING; ask(n, RESULT, mine[n]) /* the process ends */
        :: else
        fi;
        n = 0; check() }
    od
}
