/* scan.h - all keys that begin with one of some texts. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SCAN_H
#define DIBS_STORE_REDIS_SCAN_H

#include "base/buf.h"
#include "store/redis/cluster/route.h"

/* Names in order, each once. Zeroed storage is an empty set. */
typedef struct dibs__names {
    dibsx_buf text; /* one after the other, each with its NUL */
    const char **name;
    size_t count;
} dibs__names;

/* Turns a key into the name to keep; false to pass it over. */
typedef bool dibs__name_of(const char *key, size_t len, const char *begins,
                           char out[DIBS_NAME_MAX + 1]);

/* Reads every key of the database, in a cluster of every master, a page at a
 * time, and keeps the names of those that begin with one of `texts`. End
 * `names` with dibs__names_fini(), also on failure. */
DIBS_MUST_CHECK dibs_status dibs__scan(dibs__route *rt,
                                       const char *const *texts,
                                       size_t text_count, const char *begins,
                                       dibs__name_of *name_of,
                                       dibsx_nsec deadline, dibs__names *names,
                                       dibs_error *err);
/* The same, and `deadline` is that of the first page; each further one may take as
 * long as that. So a search of many keys goes on while the server answers. */
DIBS_MUST_CHECK dibs_status
dibs__scan_paced(dibs__route *rt, const char *const *texts, size_t text_count,
                 const char *begins, dibs__name_of *name_of,
                 dibsx_nsec deadline, dibs__names *names, dibs_error *err);
void dibs__names_fini(dibs__names *names);

#endif
