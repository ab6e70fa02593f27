/* route_leases.c - leases without a session: acquire, renew, release, check. Nobody
 * renews them but their client. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/want.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MAX_MS = 55000,
    TTL_MAX_MS = 24 * 60 * 60 * 1000,
    RELEASE_TTL_MS = 1000, /* to adopt what is then released */
    META_MAX = 16,
    META_TEXT_MAX = 256
};

/* The options of an acquire, and the texts of its metadata. */
typedef struct acquire {
    dibs_lock_opts opts;
    int64_t wait_ms;
    const char *meta[META_MAX + 1];
    char texts[META_MAX][META_TEXT_MAX];
} acquire;

static bool
read_mode(dibs__http_exchange *ex, const dibsx_json_node *body, acquire *aq)
{
    const char *mode = "exclusive";

    if (!dibs__serve_ask_text(ex, body, "mode", 16, &mode))
        return false;
    if (strcmp(mode, "shared") == 0)
        aq->opts.mode = DIBS_SHARED;
    else if (strcmp(mode, "permits") == 0)
        aq->opts.mode = DIBS_PERMITS;
    else if (strcmp(mode, "exclusive") != 0) {
        dibsx_json *js =
            dibs__serve_refuse(ex, 400, "invalid",
                               "mode is exclusive, shared or permits");

        dibsx_json_pair_text(js, "pointer", "/mode");
        return false;
    }
    return true;
}

static bool
read_meta(dibs__http_exchange *ex, const dibsx_json_node *body, acquire *aq)
{
    const dibsx_json_node *meta = dibsx_json_get(body, "meta");
    const dibsx_json_node *node =
        meta && meta->kind == DIBSX_JSON_MAP ? meta->child : NULL;
    bool fits = !meta || meta->kind == DIBSX_JSON_MAP;
    size_t i = 0;

    for (; node && fits; node = node->next, i++) {
        fits = i < META_MAX && node->kind == DIBSX_JSON_TEXT &&
               node->key_len > 0 && !strchr(node->key, '=') &&
               strlen(node->key) == node->key_len &&
               strlen(node->text) == node->len &&
               snprintf(aq->texts[i], META_TEXT_MAX, "%s=%s", node->key,
                        node->text) < META_TEXT_MAX;
        if (fits)
            aq->meta[i] = aq->texts[i];
    }
    aq->opts.meta = i ? aq->meta : NULL;
    if (!fits) {
        dibsx_json *js = dibs__serve_refuse(
            ex, 400, "invalid",
            "meta must be an object of at most %d texts, each with its key "
            "shorter than %d bytes",
            META_MAX, META_TEXT_MAX);

        dibsx_json_pair_text(js, "pointer", "/meta");
    }
    return fits;
}

static bool
read_acquire(dibs__http_exchange *ex, const dibsx_json_node *body, acquire *aq)
{
    int64_t permits = 0, capacity = 0, priority = 0;

    if (!dibs__serve_ask_int(ex, body, "ttl_ms", 10, TTL_MAX_MS,
                             &aq->opts.ttl_ms) ||
        !dibs__serve_ask_int(ex, body, "wait_ms", 0, WAIT_MAX_MS,
                             &aq->wait_ms) ||
        !dibs__serve_ask_int(ex, body, "permits", 1, UINT32_MAX, &permits) ||
        !dibs__serve_ask_int(ex, body, "capacity", 1, UINT32_MAX, &capacity) ||
        !dibs__serve_ask_int(ex, body, "priority", INT32_MIN, INT32_MAX,
                             &priority) ||
        !dibs__serve_ask_text(ex, body, "label", 64, &aq->opts.label) ||
        !read_mode(ex, body, aq) || !read_meta(ex, body, aq))
        return false;
    aq->opts.wait_ms = aq->wait_ms;
    aq->opts.permits = (uint32_t)permits;
    aq->opts.capacity = (uint32_t)capacity;
    aq->opts.priority = (int32_t)priority;
    return true;
}

void dibs__serve_post_lease(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    char identity[32] = "r-";
    const dibsx_json_node *body;
    acquire aq = {.opts = {.size = sizeof(aq.opts),
                           .flags = DIBS_LOCK_NO_RENEW,
                           .label = dibs__serve_caller_of(ex)->name,
                           .identity = identity}};
    dibs_lock *lock = NULL;
    dibs_error err = {0};

    if (!name ||
        !dibs__serve_ask_body(
            ex, "ttl_ms wait_ms mode permits capacity priority label meta",
            &body) ||
        !read_acquire(ex, body, &aq))
        return;
    /* Each request is an owner of its own, whatever thread it runs on. */
    if (!dibsx_random_hex(identity + 2, 17)) {
        dibs__http_refuse(ex, 503, "The kernel gives no randomness");
        return;
    }
    if (dibs_lock_new(sv->cl, name, &aq.opts, &lock, &err) != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    else
        dibs__serve_want_begin(ex, lock, name, aq.wait_ms);
}

/* "OWNER:FENCE". */
typedef struct lease {
    const char *name;
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;
    int64_t ttl_ms;
} lease;

static bool read_token(const char *text, lease *ls)
{
    const size_t len = DIBS_OWNER_SIZE - 1;
    char *end;

    if (!text || strspn(text, "0123456789abcdef") != len || text[len] != ':' ||
        text[len + 1] < '1' || text[len + 1] > '9')
        return false;
    snprintf(ls->owner, sizeof(ls->owner), "%s", text);
    ls->fence = strtoull(text + len + 1, &end, 10);
    return !*end;
}

static bool read_lease(dibs__http_exchange *ex, const char *fields, lease *ls)
{
    const dibsx_json_node *body;
    const char *token = NULL;
    dibsx_json *js;

    ls->name = dibs__serve_ask_name(ex);
    if (!ls->name || !dibs__serve_ask_body(ex, fields, &body) ||
        !dibs__serve_ask_text(ex, body, "token", 64, &token) ||
        !dibs__serve_ask_int(ex, body, "ttl_ms", 10, TTL_MAX_MS, &ls->ttl_ms))
        return false;
    if (read_token(token, ls))
        return true;
    js = dibs__serve_refuse(ex, 400, "invalid",
                            "token is missing, or is not OWNER:FENCE as the "
                            "acquire answered it");
    dibsx_json_pair_text(js, "pointer", "/token");
    return false;
}

/* Takes the lease over by its token, which renews it. NULL: it was answered. */
static dibs_lock *adopt_lease(dibs__http_exchange *ex, const lease *ls)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_lock_new(sv->cl, ls->name,
                                   DIBS_LOCK_OPTS(.flags = DIBS_LOCK_NO_RENEW,
                                                  .ttl_ms = ls->ttl_ms),
                                   &lock, &err);

    if (rc == DIBS_OK)
        rc = dibs_lock_adopt(lock, ls->owner, ls->fence, &err);
    if (rc == DIBS_OK)
        return lock;
    (void)dibs__serve_fail(ex, &err);
    dibs_lock_free(lock);
    return NULL;
}

void dibs__serve_post_renew(dibs__http_exchange *ex)
{
    lease ls = {.name = NULL};
    dibs_lock *lock;

    if (!read_lease(ex, "token ttl_ms", &ls))
        return;
    lock = adopt_lease(ex, &ls);
    if (!lock)
        return;
    dibsx_json_pair_int(dibs__http_answer(ex, 200), "valid_ms",
                        dibs__serve_valid_ms(dibs_lock_valid_ms(lock)));
    dibs_lock_leave(lock);
    dibs_lock_free(lock);
}

void dibs__serve_post_release(dibs__http_exchange *ex)
{
    lease ls = {.name = NULL};
    dibs_error err = {0};
    dibs_lock *lock;

    if (!read_lease(ex, "token", &ls))
        return;
    ls.ttl_ms = RELEASE_TTL_MS;
    lock = adopt_lease(ex, &ls);
    if (!lock)
        return;
    if (dibs_lock_release(lock, &err) == DIBS_OK)
        dibs__http_answer_none(ex, 204);
    else
        (void)dibs__serve_fail(ex, &err);
    dibs_lock_free(lock);
}

/* Whether the store has the lease of a token. */
typedef struct search {
    const lease *ls;
    int64_t left_ms; /* -1: it has not */
} search;

static bool find_holder(const dibs_lease_info *info, void *arg)
{
    search *sr = arg;

    for (size_t i = 0; i < info->holder_count; i++) {
        const dibs_party *holder = &info->holders[i];

        if (holder->fence == sr->ls->fence && !holder->left &&
            strcmp(holder->owner, sr->ls->owner) == 0)
            sr->left_ms = holder->left_ms;
    }
    return false;
}

void dibs__serve_post_check(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    lease ls = {.name = NULL};
    search sr = {.ls = &ls, .left_ms = -1};
    dibs_error err = {0};
    dibs_status rc;
    dibsx_json *js;

    if (!read_lease(ex, "token", &ls))
        return;
    rc = dibs_lease_show(sv->cl, ls.name, find_holder, &sr, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_bool(js, "held", sr.left_ms > 0);
    dibsx_json_pair_int(js, "left_ms", sr.left_ms > 0 ? sr.left_ms : 0);
}
