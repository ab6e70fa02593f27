/* names.h - names of locks and values, and the line that says who holds. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_NAMES_H
#define DIBS_CORE_NAMES_H

#include "core/lock.h"

/* The client's prefix and the name, checked: what the store is asked for. */
DIBS_MUST_CHECK dibs_status dibs__name_full(const dibs_client *cl,
                                            const char *name,
                                            char out[DIBS_NAME_MAX + 1],
                                            dibs_error *err);

/* The same for the beginning of names, which may be empty. */
DIBS_MUST_CHECK dibs_status dibs__name_begins(const dibs_client *cl,
                                              const char *begins,
                                              char out[DIBS_NAME_MAX + 1],
                                              dibs_error *err);

/* What the caller knows a full name as. Borrowed from `full`. */
const char *dibs__name_short(const dibs_client *cl, const char *full);

bool dibs__has_control(const char *text);

/* Control characters become question marks. */
void dibs__text_clean(char *text);

/* Who asks through this handle, as store/entry.h has it, cut to fit: in `room`, or
 * in the handle until its next acquire. And its parts again. Locks: cl->mutex for
 * the first. */
const char *dibs__who_text(dibs_lock *lock, char room[DIBS__WHO_MAX]);
typedef struct dibs__who {
    char text[DIBS__WHO_MAX]; /* the parts point into it */
    const char *host;
    int64_t pid;
    bool by_hand; /* the lease is not renewed by itself */
    const char *identity;
    const char *label;
    const char *meta;
} dibs__who;
void dibs__who_read(const char *text, dibs__who *out);

/* "host:pid" or "host:pid/identity": who can do one thing at a time. */
void dibs__who_agent(const dibs__who *who, char out[DIBS__WHO_MAX]);

#endif
