/* intent.h - a commit that a machine of the engine wants: checks and changes. Pure.
 *
 * Names are those within a board, such as "run/ID" and "due"; the driver puts the board
 * before them. An intent owns copies of all of it, for it is sent again unchanged until it
 * is answered. Errors stick: dibs__intent_ok() says at the end whether all of it fitted. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_INTENT_H
#define DIBS_JOBS_INTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes: as many as dibs_state_commit() takes, and topics. */
enum { DIBS__INTENT_CHECKS_MAX = 8, DIBS__INTENT_CHANGES_MAX = 330 };

typedef enum dibs__intent_verb {
    DIBS__INTENT_PUT,
    DIBS__INTENT_DELETE,
    DIBS__INTENT_ENTER,
    DIBS__INTENT_LEAVE,
    DIBS__INTENT_TELL /* the topic `key`: somebody may wait for it */
} dibs__intent_verb;

typedef struct dibs__intent_check {
    char *key;
    uint64_t version; /* 0: there is nothing */
} dibs__intent_check;

typedef struct dibs__intent_change {
    dibs__intent_verb verb;
    char *key;    /* of a value, an index or a topic */
    char *member; /* of an index */
    char *data;   /* of a value */
    size_t len;
    int64_t ttl_ms; /* of a value; 0: for ever */
    int64_t at;     /* the member's number */
} dibs__intent_change;

typedef struct dibs__intent {
    int64_t not_before_us, not_after_us; /* of the store's clock; 0: none */
    dibs__intent_check checks[DIBS__INTENT_CHECKS_MAX];
    size_t check_count;
    dibs__intent_change *changes;
    size_t change_count, room;
    bool failed;
    bool too_long; /* ... for good: a record is longer than a store takes */
} dibs__intent;

/* Zeros; end with dibs__intent_fini(). */
void dibs__intent_init(dibs__intent *in);
void dibs__intent_fini(dibs__intent *in);

void dibs__intent_check_version(dibs__intent *in, const char *key,
                                uint64_t version);
void dibs__intent_put(dibs__intent *in, const char *key, const void *data,
                      size_t len, int64_t ttl_ms);
void dibs__intent_delete(dibs__intent *in, const char *key);
void dibs__intent_enter(dibs__intent *in, const char *index, const char *member,
                        int64_t at);
void dibs__intent_leave(dibs__intent *in, const char *index,
                        const char *member);

/* Once for each topic, however often it is said. */
void dibs__intent_tell(dibs__intent *in, const char *topic);

/* The bytes of all values that it puts. */
size_t dibs__intent_bytes(const dibs__intent *in);

/* Not before, or not after, a moment; of several the strictest holds. */
void dibs__intent_not_before(dibs__intent *in, int64_t at_us);
void dibs__intent_not_after(dibs__intent *in, int64_t at_us);

/* False: memory or room was short; the intent must not be sent. */
bool dibs__intent_ok(const dibs__intent *in);

#endif
