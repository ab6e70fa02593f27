/* define.c - see define.h. */
/* SPDX-License-Identifier: MIT */
#include "node/define.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>

static void put_text(dibsx_json *js, const char *key, const char *text)
{
    if (text)
        dibsx_json_pair_text(js, key, text);
}

/* A file has units. */
static void put_ms(dibsx_json *js, const char *key, int64_t ms)
{
    char text[32];

    if (ms == 0)
        return;
    (void)snprintf(text, sizeof(text), "%" PRId64 "ms", ms);
    dibsx_json_pair_text(js, key, text);
}

static void put_number(dibsx_json *js, const char *key, int64_t number)
{
    if (number != 0)
        dibsx_json_pair_int(js, key, number);
}

/* Without a key the options of a lock would do nothing: the reader of jobs refuses it. */
static void put_lock(dibsx_json *js, const dibs_job_opts *opts)
{
    if (!opts->lock_key && opts->lock_ttl_ms == 0 && opts->retries == 0 &&
        opts->retry_delay_ms == 0 && !opts->on_busy)
        return;
    dibsx_json_key(js, "lock");
    dibsx_json_open(js, '{');
    put_text(js, "key", opts->lock_key);
    put_ms(js, "ttl", opts->lock_ttl_ms);
    put_number(js, "retries", opts->retries);
    put_ms(js, "retry_delay", opts->retry_delay_ms);
    put_text(js, "on_busy", opts->on_busy);
    dibsx_json_close(js, '}');
}

static void put_retry(dibsx_json *js, const dibs_job_opts *opts)
{
    if (opts->attempts == 0 && opts->attempt_delay_ms == 0 && !opts->retry_lost)
        return;
    dibsx_json_key(js, "retry");
    dibsx_json_open(js, '{');
    put_number(js, "attempts", opts->attempts);
    put_ms(js, "delay", opts->attempt_delay_ms);
    if (opts->retry_lost) {
        dibsx_json_key(js, "on");
        dibsx_json_open(js, '[');
        dibsx_json_text(js, "failed");
        dibsx_json_text(js, "timeout");
        dibsx_json_text(js, "lost");
        dibsx_json_close(js, ']');
    }
    dibsx_json_close(js, '}');
}

void dibs__define_job(dibsx_buf *out, const char *name,
                      const dibs_job_opts *opts)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_text(&js, name);
    dibsx_buf_puts(out, ": ");
    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_text(&js, "call", opts->call ? opts->call : name);
    put_text(&js, "description", opts->description);
    put_text(&js, "schedule", opts->schedule);
    put_text(&js, "zone", opts->zone);
    put_lock(&js, opts);
    put_text(&js, "concurrency", opts->concurrency);
    if (opts->singleton)
        dibsx_json_pair_bool(&js, "singleton", true);
    put_retry(&js, opts);
    put_ms(&js, "timeout", opts->timeout_ms);
    put_ms(&js, "run_timeout", opts->run_timeout_ms);
    if (opts->more && opts->more[0])
        dibsx_buf_printf(out, ", %s", opts->more);
    dibsx_json_close(&js, '}');
}
