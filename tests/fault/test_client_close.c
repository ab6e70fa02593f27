/* test_client_close.c - a client that is closed while other threads are in its calls. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "core/client.h"
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static void a_closed_client_starts_no_thread(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    dibs_lock *left = world_lock(cl, "k", NULL);

    dibs_close(cl);
    pthread_mutex_lock(&cl->mutex);
    CHECK(DIBS_INVALID, dibs__timer_ready(cl, err));
    assert_false(cl->keeper.running);
    pthread_mutex_unlock(&cl->mutex);
    dibs_lock_free(left);
}

typedef struct entrant {
    dibs_lock *lock;
    atomic_int tid;
    dibs_status rc;
    pthread_t thread;
} entrant;

static void *enter(void *arg)
{
    entrant *en = arg;

    atomic_store(&en->tid, (int)syscall(SYS_gettid));
    en->rc = dibs_lock_try(en->lock, NULL);
    return NULL;
}

static bool is_asleep(int tid)
{
    char path[64], line[256] = "";
    const char *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    file = fopen(path, "re");
    if (file) {
        if (!fgets(line, sizeof(line), file))
            line[0] = '\0';
        fclose(file);
    }
    end = strrchr(line, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

/* The close falls between the first look of a call and its turn. */
static void
a_call_that_waited_for_its_turn_finds_the_client_closed(void **state)
{
    world *w = *state;
    dibs_client *cl = world_open(w);
    entrant en = {.lock = world_lock(cl, "k", NULL)};

    pthread_mutex_lock(&cl->mutex);
    assert_int_equal(pthread_create(&en.thread, NULL, enter, &en), 0);
    while (atomic_load(&en.tid) == 0 || !is_asleep(atomic_load(&en.tid)))
        sched_yield();
    atomic_store(&cl->closed, true);
    pthread_mutex_unlock(&cl->mutex);
    assert_int_equal(pthread_join(en.thread, NULL), 0);
    atomic_store(&cl->closed, false);
    assert_status(en.rc, DIBS_INVALID);
    dibs_lock_free(en.lock);
    dibs_close(cl);
}

/* A client that another thread closes while a call of it is under way. */
typedef struct closing {
    dibs_client *cl;
    dibs_lock *idle; /* shows that calls are refused */
    dibs_lock *lock;
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;
    dibs_status rc;
    pthread_t closer, caller;
    bool begun;
    atomic_bool returned;
    bool returned_first;
} closing;

static void *close_client(void *arg)
{
    closing *cg = arg;

    dibs_close(cg->cl);
    atomic_store(&cg->returned, true);
    return NULL;
}

/* Inside of the call. A close that waits for it does not return, however long this
 * looks. */
static void close_meanwhile(void *arg)
{
    enum { LOOK_MS = 50 };
    closing *cg = arg;

    cg->begun = pthread_create(&cg->closer, NULL, close_client, cg) == 0;
    if (!cg->begun)
        return;
    while (dibs_lock_release(cg->idle, NULL) != DIBS_INVALID)
        world_sleep_ms(1);
    for (int i = 0; i < LOOK_MS && !atomic_load(&cg->returned); i++)
        world_sleep_ms(1);
    cg->returned_first = atomic_load(&cg->returned);
}

/* Runs the call on a thread of its own, until both have ended. */
static void run_and_close(closing *cg, void *(*call)(void *arg))
{
    assert_int_equal(pthread_create(&cg->caller, NULL, call, cg), 0);
    assert_int_equal(pthread_join(cg->caller, NULL), 0);
    assert_true(cg->begun);
    assert_int_equal(pthread_join(cg->closer, NULL), 0);
    assert_false(cg->returned_first);
}

static void expect_free(world *w, closing *cg)
{
    size_t holders, waiters;

    assert_int_equal(dibs_lock_state_get(cg->lock), DIBS_LOCK_FREE);
    world_count(w, "k", &holders, &waiters, NULL);
    assert_int_equal(holders + waiters, 0);
    dibs_lock_free(cg->lock);
    dibs_lock_free(cg->idle);
}

static void *adopt(void *arg)
{
    closing *cg = arg;

    cg->rc = dibs_lock_adopt(cg->lock, cg->owner, cg->fence, NULL);
    return NULL;
}

static void a_lease_that_is_adopted_meanwhile_is_released(void **state)
{
    world *w = *state;
    closing cg = {.cl = world_open(w)};
    dibs_lock *first = world_lock(w->one, "k", NULL);

    cg.idle = world_lock(cg.cl, "idle", NULL);
    cg.lock = world_lock(cg.cl, "k", NULL);
    CHECK(DIBS_OK, dibs_lock_try(first, err));
    cg.fence = dibs_lock_fence(first);
    dibs_lock_owner(first, cg.owner);
    dibs_lock_leave(first);
    world_during(w, DIBS__STEP_RENEW, close_meanwhile, &cg);
    run_and_close(&cg, adopt);
    assert_status(cg.rc, DIBS_OK);
    expect_free(w, &cg);
    dibs_lock_free(first);
}

static void *acquire(void *arg)
{
    closing *cg = arg;

    cg->rc = dibs_lock_acquire(cg->lock, NULL);
    return NULL;
}

static void close_when_granted(dibs_log_level level, const char *event,
                               const char *text, void *arg)
{
    (void)level;
    (void)text;
    if (strcmp(event, "granted") == 0)
        close_meanwhile(arg);
}

static void the_log_is_used_no_longer_than_the_client(void **state)
{
    world *w = *state;
    closing cg = {0};

    CHECK(DIBS_OK,
          dibs_open(w->url,
                    DIBS_CLIENT_OPTS(.log = close_when_granted, .log_arg = &cg,
                                     .log_level = DIBS_LOG_TRACE),
                    &cg.cl, err));
    cg.idle = world_lock(cg.cl, "idle", NULL);
    cg.lock = world_lock(cg.cl, "k", NULL);
    run_and_close(&cg, acquire);
    assert_status(cg.rc, DIBS_OK);
    expect_free(w, &cg);
}

static void *free_held(void *arg)
{
    closing *cg = arg;

    dibs_lock_free(cg->lock);
    return NULL;
}

/* Its release is sent by the time that the close returns. */
static void a_free_that_is_under_way_is_waited_for(void **state)
{
    world *w = *state;
    closing cg = {.cl = world_open(w)};

    cg.idle = world_lock(cg.cl, "idle", NULL);
    cg.lock = world_lock(cg.cl, "k", NULL);
    CHECK(DIBS_OK, dibs_lock_try(cg.lock, err));
    world_during(w, DIBS__STEP_RELEASE, close_meanwhile, &cg);
    run_and_close(&cg, free_held);
    dibs_lock_free(cg.idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_closed_client_starts_no_thread),
        WORLD_TEST(a_call_that_waited_for_its_turn_finds_the_client_closed),
        WORLD_TEST(a_lease_that_is_adopted_meanwhile_is_released),
        WORLD_TEST(the_log_is_used_no_longer_than_the_client),
        WORLD_TEST(a_free_that_is_under_way_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
