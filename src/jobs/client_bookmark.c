/* client_bookmark.c - bookmarks are resumed, once, by one of their callers (dibs/jobs.h). */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/uncancel.h"
#include "jobs/board_name.h"
#include "jobs/board_start.h"

static dibs_status resume_named(dibs_client *cl, const char *run,
                                dibs__resumption *a, dibs_error *err)
{
    char who[DIBS__RUN_NOTE_SIZE];
    dibs__board board;
    const char *id = NULL;
    dibs_status rc = dibs__board_split(cl, run, &board, &id, err);

    if (rc == DIBS_OK && !a->bookmark)
        rc = dibsx_fail(err, DIBS_INVALID, "no bookmark is named");
    if (rc != DIBS_OK)
        return rc;
    dibs__board_whoami(who, sizeof(who));
    a->who = who;
    return dibs__board_resume(&board, id, a, err);
}

dibs_status
dibs_bookmark_resume(dibs_client *cl, const char *run, const char *bookmark,
                     const void *data, size_t len, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__resumption a = {.bookmark = bookmark,
                          .data = data,
                          .len = data ? len : 0};

    return resume_named(cl, run, &a, err);
}

dibs_status
dibs_bookmark_work(dibs_client *cl, const char *run, const char *bookmark,
                   dibs_bookmark_fn *work, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__resumption a = {.bookmark = bookmark, .work = work, .arg = arg};

    if (!work)
        return dibsx_fail(err, DIBS_INVALID, "there is no work to do");
    return resume_named(cl, run, &a, err);
}
