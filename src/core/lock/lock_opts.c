/* lock_opts.c - the options of a lock handle: checked once, at the public border.
 *
 * Owns the copies of its texts. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/lock_opts.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/opts.h"
#include "config/option.h"
#include "core/lock/lock.h"
#include "core/names.h"
#include <inttypes.h>
#include <string.h>

/* All of the metadata of a handle, with room for the marks of who.c. */
enum { META_MAX = DIBS__WHO_MAX - DIBS__WHO_PLAIN - 16 - 20 };

#define KNOWN_FLAGS                                                            \
    ((uint32_t)(DIBS_LOCK_NO_RENEW | DIBS_LOCK_BARGE | DIBS_LOCK_REENTRANT |   \
                DIBS_LOCK_STICKY))

dibs_status dibs__durability_read(const char *text, uint32_t initial,
                                  uint32_t *replicas, dibs_error *err)
{
    *replicas = initial;
    if (!text)
        return DIBS_OK;
    if (!dibs__replicas_parse(text, replicas))
        return dibsx_fail(err, DIBS_INVALID,
                          "durability is async, or wait:K with K from 1 to 9, "
                          "and not %.40s",
                          text);
    return DIBS_OK;
}

static void fill_in(const dibs_client *cl, dibs_lock_opts *opts)
{
    if (opts->ttl_ms == 0)
        opts->ttl_ms = cl->ttl_ms;
    if (opts->retry_delay_ms == 0)
        opts->retry_delay_ms = 100;
    if (opts->mode == DIBS_PERMITS && opts->permits == 0)
        opts->permits = 1;
}

static dibs_status check_mode(const dibs_lock_opts *opts, dibs_error *err)
{
    if (opts->mode < DIBS_EXCLUSIVE || opts->mode > DIBS_PERMITS)
        return dibsx_fail(err, DIBS_INVALID,
                          "the mode is %d, which is no dibs_lock_mode",
                          (int)opts->mode);
    if (opts->mode != DIBS_PERMITS) {
        if (opts->permits > 1 || opts->capacity > 0)
            return dibsx_fail(err, DIBS_INVALID,
                              "permits and capacity are for DIBS_PERMITS");
        return DIBS_OK;
    }
    if (opts->capacity == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a semaphore needs capacity: how many permits there "
                          "are in all");
    if (opts->permits > opts->capacity)
        return dibsx_fail(err, DIBS_INVALID,
                          "%u permits of %u can never be granted",
                          (unsigned)opts->permits, (unsigned)opts->capacity);
    return DIBS_OK;
}

/* A sticky lease has no end that a limit could count from. Permits that are
 * kept would be missing to clients that never ask for all of them. */
static dibs_status check_flags(const dibs_lock_opts *opts, dibs_error *err)
{
    if (opts->flags & ~KNOWN_FLAGS)
        return dibsx_fail(err, DIBS_INVALID, "the flags 0x%x are unknown",
                          (unsigned)opts->flags);
    if (opts->mode == DIBS_PERMITS &&
        (opts->flags & (DIBS_LOCK_REENTRANT | DIBS_LOCK_STICKY)))
        return dibsx_fail(err, DIBS_INVALID,
                          "a semaphore is neither reentrant nor sticky");
    if ((opts->flags & DIBS_LOCK_STICKY) &&
        ((opts->flags & DIBS_LOCK_NO_RENEW) || opts->hold_min_ms > 0 ||
         opts->hold_max_ms > 0 || opts->progress_ms > 0))
        return dibsx_fail(err, DIBS_INVALID,
                          "a sticky lock is renewed until somebody wants it: "
                          "no hold_min_ms, hold_max_ms, progress_ms or "
                          "DIBS_LOCK_NO_RENEW");
    return DIBS_OK;
}

static dibs_status check_spans(const dibs_lock_opts *opts, dibs_error *err)
{
    if (!dibs__ttl_ok(opts->ttl_ms))
        return dibs__ttl_fail(err);
    if (opts->retry_delay_ms < 0 || opts->hold_min_ms < 0 ||
        opts->hold_max_ms < 0 || opts->progress_ms < 0 ||
        opts->lock_delay_ms < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "retry_delay_ms, hold_min_ms, hold_max_ms, "
                          "progress_ms or lock_delay_ms is negative");
    if (opts->renew_every_ms != 0 &&
        (opts->renew_every_ms < DIBS__RENEW_MIN_MS ||
         opts->renew_every_ms > opts->ttl_ms / DIBS_RENEWALS_PER_TTL))
        return dibsx_fail(err, DIBS_INVALID,
                          "renew_every_ms is %" PRId64 "; it must be from %d "
                          "to a third of ttl_ms, %" PRId64
                          ", so that a renewal may fail without a loss",
                          opts->renew_every_ms, DIBS__RENEW_MIN_MS,
                          opts->ttl_ms / DIBS_RENEWALS_PER_TTL);
    if (opts->hold_min_ms > DIBS__HOLD_MIN_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "hold_min_ms must be from 0 to 365 d");
    if (opts->lock_delay_ms > DIBS__TTL_MAX_MS - opts->ttl_ms)
        return dibsx_fail(err, DIBS_INVALID,
                          "ttl_ms and lock_delay_ms are more than 24 h");
    return DIBS_OK;
}

static dibs_status copy_identity(dibs_lock *lock, dibs_error *err)
{
    const char *given = lock->opts.identity;

    if (!given)
        return DIBS_OK;
    if (!*given || strlen(given) >= DIBS__IDENTITY_MAX || *given == '#' ||
        strpbrk(given, " /") ||
        dibs__text_check("the identity", given, NULL) != DIBS_OK)
        return dibsx_fail(err, DIBS_INVALID,
                          "an identity is 1 to %d bytes of UTF-8 without "
                          "spaces, slashes and control characters, and does "
                          "not begin with #",
                          DIBS__IDENTITY_MAX - 1);
    lock->identity = dibsx_strdup(given);
    if (!lock->identity)
        return dibsx_nomem(err, "a lock");
    return DIBS_OK;
}

static dibs_status copy_label(dibs_lock *lock, dibs_error *err)
{
    if (!lock->opts.label)
        return DIBS_OK;
    lock->label = dibsx_strdup(lock->opts.label);
    if (!lock->label)
        return dibsx_nomem(err, "a lock");
    dibs__text_clean(lock->label);
    return DIBS_OK;
}

/* The texts become one, with tabs between them. */
static dibs_status copy_meta(dibs_lock *lock, dibs_error *err)
{
    const char *const *meta = lock->opts.meta;
    dibsx_buf buf;
    dibs_status rc = DIBS_OK;

    if (!meta || !*meta)
        return DIBS_OK;
    dibsx_buf_init(&buf, META_MAX);
    for (; *meta && rc == DIBS_OK; meta++) {
        const char *equals = strchr(*meta, '=');

        rc = dibs__text_check("the metadata", *meta, err);
        if (rc == DIBS_OK && (!equals || equals == *meta))
            rc = dibsx_fail(err, DIBS_INVALID,
                            "metadata is key=value, and %.60s is not", *meta);
        if (buf.len > 0)
            dibsx_buf_puts(&buf, "\t");
        dibsx_buf_puts(&buf, *meta);
    }
    if (rc == DIBS_OK && !dibsx_buf_ok(&buf))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the metadata is longer than %d bytes", META_MAX - 1);
    if (rc == DIBS_OK) {
        lock->meta = dibsx_buf_take(&buf);
        if (!lock->meta)
            rc = dibsx_nomem(err, "a lock");
    }
    dibsx_buf_fini(&buf);
    return rc;
}

/* Files that pass the options on pass these on whole. */
static void spread_opts(dibs_lock *lock)
{
    const dibs_lock_opts *opts = &lock->opts;
    bool permits = opts->mode == DIBS_PERMITS;

    lock->terms = (dibs__terms){
        .ttl_ms = opts->ttl_ms,
        .hold_max_ms = opts->hold_max_ms,
        .delay_ms = opts->lock_delay_ms,
        .progress_ms = opts->progress_ms,
        .renew_every_ms = opts->renew_every_ms ? opts->renew_every_ms
                                               : lock->cl->renew_every_ms,
        .manual = (opts->flags & DIBS_LOCK_NO_RENEW) != 0,
        /* A sticky one is kept after its release only while no other waits; a lock delay
         * counts from the first renewal on. */
        .prompt =
            (opts->flags & DIBS_LOCK_STICKY) != 0 || opts->lock_delay_ms > 0,
    };
    lock->ask = (dibs__ask){
        .owner = lock->lease.owner,
        .mode = (dibs__mode)opts->mode,
        .permits = permits ? opts->permits : 1,
        .capacity = permits ? opts->capacity : 0,
        .flags = (opts->flags & DIBS_LOCK_BARGE ? DIBS__ASK_BARGE : 0) |
                 (dibs__opts_hear(opts) ? DIBS__ASK_TELL : 0),
        .priority = opts->priority,
    };
}

dibs_status
dibs__opts_read(dibs_lock *lock, const dibs_lock_opts *opts, dibs_error *err)
{
    dibs_status rc = dibsx_opts_copy(&lock->opts, sizeof(lock->opts), opts,
                                     "DIBS_LOCK_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    fill_in(lock->cl, &lock->opts);
    rc = check_mode(&lock->opts, err);
    if (rc == DIBS_OK)
        rc = check_flags(&lock->opts, err);
    if (rc == DIBS_OK)
        rc = check_spans(&lock->opts, err);
    if (rc == DIBS_OK)
        rc = copy_identity(lock, err);
    if (rc == DIBS_OK)
        rc = copy_label(lock, err);
    if (rc == DIBS_OK)
        rc = copy_meta(lock, err);
    if (rc == DIBS_OK)
        rc = dibs__durability_read(lock->opts.durability, lock->cl->replicas,
                                   &lock->replicas, err);
    lock->opts.durability = NULL;
    lock->opts.identity = NULL;
    lock->opts.label = NULL;
    lock->opts.meta = NULL;
    spread_opts(lock);
    return rc;
}

void dibs__opts_fini(dibs_lock *lock)
{
    dibsx_free(lock->identity);
    dibsx_free(lock->label);
    dibsx_free(lock->meta);
}

bool dibs__opts_hear(const dibs_lock_opts *opts)
{
    return (opts->flags & DIBS_LOCK_STICKY) || opts->on_yield;
}
