/* loss.c - losing a lease: told by callback, by descriptor and by the handle. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

static void count_loss(dibs_lock *lock, void *arg)
{
    (void)lock;
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static bool was_told(void *arg)
{
    return __atomic_load_n((int *)arg, __ATOMIC_SEQ_CST) > 0;
}

static bool readable(int fd, int timeout_ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    return poll(&pfd, 1, timeout_ms) == 1;
}

static void a_lease_that_is_kept_stays(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock =
        core_lock(cl, core_name(), DIBS_LOCK_OPTS(.ttl_ms = pace_ms(1000)));
    dibs_stats stats = {.size = sizeof(stats)};
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    do {
        poll(NULL, 0, 1);
        dibs_stats_get(cl, &stats);
        IN_TIME(dibs_lock_state_get(lock) == DIBS_LOCK_HELD);
    } while (stats.renewed < 3);
    IN_TIME(dibs_lock_fence(lock) == fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The ttl is so long that only renewals that were asked for come. */
static void assert_renewed(dibs_client *cl, const dibs_lock_opts *opts)
{
    dibs_lock *lock = core_lock(cl, core_name(), opts);
    dibs_stats stats = {.size = sizeof(stats)};

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    do {
        poll(NULL, 0, 1);
        dibs_stats_get(cl, &stats);
    } while (stats.renewed < 2);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void a_lease_is_renewed_as_often_as_asked(void **state)
{
    dibs_client *cl = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_open(core_url, DIBS_CLIENT_OPTS(.renew_every_ms = 20),
                             &cl, err));
    assert_renewed(cl, DIBS_LOCK_OPTS(.ttl_ms = 3600000));
    assert_renewed(core_open(),
                   DIBS_LOCK_OPTS(.ttl_ms = 3600000, .renew_every_ms = 20));
}

static void expiry_is_announced_once(void **state)
{
    dibs_client *cl = core_open();
    int told = 0;
    dibs_lock *lock =
        core_lock(cl, core_name(),
                  DIBS_LOCK_OPTS(.ttl_ms = pace_ms(120),
                                 .wait_ms = pace_ms(2000),
                                 .flags = DIBS_LOCK_NO_RENEW,
                                 .on_lost = count_loss, .on_lost_arg = &told));
    dibs_stats stats = {.size = sizeof(stats)};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    IN_TIME(!readable(dibs_lock_lost_fd(lock), 0));
    IN_TIME(readable(dibs_lock_lost_fd(lock), (int)pace_ms(5000)));
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_LOST);
    assert_int_equal(dibs_lock_fence(lock), 0);
    core_until(was_told, &told);
    CHECK(DIBS_LOST, dibs_lock_renew(lock, err));
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.lost, 1);
    assert_int_equal(stats.held, 0);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    IN_TIME(!readable(dibs_lock_lost_fd(lock), 0));
    IN_TIME(__atomic_load_n(&told, __ATOMIC_SEQ_CST) == 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

typedef struct renewal_log {
    int steps;    /* that renewed leases */
    int together; /* of them, those that renewed several */
} renewal_log;

static void note_renewal(dibs_log_level level, const char *event,
                         const char *text, void *arg)
{
    renewal_log *log = arg;

    (void)level;
    if (strcmp(event, "renewed") != 0)
        return;
    if (strstr(text, " and others"))
        __atomic_add_fetch(&log->together, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&log->steps, 1, __ATOMIC_SEQ_CST);
}

/* The second lease is due a moment after the first, and goes along. The third one is
 * the program's to renew, and does not. */
static void leases_that_are_due_soon_are_renewed_together(void **state)
{
    enum { LOCKS = 3 };
    renewal_log log = {0};
    dibs_client *cl = NULL;
    dibs_lock *locks[LOCKS];
    dibs_stats stats = {.size = sizeof(stats)};
    int64_t every_ms = pace_ms(800), by_hand_ms;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = note_renewal, .log_arg = &log,
                                     .log_level = DIBS_LOG_TRACE),
                    &cl, err));
    for (int i = 0; i < LOCKS; i++)
        locks[i] =
            core_lock(cl, core_name(),
                      DIBS_LOCK_OPTS(.ttl_ms = 40 * every_ms,
                                     .renew_every_ms = every_ms,
                                     .flags = i == 2 ? DIBS_LOCK_NO_RENEW : 0));
    for (int i = 0; i < LOCKS; i++)
        CHECK(DIBS_OK, dibs_lock_try(locks[i], err));
    by_hand_ms = dibs_lock_valid_ms(locks[2]);
    core_until(was_told, &log.steps);
    IN_TIME(__atomic_load_n(&log.together, __ATOMIC_SEQ_CST) == 1);
    do
        dibs_stats_get(cl, &stats);
    while (stats.renewed < 2);
    IN_TIME(stats.renewed == 2);
    assert_true(dibs_lock_valid_ms(locks[2]) < by_hand_ms);
    for (int i = 0; i < LOCKS; i++)
        dibs_lock_free(locks[i]);
    dibs_close(cl);
}

typedef struct late_log {
    int told;
    int told_at_log; /* losses that were told when the log heard of one */
    int logged;
} late_log;

static void
note_order(dibs_log_level level, const char *event, const char *text, void *arg)
{
    late_log *log = arg;

    (void)level;
    (void)text;
    if (strcmp(event, "lost") != 0)
        return;
    log->told_at_log = __atomic_load_n(&log->told, __ATOMIC_SEQ_CST);
    __atomic_store_n(&log->logged, 1, __ATOMIC_SEQ_CST);
}

/* A sink may be slow; the program must hear of the loss all the same. */
static void the_callback_comes_before_the_log(void **state)
{
    late_log log = {0};
    dibs_client *cl = NULL;
    dibs_lock *lock;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = note_order, .log_arg = &log,
                                     .log_level = DIBS_LOG_WARN),
                    &cl, err));
    lock = core_lock(cl, core_name(),
                     DIBS_LOCK_OPTS(.ttl_ms = pace_ms(60),
                                    .flags = DIBS_LOCK_NO_RENEW,
                                    .on_lost = count_loss,
                                    .on_lost_arg = &log.told));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    core_until(was_told, &log.logged);
    assert_int_equal(log.told_at_log, 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

typedef struct glance {
    dibs_lock *at;
    int lost_fd;
    dibs_status rc;
    dibs_lock_state state;
    uint64_t fence;
    int done;
} glance;

/* Holds up the keeper, whose thread this is, until another lease has ended. */
static void look_at_another(dibs_lock *lock, void *arg)
{
    glance *gl = arg;

    (void)lock;
    (void)readable(gl->lost_fd, 5000);
    gl->rc = dibs_lock_check(gl->at);
    gl->state = dibs_lock_state_get(gl->at);
    gl->fence = dibs_lock_fence(gl->at);
    __atomic_store_n(&gl->done, 1, __ATOMIC_SEQ_CST);
}

/* A log whose reader stands still, at the first line about a loss. */
typedef struct held_log {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool inside, let_go;
} held_log;

static void hold_line(dibs_log_level level, const char *event,
                      const char *message, void *arg)
{
    held_log *log = arg;

    (void)level;
    (void)message;
    if (strcmp(event, "lost") != 0)
        return;
    pthread_mutex_lock(&log->mutex);
    log->inside = true;
    pthread_cond_broadcast(&log->cond);
    while (!log->let_go)
        pthread_cond_wait(&log->cond, &log->mutex);
    pthread_mutex_unlock(&log->mutex);
}

static bool lags(void *arg)
{
    return dibs_keeper_lag_ms(arg) > 0;
}

static bool answers(void *arg)
{
    return dibs_keeper_lag_ms(arg) == 0;
}

static void a_keeper_that_stands_still_is_seen(void **state)
{
    held_log log = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                    .cond = PTHREAD_COND_INITIALIZER};
    dibs_client *cl = NULL;
    dibs_lock *lock;

    (void)state;
    CHECK(DIBS_OK, dibs_open(core_url,
                             DIBS_CLIENT_OPTS(.log = hold_line, .log_arg = &log,
                                              .log_level = DIBS_LOG_WARN),
                             &cl, err));
    lock = core_lock(cl, core_name(),
                     DIBS_LOCK_OPTS(.ttl_ms = pace_ms(60),
                                    .flags = DIBS_LOCK_NO_RENEW));
    assert_int_equal(dibs_keeper_lag_ms(cl), 0);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    pthread_mutex_lock(&log.mutex);
    while (!log.inside)
        pthread_cond_wait(&log.cond, &log.mutex);
    pthread_mutex_unlock(&log.mutex);
    core_until(lags, cl);
    pthread_mutex_lock(&log.mutex);
    log.let_go = true;
    pthread_cond_broadcast(&log.cond);
    pthread_mutex_unlock(&log.mutex);
    core_until(answers, cl);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void an_end_needs_nobody_to_note_it(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *later =
        core_lock(cl, core_name(),
                  DIBS_LOCK_OPTS(.ttl_ms = 600, .flags = DIBS_LOCK_NO_RENEW));
    glance gl = {.at = later, .lost_fd = dibs_lock_lost_fd(later)};
    dibs_lock *lock =
        core_lock(cl, core_name(),
                  DIBS_LOCK_OPTS(.ttl_ms = 100, .flags = DIBS_LOCK_NO_RENEW,
                                 .on_lost = look_at_another,
                                 .on_lost_arg = &gl));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(later, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    core_until(was_told, &gl.done);
    CHECK(DIBS_LOST, gl.rc);
    assert_int_equal(gl.state, DIBS_LOCK_LOST);
    assert_int_equal(gl.fence, 0);
    dibs_lock_free(lock);
    dibs_lock_free(later);
    dibs_close(cl);
}

static void a_broken_lease_is_told_by_its_doorbell(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    int told = 0;
    /* With half a minute between renewals only the notice can be this fast. */
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.ttl_ms = 100000, .wait_ms = 1000,
                                 .on_lost = count_loss, .on_lost_arg = &told));
    uint32_t broken = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_STALE, dibs_lease_break(other, name, dibs_lock_fence(lock) + 1,
                                       "test", &broken, err));
    assert_int_equal(broken, 0);
    CHECK(DIBS_OK, dibs_lease_break(other, name, dibs_lock_fence(lock), "test",
                                    &broken, err));
    assert_int_equal(broken, 1);
    core_until(was_told, &told);
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_LOST);
    assert_true(readable(dibs_lock_lost_fd(lock), 0));
    CHECK(DIBS_NOTFOUND, dibs_lease_break(other, name, 0, NULL, NULL, err));
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(cl);
}

static void what_is_taken_again_is_renewed_again(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = pace_ms(1000)));
    dibs_stats stats = {.size = sizeof(stats)};
    uint64_t before, fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
    CHECK(DIBS_LOST, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    dibs_stats_get(cl, &stats);
    before = stats.renewed;
    do {
        poll(NULL, 0, 1);
        dibs_stats_get(cl, &stats);
        IN_TIME(dibs_lock_state_get(lock) == DIBS_LOCK_HELD);
    } while (stats.renewed < before + 4);
    IN_TIME(dibs_lock_fence(lock) == fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The acquire comes before the keeper has seen the loss, most of the time. */
static void a_loss_that_an_acquire_replaces_is_counted(void **state)
{
    enum { TIMES = 200 };
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, NULL);
    dibs_stats stats = {.size = sizeof(stats)};

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, "test", NULL, err));
        CHECK(DIBS_LOST, dibs_lock_renew(lock, err));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    }
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.lost, TIMES);
    assert_int_equal(stats.released, TIMES);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void hold_max_ends_it(void **state)
{
    dibs_client *cl = core_open();
    int told = 0;
    dibs_lock *lock =
        core_lock(cl, core_name(),
                  DIBS_LOCK_OPTS(.ttl_ms = pace_ms(900),
                                 .hold_max_ms = pace_ms(2500),
                                 .on_lost = count_loss, .on_lost_arg = &told));
    dibs_stats stats = {.size = sizeof(stats)};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    core_until(was_told, &told);
    dibs_stats_get(cl, &stats);
    IN_TIME(stats.renewed >= 1);
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_LOST);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void release_in_callback(dibs_lock *lock, void *arg)
{
    int *told = arg;

    __atomic_store_n(told, dibs_lock_release(lock, NULL) == DIBS_LOST ? 1 : -1,
                     __ATOMIC_SEQ_CST);
}

static void the_callback_may_release(void **state)
{
    dibs_client *cl = core_open();
    int told = 0;
    dibs_lock *lock = core_lock(cl, core_name(),
                                DIBS_LOCK_OPTS(.ttl_ms = pace_ms(60),
                                               .flags = DIBS_LOCK_NO_RENEW,
                                               .on_lost = release_in_callback,
                                               .on_lost_arg = &told));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    core_until(was_told, &told);
    assert_int_equal(told, 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void renewing_by_hand_extends(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock =
        core_lock(cl, core_name(),
                  DIBS_LOCK_OPTS(.ttl_ms = 400, .flags = DIBS_LOCK_NO_RENEW));
    int64_t before_ms;

    (void)state;
    CHECK(DIBS_LOST, dibs_lock_renew(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    do {
        poll(NULL, 0, 1);
        before_ms = dibs_lock_valid_ms(lock);
    } while (before_ms > 300);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    IN_TIME(dibs_lock_valid_ms(lock) > before_ms);
    dibs_lock_free(lock);
    dibs_close(cl);
}

int core_loss_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_that_is_kept_stays),
        cmocka_unit_test(a_lease_is_renewed_as_often_as_asked),
        cmocka_unit_test(expiry_is_announced_once),
        cmocka_unit_test(leases_that_are_due_soon_are_renewed_together),
        cmocka_unit_test(the_callback_comes_before_the_log),
        cmocka_unit_test(a_keeper_that_stands_still_is_seen),
        cmocka_unit_test(an_end_needs_nobody_to_note_it),
        cmocka_unit_test(a_broken_lease_is_told_by_its_doorbell),
        cmocka_unit_test(what_is_taken_again_is_renewed_again),
        cmocka_unit_test(a_loss_that_an_acquire_replaces_is_counted),
        cmocka_unit_test(hold_max_ends_it),
        cmocka_unit_test(the_callback_may_release),
        cmocka_unit_test(renewing_by_hand_extends),
    };

    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
