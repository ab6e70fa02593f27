/* client_bookmark.c - bookmarks are resumed, once, by one of their callers (dibs/jobs.h). */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/uncancel.h"
#include "jobs/board_change.h"
#include "jobs/board_name.h"
#include "jobs/board_stage.h"
#include <dibs/lock.h>

#include <stdio.h>

enum { LOCK_TTL_MS = 30000 };

typedef struct answer {
    const char *bookmark;
    const char *who;
    const void *data;
    size_t len;
    dibs_bookmark_fn *work; /* NULL: the data is there */
    void *arg;
} answer;

static dibs_status
resume_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    const answer *a = arg;

    (void)doubt;
    return dibs__run_bookmark(sc, a->bookmark, a->data, a->len, a->who, err);
}

/* Whether it can be resumed now, before any work is done. */
static dibs_status check_bookmark(const dibs__board *board, const char *id,
                                  const answer *a, dibs_error *err)
{
    dibs__stage st;
    dibs_status rc;

    dibs__stage_init(&st);
    rc = dibs__stage_run(board, id, &st, err);
    if (rc == DIBS_OK)
        rc = dibs__run_bookmark(&st.sc, a->bookmark, NULL, 0, a->who, err);
    dibs__stage_fini(&st);
    return rc;
}

/* Locks: that of the bookmark. */
static dibs_status resume_held(const dibs__board *board, const char *id,
                               answer *a, dibs_error *err)
{
    char data[DIBS_RESULT_MAX];
    dibs_status rc = DIBS_OK;

    if (a->work) {
        a->len = sizeof(data);
        rc = check_bookmark(board, id, a, err);
        if (rc == DIBS_OK)
            rc = a->work(a->arg, data, &a->len, err);
        if (rc == DIBS_OK && a->len > sizeof(data))
            rc = dibsx_fail(err, DIBS_INVALID,
                            "the data has more than %d bytes; pass on where it "
                            "is",
                            DIBS_RESULT_MAX);
        a->data = data;
    }
    return rc == DIBS_OK
               ? dibs__board_change_run(board, id, resume_scene, a, err)
               : rc;
}

/* The lock tells a second caller that the first is at work; the version of the record
 * makes it happen once. */
static dibs_status resume_locked(const dibs__board *board, const char *id,
                                 answer *a, dibs_error *err)
{
    char name[DIBS_NAME_MAX + 1];
    dibs_lock *lock = NULL;
    int len = snprintf(name, sizeof(name), "workflow:%s:bookmark:%s", id,
                       a->bookmark);
    dibs_status rc;

    if (len < 0 || (size_t)len >= sizeof(name))
        return dibsx_fail(err, DIBS_INVALID, "'%.60s' is no bookmark",
                          a->bookmark);
    rc = dibs_lock_new(board->cl, name, DIBS_LOCK_OPTS(.ttl_ms = LOCK_TTL_MS),
                       &lock, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(lock, err);
    if (rc == DIBS_BUSY)
        rc = dibsx_fail(err, DIBS_BUSY,
                        "the bookmark %s of the run %s is already in progress",
                        a->bookmark, id);
    if (rc == DIBS_OK)
        rc = resume_held(board, id, a, err);
    dibs_lock_free(lock);
    return rc;
}

static dibs_status
resume_named(dibs_client *cl, const char *run, answer *a, dibs_error *err)
{
    char who[DIBS__RUN_NOTE_SIZE];
    dibs__board board;
    const char *id = NULL;
    dibs_status rc = dibs__board_split(cl, run, &board, &id, err);

    if (rc == DIBS_OK && !a->bookmark)
        rc = dibsx_fail(err, DIBS_INVALID, "no bookmark is named");
    if (rc == DIBS_OK && a->len > DIBS_RESULT_MAX)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the data has more than %d bytes; pass on where it is",
                        DIBS_RESULT_MAX);
    if (rc != DIBS_OK)
        return rc;
    dibs__board_whoami(who, sizeof(who));
    a->who = who;
    return resume_locked(&board, id, a, err);
}

dibs_status
dibs_bookmark_resume(dibs_client *cl, const char *run, const char *bookmark,
                     const void *data, size_t len, dibs_error *err)
{
    DIBSX_UNCANCEL;
    answer a = {.bookmark = bookmark, .data = data, .len = data ? len : 0};

    return resume_named(cl, run, &a, err);
}

dibs_status
dibs_bookmark_work(dibs_client *cl, const char *run, const char *bookmark,
                   dibs_bookmark_fn *work, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    answer a = {.bookmark = bookmark, .work = work, .arg = arg};

    if (!work)
        return dibsx_fail(err, DIBS_INVALID, "there is no work to do");
    return resume_named(cl, run, &a, err);
}
