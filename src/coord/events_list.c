/* events_list.c - the list of topics that have had events. Owns nothing. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/uncancel.h"
#include "core/names.h"
#include "core/reach.h"
#include "store/log.h"
#include <dibs/events.h>
#include <string.h>

/* Topics of a page. Some stores look at all names for each page. */
enum { PAGE_MAX = 40 * DIBS__LOG_LIST_MAX };

typedef struct listing {
    const dibs_client *cl;
    dibs_topic_fn *each;
    void *arg;
    bool more;    /* the callback wants more */
    size_t count; /* of this page */
    char last[DIBS_NAME_MAX + 1];
} listing;

static bool show_row(const dibs__log_row *row, void *arg)
{
    listing *li = arg;
    const dibs_topic_state state = {.first = row->span.first,
                                    .last = row->span.last,
                                    .count = row->span.count,
                                    .bytes = row->span.bytes};

    memcpy(li->last, row->name, sizeof(li->last));
    li->count++;
    li->more = li->each(dibs__name_short(li->cl, row->name), &state, li->arg);
    return li->more;
}

dibs_status dibs_events_list(dibs_client *cl, const char *begins,
                             dibs_topic_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1], after[DIBS_NAME_MAX + 1] = "";
    const dibs__log_query query = {full, after, PAGE_MAX};
    listing li = {.cl = cl, .each = each, .arg = arg};
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    do {
        li.count = 0;
        rc = cl->st->ops->log->logs(cl->st, &query,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    show_row, &li, err);
        memcpy(after, li.last, sizeof(after));
    } while (rc == DIBS_OK && li.more && li.count >= DIBS__LOG_LIST_MAX);
    return rc;
}
