/* limit_list.c - the list of limits of which tokens are out. Owns nothing. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/uncancel.h"
#include "core/names.h"
#include "core/reach.h"
#include "store/rate.h"
#include <dibs/limit.h>
#include <string.h>

/* Limits of a page. Some stores look at all names for each page. */
enum { PAGE_MAX = 20 * DIBS__RATE_LIST_MAX };

typedef struct listing {
    const dibs_client *cl;
    dibs_limit_fn *each;
    void *arg;
    bool more;    /* the callback wants more */
    size_t count; /* of this page */
    char last[DIBS_NAME_MAX + 1];
} listing;

static bool show_row(const dibs__rate_row *row, void *arg)
{
    listing *li = arg;
    const dibs_limit_info info = {.name = dibs__name_short(li->cl, row->name),
                                  .count = row->count,
                                  .period_us = row->period_us,
                                  .out = row->out,
                                  .full_ms = (row->full_us + 999) / 1000};

    memcpy(li->last, row->name, sizeof(li->last));
    li->count++;
    li->more = li->each(&info, li->arg);
    return li->more;
}

dibs_status dibs_limit_list(dibs_client *cl, const char *begins,
                            dibs_limit_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1], after[DIBS_NAME_MAX + 1] = "";
    const dibs__rate_query query = {full, after, PAGE_MAX};
    listing li = {.cl = cl, .each = each, .arg = arg};
    const char *why;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_RATE);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    do {
        li.count = 0;
        rc = cl->st->ops->rate->rates(cl->st, &query,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      show_row, &li, err);
        memcpy(after, li.last, sizeof(after));
    } while (rc == DIBS_OK && li.more && li.count >= DIBS__RATE_LIST_MAX);
    return rc;
}
