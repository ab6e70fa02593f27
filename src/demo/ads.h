/* ads.h - the value that the workers share. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_ADS_H
#define DIBS_DEMO_ADS_H

#include "base/json.h"
#include <dibs/dibs.h>

enum { DIBS__DEMO_NAME_MAX = 200 }; /* bytes of an operation's name */

typedef struct dibs__demo_ad {
    char id[32];                         /* "worker-1" */
    char name[DIBS__DEMO_NAME_MAX + 40]; /* "... by Worker 1" */
    char time[40];
} dibs__demo_ad;

/* Fills the value that worker `id` writes, with the time now. */
void dibs__demo_ad_fill(dibs__demo_ad *ad, int id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* DIBS_NOTFOUND: there is none, and *version is DIBS_VERSION_NONE. DIBS_INVALID:
 * something else is there. */
DIBS_MUST_CHECK dibs_status dibs__demo_ad_get(dibs_client *data,
                                              dibs__demo_ad *ad,
                                              uint64_t *version,
                                              dibs_error *err);

/* Writes it if the version is still the same, so that a late write of one who
 * has lost the lock does no harm. DIBS_STALE: it is not. */
DIBS_MUST_CHECK dibs_status dibs__demo_ad_put(dibs_client *data,
                                              const dibs__demo_ad *ad,
                                              uint64_t version,
                                              dibs_error *err);

/* As a JSON object, and as people read it: { id: 'worker-1', ... }. */
void dibs__demo_ad_json(dibsx_json *js, const dibs__demo_ad *ad);
void dibs__demo_ad_text(const dibs__demo_ad *ad, char *out, size_t size);

#endif
