/* store_name.c - names of stores, and the first server of several. Pure. */
/* SPDX-License-Identifier: MIT */
#include "demo/store_name.h"
#include "base/url.h"
#include <string.h>
#include <strings.h>

static const struct {
    const char *begins;
    const char *name;
} names[] = {
    {"sqlite:", "SQLite"}, {"memory:", "SQLite"},      {"redis", "Redis"},
    {"redlock", "Redis"},  {"postgres", "PostgreSQL"}, {"/", "SQLite"},
    {"./", "SQLite"},      {"../", "SQLite"},
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

/* Parameters of a quorum that its servers do not know. */
static bool is_quorums(const char *param, size_t len)
{
    static const char *const own[] = {"tls", "longest_ttl", "node_timeout"};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (strlen(own[i]) == len && memcmp(param, own[i], len) == 0)
            return true;
    return false;
}

/* Adds the parameters of one server; whether the servers have TLS. */
static bool add_params(const char *query, dibsx_buf *out)
{
    bool tls = false;
    char before = '?';

    while (*query) {
        const char *param = query + 1;
        size_t len = strcspn(param, "&"), key_len = strcspn(param, "=&");

        if (!is_quorums(param, key_len)) {
            dibsx_buf_printf(out, "%c%.*s", before, (int)len, param);
            before = '&';
        } else if (key_len == 3) {
            tls = len != 5 || memcmp(param, "tls=0", len) != 0;
        }
        query = param + len;
    }
    return tls;
}

bool dibs__demo_first_server(const char *url, dibsx_buf *out)
{
    static const char scheme[] = "redlock://";
    const char *from, *at, *comma, *end, *query;
    dibsx_buf params;
    bool tls;

    if (!url || strncasecmp(url, scheme, strlen(scheme)) != 0)
        return false;
    from = url + strlen(scheme);
    end = from + strcspn(from, "/?");
    query = end + strcspn(end, "?");
    at = memrchr(from, '@', (size_t)(end - from));
    comma = memchr(at ? at : from, ',', (size_t)(end - (at ? at : from)));
    dibsx_buf_init(&params, DIBSX_URL_MAX);
    tls = add_params(query, &params);
    dibsx_buf_puts(out, tls ? "rediss://" : "redis://");
    dibsx_buf_add(out, from, (size_t)((comma ? comma : end) - from));
    dibsx_buf_add(out, end, (size_t)(query - end));
    dibsx_buf_puts(out, dibsx_buf_text(&params));
    out->failed = out->failed || params.failed;
    dibsx_buf_fini(&params);
    return true;
}
