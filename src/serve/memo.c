/* memo.c - an answer of the store that many askers share for a while. Threads that may
 * block. */
/* SPDX-License-Identifier: MIT */
#include "serve/memo.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

/* Askers that waited while the store hung have its failure, and do not each wait anew. */
enum { TEXT_MAX = 8 * 1024 * 1024, FAILURE_MS = 1000 };

void dibs__serve_memo_init(dibs__serve_memo *memo)
{
    *memo = (dibs__serve_memo){.until = 0};
    pthread_mutex_init(&memo->mutex, NULL);
    dibsx_buf_init(&memo->text, TEXT_MAX);
}

void dibs__serve_memo_fini(dibs__serve_memo *memo)
{
    dibsx_buf_fini(&memo->text);
    pthread_mutex_destroy(&memo->mutex);
}

/* Locks: memo->mutex. */
static void
make_anew(dibs__serve_memo *memo, dibs_client *cl, const char *prefix,
          int64_t keep_ms, dibs__serve_memo_fn *make, void *arg)
{
    dibsx_json js;

    memo->seen = atomic_load(&memo->changes);
    memo->err = (dibs_error){.status = DIBS_OK};
    snprintf(memo->prefix, sizeof(memo->prefix), "%s", prefix);
    dibsx_buf_reset(&memo->text);
    dibsx_json_init(&js, &memo->text);
    memo->rc = make(cl, prefix, arg, &js, &memo->err);
    if (memo->rc == DIBS_OK && !dibsx_buf_ok(&memo->text))
        memo->rc = dibsx_nomem(&memo->err, "the answer of the store");
    if (memo->rc != DIBS_OK && keep_ms > FAILURE_MS)
        keep_ms = FAILURE_MS;
    memo->until = dibsx_after_ms(dibsx_now(), keep_ms);
}

static bool is_fresh(const dibs__serve_memo *memo, const char *prefix)
{
    return dibsx_now() < memo->until &&
           memo->seen == atomic_load(&memo->changes) &&
           strcmp(memo->prefix, prefix) == 0;
}

dibs_status dibs__serve_memo_put(dibs__serve_memo *memo, dibs_client *cl,
                                 const char *prefix, int64_t keep_ms,
                                 dibs__serve_memo_fn *make, void *arg,
                                 dibsx_json *js, dibs_error *err)
{
    dibs_status rc;

    pthread_mutex_lock(&memo->mutex);
    if (!is_fresh(memo, prefix))
        make_anew(memo, cl, prefix, keep_ms, make, arg);
    rc = memo->rc;
    if (rc != DIBS_OK) {
        *err = memo->err;
    } else {
        dibsx_buf_puts(js->out, dibsx_buf_text(&memo->text));
        js->comma = true;
    }
    pthread_mutex_unlock(&memo->mutex);
    return rc;
}

void dibs__serve_memo_forget(dibs__serve_memo *memo)
{
    atomic_fetch_add(&memo->changes, 1);
}
