/* suggest.h - "did you mean ...?" for a word that is not known. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_SUGGEST_H
#define DIBS_BASE_SUGGEST_H

#include <stddef.h>

/* Offer one candidate after the other; `best` is the nearest so far, or NULL
 * while none is near enough. Zeroed but for `typed` to begin with. */
typedef struct dibsx_suggest {
    const char *typed; /* borrowed */
    size_t len;        /* of typed; 0: to its end */
    const char *best;  /* borrowed from the candidates */
    size_t distance;
} dibsx_suggest;

void dibsx_suggest_offer(dibsx_suggest *sg, const char *candidate);

#endif
