/* store.c - finds the store of a URL and opens it.
 *
 * Owns the table of schemes. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/store.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "config/path_url.h"
#include "store/check_url.h"
#include "store/fault.h"
#ifdef DIBS_POSTGRES
#include "store/postgres/postgres.h"
#endif
#ifdef DIBS_REDIS
#include "store/quorum/quorum.h"
#include "store/redis/redis.h"
#include "store/redis/wire/conf.h"
#endif
#include "store/sqlite/sqlite.h"
#include <string.h>

static const dibs__store_ops *const stores[] = {
    &dibs__sqlite_ops,
    &dibs__memory_ops,
#ifdef DIBS_REDIS
    &dibs__redis_ops,
    &dibs__rediss_ops,
    &dibs__redis_unix_ops,
    &dibs__redis_sentinel_ops,
    &dibs__rediss_sentinel_ops,
    &dibs__redis_cluster_ops,
    &dibs__rediss_cluster_ops,
    &dibs__quorum_ops,
#endif
#ifdef DIBS_POSTGRES
    &dibs__pg_ops,
    &dibs__pgsql_ops,
#endif
};

static const dibs__store_ops *find_ops(const char *scheme)
{
    if (strncmp(scheme, DIBS__FAULT_PREFIX, strlen(DIBS__FAULT_PREFIX)) == 0)
        return &dibs__fault_ops;
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++)
        if (strcmp(stores[i]->scheme, scheme) == 0)
            return stores[i];
    return NULL;
}

static dibs_status fail_unknown(const char *scheme, dibs_error *err)
{
    char known[200];
    dibsx_buf buf;

    dibsx_buf_init(&buf, sizeof(known) - 1);
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++)
        dibsx_buf_printf(&buf, "%s%s:", i ? ", " : "", stores[i]->scheme);
    memcpy(known, dibsx_buf_text(&buf), buf.len + 1);
    dibsx_buf_fini(&buf);
    return dibsx_fail(err, DIBS_INVALID,
                      "no store is called \"%.40s:\"; there are %s", scheme,
                      known);
}

dibs_status dibs__store_make_url(const dibsx_url *url, dibsx_nsec deadline,
                                 dibs__store **out, dibs_error *err)
{
    const dibs__store_ops *ops = find_ops(url->scheme);

    *out = NULL;
    return ops ? ops->open(url, deadline, out, err)
               : fail_unknown(url->scheme, err);
}

static dibs_status parse_path(const char *path, dibsx_url *url, dibs_error *err)
{
    dibsx_buf text;
    dibs_status rc;

    dibsx_buf_init(&text, DIBSX_URL_MAX);
    dibs__store_path_url(&text, path);
    if (dibsx_buf_ok(&text))
        rc = dibsx_url_parse(dibsx_buf_text(&text), url, err);
    else
        rc = dibsx_fail(err, DIBS_INVALID, "the path of the store is too long");
    dibsx_buf_fini(&text);
    return rc;
}

/* A URL, a path, or what some other library would call its connection string. */
static dibs_status parse_url(const char *text, dibsx_url *url, dibs_error *err)
{
    if (dibs__store_is_path(text))
        return parse_path(text, url, err);
#ifdef DIBS_REDIS
    if (dibs__redis_is_stackexchange(text)) {
        char *same = NULL;
        dibs_status rc = dibs__redis_stackexchange_url(text, &same, err);

        if (rc == DIBS_OK)
            rc = dibsx_url_parse(same, url, err);
        if (same)
            explicit_bzero(same, strlen(same));
        dibsx_free(same);
        return rc;
    }
#endif
    return dibsx_url_parse(text, url, err);
}

dibs_status dibs__store_make(const char *text, dibsx_nsec deadline,
                             dibs__store **out, dibs_error *err)
{
    dibsx_url url;
    dibs_status rc;

    *out = NULL;
    rc = parse_url(text, &url, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__store_make_url(&url, deadline, out, err);
    dibsx_url_fini(&url);
    return rc;
}

dibs_status dibs__store_check_url(const char *text, dibs_error *err)
{
    dibsx_url url;
    dibs_status rc = parse_url(text, &url, err);

    if (rc != DIBS_OK)
        return rc;
    if (!find_ops(url.scheme))
        rc = fail_unknown(url.scheme, err);
    dibsx_url_fini(&url);
    return rc;
}

dibs_status
dibs__store_reach(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    return st->ops->reach ? st->ops->reach(st, deadline, err) : DIBS_OK;
}

dibs_status dibs__store_open(const char *text, dibsx_nsec deadline,
                             dibs__store **out, dibs_error *err)
{
    dibs_status rc = dibs__store_make(text, deadline, out, err);

    if (rc == DIBS_OK)
        rc = dibs__store_reach(*out, deadline, err);
    if (rc != DIBS_OK) {
        dibs__store_close(*out);
        *out = NULL;
    }
    return rc;
}

const char *dibs__store_cannot(const dibs__store *st, dibs__ability what)
{
    return st->ops->cannot ? st->ops->cannot(st, what) : NULL;
}

void dibs__store_close(dibs__store *st)
{
    if (st)
        st->ops->close(st);
}
