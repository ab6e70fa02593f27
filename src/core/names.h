/* names.h - names of locks and values, and the line that says who holds. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_NAMES_H
#define DIBS_CORE_NAMES_H

#include "core/client.h"

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

/* "host:pid label", cut to fit; and its parts again. */
void dibs__who_text(const dibs_client *cl, const char *label,
                    char who[DIBS__WHO_MAX]);
typedef struct dibs__who {
    char host[DIBS__WHO_MAX];
    int64_t pid;
    const char *label; /* within the text that was read */
} dibs__who;
void dibs__who_read(const char *text, dibs__who *out);

#endif
