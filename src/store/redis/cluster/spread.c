/* spread.c - makes calls for several slots of a cluster; see spread.h.
 *
 * First the calls to servers that did not fail the last time. A server that fails
 * now is left, whether it is silent or asks for patience, and its other calls come
 * with those that come last: they share the time that one server has. Slots without
 * a server are alike. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/spread.h"
#include "base/alloc.h"
#include "base/fail.h"

typedef struct tour {
    const dibs__spread *sp;
    bool *done;
    bool answered;
    bool left[DIBS__MEMBERS_MAX + 1]; /* servers by their number; 0: none */
    size_t failed_at; /* the first that failed; sp->count: none */
    dibs_status rc;
    dibs_error why;
} tour;

static dibsx_nsec limit_wait(const dibs__spread *sp)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), sp->patience_ms);

    return until < sp->deadline ? until : sp->deadline;
}

/* The call to a server, by its number. */
static void make_call(tour *tr, size_t i, int server, dibsx_nsec until)
{
    const dibs__spread *sp = tr->sp;
    dibs_error why = {0};
    dibs_status rc;

    tr->done[i] = true;
    if (dibsx_now() < until)
        rc = sp->call(sp->arg, i, until, &why);
    else
        rc = dibsx_fail(&why, DIBS_UNAVAIL,
                        "the time for this server of the cluster is over");
    if (rc == DIBS_OK) {
        tr->answered = true;
        return;
    }
    if (dibsx_is_away(rc))
        tr->left[server] = true;
    tr->rc = tr->failed_at == sp->count || tr->rc == rc ? rc : DIBS_UNKNOWN;
    if (i < tr->failed_at) {
        tr->failed_at = i;
        tr->why = why;
    }
}

static int find_server(const tour *tr, size_t i, bool *failing)
{
    const dibs__spread *sp = tr->sp;

    return dibs__cluster_standing(sp->cluster, sp->slot(sp->arg, i), failing);
}

/* All calls to the server of the first one. */
static void finish_server(tour *tr, size_t first)
{
    dibsx_nsec until = limit_wait(tr->sp);
    bool failing;
    int server = find_server(tr, first, &failing);

    make_call(tr, first, server, until);
    for (size_t i = first + 1; i < tr->sp->count; i++)
        if (!tr->done[i] && find_server(tr, i, &failing) == server)
            make_call(tr, i, server, until);
}

static void make_calls(tour *tr)
{
    bool failing;

    for (size_t i = 0; i < tr->sp->count; i++) {
        int server = find_server(tr, i, &failing);

        if (!failing && !tr->left[server])
            make_call(tr, i, server, limit_wait(tr->sp));
    }
    for (size_t i = 0; i < tr->sp->count; i++)
        if (!tr->done[i])
            finish_server(tr, i);
}

dibs_status dibs__spread_run(const dibs__spread *sp, dibs_error *err)
{
    tour tr = {.sp = sp, .failed_at = sp->count};

    if (sp->count == 0)
        return DIBS_OK;
    tr.done = dibsx_zalloc_n(sp->count, sizeof(*tr.done));
    if (!tr.done)
        return dibsx_nomem(err, "calls to a cluster");
    make_calls(&tr);
    dibsx_free(tr.done);
    if (tr.failed_at < sp->count && err)
        *err = tr.why;
    if (err && !tr.answered)
        err->status = tr.rc;
    return tr.answered ? DIBS_OK : tr.rc;
}
