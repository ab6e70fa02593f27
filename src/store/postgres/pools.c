/* pools.c - the pools of a process: clients of the same server share one.
 *
 * Owns the list of pools, in a page that the kernel clears in the child of a fork:
 * the list is empty there and its lock is free, even if a thread of the parent had it. Where
 * there is no such page every client has a pool of its own. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/pools.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/fork_page.h"
#include "base/sha1.h"
#include <string.h>
#include <unistd.h>

enum { SURROUNDINGS_MAX = 256 << 10 };

typedef struct shared {
    dibs__pg_pool pool; /* the first, so that a pool is what it is in */
    dibs__pg_conf conf;
    char surroundings[DIBSX_SHA1_TEXT]; /* "" is shared with nobody */
    int users;                          /* guarded by the list's lock */
    struct shared *next;                /* likewise */
} shared;

typedef struct list {
    pthread_mutex_t mutex; /* all zeros is a free one */
    shared *first;
} list;

static list *all; /* or NULL */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void map_list(void)
{
    all = dibsx_fork_page_map(sizeof(*all));
}

/* The variables that libpq reads, as a digest: passwords are among them. */
static void read_surroundings(char out[DIBSX_SHA1_TEXT])
{
    dibsx_buf buf;

    out[0] = '\0';
    dibsx_buf_init(&buf, SURROUNDINGS_MAX);
    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, "PG", 2) == 0) {
            dibsx_buf_puts(&buf, *at);
            dibsx_buf_putc(&buf, '\n');
        }
    if (dibsx_buf_ok(&buf))
        dibsx_sha1(dibsx_buf_text(&buf), strlen(dibsx_buf_text(&buf)), out);
    dibsx_buf_fini(&buf);
}

static bool same_words(const dibs__pg_words *a, const dibs__pg_words *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->names[i], b->names[i]) == 0 &&
               strcmp(a->values[i], b->values[i]) == 0;
    return same;
}

static bool
is_for(const shared *sh, const dibs__pg_conf *conf, const char *surroundings)
{
    return sh->conf.pooler == conf->pooler &&
           sh->conf.cleartext == conf->cleartext &&
           sh->conf.advisory == conf->advisory &&
           sh->conf.strict == conf->strict &&
           strcmp(sh->conf.schema, conf->schema) == 0 &&
           strcmp(sh->surroundings, surroundings) == 0 &&
           same_words(&sh->conf.steps, &conf->steps);
}

/* One that is shared already; or NULL. Locks: all->mutex. */
static shared *find_shared(const dibs__pg_conf *conf, const char *surroundings)
{
    shared *sh = all->first;

    while (sh && !is_for(sh, conf, surroundings))
        sh = sh->next;
    if (sh) {
        sh->users++;
        dibs__pg_pool_widen(&sh->pool, conf->pool);
    }
    return sh;
}

static void shared_free(shared *sh)
{
    dibs__pg_pool_fini(&sh->pool);
    dibs__pg_conf_fini(&sh->conf);
    dibsx_free(sh);
}

/* Free it with shared_free(). */
static dibs_status
shared_new(const dibsx_url *url, shared **out, dibs_error *err)
{
    shared *sh = dibsx_zalloc(sizeof(*sh));
    dibs_status rc;

    *out = NULL;
    if (!sh)
        return dibsx_nomem(err, "a pool of connections");
    sh->users = 1;
    rc = dibs__pg_conf_read(url, &sh->conf, err);
    dibs__pg_pool_init(&sh->pool, &sh->conf, sh->conf.pool, NULL);
    if (rc == DIBS_OK)
        *out = sh;
    else
        shared_free(sh);
    return rc;
}

dibs_status dibs__pg_pools_join(const dibsx_url *url, const dibs__pg_conf *conf,
                                dibs__pg_pool **out, dibs_error *err)
{
    char surroundings[DIBSX_SHA1_TEXT];
    shared *sh = NULL;
    dibs_status rc = DIBS_OK;
    bool alone;

    *out = NULL;
    read_surroundings(surroundings);
    alone = pthread_once(&once, map_list) != 0 || !all || !*surroundings;
    if (!alone) {
        pthread_mutex_lock(&all->mutex);
        sh = find_shared(conf, surroundings);
    }
    if (!sh)
        rc = shared_new(url, &sh, err);
    if (sh && !alone && !*sh->surroundings) {
        memcpy(sh->surroundings, surroundings, sizeof(surroundings));
        sh->next = all->first;
        all->first = sh;
    }
    if (!alone)
        pthread_mutex_unlock(&all->mutex);
    if (sh)
        *out = &sh->pool;
    return rc;
}

void dibs__pg_pools_leave(dibs__pg_pool *pool)
{
    shared *sh = (shared *)pool;
    bool last = true;

    if (!sh)
        return;
    if (*sh->surroundings) {
        shared **at;

        pthread_mutex_lock(&all->mutex);
        last = --sh->users == 0;
        for (at = &all->first; last && *at; at = &(*at)->next)
            if (*at == sh) {
                *at = sh->next;
                break;
            }
        pthread_mutex_unlock(&all->mutex);
    }
    if (last)
        shared_free(sh);
}
