/* tick.pml - the ticks of one job, which is due at the moments 1..T, at NODES that all try.
 *
 * A node reads the state of the job and asks for a moment after the mark, whatever the time
 * is by its own clock; the moments between count as merged (misfire: run_once). A request may
 * be carried out at any later time or never, its answer may be lost, and the node may
 * give up or die: the request is then a late one. The clock of the store moves at will.
 * With ROLLBACK=n the store loses its last commit n times, as in a failover.
 *
 * Checked:
 *   I1 a moment makes one run at most, and what ran is not counted as missed;
 *   I2 with no request under way, each moment up to the mark has run or was counted;
 *   I3 no run is made before its moment on the store's clock;
 *   with ROLLBACK: no node starts the same moment twice.
 *
 * Switches take rules of src/jobs/tick.h out:
 *   NO_VERSION  the commit does not compare the version of the state
 *   NO_CLOCK    ... nor the moment with the clock of the store
 *   SPLIT_MARK  the mark moves first, a second commit makes the run
 *   SPLIT_RUN   the other way round
 *   NO_SEEN     a node forgets the highest mark that it has seen (13) */
/* SPDX-License-Identifier: MIT */

#ifndef NODES
#define NODES 2
#endif
#ifndef T
#define T 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef ROLLBACK
#define ROLLBACK 0
#endif
#define NONE 0
#define SENT 1
#define YES  2
#define NO   3

byte now, mark, ver = 1, vers = 1;      /* the store: clock, mark, version and the last one ever used */
byte made[T + 1];                     /* runs created for an instant */
bool missed[T + 1];
byte old_mark, old_ver, old_ts;         /* before the latest commit, for ROLLBACK */
byte rollbacks = ROLLBACK, crashes = CRASHES;
byte read_ver[NODES], read_mark[NODES];        /* what a node read */
byte seen[NODES];
byte st[NODES], ts[NODES], v[NODES], part[NODES];
byte lts[NODES], lv[NODES], lpart[NODES]; /* a request that was given up; 0: none */
bool dead[NODES];
byte own[NODES * (T + 1)];          /* starts by this node of an instant */
byte k, j; bool yes;

inline commit(d, t, version, p) {
    yes = true;
#ifndef NO_CLOCK
    if :: now < t -> yes = false :: else fi;
#endif
#ifndef NO_VERSION
    if :: p == 0 && ver != version -> yes = false :: else fi;
#endif
    if
    :: yes ->
        old_mark = mark; old_ver = ver; old_ts = 0;
#ifdef SPLIT_RUN
        if :: p == 0 && t <= mark -> yes = false
           :: p == 0 && t > mark -> made[t]++
           :: p == 1 && t > mark -> mark = t; vers++; ver = vers
           :: else fi
#else
        if
        :: p == 0 ->
            for (k : mark + 1 .. t - 1) { missed[k] = true }
#ifndef SPLIT_MARK
            made[t]++; old_ts = t;
            assert(now >= t)                     /* never early */
#endif
            ; mark = t; vers++; ver = vers
        :: p == 1 -> made[t]++
        fi
#endif
    :: else fi;
#if ROLLBACK == 0
    for (k : 1 .. T) { assert(made[k] <= 1 && !(made[k] && missed[k])) } /* once; and what ran was not missed */
#else
    skip
#endif
    k = 0
}

inline quiet() { /* nobody is at it: everything up to the mark is accounted for */
    j = 0; yes = true;
    do :: j < NODES -> if :: (st[j] != NONE && !dead[j]) || lts[j] -> yes = false :: else fi; j++ :: else -> break od;
    if :: yes -> for (k : 1 .. T) { assert(k > mark || made[k] || missed[k]) } :: else fi;
    j = 0; k = 0; yes = false
}

active proctype world() {
    byte d, t;
    do
    :: atomic { now < T -> now++ }
    :: atomic { rollbacks && old_ver && old_ver != ver -> rollbacks--; mark = old_mark; ver = old_ver;
                if :: old_ts -> made[old_ts]-- :: else fi; old_ver = 0 }
    :: atomic { /* a node does something */
        select(d : 0 .. NODES - 1);
        if
        :: !dead[d] && st[d] == NONE -> read_ver[d] = ver; read_mark[d] = mark;
            if :: seen[d] < mark -> seen[d] = mark :: else fi;
#ifndef NO_SEEN
            if :: read_mark[d] < seen[d] -> read_mark[d] = seen[d] :: else fi;
#endif
            if
            :: read_mark[d] < T -> select(t : 1 .. T); if :: t > read_mark[d] -> st[d] = SENT; ts[d] = t; v[d] = read_ver[d]; part[d] = 0 :: else fi
            :: else fi
        :: st[d] == SENT -> commit(d, ts[d], v[d], part[d]); if :: yes -> st[d] = YES :: else -> st[d] = NO fi
        :: lts[d] -> commit(d, lts[d], lv[d], lpart[d]); lts[d] = 0; lv[d] = 0; lpart[d] = 0
        :: lts[d] -> lts[d] = 0; lv[d] = 0; lpart[d] = 0              /* never arrives */
        :: !dead[d] && (st[d] == YES || st[d] == NO) ->               /* the answer arrives */
            if :: st[d] == YES && part[d] == 0 ->             /* confirmed: now it starts the run */
                 own[d * (T + 1) + ts[d]]++; assert(own[d * (T + 1) + ts[d]] <= 1);
                 if :: seen[d] < ts[d] -> seen[d] = ts[d] :: else fi
               :: else fi;
#if defined(SPLIT_MARK) || defined(SPLIT_RUN)
            if :: st[d] == YES && part[d] == 0 -> st[d] = SENT; part[d] = 1 :: else -> st[d] = NONE fi
#else
            st[d] = NONE
#endif
        :: !dead[d] && st[d] != NONE ->                               /* gives up: asks anew next time */
            if :: st[d] == SENT && !lts[d] -> lts[d] = ts[d]; lv[d] = v[d]; lpart[d] = part[d] :: else fi; st[d] = NONE
        :: crashes && !dead[d] -> crashes--; dead[d] = true;
            if :: st[d] == SENT && !lts[d] -> lts[d] = ts[d]; lv[d] = v[d]; lpart[d] = part[d] :: else fi; st[d] = NONE
        :: else
        fi;
        if :: st[d] == NONE -> ts[d] = 0; v[d] = 0; part[d] = 0 :: else fi;
        yes = false; t = 0; d = 0;
#if ROLLBACK == 0
        quiet()
#endif
      }
    od
}
