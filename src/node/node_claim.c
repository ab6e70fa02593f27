/* node_claim.c - the claims of a node: steps that are ready, page by page, a bounded number
 * of them in one look. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "node/call.h"
#include "node/node_view.h"

#include <stdio.h>
#include <string.h>

/* One look reads the records of so many steps, and so many pages behind the first ones,
 * and has so long. The next one goes on after a pause. */
enum {
    READS_MAX = 256,
    PAGES_MAX = 16,
    PART_MS = 500,
    NEXT_PAGES_MS = 200,
    FULL_MAX = 64
};

/* The claims of one look. */
typedef struct claims {
    size_t reads, pages;
    dibsx_nsec until;
    char full[FULL_MAX][DIBS__JOB_NAME_SIZE]; /* with max_running runs */
    size_t full_count;
    bool away; /* the store does not answer */
} claims;

static bool is_over(const claims *c)
{
    return c->away || c->reads >= READS_MAX || dibsx_now() >= c->until;
}

static bool may_go_on(const dibs__node *node, const claims *c)
{
    return dibs__node_has_room(node) && !is_over(c);
}

/* Whether a file of this node has a job of that name; an id begins with it. */
static bool has_job_of(const dibs__node *node, const char *id)
{
    char name[DIBS__RUN_ID_SIZE];

    for (size_t end = strcspn(id, "@."); id[end];
         end += 1 + strcspn(id + end + 1, "@.")) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)end, id);
        for (size_t i = 0; i < node->opts->file_count; i++)
            if (dibs__job_file_find(node->opts->files[i], name))
                return true;
    }
    return false;
}

/* Whether the run is of a job that had no room in this look. */
static bool is_full(const claims *c, const char *id)
{
    size_t len = strlen(id);

    while (len > 0 && id[len] != '@' && id[len] != '.')
        len--;
    for (size_t i = 0; i < c->full_count && len > 0; i++)
        if (strncmp(c->full[i], id, len) == 0 && c->full[i][len] == '\0')
            return true;
    return false;
}

/* A step that this node cannot execute, or read, is left to others for a while. */
static void end_claim(dibs__node *node, const dibs__node_entry *entry,
                      const dibs__run *run, dibs_status rc, claims *c)
{
    c->away = dibsx_is_away(rc);
    if (c->away)
        dibs__node_hurry(node, DIBS__AGAIN_MS);
    else if (rc == DIBS_OK)
        node->idle = false;
    else if (rc == DIBS_FULL && c->full_count < FULL_MAX)
        (void)snprintf(c->full[c->full_count++], DIBS__JOB_NAME_SIZE, "%s",
                       run->job);
    else if (rc == DIBS_FULL)
        dibs__node_leave(node, entry, DIBS__AGAIN_MS);
    else if (rc != DIBS_STALE && rc != DIBS_BUSY)
        dibs__node_leave(node, entry, DIBS__STUCK_AGAIN_MS);
}

static void
claim_entry(dibs__node *node, const dibs__node_entry *entry, claims *c)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    dibs_error err = {0};
    dibs__stage st;
    dibs_status rc;
    size_t i = 0;

    /* A function is in the program, whatever file its job is in. */
    if (!dibs__step_split(entry->member, id, step) ||
        (!node->opts->calls && !has_job_of(node, id)) || is_full(c, id) ||
        dibs__node_left_ms(node, entry) > 0)
        return;
    c->reads++;
    dibs__stage_init(&st);
    st.sc.now_us = dibs__node_now_us(node);
    rc = dibs__stage_run(node->board, id, &st, &err);
    (void)dibs__node_valid_until(node);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        dibs__node_complain(node, entry->member, &err);
    if (rc == DIBS_OK && !dibs__run_find(&st.run, step, &i))
        rc = DIBS_NOTFOUND;
    if (rc == DIBS_OK) {
        rc = dibs__node_claim(node, &st, i);
        (void)dibs__node_valid_until(node);
    }
    end_claim(node, entry, &st.run, rc, c);
    dibs__stage_fini(&st);
}

/* ---- entries behind the first ones */

/* The next page begins behind the `done` first entries of this one: by the number of the
 * last, for entries before it may go meanwhile. */
static void
move_behind(dibs_index_look *look, const dibs__view *page, size_t done)
{
    uint32_t same = 0;
    int64_t last;

    if (page->count == 0) /* No member of it is as short as a step. */
        look->skip += look->limit;
    if (done == 0)
        return;
    last = page->at[done - 1].at;
    for (size_t i = done; i > 0 && page->at[i - 1].at == last; i--)
        same++;
    if (same == done && last == look->from)
        same += look->skip;
    look->from = last;
    look->skip = same;
}

/* True: there are no more. */
static bool
claim_pages(dibs__node *node, dibs_index_look *look, size_t number, claims *c)
{
    bool more = look->next >= 0;
    dibs_error err = {0};

    while (more && c->pages < PAGES_MAX && may_go_on(node, c)) {
        dibs__view *page = dibs__view_page(node, look, number, &err);
        size_t i = 0;

        (void)dibs__node_valid_until(node);
        c->pages++;
        if (!page) {
            dibs__node_complain(node, "the board", &err);
            dibs__node_hurry(node, DIBS__AGAIN_MS);
            c->away = true;
            return false;
        }
        while (i < page->count && may_go_on(node, c))
            claim_entry(node, &page->at[i++], c);
        more = i < page->count || look->next >= 0;
        move_behind(look, page, i);
        dibs__view_free(page);
    }
    return !more;
}

/* Goes on where the last look ended. A ring since then may be for an entry before that. */
static void claim_beyond(dibs__node *node, const dibs__view *v, claims *c)
{
    dibs__claim_place *place = &node->claim_place;
    size_t from = place->look;
    bool through = true;

    if (!from)
        place->rang = false;
    for (size_t i = from ? from : DIBS__LOOK_READY;
         i < v->look_count && through; i++) {
        dibs_index_look look = v->looks[i];

        look.skip = look.limit;
        if (i == from) {
            look.from = place->from;
            look.skip = place->skip;
        }
        through = claim_pages(node, &look, i, c);
        place->look = i;
        place->from = look.from;
        place->skip = look.skip;
    }
    if (through) {
        place->look = 0;
        if (from && place->rang)
            dibs__node_hurry(node, NEXT_PAGES_MS);
    }
}

/* Entries whose definition is in no file of this node are passed over: any number of them
 * may be before its own. */
void dibs__node_claim_ready(dibs__node *node, const dibs__view *v)
{
    claims c = {.until = dibsx_after_ms(dibsx_now(), PART_MS)};

    for (size_t i = 0; i < v->count && may_go_on(node, &c); i++)
        if (v->at[i].look >= DIBS__LOOK_READY)
            claim_entry(node, &v->at[i], &c);
    if (may_go_on(node, &c))
        claim_beyond(node, v, &c);
    if (!c.away && dibs__node_has_room(node) &&
        (is_over(&c) || node->claim_place.look)) {
        node->idle = false;
        dibs__node_hurry(node, NEXT_PAGES_MS);
    }
}
