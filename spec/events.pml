/* events.pml - a topic: a writer of EVENTS events, trims, and a reader from the beginning.
 *
 * The writer numbers its appends; copies of the last two requests may be carried out at any
 * time. Entries are trimmed from the oldest on, the newest too. The reader asks for the bounds
 * and for entries after its position; the store goes on between a request and the use of its
 * answer. RESTARTS=1: the store goes back once and loses any number of its latest entries.
 * TWO: the last event is that of a second writer, whose append takes two steps.
 *
 * Checked: an event is in the topic once; what the reader has passed it was shown, or a gap
 * named it; a gap names nothing that is kept, a fork something that was lost; a reader that
 * has gone on behind a restart got a fork if it saw what was lost, or a gap there.
 *
 * Switches take rules of src/store/log.h and src/coord/reader_machine.h out:
 *   NO_NUMBER    the store does not know the number of an append
 *   COMMIT_APART an append may commit while an earlier one of another writer has not yet
 *   FORGET_LAST  a topic whose entries are all trimmed has no last position any more
 *   COUNTER      positions are counted, and do not follow a clock
 *   NO_GAP       the reader does not compare the position before an entry with its own
 *   NO_FORK      ... nor when that is lower
 *   NO_ORDER     the bounds may be newer than the read that found nothing
 *   NO_BOUNDS    an empty read is no gap, whatever the bounds were */
/* SPDX-License-Identifier: MIT */

#ifndef EVENTS
#define EVENTS 3
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifdef COMMIT_APART
#define TWO
#endif
#ifdef TWO
#define OWN (EVENTS - 1) /* events of the first writer */
#else
#define OWN EVENTS
#endif
#define ROOM 7 /* positions from 1 on */
#define WIDE (ROOM + 1)

/* the store */
byte what[WIDE], prior_[WIDE]; bool kept[WIDE], made[WIDE], lost[WIDE], young[WIDE];
byte last_, high, number, restarts = RESTARTS;
byte held, held_prior, seconds = 1; /* TWO: drawn, and not committed yet */

/* the writer: the number of its last request, and whether that was answered */
byte sent; bool waits;

/* the reader: its position; the bounds and the entries of its last answers */
byte at, bound, got, list[2]; bool reading, shown[WIDE], gapped[WIDE], forked[WIDE];
byte i, c, p, from;

inline add(e) {
#ifdef COUNTER
    p = last_ + 1;
#else
    p = (last_ + 1 > high + 1 -> last_ + 1 : high + 1);
#endif
    what[p] = e; prior_[p] = last_; made[p] = true; kept[p] = true; lost[p] = false;
    young[p] = RESTARTS && !restarts;
    last_ = p; high = (p > high -> p : high)
}

inline tell_gap(to) {
    i = at + 1;
    do :: i <= to -> assert(!(made[i] && kept[i])); gapped[i] = true; i++ :: else -> break od;
    at = to
}

inline tell_fork(to) {
    i = to + 1; c = 0;
    do :: i <= at -> c = c + lost[i]; forked[i] = true; i++ :: else -> break od;
    assert(c > 0);
    at = to
}

inline show_entry(q) {
    from = prior_[q];
#ifdef NO_GAP
    if :: from > at -> from = at :: else fi;
#endif
#ifdef NO_FORK
    if :: from < at -> from = at :: else fi;
#endif
    if :: from > at -> tell_gap(from) :: from < at -> tell_fork(from) :: else fi;
    shown[q] = true; at = q
}

inline check() {
    for (i : 1 .. ROOM) {
        assert(!(i <= at && made[i] && !lost[i]) || shown[i] || gapped[i]);
        if
        :: lost[i] && shown[i] && i < at && young[at] && !forked[i] ->
            p = i + 1; c = 0;
            do :: p <= at -> c = c + gapped[p]; p++ :: else -> break od;
            assert(c > 0)
        :: else
        fi
    }
    for (c : 1 .. EVENTS) {
        p = 0;
        for (i : 1 .. ROOM) { p = p + (made[i] && !lost[i] && what[i] == c) }
        assert(p <= 1)
    }
}

active proctype world() {
    do
    :: atomic {
        if
        :: !waits && sent < OWN -> sent++; waits = true
#ifdef COMMIT_APART
        :: sent > 0 && high < ROOM -> /* a copy of one of the last two requests */
#else
        :: sent > 0 && high < ROOM && !held ->
#endif
            if :: c = sent :: sent > 1 -> c = sent - 1 fi;
            if
#ifdef NO_NUMBER
            :: true -> add(c)
#else
            :: c > number -> add(c); number = c
            :: c <= number
#endif
            fi
#ifdef TWO
        :: seconds && !held && high < ROOM -> seconds--;
            held = high + 1; held_prior = last_; high = held
        :: held -> what[held] = EVENTS; prior_[held] = held_prior; made[held] = true; kept[held] = true;
            last_ = (held > last_ -> held : last_); held = 0
#endif
        :: waits && number >= sent -> waits = false /* the answer */
#ifdef NO_NUMBER
        :: waits && made[1] -> waits = false
#endif
        :: waits -> waits = false /* given up: it is there, or not, or comes late */
        :: last_ > 0 -> /* the oldest that is kept goes */
            i = 1;
            do :: i < ROOM && !kept[i] -> i++ :: else -> break od;
            kept[i] = false;
#ifdef FORGET_LAST
            c = 0; for (i : 1 .. ROOM) { c = c + kept[i] }
            if :: c == 0 -> last_ = 0 :: else fi
#endif
        :: restarts && last_ > 0 -> restarts--; select(c : 0 .. last_ - 1);
            last_ = 0; number = 0;
            for (i : 1 .. ROOM) {
                if
                :: made[i] && i > c -> lost[i] = true; kept[i] = false
                :: made[i] && i <= c -> last_ = i; number = what[i]
                :: else
                fi
            }
        :: !reading -> /* asks for the bounds */
            if
            :: last_ < at -> tell_fork(last_); bound = 0
            :: else -> bound = last_
            fi
        :: !reading -> /* reads after its position: up to two entries */
            reading = true; got = 0; i = at + 1;
            do
            :: i <= ROOM && got < 2 -> if :: kept[i] -> list[got] = i; got++ :: else fi; i++
            :: else -> break
            od
        :: reading -> reading = false /* the answer is lost */; bound = 0; got = 0
        :: reading -> /* the answer is used */
            reading = false;
#ifdef NO_ORDER
            bound = last_;
#endif
            if
            :: got > 0 -> show_entry(list[0]); if :: got > 1 -> show_entry(list[1]) :: else fi
#ifndef NO_BOUNDS
            :: got == 0 && bound > at -> tell_gap(bound)
#else
            :: got == 0 && bound > at -> at = bound
#endif
            :: else
            fi;
            bound = 0; got = 0; list[0] = 0; list[1] = 0
        fi;
        check();
        i = 0; c = 0; p = 0; from = 0 }
    od
}
