/* target.c - the path and the query of a request, decoded.
 *
 * A target owns one copy of its text, decoded in place. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "http/target.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include <string.h>
#include <strings.h>

/* Decodes in place. `plus`: "+" is a space, as in a query. */
static bool decode(char *text, bool plus)
{
    char *out = text;
    size_t len;

    for (const char *at = text; *at; at++) {
        if (*at == '%') {
            int high = dibsx_hex_value(at[1]);
            int low = high < 0 ? -1 : dibsx_hex_value(at[2]);

            if (low < 0 || high + low == 0)
                return false;
            *out++ = (char)(high << 4 | low);
            at += 2;
        } else {
            *out++ = plus && *at == '+' ? ' ' : *at;
        }
    }
    *out = '\0';
    for (const char *at = text; *at; at += len) {
        len = dibsx_utf8_len((const unsigned char *)at, strlen(at));
        if (!len)
            return false;
    }
    return true;
}

/* Cuts the text at the first of these characters: what is after it, or NULL. */
static char *cut(char *text, const char *at)
{
    char *end = text + strcspn(text, at);

    if (!*end)
        return NULL;
    *end = '\0';
    return end + 1;
}

static dibs_status
read_path(dibs__http_target *target, char *path, dibs_error *err)
{
    if (*path != '/')
        return dibsx_fail(err, DIBS_INVALID,
                          "the path does not begin with a slash");
    for (char *at = path + 1, *next; at; at = next) {
        next = cut(at, "/");
        if (target->segment_count == DIBS__HTTP_SEGMENTS_MAX)
            return dibsx_fail(err, DIBS_INVALID, "the path has too many parts");
        if (!decode(at, false))
            return dibsx_fail(err, DIBS_INVALID, "the path is badly encoded");
        target->segments[target->segment_count++] = at;
    }
    return DIBS_OK;
}

static dibs_status
read_query(dibs__http_target *target, char *query, dibs_error *err)
{
    for (char *at = query, *next; at; at = next) {
        char *value;

        next = cut(at, "&");
        if (!*at)
            continue;
        if (target->query_count == DIBS__HTTP_QUERY_MAX)
            return dibsx_fail(err, DIBS_INVALID,
                              "the query has too many parts");
        value = cut(at, "=");
        if (!decode(at, true) || (value && !decode(value, true)))
            return dibsx_fail(err, DIBS_INVALID, "the query is badly encoded");
        target->query[target->query_count++] =
            (dibs__http_pair){at, value ? value : ""};
    }
    return DIBS_OK;
}

dibs_status dibs__http_target_read(const char *text, dibs__http_target *target,
                                   dibs_error *err)
{
    char *path, *query;
    dibs_status rc;

    *target = (dibs__http_target){.texts = NULL};
    if (strncasecmp(text, "http://", 7) == 0)
        text += 7 + strcspn(text + 7, "/");
    path = target->texts = dibsx_strdup(text);
    if (!path)
        return dibsx_nomem(err, "the path");
    query = cut(path, "?");
    rc = read_path(target, path, err);
    if (rc == DIBS_OK)
        rc = read_query(target, query, err);
    if (rc != DIBS_OK)
        dibs__http_target_fini(target);
    return rc;
}

void dibs__http_target_fini(dibs__http_target *target)
{
    dibsx_free(target->texts);
    *target = (dibs__http_target){.texts = NULL};
}

const char *
dibs__http_target_query(const dibs__http_target *target, const char *key)
{
    for (size_t i = 0; i < target->query_count; i++) {
        if (strcmp(target->query[i].key, key) == 0)
            return target->query[i].value;
    }
    return NULL;
}

void dibs__http_target_drop(dibs__http_target *target, const char *base_path)
{
    size_t count = 0;

    for (const char *at = base_path + strspn(base_path, "/"); *at;
         at += strspn(at, "/")) {
        const size_t len = strcspn(at, "/");

        if (count == target->segment_count ||
            strlen(target->segments[count]) != len ||
            memcmp(target->segments[count], at, len) != 0)
            return;
        count++;
        at += len;
    }
    target->segment_count -= count;
    memmove(target->segments, target->segments + count,
            target->segment_count * sizeof(target->segments[0]));
    /* The base itself is the root. */
    if (target->segment_count == 0)
        target->segments[target->segment_count++] = "";
}
