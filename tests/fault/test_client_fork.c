/* test_client_fork.c - in a child process the handles of the parent are dead and
 * say so, and the parent does not notice. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child cannot assert: it counts, tells on stderr, and exits. */
static int wrong;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "in the child: %s\n", what);
    wrong++;
}

static void check_done(dibs_status rc, const char *what)
{
    if (pace_explains(rc))
        MISSED("in the child: %s", what);
    check(rc == DIBS_OK, what);
}

#define DONE(call)   check_done((call), #call)
#define FORKED(call) check((call) == DIBS_FORKED, #call)
#define HOLDS(truth) check((truth), #truth)

static bool no_lease(const dibs_lease_info *info, void *arg)
{
    (void)info;
    (void)arg;
    wrong++;
    return false;
}

static bool no_item(const dibs_state_item *item, void *arg)
{
    (void)item;
    (void)arg;
    wrong++;
    return false;
}

static void no_finding(const dibs_finding *finding, void *arg)
{
    (void)finding;
    (void)arg;
    wrong++;
}

static void no_work(dibs_lock *lock, void *arg)
{
    (void)lock;
    (void)arg;
    wrong++;
}

static void try_client(dibs_client *cl)
{
    dibs_error err = {0};
    dibs_lock *lock = NULL;
    int64_t took_us;
    uint32_t broken;

    FORKED(dibs_ping(cl, &took_us, &err));
    HOLDS(err.status == DIBS_FORKED && strlen(err.message) > 0);
    FORKED(dibs_audit(cl, no_finding, NULL, &err));
    FORKED(dibs_lock_new(cl, "x", NULL, &lock, &err));
    HOLDS(lock == NULL);
    FORKED(dibs_with_lock(cl, "x", NULL, no_work, NULL, &err));
    HOLDS(dibs_scope_begin(cl, "x", DIBS_LOCK_OPTS(.ttl_ms = 1000)) == NULL);
    FORKED(dibs_lease_list(cl, "", no_lease, NULL, &err));
    FORKED(dibs_lease_show(cl, "k", no_lease, NULL, &err));
    FORKED(dibs_lease_break(cl, "k", 0, NULL, &broken, &err));
}

static void try_state(dibs_client *cl)
{
    dibs_error err = {0};
    dibs_value value = {0};
    uint64_t version;
    int64_t sum;

    FORKED(dibs_state_get(cl, "v", &value, &err));
    FORKED(dibs_state_set(cl, "v", "x", 1, 0, &version, &err));
    FORKED(
        dibs_state_cas(cl, "v", DIBS_VERSION_NONE, "x", 1, 0, &version, &err));
    FORKED(dibs_state_add(cl, "v", 1, &sum, &err));
    FORKED(dibs_state_delete(cl, "v", DIBS_VERSION_ANY, &err));
    FORKED(dibs_state_list(cl, "", no_item, NULL, &err));
}

static void try_lock(dibs_lock *lock)
{
    char owner[DIBS_OWNER_SIZE];
    dibs_error err = {0};

    FORKED(dibs_lock_acquire(lock, &err));
    FORKED(dibs_lock_try(lock, &err));
    FORKED(dibs_lock_renew(lock, &err));
    FORKED(dibs_lock_release(lock, &err));
    FORKED(dibs_lock_adopt(lock, "00112233445566778899aabbccddeeff", 1, &err));
    dibs_lock_cancel(lock);
    dibs_lock_leave(lock);
    HOLDS(dibs_lock_state_get(lock) == DIBS_LOCK_FREE);
    HOLDS(dibs_lock_valid_ms(lock) == 0);
    HOLDS(dibs_lock_fence(lock) == 0);
    dibs_lock_owner(lock, owner);
    HOLDS(owner[0] == '\0');
    HOLDS(dibs_lock_lost_fd(lock) == -1);
    dibs_lock_free(lock);
}

static void try_barrier(dibs_client *cl, dibs_barrier *barrier)
{
    dibs_error err = {0};
    dibs_barrier *made = NULL;
    dibs_barrier_state at;

    FORKED(dibs_barrier_wait(barrier, NULL, &err));
    FORKED(dibs_barrier_new(cl, "b", DIBS_BARRIER_OPTS(.parties = 1), &made,
                            &err));
    FORKED(dibs_barrier_show(cl, "b", &at, NULL, NULL, &err));
    dibs_barrier_free(barrier);
}

static int child_code(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == PACE_MISSED)
        MISSED("a child");
    return WEXITSTATUS(status);
}

static void every_call_in_a_child_answers_forked(void **state)
{
    world *w = *state;
    dibs_lock *lock =
        world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = pace_ms(600)));
    dibs_barrier *barrier = NULL;
    dibsx_nsec began_at;
    uint64_t fence;
    int renewals;
    pid_t child;

    CHECK(DIBS_OK,
          dibs_barrier_new(w->one, "b", DIBS_BARRIER_OPTS(.parties = 1),
                           &barrier, err));
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        try_client(w->one);
        try_state(w->one);
        try_lock(lock);
        try_barrier(w->one, barrier);
        dibs_close(w->one);
        _exit(wrong);
    }
    assert_int_equal(child_code(child), 0);

    /* The parent goes on: renewed beyond its ttl, and still its own. */
    began_at = dibsx_now();
    renewals = world_seen(w, DIBS__STEP_RENEW);
    while (world_seen(w, DIBS__STEP_RENEW) < renewals + 4 &&
           world_ms_since(began_at) < pace_ms(WORLD_BOUND_MS))
        world_sleep_ms(5);
    world_expect_held(lock);
    assert_int_equal(dibs_lock_fence(lock), fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    dibs_barrier_free(barrier);
}

static void a_child_opens_a_client_of_its_own(void **state)
{
    world *w = *state;
    dibs_error err = {0};
    pid_t child;

    assert_status(dibs_state_set(w->one, "v", "parent", 6, 0, NULL, &err),
                  DIBS_OK);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dibs_client *own = NULL;

        dibs__fault_set(NULL, NULL);
        DONE(dibs_open("memory:child", NULL, &own, &err));
        if (own) {
            DONE(dibs_ping(own, NULL, &err));
            DONE(dibs_state_set(own, "v", "child", 5, 0, NULL, &err));
        }
        dibs_close(own);
        FORKED(dibs_ping(w->one, NULL, &err));
        _exit(wrong);
    }
    assert_int_equal(child_code(child), 0);
    assert_status(dibs_ping(w->one, NULL, &err), DIBS_OK);
}

/* A grandchild is a child too. */
static void a_grandchild_answers_forked(void **state)
{
    world *w = *state;
    dibs_error err = {0};
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        pid_t grandchild = fork();
        int status = 1;

        if (grandchild == 0) {
            FORKED(dibs_ping(w->one, NULL, &err));
            _exit(wrong);
        }
        HOLDS(waitpid(grandchild, &status, 0) == grandchild);
        HOLDS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        _exit(wrong);
    }
    assert_int_equal(child_code(child), 0);
    assert_status(dibs_ping(w->one, NULL, &err), DIBS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(every_call_in_a_child_answers_forked),
        WORLD_TEST(a_child_opens_a_client_of_its_own),
        WORLD_TEST(a_grandchild_answers_forked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
