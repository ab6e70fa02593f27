/* memo.h - an answer of the store that many askers share for a while. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_MEMO_H
#define DIBS_SERVE_MEMO_H

#include "base/clock.h"
#include "base/json.h"
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdatomic.h>

/* Writes the text to be shared; `arg` is that of the asker for whom it is made. Blocks for
 * the store. */
typedef dibs_status
dibs__serve_memo_fn(dibs_client *cl, const char *prefix, void *arg,
                    dibsx_json *js, dibs_error *err);

typedef struct dibs__serve_memo {
    pthread_mutex_t mutex; /* held while it is made: others wait for that */
    dibsx_nsec until;      /* it is fresh until then */
    atomic_uint changes;   /* dibs__serve_memo_forget() was called so often */
    unsigned seen;         /* of them, when it was made */
    dibs_status rc;        /* of making it: a failure is shared too */
    dibs_error err;
    char prefix[DIBS_NAME_MAX + 1];
    dibsx_buf text;
} dibs__serve_memo;

void dibs__serve_memo_init(dibs__serve_memo *memo);
void dibs__serve_memo_fini(dibs__serve_memo *memo);

/* Appends the text for a prefix to `js`, as one value, or as the first pairs of an object;
 * makes it anew when it is older than `keep_ms`, or for another prefix. */
DIBS_MUST_CHECK dibs_status dibs__serve_memo_put(
    dibs__serve_memo *memo, dibs_client *cl, const char *prefix,
    int64_t keep_ms, dibs__serve_memo_fn *make, void *arg, dibsx_json *js,
    dibs_error *err);

/* Something has changed: the next asker has it made anew. */
void dibs__serve_memo_forget(dibs__serve_memo *memo);

#endif
