/* route_web.c - the files of the dashboard. Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/web.h"
#include <stdio.h>
#include <string.h>

/* Scripts, styles and requests of this origin and of no other; none in the page itself.
 * No page may frame it. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
    "'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'";

static void answer_file(dibs__http_exchange *ex, const char *path)
{
    for (size_t i = 0; i < dibs__serve_file_count; i++) {
        const dibs__serve_file *file = &dibs__serve_files[i];

        if (strcmp(file->path, path) != 0)
            continue;
        dibs__http_set(ex, "Content-Security-Policy", policy);
        dibs__http_set(ex, "Cross-Origin-Opener-Policy", "same-origin");
        dibs__http_set(ex, "Cross-Origin-Resource-Policy", "same-origin");
        if (!dibs__http_not_modified(ex, file->etag))
            dibs__http_answer_bytes(ex, 200, file->type, file->bytes, file->len,
                                    NULL);
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
