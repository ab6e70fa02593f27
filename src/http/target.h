/* target.h - what a request asks for: the segments of its path and its query,
 * decoded. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_TARGET_H
#define DIBS_HTTP_TARGET_H

#include <dibs/types.h>

enum { DIBS__HTTP_SEGMENTS_MAX = 16, DIBS__HTTP_QUERY_MAX = 32 };

typedef struct dibs__http_pair {
    const char *key;
    const char *value;
} dibs__http_pair;

typedef struct dibs__http_target {
    const char *segments[DIBS__HTTP_SEGMENTS_MAX]; /* "/a/b": "a", "b" */
    size_t segment_count;
    dibs__http_pair query[DIBS__HTTP_QUERY_MAX];
    size_t query_count;
    char *texts; /* what all of them point to */
} dibs__http_target;

/* Reads "/path?query", or "http://host/path?query" as proxies are asked. Segments
 * are split before they are decoded, so that an escaped slash does not split.
 * DIBS_INVALID: too many parts, a bad escape, a NUL, or bytes that are not UTF-8.
 * Free with dibs__http_target_fini(). */
DIBS_MUST_CHECK dibs_status dibs__http_target_read(const char *text,
                                                   dibs__http_target *target,
                                                   dibs_error *err);
void dibs__http_target_fini(dibs__http_target *target);

/* Drops "/base/path" from the front of the path, if it is there. */
void dibs__http_target_drop(dibs__http_target *target, const char *base_path);

/* The first value under a key of the query, or NULL. */
const char *
dibs__http_target_query(const dibs__http_target *target, const char *key);

#endif
