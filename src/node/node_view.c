/* node_view.c - see node_view.h. */
/* SPDX-License-Identifier: MIT */
#include "node/node_view.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "node/call.h"

#include <stdio.h>
#include <string.h>

enum { ENTRIES_READY = 256, ENTRIES_LIVE = 1024 };

static bool note_entry(const dibs_index_entry *entry, void *arg)
{
    dibs__view *v = arg;

    if (strlen(entry->member) >= DIBS__PLACE_SIZE)
        return true;
    if (v->count == v->room) {
        size_t room = v->room ? v->room * 2 : 64;
        dibs__node_entry *more = dibsx_realloc_n(v->at, room, sizeof(*v->at));

        v->failed = v->failed || !more;
        if (!more)
            return false;
        v->at = more;
        v->room = room;
    }
    v->at[v->count].look = v->first + entry->look;
    v->at[v->count].at = entry->at;
    (void)snprintf(v->at[v->count++].member, DIBS__PLACE_SIZE, "%s",
                   entry->member);
    return true;
}

static dibs_status
add_look(dibs__node *node, dibs__view *v, const char *index, dibs_error *err)
{
    size_t i = v->look_count++;
    bool all = i >= DIBS__LOOK_LIVE;

    v->looks[i] =
        (dibs_index_look){.index = v->names[i],
                          .up_to = all ? DIBS_INDEX_AT_MAX : DIBS_INDEX_NOW,
                          .limit = i == DIBS__LOOK_LIVE ? ENTRIES_LIVE
                                   : all                ? ENTRIES_READY
                                                        : DIBS__VIEW_ENTRIES};
    return dibs__board_key(node->board, index, v->names[i], err);
}

static dibs_status add_labels(dibs__node *node, dibs__view *v, dibs_error *err)
{
    const char *const *labels = node->opts->labels;
    dibs_status rc = add_look(node, v, "ready/", err);

    for (size_t i = 0; labels && labels[i] && rc == DIBS_OK; i++) {
        char name[DIBS__PLACE_SIZE];

        (void)snprintf(name, sizeof(name), "ready/%s", labels[i]);
        rc = add_look(node, v, name, err);
    }
    return rc;
}

static dibs_status
add_functions(dibs__node *node, dibs__view *v, dibs_error *err)
{
    const struct dibs__calls *calls = node->opts->calls;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < calls->count && rc == DIBS_OK; i++) {
        char name[DIBS__PLACE_SIZE];

        (void)snprintf(name, sizeof(name), "ready/call/%s",
                       calls->functions[i].name);
        rc = add_look(node, v, name, err);
    }
    return rc;
}

/* One request, but for a node with many functions. */
static dibs_status ask_view(dibs__node *node, dibs__view *v, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (v->first = 0; v->first < v->look_count && rc == DIBS_OK;
         v->first += DIBS_LOOKS_MAX) {
        size_t count = v->look_count - v->first;

        rc = dibs_index_first(node->board->cl, v->looks + v->first,
                              count < DIBS_LOOKS_MAX ? count : DIBS_LOOKS_MAX,
                              &v->now_us, note_entry, v, err);
    }
    return rc;
}

static dibs_status fill_view(dibs__node *node, dibs__view *v, dibs_error *err)
{
    static const char *const names[] = {"due",    "retry",   "deadline",
                                        "resume", "trim",    "live",
                                        "nodes",  "draining"};
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < DIBS__LOOK_READY && rc == DIBS_OK; i++)
        rc = add_look(node, v, names[i], err);
    if (rc == DIBS_OK)
        rc = node->opts->calls ? add_functions(node, v, err)
                               : add_labels(node, v, err);
    if (rc == DIBS_OK)
        rc = ask_view(node, v, err);
    return rc;
}

void dibs__view_free(dibs__view *v)
{
    if (v)
        dibsx_free(v->at);
    dibsx_free(v);
}

static dibs__view *
give_view(dibs__node *node, dibs__view *v, dibsx_nsec asked_at, dibs_status rc,
          dibs_error *err)
{
    if (rc == DIBS_OK && v->failed)
        rc = dibsx_nomem(err, "what is to be done");
    if (rc == DIBS_OK) {
        v->taken_at = dibsx_now();
        dibs__store_clock_note(&node->clock, v->now_us, asked_at, v->taken_at);
        return v;
    }
    dibs__view_free(v);
    return NULL;
}

dibs__view *dibs__view_take(dibs__node *node, dibs_error *err)
{
    dibs__view *v = dibsx_zalloc(sizeof(*v));
    dibsx_nsec asked_at = dibsx_now();

    return give_view(node, v, asked_at,
                     v ? fill_view(node, v, err)
                       : dibsx_nomem(err, "a look at the board"),
                     err);
}

dibs__view *dibs__view_page(dibs__node *node, dibs_index_look *look,
                            size_t number, dibs_error *err)
{
    dibs__view *v = dibsx_zalloc(sizeof(*v));
    dibsx_nsec asked_at = dibsx_now();

    if (v)
        v->first = number;
    return give_view(node, v, asked_at,
                     v ? dibs_index_first(node->board->cl, look, 1, &v->now_us,
                                          note_entry, v, err)
                       : dibsx_nomem(err, "a look at the board"),
                     err);
}
