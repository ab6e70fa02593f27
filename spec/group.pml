/* group.pml - a group of two readers of a topic with EVENTS events.
 *
 * One reads at a time, under a lease, whose time may end while its reader works on and does not
 * know. A reader that enters reads the position and writes it anew. It handles the event behind
 * its position, then keeps that one: a write that names the version of the write before, one
 * under way at a time. A write whose reader has left may arrive at any later time.
 *
 * Checked: a write of a reader is accepted only while no other has entered; so the position
 * never goes back. No event up to the position is unhandled.
 *
 * Switches take rules of src/coord/reader_group.h out:
 *   NO_VERSION  a write does not name the version of the one before
 *   NO_ENTRY    a reader that enters writes nothing
 *   KEEP_FIRST  the position is kept before its event is handled */
/* SPDX-License-Identifier: MIT */

#ifndef EVENTS
#define EVENTS 3
#endif
#define READERS 2
#define NOBODY 2

byte holder = NOBODY, latest, entries; /* the lease; the entry of the last that entered */
byte kept, version, top;               /* the value; the highest that it was */
bool handled[EVENTS + 1];
bool reads[READERS]; byte at[READERS], known[READERS], entry[READERS], lives[READERS] = 2;
/* writes under way: of a reader, and of what it was before */
bool flies[2 * READERS]; byte flying[2 * READERS], named[2 * READERS], whose[2 * READERS];
byte r, w, i;

/* A write that is under way when its reader goes may arrive later. */
inline leave() {
    reads[r] = false;
    if
    :: flies[r] -> flies[r + READERS] = true; flying[r + READERS] = flying[r];
        named[r + READERS] = named[r]; whose[r + READERS] = whose[r]
    :: else
    fi;
    flies[r] = false; flying[r] = 0; named[r] = 0; whose[r] = 0
}

inline arrive() {
    if
#ifdef NO_VERSION
    :: true ->
#else
    :: named[w] != version -> if :: w == r -> reads[r] = false :: else fi
    :: named[w] == version ->
#endif
        assert(whose[w] == latest);
        kept = flying[w]; version++;
        if :: w == r -> known[r] = version :: else fi
    fi;
    flies[w] = false; flying[w] = 0; named[w] = 0; whose[w] = 0
}

active proctype world() {
    do
    :: atomic { select(r : 0 .. READERS - 1);
        if
        :: holder == NOBODY && !reads[r] && lives[r] -> /* enters */
            leave(); lives[r]--; holder = r; reads[r] = true; at[r] = kept;
            entries++; latest = entries; entry[r] = entries;
#ifndef NO_ENTRY
            version++;
#endif
            known[r] = version
        :: holder == r -> holder = NOBODY /* its time is over, and it does not know */
        :: reads[r] && !flies[r] && at[r] < EVENTS -> /* the next event */
            at[r]++;
#ifndef KEEP_FIRST
            handled[at[r]] = true;
#endif
            flies[r] = true; flying[r] = at[r]; named[r] = known[r]; whose[r] = entry[r]
        :: flies[r] -> w = r; arrive()
        :: flies[r + READERS] -> w = r + READERS; arrive()
        :: reads[r] -> leave(); if :: holder == r -> holder = NOBODY :: else fi
        :: else
        fi;
        assert(kept >= top); top = kept;
        i = 1;
        do :: i <= kept -> assert(handled[i]); i++ :: else -> break od;
        r = 0; w = 0; i = 0 }
    od
}
