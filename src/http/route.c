/* route.c - looking a request up in the table of routes. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "http/route.h"
#include <string.h>

/* One part of a route's path: where it begins and how long it is. */
typedef struct part {
    const char *text;
    size_t len;
} part;

/* Moves *at, which stands at a slash, past the next part. */
static bool next_part(const char **at, part *pt)
{
    if (**at != '/')
        return false;
    pt->text = *at + 1;
    pt->len = strcspn(pt->text, "/");
    *at = pt->text + pt->len;
    return true;
}

static bool is_param(const part *pt)
{
    return pt->len > 2 && pt->text[0] == '{' && pt->text[pt->len - 1] == '}';
}

/* Moves *at, which stands behind a slash, past a part that the segment fits. An empty
 * segment is no value for a parameter. A slash in a segment was escaped, and ends no
 * part. */
static bool skip_part(const char **at, const char *segment)
{
    if (**at == '{') {
        *at += strcspn(*at, "/");
        return *segment != '\0';
    }
    while (*segment && **at == *segment && *segment != '/') {
        ++*at;
        segment++;
    }
    return *segment == '\0' && (**at == '\0' || **at == '/');
}

/* Most routes differ in their first letters, where the look at them ends. */
static bool
matches(const dibs__http_route *route, const dibs__http_target *target)
{
    const char *at = route->path;

    for (size_t i = 0; i < target->segment_count; i++) {
        if (*at++ != '/' || !skip_part(&at, target->segments[i]))
            return false;
    }
    return *at == '\0';
}

static bool answers(const dibs__http_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

const dibs__http_route *
dibs__http_route_find(const dibs__http_route *routes, size_t count,
                      const char *method, const dibs__http_target *target,
                      bool *known)
{
    *known = false;
    for (size_t i = 0; i < count; i++) {
        if (!matches(&routes[i], target))
            continue;
        *known = true;
        if (answers(&routes[i], method))
            return &routes[i];
    }
    return NULL;
}

const char *
dibs__http_route_param(const dibs__http_route *route,
                       const dibs__http_target *target, const char *name)
{
    const char *at = route->path;
    size_t len = strlen(name);
    part pt;

    for (size_t i = 0; next_part(&at, &pt) && i < target->segment_count; i++) {
        if (is_param(&pt) && pt.len == len + 2 &&
            memcmp(pt.text + 1, name, len) == 0)
            return target->segments[i];
    }
    return NULL;
}

void dibs__http_route_allow(const dibs__http_route *routes, size_t count,
                            const dibs__http_target *target, dibsx_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (!matches(&routes[i], target))
            continue;
        dibsx_buf_printf(out, "%s%s", out->len ? ", " : "", routes[i].method);
        if (strcmp(routes[i].method, "GET") == 0)
            dibsx_buf_puts(out, ", HEAD");
    }
}
