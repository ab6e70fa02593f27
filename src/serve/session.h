/* session.h - sessions of the sidecar: leases that the daemon keeps for clients in
 * any language, as long as these beat. The machine (session_machine.h) decides. No
 * thread waits for a grant: acquires and releases are asynchronous. A thread, the
 * tender, ends sessions when their time is over and frees handles.
 *
 * Threads: everything is under the table's mutex. The mutex is taken before that of
 * the client, and never while a call of the client may block. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_H
#define DIBS_SERVE_SESSION_H

#include "serve/session_body.h"
#include "serve/session_machine.h"
#include "serve/token.h"
#include <pthread.h>

enum {
    DIBS__SESSIONS_PER_CALLER = 256,
    DIBS__SESSION_LEASES_ALL = 16384,
    DIBS__SESSION_KEY_MAX = 128,
    DIBS__SESSION_ID_SIZE = 33, /* 128 random bits in hexadecimal digits */
    DIBS__SESSION_BUCKETS = 1024
};

typedef struct dibs__serve_session dibs__serve_session;

/* A lease of a session; freed when its handle is. */
typedef struct dibs__serve_lease {
    dibs__session_lease machine; /* first */
    struct dibs__serve_lease *next_old, *next_due;
    struct dibs__serve_sessions *table;
    dibs__serve_session *session; /* NULL: it has forgotten the lease */
    dibs_lock *lock;              /* NULL: there is none, or none any more */
    char *text;                   /* its request, to compare with */
    char name[DIBS_NAME_MAX + 1];
    char mode;     /* 'x', 's' or 'p' */
    bool election; /* a campaign */
    bool discard;  /* the tender is to free the handle: it is in its list */
    bool freeing, converting; /* some thread frees the handle, or uses it */
    bool due;                 /* ... and leaves the handle to the tender then */
    bool yield, told_yield;   /* it is asked for; the stream has said so */
    int told;                 /* the stage that the stream has told, or -1 */
    uint64_t told_beat;       /* the latest beat of the stream that has it */
    dibs_error err;           /* of the refusal */
} dibs__serve_lease;

struct dibs__serve_session {
    dibs__session machine;
    struct dibs__serve_sessions *table;
    dibs__serve_session *next; /* in its bucket */
    char id[DIBS__SESSION_ID_SIZE];
    char key[DIBS__SESSION_KEY_MAX + 1];   /* Idempotency-Key; "": none */
    unsigned char hash[DIBSX_SHA256_SIZE]; /* of the body that made it */
    char identity[16];                     /* of its leases, for listings */
    char caller[DIBS__SERVE_WHO_MAX];
    char name[64];
    bool stream;            /* kept by a stream */
    bool opening, counted;  /* leases are taken over; its end was counted */
    uint64_t stream_number; /* of the stream that counts; 0: none */
    uint64_t beat;          /* number of the next one on the stream */
    dibsx_nsec beat_at;     /* ... which is due then */
    int64_t credit;         /* thousandths of requests that it may make */
    dibsx_nsec credit_at;
};

typedef struct dibs__sessions_count {
    size_t heartbeat, stream, leases; /* now */
    uint64_t closed, expired, drained;
} dibs__sessions_count;

/* Streams and answers that wait have news. Any thread. */
typedef void dibs__sessions_wake_fn(void *arg);
typedef struct dibs__serve_sessions {
    dibs_client *client; /* borrowed */
    char epoch[9];
    unsigned count_max, leases_max; /* the latter of one session */
    dibs__sessions_wake_fn *wake;
    void *wake_arg;
    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t cond; /* the tender has something to do; or it has done it */
    pthread_t thread;
    bool started, stopping, draining;
    bool yields; /* the store can ask a holder for its lease */
    dibs__serve_session *buckets[DIBS__SESSION_BUCKETS];
    bool look_all;          /* the tender is to look at all sessions, now */
    dibs__serve_lease *old; /* forgotten; some still have a handle */
    dibs__serve_lease *discards; /* with handles that the tender is to free */
    dibs__serve_lease *leaving;  /* to be left, as the daemon ends */
    size_t count, lease_count, streams; /* the last: numbers that were given */
    dibs__sessions_count ended;
} dibs__serve_sessions;

/* `epoch` has eight digits. End with dibs__sessions_fini(), when no routes run. */
DIBS_MUST_CHECK dibs_status dibs__sessions_init(
    dibs__serve_sessions *table, dibs_client *client, const char *epoch,
    dibs__sessions_wake_fn *wake, void *wake_arg, dibs_error *err);
void dibs__sessions_fini(dibs__serve_sessions *table);

/* The daemon ends: leases are renewed, until `until`, and left; waits are cancelled. */
void dibs__sessions_drain(dibs__serve_sessions *table, dibsx_nsec until);

void dibs__sessions_count_get(dibs__serve_sessions *table,
                              dibs__sessions_count *out);

/* Makes a session, or finds the one with this key of this caller: *known. Without an
 * error it is `opening`, and has no leases. DIBS_FULL: a limit, which err names;
 * DIBS_UNAVAIL: that session is being made; DIBS_STALE: it was asked for otherwise;
 * DIBS_CANCELLED: the daemon ends. Locks: mutex. */
DIBS_MUST_CHECK dibs_status dibs__session_make(dibs__serve_sessions *table,
                                               const char *caller,
                                               const dibs__session_request *req,
                                               const char *key, dibsx_nsec now,
                                               dibs__serve_session **out,
                                               bool *known, dibs_error *err);

/* A session by its id, for the caller that made it; NULL. Locks: mutex. */
dibs__serve_session *dibs__session_get(dibs__serve_sessions *table,
                                       const char *id, const char *caller);

/* Takes a lease over on a session that is opening, or refuses it (!ask). False: the store failed. */
bool dibs__session_adopt(dibs__serve_session *se,
                         const dibs__lease_request *req, bool ask);

/* A request counts; false: there were too many. Locks: mutex. */
DIBS_MUST_CHECK bool
dibs__session_admit(dibs__serve_session *se, dibsx_nsec now);

/* Puts a lease. DIBS_OK: *out is it, and may be of old. DIBS_STALE: it is known by
 * another request; DIBS_FULL, DIBS_INVALID, DIBS_NOMEM; DIBS_LOST: the session has
 * ended. Locks: mutex. */
DIBS_MUST_CHECK dibs_status dibs__session_lease_put(
    dibs__serve_session *se, const dibs__lease_request *req, dibsx_nsec now,
    dibs__serve_lease **out, dibs_error *err);

/* False: memory is short. Locks: mutex. */
DIBS_MUST_CHECK bool dibs__session_lease_remove(dibs__serve_session *se,
                                                const char *id, bool *was_lost);

/* A beat of the client, false: it has ended; the end. Locks: mutex. */
bool dibs__session_beaten(dibs__serve_session *se, dibsx_nsec now);
void dibs__session_close(dibs__serve_session *se);

/* Brings the stage of a lease up to date with its handle; ms that it is valid. Locks: mutex. */
int64_t dibs__session_refresh(dibs__serve_lease *le);

/* Writes the members of a lease's state; `whole`: with its token. Locks: mutex. */
void dibs__session_write_lease(dibsx_json *js, dibs__serve_lease *le,
                               dibsx_nsec now, bool whole);

#endif
