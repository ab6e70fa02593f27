/* operation.c - one operation under the lock, as the log tells it.
 *
 * Owns the lock while it runs. Any thread of a worker. */
/* SPDX-License-Identifier: MIT */
#include "demo/operation.h"
#include "base/clock.h"
#include "base/fail.h"

#define FACT_TEXT(key, text)                                                   \
    {                                                                          \
        (key), (text), 0                                                       \
    }
#define FACT(key, number)                                                      \
    {                                                                          \
        (key), NULL, (int64_t)(number)                                         \
    }

/* To be stopped is no failure. */
static dibs__demo_mood mood_of(const dibs_error *err)
{
    return err->status == DIBS_CANCELLED ? DIBS__DEMO_PLAIN : DIBS__DEMO_BAD;
}

static void tell_not_got(const dibs__demo_work *work, const char *name,
                         int64_t waited_ms, const dibs_error *err)
{
    dibs__demo_say(&work->log, mood_of(err), "lock_not_acquired",
                   DIBS__DEMO_FACTS(FACT_TEXT("operation", name),
                                    FACT("wait_ms", waited_ms),
                                    FACT_TEXT("status",
                                              dibs_status_name(err->status))),
                   "Could not acquire lock after %lldms for: %s (%s)",
                   (long long)waited_ms, name,
                   err->status == DIBS_CANCELLED ? "the worker stops"
                                                 : err->message);
}

static void
tell_value(const dibs__demo_work *work, dibs__demo_mood mood, const char *event,
           const char *what, const dibs__demo_ad *ad)
{
    char text[600] = "null";

    if (ad)
        dibs__demo_ad_text(ad, text, sizeof(text));
    dibs__demo_say(&work->log, mood, event,
                   DIBS__DEMO_FACTS(FACT_TEXT("value", text)), "%s %s", what,
                   text);
}

/* The work itself: what is there is read, time passes, what is new is written. */
static dibs_status
update(dibs__demo_work *work, dibs_lock *lock, const char *name,
       int64_t duration_ms, dibs__demo_ad *ad, dibs_error *err)
{
    dibs__demo_ad before;
    uint64_t version;
    dibs_status rc = dibs__demo_ad_get(work->data, &before, &version, err);

    if (rc != DIBS_OK && rc != DIBS_NOTFOUND && rc != DIBS_INVALID)
        return rc;
    tell_value(work, DIBS__DEMO_PLAIN, "value_before",
               "Current " DIBS__DEMO_VALUE " value:",
               rc == DIBS_OK ? &before : NULL);
    rc = dibs__demo_sleep(work, lock, duration_ms, err);
    if (rc != DIBS_OK)
        return rc;
    if (dibs_lock_check(lock) != DIBS_OK)
        return dibsx_fail(err, DIBS_LOST, "the lock was lost");
    dibs__demo_ad_fill(ad, work->id, "%s by Worker %d", name, work->id);
    rc = dibs__demo_ad_put(work->data, ad, version, err);
    if (rc == DIBS_OK)
        tell_value(work, DIBS__DEMO_GOOD, "value_after",
                   "Updated " DIBS__DEMO_VALUE " to:", ad);
    return rc;
}

static void tell_end(const dibs__demo_work *work, const char *name,
                     const dibs_error *err, int64_t took_ms)
{
    if (err->status == DIBS_OK)
        dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "operation_done",
                       DIBS__DEMO_FACTS(FACT_TEXT("operation", name),
                                        FACT("took_ms", took_ms)),
                       "Operation took %lldms", (long long)took_ms);
    else
        dibs__demo_say(&work->log, mood_of(err), "operation_failed",
                       DIBS__DEMO_FACTS(FACT_TEXT("operation", name),
                                        FACT("took_ms", took_ms),
                                        FACT_TEXT("status", dibs_status_name(
                                                                err->status))),
                       "Operation given up after %lldms: %s",
                       (long long)took_ms, err->message);
}

/* The times are of the boot clock, which all processes of a machine share: the
 * lock was relied on from the first to the second. */
static void
tell_release(const dibs__demo_work *work, const char *name, dibs_status rc,
             uint64_t fence, dibsx_nsec from_at, dibsx_nsec until_at)
{
    dibs__demo_log log = work->log;
    const dibs__demo_fact *facts =
        DIBS__DEMO_FACTS(FACT_TEXT("operation", name), FACT("fence", fence),
                         FACT_TEXT("status", dibs_status_name(rc)),
                         FACT("held_from_us", from_at / 1000),
                         FACT("held_until_us", until_at / 1000));

    log.at = until_at;
    if (rc == DIBS_OK)
        dibs__demo_say(&log, DIBS__DEMO_GOOD, "lock_released", facts,
                       "Lock released for: %s", name);
    else
        dibs__demo_say(&log, DIBS__DEMO_BAD, "lock_released", facts,
                       "Lock was gone at its release for: %s (%s)", name,
                       dibs_status_text(rc));
}

dibs_status
dibs__demo_operate(dibs__demo_work *work, const char *name, int64_t duration_ms,
                   int64_t wait_ms, dibs__demo_ad *ad, dibs_error *err)
{
    const dibsx_nsec asked_at = dibsx_now();
    dibsx_nsec from_at, until_at;
    dibs__demo_hold hold;
    uint64_t fence;
    dibs_status rc, released;

    dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "lock_wanted",
                   DIBS__DEMO_FACTS(FACT_TEXT("operation", name)),
                   "Attempting to acquire lock for: %s", name);
    rc = dibs__demo_take(work, &hold, name, wait_ms, err);
    from_at = dibsx_now();
    if (rc != DIBS_OK) {
        tell_not_got(work, name, (from_at - asked_at) / DIBSX_MS, err);
        return rc;
    }
    fence = dibs_lock_fence(hold.lock);
    dibs__demo_say(
        &work->log, DIBS__DEMO_GOOD, "lock_acquired",
        DIBS__DEMO_FACTS(FACT_TEXT("operation", name), FACT("fence", fence),
                         FACT("wait_ms", (from_at - asked_at) / DIBSX_MS)),
        "Lock acquired after %lldms for: %s",
        (long long)((from_at - asked_at) / DIBSX_MS), name);
    *err = (dibs_error){DIBS_OK, false, "", ""};
    rc = update(work, hold.lock, name, duration_ms, ad, err);
    err->status = rc;
    tell_end(work, name, err, (dibsx_now() - from_at) / DIBSX_MS);
    until_at = dibsx_now();
    released = dibs__demo_drop(work, &hold, NULL);
    tell_release(work, name, released, fence, from_at, until_at);
    return rc;
}
