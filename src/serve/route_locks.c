/* route_locks.c - locks, one at a time and as a list. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/row.h"

/* A name as the store has it now. */
typedef struct shown {
    dibs__http_exchange *ex;
    bool done; /* it was answered */
} shown;

static bool answer_row(const dibs_lease_info *info, void *arg)
{
    shown *sh = arg;
    char etag[DIBS__SERVE_ETAG_MAX];

    sh->done = true;
    dibs__serve_row_etag(info, etag);
    if (!dibs__http_not_modified(sh->ex, etag))
        dibs__serve_row_json(dibs__http_answer(sh->ex, 200), info, 0, 0);
    return false;
}

static void answer_free(dibs__http_exchange *ex, const char *name)
{
    const dibs_lease_info info = {.name = name};
    char etag[DIBS__SERVE_ETAG_MAX];

    dibs__serve_row_etag(NULL, etag);
    if (!dibs__http_not_modified(ex, etag))
        dibs__serve_row_json(dibs__http_answer(ex, 200), &info, 0, 0);
}

void dibs__serve_get_lock(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    shown sh = {.ex = ex};
    dibs_error err = {0};
    dibs_status rc;

    if (!name)
        return;
    rc = dibs_lease_show(sv->cl, name, answer_row, &sh, &err);
    if (rc == DIBS_NOTFOUND)
        answer_free(ex, name);
    else if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
}
