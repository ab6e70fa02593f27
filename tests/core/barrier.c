/* barrier.c - barriers through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PARTIES = 3, ROUNDS = 4, LONG_MS = 30000 };

typedef struct party {
    dibs_client *cl;
    dibs_barrier *barrier;
    uint64_t generations[ROUNDS];
    dibs_status rc;
    dibs_error err;
    pthread_t thread;
} party;

static dibs_barrier *
make_barrier(dibs_client *cl, const char *name, const dibs_barrier_opts *opts)
{
    dibs_barrier *barrier = NULL;

    CHECK(DIBS_OK, dibs_barrier_new(cl, name, opts, &barrier, err));
    return barrier;
}

static void *wait_rounds(void *arg)
{
    party *p = arg;

    for (int i = 0; i < ROUNDS && p->rc == DIBS_OK; i++)
        p->rc = dibs_barrier_wait(p->barrier, &p->generations[i], &p->err);
    return NULL;
}

static void *wait_once(void *arg)
{
    party *p = arg;

    p->rc = dibs_barrier_wait(p->barrier, &p->generations[0], &p->err);
    return NULL;
}

static void start_party(party *p, dibs_client *cl, const char *name,
                        const dibs_barrier_opts *opts, void *(*body)(void *))
{
    *p = (party){.cl = cl, .barrier = make_barrier(cl, name, opts)};
    assert_int_equal(pthread_create(&p->thread, NULL, body, p), 0);
}

static void end_party(party *p)
{
    pthread_join(p->thread, NULL);
    if (p->rc == DIBS_TIMEOUT || p->rc == DIBS_UNAVAIL)
        IN_TIME(false);
}

typedef struct look {
    dibs_client *cl;
    const char *name;
    uint32_t seated, arrived;
} look;

static bool looks_so(void *arg)
{
    look *l = arg;
    dibs_barrier_state at;
    dibs_status rc = dibs_barrier_show(l->cl, l->name, &at, NULL, NULL, NULL);

    return (rc == DIBS_OK || rc == DIBS_NOTFOUND) && at.seated == l->seated &&
           at.arrived == l->arrived;
}

static void
await_arrivals(dibs_client *cl, const char *name, uint32_t seated, uint32_t n)
{
    core_until(looks_so, &(look){cl, name, seated, n});
}

/* Two parties of one client, one of another, round after round. */
static void all_pass_each_generation_together(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char name[64];
    party parties[PARTIES];

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    for (int i = 0; i < PARTIES; i++)
        start_party(&parties[i], i ? cl : other, name,
                    DIBS_BARRIER_OPTS(.parties = PARTIES,
                                      .wait_ms = pace_ms(LONG_MS)),
                    wait_rounds);
    for (int i = 0; i < PARTIES; i++) {
        end_party(&parties[i]);
        assert_status(parties[i].rc, DIBS_OK);
    }
    for (int i = 0; i < ROUNDS; i++) {
        assert_true(i == 0 ||
                    parties[0].generations[i] > parties[0].generations[i - 1]);
        for (int k = 1; k < PARTIES; k++)
            assert_int_equal(parties[k].generations[i],
                             parties[0].generations[i]);
    }
    for (int i = 0; i < PARTIES; i++)
        dibs_barrier_free(parties[i].barrier);
    CHECK(DIBS_NOTFOUND, dibs_barrier_show(cl, name, &(dibs_barrier_state){0},
                                           NULL, NULL, err));
    dibs_close(cl);
    dibs_close(other);
}

/* Curator's double barrier let one pass on any event; its time-out left it counted. */
static void time_out_leaves_nothing_counted(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char name[64];
    dibs_barrier *late;
    party one;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    late = make_barrier(cl, name,
                        DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = 20,
                                          .flags = DIBS_BARRIER_WITHDRAW));
    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(late, NULL, err));
    start_party(&one, other, name,
                DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = pace_ms(LONG_MS)),
                wait_once);
    await_arrivals(cl, name, 2, 1);
    dibs_barrier_free(late);
    await_arrivals(cl, name, 1, 1);
    late = make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 2));
    CHECK(DIBS_OK, dibs_barrier_wait(late, NULL, err));
    end_party(&one);
    assert_status(one.rc, DIBS_OK);
    dibs_barrier_free(late);
    dibs_barrier_free(one.barrier);
    dibs_close(cl);
    dibs_close(other);
}

static void nobody_passes_alone(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_barrier *barrier =
        make_barrier(cl, name,
                     DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = 20,
                                       .label = "early"));
    dibs_error why = {0};
    dibs_status rc = dibs_barrier_wait(barrier, NULL, &why);

    (void)state;
    assert_status(rc, DIBS_TIMEOUT);
    IN_TIME(strstr(why.message, "1 of 2 parties came; missing: 1 without a "
                                "seat") != NULL);
    dibs_barrier_free(barrier);
    barrier = make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 1));
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    dibs_barrier_free(barrier);
    dibs_close(cl);
}

/* By default a time-out breaks the generation for all: none waits for a party that
 * has given up. The next generation is whole again. */
static void a_time_out_breaks_it_for_all(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char name[64];
    dibs_barrier *late;
    party one, two;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    start_party(&one, other, name,
                DIBS_BARRIER_OPTS(.parties = 3, .wait_ms = pace_ms(LONG_MS),
                                  .label = "one"),
                wait_once);
    await_arrivals(cl, name, 1, 1);
    late =
        make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 3, .wait_ms = 20));
    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(late, NULL, err));
    end_party(&one);
    assert_status(one.rc, DIBS_BROKEN);
    assert_non_null(strstr(one.err.message, "broke: "));
    dibs_barrier_free(late);
    pthread_create(&one.thread, NULL, wait_once, &one);
    start_party(&two, cl, name, DIBS_BARRIER_OPTS(.parties = 3), wait_once);
    await_arrivals(cl, name, 2, 2);
    late = make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 3));
    CHECK(DIBS_OK, dibs_barrier_wait(late, NULL, err));
    end_party(&one);
    end_party(&two);
    assert_status(one.rc, DIBS_OK);
    assert_status(two.rc, DIBS_OK);
    dibs_barrier_free(late);
    dibs_barrier_free(one.barrier);
    dibs_barrier_free(two.barrier);
    dibs_close(cl);
    dibs_close(other);
}

/* etcd's recipe recursed on one party too many. */
static void one_party_too_many_is_refused(void **state)
{
    dibs_client *cl = core_open();
    char name[64];
    party one;
    dibs_barrier *more, *odd;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    start_party(&one, cl, name,
                DIBS_BARRIER_OPTS(.parties = 1, .wait_ms = pace_ms(LONG_MS)),
                wait_once);
    end_party(&one);
    assert_status(one.rc, DIBS_OK);
    more =
        make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 1, .wait_ms = 50));
    CHECK(DIBS_BUSY, dibs_barrier_wait(more, NULL, err));
    odd = make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 2));
    CHECK(DIBS_MISMATCH, dibs_barrier_wait(odd, NULL, err));
    dibs_barrier_free(one.barrier);
    CHECK(DIBS_OK, dibs_barrier_wait(more, NULL, err));
    dibs_barrier_free(odd);
    dibs_barrier_free(more);
    dibs_close(cl);
}

/* etcd's double barrier waited for a key with a common prefix. A latch of the same
 * name is another kind. */
static void name_is_not_a_prefix(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char name[64], longer[80];
    dibs_barrier *wrong, *right;
    party one;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    snprintf(longer, sizeof(longer), "%s0", name);
    start_party(&one, other, name,
                DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = pace_ms(LONG_MS)),
                wait_once);
    await_arrivals(cl, name, 1, 1);
    wrong = make_barrier(cl, longer,
                         DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = 20));
    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(wrong, NULL, err));
    await_arrivals(cl, name, 1, 1);
    CHECK(DIBS_MISMATCH, dibs_latch_count_down(cl, name, 2, "a", NULL, err));
    CHECK(DIBS_OK, dibs_latch_count_down(cl, core_name(), 1, "a", NULL, err));
    right = make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 2));
    CHECK(DIBS_OK, dibs_barrier_wait(right, NULL, err));
    end_party(&one);
    assert_status(one.rc, DIBS_OK);
    dibs_barrier_free(wrong);
    dibs_barrier_free(right);
    dibs_barrier_free(one.barrier);
    dibs_close(cl);
    dibs_close(other);
}

/* Openings and breaks of generations that this call is not counted in, and of a
 * latch. Curator had one watcher for both phases. */
static void rings_of_other_kinds_wake_nobody(void **state)
{
    dibs_client *cl = core_open();
    char name[64], latch[64];
    dibs_barrier *first, *last;
    party one;
    uint64_t generation;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    snprintf(latch, sizeof(latch), "%s", core_name());
    start_party(&one, cl, name,
                DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = pace_ms(LONG_MS)),
                wait_once);
    first = make_barrier(cl, latch, DIBS_BARRIER_OPTS(.parties = 1));
    for (int i = 0; i < 3; i++)
        CHECK(DIBS_OK, dibs_barrier_wait(first, NULL, err));
    await_arrivals(cl, name, 1, 1);
    last = make_barrier(cl, name, DIBS_BARRIER_OPTS(.parties = 2));
    CHECK(DIBS_OK, dibs_barrier_wait(last, &generation, err));
    end_party(&one);
    assert_status(one.rc, DIBS_OK);
    assert_int_equal(one.generations[0], generation);
    dibs_barrier_free(first);
    dibs_barrier_free(last);
    dibs_barrier_free(one.barrier);
    dibs_close(cl);
}

static bool find_label(const dibs_barrier_party *p, void *arg)
{
    *(int *)arg +=
        strstr(p->who, " web") != NULL && p->arrived && p->left_ms > 0;
    return true;
}

static bool count_party(const dibs_barrier_party *p, void *arg)
{
    (void)p;
    ++*(int *)arg;
    return true;
}

static bool
note_barrier(const char *name, const dibs_barrier_state *at, void *arg)
{
    char *text = arg;
    size_t len = strlen(text);

    assert_true(at->generation > 0);
    snprintf(text + len, 256 - len, "%s %u %u %u;", strrchr(name, '-'),
             (unsigned)at->arrived, (unsigned)at->seated,
             (unsigned)at->parties);
    return true;
}

static void barriers_are_listed(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char names[2][80], text[256] = "";
    dibs_barrier *one, *two;

    (void)state;
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof(names[i]), "%s-%d", name, i);
    one = make_barrier(cl, names[1], DIBS_BARRIER_OPTS(.parties = 1));
    two = make_barrier(cl, names[0],
                       DIBS_BARRIER_OPTS(.parties = 2, .wait_ms = pace_ms(50),
                                         .flags = DIBS_BARRIER_WITHDRAW));
    CHECK(DIBS_OK, dibs_barrier_list(cl, name, note_barrier, text, err));
    assert_string_equal(text, "");
    CHECK(DIBS_OK, dibs_barrier_wait(one, NULL, err));
    CHECK(DIBS_TIMEOUT, dibs_barrier_wait(two, NULL, err));
    CHECK(DIBS_OK, dibs_barrier_list(cl, name, note_barrier, text, err));
    assert_string_equal(text, "-0 0 1 2;-1 0 1 1;");
    dibs_barrier_free(one);
    dibs_barrier_free(two);
    dibs_close(cl);
}

static void a_look_names_the_parties(void **state)
{
    dibs_client *cl = core_open();
    char name[64];
    dibs_barrier_state at;
    int found = 0;
    party one;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    start_party(&one, cl, name, DIBS_BARRIER_OPTS(.parties = 2, .label = "web"),
                wait_once);
    await_arrivals(cl, name, 1, 1);
    CHECK(DIBS_OK, dibs_barrier_show(cl, name, &at, find_label, &found, err));
    assert_int_equal(found, 1);
    assert_int_equal(at.parties, 2);
    assert_true(at.generation > 0);
    dibs_close(cl);
    pthread_join(one.thread, NULL);
    assert_status(one.rc, DIBS_CANCELLED);
    CHECK(DIBS_INVALID, dibs_barrier_wait(one.barrier, NULL, err));
    dibs_barrier_free(one.barrier);
    cl = core_open();
    CHECK(DIBS_NOTFOUND, dibs_barrier_show(cl, name, &at, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_latch_count_down(cl, name, 2, "a", NULL, err));
    found = 0;
    CHECK(DIBS_MISMATCH,
          dibs_barrier_show(cl, name, &at, count_party, &found, err));
    assert_int_equal(found, 0);
    dibs_close(cl);
}

static void a_cancel_ends_the_wait(void **state)
{
    dibs_client *cl = core_open();
    char name[64];
    party one;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    start_party(&one, cl, name, DIBS_BARRIER_OPTS(.parties = 2), wait_once);
    await_arrivals(cl, name, 1, 1);
    CHECK(DIBS_INVALID, dibs_barrier_wait(one.barrier, NULL, err));
    dibs_barrier_cancel(one.barrier);
    pthread_join(one.thread, NULL);
    assert_status(one.rc, DIBS_CANCELLED);
    await_arrivals(cl, name, 1, 0);
    dibs_barrier_cancel(one.barrier);
    dibs_barrier_cancel(NULL);
    dibs_barrier_free(one.barrier);
    dibs_close(cl);
}

static void bad_options_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_barrier *barrier = NULL;

    (void)state;
    CHECK(DIBS_INVALID, dibs_barrier_new(cl, "a", NULL, &barrier, err));
    CHECK(DIBS_INVALID, dibs_barrier_new(cl, "a", DIBS_BARRIER_OPTS(.flags = 0),
                                         &barrier, err));
    CHECK(DIBS_INVALID,
          dibs_barrier_new(cl, "a",
                           DIBS_BARRIER_OPTS(.parties = DIBS_BARRIER_MAX + 1),
                           &barrier, err));
    CHECK(DIBS_INVALID,
          dibs_barrier_new(cl, "a",
                           DIBS_BARRIER_OPTS(.parties = 1, .flags = 64),
                           &barrier, err));
    CHECK(DIBS_INVALID,
          dibs_barrier_new(cl, "a",
                           DIBS_BARRIER_OPTS(.parties = 1, .ttl_ms = 1),
                           &barrier, err));
    CHECK(DIBS_INVALID,
          dibs_barrier_new(cl, "", DIBS_BARRIER_OPTS(.parties = 1), &barrier,
                           err));
    assert_null(barrier);
    CHECK(DIBS_INVALID, dibs_barrier_wait(NULL, NULL, err));
    dibs_barrier_free(NULL);
    dibs_close(cl);
}

int core_barrier_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_pass_each_generation_together),
        cmocka_unit_test(nobody_passes_alone),
        cmocka_unit_test(time_out_leaves_nothing_counted),
        cmocka_unit_test(a_time_out_breaks_it_for_all),
        cmocka_unit_test(one_party_too_many_is_refused),
        cmocka_unit_test(name_is_not_a_prefix),
        cmocka_unit_test(rings_of_other_kinds_wake_nobody),
        cmocka_unit_test(barriers_are_listed),
        cmocka_unit_test(a_look_names_the_parties),
        cmocka_unit_test(a_cancel_ends_the_wait),
        cmocka_unit_test(bad_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
