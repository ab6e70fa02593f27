/* roster_list.c - the lists of groups, barriers and latches. Owns nothing. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/uncancel.h"
#include "core/names.h"
#include "core/reach.h"
#include "store/roster.h"
#include <dibs/barrier.h>
#include <dibs/latch.h>
#include <dibs/members.h>
#include <string.h>

/* Rosters of a page. Some stores look at all names for each page. */
enum { PAGE_MAX = 20 * DIBS__ROSTER_LIST_MAX };

/* The callback of the caller, whichever the kind has. */
typedef struct listing {
    union {
        dibs_group_fn *group;
        dibs_barrier_fn *barrier;
        dibs_latch_fn *latch;
    } each;
    void *arg;
} listing;

/* A page of rosters: a callback may use the client. */
typedef struct page {
    dibsx_buf rows;
    size_t count;
    char last[DIBS_NAME_MAX + 1];
} page;

static bool note_row(const dibs__roster_row *row, void *arg)
{
    page *pg = arg;

    dibsx_buf_add(&pg->rows, row, sizeof(*row));
    memcpy(pg->last, row->name, sizeof(pg->last));
    pg->count++;
    return dibsx_buf_ok(&pg->rows);
}

static bool
show_row(const listing *li, const char *name, const dibs__roster_row *row)
{
    const dibs__roster_head *head = &row->head;
    const dibs_group_info group = {name, row->live, row->counts};
    const dibs_barrier_state barrier = {.generation = head->gen,
                                        .parties = head->need,
                                        .seated = row->live,
                                        .arrived = head->here};
    const dibs_latch_state latch = {.generation = head->gen,
                                    .count = head->need,
                                    .left = head->need > head->here
                                                ? head->need - head->here
                                                : 0};

    switch (head->kind) {
    case DIBS__ROSTER_GROUP:
        return li->each.group(&group, li->arg);
    case DIBS__ROSTER_BARRIER:
        return li->each.barrier(name, &barrier, li->arg);
    default:
        return li->each.latch(name, &latch, li->arg);
    }
}

/* False: the callback wants no more. */
static bool show_page(const dibs_client *cl, const page *pg, const listing *li)
{
    dibs__roster_row row;
    bool more = true;

    for (size_t at = 0; more && at < pg->rows.len; at += sizeof(row)) {
        memcpy(&row, pg->rows.data + at, sizeof(row));
        more = show_row(li, dibs__name_short(cl, row.name), &row);
    }
    return more;
}

static dibs_status
list_pages(dibs_client *cl, dibs__roster_kind kind, const char *full,
           const listing *li, dibs_error *err)
{
    page pg = {.count = DIBS__ROSTER_LIST_MAX};
    const dibs__roster_query query = {.kind = kind,
                                      .begins = full,
                                      .after = pg.last,
                                      .max = PAGE_MAX};
    dibs_status rc = DIBS_OK;
    bool more = true;

    dibsx_buf_init(&pg.rows, PAGE_MAX * sizeof(dibs__roster_row));
    while (rc == DIBS_OK && more && pg.count >= DIBS__ROSTER_LIST_MAX) {
        pg.count = 0;
        dibsx_buf_reset(&pg.rows);
        rc =
            cl->st->ops->roster->rosters(cl->st, &query,
                                         dibs__client_deadline(cl, dibsx_now()),
                                         note_row, &pg, err);
        if (rc == DIBS_OK && !dibsx_buf_ok(&pg.rows))
            rc = dibsx_nomem(err, "a list of names");
        if (rc == DIBS_OK)
            more = show_page(cl, &pg, li);
    }
    dibsx_buf_fini(&pg.rows);
    return rc;
}

static dibs_status
list_kind(dibs_client *cl, dibs__roster_kind kind, const char *begins,
          const listing *li, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    const char *why;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_MEET);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    return list_pages(cl, kind, full, li, err);
}

dibs_status dibs_group_list(dibs_client *cl, const char *begins,
                            dibs_group_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    const listing li = {.each.group = each, .arg = arg};

    return list_kind(cl, DIBS__ROSTER_GROUP, begins, &li, err);
}

dibs_status dibs_barrier_list(dibs_client *cl, const char *begins,
                              dibs_barrier_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    const listing li = {.each.barrier = each, .arg = arg};

    return list_kind(cl, DIBS__ROSTER_BARRIER, begins, &li, err);
}

dibs_status dibs_latch_list(dibs_client *cl, const char *begins,
                            dibs_latch_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    const listing li = {.each.latch = each, .arg = arg};

    return list_kind(cl, DIBS__ROSTER_LATCH, begins, &li, err);
}
