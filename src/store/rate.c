/* rate.c - the rule of rate limits. Pure.
 *
 * `used` is what is out, in parts of 1/count of a microsecond: a token is period_us
 * of these. So no division has a rest that is forgotten, and rates do not drift. */
/* SPDX-License-Identifier: MIT */
#include "store/rate.h"
#include "base/fail.h"
#include <inttypes.h>

static int64_t find_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static dibs_status check_signs(const dibs__draw *draw, dibs_error *err)
{
    if (draw->count < 1 || draw->period_us < 1)
        return dibsx_fail(err, DIBS_INVALID,
                          "a rate is at least one token in a period of at "
                          "least a microsecond");
    if (draw->burst < 1)
        return dibsx_fail(err, DIBS_INVALID,
                          "the burst is 0, so nothing could ever be granted; "
                          "make it 1 at least");
    if (draw->least < 1 || draw->cost < draw->least || draw->wait_us < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a draw asks for at least one token, and its wait is "
                          "not negative");
    if (draw->cost > draw->burst)
        return dibsx_fail(err, DIBS_INVALID,
                          "%" PRId64 " tokens at once are more than the burst "
                          "of %" PRId64 " ever allows; raise the burst",
                          draw->cost, draw->burst);
    return DIBS_OK;
}

dibs_status
dibs__rate_check(const dibs__draw *draw, dibs__draw *out, dibs_error *err)
{
    dibs_status rc = check_signs(draw, err);
    int64_t divisor, full, wait_max_us;

    *out = *draw;
    if (rc != DIBS_OK)
        return rc;
    divisor = find_divisor(draw->count, draw->period_us);
    out->count /= divisor;
    out->period_us /= divisor;
    if (out->count > DIBS__RATE_MAX ||
        __builtin_mul_overflow(out->burst, out->period_us, &full) ||
        full > DIBS__RATE_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a burst of %" PRId64 " at %" PRId64 " in %" PRId64
                          " us cannot be counted exactly; use a smaller burst "
                          "or a rounder rate",
                          draw->burst, draw->count, draw->period_us);
    wait_max_us = (DIBS__RATE_MAX - full) / out->count;
    if (out->wait_us > wait_max_us)
        out->wait_us = wait_max_us;
    return DIBS_OK;
}

/* The tokens that are out stay as many when the rate changes. The result is rounded,
 * by far less than a token. */
static int64_t
convert_used(const dibs__rate *rate, int64_t period_us, int64_t used)
{
    double scaled =
        (double)used * ((double)period_us / (double)rate->period_us);
    int64_t whole;

    if (scaled >= (double)DIBS__RATE_MAX)
        return DIBS__RATE_MAX;
    whole = (int64_t)scaled;
    return whole + ((double)whole < scaled);
}

/* At the rate in force when it was written. */
static int64_t count_own(const dibs__rate *rate, int64_t now_us)
{
    int64_t used;

    if (rate->count == 0 || rate->tat_us < now_us)
        return 0;
    if (__builtin_mul_overflow(rate->tat_us - now_us, rate->count, &used) ||
        used > DIBS__RATE_MAX - rate->rest)
        used = DIBS__RATE_MAX - rate->rest;
    return used + rate->rest;
}

static int64_t
count_used(const dibs__rate *rate, const dibs__draw *draw, int64_t now_us)
{
    int64_t used = count_own(rate, now_us);

    return used == 0 || (rate->count == draw->count &&
                         rate->period_us == draw->period_us)
               ? used
               : convert_used(rate, draw->period_us, used);
}

/* The clock of the store was set back: what is out comes back as soon as it would
 * have. Kept also after a refusal, or nothing would come back before the old time. */
static bool follow_clock(dibs__rate *rate, int64_t now_us)
{
    if (rate->count == 0 || now_us >= rate->last_us)
        return false;
    rate->tat_us -= rate->last_us - now_us;
    rate->last_us = now_us;
    return true;
}

bool dibs__rate_draw(dibs__rate *rate, const dibs__draw *draw, int64_t now_us,
                     dibs__drawn *out)
{
    bool moved = follow_clock(rate, now_us);
    int64_t used = count_used(rate, draw, now_us);
    int64_t room = draw->burst * draw->period_us - used;
    int64_t reach = room + draw->wait_us * draw->count;
    int64_t granted = reach > 0 ? reach / draw->period_us : 0;

    *out = (dibs__drawn){.remaining = room > 0 ? room / draw->period_us : 0};
    if (granted > draw->cost)
        granted = draw->cost;
    if (granted < draw->least) {
        out->wait_us =
            divide_up(draw->least * draw->period_us - room, draw->count);
        return moved;
    }
    used += granted * draw->period_us;
    room -= granted * draw->period_us;
    *rate = (dibs__rate){.tat_us = now_us + used / draw->count,
                         .last_us = now_us,
                         .rest = used % draw->count,
                         .count = draw->count,
                         .period_us = draw->period_us};
    out->granted = granted;
    out->wait_us = room < 0 ? divide_up(-room, draw->count) : 0;
    out->remaining = room > 0 ? room / draw->period_us : 0;
    return true;
}

bool dibs__rate_show(const dibs__rate *rate, int64_t now_us,
                     dibs__rate_row *row)
{
    dibs__rate now = *rate;

    if (rate->count < 1 || rate->period_us < 1 || rate->rest < 0 ||
        rate->rest >= rate->count || rate->tat_us < 0 || rate->last_us < 0)
        return false;
    (void)follow_clock(&now, now_us);
    row->count = now.count;
    row->period_us = now.period_us;
    row->out = divide_up(count_own(&now, now_us), now.period_us);
    row->full_us = now.tat_us - now_us + (now.rest > 0);
    return now.tat_us >= now_us;
}

bool dibs__rate_credible(const dibs__draw *draw, const dibs__drawn *out)
{
    if (out->wait_us < 0 || out->remaining < 0 || out->remaining > draw->burst)
        return false;
    return out->granted == 0 ||
           (out->granted >= draw->least && out->granted <= draw->cost);
}

dibs_status dibs__rate_status(const dibs__drawn *out, dibs_error *err)
{
    if (out->granted > 0)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_BUSY,
                      "the limit is reached; try again in %" PRId64 " ms",
                      divide_up(out->wait_us, 1000));
}
