/* attention.h - what of a picture needs a look: first the holders that seem to be gone, then
 * the long waits, the longest first. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ATTENTION_H
#define DIBS_SERVE_ATTENTION_H

#include "serve/look.h"

enum { DIBS__ATTENTION_MAX = 50, DIBS__LONG_WAIT_MS = 60000 };

typedef struct dibs__notice {
    const dibs_lease_info *row;
    const char *stale; /* why the holder seems to be gone; NULL: a long wait */
    int64_t waited_ms; /* of a long wait */
} dibs__notice;

typedef struct dibs__attention {
    dibs__notice notices[DIBS__ATTENTION_MAX];
    size_t count;
    size_t total; /* of all that need a look */
} dibs__attention;

/* The notices point into the picture. */
void dibs__attention_find(dibs__attention *at,
                          const dibs__serve_picture *picture);

#endif
