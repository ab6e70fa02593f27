/* reader_group.h - a group of readers: one of them reads at a time, from a position that
 * the store keeps.
 *
 * The lock "events/TOPIC/GROUP" says who reads; the value of that name is the position.
 *
 *   (1) A reader that enters writes the value anew. Every later write names the version
 *       of the one before. So a reader that was displaced changes nothing any more,
 *       however late its write arrives.
 *   (2) The position is kept after its event was handled. So each event is handled at
 *       least once, by this reader or the next. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_READER_GROUP_H
#define DIBS_COORD_READER_GROUP_H

#include "base/clock.h"
#include <dibs/events.h>
#include <dibs/lock.h>

typedef struct dibs__reader_group {
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1]; /* without the client's prefix */
    char topic[DIBS_NAME_MAX + 1];
    dibs_lock *lock;
    bool entered;
    bool unsure;      /* the last write had no answer */
    uint64_t version; /* of the value */
    uint64_t kept;    /* the position in it */
    dibsx_nsec kept_at;
} dibs__reader_group;

/* The caller owns the struct; end it with fini, which lets the next reader in. */
DIBS_MUST_CHECK dibs_status dibs__reader_group_init(
    dibs__reader_group *g, dibs_client *cl, const char *topic,
    const char *group, int64_t ttl_ms, dibs_error *err);
void dibs__reader_group_fini(dibs__reader_group *g);

/* Gives a group that is new the end of its topic as its position. */
DIBS_MUST_CHECK dibs_status dibs__reader_group_found(dibs_client *cl,
                                                     const char *topic,
                                                     const char *group,
                                                     dibs_error *err);

/* Becomes the reader of the group, and finds its position; *found is false if there is
 * none. `at_end`: then it begins at the end. DIBS_BUSY: another reads; the call has waited
 * for a short while if wait_ms is not 0. */
DIBS_MUST_CHECK dibs_status dibs__reader_group_enter(dibs__reader_group *g,
                                                     int64_t wait_ms,
                                                     bool at_end, bool *found,
                                                     uint64_t *position,
                                                     dibs_error *err);

/* False: the lease is lost; the reader must enter again. */
bool dibs__reader_group_holds(const dibs__reader_group *g);

/* Gives the group up, as after a loss. */
void dibs__reader_group_leave(dibs__reader_group *g);

/* Keeps a position. DIBS_LOST: another reads now; nothing changed. */
DIBS_MUST_CHECK dibs_status dibs__reader_group_keep(dibs__reader_group *g,
                                                    uint64_t position,
                                                    dibs_error *err);

#endif
