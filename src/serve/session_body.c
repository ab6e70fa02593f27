/* session_body.c - the bodies of session_body.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/session_body.h"
#include "base/fail.h"
#include "base/text.h"
#include "serve/session_machine.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads one member; `out` is what it is read into. */
typedef dibs_status
read_fn(const dibsx_json_node *node, void *out, dibs_error *err);

typedef struct member {
    const char *key;
    read_fn *read;
} member;

static dibs_status
bad(const dibsx_json_node *node, const char *must, dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID, "the member \"%.40s\" must be %s",
                      node->key ? node->key : "", must);
}

static dibs_status
read_map(const dibsx_json_node *root, const member *members, size_t count,
         const char *what, void *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (root && root->kind != DIBSX_JSON_MAP)
        return dibsx_fail(err, DIBS_INVALID, "%s must be a JSON object", what);
    for (const dibsx_json_node *node = root ? root->child : NULL;
         node && rc == DIBS_OK; node = node->next) {
        size_t i = 0;

        while (i < count && strcmp(members[i].key, node->key) != 0)
            i++;
        if (i == count)
            rc = dibsx_fail(err, DIBS_INVALID,
                            "%s has no member \"%.40s\"; see /openapi.json",
                            what, node->key);
        else
            rc = members[i].read(node, out, err);
    }
    return rc;
}

/* A text without NULs. */
static bool is_text(const dibsx_json_node *node, size_t max)
{
    return node->kind == DIBSX_JSON_TEXT && strlen(node->text) == node->len &&
           node->len <= max;
}

static bool is_number(const dibsx_json_node *node, int64_t least, int64_t most)
{
    return node->kind == DIBSX_JSON_NUMBER && node->whole &&
           node->integer >= least && node->integer <= most;
}

static dibs_status read_number(const dibsx_json_node *node, int64_t least,
                               int64_t most, int64_t *out, dibs_error *err)
{
    char must[80];

    if (is_number(node, least, most)) {
        *out = node->integer;
        return DIBS_OK;
    }
    snprintf(must, sizeof(must), "a whole number from %" PRId64 " to %" PRId64,
             least, most);
    return bad(node, must, err);
}

static dibs_status
read_id(const dibsx_json_node *node, void *out, dibs_error *err)
{
    if (!is_text(node, DIBS__SESSION_ID_MAX) ||
        !dibs__session_id_ok(node->text))
        return bad(node, "1 to 64 of A-Z a-z 0-9 . _ -", err);
    ((dibs__lease_request *)out)->id = node->text;
    return DIBS_OK;
}

static dibs_status
read_token(const dibsx_json_node *node, void *out, dibs_error *err)
{
    if (!is_text(node, DIBS_TOKEN_SIZE - 1))
        return bad(node, "the token of a lease", err);
    ((dibs__lease_request *)out)->token = node->text;
    return DIBS_OK;
}

static dibs_status
read_name(const dibsx_json_node *node, void *out, dibs_error *err)
{
    if (!is_text(node, DIBS_NAME_MAX) || node->len == 0)
        return bad(node, "a name of 1 to 255 bytes", err);
    ((dibs__lease_request *)out)->name = node->text;
    return DIBS_OK;
}

static dibs_status
read_mode(const dibsx_json_node *node, void *out, dibs_error *err)
{
    static const char *const modes[] = {"exclusive", "shared", "permits"};

    for (int i = 0; i < 3 && node->kind == DIBSX_JSON_TEXT; i++)
        if (strcmp(node->text, modes[i]) == 0) {
            ((dibs__lease_request *)out)->opts.mode = (dibs_lock_mode)i;
            return DIBS_OK;
        }
    return bad(node, "\"exclusive\", \"shared\" or \"permits\"", err);
}

static dibs_status
read_ttl(const dibsx_json_node *node, void *out, dibs_error *err)
{
    return read_number(node, 1000, DIBS__LEASE_WAIT_MAX_MS,
                       &((dibs__lease_request *)out)->opts.ttl_ms, err);
}

static dibs_status
read_wait(const dibsx_json_node *node, void *out, dibs_error *err)
{
    return read_number(node, 0, DIBS__LEASE_WAIT_MAX_MS,
                       &((dibs__lease_request *)out)->opts.wait_ms, err);
}

static dibs_status
read_hold_min(const dibsx_json_node *node, void *out, dibs_error *err)
{
    return read_number(node, 0, INT64_C(365) * 86400000,
                       &((dibs__lease_request *)out)->opts.hold_min_ms, err);
}

static dibs_status
read_hold_max(const dibsx_json_node *node, void *out, dibs_error *err)
{
    return read_number(node, 0, INT64_C(365) * 86400000,
                       &((dibs__lease_request *)out)->opts.hold_max_ms, err);
}

static dibs_status
read_permits(const dibsx_json_node *node, void *out, dibs_error *err)
{
    int64_t number = 0;
    dibs_status rc = read_number(node, 1, UINT32_MAX, &number, err);

    ((dibs__lease_request *)out)->opts.permits = (uint32_t)number;
    return rc;
}

static dibs_status
read_capacity(const dibsx_json_node *node, void *out, dibs_error *err)
{
    int64_t number = 0;
    dibs_status rc = read_number(node, 1, UINT32_MAX, &number, err);

    ((dibs__lease_request *)out)->opts.capacity = (uint32_t)number;
    return rc;
}

static dibs_status
read_priority(const dibsx_json_node *node, void *out, dibs_error *err)
{
    int64_t number = 0;
    dibs_status rc = read_number(node, INT32_MIN, INT32_MAX, &number, err);

    ((dibs__lease_request *)out)->opts.priority = (int32_t)number;
    return rc;
}

static dibs_status
read_durability(const dibsx_json_node *node, void *out, dibs_error *err)
{
    if (!is_text(node, 16))
        return bad(node, "\"async\" or \"wait:K\"", err);
    ((dibs__lease_request *)out)->opts.durability = node->text;
    return DIBS_OK;
}

static dibs_status
read_meta(const dibsx_json_node *node, void *out, dibs_error *err)
{
    dibs__lease_request *req = out;
    size_t count = 0;

    if (node->kind != DIBSX_JSON_MAP)
        return bad(node, "an object of texts", err);
    for (const dibsx_json_node *at = node->child; at; at = at->next) {
        char *text = req->meta_texts[count];

        if (count == DIBS__LEASE_META_MAX || !is_text(at, 96) ||
            strlen(at->key) != at->key_len || at->key_len > 30 ||
            strchr(at->key, '='))
            return bad(node,
                       "an object of at most 16 texts of 96 bytes, under keys "
                       "of 30 bytes without \"=\"",
                       err);
        snprintf(text, sizeof(req->meta_texts[0]), "%s=%s", at->key, at->text);
        req->meta[count++] = text;
    }
    return DIBS_OK;
}

static dibs_status
read_kind(const dibsx_json_node *node, void *out, dibs_error *err)
{
    bool election =
        node->kind == DIBSX_JSON_TEXT && strcmp(node->text, "election") == 0;

    if (!election &&
        (node->kind != DIBSX_JSON_TEXT || strcmp(node->text, "lock") != 0))
        return bad(node, "\"lock\" or \"election\"", err);
    ((dibs__lease_request *)out)->election = election;
    return DIBS_OK;
}

static dibs_status
read_member(const dibsx_json_node *node, void *out, dibs_error *err)
{
    if (!is_text(node, 63) || node->len == 0 ||
        dibsx_text_flaw(node->text, node->len))
        return bad(node, "a text of 1 to 63 bytes without control characters",
                   err);
    ((dibs__lease_request *)out)->member = node->text;
    return DIBS_OK;
}

static const member lease_members[] = {
    {"kind", read_kind},
    {"member", read_member},
    {"name", read_name},
    {"mode", read_mode},
    {"ttl_ms", read_ttl},
    {"wait_ms", read_wait},
    {"permits", read_permits},
    {"capacity", read_capacity},
    {"priority", read_priority},
    {"hold_min_ms", read_hold_min},
    {"meta", read_meta},
    {"hold_max_ms", read_hold_max},
    {"durability", read_durability},
    {"id", read_id}, /* of a lease that is taken over, from here on */
    {"token", read_token}};

enum { ADOPT_MEMBERS = 2 };

/* A candidate is known by the first of its metadata, as those of the library are. */
static dibs_status add_member(dibs__lease_request *req, dibs_error *err)
{
    if (req->election != (req->member != NULL) ||
        (req->election && req->opts.mode != DIBS_EXCLUSIVE))
        return dibsx_fail(err, DIBS_INVALID,
                          "a lease of kind \"election\" has \"member\", the "
                          "name of the candidate, and the mode exclusive; "
                          "others have no \"member\"");
    if (!req->election)
        return DIBS_OK;
    snprintf(req->member_text, sizeof(req->member_text), "member=%s",
             req->member);
    memmove(req->meta + 1, req->meta,
            (DIBS__LEASE_META_MAX + 1) * sizeof(req->meta[0]));
    req->meta[0] = req->member_text;
    return DIBS_OK;
}

dibs_status dibs__lease_request_read(const dibsx_json_node *root, bool adopts,
                                     dibs__lease_request *req, dibs_error *err)
{
    size_t count = sizeof(lease_members) / sizeof(lease_members[0]);
    dibs_status rc;
    size_t metas = 0;

    memset(req, 0, sizeof(*req));
    req->opts.size = sizeof(req->opts);
    req->opts.ttl_ms = 30000;
    rc = read_map(root, lease_members, adopts ? count : count - ADOPT_MEMBERS,
                  adopts ? "a lease in \"adopt\"" : "the body", req, err);
    if (rc != DIBS_OK)
        return rc;
    if (!req->name || (adopts && (!req->id || !req->token)))
        return dibsx_fail(err, DIBS_INVALID, "%s must have %s",
                          adopts ? "a lease in \"adopt\"" : "the body",
                          adopts ? "\"id\", \"name\" and \"token\""
                                 : "\"name\", the lock's");
    rc = add_member(req, err);
    while (req->meta[metas])
        metas++;
    req->meta[metas] = "via=serve";
    req->opts.meta = req->meta;
    return rc;
}

static dibs_status
read_session_name(const dibsx_json_node *node, void *out, dibs_error *err)
{
    if (!is_text(node, 60))
        return bad(node, "a text of at most 60 bytes", err);
    ((dibs__session_request *)out)->name = node->text;
    return DIBS_OK;
}

static dibs_status
read_session_ttl(const dibsx_json_node *node, void *out, dibs_error *err)
{
    return read_number(node, DIBS__SESSION_TTL_MIN_MS, DIBS__SESSION_TTL_MAX_MS,
                       &((dibs__session_request *)out)->ttl_ms, err);
}

static dibs_status
read_keep(const dibsx_json_node *node, void *out, dibs_error *err)
{
    bool stream =
        node->kind == DIBSX_JSON_TEXT && strcmp(node->text, "stream") == 0;

    if (!stream &&
        (node->kind != DIBSX_JSON_TEXT || strcmp(node->text, "heartbeat") != 0))
        return bad(node, "\"heartbeat\" or \"stream\"", err);
    ((dibs__session_request *)out)->stream = stream;
    return DIBS_OK;
}

/* Whether a lease of the list before this one has its id, too. */
static bool is_repeated(const dibsx_json_node *first, const dibsx_json_node *at,
                        const char *id)
{
    for (; first != at; first = first->next)
        if (strcmp(dibsx_json_get(first, "id")->text, id) == 0)
            return true;
    return false;
}

static dibs_status
read_adopt(const dibsx_json_node *node, void *out, dibs_error *err)
{
    dibs__session_request *req = out;
    dibs__lease_request lease;

    if (node->kind != DIBSX_JSON_LIST)
        return bad(node, "a list of leases", err);
    req->adopt = node->child;
    for (const dibsx_json_node *at = node->child; at; at = at->next) {
        dibs_status rc = dibs__lease_request_read(at, true, &lease, err);

        if (rc != DIBS_OK)
            return rc;
        if (++req->adopt_count > DIBS__SESSION_LEASES_MAX)
            continue;
        if (is_repeated(node->child, at, lease.id))
            return dibsx_fail(err, DIBS_INVALID,
                              "two leases in \"adopt\" have the id %s; each "
                              "needs its own",
                              lease.id);
    }
    return DIBS_OK;
}

dibs_status
dibs__session_request_read(const dibsx_json_node *root,
                           dibs__session_request *req, dibs_error *err)
{
    static const member members[] = {{"name", read_session_name},
                                     {"ttl_ms", read_session_ttl},
                                     {"keep", read_keep},
                                     {"adopt", read_adopt}};

    *req = (dibs__session_request){.name = "", .ttl_ms = 15000};
    return read_map(root, members, sizeof(members) / sizeof(members[0]),
                    "the body", req, err);
}

void dibs__lease_request_text(const dibs__lease_request *req, dibsx_buf *out)
{
    const dibs_lock_opts *opts = &req->opts;

    dibsx_buf_printf(out,
                     "%s\n%d %" PRId64 " %" PRId64 " %u %u %d %" PRId64
                     " %" PRId64 " %s\n",
                     req->name, (int)opts->mode, opts->ttl_ms, opts->wait_ms,
                     opts->permits, opts->capacity, (int)opts->priority,
                     opts->hold_min_ms, opts->hold_max_ms,
                     opts->durability ? opts->durability : "");
    for (size_t i = 0; req->meta[i]; i++)
        dibsx_buf_printf(out, "%s\n", req->meta[i]);
}
