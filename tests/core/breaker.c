/* breaker.c - circuit breakers through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HOUR_MS = 3600000, CLIENTS = 4 };

static dibs_breaker *
open_breaker(dibs_client *cl, const char *name, const dibs_breaker_opts *opts)
{
    dibs_breaker *br = NULL;

    CHECK(DIBS_OK, dibs_breaker_new(cl, name, opts, &br, err));
    return br;
}

static bool passes(dibs_breaker *br, dibs_pass *pass)
{
    dibs_error err = {0};
    dibs_status rc = dibs_breaker_enter(br, pass, &err);

    if (rc != DIBS_OK && rc != DIBS_BUSY)
        FAIL_OF(rc, "enter: %s", err.message);
    return rc == DIBS_OK;
}

/* Makes calls that all end so; false when one is refused. */
static bool call(dibs_breaker *br, int count, bool good)
{
    dibs_pass pass;

    for (int i = 0; i < count; i++) {
        if (!passes(br, &pass))
            return false;
        dibs_breaker_leave(br, &pass, good);
    }
    return true;
}

/* A call that passed only to look counts for nothing. */
static bool is_refused(void *arg)
{
    dibs_pass pass;

    return !passes(arg, &pass);
}

static dibs_breaker_info look(dibs_breaker *br)
{
    dibs_breaker_info info;

    CHECK(DIBS_OK, dibs_breaker_get(br, &info, err));
    return info;
}

/* For all clients. */
static bool is_open(void *arg)
{
    dibs_breaker_info info = look(arg);

    return info.state != DIBS_BREAKER_CLOSED && !info.alone;
}

static bool is_closed(void *arg)
{
    return look(arg).state == DIBS_BREAKER_CLOSED;
}

static bool has_state(void *arg)
{
    return look(arg).version > 0;
}

typedef struct attempt {
    dibs_breaker *br;
    dibs_pass pass;
} attempt;

static bool has_pass(void *arg)
{
    attempt *at = arg;

    return passes(at->br, &at->pass);
}

/* Waits until the breaker takes a probe. */
static dibs_pass probe(dibs_breaker *br)
{
    attempt at = {.br = br};

    core_until(has_pass, &at);
    return at.pass;
}

typedef struct diary {
    atomic_int opened, closed;
} diary;

static void note_change(dibs_breaker *br, dibs_breaker_state state, void *arg)
{
    diary *d = arg;

    (void)br;
    if (state == DIBS_BREAKER_CLOSED)
        d->closed++;
    else
        d->opened++;
}

static bool has_opened(void *arg)
{
    return ((diary *)arg)->opened > 0;
}

static bool has_closed(void *arg)
{
    return ((diary *)arg)->closed > 0;
}

/* A client that makes no call hears of it too. */
static void it_opens_and_closes_for_all_clients(void **state)
{
    dibs_client *one = core_open(), *other = core_open();
    const char *name = core_name();
    diary d = {0};
    dibs_breaker_opts opts = {.size = sizeof(opts),
                              .threshold = 3,
                              .recovery_ms = HOUR_MS,
                              .on_change = note_change,
                              .arg = &d};
    dibs_breaker *a = open_breaker(one, name, &opts);
    dibs_breaker *b;
    dibs_pass pass;

    (void)state;
    opts.on_change = NULL;
    b = open_breaker(other, name, &opts);
    assert_true(call(a, 1, true));
    assert_true(call(b, 3, false));
    assert_false(passes(b, &pass));
    assert_true(dibs_breaker_retry_ms(b) > HOUR_MS / 2);
    core_until(has_opened, &d);
    assert_true(is_refused(a));
    assert_int_equal(look(a).state, DIBS_BREAKER_OPEN);
    assert_true(look(a).version > 0);
    CHECK(DIBS_OK, dibs_breaker_force(b, DIBS_BREAKER_CLOSED, err));
    core_until(has_closed, &d);
    assert_true(call(a, 1, true));
    assert_true(call(b, 1, true));
    dibs_breaker_free(a);
    dibs_breaker_free(b);
    dibs_close(one);
    dibs_close(other);
}

/* Opens a breaker by its own calls, and waits until the store has it. */
static void trip(dibs_breaker *br, int threshold)
{
    assert_true(call(br, threshold, false));
    core_until(is_open, br);
}

static void probe_that_never_ends_frees_its_permit(void **state)
{
    dibs_client *one = core_open(), *other = core_open();
    const char *name = core_name();
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1,
                          .probe_ttl_ms = pace_ms(80));
    dibs_breaker *dies = open_breaker(one, name, opts);
    dibs_breaker *b = open_breaker(other, name, opts);
    dibs_pass pass;

    (void)state;
    trip(dies, 1);
    core_until(is_open, b);
    pass = probe(dies);
    assert_true(pass.permit != 0);
    pass = probe(b);
    dibs_breaker_leave(b, &pass, true);
    core_until(is_closed, b);
    dibs_breaker_free(dies);
    dibs_breaker_free(b);
    dibs_close(one);
    dibs_close(other);
}

/* A caller that never says how a call ended, closed and half-open. */
static void pass_dropped_by_the_caller(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(),
                     DIBS_BREAKER_OPTS(.threshold = 2, .recovery_ms = 1,
                                       .probe_ttl_ms = pace_ms(40)));
    dibs_pass pass;

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_true(passes(br, &pass));
    assert_int_equal(look(br).bad, 0);
    trip(br, 2);
    (void)probe(br);
    pass = probe(br);
    dibs_breaker_leave(br, &pass, true);
    core_until(is_closed, br);
    dibs_breaker_leave(br, &pass, false); /* over */
    assert_true(call(br, 1, true));
    dibs_breaker_free(br);
    dibs_close(cl);
}

static void no_more_probes_than_permits_at_recovery(void **state)
{
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1, .probes = 2,
                          .need = 2, .probe_ttl_ms = HOUR_MS);
    const char *name = core_name();
    dibs_client *cl[CLIENTS];
    dibs_breaker *br[CLIENTS];
    dibs_pass pass[2], other;

    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        cl[i] = core_open();
        br[i] = open_breaker(cl[i], name, opts);
        assert_true(call(br[i], 1, true));
    }
    trip(br[0], 1);
    for (int i = 1; i < CLIENTS; i++)
        core_until(is_open, br[i]);
    pass[0] = probe(br[0]);
    pass[1] = probe(br[1]);
    for (int i = 0; i < 5 * CLIENTS; i++)
        assert_false(passes(br[i % CLIENTS], &other));
    dibs_breaker_leave(br[0], &pass[0], true);
    dibs_breaker_leave(br[1], &pass[1], true);
    for (int i = 0; i < CLIENTS; i++)
        core_until(is_closed, br[i]);
    for (int i = 0; i < CLIENTS; i++) {
        dibs_breaker_free(br[i]);
        dibs_close(cl[i]);
    }
}

/* The permit of one that has ended keeps no other waiting. */
static void probes_follow_each_other(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(),
                     DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1,
                                       .need = 3, .probe_ttl_ms = HOUR_MS));

    (void)state;
    trip(br, 1);
    for (int i = 0; i < 3; i++) {
        dibs_pass pass = probe(br);

        dibs_breaker_leave(br, &pass, true);
    }
    core_until(is_closed, br);
    dibs_breaker_free(br);
    dibs_close(cl);
}

static void another_number_of_probes_is_refused(void **state)
{
    dibs_client *one = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_breaker *a =
        open_breaker(one, name,
                     DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1,
                                       .probes = 2, .probe_ttl_ms = HOUR_MS));
    dibs_breaker *b =
        open_breaker(other, name,
                     DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1));
    dibs_pass pass, none;
    dibs_status rc;

    (void)state;
    trip(a, 1);
    core_until(is_open, b);
    pass = probe(a);
    do
        rc = dibs_breaker_enter(b, &none, NULL);
    while (rc == DIBS_BUSY);
    assert_status(rc, DIBS_MISMATCH);
    dibs_breaker_leave(a, &pass, true);
    core_until(is_closed, b);
    dibs_breaker_free(a);
    dibs_breaker_free(b);
    dibs_close(one);
    dibs_close(other);
}

/* Calls that began before it opened end badly after it has closed again. */
static void late_result_of_an_older_version(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(), DIBS_BREAKER_OPTS(.threshold = 3));
    dibs_pass late[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_true(passes(br, &late[i]));
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_OPEN, err));
    dibs_breaker_leave(br, &late[0], true); /* no probe */
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_CLOSED, err));
    for (int i = 1; i < 6; i++)
        dibs_breaker_leave(br, &late[i], false);
    assert_true(call(br, 2, false));
    while (look(br).bad < 2)
        poll(NULL, 0, 1);
    assert_int_equal(look(br).bad, 2);
    assert_int_equal(look(br).good, 0);
    assert_int_equal(look(br).state, DIBS_BREAKER_CLOSED);
    dibs_breaker_free(br);
    dibs_close(cl);
}

/* Bad calls of other clients that end later do not begin the recovery anew. */
static void recovery_is_not_pushed_back(void **state)
{
    dibs_client *one = core_open(), *other = core_open();
    const char *name = core_name();
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 2, .recovery_ms = HOUR_MS);
    dibs_breaker *a = open_breaker(one, name, opts);
    dibs_breaker *b = open_breaker(other, name, opts);
    dibs_pass late[4];
    uint64_t version;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_true(passes(b, &late[i]));
    trip(a, 2);
    version = look(a).version;
    for (int i = 0; i < 4; i++)
        dibs_breaker_leave(b, &late[i], false);
    core_until(is_open, b);
    assert_int_equal(look(b).version, version);
    assert_int_equal(look(a).version, version);
    dibs_breaker_free(a);
    dibs_breaker_free(b);
    dibs_close(one);
    dibs_close(other);
}

/* The rate needs many calls; a probe decides alone. */
static void few_calls_after_recovery_still_decide(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(),
                     DIBS_BREAKER_OPTS(.rate_percent = 50, .min_calls = 20,
                                       .recovery_ms = 1));
    dibs_pass pass;
    uint64_t version;

    (void)state;
    assert_true(call(br, 10, true));
    assert_true(call(br, 9, false));
    while (look(br).bad < 9)
        poll(NULL, 0, 1);
    assert_int_equal(look(br).state, DIBS_BREAKER_CLOSED);
    assert_int_equal(look(br).good, 10);
    assert_true(call(br, 1, false));
    core_until(is_open, br);
    version = look(br).version;
    pass = probe(br);
    dibs_breaker_leave(br, &pass, false);
    while (look(br).version == version)
        poll(NULL, 0, 1);
    assert_int_not_equal(look(br).state, DIBS_BREAKER_CLOSED);
    pass = probe(br);
    dibs_breaker_leave(br, &pass, true);
    core_until(is_closed, br);
    dibs_breaker_free(br);
    dibs_close(cl);
}

static void open_below_threshold_recovers(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(),
                     DIBS_BREAKER_OPTS(.threshold = 100, .recovery_ms = 1));
    dibs_pass pass;

    (void)state;
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_OPEN, err));
    pass = probe(br);
    assert_true(pass.permit != 0);
    dibs_breaker_leave(br, &pass, true);
    core_until(is_closed, br);
    dibs_breaker_free(br);
    dibs_close(cl);
}

/* Of two clients with bad calls two may have the same mark; of four hardly all. */
static void one_bad_client_opens_only_itself(void **state)
{
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 3, .recovery_ms = HOUR_MS,
                          .min_clients = 2);
    const char *name = core_name();
    dibs_client *cl[CLIENTS + 1];
    dibs_breaker *br[CLIENTS + 1];
    dibs_pass pass;
    int bad = 1;

    (void)state;
    for (int i = 0; i <= CLIENTS; i++) {
        cl[i] = core_open();
        br[i] = open_breaker(cl[i], name, opts);
    }
    assert_true(call(br[0], 3, false));
    assert_false(passes(br[0], &pass));
    while (look(br[CLIENTS]).bad < 3 &&
           look(br[CLIENTS]).state == DIBS_BREAKER_CLOSED)
        poll(NULL, 0, 1);
    assert_true(call(br[CLIENTS], 5, true));
    assert_int_equal(look(br[CLIENTS]).state, DIBS_BREAKER_CLOSED);
    /* A call that is refused: that client has heard of it first. */
    while (bad < CLIENTS && look(br[CLIENTS]).state == DIBS_BREAKER_CLOSED &&
           call(br[bad++], 1, false))
        while (look(br[CLIENTS]).bad < 2 + bad &&
               look(br[CLIENTS]).state == DIBS_BREAKER_CLOSED)
            poll(NULL, 0, 1);
    core_until(is_open, br[CLIENTS]);
    for (int i = 0; i <= CLIENTS; i++) {
        dibs_breaker_free(br[i]);
        dibs_close(cl[i]);
    }
}

static void state_survives_restart(void **state)
{
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 2, .recovery_ms = HOUR_MS);
    dibs_client *keeps = core_open(), *cl = core_open();
    const char *name = core_name();
    dibs_breaker *br = open_breaker(cl, name, opts);
    dibs_pass pass;

    (void)state;
    trip(br, 2);
    dibs_breaker_free(br);
    dibs_close(cl);
    cl = core_open();
    br = open_breaker(cl, name, opts);
    assert_false(passes(br, &pass));
    assert_true(dibs_breaker_retry_ms(br) > HOUR_MS / 2);
    dibs_breaker_free(br);
    dibs_close(cl);
    dibs_close(keeps);
}

/* The client that opened it is gone, and another one finds that it has recovered. */
static void open_breaker_recovers_after_restart(void **state)
{
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1);
    dibs_client *keeps = core_open(), *cl = core_open();
    const char *name = core_name();
    dibs_breaker *br = open_breaker(cl, name, opts);
    dibs_pass pass;

    (void)state;
    trip(br, 1);
    dibs_breaker_free(br);
    dibs_close(cl);
    cl = core_open();
    br = open_breaker(cl, name, opts);
    core_until(is_open, br);
    pass = probe(br);
    assert_true(pass.permit != 0);
    dibs_breaker_leave(br, &pass, true);
    core_until(is_closed, br);
    dibs_breaker_free(br);
    dibs_close(cl);
    dibs_close(keeps);
}

static void slow_calls_count_too(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(),
                     DIBS_BREAKER_OPTS(.slow_ms = 100, .slow_percent = 50,
                                       .min_calls = 4, .recovery_ms = 1));
    dibs_pass pass;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_true(passes(br, &pass));
        dibs_breaker_leave_after(br, &pass, true, i % 2 ? 100 : 99);
    }
    core_until(is_open, br);
    pass = probe(br);
    dibs_breaker_leave_after(br, &pass, true, 5000);
    assert_int_not_equal(look(br).state, DIBS_BREAKER_CLOSED);
    pass = probe(br);
    dibs_breaker_leave_after(br, &pass, true, 10);
    core_until(is_closed, br);
    dibs_breaker_free(br);
    dibs_close(cl);
}

static void forced_open_stays_open(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(), DIBS_BREAKER_OPTS(.recovery_ms = 1));
    dibs_error why = {0};
    dibs_pass pass;

    (void)state;
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_FORCED, err));
    assert_status(dibs_breaker_enter(br, &pass, &why), DIBS_BUSY);
    assert_non_null(strstr(why.message, "dibs breaker close"));
    assert_int_equal(dibs_breaker_retry_ms(br), -1);
    assert_int_equal(look(br).state, DIBS_BREAKER_FORCED);
    assert_false(passes(br, &pass));
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_CLOSED, err));
    assert_true(call(br, 1, true));
    CHECK(DIBS_INVALID, dibs_breaker_force(br, DIBS_BREAKER_HALF_OPEN, err));
    dibs_breaker_free(br);
    dibs_close(cl);
}

/* The next state that a watch of the key delivers. Only a tell of the store shows that
 * there was no other between. */
static dibs_change next_state(dibs_watch *watch, const char *text)
{
    dibs_change ch;

    CHECK(DIBS_OK, dibs_watch_next(watch, pace_ms(30000), &ch, err));
    assert_non_null(ch.value.data);
    assert_non_null(strstr(ch.value.data, text));
    dibs_value_free(&ch.value);
    return ch;
}

/* A client has a breaker and watches its key: the store tells both, and goes on
 * telling the one that is left. */
static void a_watch_of_its_key_is_told_as_well(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_breaker *own = open_breaker(cl, name, NULL);
    dibs_breaker *remote = open_breaker(other, name, NULL);
    dibs_watch *watch = NULL;
    char key[128];

    (void)state;
    CHECK(DIBS_OK, dibs_breaker_force(remote, DIBS_BREAKER_CLOSED, err));
    core_until(has_state, own);
    snprintf(key, sizeof(key), "dibs.breaker/%s", name);
    CHECK(DIBS_OK, dibs_state_watch(cl, key, &watch, err));
    (void)next_state(watch, "closed");
    CHECK(DIBS_OK, dibs_breaker_force(remote, DIBS_BREAKER_FORCED, err));
    IN_TIME(!next_state(watch, "forced").merged);
    core_until(is_refused, own);
    dibs_breaker_free(own);
    CHECK(DIBS_OK, dibs_breaker_force(remote, DIBS_BREAKER_CLOSED, err));
    IN_TIME(!next_state(watch, "closed").merged);
    dibs_watch_free(watch);
    dibs_breaker_free(remote);
    dibs_close(cl);
    dibs_close(other);
}

/* As programs that make one call each. */
static void what_was_not_reported_is_sent_when_it_is_freed(void **state)
{
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 3, .recovery_ms = HOUR_MS);
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_pass pass;

    (void)state;
    for (int i = 0; i < 4; i++) {
        dibs_breaker *br = open_breaker(cl, name, opts);

        assert_int_equal(passes(br, &pass), i < 3);
        dibs_breaker_leave(br, &pass, false);
        dibs_breaker_free(br);
    }
    dibs_close(cl);
}

static void calls_come_back_little_by_little(void **state)
{
    dibs_client *cl = core_open();
    dibs_breaker *br =
        open_breaker(cl, core_name(),
                     DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1,
                                       .ramp_ms = HOUR_MS));
    dibs_pass pass;
    int passed = 0;

    (void)state;
    trip(br, 1);
    pass = probe(br);
    dibs_breaker_leave(br, &pass, true);
    core_until(is_closed, br);
    for (int i = 0; i < 1000; i++)
        passed += call(br, 1, true);
    assert_in_range(passed, 1, 100);
    dibs_breaker_free(br);
    dibs_close(cl);
}

typedef struct listed {
    char names[1024];
    dibs_breaker_state states[4];
    int count, most;
} listed;

static bool
note_breaker(const char *name, const dibs_breaker_info *info, void *arg)
{
    listed *li = arg;
    size_t len = strlen(li->names);

    snprintf(li->names + len, sizeof(li->names) - len, "%s ", name);
    li->states[li->count % 4] = info->state;
    return ++li->count < li->most;
}

static void breakers_are_listed(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char begins[64], name[3][DIBS_NAME_MAX + 1], all[1024];
    listed li = {.most = 10}, one = {.most = 1}, none = {.most = 10};

    (void)state;
    snprintf(begins, sizeof(begins), "%.40s", core_name());
    for (int i = 0; i < 3; i++) {
        dibs_breaker *br;

        snprintf(name[i], sizeof(name[i]), "%s-%d", begins, i);
        br = open_breaker(cl, name[i], DIBS_BREAKER_OPTS(.threshold = 1));
        if (i == 0)
            CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_FORCED, err));
        else
            assert_true(call(br, 1, i == 2));
        dibs_breaker_free(br);
    }
    CHECK(DIBS_OK, dibs_breaker_list(other, begins, note_breaker, &li, err));
    snprintf(all, sizeof(all), "%s %s ", name[0], name[1]);
    assert_string_equal(li.names, all); /* the third was never open */
    assert_int_equal(li.states[0], DIBS_BREAKER_FORCED);
    assert_int_not_equal(li.states[1], DIBS_BREAKER_CLOSED);
    CHECK(DIBS_OK, dibs_breaker_list(other, begins, note_breaker, &one, err));
    assert_int_equal(one.count, 1);
    CHECK(DIBS_OK, dibs_breaker_list(other, name[2], note_breaker, &none, err));
    assert_int_equal(none.count, 0);
    dibs_close(other);
    dibs_close(cl);
}

static bool has_bad(void *arg)
{
    return look(arg).bad == 6;
}

static bool has_good(void *arg)
{
    return look(arg).good == 1;
}

/* One has many bad calls under a high threshold, one a good probe of three. */
static void a_look_under_other_rules_changes_nothing(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char begins[64], name[2][DIBS_NAME_MAX + 1];
    dibs_breaker *br[2];
    dibs_breaker_info was[2], is;
    dibs_pass pass;

    (void)state;
    snprintf(begins, sizeof(begins), "%.40s", core_name());
    for (int i = 0; i < 2; i++)
        snprintf(name[i], sizeof(name[i]), "%s-%d", begins, i);
    br[0] = open_breaker(cl, name[0], DIBS_BREAKER_OPTS(.threshold = 100));
    CHECK(DIBS_OK, dibs_breaker_force(br[0], DIBS_BREAKER_CLOSED, err));
    assert_true(call(br[0], 6, false));
    core_until(has_bad, br[0]);
    br[1] = open_breaker(cl, name[1],
                         DIBS_BREAKER_OPTS(.threshold = 1, .recovery_ms = 1,
                                           .need = 3, .probe_ttl_ms = HOUR_MS));
    trip(br[1], 1);
    pass = probe(br[1]);
    dibs_breaker_leave(br[1], &pass, true);
    core_until(has_good, br[1]);
    for (int i = 0; i < 2; i++)
        was[i] = look(br[i]);
    for (int round = 0; round < 3; round++) {
        listed li = {.most = 10};

        CHECK(DIBS_OK,
              dibs_breaker_list(other, begins, note_breaker, &li, err));
        assert_int_equal(li.count, 2);
        assert_int_equal(li.states[0], DIBS_BREAKER_CLOSED);
        assert_int_equal(li.states[1], DIBS_BREAKER_HALF_OPEN);
        for (int i = 0; i < 2; i++) {
            dibs_breaker *looks = open_breaker(other, name[i], NULL);

            is = look(looks);
            assert_int_equal(is.version, was[i].version);
            assert_int_equal(is.good, i);
            dibs_breaker_free(looks);
        }
    }
    for (int i = 0; i < 2; i++) {
        is = look(br[i]);
        assert_int_equal(is.version, was[i].version);
        dibs_breaker_free(br[i]);
    }
    dibs_close(other);
    dibs_close(cl);
}

static void numbers_that_make_no_sense_are_refused(void **state)
{
    const dibs_breaker_opts *bad[] = {
        DIBS_BREAKER_OPTS(.threshold = -1),
        DIBS_BREAKER_OPTS(.rate_percent = 101),
        DIBS_BREAKER_OPTS(.sampling_ms = INT64_C(86400001)),
        DIBS_BREAKER_OPTS(.min_clients = 33),
        DIBS_BREAKER_OPTS(.slow_percent = 10),
        &(dibs_breaker_opts){.size = 1},
    };
    dibs_client *cl = core_open();
    dibs_breaker *br = NULL;
    dibs_pass pass;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(DIBS_INVALID,
              dibs_breaker_new(cl, core_name(), bad[i], &br, err));
    CHECK(DIBS_INVALID, dibs_breaker_enter(NULL, &pass, err));
    dibs_breaker_leave(NULL, &pass, true);
    dibs_breaker_free(NULL);
    dibs_close(cl);
}

int core_breaker_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_and_closes_for_all_clients),
        cmocka_unit_test(probe_that_never_ends_frees_its_permit),
        cmocka_unit_test(pass_dropped_by_the_caller),
        cmocka_unit_test(no_more_probes_than_permits_at_recovery),
        cmocka_unit_test(probes_follow_each_other),
        cmocka_unit_test(another_number_of_probes_is_refused),
        cmocka_unit_test(late_result_of_an_older_version),
        cmocka_unit_test(recovery_is_not_pushed_back),
        cmocka_unit_test(few_calls_after_recovery_still_decide),
        cmocka_unit_test(open_below_threshold_recovers),
        cmocka_unit_test(one_bad_client_opens_only_itself),
        cmocka_unit_test(state_survives_restart),
        cmocka_unit_test(open_breaker_recovers_after_restart),
        cmocka_unit_test(slow_calls_count_too),
        cmocka_unit_test(forced_open_stays_open),
        cmocka_unit_test(a_watch_of_its_key_is_told_as_well),
        cmocka_unit_test(what_was_not_reported_is_sent_when_it_is_freed),
        cmocka_unit_test(calls_come_back_little_by_little),
        cmocka_unit_test(breakers_are_listed),
        cmocka_unit_test(a_look_under_other_rules_changes_nothing),
        cmocka_unit_test(numbers_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
