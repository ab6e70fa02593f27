/* names.h - names of locks and values, checked at the public border. Pure.
 *
 * Owns nothing. Any thread. */
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

/* The name without the client's prefix. Borrowed from `full`. */
const char *dibs__name_short(const dibs_client *cl, const char *full);

bool dibs__has_control(const char *text);

/* Control characters become question marks. */
void dibs__text_clean(char *text);

#endif
