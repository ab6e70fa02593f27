/* request_kind.h - the two kinds of requests to a server. Each has connections and
 * threads of its own, so that no step delays renewals. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REQUEST_KIND_H
#define DIBS_STORE_REQUEST_KIND_H

typedef enum dibs__request_kind {
    DIBS__REQUEST_STEP,
    DIBS__REQUEST_RENEWAL,
    DIBS__REQUEST_KINDS
} dibs__request_kind;

#endif
