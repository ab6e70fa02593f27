/* breakers.c - the breakers whose calls clients report. See breakers.h.
 *
 * The one that was used least lately makes room for another. */
/* SPDX-License-Identifier: MIT */
#include "serve/breakers.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

void dibs__breakers_init(dibs__serve_breakers *all, dibs_client *cl)
{
    all->cl = cl;
    pthread_mutex_init(&all->mutex, NULL);
    all->made = true;
}

void dibs__breakers_fini(dibs__serve_breakers *all)
{
    if (!all->made)
        return;
    for (size_t i = 0; i < DIBS__BREAKERS_MAX; i++)
        dibs_breaker_free(all->places[i].breaker);
    pthread_mutex_destroy(&all->mutex);
    all->made = false;
}

static bool is_same(const dibs__serve_breaker *at, const char *name,
                    const dibs_breaker_opts *opts)
{
    return at->breaker && strcmp(at->name, name) == 0 &&
           memcmp(&at->opts, opts, sizeof(*opts)) == 0;
}

/* The place to use: its own, a free one, or the one used least lately. Locks: mutex. */
static dibs__serve_breaker *
find_place(dibs__serve_breakers *all, const char *name,
           const dibs_breaker_opts *opts)
{
    dibs__serve_breaker *oldest = NULL;

    for (size_t i = 0; i < DIBS__BREAKERS_MAX; i++) {
        dibs__serve_breaker *at = &all->places[i];

        if (is_same(at, name, opts))
            return at;
        if (at->users == 0 && (!oldest || at->used < oldest->used))
            oldest = at;
    }
    return oldest;
}

dibs_status dibs__breakers_take(dibs__serve_breakers *all, const char *name,
                                const dibs_breaker_opts *opts,
                                dibs__serve_breaker **out, dibs_error *err)
{
    dibs_breaker *old = NULL;
    dibs__serve_breaker *at;
    dibs_status rc = DIBS_OK;

    *out = NULL;
    pthread_mutex_lock(&all->mutex);
    at = find_place(all, name, opts);
    if (!at) {
        rc = dibsx_fail(err, DIBS_FULL,
                        "%d breakers are reported to at once; send the report "
                        "again",
                        DIBS__BREAKERS_MAX);
    } else if (!is_same(at, name, opts)) {
        old = at->breaker;
        at->breaker = NULL;
        at->used = 0;
        rc = dibs_breaker_new(all->cl, name, opts, &at->breaker, err);
        snprintf(at->name, sizeof(at->name), "%s", name);
        memcpy(&at->opts, opts, sizeof(*opts));
    }
    if (rc == DIBS_OK) {
        at->users++;
        at->used = ++all->uses;
        *out = at;
    }
    pthread_mutex_unlock(&all->mutex);
    /* It sends what it has not reported. */
    dibs_breaker_free(old);
    return rc;
}

void dibs__breakers_give(dibs__serve_breakers *all, dibs__serve_breaker *at)
{
    pthread_mutex_lock(&all->mutex);
    at->users--;
    pthread_mutex_unlock(&all->mutex);
}
