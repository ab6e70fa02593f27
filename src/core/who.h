/* who.h - the line that says who holds or waits, as store/lease_entry.h has it.
 *
 * Owns nothing. Any thread; only the writer needs the client's mutex. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_WHO_H
#define DIBS_CORE_WHO_H

#include "store/lease.h"
#include <dibs/lock.h>

/* The line for this handle, cut to fit. Locks: cl->mutex. */
void dibs__who_text(const dibs_lock *lock, char out[DIBS__WHO_MAX]);

/* The line of what is no lock, "host:pid label", cut to fit. NULL: the client's label. */
void dibs__who_plain(const dibs_client *cl, const char *label, char *out,
                     size_t size);

/* The parts of such a line. */
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

/* "exclusive", "shared" or "permits". */
const char *dibs__mode_name(dibs__mode mode);

/* "host:pid" or "host:pid/identity": who can do one thing at a time. */
void dibs__who_agent(const dibs__who *who, char out[DIBS__WHO_MAX]);

#endif
