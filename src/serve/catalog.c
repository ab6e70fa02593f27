/* catalog.c - lists of things that are no locks, each listed once a second. See
 * catalog.h.
 *
 * Owns its thread, the latest pages and the names that requests named. */
/* SPDX-License-Identifier: MIT */
#include "serve/catalog.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without a question for so long, a kind rests. */
enum { REST_MS = 10000 };

void dibs__catalog_drop(dibs__catalog_page *page)
{
    if (!page || atomic_fetch_sub(&page->users, 1) != 1)
        return;
    for (size_t i = 0; i < page->count; i++)
        dibsx_free(page->rows[i].json);
    dibsx_free(page->rows);
    dibsx_free(page);
}

bool dibs__catalog_add(dibs__catalog_page *page, const char *name,
                       const char *state, const dibsx_buf *pairs)
{
    dibs__catalog_row *row;
    size_t room = page->room ? 2 * page->room : 32;

    if (page->count == DIBS__CATALOG_ROWS_MAX || !dibsx_buf_ok(pairs)) {
        page->complete = false;
        return false;
    }
    if (page->count == page->room) {
        row = dibsx_realloc_n(page->rows, room, sizeof(*row));
        if (!row) {
            page->complete = false;
            return false;
        }
        page->rows = row;
        page->room = room;
    }
    row = &page->rows[page->count];
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->state, sizeof(row->state), "%s", state);
    row->json = dibsx_strdup(dibsx_buf_text(pairs));
    page->complete = page->complete && row->json;
    page->count += row->json != NULL;
    return row->json != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const dibs__catalog_row *)a)->name,
                  ((const dibs__catalog_row *)b)->name);
}

static dibs__catalog_page *
make_page(dibs__serve_catalog *ca, dibs__catalog_kind kind)
{
    dibs__catalog_page *page = dibsx_zalloc(sizeof(*page));

    if (!page)
        return NULL;
    atomic_init(&page->users, 1);
    page->complete = true;
    page->seen_at = dibsx_now();
    page->rc = dibs__catalog_lists[kind](ca, page, &page->err);
    page->took_us = (dibsx_now() - page->seen_at) / 1000;
    if (page->count > 1)
        qsort(page->rows, page->count, sizeof(page->rows[0]), by_name);
    return page;
}

/* Locks: life.mutex. The next kind that is due and wanted, or -1 with the moment to look
 * again. */
static int
next_kind(const dibs__serve_catalog *ca, dibsx_nsec now, dibsx_nsec *again_at)
{
    *again_at = DIBSX_NEVER;
    for (int i = 0; i < DIBS__CATALOG_KINDS; i++) {
        if (!ca->kinds[i].wanted ||
            now >= dibsx_after_ms(ca->kinds[i].wanted_at, REST_MS))
            continue;
        if (now >= ca->kinds[i].due_at)
            return i;
        if (ca->kinds[i].due_at < *again_at)
            *again_at = ca->kinds[i].due_at;
    }
    return -1;
}

/* Locks: life.mutex, let go meanwhile. */
static void list_kind(dibs__serve_catalog *ca, int kind)
{
    dibs__catalog_page *page, *before;

    pthread_mutex_unlock(&ca->life.mutex);
    page = make_page(ca, (dibs__catalog_kind)kind);
    pthread_mutex_lock(&ca->life.mutex);
    before = ca->kinds[kind].latest;
    ca->kinds[kind].due_at =
        dibsx_after_ms(page ? page->seen_at : dibsx_now(),
                       dibs__life_pause_ms(ca->every_ms,
                                           page ? page->rc : DIBS_NOMEM,
                                           page ? page->took_us : 0));
    if (page)
        ca->kinds[kind].latest = page;
    pthread_cond_broadcast(&ca->life.cond);
    pthread_mutex_unlock(&ca->life.mutex);
    if (page)
        dibs__catalog_drop(before);
    ca->wake(ca->wake_arg);
    pthread_mutex_lock(&ca->life.mutex);
}

static void *catalog_main(void *arg)
{
    dibs__serve_catalog *ca = arg;
    dibsx_nsec again_at;

    pthread_mutex_lock(&ca->life.mutex);
    while (!ca->life.stop) {
        const int kind = next_kind(ca, dibsx_now(), &again_at);

        if (kind >= 0)
            list_kind(ca, kind);
        else
            dibsx_cond_wait(&ca->life.cond, &ca->life.mutex, again_at);
    }
    pthread_mutex_unlock(&ca->life.mutex);
    return NULL;
}

dibs_status
dibs__catalog_init(dibs__serve_catalog *ca, dibs_client *cl, int64_t every_ms,
                   dibs__catalog_wake_fn *wake, void *wake_arg, dibs_error *err)
{
    *ca = (dibs__serve_catalog){.cl = cl,
                                .every_ms = every_ms,
                                .wake = wake,
                                .wake_arg = wake_arg};
    dibs_status rc = dibs__life_init(&ca->life, "the catalogs", err);

    if (rc == DIBS_OK)
        rc = dibs__life_start(&ca->life, catalog_main, ca,
                              "the thread of the catalogs", err);
    return rc;
}

void dibs__catalog_fini(dibs__serve_catalog *ca)
{
    dibs__life_stop(&ca->life);
    for (int i = 0; i < DIBS__CATALOG_KINDS; i++) {
        dibs__catalog_drop(ca->kinds[i].latest);
        dibsx_free(ca->kinds[i].known);
        ca->kinds[i].latest = NULL;
        ca->kinds[i].known = NULL;
    }
    dibs__life_fini(&ca->life);
}

/* Locks: life.mutex. */
static bool
is_fresh(const dibs__serve_catalog *ca, dibs__catalog_kind kind, dibsx_nsec now)
{
    const dibs__catalog_page *page = ca->kinds[kind].latest;

    return page && dibs__life_fresh(ca->every_ms, page->rc, page->took_us,
                                    page->seen_at, now);
}

dibs__catalog_page *dibs__catalog_take(dibs__serve_catalog *ca,
                                       dibs__catalog_kind kind, int64_t wait_ms)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    dibs__catalog_page *page;
    dibsx_nsec now;

    pthread_mutex_lock(&ca->life.mutex);
    ca->kinds[kind].wanted_at = now = dibsx_now();
    ca->kinds[kind].wanted = true;
    pthread_cond_broadcast(&ca->life.cond);
    while (!is_fresh(ca, kind, now) && now < until && !ca->life.stop) {
        dibsx_cond_wait(&ca->life.cond, &ca->life.mutex, until);
        now = dibsx_now();
    }
    page = ca->kinds[kind].latest;
    if (page)
        atomic_fetch_add(&page->users, 1);
    pthread_mutex_unlock(&ca->life.mutex);
    return page;
}

/* Locks: life.mutex. False: it is known already, or memory is short. */
static bool
keep_name(dibs__serve_catalog *ca, dibs__catalog_kind kind, const char *name)
{
    char(*known)[DIBS_NAME_MAX + 1] = ca->kinds[kind].known;
    size_t at;

    if (!known)
        known = ca->kinds[kind].known =
            dibsx_zalloc_n(DIBS__CATALOG_KNOWN_MAX, sizeof(*known));
    if (!known)
        return false;
    for (size_t i = 0; i < ca->kinds[kind].known_count; i++)
        if (strcmp(known[i], name) == 0)
            return false;
    at = ca->kinds[kind].known_next++ % DIBS__CATALOG_KNOWN_MAX;
    snprintf(known[at], sizeof(known[at]), "%s", name);
    if (ca->kinds[kind].known_count < DIBS__CATALOG_KNOWN_MAX)
        ca->kinds[kind].known_count++;
    return true;
}

void dibs__catalog_learn(dibs__serve_catalog *ca, dibs__catalog_kind kind,
                         const char *name)
{
    if (strlen(name) > DIBS_NAME_MAX)
        return;
    pthread_mutex_lock(&ca->life.mutex);
    if (keep_name(ca, kind, name))
        ca->kinds[kind].due_at = 0;
    pthread_mutex_unlock(&ca->life.mutex);
}

void dibs__catalog_known(dibs__serve_catalog *ca, dibs__catalog_kind kind,
                         dibs__catalog_name_fn *each, void *arg)
{
    char name[DIBS_NAME_MAX + 1];
    bool on = true;

    for (size_t i = 0; on; i++) {
        pthread_mutex_lock(&ca->life.mutex);
        on = i < ca->kinds[kind].known_count;
        if (on)
            memcpy(name, ca->kinds[kind].known[i], sizeof(name));
        pthread_mutex_unlock(&ca->life.mutex);
        on = on && each(name, arg);
    }
}
