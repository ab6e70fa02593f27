/* suggest.h - "did you mean ...?" for a word that is not known. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_SUGGEST_H
#define DIBS_CONFIG_SUGGEST_H

#include <stddef.h>

/* Offer one candidate after the other; `best` is the nearest so far, or NULL
 * while none is near enough. Zeroed but for `typed` to begin with. */
typedef struct dibs__suggest {
    const char *typed; /* borrowed */
    size_t len;        /* of typed; 0: to its end */
    const char *best;  /* borrowed from the candidates */
    size_t distance;
} dibs__suggest;

void dibs__suggest_offer(dibs__suggest *sg, const char *candidate);

#endif
