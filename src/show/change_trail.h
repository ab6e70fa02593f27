/* change_trail.h - the entries of the trail about changes that operators make, by the
 * command or through the daemon: one rule for both.
 *
 * A change that ends or drops something has its entry before it, and is not made without
 * one; if it then fails, a second entry says so, with what was done before. All others have theirs after them. The
 * reason is followed by its cause: "host is gone [who=ann from=10.0.0.7 request=4f0c]",
 * by the daemon also with role=, route= and result=. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SHOW_CHANGE_TRAIL_H
#define DIBS_SHOW_CHANGE_TRAIL_H

#include <dibs/client.h>
#include <dibs/types.h>

enum { DIBS__CHANGE_REASON_MAX = 256, DIBS__CHANGE_CAUSE_MAX = 512 };

/* Why, who asked from where, as what and by which route, and how it ended: "begun" before
 * an admin's change, or the name of a status. NULL or "": not known. */
typedef struct dibs__change_cause {
    const char *reason, *who, *from, *request;
    const char *role, *route, *result;
} dibs__change_cause;

typedef struct dibs__change {
    const char *action; /* "queue-purge" */
    const char *target;
    uint64_t fence; /* 0: none */
    dibs__change_cause cause;
} dibs__change;

/* The reason with its cause, as the trail has it. Pure. */
void dibs__change_write(const dibs__change_cause *cause,
                        char out[DIBS__CHANGE_CAUSE_MAX]);

/* Takes such a text apart: the parts end up in `text`, which is changed. A part that is
 * not there is "". Pure. */
void dibs__change_read(char *text, dibs__change_cause *out);

/* After DIBS_UNKNOWN it may have been done, which somebody will want to know. Pure. */
bool dibs__change_may_be_done(dibs_status rc);

/* Adds the entry. DIBS_OK also if the store has no log, and so no trail; and if nothing
 * can have that name, which then is not changed anyway. Blocks for the store. */
DIBS_MUST_CHECK dibs_status dibs__change_add(dibs_client *cl,
                                             const dibs__change *change,
                                             dibs_error *err);

/* Adds the second entry, "ACTION-failed", with the status as its reason; or, when `done`
 * items were changed before that, "ACTION-partly" with their number. The same. */
DIBS_MUST_CHECK dibs_status dibs__change_add_failed(dibs_client *cl,
                                                    const dibs__change *change,
                                                    dibs_status failure,
                                                    uint64_t done,
                                                    dibs_error *err);

#endif
