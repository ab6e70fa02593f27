/* fuzz_http_target.c - paths and queries: nothing is read beyond its end, and
 * routes are found for what was read. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "http/route.h"

static const dibs__http_route routes[] = {
    {.method = "GET", .path = "/status"},
    {.method = "GET", .path = "/locks/{name}"},
    {.method = "POST", .path = "/locks/{name}/holders/{id}"},
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

static void check_routes(const dibs__http_target *target)
{
    const dibs__http_route *route;
    dibsx_buf allow;
    bool known;

    dibsx_buf_init(&allow, 256);
    route = dibs__http_route_find(routes, ROUTES, "GET", target, &known);
    REQUIRE(!route || known);
    dibs__http_route_allow(routes, ROUTES, target, &allow);
    REQUIRE(known == (allow.len > 0));
    if (route == &routes[1])
        REQUIRE(dibs__http_route_param(route, target, "name") ==
                target->segments[1]);
    dibsx_buf_fini(&allow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__http_target target;
    dibs_error err = {0};

    if (dibs__http_target_read(text, &target, &err) == DIBS_OK) {
        REQUIRE(target.segment_count > 0);
        for (size_t i = 0; i < target.query_count; i++)
            REQUIRE(dibs__http_target_query(&target, target.query[i].key));
        check_routes(&target);
    } else {
        REQUIRE(!target.texts && err.message[0]);
    }
    dibs__http_target_fini(&target);
    free(text);
    return 0;
}
