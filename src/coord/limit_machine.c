/* limit_machine.c - one client's part of a rate limit, without I/O; see
 * limit_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/limit_machine.h"
#include "base/fail.h"

void dibs__limiter_init(dibs__limiter *lm, const dibs__draw *rate,
                        int64_t chunk, dibs_away policy,
                        const dibs__draw *share)
{
    *lm = (dibs__limiter){.rate = *rate,
                          .chunk = chunk,
                          .policy = policy,
                          .share = *share};
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool dibs__limiter_spend(dibs__limiter *lm, int64_t n, dibsx_nsec now,
                         bool *low)
{
    int64_t left = atomic_load_explicit(&lm->stock, memory_order_relaxed);

    *low = false;
    if (now >= atomic_load_explicit(&lm->stock_until, memory_order_relaxed))
        return false;
    do {
        if (left < n)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&lm->stock, &left, left - n,
                                                    memory_order_relaxed,
                                                    memory_order_relaxed));
    *low = (left - n) * 2 <= lm->chunk &&
           now >= atomic_load_explicit(&lm->fetch_at, memory_order_relaxed);
    return true;
}

/* The tokens that the stock lacks. One that is too old counts as empty. */
static int64_t find_lack(dibs__limiter *lm, dibsx_nsec now)
{
    if (now >= atomic_load(&lm->stock_until))
        atomic_store(&lm->stock, 0);
    return lm->chunk - atomic_load(&lm->stock) - lm->asked;
}

static void add_stock(dibs__limiter *lm, int64_t granted, dibsx_nsec sent_at,
                      dibsx_nsec now)
{
    if (granted <= 0)
        return;
    if (now >= atomic_load(&lm->stock_until))
        atomic_store(&lm->stock, 0);
    atomic_fetch_add(&lm->stock, granted);
    atomic_store(&lm->stock_until,
                 dibsx_after_ms(sent_at, DIBS__LIMIT_STOCK_MS));
}

static void
note_refusal(dibs__limiter *lm, int64_t n, int64_t wait_us, dibsx_nsec now)
{
    dibsx_nsec most = dibsx_after_ms(now, DIBS__LIMIT_REFUSED_MS);

    lm->refused = n;
    lm->refused_until = wait_us < DIBS__LIMIT_REFUSED_MS * INT64_C(1000)
                            ? now + wait_us * 1000
                            : most;
    atomic_store(&lm->fetch_at, lm->refused_until);
}

static dibs__take_todo
decide_alone(dibs__limiter *lm, dibs__take *take, dibsx_nsec now)
{
    dibs__draw draw = lm->share;
    dibs__drawn drawn;

    if (lm->policy == DIBS_AWAY_OPEN)
        return DIBS__TAKE_DONE;
    draw.cost = draw.least = take->n;
    draw.wait_us = least_of(take->wait_us, draw.wait_us);
    /* A call for more than the share has at once waits until all of it is there. */
    if (draw.burst < take->n)
        draw.burst = take->n;
    (void)dibs__rate_draw(&lm->local, &draw, now / 1000, &drawn);
    take->sleep_us = take->retry_us = drawn.wait_us;
    return drawn.granted > 0 ? DIBS__TAKE_DONE : DIBS__TAKE_REFUSED;
}

dibs__take_todo dibs__limiter_next(dibs__limiter *lm, dibs__take *take,
                                   dibsx_nsec now, dibs__draw *draw)
{
    bool low;

    if (lm->away && lm->policy != DIBS_AWAY_FAIL)
        return decide_alone(lm, take, now);
    *draw = lm->rate;
    draw->cost = draw->least = take->n;
    draw->wait_us = least_of(take->wait_us, lm->rate.wait_us);
    if (lm->chunk == 0 || take->ahead)
        return DIBS__TAKE_DRAW;
    if (dibs__limiter_spend(lm, take->n, now, &low))
        return DIBS__TAKE_DONE;
    if (now < lm->refused_until && take->n >= lm->refused) {
        take->ahead = true;
        take->retry_us = (lm->refused_until - now) / 1000 + 1;
        return take->wait_us > 0 ? DIBS__TAKE_DRAW : DIBS__TAKE_REFUSED;
    }
    take->asked = least_of(find_lack(lm, now), lm->rate.burst - take->n);
    if (take->asked < 0)
        take->asked = 0;
    lm->asked += take->asked;
    draw->cost += take->asked;
    draw->wait_us = 0;
    return DIBS__TAKE_DRAW;
}

dibs__take_todo
dibs__limiter_drawn(dibs__limiter *lm, dibs__take *take, dibsx_nsec sent_at,
                    dibsx_nsec now, dibs_status rc, const dibs__drawn *drawn)
{
    lm->asked -= take->asked;
    take->asked = 0;
    if (dibsx_is_away(rc) && lm->policy != DIBS_AWAY_FAIL) {
        lm->away = true;
        lm->probe_at = dibsx_after_ms(now, DIBS__LIMIT_PROBE_MS);
        return decide_alone(lm, take, now);
    }
    if (rc == DIBS_OK) {
        add_stock(lm, drawn->granted - take->n, sent_at, now);
        take->sleep_us = drawn->wait_us;
        return DIBS__TAKE_DONE;
    }
    if (rc != DIBS_BUSY)
        return DIBS__TAKE_FAILED;
    take->retry_us = drawn->wait_us;
    if (lm->chunk == 0 || take->ahead)
        return DIBS__TAKE_REFUSED;
    note_refusal(lm, take->n, drawn->wait_us, now);
    take->ahead = true;
    return take->wait_us > 0 ? DIBS__TAKE_DRAW : DIBS__TAKE_REFUSED;
}

bool dibs__limiter_fetch(dibs__limiter *lm, dibsx_nsec now, dibs__draw *draw)
{
    int64_t lack = lm->away || lm->chunk == 0 ? 0 : find_lack(lm, now);

    if (lack <= 0 || now < atomic_load(&lm->fetch_at))
        return false;
    *draw = lm->rate;
    draw->cost = lack;
    draw->least = 1;
    draw->wait_us = 0;
    lm->asked += lack;
    return true;
}

void dibs__limiter_fetched(dibs__limiter *lm, int64_t cost, dibsx_nsec sent_at,
                           dibsx_nsec now, dibs_status rc,
                           const dibs__drawn *drawn)
{
    lm->asked -= cost;
    if (rc == DIBS_OK)
        add_stock(lm, drawn->granted, sent_at, now);
    else if (rc == DIBS_BUSY)
        note_refusal(lm, 1, drawn->wait_us, now);
    else /* A call finds out for itself. */
        atomic_store(&lm->fetch_at,
                     dibsx_after_ms(now, DIBS__LIMIT_REFUSED_MS));
}

bool dibs__limiter_probes(const dibs__limiter *lm, dibsx_nsec now)
{
    return lm->away && now >= lm->probe_at;
}

void dibs__limiter_probed(dibs__limiter *lm, dibsx_nsec now, bool back)
{
    lm->away = !back;
    lm->probe_at = dibsx_after_ms(now, DIBS__LIMIT_PROBE_MS);
}
