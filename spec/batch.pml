/* batch.pml - a batch of MEMBERS runs, which end at two nodes.
 *
 * The end of a member is one commit, which enters it among those that have ended, and notes
 * when a node is to look at the batch; the answer says how many are left. The node that is
 * told none completes the batch: a second commit, on the batch's version, which takes the
 * note away. An answer may be lost; the commit is then sent again. A node may die.
 *
 * Checked: I13, a batch completes once, after all of its members; when all have ended, it
 * is complete, or a node will look.
 *
 * Switches take rules of src/jobs/batch.h out:
 *   NO_ENTRY    nothing is noted: completion rests on the node that was told none
 *   NO_VERSION  completion does not compare the version of the batch
 *   COUNT       a counter instead of an index: a commit that is sent again counts again */
/* SPDX-License-Identifier: MIT */

#ifndef MEMBERS
#define MEMBERS 3
#endif
#define NODES 2
bool pending[MEMBERS] = true; byte left_ = MEMBERS; bool entry, complete; byte ver = 1, completed, deaths = 1;
bool entered[MEMBERS]; byte pc[NODES]; byte m[NODES]; byte rv[NODES]; bool dead[NODES], ended[MEMBERS];
byte n, i, c;
active proctype world() {
    do
    :: atomic { select(n : 0 .. NODES - 1);
        if
        :: !dead[n] && pc[n] == 0 -> /* ends one of the members */
            select(c : 0 .. MEMBERS - 1);
            if :: !ended[c] -> ended[c] = true; m[n] = c; pc[n] = 1 :: else fi
        :: pc[n] == 1 -> entered[m[n]] = true;           /* the commit */
#ifdef COUNT
            left_--;
#else
            if :: pending[m[n]] -> pending[m[n]] = false; left_-- :: else fi;
#endif
#ifndef NO_ENTRY
            entry = true;
#endif
            if :: left_ == 0 -> pc[n] = 2; rv[n] = ver :: left_ != 0 -> pc[n] = 0
               :: pc[n] = 1 /* the answer was lost: it is sent again */ fi
        :: !dead[n] && pc[n] == 2 -> /* completes */
#ifdef NO_VERSION
            complete = true; completed++; entry = false;
#else
            if :: ver == rv[n] && !complete -> complete = true; completed++; ver++; entry = false :: else fi;
#endif
            pc[n] = 0
        :: !dead[n] && pc[n] == 0 && entry -> /* the sweep finds the entry */
            if :: left_ == 0 -> pc[n] = 2; rv[n] = ver :: else -> entry = false fi
        :: deaths && n == 1 && !dead[n] && pc[n] != 1 -> deaths--; dead[n] = true; pc[n] = 0
        :: else
        fi;
        c = 0; for (i : 0 .. MEMBERS - 1) { c = c + entered[i] }
        assert(!complete || c == MEMBERS); assert(completed <= 1);
        /* everything is over and nobody is at it: somebody will look, or it is complete */
        assert(!(c == MEMBERS && !complete && !entry && (pc[0] == 0 || dead[0]) && (pc[1] == 0 || dead[1])));
        i = 0; c = 0; n = 0 }
    od
}
