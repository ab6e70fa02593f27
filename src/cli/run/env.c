/* env.c - the environment of the command, and locks held further up its tree.
 *
 * An entry of the chain is NAME:OWNER:FENCE with the name percent-encoded; a
 * comma lies between two. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/env.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHAIN    "DIBS_LOCK_CHAIN"
#define PROGRESS "DIBS_PROGRESS_FD"

/* The innermost of very many locks is refused rather than forgotten. */
enum { CHAIN_MAX = 64 * 1024 };

/* Variables of our own: those of the first lock, the chain, the count, progress,
 * and three for each lock of several. */
enum { OWN_MAX = 8 + 3 * DIBS_MULTI_MAX };

static void encode(dibsx_buf *out, const char *name)
{
    for (const char *p = name; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c < 0x80 && isalnum(c)) || strchr("-_.~", c))
            dibsx_buf_putc(out, (char)c);
        else
            dibsx_buf_printf(out, "%%%02X", c);
    }
}

/* The entry that begins with `coded` and a colon, or NULL. */
static const char *find_entry(const char *chain, const char *coded)
{
    size_t len = strlen(coded);
    for (const char *at = chain; at && *at;) {
        if (strncmp(at, coded, len) == 0 && at[len] == ':')
            return at + len + 1;
        at = strchr(at, ',');
        if (at)
            at++;
    }
    return NULL;
}

static bool read_entry(const char *entry, dibs__held *held)
{
    size_t len = strspn(entry, "0123456789abcdef");
    if (len != DIBS_OWNER_SIZE - 1 || entry[len] != ':')
        return false;
    memcpy(held->owner, entry, len);
    held->owner[len] = '\0';
    char *end = NULL;
    held->fence = strtoull(entry + len + 1, &end, 10);
    return held->fence > 0 && (*end == '\0' || *end == ',');
}

/* Enough of an owner to tell it from others. */
enum { WITHIN_DIGITS = 16 };

void dibs__run_env_within(const char *chain, char *out, size_t size)
{
    size_t used = 0;
    const char *at = chain;
    if (size > 0)
        out[0] = '\0';
    while (at && *at) {
        size_t name = strcspn(at, ":,");
        const char *owner = at + name + (at[name] == ':');
        size_t room = used + 1 + WITHIN_DIGITS + (used ? 1 : 7);
        if (strspn(owner, "0123456789abcdef") == DIBS_OWNER_SIZE - 1) {
            if (room > size)
                return;
            used +=
                (size_t)snprintf(out + used, size - used, "%s%.*s",
                                 used ? "," : "within=", WITHIN_DIGITS, owner);
        }
        at = strchr(at, ',');
        if (at)
            at++;
    }
}

typedef struct search {
    const dibs_lock_opts *asked;
    dibs__held *held;
    bool blocks; /* what is held above is in the way of what is asked */
} search;

static bool is_mode(const dibs_party *party, const char *mode)
{
    return strcmp(party->mode, mode) == 0;
}

/* Another kind, or another capacity, is for the store to refuse. */
static void weigh(search *find, const dibs_party *party, uint32_t capacity)
{
    const dibs_lock_opts *asked = find->asked;
    bool permits = asked->mode == DIBS_PERMITS;
    if (is_mode(party, "exclusive")) {
        find->held->above = !permits;
    } else if (is_mode(party, "shared")) {
        find->held->above = asked->mode == DIBS_SHARED;
        find->blocks = asked->mode == DIBS_EXCLUSIVE;
    } else if (permits && asked->capacity == capacity) {
        find->held->above = asked->permits <= party->permits;
        find->blocks =
            !find->held->above && asked->permits > capacity - party->permits;
    }
    find->held->ttl_ms = party->ttl_ms;
}

static bool match(const dibs_lease_info *info, void *arg)
{
    search *find = arg;
    for (size_t i = 0; i < info->holder_count; i++) {
        const dibs_party *party = &info->holders[i];
        if (!party->left && party->fence == find->held->fence &&
            strcmp(party->owner, find->held->owner) == 0)
            weigh(find, party, info->capacity);
    }
    return false;
}

dibs_status dibs__run_env_find_held(dibs_client *cl, const char *chain,
                                    const dibs_lock_opts *asked,
                                    dibs__held *held, dibs_error *err)
{
    dibsx_buf coded;
    search find = {.asked = asked, .held = held};
    dibs_status rc = DIBS_OK;
    held->above = false;
    dibsx_buf_init(&coded, 3 * DIBS_NAME_MAX);
    encode(&coded, held->name);
    const char *entry = NULL;
    if (dibsx_buf_ok(&coded))
        entry = find_entry(chain, dibsx_buf_text(&coded));
    if (entry && read_entry(entry, held)) {
        rc = dibs_lease_show(cl, held->name, match, &find, err);
        if (rc == DIBS_NOTFOUND)
            rc = DIBS_OK;
    }
    dibsx_buf_fini(&coded);
    if (rc == DIBS_OK && find.blocks)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "%s is held by the dibs run around this one, in a way "
                        "that leaves too little for what is asked here: that "
                        "wait would never end",
                        held->name);
    return rc;
}

/* Adds a variable of our own; false when it did not fit or memory is short. */
static bool put_var(dibs__run_env *env, char *var)
{
    if (!var)
        return false;
    env->vars[env->own++] = var;
    return true;
}

static bool put_text(dibs__run_env *env, const char *name, const char *text)
{
    char var[DIBS_NAME_MAX + 32];
    int len = snprintf(var, sizeof var, "%s=%s", name, text);
    return len > 0 && (size_t)len < sizeof var &&
           put_var(env, dibsx_strdup(var));
}

static bool put_number(dibs__run_env *env, const char *name, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return put_text(env, name, text);
}

static bool put_chain(dibs__run_env *env, const dibs__held *held, size_t count)
{
    const char *outer = getenv(CHAIN), *comma = "";
    dibsx_buf buf;
    dibsx_buf_init(&buf, CHAIN_MAX);
    dibsx_buf_puts(&buf, CHAIN "=");
    /* The newest first: an older entry of the same name was lost. */
    for (size_t i = 0; i < count; i++) {
        if (held[i].above)
            continue;
        dibsx_buf_puts(&buf, comma);
        encode(&buf, held[i].name);
        dibsx_buf_printf(&buf, ":%s:%" PRIu64, held[i].owner, held[i].fence);
        comma = ",";
    }
    if (outer && *outer)
        dibsx_buf_printf(&buf, "%s%s", comma, outer);
    char *var = dibsx_buf_take(&buf);
    dibsx_buf_fini(&buf);
    return put_var(env, var);
}

/* DIBS_LOCK_NAME_1, DIBS_LOCK_FENCE_1 and so on. */
static bool put_all(dibs__run_env *env, const dibs__held *held, size_t count)
{
    char name[40];
    bool done = put_number(env, "DIBS_LOCK_COUNT", count);
    for (size_t i = 0; i < count && done; i++) {
        (void)snprintf(name, sizeof name, "DIBS_LOCK_NAME_%zu", i + 1);
        done = put_text(env, name, held[i].name);
        (void)snprintf(name, sizeof name, "DIBS_LOCK_FENCE_%zu", i + 1);
        done = done && put_number(env, name, held[i].fence);
        (void)snprintf(name, sizeof name, "DIBS_LOCK_TOKEN_%zu", i + 1);
        done = done && put_number(env, name, held[i].fence);
    }
    return done;
}

static bool put_own(dibs__run_env *env, const dibs__held *held, size_t count,
                    int progress_fd)
{
    return (count == 0 ||
            (put_text(env, "DIBS_LOCK_NAME", held->name) &&
             put_number(env, "DIBS_LOCK_FENCE", held->fence) &&
             put_number(env, "DIBS_LOCK_TOKEN", held->fence) &&
             put_text(env, "DIBS_LOCK_OWNER", held->owner) &&
             put_number(env, "DIBS_LOCK_TTL_MS", (uint64_t)held->ttl_ms) &&
             put_chain(env, held, count))) &&
           (count < 2 || put_all(env, held, count)) &&
           (progress_fd < 0 ||
            put_number(env, PROGRESS, (uint64_t)progress_fd));
}

/* If a variable occurs twice, a program finds the first, but a shell the last: the
 * replaced one must go. An outer run's progress is still heard by it. Without a
 * lock of its own, the command keeps the variables of an outer one. */
static bool replaced(const char *var, size_t count, int progress_fd)
{
    return (count > 0 && strncmp(var, "DIBS_LOCK_", 10) == 0) ||
           (progress_fd >= 0 && strncmp(var, PROGRESS "=", 17) == 0);
}

/* Our own come first, so that they alone are freed. */
dibs_status dibs__run_env_init(dibs__run_env *env, const dibs__held *held,
                               size_t count, int progress_fd, dibs_error *err)
{
    size_t others = 0;
    while (environ && environ[others])
        others++;
    *env = (dibs__run_env){
        .vars = dibsx_zalloc_n(others + OWN_MAX + 1, sizeof *env->vars)};
    if (!env->vars || !put_own(env, held, count, progress_fd)) {
        dibs__run_env_fini(env);
        return dibsx_fail(err, DIBS_NOMEM,
                          "too many locks are held around this one, or "
                          "memory is short");
    }
    size_t used = env->own;
    for (size_t i = 0; i < others; i++)
        if (!replaced(environ[i], count, progress_fd))
            env->vars[used++] = environ[i];
    return DIBS_OK;
}

void dibs__run_env_fini(dibs__run_env *env)
{
    for (size_t i = 0; i < env->own; i++)
        dibsx_free(env->vars[i]);
    dibsx_free(env->vars);
    *env = (dibs__run_env){.vars = NULL};
}
