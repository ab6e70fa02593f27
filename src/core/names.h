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

/* Texts for the store are UTF-8 without control characters. `thing` is a noun with
 * its article, for the message. Values are bytes, and not checked. */
DIBS_MUST_CHECK dibs_status dibs__text_check(const char *thing,
                                             const char *text, dibs_error *err);

/* Control characters, and bytes that are not UTF-8, become question marks: for what
 * people only read. */
void dibs__text_clean(char *text);

/* Bytes that are not UTF-8 become question marks: for data that every store takes. */
void dibs__utf8_clean(char *text);

#endif
