/* threads.c - threads that are cancelled inside a call, and a process that exits
 * while its threads wait. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef DIBS_SANITIZED
/* The stack of a cancelled thread is not unwound in a way that the sanitizer
 * follows; it would stumble over it when it takes its own stack down. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}
#endif

static bool is_waiting(void *arg)
{
    return dibs_lock_state_get(arg) == DIBS_LOCK_WAITING;
}

typedef struct taker {
    dibs_lock *lock;
    atomic_int rc;
} taker;

static void *take_and_test(void *arg)
{
    taker *tk = arg;

    atomic_store(&tk->rc, (int)dibs_lock_acquire(tk->lock, NULL));
    for (;;)
        pthread_testcancel();
    return NULL;
}

/* An acquire is no cancellation point: the cancel waits for its end. */
static void a_cancelled_thread_ends_its_wait_first(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *holder = core_lock(other, name, NULL);
    dibs_lock *lock =
        core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = pace_ms(300)));
    taker tk = {.lock = lock, .rc = -1};
    void *result = NULL;
    pthread_t thread;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(holder, err));
    assert_int_equal(pthread_create(&thread, NULL, take_and_test, &tk), 0);
    core_until(is_waiting, lock);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_status(atomic_load(&tk.rc), DIBS_TIMEOUT);
    CHECK(DIBS_BUSY, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(holder, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
    dibs_lock_free(holder);
    dibs_close(other);
    dibs_close(cl);
}

typedef struct asker {
    dibs_client *cl;
    atomic_bool asked;
} asker;

static void *ask_when_cancelled(void *arg)
{
    asker *ak = arg;

    (void)pthread_cancel(pthread_self());
    (void)dibs_keeper_lag_ms(ak->cl);
    atomic_store(&ak->asked, true);
    pthread_testcancel();
    return NULL;
}

static void a_look_at_the_keeper_is_no_cancellation_point(void **state)
{
    dibs_client *cl = core_open();
    dibs_lock *lock = core_lock(cl, core_name(), NULL);
    asker ak = {.cl = cl};
    void *result = NULL;
    pthread_t thread;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err)); /* Now it has a keeper. */
    assert_int_equal(pthread_create(&thread, NULL, ask_when_cancelled, &ak), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(atomic_load(&ak.asked));
    dibs_lock_free(lock);
    dibs_close(cl);
}

typedef struct user {
    dibs_client *cl;
    dibs_lock *lock;
    atomic_int rounds;
    atomic_int failed;
} user;

static bool has_status(user *us, dibs_status rc, dibs_status expected)
{
    if (rc == expected)
        return true;
    if (pace_explains(rc))
        MISSED("a call is %s", dibs_status_name(rc));
    atomic_fetch_add(&us->failed, 1);
    return false;
}

/* Every call that talks to the store, one after the other. */
static void *use_until_cancelled(void *arg)
{
    user *us = arg;
    dibs_value value;

    for (;;) {
        if (has_status(us, dibs_lock_acquire(us->lock, NULL), DIBS_OK) &&
            has_status(us, dibs_lock_renew(us->lock, NULL), DIBS_OK) &&
            has_status(us, dibs_lock_release(us->lock, NULL), DIBS_OK))
            has_status(us, dibs_ping(us->cl, NULL, NULL), DIBS_OK);
        has_status(us, dibs_state_get(us->cl, "none", &value, NULL),
                   DIBS_NOTFOUND);
        atomic_fetch_add(&us->rounds, 1);
        pthread_testcancel();
    }
    return NULL;
}

static bool has_begun(void *arg)
{
    return atomic_load(&((user *)arg)->rounds) > 0;
}

/* Wherever it is when it is cancelled, nothing stays locked or busy. */
static void cancelled_threads_leave_nothing_locked(void **state)
{
    dibs_client *cl = core_open();

    (void)state;
    for (int i = 0; i < 20; i++) {
        user us = {.cl = cl,
                   .lock = core_lock(cl, core_name(),
                                     DIBS_LOCK_OPTS(.wait_ms = 5000))};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, use_until_cancelled,
                                        &us),
                         0);
        core_until(has_begun, &us);
        assert_int_equal(pthread_cancel(thread), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(atomic_load(&us.failed), 0);
        CHECK(DIBS_OK, dibs_lock_try(us.lock, err));
        CHECK(DIBS_OK, dibs_ping(cl, NULL, err));
        dibs_lock_free(us.lock);
    }
    dibs_close(cl);
}

static void *wait_endlessly(void *arg)
{
    return dibs_lock_acquire(arg, NULL) == DIBS_OK ? arg : NULL;
}

static void
ignore(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    (void)lock;
    (void)rc;
    (void)err;
    (void)arg;
}

/* What the child still has when it exits. */
static dibs_client *left_open;
static dibs_lock *left[4];

static void must(dibs_status rc, int code)
{
    if (pace_explains(rc))
        MISSED("a call is %s", dibs_status_name(rc));
    if (rc != DIBS_OK)
        _exit(code);
}

/* Opens a client of its own, has threads and asynchronous calls wait, and ends by
 * exit() in the middle of it all. */
int core_exit_in_the_middle(char **words)
{
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.wait_ms = -1);
    pthread_t thread;

    must(dibs_open(words[0], NULL, &left_open, NULL), 2);
    for (size_t i = 0; i < COUNT_OF(left); i++)
        must(dibs_lock_new(left_open, words[1], opts, &left[i], NULL), 3);
    must(dibs_lock_try(left[0], NULL), 4);
    if (pthread_create(&thread, NULL, wait_endlessly, left[1]) != 0)
        _exit(4);
    must(dibs_lock_acquire_async(left[2], ignore, NULL, NULL), 4);
    must(dibs_lock_acquire_async(left[3], ignore, NULL, NULL), 4);
    core_until(is_waiting, left[1]);
    core_until(is_waiting, left[2]);
    exit(0);
}

static void exiting_while_others_wait_is_safe(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        pid_t pid = child_start("exits", core_url, core_name(), NULL);

        assert_int_equal(child_code(pid), 0);
    }
}

int core_threads_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_thread_ends_its_wait_first),
        cmocka_unit_test(a_look_at_the_keeper_is_no_cancellation_point),
        cmocka_unit_test(cancelled_threads_leave_nothing_locked),
        cmocka_unit_test(exiting_while_others_wait_is_safe),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
