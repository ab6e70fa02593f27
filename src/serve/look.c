/* look.c - the look: all locks of the store, once a second, for all who ask.
 *
 * Owns its thread and the latest picture. */
/* SPDX-License-Identifier: MIT */
#include "serve/look.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "serve/row.h"
#include <stdlib.h>
#include <string.h>

/* Without a question for so long, the look rests, but for one scan in so long, which
 * the charts have. */
enum { REST_MS = 10000, REST_EVERY_MS = 60000 };

void dibs__serve_picture_drop(dibs__serve_picture *picture)
{
    if (!picture || atomic_fetch_sub(&picture->users, 1) != 1)
        return;
    for (size_t i = 0; i < picture->count; i++)
        dibsx_free(picture->rows[i]);
    dibsx_free(picture->rows);
    dibsx_free(picture);
}

/* A picture while it is being made. */
typedef struct scan {
    dibs__serve_picture *picture;
    size_t room;
    bool no_memory;
} scan;

static bool grow(scan *sc)
{
    size_t room = sc->room ? 2 * sc->room : 64;
    void *rows =
        dibsx_realloc_n(sc->picture->rows, room, sizeof(dibs_lease_info *));

    if (!rows)
        return false;
    sc->picture->rows = rows;
    sc->room = room;
    return true;
}

static bool add_row(const dibs_lease_info *info, void *arg)
{
    scan *sc = arg;
    dibs__serve_picture *picture = sc->picture;

    if (picture->count == DIBS__SERVE_NAMES_MAX) {
        picture->complete = false;
        return false;
    }
    if (picture->count == sc->room && !grow(sc)) {
        sc->no_memory = true;
        return false;
    }
    picture->rows[picture->count] = dibs__serve_row_copy(info);
    sc->no_memory = !picture->rows[picture->count];
    picture->count += !sc->no_memory;
    return !sc->no_memory;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(dibs_lease_info *const *)a)->name,
                  (*(dibs_lease_info *const *)b)->name);
}

/* The rows of before, when the store did not answer. */
static void repeat_rows(scan *sc, const dibs__serve_picture *before)
{
    for (size_t i = 0; before && i < before->count && !sc->no_memory; i++)
        (void)add_row(before->rows[i], sc);
    sc->picture->complete = !before || (before->complete && !sc->no_memory);
    if (before)
        sc->picture->seen_at = before->seen_at;
}

static dibs__serve_picture *
make_picture(dibs__serve_look *look, const dibs__serve_picture *before)
{
    dibs__serve_picture *picture = dibsx_zalloc(sizeof(*picture));
    scan sc = {.picture = picture};

    if (!picture)
        return NULL;
    atomic_init(&picture->users, 1);
    picture->number = before ? before->number + 1 : 1;
    picture->complete = true;
    picture->seen_at = dibsx_now();
    picture->rc = dibs_lease_list(look->cl, NULL, add_row, &sc, &picture->err);
    picture->took_us = (dibsx_now() - picture->seen_at) / 1000;
    if (sc.no_memory)
        picture->rc = dibsx_nomem(&picture->err, "the list of locks");
    if (picture->rc != DIBS_OK) {
        for (size_t i = 0; i < picture->count; i++)
            dibsx_free(picture->rows[i]);
        picture->count = 0;
        repeat_rows(&sc, before);
    }
    if (picture->count > 1)
        qsort(picture->rows, picture->count, sizeof(dibs_lease_info *),
              by_name);
    return picture;
}

/* Locks: look->life.mutex. */
static bool is_wanted(const dibs__serve_look *look, dibsx_nsec now)
{
    return look->always || !look->answered ||
           now < dibsx_after_ms(look->wanted_at, REST_MS);
}

/* Locks: look->life.mutex. Until the next scan is due, and wanted. A question for a sign
 * of life wakes it too. */
static void await_turn(dibs__serve_look *look, dibsx_nsec due_at)
{
    const dibsx_nsec rest_until = dibsx_after_ms(due_at, REST_EVERY_MS);

    while (!look->life.stop) {
        const dibsx_nsec now = dibsx_now();

        dibsx_lag_answer(&look->lag);
        if (now >= rest_until || (now >= due_at && is_wanted(look, now)))
            return;
        dibsx_cond_wait(&look->life.cond, &look->life.mutex,
                        now < due_at ? due_at : rest_until);
    }
}

/* Listeners hear of it when others can take it. */
static void publish_picture(dibs__serve_look *look, dibs__serve_picture *before,
                            dibs__serve_picture *now)
{
    pthread_mutex_lock(&look->life.mutex);
    look->away = false;
    look->latest = now;
    look->answered |= now->rc == DIBS_OK;
    pthread_cond_broadcast(&look->life.cond);
    pthread_mutex_unlock(&look->life.mutex);
    for (size_t i = 0; i < look->listener_count; i++)
        look->listeners[i].seen(look->listeners[i].arg, before, now);
    dibs__serve_picture_drop(before);
}

static void *look_main(void *arg)
{
    dibs__serve_look *look = arg;
    dibsx_nsec due_at = 0;

    pthread_mutex_lock(&look->life.mutex);
    look->away = false;
    for (await_turn(look, due_at); !look->life.stop; await_turn(look, due_at)) {
        const dibsx_nsec began_at = dibsx_now();
        dibs__serve_picture *before = look->latest, *now;

        look->away = true;
        dibsx_lag_answer(&look->lag);
        pthread_mutex_unlock(&look->life.mutex);
        now = make_picture(look, before);
        due_at = dibsx_after_ms(began_at,
                                dibs__life_pause_ms(look->every_ms,
                                                    now ? now->rc : DIBS_NOMEM,
                                                    now ? now->took_us : 0));
        if (now)
            publish_picture(look, before, now);
        pthread_mutex_lock(&look->life.mutex);
        look->away = false;
    }
    look->away = true;
    pthread_mutex_unlock(&look->life.mutex);
    return NULL;
}

void dibs__serve_look_listen(dibs__serve_look *look, dibs__serve_seen_fn *seen,
                             void *arg)
{
    if (look->listener_count == DIBS__SERVE_LISTENERS_MAX)
        return;
    look->listeners[look->listener_count].seen = seen;
    look->listeners[look->listener_count++].arg = arg;
}

dibs_status dibs__serve_look_init(dibs__serve_look *look, dibs_client *cl,
                                  int64_t every_ms, dibs_error *err)
{
    look->cl = cl;
    look->every_ms = every_ms;
    look->away = true;
    return dibs__life_init(&look->life, "the look at the store", err);
}

void dibs__serve_look_fini(dibs__serve_look *look)
{
    dibs__serve_picture_drop(look->latest);
    look->latest = NULL;
    dibs__life_fini(&look->life);
}

dibs_status dibs__serve_look_start(dibs__serve_look *look, dibs_error *err)
{
    return dibs__life_start(&look->life, look_main, look,
                            "the thread that looks at the store", err);
}

void dibs__serve_look_stop(dibs__serve_look *look)
{
    dibs__life_stop(&look->life);
}

dibsx_nsec dibs__serve_look_lag(dibs__serve_look *look, dibsx_nsec now)
{
    dibsx_nsec lag = 0;

    pthread_mutex_lock(&look->life.mutex);
    if (!look->away) {
        lag = dibsx_lag_ask(&look->lag, now);
        pthread_cond_broadcast(&look->life.cond);
    }
    pthread_mutex_unlock(&look->life.mutex);
    return lag;
}

void dibs__serve_look_always(dibs__serve_look *look, bool always)
{
    pthread_mutex_lock(&look->life.mutex);
    look->always = always;
    pthread_cond_broadcast(&look->life.cond);
    pthread_mutex_unlock(&look->life.mutex);
}

/* Locks: look->life.mutex. */
static bool is_fresh(const dibs__serve_look *look, dibsx_nsec now)
{
    const dibs__serve_picture *latest = look->latest;

    return latest && dibs__life_fresh(look->every_ms, latest->rc,
                                      latest->took_us, latest->seen_at, now);
}

dibs__serve_picture *
dibs__serve_look_take(dibs__serve_look *look, int64_t wait_ms)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), wait_ms);
    dibs__serve_picture *picture;
    dibsx_nsec now;

    pthread_mutex_lock(&look->life.mutex);
    look->wanted_at = now = dibsx_now();
    pthread_cond_broadcast(&look->life.cond);
    while (!is_fresh(look, now) && now < until && !look->life.stop &&
           !(look->latest && look->latest->rc != DIBS_OK)) {
        dibsx_cond_wait(&look->life.cond, &look->life.mutex, until);
        now = dibsx_now();
    }
    picture = look->latest;
    if (picture)
        atomic_fetch_add(&picture->users, 1);
    pthread_mutex_unlock(&look->life.mutex);
    return picture;
}

const dibs_lease_info *
dibs__serve_picture_find(const dibs__serve_picture *picture, const char *name)
{
    size_t low = 0, high = picture->count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(picture->rows[mid]->name, name);

        if (order == 0)
            return picture->rows[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool dibs__serve_picture_covers(const dibs__serve_picture *picture,
                                const char *name)
{
    return picture->complete ||
           (picture->count > 0 &&
            strcmp(name, picture->rows[picture->count - 1]->name) <= 0);
}

bool dibs__serve_picture_tells(const dibs__serve_picture *picture,
                               const char *name, dibsx_nsec since,
                               const dibs_lease_info **info)
{
    if (picture->rc != DIBS_OK || picture->seen_at <= since ||
        !dibs__serve_picture_covers(picture, name))
        return false;
    *info = dibs__serve_picture_find(picture, name);
    return true;
}

bool dibs__serve_look_answered(dibs__serve_look *look)
{
    bool answered;

    pthread_mutex_lock(&look->life.mutex);
    answered = look->answered;
    pthread_mutex_unlock(&look->life.mutex);
    return answered;
}
