/* doubt.pml - a tick that is claimed by its own commit, sent by a node whose clock is ahead.
 *
 * The store refuses what is early. A request without an answer may be carried out later,
 * when it is early no more.
 *
 * Checked: no run is claimed by a node that knows nothing of it.
 *
 * EARLY_SETTLES takes half of rule 5 out: "early" ends the matter, although an earlier try
 * has no answer. With the rule only yes, or another version, ends it. */
/* SPDX-License-Identifier: MIT */

#define IDLE 0
#define ASKED 1
#define KNOWS 2
byte now, ver = 1, made, v, st, losses = 2; bool late, doubt, answered; byte lv, ans; /* 1 yes, 2 stale, 3 early */
inline carry_out(x) { if :: now < 2 -> ans = 3 :: now >= 2 && ver != x -> ans = 2 :: else -> ans = 1; ver++; made++ fi }
active proctype world() {
end:
    do
    :: atomic { now < 3 -> now++ }
    :: atomic { st == IDLE && made == 0 -> st = ASKED; v = ver; doubt = false }
    :: atomic { st == ASKED -> carry_out(v);
        if
        :: losses -> losses--; doubt = true                               /* the answer is lost */
        :: ans == 1 || (ans == 2 && made) -> st = KNOWS                   /* granted, or finds its own nonce */
        :: ans == 2 && !made -> st = IDLE
        :: ans == 3 ->
#ifdef EARLY_SETTLES
            st = IDLE
#else
            if :: !doubt -> st = IDLE :: else fi                          /* in doubt: goes on asking */
#endif
        fi; ans = 0 }
    :: atomic { st == ASKED && losses && !late -> losses--; late = true; lv = v; doubt = true } /* on its way for long */
    :: atomic { late -> late = false; carry_out(lv); ans = 0 }
    :: atomic { late -> late = false }
    :: atomic { made && st == IDLE && !late -> assert(false) }            /* claimed by a node that knows nothing of it */
    od
}
