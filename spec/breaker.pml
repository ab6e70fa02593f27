/* breaker.pml - a circuit breaker that CLIENTS share: a state under versions, a window of
 * failures for each version, probes under leased permits, late reports.
 *
 * The store has the state with its version, the time until it may be probed, the failures
 * and the good probes of that version, and PERMITS leases of TTL. A client knows a state
 * by its version, perhaps an old one. Its calls and probes end well or not, and take any
 * time. Reports take any time, are lost, or come late, one at a time each. Clients may
 * stand still, and DEATHS of them die. The store does nothing more at version ROOM.
 *
 * Checked:
 *   (1) A probe begins under a permit that is valid; no more than PERMITS are.
 *   (2) It opens for THRESHOLD failures of calls that began under this very version, or
 *       for a failed probe of it.
 *   (3) It closes for NEED good probes of this very version.
 *   (4) A failure is counted once at most.
 *   (5) The permit of a client that died is free after TTL.
 *
 * The switches that take a rule out are in spec/README.md. */
/* SPDX-License-Identifier: MIT */

#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef THRESHOLD
#define THRESHOLD 2
#endif
#ifndef NEED
#define NEED 1
#endif
#ifndef PERMITS
#define PERMITS 1
#endif
#ifndef TTL
#define TTL 1
#endif
#ifndef ROOM
#define ROOM 5
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef LATE
#define LATE 1 /* a report that was given up may still arrive */
#endif
#define RECOVERY 1

#define LESS(a, b) ((a) > (b) -> (a) - (b) : 0)

mtype = { CLOSED, OPEN };
mtype = { IDLE, CALLS, PROBES, PERMITTED };
mtype = { NONE, BAD, GOOD };
mtype = { NOTHING, TRIP, REOPEN, CLOSE };

/* The store. */
mtype state = CLOSED;
byte version = 1;
byte rest;              /* OPEN: so long it may not be probed */
byte bad, good;         /* of this version */
byte lease[CLIENTS];    /* what is left of a permit */

/* The clients. */
mtype known[CLIENTS] = CLOSED;
byte known_version[CLIENTS] = 1, known_rest[CLIENTS];
mtype doing[CLIENTS] = IDLE;
byte began[CLIENTS];    /* the version under which it does that */
byte permit[CLIENTS];   /* how long it is valid */
bool dead[CLIENTS];
byte deaths = DEATHS;

/* A report on its way, and one that was given up. */
mtype report[CLIENTS] = NONE, late[CLIENTS] = NONE;
byte report_version[CLIENTS], late_version[CLIENTS];
bool report_probe[CLIENTS], late_probe[CLIENTS];
bool was_counted[CLIENTS];

/* A change that is to be written, and the version that it replaces. */
mtype change[CLIENTS] = NOTHING;
byte change_version[CLIENTS];

/* For the checks alone: what of the counts is of another version; and for how long a
 * client has been dead. */
byte strange_bad, strange_good;
byte dead_for[CLIENTS];

/* For use within a step; zero between steps. */
byte i, n;

inline tidy() { i = 0; n = 0 }

/* ---- the store */

inline set_state(s) {
    state = s; version++;
    printf("  store: version %d is %e\n", version, s);
    rest = (s == OPEN -> RECOVERY : 0);
    good = 0; strange_good = 0;
#ifdef NO_RESET
    strange_bad = bad
#else
    bad = 0; strange_bad = 0
#endif
}

#ifdef NO_REPORT_VERSION
#define IS_OLD(v) false
#else
#define IS_OLD(v) (v != version)
#endif

/* Counts what began under version v. What follows is for the client c to write, if it
 * hears the answer. */
inline meter(outcome, v, probe, again, c, heard) {
    if
    :: IS_OLD(v) -> printf("  store: a report of version %d is old\n", v)
    :: !IS_OLD(v) && outcome == BAD && !probe && state == CLOSED ->
        assert(!again);
        bad++; strange_bad = strange_bad + (v != version);
        if
        :: bad >= THRESHOLD ->
            assert(strange_bad == 0);
            if :: heard -> change[c] = TRIP; change_version[c] = version :: else fi
        :: else
        fi
    :: !IS_OLD(v) && outcome == GOOD && probe && state == OPEN ->
        good++; strange_good = strange_good + (v != version);
        if
        :: good >= NEED ->
            assert(strange_good == 0);
            if :: heard -> change[c] = CLOSE; change_version[c] = version :: else fi
        :: else
        fi
    :: else
    fi
}

#ifdef NO_CAS
#define IS_STALE(c) false
#else
#define IS_STALE(c) (change_version[c] != version)
#endif

inline write_change(c) {
    if
    :: IS_STALE(c) -> printf("  store: %e of version %d is stale\n", change[c], change_version[c])
    :: else ->
        assert((change[c] == TRIP) == (state == CLOSED));
        assert(change_version[c] == version);
        if :: change[c] == CLOSE -> set_state(CLOSED) :: else -> set_state(OPEN) fi
    fi;
    drop_change(c)
}

/* ---- a client */

inline drop_change(c) { change[c] = NOTHING; change_version[c] = 0 }

inline drop_report(c) {
    report[c] = NONE; report_version[c] = 0; report_probe[c] = false; was_counted[c] = false
}

inline learn(c) { known[c] = state; known_version[c] = version; known_rest[c] = rest }

inline give_back(c) { permit[c] = 0; lease[c] = 0 }

inline ask_permit(c) {
    n = 0;
#ifndef LOCAL_LIMIT /* each client allows PERMITS by itself */
    for (i : 0 .. CLIENTS - 1) { n = n + (lease[i] > 0) }
#endif
    if
    :: n < PERMITS ->
        lease[c] = TTL; permit[c] = TTL;
        doing[c] = PERMITTED; began[c] = known_version[c];
        printf("%c: has a permit\n", 'A' + c)
    :: else
    fi
}

#ifdef NO_CHECK
#define IS_OVER(c) false
#else
#define IS_OVER(c) (permit[c] == 0)
#endif
#ifdef NO_PERMIT_VERSION
#define IS_OF_ANOTHER(c) false
#else
#define IS_OF_ANOTHER(c) (known_version[c] != began[c])
#endif

inline begin_probe(c) {
    if
    :: IS_OVER(c) -> doing[c] = IDLE; began[c] = 0
    :: !IS_OVER(c) && IS_OF_ANOTHER(c) -> doing[c] = IDLE; began[c] = 0; give_back(c)
    :: else ->
        n = 0;
        for (i : 0 .. CLIENTS - 1) { n = n + (permit[i] > 0) }
        assert(permit[c] > 0 && n <= PERMITS);
        doing[c] = PROBES; began[c] = known_version[c];
        printf("%c: probes under version %d\n", 'A' + c, began[c])
    fi
}

/* The permit goes back with the report. */
inline end_work(c, outcome) {
    report[c] = outcome; report_version[c] = began[c]; report_probe[c] = doing[c] == PROBES;
    if :: doing[c] == PROBES -> give_back(c) :: else fi;
    doing[c] = IDLE; began[c] = 0
}

inline fail_probe(c) {
    printf("%c: its probe fails\n", 'A' + c);
    change[c] = REOPEN; change_version[c] = began[c];
    doing[c] = IDLE; began[c] = 0; give_back(c)
}

inline come_late(c) {
    printf("late: a report of %c\n", 'A' + c);
    meter(late[c], late_version[c], late_probe[c], false, c, false);
    late[c] = NONE; late_version[c] = 0; late_probe[c] = false
}

#define FREE(c) (!dead[c] && doing[c] == IDLE && report[c] == NONE)
#define STORE_GOES_ON (version + 1 < ROOM)
#define IS_BEHIND(c) (known_version[c] != version || known_rest[c] != rest)

proctype Client(byte c) {
end:
    do
    :: d_step { FREE(c) && known[c] == CLOSED ->
            doing[c] = CALLS; began[c] = known_version[c];
            printf("%c: calls under version %d\n", 'A' + c, began[c]) }
    :: d_step { FREE(c) && known[c] == OPEN && known_rest[c] == 0 -> ask_permit(c); tidy() }
    :: d_step { !dead[c] && doing[c] == PERMITTED -> begin_probe(c); tidy() }
    :: d_step { !dead[c] && doing[c] == CALLS -> end_work(c, BAD); printf("%c: its call fails\n", 'A' + c) }
    :: d_step { !dead[c] && doing[c] == CALLS -> doing[c] = IDLE; began[c] = 0 }
    :: d_step { !dead[c] && doing[c] == PROBES && change[c] == NOTHING -> fail_probe(c) }
    :: d_step { !dead[c] && doing[c] == PROBES -> end_work(c, GOOD); printf("%c: its probe is good\n", 'A' + c) }
    /* A report is counted and answered, or counted and forgotten. */
    :: d_step { !dead[c] && report[c] != NONE && change[c] == NOTHING && STORE_GOES_ON ->
            meter(report[c], report_version[c], report_probe[c], was_counted[c], c, true);
            learn(c); drop_report(c) }
    :: d_step { !dead[c] && report[c] != NONE && change[c] == NOTHING && STORE_GOES_ON ->
            meter(report[c], report_version[c], report_probe[c], was_counted[c], c, false);
            printf("%c: no answer to its report\n", 'A' + c);
#ifdef ADD_AGAIN /* sends it again */
            was_counted[c] = true
#else
            drop_report(c)
#endif
        }
    :: d_step { change[c] != NOTHING && STORE_GOES_ON -> write_change(c) }
    :: d_step { change[c] != NOTHING -> drop_change(c) }
    :: d_step { LATE && !dead[c] && report[c] != NONE && late[c] == NONE ->
            late[c] = report[c]; late_version[c] = report_version[c]; late_probe[c] = report_probe[c];
            drop_report(c); printf("%c: gives up on a report\n", 'A' + c) }
    :: d_step { late[c] != NONE && STORE_GOES_ON -> come_late(c) }
    /* A ring, or a look. */
    :: d_step { !dead[c] && IS_BEHIND(c) -> learn(c) }
    :: d_step { !dead[c] && deaths > 0 && doing[c] != IDLE ->
            deaths--; dead[c] = true; printf("%c: dies\n", 'A' + c);
            doing[c] = IDLE; began[c] = 0; permit[c] = 0; drop_report(c) }
    od
}

#ifdef NO_PROBE_LEASE /* a permit ends when it is given back */
#define LEASE_AFTER_TICK(c) lease[c]
#else
#define LEASE_AFTER_TICK(c) LESS(lease[c], 1)
#endif

proctype Clock() {
end:
    do
    :: d_step { printf("tick\n");
            rest = LESS(rest, 1);
            for (i : 0 .. CLIENTS - 1) {
                lease[i] = LEASE_AFTER_TICK(i);
                permit[i] = LESS(permit[i], 1);
                known_rest[i] = LESS(known_rest[i], 1);
                if :: dead[i] && dead_for[i] <= TTL -> dead_for[i]++ :: else fi;
                assert(!(dead_for[i] > TTL && lease[i] > 0))
            }
            tidy() }
    od
}

init {
    atomic {
        for (i : 0 .. CLIENTS - 1) { run Client(i) }
        run Clock();
        tidy()
    }
}
