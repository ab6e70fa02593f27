/* route_probe.c - probes, the version, and what the daemon says of itself. Threads
 * of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLAIN "text/plain; charset=utf-8"

extern const char dibs__serve_openapi[];

enum { PROBE_MS = 100 };

static void answer_text(dibs__http_exchange *ex, int status, const char *text)
{
    dibs__http_answer_bytes(ex, status, PLAIN, text, strlen(text), NULL);
}

/* A question wakes the threads: many probes share one. */
static bool probe_threads(dibs__serve *sv)
{
    const dibsx_nsec now = dibsx_now();
    dibsx_nsec before = atomic_load(&sv->probed_at);

    if (now >= dibsx_after_ms(before, PROBE_MS) &&
        atomic_compare_exchange_strong(&sv->probed_at, &before, now))
        atomic_store(&sv->stuck, !dibs__serve_runs(sv, NULL));
    return !atomic_load(&sv->stuck);
}

/* It runs on the loop, for which the answer itself is the proof. Never asks the store. */
void dibs__serve_get_livez(dibs__http_exchange *ex)
{
    const bool runs = probe_threads(dibs__http_arg(ex));

    answer_text(ex, runs ? 200 : 503, runs ? "ok\n" : "stuck\n");
}

static const char *phase_text(int phase)
{
    return phase == DIBS__SERVE_READY      ? "ready"
           : phase == DIBS__SERVE_STARTING ? "starting"
                                           : "draining";
}

/* The store, as the latest look found it: it is not asked for this. */
static void put_store_check(dibsx_buf *page, dibs__serve *sv)
{
    dibs__serve_picture *picture = dibs__serve_look_take(&sv->look, 0);

    if (!picture)
        dibsx_buf_puts(page, "[-]store has not answered yet\n");
    else if (picture->rc != DIBS_OK)
        dibsx_buf_printf(page, "[-]store %s\n", picture->err.message);
    else
        dibsx_buf_printf(page, "[+]store answered a look in %lld us\n",
                         (long long)picture->took_us);
    dibs__serve_picture_drop(picture);
}

/* A clock that was set back is the reason why jobs wait. */
static void put_clock_check(dibsx_buf *page, dibs__serve *sv)
{
    int64_t behind_us = dibs__engine_behind_us(&sv->engine);

    if (behind_us > 0)
        dibsx_buf_printf(page,
                         "[-]clock of the store was set back: jobs wait "
                         "%lld s for it\n",
                         (long long)(behind_us / 1000000));
}

/* The word of the answer; "ok": it is ready. The phase decides, and the store only where
 * the settings say so: as the latest look found it. */
static const char *judge_readiness(dibs__serve *sv, int phase)
{
    dibs__serve_picture *picture;
    bool away;

    if (phase != DIBS__SERVE_READY || !sv->opts->ready_needs_store)
        return phase == DIBS__SERVE_READY ? "ok" : phase_text(phase);
    picture = dibs__serve_look_take(&sv->look, 0);
    away = !picture || picture->rc != DIBS_OK;
    dibs__serve_picture_drop(picture);
    return away ? "store" : "ok";
}

/* One line for each check, and the answer of all below. */
static void answer_checks(dibs__http_exchange *ex, int phase, const char *word)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__http_load load;
    dibsx_buf page;
    size_t len;

    if (dibs__serve_caller_of(ex)->role < DIBS__SERVE_READ) {
        dibs__http_set(ex, "WWW-Authenticate", "Bearer realm=\"dibs\"");
        (void)dibs__serve_refuse(ex, 401, "token",
                                 "The checks need an access token; without "
                                 "?verbose the answer needs none");
        return;
    }
    dibsx_buf_init(&page, 8 * 1024);
    dibsx_buf_printf(&page, "[%c]phase %s\n",
                     phase == DIBS__SERVE_READY ? '+' : '-', phase_text(phase));
    put_store_check(&page, sv);
    put_clock_check(&page, sv);
    dibsx_buf_printf(&page, "[+]tokens %zu\n",
                     dibs__serve_gate_count(&sv->gate));
    dibs__http_load_get(dibs__http_server_of(ex), &load);
    dibsx_buf_printf(&page, "[+]connections %zu of %u, streams %zu\n",
                     load.connections, sv->opts->connections_max, load.streams);
    dibsx_buf_printf(&page, "%s\n", word);
    len = page.len;
    if (dibsx_buf_ok(&page))
        dibs__http_answer_bytes(ex, strcmp(word, "ok") == 0 ? 200 : 503, PLAIN,
                                dibsx_buf_take(&page), len, dibsx_free);
    dibsx_buf_fini(&page);
}

void dibs__serve_get_readyz(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const int phase = atomic_load(&sv->phase);
    const char *word = judge_readiness(sv, phase);

    if (dibs__http_query(ex, "verbose")) {
        answer_checks(ex, phase, word);
        return;
    }
    if (strcmp(word, "ok") == 0) {
        answer_text(ex, 200, "ok\n");
        return;
    }
    dibs__http_set(ex, "Retry-After", "1");
    answer_text(ex, 503,
                phase == DIBS__SERVE_STARTING   ? "starting\n"
                : phase == DIBS__SERVE_DRAINING ? "draining\n"
                                                : "store\n");
}

void dibs__serve_get_healthz(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    bool healthy = dibs__serve_health_ask(&sv->health, sv->cl, sv->data);
    dibsx_json *js = dibs__http_answer(ex, healthy ? 200 : 503);

    dibsx_json_pair_text(js, "status", healthy ? "healthy" : "unhealthy");
    if (dibs__serve_caller_of(ex)->role >= DIBS__SERVE_READ)
        dibs__serve_health_json(&sv->health, js);
}

static void put_node(const dibs__serve *sv, dibsx_json *js)
{
    char node[300];

    snprintf(node, sizeof(node), "%s:%ld", sv->host, (long)getpid());
    dibsx_json_pair_text(js, "node", node);
}

void dibs__serve_get_version(dibs__http_exchange *ex)
{
    const dibs__serve *sv = dibs__http_arg(ex);
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_text(js, "version", dibs_version());
    dibsx_json_pair_text(js, "api", "v1");
    if (dibs__serve_caller_of(ex)->role < DIBS__SERVE_READ)
        return;
    dibsx_json_pair_text(js, "store", dibs_url(sv->cl));
    dibsx_json_pair_text(js, "data_store", dibs_url(sv->data));
    put_node(sv, js);
    dibsx_json_pair_text(js, "epoch", sv->epoch);
}

void dibs__serve_get_openapi(dibs__http_exchange *ex)
{
    dibs__http_answer_bytes(ex, 200, "application/json", dibs__serve_openapi,
                            strlen(dibs__serve_openapi), NULL);
}

/* Where the type of a problem leads. */
void dibs__serve_get_problems(dibs__http_exchange *ex)
{
    dibsx_buf page;
    size_t len;

    dibsx_buf_init(&page, (size_t)64 * 1024);
    dibsx_buf_puts(&page, "<!doctype html><html lang=\"en\"><meta "
                          "charset=\"utf-8\"><title>dibs: problems</title>"
                          "<h1>Problems</h1><dl>\n");
    for (const dibs__serve_problem *pb = dibs__serve_problems; pb->code; pb++)
        dibsx_buf_printf(
            &page, "<dt id=\"%s\"><code>%s</code> (%d)</dt><dd>%s.</dd>\n",
            pb->code, pb->code, pb->status, pb->title);
    dibsx_buf_puts(&page, "</dl></html>\n");
    len = page.len;
    dibs__http_set(ex, "Content-Security-Policy",
                   "default-src 'none'; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'");
    if (dibsx_buf_ok(&page))
        dibs__http_answer_bytes(ex, 200, "text/html; charset=utf-8",
                                dibsx_buf_take(&page), len, dibsx_free);
    dibsx_buf_fini(&page);
}

void dibs__serve_get_whoami(dibs__http_exchange *ex)
{
    const dibs__serve *sv = dibs__http_arg(ex);
    const dibs__serve_caller *caller = dibs__serve_caller_of(ex);
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_text(js, "name", caller->name);
    dibsx_json_pair_text(js, "role", dibs__serve_role_text(caller->role));
    put_node(sv, js);
    dibsx_json_pair_text(js, "version", dibs_version());
}
