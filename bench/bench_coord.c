/* bench_coord.c - latches, limits, breakers and elections on a Redis server, beside the
 * bare driver.
 *
 *     bench_coord PORT latch BLOCKS    a count at a latch, beside INCR
 *     bench_coord PORT limit BLOCKS    a token, beside INCR and EXPIRE
 *     bench_coord PORT flying BLOCKS   tokens for 50 threads, beside 50 INCR and EXPIRE
 *                                      on the way at once: "BARE OURS RATIO" in each
 *                                      second
 *     bench_coord PORT stock BLOCKS    nanoseconds for a token out of a reservation
 *     bench_coord PORT enter BLOCKS    nanoseconds to enter a closed breaker; call: and to
 *                                      say how the call ended; refused: at an open one.
 *                                      enter4, call4, refused4: of each of 4 threads
 *     bench_coord PORT meter BLOCKS    a report of a breaker, beside INCR and EXPIRE;
 *                                      meters: of 50 threads, as flying
 *     bench_coord PORT trip ROUNDS     from a bad call to another client that knows
 *                                      that the breaker is open, beside PUBLISH to a
 *                                      socket; and when half of the clients and the
 *                                      last one know after it was opened by hand
 *     bench_coord PORT trips ROUNDS    the same to the last of 100 clients
 *     bench_coord PORT leader ROUNDS   from a resignation to the next leader, beside
 *                                      PUBLISH to a socket
 *     bench_coord PORT kill ROUNDS     from the death of a leader with a ttl of 1 s to
 *                                      the next one: "P50 LAST"
 *     bench_coord PORT loss ROUNDS     from the end of the term of a leader whose store
 *                                      is silent to its on_lost: "P50 LAST"
 *
 * bench/pairs.h has the form of latch, limit and meter. trip and leader print "BARE OURS
 * RATIO", trip also "HALF LAST". Medians, in microseconds where nothing else is said. The
 * server should be idle, empty and of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/breakers.h"
#include "bench/coord.h"
#include "bench/duel.h"
#include "bench/limits.h"
#include "bench/pairs.h"

#include <stdio.h>

enum { FLYING = 50, TAKES = 100, STOCK = 100000 };

static void bare_count(void *r)
{
    raw_count(r);
}

static void bare_limit(void *r)
{
    raw_limit(r);
}

static void bare_limits(void *r)
{
    raw_limit_flying(r, FLYING, FLYING * TAKES);
}

/* Latches of 1,000 ids each, one after the other. */
static void count_once(void *client)
{
    static unsigned counted;
    dibs_error err;
    char name[32], id[32];

    snprintf(name, sizeof(name), "bench-latch-%u", counted / 1000);
    snprintf(id, sizeof(id), "job-%u", counted++);
    must_succeed(dibs_latch_count_down(client, name, 1000, id, NULL, &err),
                 &err);
}

static void measure_latch(const ground *on, size_t blocks)
{
    measure_pairs(&(side){bare_count, on->bare},
                  &(side){count_once, on->client}, blocks);
}

static void measure_limit(const ground *on, size_t blocks)
{
    dibs_limit *limit = limit_new(on->client, "bench-limit", 0);

    measure_pairs(&(side){bare_limit, on->bare}, &(side){limit_take, limit},
                  blocks);
    dibs_limit_free(limit);
}

/* Threads of one client, beside the bare driver with as many on the way. */
static void
measure_flying_sides(const ground *on, const side *sides, size_t blocks)
{
    crew *cw = crew_new(sides, FLYING, TAKES);

    measure_rates(&(side){bare_limits, on->bare}, &(side){crew_turn, cw},
                  FLYING * TAKES, blocks);
    crew_free(cw);
}

static void measure_flying(const ground *on, size_t blocks)
{
    dibs_limit *limit = limit_new(on->client, "bench-flying", 0);
    side sides[FLYING];

    for (int i = 0; i < FLYING; i++)
        sides[i] = (side){limit_take, limit};
    measure_flying_sides(on, sides, blocks);
    dibs_limit_free(limit);
}

static void measure_stock(const ground *on, size_t blocks)
{
    dibs_limit *limit = limit_new(on->client, "bench-stock", 10000000);
    samples times;

    samples_init(&times, blocks);
    limit_take(limit);
    for (size_t i = 0; i < blocks; i++) {
        int64_t began = now_ns();

        for (int k = 0; k < STOCK; k++)
            limit_take(limit);
        samples_add(&times, (now_ns() - began) * 1000 / STOCK);
    }
    printf("%.1f\n", samples_median(&times));
    dibs_limit_free(limit);
}

static void measure_meter(const ground *on, size_t blocks)
{
    dibs_breaker *breaker = breaker_new(on->client, NULL);

    measure_pairs(&(side){bare_limit, on->bare},
                  &(side){breaker_report, breaker}, blocks);
    dibs_breaker_free(breaker);
}

/* A thread has a handle of its own: each report is of a call. */
static void measure_meters(const ground *on, size_t blocks)
{
    side sides[FLYING];

    for (int i = 0; i < FLYING; i++)
        sides[i] = (side){breaker_report, breaker_new(on->client, NULL)};
    measure_flying_sides(on, sides, blocks);
    for (int i = 0; i < FLYING; i++)
        dibs_breaker_free(sides[i].arg);
}

int main(int argc, char **argv)
{
    static const work list[] = {
        {"latch", measure_latch},
        {"limit", measure_limit},
        {"flying", measure_flying},
        {"stock", measure_stock},
        {"enter", measure_enter},
        {"enter4", measure_enter4},
        {"call", measure_call},
        {"call4", measure_call4},
        {"refused", measure_refused},
        {"refused4", measure_refused4},
        {"meter", measure_meter},
        {"meters", measure_meters},
        {"trip", measure_trip},
        {"trips", measure_trips},
        {"leader", measure_leader},
        {"kill", measure_kill},
        {"loss", measure_loss},
        {"lead", measure_lead},
        {NULL, NULL},
    };

    return measure_work(argc, argv, list, 90000);
}
