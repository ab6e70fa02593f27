/* test_faults_load.c - threads take turns on one name while the server throws
 * their connections or their scripts away. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"
#include "turns.h"

enum { SPAN_MS = 2500 };

/* Whatever is thrown away: one at a time, fences rise, all are served. */
static void check(const turns *tn)
{
    bool apart = atomic_load(&tn->two) == 0 &&
                 atomic_load(&tn->backwards) == 0 &&
                 atomic_load(&tn->counter) == atomic_load(&tn->taken);

    /* A holder that did not run until its lease had ended is not alone. */
    IN_TIME(apart || atomic_load(&tn->ended) == 0);
    assert_int_equal(atomic_load(&tn->two), 0);
    assert_int_equal(atomic_load(&tn->backwards), 0);
    assert_int_equal(atomic_load(&tn->odd), 0);
    IN_TIME(atomic_load(&tn->unserved) == 0);
    IN_TIME(atomic_load(&tn->taken) >= TURNS_LEAST);
    assert_int_equal(atomic_load(&tn->counter), atomic_load(&tn->taken));
    print_message("%lld turns, %d releases without an answer\n",
                  atomic_load(&tn->taken), atomic_load(&tn->unanswered));
}

static void kill_normal(void *arg)
{
    const world *w = arg;

    assert_true(server_tell(&w->sv, "CLIENT", "KILL", "TYPE", "normal", NULL));
}

static void turns_go_on_while_connections_are_killed(void **state)
{
    world *w = *state;
    turns tn = {.url = w->url,
                .name = "k",
                .ttl_ms = pace_ms(1000),
                .span_ms = SPAN_MS};

    turns_run(&tn, kill_normal, w, 100);
    check(&tn);
}

static void kill_pubsub(void *arg)
{
    const world *w = arg;

    assert_true(server_tell(&w->sv, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
}

/* Doorbells are for speed alone, so nothing else is lost with them. */
static void turns_go_on_while_doorbells_are_killed(void **state)
{
    world *w = *state;
    turns tn = {.url = w->url,
                .name = "k",
                .ttl_ms = pace_ms(1000),
                .span_ms = SPAN_MS};

    turns_run(&tn, kill_pubsub, w, 100);
    check(&tn);
    IN_TIME(atomic_load(&tn.unanswered) == 0);
    IN_TIME(atomic_load(&tn.warned) == 0);
}

static void flush_scripts(void *arg)
{
    const world *w = arg;

    assert_true(server_tell(&w->sv, "SCRIPT", "FLUSH", NULL));
}

/* The scripts come back by themselves and nobody hears of it. */
static void turns_go_on_while_scripts_are_flushed(void **state)
{
    world *w = *state;
    turns tn = {.url = w->url,
                .name = "k",
                .ttl_ms = pace_ms(1000),
                .span_ms = SPAN_MS};

    turns_run(&tn, flush_scripts, w, 50);
    check(&tn);
    IN_TIME(atomic_load(&tn.unanswered) == 0);
    IN_TIME(atomic_load(&tn.warned) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(turns_go_on_while_connections_are_killed),
        WORLD_TEST(turns_go_on_while_doorbells_are_killed),
        WORLD_TEST(turns_go_on_while_scripts_are_flushed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
