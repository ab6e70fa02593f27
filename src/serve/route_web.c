/* route_web.c - the files of the dashboard. Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/web.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Scripts, styles and requests of this origin and of no other; none in the page itself.
 * No page may frame it. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
    "'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'";

/* Whether the coding is named by the `len` characters at `item`, and wanted: not with
 * q=0. */
static bool wants(const char *item, size_t len, const char *coding)
{
    const size_t named = strcspn(item, " \t;,");
    const char *q = memchr(item, ';', len);
    size_t at = 0;

    if (named != strlen(coding) || strncasecmp(item, coding, named) != 0)
        return false;
    if (!q)
        return true;
    at = (size_t)(q - item) + 1;
    at += strspn(item + at, " \t");
    if (at + 2 > len || strncasecmp(item + at, "q=", 2) != 0)
        return true;
    at += 2;
    return strspn(item + at, "0.") < strcspn(item + at, " \t,");
}

/* By the header Accept-Encoding; without one, no coding is wanted. */
static bool takes_gzip(const char *header)
{
    while (header && *header) {
        const size_t len = strcspn(header, ",");

        if (wants(header, len, "gzip"))
            return true;
        header += len;
        header += strspn(header, ", \t");
    }
    return false;
}

/* A tag of its own for each form, so that no cache takes one for the other. */
static void answer_form(dibs__http_exchange *ex, const dibs__serve_file *file)
{
    const bool small = file->packed_len > 0 &&
                       takes_gzip(dibs__http_header(ex, "Accept-Encoding"));

    dibs__http_set(ex, "Vary", "Accept-Encoding");
    if (dibs__http_not_modified(ex, small ? file->packed_etag : file->etag))
        return;
    if (!small) {
        dibs__http_answer_bytes(ex, 200, file->type, file->bytes, file->len,
                                NULL);
        return;
    }
    dibs__http_set(ex, "Content-Encoding", "gzip");
    dibs__http_answer_bytes(ex, 200, file->type, file->packed, file->packed_len,
                            NULL);
}

static void answer_file(dibs__http_exchange *ex, const char *path)
{
    for (size_t i = 0; i < dibs__serve_file_count; i++) {
        const dibs__serve_file *file = &dibs__serve_files[i];

        if (strcmp(file->path, path) != 0)
            continue;
        dibs__http_set(ex, "Content-Security-Policy", policy);
        dibs__http_set(ex, "Cross-Origin-Opener-Policy", "same-origin");
        dibs__http_set(ex, "Cross-Origin-Resource-Policy", "same-origin");
        answer_form(ex, file);
        return;
    }
    (void)dibs__serve_refuse(ex, 404, "notfound",
                             "The dashboard has no such file");
}

static void answer_in(dibs__http_exchange *ex, const char *folder)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, dibs__http_param(ex, "file"));
    answer_file(ex, path);
}

/* The page has relative addresses, which need the slash at the end of the base. */
void dibs__serve_get_page(dibs__http_exchange *ex)
{
    const dibs__serve *sv = dibs__http_arg(ex);
    const char *target = dibs__http_asked(ex);
    char place[sizeof(sv->base) + 2];

    if (!sv->base[0] || strncmp(target, sv->base, strlen(sv->base)) != 0 ||
        target[strlen(sv->base)] == '/') {
        answer_file(ex, "index.html");
        return;
    }
    snprintf(place, sizeof(place), "%s/", sv->base);
    dibs__http_set(ex, "Location", place);
    dibs__http_answer_none(ex, 308);
}

void dibs__serve_get_icon(dibs__http_exchange *ex)
{
    answer_file(ex, "icon.svg");
}

void dibs__serve_get_css(dibs__http_exchange *ex)
{
    answer_in(ex, "css");
}

void dibs__serve_get_js(dibs__http_exchange *ex)
{
    answer_in(ex, "js");
}

void dibs__serve_get_js_page(dibs__http_exchange *ex)
{
    answer_in(ex, "js/pages");
}

void dibs__serve_get_vendor(dibs__http_exchange *ex)
{
    answer_in(ex, "vendor");
}
