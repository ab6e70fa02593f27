/* routes.c - the table of routes. openapi.json says the same to others. */
/* SPDX-License-Identifier: MIT */
#include "serve/routes.h"
#include "serve/token.h"

#define ANYBODY .need = DIBS__SERVE_NOBODY
#define READ    .need = DIBS__SERVE_READ
#define OPERATE .need = DIBS__SERVE_OPERATE
#define ADMIN   .need = DIBS__SERVE_ADMIN
#define QUICK   .quick = true

const dibs__http_route dibs__serve_routes[] = {
    {"GET", "/livez", dibs__serve_get_livez, QUICK, ANYBODY},
    {"GET", "/readyz", dibs__serve_get_readyz, QUICK, ANYBODY},
    {"GET", "/healthz", dibs__serve_get_healthz, ANYBODY},
    {"GET", "/version", dibs__serve_get_version, QUICK, ANYBODY},
    {"GET", "/openapi.json", dibs__serve_get_openapi, QUICK, ANYBODY},
    {"GET", "/problems", dibs__serve_get_problems, QUICK, ANYBODY},
    {"GET", "/v1/whoami", dibs__serve_get_whoami, QUICK, READ},
    {"GET", "/v1/locks/{name}", dibs__serve_get_lock, READ},
};

const size_t dibs__serve_route_count =
    sizeof(dibs__serve_routes) / sizeof(dibs__serve_routes[0]);
