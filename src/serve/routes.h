/* routes.h - the table of routes, and the functions that answer them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ROUTES_H
#define DIBS_SERVE_ROUTES_H

#include "http/route.h"

/* The need of a route is a dibs__serve_role. */
extern const dibs__http_route dibs__serve_routes[];
extern const size_t dibs__serve_route_count;

/* route_probe.c */
dibs__http_fn dibs__serve_get_livez;
dibs__http_fn dibs__serve_get_readyz;
dibs__http_fn dibs__serve_get_healthz;
dibs__http_fn dibs__serve_get_version;
dibs__http_fn dibs__serve_get_openapi;
dibs__http_fn dibs__serve_get_problems;
dibs__http_fn dibs__serve_get_whoami;

/* route_locks.c */
dibs__http_fn dibs__serve_get_lock;

#endif
