/* nested.c - the environment of the command, and locks held further up its tree.
 *
 * An entry of the chain is NAME:OWNER:FENCE with the name percent-encoded; a
 * comma lies between two. */
/* SPDX-License-Identifier: MIT */
#include "cli/nested.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHAIN "DIBS_LOCK_CHAIN"

/* The innermost of very many locks is refused rather than forgotten. */
enum { CHAIN_MAX = 64 * 1024, OWN_VARS = 5 };

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

typedef struct search {
    dibs__held *held;
    bool found;
} search;

static bool match(const dibs_lease_info *info, void *arg)
{
    search *find = arg;
    for (size_t i = 0; i < info->holder_count; i++) {
        const dibs_party *party = &info->holders[i];
        if (party->left || party->fence != find->held->fence ||
            strcmp(party->owner, find->held->owner) != 0)
            continue;
        find->held->ttl_ms = party->ttl_ms;
        find->found = true;
    }
    return false;
}

dibs_status dibs__nested_find(dibs_client *cl, const char *chain,
                              dibs__held *held, bool *found, dibs_error *err)
{
    dibsx_buf coded;
    search find = {.held = held};
    dibs_status rc = DIBS_OK;
    *found = false;
    dibsx_buf_init(&coded, 3 * DIBS_NAME_MAX);
    encode(&coded, held->name);
    const char *entry = NULL;
    if (dibsx_buf_ok(&coded))
        entry = find_entry(chain, dibsx_buf_text(&coded));
    if (entry && read_entry(entry, held)) {
        rc = dibs_lease_show(cl, held->name, match, &find, err);
        if (rc == DIBS_NOTFOUND)
            rc = DIBS_OK;
        *found = find.found;
    }
    dibsx_buf_fini(&coded);
    return rc;
}

static char *text_var(const char *name, const char *text)
{
    char var[DIBS_NAME_MAX + 32];
    int len = snprintf(var, sizeof var, "%s=%s", name, text);
    return len > 0 && (size_t)len < sizeof var ? dibsx_strdup(var) : NULL;
}

static char *number_var(const char *name, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return text_var(name, text);
}

static char *chain_var(const dibs__held *held, bool joins)
{
    const char *outer = getenv(CHAIN);
    dibsx_buf buf;
    dibsx_buf_init(&buf, CHAIN_MAX);
    dibsx_buf_puts(&buf, CHAIN "=");
    if (joins) {
        /* The newest first: an older entry of the same name was lost. */
        encode(&buf, held->name);
        dibsx_buf_printf(&buf, ":%s:%" PRIu64, held->owner, held->fence);
        if (outer && *outer)
            dibsx_buf_putc(&buf, ',');
    }
    dibsx_buf_puts(&buf, outer ? outer : "");
    char *var = dibsx_buf_take(&buf);
    dibsx_buf_fini(&buf);
    return var;
}

static bool is_own(const char *var)
{
    return strncmp(var, "DIBS_LOCK_", 10) == 0;
}

/* Our own come first, so that they alone are freed. */
dibs_status dibs__childenv_make(const dibs__held *held, bool joins, char ***out,
                                dibs_error *err)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    *out = NULL;
    char **envp = dibsx_zalloc_n(count + OWN_VARS + 1, sizeof *envp);
    if (!envp)
        return dibsx_fail(err, DIBS_NOMEM, "out of memory");
    envp[0] = text_var("DIBS_LOCK_NAME", held->name);
    envp[1] = number_var("DIBS_LOCK_TOKEN", held->fence);
    envp[2] = text_var("DIBS_LOCK_OWNER", held->owner);
    envp[3] = number_var("DIBS_LOCK_TTL_MS", (uint64_t)held->ttl_ms);
    envp[4] = chain_var(held, joins);
    for (size_t i = 0; i < OWN_VARS; i++)
        if (!envp[i]) {
            dibs__childenv_free(envp);
            return dibsx_fail(err, DIBS_NOMEM,
                              "too many locks are held around this one, or "
                              "memory is short");
        }
    size_t used = OWN_VARS;
    for (size_t i = 0; i < count; i++)
        if (!is_own(environ[i]))
            envp[used++] = environ[i];
    *out = envp;
    return DIBS_OK;
}

void dibs__childenv_free(char **envp)
{
    if (!envp)
        return;
    for (size_t i = 0; i < OWN_VARS; i++)
        dibsx_free(envp[i]);
    dibsx_free(envp);
}
