/* conf_values.h - reads the values of a configuration: texts, numbers, flags and
 * secrets. No message has a secret in it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_CONF_VALUES_H
#define DIBS_STORE_REDIS_WIRE_CONF_VALUES_H

#include <dibs/types.h>

/* Frees a text as a secret, and sets it to NULL. */
void dibs__conf_wipe(char **text);

/* Replaces a text by a copy. DIBS_NOMEM: it is as before. */
DIBS_MUST_CHECK dibs_status dibs__conf_set_text(char **field, const char *text,
                                                dibs_error *err);

/* Reads a decimal number of up to `digits` digits; -1 when it is none. */
int dibs__conf_read_number(const char *text, size_t digits);

/* Reads the number of a database; and a flag, such as 1 or no. */
DIBS_MUST_CHECK dibs_status dibs__conf_read_db(const char *text, int *db,
                                               dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__conf_read_flag(const char *name,
                                                 const char *text, bool *flag,
                                                 dibs_error *err);

/* Reads a password from the file of the parameter: its first line, which must be
 * its only one. */
DIBS_MUST_CHECK dibs_status dibs__conf_read_secret(const char *param,
                                                   const char *path,
                                                   char **password,
                                                   dibs_error *err);

#endif
