/* route.h - the table of routes: which function answers which method and path.
 * Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_ROUTE_H
#define DIBS_HTTP_ROUTE_H

#include "http/exchange.h"
#include "http/target.h"

#include "base/buf.h"

/* Answers a request. */
typedef void dibs__http_fn(dibs__http_exchange *ex);

typedef struct dibs__http_route {
    const char *method; /* "GET", which answers HEAD as well */
    const char *path;   /* "/locks/{name}": a part in braces is a parameter */
    dibs__http_fn *answer;
    bool quick;  /* never blocks: runs on the loop thread, before all others */
    bool urgent; /* may block, and goes before others that may: for probes */
    int need;    /* what its caller must be, for the gate (server.h) */
    size_t body_max;   /* 0: that of the server */
    const char *query; /* the keys that it reads: "limit after"; NULL: none */
} dibs__http_route;

/* The route for a request. NULL: *known tells whether the path has one for
 * another method. */
const dibs__http_route *
dibs__http_route_find(const dibs__http_route *routes, size_t count,
                      const char *method, const dibs__http_target *target,
                      bool *known);

/* The value of a parameter of the route, or NULL when it has none of that name. */
const char *
dibs__http_route_param(const dibs__http_route *route,
                       const dibs__http_target *target, const char *name);

/* Appends the methods of a path, as the header Allow has them. */
void dibs__http_route_allow(const dibs__http_route *routes, size_t count,
                            const dibs__http_target *target, dibsx_buf *out);

#endif
