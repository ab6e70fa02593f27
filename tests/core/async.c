/* async.c - taking and giving back without blocking: callbacks on a thread of the
 * client, and on the program's own by descriptor and process. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a callback has seen. It outlives the test: a call that is under way when the
 * test fails writes there all the same. */
typedef struct seen {
    atomic_int calls;
    dibs_status rc;
    dibs_error err;
    pthread_t thread;
    uint64_t fence;
} seen;

static void
see(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    seen *sn = arg;

    sn->rc = rc;
    sn->err = *err;
    sn->thread = pthread_self();
    sn->fence = dibs_lock_fence(lock);
    atomic_fetch_add(&sn->calls, 1);
}

static bool is_called(void *arg)
{
    return atomic_load(&((seen *)arg)->calls) > 0;
}

/* A world: a client, a name, and a handle that holds it. */
typedef struct scene {
    dibs_client *cl;
    const char *name;
    dibs_lock *holder;
} scene;

static scene set_up(void)
{
    scene sc = {.cl = core_open(), .name = core_name()};

    sc.holder = core_lock(sc.cl, sc.name, NULL);
    CHECK(DIBS_OK, dibs_lock_try(sc.holder, err));
    return sc;
}

static void tear_down(scene *sc)
{
    dibs_lock_free(sc->holder);
    dibs_close(sc->cl);
}

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

typedef struct queue {
    scene *sc;
    size_t length;
} queue;

static bool queue_has(void *arg)
{
    const queue *qu = arg;
    size_t count = 0;
    dibs_status rc =
        dibs_lease_show(qu->sc->cl, qu->sc->name, count_waiters, &count, NULL);

    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    return count == qu->length;
}

static void await_queue(scene *sc, size_t length)
{
    queue qu = {.sc = sc, .length = length};

    core_until(queue_has, &qu);
}

/* Runs callbacks on this thread until the one that is waited for was called. */
static void process_until(dibs_client *cl, seen *sn)
{
    struct pollfd pfd = {.fd = dibs_async_fd(cl), .events = POLLIN};

    while (!is_called(sn)) {
        IN_TIME(poll(&pfd, 1, (int)pace_ms(10000)) == 1);
        (void)dibs_async_process(cl);
    }
}

static void a_free_lock_is_granted_to_a_callback(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    static seen sn, gone;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    core_until(is_called, &sn);
    CHECK(DIBS_OK, sn.rc);
    assert_status(sn.err.status, DIBS_OK);
    assert_true(sn.fence > 0);
    assert_false(pthread_equal(sn.thread, pthread_self()));
    CHECK(DIBS_OK, dibs_lock_release_async(lock, see, &gone, err));
    assert_int_equal(dibs_lock_fence(lock), 0);
    core_until(is_called, &gone);
    CHECK(DIBS_OK, gone.rc);
    assert_int_equal(atomic_load(&sn.calls), 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void a_release_hands_over(void **state)
{
    scene sc = set_up();
    dibs_lock *lock = core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
    uint64_t fence = dibs_lock_fence(sc.holder);
    static seen sn;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    await_queue(&sc, 1);
    assert_false(is_called(&sn));
    assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_WAITING);
    CHECK(DIBS_INVALID, dibs_lock_try(lock, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire_async(lock, see, &sn, err));
    CHECK(DIBS_INVALID, dibs_lock_release_async(lock, see, &sn, err));
    CHECK(DIBS_OK, dibs_lock_release(sc.holder, err));
    core_until(is_called, &sn);
    CHECK(DIBS_OK, sn.rc);
    assert_true(sn.fence > fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    tear_down(&sc);
}

/* The next acquire of the handle comes after it, on every store. */
static void a_release_that_is_not_awaited_frees_the_handle(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    uint64_t fence = 0;

    (void)state;
    for (int i = 0; i < 50; i++) {
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        assert_true(dibs_lock_fence(lock) > fence);
        fence = dibs_lock_fence(lock);
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
        assert_int_equal(dibs_lock_fence(lock), 0);
        assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
    }
    CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void an_acquire_by_callback_follows_such_a_release(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    static seen sn;

    (void)state;
    for (int i = 0; i < 20; i++) {
        atomic_store(&sn.calls, 0);
        CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
        core_until(is_called, &sn);
        CHECK(DIBS_OK, sn.rc);
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
    }
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The client keeps the lease, and nothing is sent. */
static void a_sticky_lease_outlasts_such_a_release(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock =
        core_lock(cl, core_name(),
                  DIBS_LOCK_OPTS(.ttl_ms = 60000, .flags = DIBS_LOCK_STICKY));
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    for (int i = 0; i < 3; i++) {
        CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
        assert_int_equal(dibs_lock_state_get(lock), DIBS_LOCK_FREE);
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        assert_int_equal(dibs_lock_fence(lock), fence);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* Freed and closed at once, and the name is free for others. */
static void such_a_release_outlives_its_handle(void **state)
{
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *next = core_lock(other, name, NULL);

    (void)state;
    for (int i = 0; i < 10; i++) {
        dibs_client *cl = core_open();

        for (int j = 0; j < 2; j++) {
            dibs_lock *lock = core_lock(cl, name, NULL);

            CHECK(DIBS_OK, dibs_lock_try(lock, err));
            CHECK(DIBS_OK, dibs_lock_release_async(lock, NULL, NULL, err));
            dibs_lock_free(lock);
        }
        dibs_close(cl);
        CHECK(DIBS_OK, dibs_lock_try(next, err));
        CHECK(DIBS_OK, dibs_lock_release(next, err));
    }
    dibs_lock_free(next);
    dibs_close(other);
}

static void callbacks_run_in_process_once_there_is_a_descriptor(void **state)
{
    scene sc = set_up();
    dibs_lock *lock = core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
    struct pollfd pfd = {.fd = dibs_async_fd(sc.cl), .events = POLLIN};
    static seen sn;

    (void)state;
    assert_true(pfd.fd >= 0);
    assert_int_equal(dibs_async_fd(sc.cl), pfd.fd);
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    await_queue(&sc, 1);
    assert_int_equal(poll(&pfd, 1, 0), 0);
    assert_int_equal(dibs_async_timeout_ms(sc.cl), -1);
    assert_int_equal(dibs_async_process(sc.cl), 0);
    CHECK(DIBS_OK, dibs_lock_release(sc.holder, err));
    IN_TIME(poll(&pfd, 1, (int)pace_ms(10000)) == 1);
    assert_int_equal(dibs_async_timeout_ms(sc.cl), 0);
    assert_false(is_called(&sn));
    /* A claim that has lapsed meanwhile is not told. */
    IN_TIME(dibs_async_process(sc.cl) == 1);
    assert_true(is_called(&sn));
    CHECK(DIBS_OK, sn.rc);
    assert_true(pthread_equal(sn.thread, pthread_self()));
    assert_int_equal(poll(&pfd, 1, 0), 0);
    assert_int_equal(dibs_async_process(sc.cl), 0);
    dibs_lock_free(lock);
    tear_down(&sc);
}

static void see_loss(dibs_lock *lock, void *arg)
{
    seen *sn = arg;

    (void)lock;
    sn->thread = pthread_self();
    atomic_fetch_add(&sn->calls, 1);
}

/* A loop that is busy must not delay it: nothing is processed here. */
static void a_loss_is_told_by_the_keeper_with_a_descriptor_too(void **state)
{
    static seen sn;
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.ttl_ms = pace_ms(60),
                                 .flags = DIBS_LOCK_NO_RENEW,
                                 .on_lost = see_loss, .on_lost_arg = &sn));

    (void)state;
    assert_true(dibs_async_fd(cl) >= 0);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    core_until(is_called, &sn);
    assert_false(pthread_equal(sn.thread, pthread_self()));
    assert_int_equal(dibs_async_process(cl), 0);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void refusals_and_timeouts_are_told(void **state)
{
    scene sc = set_up();
    dibs_lock *once = core_lock(sc.cl, sc.name, NULL);
    dibs_lock *again =
        core_lock(sc.cl, sc.name,
                  DIBS_LOCK_OPTS(.retries = 2, .retry_delay_ms = 10));
    dibs_lock *bounded =
        core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = pace_ms(50)));
    static seen busy, busier, late, none;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(once, see, &busy, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(again, see, &busier, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(bounded, see, &late, err));
    core_until(is_called, &busy);
    core_until(is_called, &busier);
    core_until(is_called, &late);
    CHECK(DIBS_BUSY, busy.rc);
    assert_status(busy.err.status, DIBS_BUSY);
    assert_true(strlen(busy.err.message) > 0);
    CHECK(DIBS_BUSY, busier.rc);
    CHECK(DIBS_TIMEOUT, late.rc);
    assert_status(late.err.status, DIBS_TIMEOUT);
    CHECK(DIBS_OK, dibs_lock_release_async(once, see, &none, err));
    core_until(is_called, &none);
    CHECK(DIBS_LOST, none.rc);
    CHECK(DIBS_INVALID, dibs_lock_acquire_async(once, NULL, NULL, err));
    CHECK(DIBS_INVALID, dibs_lock_acquire_async(NULL, see, NULL, err));
    await_queue(&sc, 0);
    dibs_lock_free(once);
    dibs_lock_free(again);
    dibs_lock_free(bounded);
    tear_down(&sc);
}

static void *cancel_it(void *arg)
{
    dibs_lock_cancel(arg);
    return NULL;
}

static void a_cancel_from_another_thread_ends_it(void **state)
{
    scene sc = set_up();
    dibs_lock *lock = core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
    dibs_stats stats = {.size = sizeof(stats)};
    pthread_t thread;
    static seen sn;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    await_queue(&sc, 1);
    assert_int_equal(pthread_create(&thread, NULL, cancel_it, lock), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    core_until(is_called, &sn);
    CHECK(DIBS_CANCELLED, sn.rc);
    await_queue(&sc, 0);
    dibs_stats_get(sc.cl, &stats);
    assert_int_equal(stats.waiting, 0);
    dibs_lock_free(lock);
    tear_down(&sc);
}

/* One that is cancelled as soon as it was started ends as well. */
static void a_cancel_at_once_ends_it(void **state)
{
    scene sc = set_up();
    dibs_lock *lock = core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
    static seen sn;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    dibs_lock_cancel(lock);
    core_until(is_called, &sn);
    CHECK(DIBS_CANCELLED, sn.rc);
    dibs_lock_free(lock);
    tear_down(&sc);
}

enum { FREED = 20 };

/* Whatever the acquire is at when its lock is freed, it is not called back, and
 * leaves nothing in the queue. */
static void freeing_ends_it_silently(void **state)
{
    scene sc = set_up();
    dibs_lock *locks[FREED];
    static seen sn;

    (void)state;
    for (size_t i = 0; i < FREED; i++) {
        locks[i] = core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
        CHECK(DIBS_OK, dibs_lock_acquire_async(locks[i], see, &sn, err));
        if (i == FREED / 2)
            await_queue(&sc, i + 1);
    }
    for (size_t i = 0; i < FREED; i++)
        dibs_lock_free(locks[i]);
    assert_int_equal(atomic_load(&sn.calls), 0);
    await_queue(&sc, 0);
    tear_down(&sc);
}

/* A grant that the program has not been told of goes back as well. */
static void freeing_gives_back_an_untold_grant(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, NULL);
    dibs_lock *next = core_lock(cl, name, NULL);
    struct pollfd pfd = {.fd = dibs_async_fd(cl), .events = POLLIN};
    static seen sn;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    IN_TIME(poll(&pfd, 1, (int)pace_ms(10000)) == 1);
    dibs_lock_free(lock);
    assert_int_equal(dibs_async_process(cl), 0);
    assert_int_equal(atomic_load(&sn.calls), 0);
    CHECK(DIBS_OK, dibs_lock_try(next, err));
    dibs_lock_free(next);
    dibs_close(cl);
}

static void closing_calls_back_those_that_wait(void **state)
{
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(other, name, NULL);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    for (int with_fd = 0; with_fd < 2; with_fd++) {
        dibs_client *cl = core_open();
        dibs_lock *a = core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = -1));
        dibs_lock *b = core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = 60000));
        scene sc = {.cl = other, .name = name};
        static seen both[2];
        seen *sn = &both[with_fd];

        if (with_fd)
            assert_true(dibs_async_fd(cl) >= 0);
        CHECK(DIBS_OK, dibs_lock_acquire_async(a, see, sn, err));
        CHECK(DIBS_OK, dibs_lock_acquire_async(b, see, sn, err));
        await_queue(&sc, 2);
        dibs_close(cl);
        assert_int_equal(atomic_load(&sn->calls), 2);
        CHECK(DIBS_CANCELLED, sn->rc);
        CHECK(DIBS_INVALID, dibs_lock_acquire_async(a, see, sn, err));
        dibs_lock_free(a);
        dibs_lock_free(b);
        await_queue(&sc, 0);
    }
    dibs_lock_free(holder);
    dibs_close(other);
}

static void *acquire_blocking(void *arg)
{
    return (void *)(intptr_t)dibs_lock_acquire(arg, NULL);
}

/* Threads that wait are sent away before the client goes. */
static void closing_ends_blocking_waits(void **state)
{
    scene sc = set_up();
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
    void *rc = NULL;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, acquire_blocking, lock), 0);
    await_queue(&sc, 1);
    dibs_close(cl);
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_status((intptr_t)rc, DIBS_CANCELLED);
    dibs_lock_free(lock);
    await_queue(&sc, 0);
    tear_down(&sc);
}

typedef struct round {
    seen sn; /* the last of them, or the first that failed */
    int left;
} round;

/* Uses the handle again, from inside its own callback. */
static void
take_again(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    round *rd = arg;

    if (rc == DIBS_OK && rd->left > 0)
        rc = dibs_lock_release(lock, NULL);
    if (rc != DIBS_OK || rd->left-- == 0 ||
        dibs_lock_acquire_async(lock, take_again, rd, NULL) != DIBS_OK)
        see(lock, rc, err, &rd->sn);
}

static void a_callback_may_use_the_handle_again(void **state)
{
    (void)state;
    for (int with_fd = 0; with_fd < 2; with_fd++) {
        dibs_client *cl = core_open();
        dibs_lock *lock = core_lock(cl, core_name(), NULL);
        round rd = {.left = 50};

        if (with_fd)
            assert_true(dibs_async_fd(cl) >= 0);
        CHECK(DIBS_OK, dibs_lock_acquire_async(lock, take_again, &rd, err));
        if (with_fd)
            process_until(cl, &rd.sn);
        else
            core_until(is_called, &rd.sn);
        CHECK(DIBS_OK, rd.sn.rc);
        assert_int_equal(rd.left, -1);
        dibs_lock_free(lock);
        dibs_close(cl);
    }
}

static void
free_it(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    see(lock, rc, err, arg);
    dibs_lock_free(lock);
}

static void a_callback_may_free_the_lock(void **state)
{
    scene sc = set_up();
    dibs_lock *refused = core_lock(sc.cl, sc.name, NULL);
    dibs_lock *granted = core_lock(sc.cl, core_name(), NULL);
    static seen no, yes;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(refused, free_it, &no, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(granted, free_it, &yes, err));
    core_until(is_called, &no);
    core_until(is_called, &yes);
    CHECK(DIBS_BUSY, no.rc);
    CHECK(DIBS_OK, yes.rc);
    tear_down(&sc);
}

static bool has_lapsed(void *arg)
{
    return dibs_lock_state_get(arg) == DIBS_LOCK_LOST;
}

/* DIBS_OK is told of a lease that is valid then, however late the program asks. */
static void a_grant_that_lapsed_unheard_is_taken_anew(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(),
                                DIBS_LOCK_OPTS(.ttl_ms = 400, .wait_ms = -1,
                                               .flags = DIBS_LOCK_NO_RENEW));
    struct pollfd pfd = {.fd = dibs_async_fd(cl), .events = POLLIN};
    dibs_stats stats = {.size = sizeof(stats)};
    static seen sn;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    IN_TIME(poll(&pfd, 1, (int)pace_ms(10000)) == 1);
    core_until(has_lapsed, lock);
    assert_int_equal(dibs_async_process(cl), 0);
    process_until(cl, &sn);
    CHECK(DIBS_OK, sn.rc);
    assert_true(sn.fence > 0);
    dibs_stats_get(cl, &stats);
    assert_int_equal(stats.acquired, 1);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* Nothing of the parent's calls is the child's. */
static int child_of_fork(dibs_client *cl, dibs_lock *lock)
{
    if (dibs_lock_acquire_async(lock, see, NULL, NULL) != DIBS_FORKED ||
        dibs_lock_release_async(lock, see, NULL, NULL) != DIBS_FORKED ||
        dibs_async_fd(cl) != -1 || dibs_async_timeout_ms(cl) != -1 ||
        dibs_async_process(cl) != 0)
        return 1;
    dibs_lock_cancel(lock);
    dibs_lock_free(lock);
    dibs_close(cl);
    return 0;
}

static void after_a_fork_the_parent_waits_on(void **state)
{
    scene sc = set_up();
    dibs_lock *lock = core_lock(sc.cl, sc.name, DIBS_LOCK_OPTS(.wait_ms = -1));
    static seen sn;
    int status = -1;
    pid_t pid;

    (void)state;
    assert_true(dibs_async_fd(sc.cl) >= 0);
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    await_queue(&sc, 1);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child_of_fork(sc.cl, lock));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    CHECK(DIBS_OK, dibs_lock_release(sc.holder, err));
    process_until(sc.cl, &sn);
    CHECK(DIBS_OK, sn.rc);
    dibs_lock_free(lock);
    tear_down(&sc);
}

/* Re-entry is answered at once, and yet not inside the call. */
static void a_local_answer_comes_by_callback_too(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(),
                                DIBS_LOCK_OPTS(.flags = DIBS_LOCK_REENTRANT,
                                               .identity = "one"));
    static seen sn;

    (void)state;
    assert_true(dibs_async_fd(cl) >= 0);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire_async(lock, see, &sn, err));
    assert_false(is_called(&sn));
    process_until(cl, &sn);
    CHECK(DIBS_OK, sn.rc);
    assert_int_equal(dibs_lock_depth(lock), 2);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* A waiter that does not ask for three seconds loses its place, and an ask costs
 * more the more there are: under a sanitizer there are fewer, and on a machine that
 * is slow. */
#ifdef DIBS_SANITIZED
enum { MANY = 60, IN_LINE = 20 };
#else
enum { MANY = 500, IN_LINE = 50 };
#endif

typedef struct crowd {
    dibs_lock *locks[MANY];
    uint64_t fences[MANY]; /* by the order in which they were started */
    int times[MANY];
    atomic_int served;
    atomic_int failed;
    int before;  /* served when it was last looked at */
    int threads; /* while all of them waited */
} crowd;

static void
serve(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    crowd *cr = arg;

    (void)err;
    for (size_t i = 0; i < MANY; i++)
        if (cr->locks[i] == lock) {
            cr->fences[i] = dibs_lock_fence(lock);
            cr->times[i]++;
        }
    if (rc == DIBS_OK)
        rc = dibs_lock_release_async(lock, NULL, NULL, NULL);
    if (pace_explains(rc))
        MISSED("a turn is %s", dibs_status_name(rc));
    if (rc != DIBS_OK)
        atomic_fetch_add(&cr->failed, 1);
    atomic_fetch_add(&cr->served, 1);
}

static bool more_served(void *arg)
{
    crowd *cr = arg;

    return atomic_load(&cr->served) > cr->before;
}

static int thread_count(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Has `count` wait for one name at once, and serves them all. */
static void serve_all(scene *sc, crowd *cr, int count)
{
    memset(cr, 0, sizeof(*cr));
    for (int i = 0; i < count; i++)
        cr->locks[i] =
            core_lock(sc->cl, sc->name, DIBS_LOCK_OPTS(.wait_ms = -1));
    for (int i = 0; i < count; i++)
        CHECK(DIBS_OK, dibs_lock_acquire_async(cr->locks[i], serve, cr, err));
    await_queue(sc, (size_t)count);
    cr->threads = thread_count();
    CHECK(DIBS_OK, dibs_lock_release(sc->holder, err));
    for (; cr->before < count; cr->before = atomic_load(&cr->served))
        core_until(more_served, cr);
    assert_int_equal(atomic_load(&cr->failed), 0);
    for (int i = 0; i < count; i++) {
        assert_int_equal(cr->times[i], 1);
        dibs_lock_free(cr->locks[i]);
    }
}

static void many_wait_with_few_threads(void **state)
{
    static crowd cr;
    scene sc = set_up();
    int threads = thread_count();

    (void)state;
    serve_all(&sc, &cr, (int)(MANY * 1000 / pace_ms(1000)));
    assert_true(cr.threads <= threads + 6);
    tear_down(&sc);
}

static void they_are_served_in_the_order_in_which_they_began(void **state)
{
    static crowd cr;
    scene sc = set_up();

    (void)state;
    serve_all(&sc, &cr, IN_LINE);
    /* Only a waiter that is not run for seconds loses its place. */
    for (int i = 1; i < IN_LINE; i++)
        IN_TIME(cr.fences[i] > cr.fences[i - 1]);
    tear_down(&sc);
}

int core_async_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_lock_is_granted_to_a_callback),
        cmocka_unit_test(a_release_hands_over),
        cmocka_unit_test(a_release_that_is_not_awaited_frees_the_handle),
        cmocka_unit_test(an_acquire_by_callback_follows_such_a_release),
        cmocka_unit_test(a_sticky_lease_outlasts_such_a_release),
        cmocka_unit_test(such_a_release_outlives_its_handle),
        cmocka_unit_test(callbacks_run_in_process_once_there_is_a_descriptor),
        cmocka_unit_test(a_loss_is_told_by_the_keeper_with_a_descriptor_too),
        cmocka_unit_test(refusals_and_timeouts_are_told),
        cmocka_unit_test(a_cancel_from_another_thread_ends_it),
        cmocka_unit_test(a_cancel_at_once_ends_it),
        cmocka_unit_test(freeing_ends_it_silently),
        cmocka_unit_test(freeing_gives_back_an_untold_grant),
        cmocka_unit_test(closing_calls_back_those_that_wait),
        cmocka_unit_test(closing_ends_blocking_waits),
        cmocka_unit_test(a_callback_may_use_the_handle_again),
        cmocka_unit_test(a_callback_may_free_the_lock),
        cmocka_unit_test(a_local_answer_comes_by_callback_too),
        cmocka_unit_test(a_grant_that_lapsed_unheard_is_taken_anew),
        cmocka_unit_test(after_a_fork_the_parent_waits_on),
        cmocka_unit_test(many_wait_with_few_threads),
        cmocka_unit_test(they_are_served_in_the_order_in_which_they_began),
    };

    return cmocka_run_group_tests_name("async", tests, NULL, NULL);
}
