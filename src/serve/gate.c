/* gate.c - callers: who they are by their token, and whether they may. Loop
 * thread, unless said otherwise. */
/* SPDX-License-Identifier: MIT */
#include "serve/gate.h"
#include "base/alloc.h"
#include "base/rand.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* So many wrong tokens within so long, then none is looked at until the time is
 * over. Known tokens pass. */
enum { FAILURES_MAX = 10, FAILURES_MS = 60000 };

/* A head of the largest size fits, with a comma for each of its lines. */
enum { FORWARDED_MAX = 32 * 1024 };

_Static_assert(sizeof(dibs__serve_caller) <= DIBS__HTTP_NOTE_MAX,
               "a caller fits into the note of an exchange");
_Static_assert((int)DIBS__SERVE_WHO_MAX <= (int)DIBSX_QUOTA_NAME_SIZE,
               "a caller has a quota of its own");

void dibs__serve_gate_init(dibs__serve_gate *gate)
{
    *gate = (dibs__serve_gate){.tokens = NULL};
    pthread_mutex_init(&gate->mutex, NULL);
}

void dibs__serve_gate_fini(dibs__serve_gate *gate)
{
    dibsx_free(gate->tokens);
    pthread_mutex_destroy(&gate->mutex);
}

void dibs__serve_gate_set(dibs__serve_gate *gate, dibs__serve_tokens *tokens)
{
    pthread_mutex_lock(&gate->mutex);
    dibsx_free(gate->tokens);
    gate->tokens = tokens;
    pthread_mutex_unlock(&gate->mutex);
}

size_t dibs__serve_gate_count(dibs__serve_gate *gate)
{
    size_t count;

    pthread_mutex_lock(&gate->mutex);
    count = gate->tokens ? gate->tokens->count : 0;
    pthread_mutex_unlock(&gate->mutex);
    return count;
}

void dibs__serve_client_of(const dibs__http_exchange *ex,
                           char out[DIBS__HTTP_PEER_MAX])
{
    const dibs__serve *sv = dibs__http_arg(ex);
    char peer[DIBS__HTTP_PEER_MAX];
    dibsx_buf one, other;
    bool has_one, has_other;

    dibs__http_peer(ex, peer);
    memcpy(out, peer, sizeof(peer));
    if (!dibs__serve_nets_have(&sv->proxies, peer))
        return;
    dibsx_buf_init(&one, FORWARDED_MAX);
    dibsx_buf_init(&other, FORWARDED_MAX);
    has_one = dibs__http_header_all(ex, "Forwarded", &one);
    has_other = dibs__http_header_all(ex, "X-Forwarded-For", &other);
    /* A proxy adds its line at the end, which a list that is cut off lacks. */
    if (dibsx_buf_ok(&one) && dibsx_buf_ok(&other))
        dibs__serve_client_address(&sv->proxies, peer,
                                   has_one ? dibsx_buf_text(&one) : NULL,
                                   has_other ? dibsx_buf_text(&other) : NULL,
                                   out, DIBS__HTTP_PEER_MAX);
    dibsx_buf_fini(&one);
    dibsx_buf_fini(&other);
}

const dibs__serve_caller *dibs__serve_caller_of(dibs__http_exchange *ex)
{
    return dibs__http_note(ex);
}

bool dibs__serve_failures_over(const dibs__serve_failures *all,
                               const char *peer, dibsx_nsec now)
{
    for (size_t i = 0; i < DIBS__SERVE_PEERS_MAX; i++) {
        if (all[i].until > now && strcmp(all[i].peer, peer) == 0)
            return all[i].count >= FAILURES_MAX;
    }
    return false;
}

/* The record of the address, or the one that ends first. */
static dibs__serve_failures *
find_failures(dibs__serve_failures *all, const char *peer)
{
    dibs__serve_failures *oldest = all;

    for (size_t i = 0; i < DIBS__SERVE_PEERS_MAX; i++) {
        if (strcmp(all[i].peer, peer) == 0)
            return &all[i];
        if (all[i].until < oldest->until)
            oldest = &all[i];
    }
    return oldest;
}

bool dibs__serve_failures_add(dibs__serve_failures *all, const char *peer,
                              dibsx_nsec now)
{
    dibs__serve_failures *own = find_failures(all, peer);

    if (own->until <= now || strcmp(own->peer, peer) != 0) {
        *own =
            (dibs__serve_failures){.until = dibsx_after_ms(now, FAILURES_MS)};
        snprintf(own->peer, sizeof(own->peer), "%s", peer);
    }
    own->count++;
    return own->count == 1;
}

static bool is_safe(const char *text)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789._-";
    size_t len = text ? strlen(text) : 0;

    return len > 0 && len <= 64 && strspn(text, safe) == len;
}

/* The request's own id, if it can stand in a log; else one that is drawn. */
static void name_request(dibs__http_exchange *ex, dibs__serve_caller *caller)
{
    const char *given = dibs__http_header(ex, "X-Request-Id");
    dibsx_prng *ids = &((dibs__serve *)dibs__http_arg(ex))->gate.request_ids;
    uint64_t id;

    if (is_safe(given)) {
        snprintf(caller->request_id, sizeof(caller->request_id), "%s", given);
        return;
    }
    if (ids->state == 0) /* Without randomness ids repeat after a restart. */
        (void)dibsx_random(&ids->state, sizeof(ids->state));
    id = dibsx_prng_next(ids);
    dibsx_hex(&id, sizeof(id), caller->request_id);
}

/* NULL: there is none. */
static const char *read_bearer(const dibs__http_exchange *ex)
{
    static const char scheme[] = "Bearer ";
    const size_t skip = sizeof(scheme) - 1;
    const char *text = dibs__http_header(ex, "Authorization");

    if (!text || strncasecmp(text, scheme, skip) != 0)
        return NULL;
    text += skip;
    return text + strspn(text, " ");
}

static bool
recognise(dibs__serve_gate *gate, const char *token, dibs__serve_caller *caller)
{
    const dibs__serve_token *item = NULL;

    pthread_mutex_lock(&gate->mutex);
    if (gate->tokens)
        item = dibs__serve_tokens_find(gate->tokens, token, dibsx_wall_us());
    if (item) {
        memcpy(caller->name, item->name, sizeof(caller->name));
        caller->role = item->role;
    }
    pthread_mutex_unlock(&gate->mutex);
    return item != NULL;
}

/* The entry of this name gives its role to somebody who has shown who it is. */
static bool recognise_name(dibs__serve_gate *gate, const char *name,
                           dibs__serve_caller *caller)
{
    const dibs__serve_token *item = NULL;

    pthread_mutex_lock(&gate->mutex);
    if (gate->tokens && *name)
        item = dibs__serve_tokens_named(gate->tokens, name, dibsx_wall_us());
    if (item) {
        memcpy(caller->name, item->name, sizeof(caller->name));
        caller->role = item->role;
    }
    pthread_mutex_unlock(&gate->mutex);
    return item != NULL;
}

/* The kernel says which user is at the other end of a socket in the file system. The
 * user of the daemon and root may do all; the mode of the file let the others in. */
static bool recognise_user(const char *peer, dibs__serve_caller *caller)
{
    static const char scheme[] = "unix:";
    const size_t skip = sizeof(scheme) - 1;
    unsigned long uid;

    if (strncmp(peer, scheme, skip) != 0)
        return false;
    uid = strtoul(peer + skip, NULL, 10);
    snprintf(caller->name, sizeof(caller->name), "uid-%lu", uid);
    caller->role = uid == 0 || uid == (unsigned long)geteuid()
                       ? DIBS__SERVE_ADMIN
                       : DIBS__SERVE_OPERATE;
    return true;
}

/* By the way that the request came, without a token. */
static bool recognise_way(dibs__http_exchange *ex, dibs__serve_caller *caller)
{
    dibs__serve *sv = dibs__http_arg(ex);
    char text[DIBS__SERVE_WHO_MAX];

    switch ((dibs__serve_at)dibs__http_kind(ex)) {
    case DIBS__SERVE_AT_METRICS:
        caller->role = DIBS__SERVE_READ;
        return true;
    case DIBS__SERVE_AT_SOCKET:
        dibs__http_peer(ex, text);
        return recognise_user(text, caller);
    case DIBS__SERVE_AT_PORT:
        break;
    }
    dibs__http_peer_name(ex, text, sizeof(text));
    return recognise_name(&sv->gate, text, caller);
}

bool dibs__serve_gate_still(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *token = read_bearer(ex);
    dibs__serve_caller caller = {.role = DIBS__SERVE_NOBODY};

    return (token ? recognise(&sv->gate, token, &caller)
                  : recognise_way(ex, &caller)) &&
           (int)caller.role >= dibs__http_need(ex);
}

/* Requests of sessions have a limit of their own. */
static bool
look_at_rate(dibs__http_exchange *ex, const dibs__serve_caller *caller)
{
    static const char sessions[] = "/v1/sessions/";
    dibs__serve *sv = dibs__http_arg(ex);
    const char *path = dibs__http_route_path(ex);
    const unsigned rate = atomic_load(&sv->token_rate);

    if (!rate || !caller->name[0] || !path ||
        strncmp(path, sessions, sizeof(sessions) - 1) == 0 ||
        dibsx_quota_take(sv->gate.quotas, caller->name, rate, dibsx_now()))
        return true;
    sv->gate.refused_rates++;
    dibs__http_set(ex, "Retry-After", "1");
    (void)dibs__serve_refuse(ex, 429, "limit",
                             "%s has made more than %u requests a second; wait "
                             "a moment",
                             caller->name, rate);
    return false;
}

/* A listener for metrics has nothing else. */
static bool look_at_listener(dibs__http_exchange *ex)
{
    static const char *const paths[] = {"/metrics", "/livez", "/readyz"};
    const char *path = dibs__http_route_path(ex);

    if (dibs__http_kind(ex) != (int)DIBS__SERVE_AT_METRICS)
        return true;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (path && strcmp(path, paths[i]) == 0)
            return true;
    }
    (void)dibs__serve_refuse(ex, 404, "notfound",
                             "This port has /metrics, /livez and /readyz "
                             "alone");
    return false;
}

static bool refuse_token(dibs__http_exchange *ex, const char *why)
{
    dibs__http_set(ex, "WWW-Authenticate", "Bearer realm=\"dibs\"");
    (void)dibs__serve_refuse(ex, 401, "token",
                             "%s; send the header \"Authorization: Bearer "
                             "TOKEN\" (dibs access add makes a token)",
                             why);
    return false;
}

/* A line of the log, and an entry of the trail if there is room for it. */
static void note_failure(dibs__http_exchange *ex,
                         const dibs__serve_caller *caller, dibsx_nsec now)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *route = dibs__http_route_path(ex);
    dibs__wrong_token item;

    snprintf(item.from, sizeof(item.from), "%s", caller->peer);
    snprintf(item.request, sizeof(item.request), "%s", caller->request_id);
    snprintf(item.route, sizeof(item.route), "%s", route ? route : "none");
    dibs__wrong_tokens_note(&sv->wrong_tokens, &item, now);
    dibs__serve_say(&sv->log, DIBS_LOG_WARN, "token_refused",
                    DIBS__SERVE_FACTS({"route", item.route, 0},
                                      {"from", item.from, 0},
                                      {"request", item.request, 0}),
                    "%s sent a token that is not known", item.from);
}

/* True when the caller may go on, as somebody or as nobody. */
static bool look_at_token(dibs__http_exchange *ex, dibs__serve_caller *caller)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *token = read_bearer(ex);
    dibsx_nsec now = dibsx_now();

    if (!token)
        (void)recognise_way(ex, caller);
    if (!token || recognise(&sv->gate, token, caller))
        return true;
    sv->gate.refused_tokens++;
    if (dibs__serve_failures_over(sv->gate.failures, caller->peer, now)) {
        dibs__http_set(ex, "Retry-After", "60");
        (void)dibs__serve_refuse(ex, 429, "limit",
                                 "This address has sent too many tokens that "
                                 "are not known; try again in a minute");
        return false;
    }
    if (dibs__serve_failures_add(sv->gate.failures, caller->peer, now))
        note_failure(ex, caller, now);
    return refuse_token(ex, "The access token is not known");
}

/* A key that is misspelt would show more than was asked for, or do it otherwise. Pages
 * and probes, which anybody may see, take any query. */
static bool look_at_query(dibs__http_exchange *ex)
{
    const char *stray = dibs__http_stray(ex), *reads = dibs__http_reads(ex);

    if (!stray || dibs__http_need(ex) == DIBS__SERVE_NOBODY)
        return true;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "This request has no ?%.100s=%s%s", stray,
                             *reads ? "; its query may have: " : "", reads);
    return false;
}

bool dibs__serve_gate_pass(dibs__http_exchange *ex)
{
    dibs__serve_caller *caller = dibs__http_note(ex);
    const dibs__serve_role need = (dibs__serve_role)dibs__http_need(ex);

    dibs__serve_client_of(ex, caller->peer);
    name_request(ex, caller);
    /* A query is in the logs of proxies and in the history of browsers. */
    if (dibs__http_query(ex, "token") || dibs__http_query(ex, "access_token")) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "A token does not belong into a query; send "
                                 "the header \"Authorization: Bearer TOKEN\"");
        return false;
    }
    if (!look_at_listener(ex) || !look_at_token(ex, caller) ||
        !look_at_rate(ex, caller))
        return false;
    if (caller->role >= need)
        return look_at_query(ex);
    if (caller->role == DIBS__SERVE_NOBODY)
        return refuse_token(ex, "This needs an access token");
    (void)dibs__serve_refuse(ex, 403, "role",
                             "%s may %s, and this needs the role %s",
                             caller->name, dibs__serve_role_text(caller->role),
                             dibs__serve_role_text(need));
    return false;
}
