/* store_name.c - names of stores, and the first server of several. Pure. */
/* SPDX-License-Identifier: MIT */
#include "demo/store_name.h"
#include <string.h>
#include <strings.h>

static const struct {
    const char *begins;
    const char *name;
} names[] = {
    {"sqlite:", "SQLite"}, {"memory:", "SQLite"},      {"redis", "Redis"},
    {"redlock", "Redis"},  {"postgres", "PostgreSQL"},
};

const char *dibs__demo_store_name(const char *url)
{
    if (!url || !*url)
        return "SQLite";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncasecmp(url, names[i].begins, strlen(names[i].begins)) == 0)
            return names[i].name;
    }
    /* A connection string without a scheme. */
    return "Redis";
}

bool dibs__demo_first_server(const char *url, dibsx_buf *out)
{
    static const char scheme[] = "redlock://";
    const char *from, *at, *comma, *end;

    if (!url || strncasecmp(url, scheme, strlen(scheme)) != 0)
        return false;
    from = url + strlen(scheme);
    end = from + strcspn(from, "/?");
    at = memrchr(from, '@', (size_t)(end - from));
    comma = memchr(at ? at : from, ',', (size_t)(end - (at ? at : from)));
    dibsx_buf_puts(out, "redis://");
    dibsx_buf_add(out, from, (size_t)((comma ? comma : end) - from));
    dibsx_buf_add(out, end, strcspn(end, "?"));
    return true;
}
