/* test_client_breaker.c - circuit breakers on a store that fails: each client goes on by
 * its own calls, and says so once. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { HOUR_MS = 3600000 };

typedef struct lines {
    atomic_int away, back;
} lines;

static void note_line(dibs_log_level level, const char *event,
                      const char *message, void *arg)
{
    lines *ln = arg;

    (void)level;
    if (strcmp(event, "breaker") != 0)
        return;
    ln->away += strstr(message, "for this client alone") != NULL;
    ln->back += strstr(message, "is shared") != NULL;
}

static dibs_breaker *
open_breaker(dibs_client *cl, const dibs_breaker_opts *opts)
{
    dibs_breaker *br = NULL;

    CHECK(DIBS_OK, dibs_breaker_new(cl, "pay", opts, &br, err));
    return br;
}

static dibs_client *open_logged(world *w, lines *ln)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK, dibs_open(w->url,
                             DIBS_CLIENT_OPTS(.log = note_line, .log_arg = ln,
                                              .log_level = DIBS_LOG_WARN),
                             &cl, err));
    return cl;
}

/* The store answers nothing that a breaker asks for. */
static void cut_store(world *w, dibs__fault_kind kind)
{
    world_fault(w, DIBS__STEP_METER, kind, -1);
    world_fault(w, DIBS__STEP_PUT, kind, -1);
    world_fault(w, DIBS__STEP_ACQUIRE, kind, -1);
}

static bool call(dibs_breaker *br, bool good)
{
    dibs_pass pass;

    if (dibs_breaker_enter(br, &pass, NULL) != DIBS_OK)
        return false;
    dibs_breaker_leave(br, &pass, good);
    return true;
}

static dibs_breaker_info look(dibs_breaker *br)
{
    dibs_breaker_info info;

    CHECK(DIBS_OK, dibs_breaker_get(br, &info, err));
    return info;
}

static void it_goes_on_alone_without_the_store(void **state)
{
    world *w = *state;
    lines ln = {0};
    dibs_client *cl = open_logged(w, &ln);
    dibs_breaker *br =
        open_breaker(cl,
                     DIBS_BREAKER_OPTS(.threshold = 3, .recovery_ms = HOUR_MS));
    dibs_breaker *other = open_breaker(w->other, NULL);

    cut_store(w, DIBS__FAULT_FAIL);
    for (int i = 0; i < 3; i++)
        assert_true(call(br, false));
    assert_false(call(br, true));
    assert_true(look(br).alone);
    assert_int_equal(look(br).state, DIBS_BREAKER_OPEN);
    world_heal(w);
    /* Back again: all others learn that it is open. */
    while (look(other).state != DIBS_BREAKER_OPEN)
        poll(NULL, 0, 1);
    while (look(br).alone)
        poll(NULL, 0, 1);
    assert_int_equal(look(br).version, look(other).version);
    assert_int_equal(ln.away, 1);
    assert_int_equal(ln.back, 1);
    dibs_breaker_free(br);
    dibs_breaker_free(other);
    dibs_close(cl);
}

/* The store goes away while it is open: the client probes alone, one at a time. */
static void it_recovers_alone_without_the_store(void **state)
{
    world *w = *state;
    dibs_breaker *br =
        open_breaker(w->one, DIBS_BREAKER_OPTS(.threshold = 1, .need = 2,
                                               .probes = 5, .recovery_ms = 1));
    dibs_pass pass, second;
    int probes = 0;

    assert_true(call(br, false));
    while (look(br).version == 0)
        poll(NULL, 0, 1);
    cut_store(w, DIBS__FAULT_DROP_BEFORE);
    /* More than two, if a report that was under way is answered between them. */
    for (; look(br).state != DIBS_BREAKER_CLOSED; probes++) {
        while (dibs_breaker_enter(br, &pass, NULL) != DIBS_OK)
            poll(NULL, 0, 1);
        assert_int_equal(dibs_breaker_enter(br, &second, NULL), DIBS_BUSY);
        dibs_breaker_leave(br, &pass, true);
    }
    assert_true(probes >= 2);
    assert_true(look(br).alone);
    assert_true(call(br, true));
    world_heal(w);
    /* For the others it is open still, and so it is here again. */
    while (look(br).alone)
        poll(NULL, 0, 1);
    assert_int_not_equal(look(br).state, DIBS_BREAKER_CLOSED);
    dibs_breaker_free(br);
}

static void a_report_without_an_answer_is_forgotten(void **state)
{
    world *w = *state;
    dibs_breaker *br = open_breaker(w->one, DIBS_BREAKER_OPTS(.threshold = 9));
    dibs_breaker *other = open_breaker(w->other, NULL);
    int seen;

    assert_true(call(br, true));
    while (look(other).good < 1)
        poll(NULL, 0, 1);
    world_fault(w, DIBS__STEP_METER, DIBS__FAULT_DROP_AFTER, -1);
    seen = world_seen(w, DIBS__STEP_METER);
    assert_true(call(br, false));
    while (world_seen(w, DIBS__STEP_METER) < seen + 1)
        poll(NULL, 0, 1);
    world_heal(w);
    while (look(other).bad < 1)
        poll(NULL, 0, 1);
    IN_TIME(!look(br).alone); /* More than one was lost else. */
    assert_true(call(br, false));
    while (look(other).bad < 2)
        poll(NULL, 0, 1);
    dibs_breaker_free(br);
    assert_int_equal(look(other).bad, 2);
    dibs_breaker_free(other);
}

/* A change of the state that had no answer was made once. */
static void a_put_without_an_answer_is_looked_at(void **state)
{
    world *w = *state;
    dibs_breaker *br =
        open_breaker(w->one,
                     DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = HOUR_MS));
    uint64_t version;

    world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_DROP_AFTER, 1);
    assert_true(call(br, false));
    while (look(br).version == 0)
        poll(NULL, 0, 1);
    version = look(br).version;
    assert_int_equal(look(br).state, DIBS_BREAKER_OPEN);
    dibs_breaker_free(br);
    br = open_breaker(w->one, NULL);
    assert_int_equal(look(br).version, version);
    dibs_breaker_free(br);
}

static void closing_a_client_ends_its_breakers(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_breaker *br = open_breaker(cl, NULL);
    dibs_pass pass;

    assert_true(call(br, true));
    dibs_close(cl);
    CHECK(DIBS_INVALID, dibs_breaker_enter(br, &pass, err));
    dibs_breaker_free(br);
}

/* Waits until there have been so many steps. */
static void await_steps(world *w, dibs__step step, int count)
{
    while (world_seen(w, step) < count)
        poll(NULL, 0, 1);
}

/* All that is sent to the store; a notice is read here. */
static int all_steps(world *w)
{
    int count = -world_seen(w, DIBS__STEP_BELL);

    for (int step = 0; step < DIBS__STEP_COUNT; step++)
        count += world_seen(w, (dibs__step)step);
    return count;
}

static bool is_refused(dibs_breaker *br)
{
    dibs_pass pass;

    return dibs_breaker_enter(br, &pass, NULL) == DIBS_BUSY;
}

/* Each looks twice when it is asked, once when it listens, and from then on rarely. */
static void many_clients_hear_of_a_change_and_ask_nothing(void **state)
{
    enum { MANY = 100 };
    world *w = *state;
    dibs_client *cl[MANY];
    dibs_breaker *br[MANY];
    dibs_breaker *opener = open_breaker(w->other, NULL);
    dibs_pass pass;
    int steps;

    CHECK(DIBS_OK, dibs_breaker_force(opener, DIBS_BREAKER_CLOSED, err));
    for (int i = 0; i < MANY; i++) {
        cl[i] = world_open(w);
        br[i] = open_breaker(cl[i], NULL);
        assert_int_equal(look(br[i]).state, DIBS_BREAKER_CLOSED);
        CHECK(DIBS_OK, dibs_breaker_enter(br[i], &pass, err));
    }
    await_steps(w, DIBS__STEP_EAR, MANY);
    await_steps(w, DIBS__STEP_METER, 3 * MANY);
    steps = all_steps(w);
    CHECK(DIBS_OK, dibs_breaker_force(opener, DIBS_BREAKER_OPEN, err));
    for (int i = 0; i < MANY; i++)
        while (!is_refused(br[i]))
            poll(NULL, 0, 1);
    /* After ten seconds they look. */
    IN_TIME(all_steps(w) == steps + 1);
    for (int i = 0; i < MANY; i++) {
        dibs_breaker_free(br[i]);
        dibs_close(cl[i]);
    }
    dibs_breaker_free(opener);
}

static void open_it(void *arg)
{
    CHECK(DIBS_OK, dibs_breaker_force(arg, DIBS_BREAKER_OPEN, err));
}

/* The change comes when the client has looked, and before it listens. */
static void a_change_just_before_the_ear_is_seen(void **state)
{
    world *w = *state;
    dibs_breaker *opener = open_breaker(w->other, NULL);
    dibs_breaker *br = open_breaker(w->one, NULL);

    CHECK(DIBS_OK, dibs_breaker_force(opener, DIBS_BREAKER_CLOSED, err));
    assert_int_equal(look(br).state, DIBS_BREAKER_CLOSED);
    world_during(w, DIBS__STEP_EAR, open_it, opener);
    while (!is_refused(br))
        poll(NULL, 0, 1);
    /* That was not the look that comes after ten seconds. */
    IN_TIME(world_seen(w, DIBS__STEP_METER) == 3);
    dibs_breaker_free(br);
    dibs_breaker_free(opener);
}

typedef struct looker {
    dibs_breaker *br;
    dibs_breaker_info info;
    atomic_int over;
    pthread_t thread;
} looker;

static void *do_look(void *arg)
{
    looker *lk = arg;

    lk->info = look(lk->br);
    atomic_store(&lk->over, 1);
    return NULL;
}

/* The worker's report of the call hangs on its way. A look must not overtake it. */
static void a_look_has_the_calls_that_were_made_before_it(void **state)
{
    world *w = *state;
    looker lk = {.br = open_breaker(w->one, DIBS_BREAKER_OPTS(.threshold = 9))};
    gate g = {.w = w, .step = DIBS__STEP_METER};
    int inside;

    assert_int_equal(look(lk.br).bad, 0);
    world_during(w, DIBS__STEP_METER, hang_in_gate, &g);
    assert_true(call(lk.br, false));
    await_at_least(&g.inside, 1);
    assert_int_equal(pthread_create(&lk.thread, NULL, do_look, &lk), 0);
    /* One that overtakes it would be over now, or hang as well. */
    for (int i = 0; i < 50 && !atomic_load(&lk.over); i++)
        poll(NULL, 0, 1);
    inside = atomic_load(&g.inside);
    atomic_store(&g.open, true);
    assert_int_equal(pthread_join(lk.thread, NULL), 0);
    assert_int_equal(inside, 1);
    assert_int_equal(lk.info.bad, 1);
    dibs_breaker_free(lk.br);
}

/* One report hangs at the store. A look behind it does not wait for longer than the store
 * may take. */
static void a_look_does_not_wait_for_ever_behind_another(void **state)
{
    world *w = *state;
    gate g = {.w = w, .step = DIBS__STEP_METER};
    dibs_client *cl = NULL;
    looker lk = {.br = NULL};
    bool alone;

    CHECK(DIBS_OK,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.timeout_ms = 200), &cl, err));
    lk.br = open_breaker(cl, NULL);
    world_during(w, DIBS__STEP_METER, hang_in_gate, &g);
    assert_int_equal(pthread_create(&lk.thread, NULL, do_look, &lk), 0);
    await_at_least(&g.inside, 1);
    alone = look(lk.br).alone;
    atomic_store(&g.open, true);
    assert_int_equal(pthread_join(lk.thread, NULL), 0);
    assert_true(alone);
    dibs_breaker_free(lk.br);
    dibs_close(cl);
}

static void note_opened(dibs_breaker *br, dibs_breaker_state state, void *arg)
{
    (void)br;
    if (state != DIBS_BREAKER_CLOSED)
        atomic_store((atomic_bool *)arg, true);
}

static bool
any_breaker(const char *name, const dibs_breaker_info *info, void *arg)
{
    (void)name;
    (void)info;
    ++*(int *)arg;
    return true;
}

/* Looks and settings by hand need no doorbell and no thread; a call and a callback do. */
static void one_that_only_looks_does_not_listen(void **state)
{
    world *w = *state;
    dibs_breaker *looks = open_breaker(w->one, NULL);
    atomic_bool opened = false;
    int listed = 0;
    dibs_breaker *told;
    dibsx_nsec late;

    CHECK(DIBS_OK, dibs_breaker_force(looks, DIBS_BREAKER_CLOSED, err));
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(looks).state, DIBS_BREAKER_CLOSED);
    CHECK(DIBS_OK, dibs_breaker_list(w->one, NULL, any_breaker, &listed, err));
    assert_int_equal(listed, 1);
    told = open_breaker(w->other, DIBS_BREAKER_OPTS(.on_change = note_opened,
                                                    .arg = &opened));
    assert_int_equal(look(told).state, DIBS_BREAKER_CLOSED);
    await_steps(w, DIBS__STEP_EAR, 1);
    CHECK(DIBS_OK, dibs_breaker_force(looks, DIBS_BREAKER_OPEN, err));
    while (!atomic_load(&opened))
        poll(NULL, 0, 1);
    assert_int_equal(world_seen(w, DIBS__STEP_EAR), 1);
    late = dibsx_after_ms(dibsx_now(), 5000);
    assert_true(is_refused(looks));
    await_steps(w, DIBS__STEP_EAR, 2);
    IN_TIME(dibsx_now() < late); /* Not with the look after ten seconds. */
    dibs_breaker_free(told);
    dibs_breaker_free(looks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(it_goes_on_alone_without_the_store),
        WORLD_TEST(it_recovers_alone_without_the_store),
        WORLD_TEST(a_report_without_an_answer_is_forgotten),
        WORLD_TEST(a_put_without_an_answer_is_looked_at),
        WORLD_TEST(a_look_has_the_calls_that_were_made_before_it),
        WORLD_TEST(a_look_does_not_wait_for_ever_behind_another),
        WORLD_TEST(many_clients_hear_of_a_change_and_ask_nothing),
        WORLD_TEST(a_change_just_before_the_ear_is_seen),
        WORLD_TEST(one_that_only_looks_does_not_listen),
        WORLD_TEST(closing_a_client_ends_its_breakers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
