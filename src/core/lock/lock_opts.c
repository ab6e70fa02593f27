/* lock_opts.c - the options of a lock handle: checked once, at the public border.
 *
 * Owns the callbacks of the handle. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/lock_opts.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/opts.h"
#include "config/option.h"
#include "core/durability.h"
#include "core/lock/lock.h"
#include "core/names.h"
#include <inttypes.h>
#include <string.h>

/* All of the metadata of a handle, with room for the marks of who.c. */
enum { META_MAX = DIBS__WHO_MAX - DIBS__WHO_PLAIN - 16 - 20 };

#define KNOWN_FLAGS                                                            \
    ((uint32_t)(DIBS_LOCK_NO_RENEW | DIBS_LOCK_BARGE | DIBS_LOCK_REENTRANT |   \
                DIBS_LOCK_STICKY))

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
                              "permits and capacity are for semaphores, whose "
                              "mode is permits");
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

static dibs_status copy_identity(dibs__traits *tr, dibs_error *err)
{
    const char *given = tr->opts.identity;

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
    tr->identity = dibsx_strdup(given);
    if (!tr->identity)
        return dibsx_nomem(err, "a lock");
    return DIBS_OK;
}

static dibs_status copy_label(dibs__traits *tr, dibs_error *err)
{
    if (!tr->opts.label)
        return DIBS_OK;
    tr->label = dibsx_strdup(tr->opts.label);
    if (!tr->label)
        return dibsx_nomem(err, "a lock");
    dibs__text_clean(tr->label);
    return DIBS_OK;
}

/* The texts become one, with tabs between them. */
static dibs_status copy_meta(dibs__traits *tr, dibs_error *err)
{
    const char *const *meta = tr->opts.meta;
    dibsx_buf buf;
    dibs_status rc = DIBS_OK;

    if (!meta || !*meta)
        return DIBS_OK;
    dibsx_buf_init(&buf, META_MAX);
    dibsx_buf_expect(&buf, META_MAX);
    if (!dibsx_buf_ok(&buf))
        rc = dibsx_nomem(err, "a lock");
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
        tr->meta = dibsx_buf_take(&buf);
        if (!tr->meta)
            rc = dibsx_nomem(err, "a lock");
    }
    dibsx_buf_fini(&buf);
    return rc;
}

/* Writes the options that a lease and an ask have to themselves. */
static void spread_opts(const dibs_client *cl, dibs__traits *tr)
{
    const dibs_lock_opts *opts = &tr->opts;
    bool permits = opts->mode == DIBS_PERMITS;

    tr->terms = (dibs__terms){
        .ttl_ms = opts->ttl_ms,
        .hold_max_ms = opts->hold_max_ms,
        .delay_ms = opts->lock_delay_ms,
        .progress_ms = opts->progress_ms,
        .renew_every_ms =
            opts->renew_every_ms ? opts->renew_every_ms : cl->renew_every_ms,
        .manual = (opts->flags & DIBS_LOCK_NO_RENEW) != 0,
        /* A sticky one is kept after its release only while no other waits; a lock delay
         * counts from the first renewal on. */
        .prompt =
            (opts->flags & DIBS_LOCK_STICKY) != 0 || opts->lock_delay_ms > 0,
        .confirm = tr->replicas > 0,
    };
    tr->ask = (dibs__ask){
        .mode = (dibs__mode)opts->mode,
        .permits = permits ? opts->permits : 1,
        .capacity = permits ? opts->capacity : 0,
        .flags = (opts->flags & DIBS_LOCK_BARGE ? DIBS__ASK_BARGE : 0) |
                 (tr->hears ? DIBS__ASK_TELL : 0),
    };
}

/* Checks the options of a draft and copies its texts. */
static dibs_status
read_traits(const dibs_client *cl, dibs__traits *tr, dibs_error *err)
{
    dibs_status rc;

    fill_in(cl, &tr->opts);
    rc = check_mode(&tr->opts, err);
    if (rc == DIBS_OK)
        rc = check_flags(&tr->opts, err);
    if (rc == DIBS_OK)
        rc = check_spans(&tr->opts, err);
    if (rc == DIBS_OK)
        rc = copy_identity(tr, err);
    if (rc == DIBS_OK)
        rc = copy_label(tr, err);
    if (rc == DIBS_OK)
        rc = copy_meta(tr, err);
    if (rc == DIBS_OK)
        rc = dibs__durability_read(tr->opts.durability, cl->replicas,
                                   &tr->replicas, err);
    return rc;
}

static dibs_status
copy_callbacks(dibs_lock *lock, const dibs_lock_opts *opts, dibs_error *err)
{
    if (!opts->on_lost && !opts->on_yield)
        return DIBS_OK;
    lock->callbacks = dibsx_zalloc(sizeof(*lock->callbacks));
    if (!lock->callbacks)
        return dibsx_nomem(err, "a lock");
    *lock->callbacks =
        (dibs__lock_callbacks){opts->on_lost, opts->on_lost_arg, opts->on_yield,
                               opts->on_yield_arg};
    return DIBS_OK;
}

/* Takes out of the options what belongs to one handle or was copied, so that those of
 * handles that are otherwise alike are the same. */
static void strip_opts(dibs_lock_opts *opts)
{
    opts->size = sizeof(*opts);
    opts->priority = 0;
    opts->durability = NULL;
    opts->identity = NULL;
    opts->label = NULL;
    opts->meta = NULL;
    opts->on_lost = NULL;
    opts->on_lost_arg = NULL;
    opts->on_yield = NULL;
    opts->on_yield_arg = NULL;
}

dibs_status
dibs__opts_read(dibs_lock *lock, const dibs_lock_opts *opts, dibs_error *err)
{
    dibs__traits draft = {.users = 0};
    dibs_status rc = dibsx_opts_copy(&draft.opts, sizeof(draft.opts), opts,
                                     "DIBS_LOCK_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    rc = read_traits(lock->cl, &draft, err);
    if (rc == DIBS_OK)
        rc = copy_callbacks(lock, &draft.opts, err);
    if (rc != DIBS_OK) {
        dibs__traits_fini(&draft);
        return rc;
    }
    lock->priority = draft.opts.priority;
    draft.hears = dibs__opts_hear(&draft.opts);
    strip_opts(&draft.opts);
    spread_opts(lock->cl, &draft);
    pthread_mutex_lock(&lock->cl->mutex);
    lock->traits = dibs__traits_keep(lock->cl, &draft);
    pthread_mutex_unlock(&lock->cl->mutex);
    return lock->traits ? DIBS_OK : dibsx_nomem(err, "a lock");
}

void dibs__opts_fini(dibs_lock *lock)
{
    dibs__traits_drop(lock->cl, lock->traits);
    dibsx_free(lock->callbacks);
}

bool dibs__opts_hear(const dibs_lock_opts *opts)
{
    return (opts->flags & DIBS_LOCK_STICKY) || opts->on_yield;
}
