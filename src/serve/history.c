/* history.c - the latest holds of all locks, as far as the look has seen them.
 *
 * Owns a ring of copies. */
/* SPDX-License-Identifier: MIT */
#include "serve/history.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "serve/row.h"
#include <string.h>

dibs_status
dibs__serve_history_init(dibs__serve_history *history, dibs_error *err)
{
    *history = (dibs__serve_history){.since_wall_us = dibsx_wall_us()};
    pthread_mutex_init(&history->mutex, NULL);
    history->holds =
        dibsx_zalloc_n(DIBS__SERVE_HOLDS_MAX, sizeof(*history->holds));
    return history->holds ? DIBS_OK : dibsx_nomem(err, "the history of locks");
}

void dibs__serve_history_fini(dibs__serve_history *history)
{
    for (size_t i = 0; history->holds && i < DIBS__SERVE_HOLDS_MAX; i++)
        dibsx_free(history->holds[i].row);
    dibsx_free(history->holds);
    pthread_mutex_destroy(&history->mutex);
}

static const dibs_party *
find_holder(const dibs_lease_info *row, uint64_t fence, const char *owner)
{
    for (size_t i = 0; row && i < row->holder_count; i++) {
        if (row->holders[i].fence == fence &&
            strcmp(row->holders[i].owner, owner) == 0)
            return &row->holders[i];
    }
    return NULL;
}

/* How long it had waited when it was last seen to; -1: never. */
static int64_t find_wait(const dibs_lease_info *row, const char *owner)
{
    for (size_t i = 0; row && i < row->waiter_count; i++) {
        if (strcmp(row->waiters[i].owner, owner) == 0)
            return row->waiters[i].age_ms;
    }
    return -1;
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
                                   now_wall_us - holder->age_ms * 1000};
    history->count++;
}

/* Locks: history->mutex. */
static void
end_hold(dibs__serve_history *history, const char *name,
         const dibs_party *holder, bool expired, int64_t now_wall_us)
{
    const uint64_t oldest = history->count > DIBS__SERVE_HOLDS_MAX
                                ? history->count - DIBS__SERVE_HOLDS_MAX
                                : 0;

    for (uint64_t i = history->count; i > oldest; i--) {
        dibs__serve_hold *hold =
            &history->holds[(i - 1) % DIBS__SERVE_HOLDS_MAX];

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

/* Locks: history->mutex. Either row may be NULL. */
static void
compare_rows(dibs__serve_history *history, const dibs_lease_info *before,
             const dibs_lease_info *now, int64_t step_ms, int64_t now_wall_us)
{
    for (size_t i = 0; before && i < before->holder_count; i++) {
        const dibs_party *holder = &before->holders[i];

        if (!find_holder(now, holder->fence, holder->owner))
            end_hold(history, before->name, holder, holder->left_ms <= step_ms,
                     now_wall_us);
    }
    for (size_t i = 0; now && i < now->holder_count; i++) {
        const dibs_party *holder = &now->holders[i];

        if (!find_holder(before, holder->fence, holder->owner))
            add_hold(history, now, holder, find_wait(before, holder->owner),
                     now_wall_us);
    }
}

void dibs__serve_history_seen(void *arg, const dibs__serve_picture *before,
                              const dibs__serve_picture *now)
{
    dibs__serve_history *history = arg;
    const int64_t now_wall_us = dibsx_wall_us();
    const int64_t step_ms =
        before ? (now->seen_at - before->seen_at) / DIBSX_MS : 0;
    size_t b = 0, n = 0;

    /* A picture of a store that did not answer repeats the one before. */
    if (now->rc != DIBS_OK)
        return;
    pthread_mutex_lock(&history->mutex);
    while ((before && b < before->count) || n < now->count) {
        const dibs_lease_info *old =
            before && b < before->count ? before->rows[b] : NULL;
        const dibs_lease_info *new = n < now->count ? now->rows[n] : NULL;
        const int order = !old ? 1 : !new ? -1 : strcmp(old->name, new->name);

        compare_rows(history, order <= 0 ? old : NULL, order >= 0 ? new : NULL,
                     step_ms, now_wall_us);
        b += order <= 0;
        n += order >= 0;
    }
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
    uint64_t oldest;

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    pthread_mutex_lock(&history->mutex);
    oldest = history->count > DIBS__SERVE_HOLDS_MAX
                 ? history->count - DIBS__SERVE_HOLDS_MAX
                 : 0;
    for (uint64_t i = history->count; i > oldest && limit > 0; i--) {
        const dibs__serve_hold *hold =
            &history->holds[(i - 1) % DIBS__SERVE_HOLDS_MAX];

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
