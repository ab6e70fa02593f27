/* warmup.c - the guard that lets the shared value be initialised once a minute.
 *
 * Owns nothing. Runs on the worker's thread that starts it up. */
/* SPDX-License-Identifier: MIT */
#include "demo/warmup.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/rand.h"
#include <string.h>

enum { ATTEMPTS = 3, PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 500 };

/* "2026-01-21T00:00": what two moments of a minute have in common. */
enum { MINUTE_LEN = 16 };

/* True when the guard is of this minute and the value is there. */
static bool valid(dibs__demo_work *work, dibs__demo_ad *ad, dibs_status *rc,
                  dibs_error *err)
{
    dibs_value stamp = {0};
    uint64_t version;
    char now[40];
    bool fine;

    dibsx_wall_text(dibsx_wall_us(), now, sizeof(now));
    *rc = dibs_state_get(work->data, DIBS__DEMO_WARMUP, &stamp, err);
    fine = *rc == DIBS_OK && stamp.len > MINUTE_LEN &&
           memcmp(stamp.data, now, MINUTE_LEN) == 0;
    dibs_value_free(&stamp);
    if (!fine)
        return false;
    *rc = dibs__demo_ad_get(work->data, ad, &version, err);
    return *rc == DIBS_OK;
}

static void tell_existing(const dibs__demo_work *work, const dibs__demo_ad *ad)
{
    char text[600];

    dibs__demo_ad_text(ad, text, sizeof(text));
    dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "warmup_skipped",
                   DIBS__DEMO_FACTS({"value", text, 0}),
                   DIBS__DEMO_WARMUP
                   " is of this minute. Using existing " DIBS__DEMO_VALUE
                   ": %s",
                   text);
}

/* The lock is held. */
static dibs_status initialise(dibs__demo_work *work, dibs_error *err)
{
    dibs__demo_ad ad;
    uint64_t version;
    char text[600];
    dibs_status rc = dibs__demo_ad_get(work->data, &ad, &version, err);

    if (rc == DIBS_NOTFOUND)
        dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "value_missing", NULL,
                       DIBS__DEMO_VALUE " does not exist. Creating initial "
                                        "value...");
    else if (rc == DIBS_OK || rc == DIBS_INVALID)
        dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "value_old", NULL,
                       DIBS__DEMO_WARMUP " is not of this minute. Creating "
                                         "initial value...");
    else
        return rc;
    dibs__demo_ad_fill(&ad, work->id, "Initial Worker %d", work->id);
    rc = dibs__demo_ad_put(work->data, &ad, version, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__demo_ad_text(&ad, text, sizeof(text));
    dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "value_created",
                   DIBS__DEMO_FACTS({"value", text, 0}),
                   "Created " DIBS__DEMO_VALUE " key: %s", text);
    rc = dibs_state_set(work->data, DIBS__DEMO_WARMUP, ad.time, strlen(ad.time),
                        0, NULL, err);
    if (rc == DIBS_OK)
        dibs__demo_say(&work->log, DIBS__DEMO_PLAIN, "warmup_set",
                       DIBS__DEMO_FACTS({"value", ad.time, 0}),
                       "Set " DIBS__DEMO_WARMUP " to: %s", ad.time);
    return rc;
}

/* Others may have been first while this one waited for the lock. */
static dibs_status initialise_once(dibs__demo_work *work, dibs_error *err)
{
    dibs__demo_hold hold;
    dibs__demo_ad ad;
    dibs_status rc = dibs__demo_take(work, &hold, "Warm-up", -1, err);

    if (rc != DIBS_OK)
        return rc;
    if (valid(work, &ad, &rc, err)) {
        tell_existing(work, &ad);
        rc = DIBS_OK;
    } else {
        rc = initialise(work, err);
    }
    (void)dibs__demo_drop(work, &hold, NULL);
    return rc;
}

dibs_status dibs__demo_warm_up(dibs__demo_work *work, dibs_error *err)
{
    dibsx_prng prng = {(uint64_t)dibsx_wall_us() + (uint64_t)work->id};
    dibs_status rc = DIBS_OK;
    dibs__demo_ad ad;

    for (int i = 0; i < ATTEMPTS; i++) {
        int64_t pause_ms =
            PAUSE_MIN_MS +
            (int64_t)dibsx_prng_below(&prng, PAUSE_MAX_MS - PAUSE_MIN_MS + 1);

        if (i > 0)
            rc = dibs__demo_sleep(work, NULL, pause_ms, err);
        if (rc == DIBS_CANCELLED)
            return rc;
        if (valid(work, &ad, &rc, err)) {
            tell_existing(work, &ad);
            return DIBS_OK;
        }
        rc = DIBS_OK;
    }
    return initialise_once(work, err);
}
