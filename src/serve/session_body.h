/* session_body.h - the bodies of requests about sessions and leases, read strictly:
 * a member that is not known is an error. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_BODY_H
#define DIBS_SERVE_SESSION_BODY_H

#include "base/json.h"
#include "base/json_read.h"
#include "base/sha256.h"
#include <dibs/dibs.h>

enum {
    DIBS__SESSION_LEASES_MAX = 1024, /* of one session, by the settings */
    DIBS__LEASE_META_MAX = 16,
    DIBS__LEASE_WAIT_MAX_MS = 86400000
};

/* Texts are borrowed from the JSON, or from the request. */
typedef struct dibs__lease_request {
    const char *id;
    const char *name;
    const char *token; /* of a lease that is taken over */
    dibs_lock_opts opts;
    bool election;      /* a campaign, as */
    const char *member; /* ... this candidate */
    char member_text[80];
    char meta_texts[DIBS__LEASE_META_MAX][128];
    const char *meta[DIBS__LEASE_META_MAX + 3];
} dibs__lease_request;

typedef struct dibs__session_request {
    const char *name;
    int64_t ttl_ms;
    bool stream;
    const dibsx_json_node *adopt; /* first of them, or NULL */
    size_t adopt_count;
    unsigned char hash[DIBSX_SHA256_SIZE]; /* of the body, for a repeat */
} dibs__session_request;

/* Reads the body of PUT .../leases/{id}; with `adopts` a member of "adopt", which has
 * "id" and "token" too. DIBS_INVALID: err names the member. */
DIBS_MUST_CHECK dibs_status
dibs__lease_request_read(const dibsx_json_node *root, bool adopts,
                         dibs__lease_request *req, dibs_error *err);

/* Reads the body of POST /v1/sessions, which may be NULL. */
DIBS_MUST_CHECK dibs_status dibs__session_request_read(
    const dibsx_json_node *root, dibs__session_request *req, dibs_error *err);

/* Appends what two requests for one lease must agree in. */
void dibs__lease_request_text(const dibs__lease_request *req, dibsx_buf *out);

#endif
