/* board_many.c - see board_many.h. Owns nothing between calls. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_many.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/job_json.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { INNER_SIZE = DIBS__PLACE_SIZE + DIBS__JOB_HASH_SIZE };

/* The values with these names in the board, version 0: there is none. The caller frees
 * them in any case. */
static dibs_status
read_values(const dibs__board *board, char (*inner)[INNER_SIZE], size_t count,
            dibs_value *out, dibs_error *err)
{
    const char *keys[DIBS_GET_MANY_MAX];
    char(*names)[DIBS_NAME_MAX + 1] = dibsx_zalloc_n(count, sizeof(*names));
    dibs_status rc = names ? DIBS_OK : dibsx_nomem(err, "names of records");

    assert(count <= DIBS_GET_MANY_MAX);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = dibs__board_key(board, inner[i], names[i], err);
        keys[i] = names[i];
    }
    if (rc == DIBS_OK && count > 0)
        rc = dibs_state_get_many(board->cl, keys, count, out, err);
    dibsx_free(names);
    return rc;
}

static bool is_kept(const dibs__board *board, const char *job, const char *hash)
{
    dibs__job *kept = dibs__job_cache_find(board->cache, job, hash);

    dibs__job_free(kept);
    return kept != NULL;
}

static void
keep_job(const dibs__board *board, const char *hash, const dibs_value *value)
{
    dibs__job *job = NULL;

    if (value->version == 0 ||
        dibs__job_from_json(value->data, value->len, &job, NULL) != DIBS_OK)
        return;
    dibs__job_cache_add(board->cache, job, hash);
    dibs__job_free(job);
}

dibs_status
dibs__board_jobs(const dibs__board *board, const char *const *jobs,
                 const char *const *hashes, size_t count, dibs_error *err)
{
    char inner[DIBS_GET_MANY_MAX][INNER_SIZE];
    const char *missing[DIBS_GET_MANY_MAX];
    dibs_value values[DIBS_GET_MANY_MAX] = {{.len = 0}};
    size_t asked = 0;
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && board->cache; i++) {
        if (is_kept(board, jobs[i], hashes[i]))
            continue;
        (void)snprintf(inner[asked], INNER_SIZE, "def/%s/%s", jobs[i],
                       hashes[i]);
        missing[asked++] = hashes[i];
    }
    if (asked > 0)
        rc = read_values(board, inner, asked, values, err);
    for (size_t i = 0; i < asked; i++) {
        if (rc == DIBS_OK)
            keep_job(board, missing[i], &values[i]);
        dibs_value_free(&values[i]);
    }
    return rc;
}
