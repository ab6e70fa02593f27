/* history.c - the latest holds of all locks, as far as the look has seen them.
 *
 * Owns a ring of copies. */
/* SPDX-License-Identifier: MIT */
#include "serve/history.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "serve/change.h"
#include "serve/row.h"
#include <string.h>

dibs_status
dibs__serve_history_init(dibs__serve_history *history, dibs_error *err)
{
    *history = (dibs__serve_history){.since_wall_us = dibsx_wall_us()};
    pthread_mutex_init(&history->mutex, NULL);
    history->holds =
        dibsx_zalloc_n(DIBS__SERVE_HOLDS_MAX, sizeof(*history->holds));
    history->newest =
        dibsx_zalloc_n(DIBS__SERVE_HOLDS_CHAINS, sizeof(*history->newest));
    return history->holds && history->newest
               ? DIBS_OK
               : dibsx_nomem(err, "the history of locks");
}

void dibs__serve_history_fini(dibs__serve_history *history)
{
    for (size_t i = 0; history->holds && i < DIBS__SERVE_HOLDS_MAX; i++)
        dibsx_free(history->holds[i].row);
    dibsx_free(history->holds);
    dibsx_free(history->newest);
    pthread_mutex_destroy(&history->mutex);
}

/* ---- Chains: holds whose names have one hash, the newest first, so that the end of
 * many leases at once does not search the ring for each. A number that the ring has
 * overwritten ends a chain: all behind it are older. */

static uint64_t *chain_of(dibs__serve_history *history, const char *name)
{
    return &history->newest[dibsx_hash_text(name) % DIBS__SERVE_HOLDS_CHAINS];
}

/* The hold with this number, or NULL when it is forgotten. Locks: history->mutex. */
static dibs__serve_hold *
hold_at(const dibs__serve_history *history, uint64_t number)
{
    if (number == 0 || number + DIBS__SERVE_HOLDS_MAX <= history->count)
        return NULL;
    return &history->holds[(number - 1) % DIBS__SERVE_HOLDS_MAX];
}

/* Locks: history->mutex. */
static void
add_hold(dibs__serve_history *history, const dibs_lease_info *row,
         const dibs_party *holder, int64_t waited_ms, int64_t now_wall_us)
{
    const dibs_lease_info one = {.name = row->name,
                                 .capacity = row->capacity,
                                 .holders = holder,
                                 .holder_count = 1};
    dibs_lease_info *copy = dibs__serve_row_copy(&one);
    dibs__serve_hold *hold =
        &history->holds[history->count % DIBS__SERVE_HOLDS_MAX];

    if (!copy)
        return;
    dibsx_free(hold->row);
    *hold = (dibs__serve_hold){.row = copy,
                               .waited_ms = waited_ms,
                               .granted_wall_us =
                                   now_wall_us - holder->age_ms * 1000,
                               .before = *chain_of(history, row->name)};
    *chain_of(history, row->name) = ++history->count;
}

/* Locks: history->mutex. */
static void
end_hold(dibs__serve_history *history, const char *name,
         const dibs_party *holder, bool expired, int64_t now_wall_us)
{
    dibs__serve_hold *hold = hold_at(history, *chain_of(history, name));

    for (; hold; hold = hold_at(history, hold->before)) {
        if (hold->ended_wall_us ||
            hold->row->holders[0].fence != holder->fence ||
            strcmp(hold->row->name, name) != 0 ||
            strcmp(hold->row->holders[0].owner, holder->owner) != 0)
            continue;
        hold->ended_wall_us = now_wall_us;
        hold->expired = expired;
        return;
    }
}

/* The history, and the moment that all changes of one picture have. */
typedef struct entry {
    dibs__serve_history *history;
    int64_t now_wall_us;
} entry;

/* As dibs__serve_change_fn. Locks: history->mutex. */
static void note_change(void *arg, const dibs__serve_change *change)
{
    const entry *en = arg;

    if (change->kind == DIBS__SERVE_ACQUIRED)
        add_hold(en->history, change->row, change->party, change->waited_ms,
                 en->now_wall_us);
    else if (change->kind == DIBS__SERVE_RELEASED ||
             change->kind == DIBS__SERVE_EXPIRED)
        end_hold(en->history, change->row->name, change->party,
                 change->kind == DIBS__SERVE_EXPIRED, en->now_wall_us);
}

void dibs__serve_history_seen(void *arg, const dibs__serve_picture *before,
                              const dibs__serve_picture *now)
{
    dibs__serve_history *history = arg;
    entry en = {.history = history, .now_wall_us = dibsx_wall_us()};

    /* A picture of a store that did not answer repeats the one before. */
    if (now->rc != DIBS_OK)
        return;
    pthread_mutex_lock(&history->mutex);
    dibs__serve_compare(before, now, note_change, &en);
    pthread_mutex_unlock(&history->mutex);
}

static void put_moment(dibsx_json *js, const char *key, int64_t wall_us)
{
    char text[40];

    dibsx_wall_text(wall_us, text, sizeof(text));
    dibsx_json_pair_text(js, key, wall_us ? text : NULL);
}

static void put_hold(dibsx_json *js, const dibs__serve_hold *hold)
{
    const dibs_party *holder = &hold->row->holders[0];
    const int64_t end_wall_us =
        hold->ended_wall_us ? hold->ended_wall_us : dibsx_wall_us();

    dibsx_json_open(js, '{');
    dibsx_json_pair_uint(js, "fence", holder->fence);
    dibsx_json_pair_text(js, "host", holder->host);
    dibsx_json_pair_int(js, "pid", holder->pid);
    dibsx_json_pair_text(js, "identity", holder->identity);
    dibsx_json_pair_text(js, "label", holder->label);
    dibsx_json_pair_text(js, "mode", holder->mode);
    put_moment(js, "granted_at", hold->granted_wall_us);
    put_moment(js, "ended_at", hold->ended_wall_us);
    dibsx_json_pair_int(js, "held_ms",
                        (end_wall_us - hold->granted_wall_us) / 1000);
    dibsx_json_key(js, "waited_ms");
    if (hold->waited_ms >= 0)
        dibsx_json_int(js, hold->waited_ms);
    else
        dibsx_json_null(js);
    dibsx_json_pair_text(js, "how",
                         !hold->ended_wall_us ? "held"
                         : hold->expired      ? "expired"
                                              : "ended");
    dibsx_json_close(js, '}');
}

void dibs__serve_history_json(dibs__serve_history *history, const char *name,
                              size_t limit, dibsx_json *js)
{
    const dibs__serve_hold *hold;

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    pthread_mutex_lock(&history->mutex);
    hold = hold_at(history, *chain_of(history, name));
    for (; hold && limit > 0; hold = hold_at(history, hold->before)) {
        if (strcmp(hold->row->name, name) != 0)
            continue;
        put_hold(js, hold);
        limit--;
    }
    pthread_mutex_unlock(&history->mutex);
    dibsx_json_close(js, ']');
    dibsx_json_pair_text(js, "seen", "look");
    put_moment(js, "since_at", history->since_wall_us);
}
