/* audit.h - what the audits of all stores share: how they tell of a finding, and the refusal
 * of a store in danger, where its URL says `strict`. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_AUDIT_H
#define DIBS_STORE_AUDIT_H

#include "store/store.h"

/* The receiver of the findings. */
typedef struct dibs__audit_report {
    dibs_finding_fn *each;
    void *arg;
} dibs__audit_report;

/* Reports a finding, in words that are cut at DIBS__FOUND_MAX bytes; the advice may
 * be NULL. */
enum { DIBS__FOUND_MAX = 4096 + 256 }; /* a path and a few words */
void dibs__audit_tell(const dibs__audit_report *to, dibs_severity severity,
                      const char *subject, const char *advice,
                      const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* DIBS_REFUSED with the first danger. */
DIBS_MUST_CHECK dibs_status dibs__store_audit_strict(dibs__store *st,
                                                     dibsx_nsec deadline,
                                                     dibs_error *err);

#endif
