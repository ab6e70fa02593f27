/* memo.c - an answer of the store that many askers share for a while. Threads that may
 * block. */
/* SPDX-License-Identifier: MIT */
#include "serve/memo.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 8 * 1024 * 1024 };

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
static dibs_status
make_anew(dibs__serve_memo *memo, dibs_client *cl, const char *prefix,
          dibs__serve_memo_fn *make, void *arg, dibs_error *err)
{
    dibsx_json js;
    dibs_status rc;

    memo->until = 0;
    snprintf(memo->prefix, sizeof(memo->prefix), "%s", prefix);
    dibsx_buf_reset(&memo->text);
    dibsx_json_init(&js, &memo->text);
    rc = make(cl, prefix, arg, &js, err);
    if (rc == DIBS_OK && !dibsx_buf_ok(&memo->text))
        rc = dibsx_nomem(err, "the answer of the store");
    return rc;
}

dibs_status dibs__serve_memo_put(dibs__serve_memo *memo, dibs_client *cl,
                                 const char *prefix, int64_t keep_ms,
                                 dibs__serve_memo_fn *make, void *arg,
                                 dibsx_json *js, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&memo->mutex);
    if (dibsx_now() >= memo->until || strcmp(memo->prefix, prefix) != 0) {
        rc = make_anew(memo, cl, prefix, make, arg, err);
        if (rc == DIBS_OK)
            memo->until = dibsx_after_ms(dibsx_now(), keep_ms);
    }
    if (rc == DIBS_OK) {
        dibsx_buf_puts(js->out, dibsx_buf_text(&memo->text));
        js->comma = true;
    }
    pthread_mutex_unlock(&memo->mutex);
    return rc;
}

void dibs__serve_memo_forget(dibs__serve_memo *memo)
{
    pthread_mutex_lock(&memo->mutex);
    memo->until = 0;
    pthread_mutex_unlock(&memo->mutex);
}
