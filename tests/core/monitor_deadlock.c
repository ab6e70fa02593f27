/* monitor_deadlock.c - circles of those who wait for each other are found and
 * named, and nothing else is. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* One who holds a name and then waits for another. */
typedef struct waiter {
    const char *identity;
    dibs_client *cl;
    dibs_lock *has;
    dibs_lock *wants;
    dibs_status rc;
    pthread_t thread;
} waiter;

static void *wait_on(void *arg)
{
    waiter *wt = arg;

    wt->rc = dibs_lock_acquire(wt->wants, NULL);
    return NULL;
}

static void
begin(waiter *wt, const char *identity, const char *has, const char *wants)
{
    *wt = (waiter){.identity = identity, .cl = core_open()};
    wt->has = core_lock(wt->cl, has,
                        DIBS_LOCK_OPTS(.identity = identity, .label = "first",
                                       .ttl_ms = 20000));
    wt->wants =
        core_lock(wt->cl, wants,
                  DIBS_LOCK_OPTS(.identity = identity, .label = "second",
                                 .ttl_ms = 20000, .wait_ms = 30000));
    CHECK(DIBS_OK, dibs_lock_try(wt->has, err));
}

static void start(waiter *wt)
{
    assert_int_equal(pthread_create(&wt->thread, NULL, wait_on, wt), 0);
}

static void end(waiter *wt, dibs_status expected)
{
    pthread_join(wt->thread, NULL);
    assert_status(wt->rc, expected);
    dibs_lock_free(wt->wants);
    dibs_lock_free(wt->has);
    dibs_close(wt->cl);
}

typedef struct sight {
    dibs_client *cl;
    const char *begins;
    size_t circles;
    size_t count;
    char text[512];
    uint64_t fences[4];
    int64_t waited_ms;
} sight;

/* Names as they are after the prefix, and identities: "left:a>b right:b>a". */
static bool note(const dibs_wait_link *links, size_t count, void *arg)
{
    sight *st = arg;
    size_t skip = strlen(st->begins);

    st->circles++;
    st->count = count;
    st->text[0] = '\0';
    for (size_t i = 0; i < count && i < 4; i++) {
        const char *identity = strchr(links[i].who, '/');
        size_t len = strlen(st->text);

        assert_non_null(identity);
        assert_string_equal(links[i].label, "second");
        snprintf(st->text + len, sizeof(st->text) - len, "%s%s:%s>%s",
                 i ? " " : "", identity + 1, links[i].holds + skip,
                 links[i].wants + skip);
        st->fences[i] = links[i].fence;
        st->waited_ms = links[i].waited_ms;
    }
    return true;
}

static bool found(void *arg)
{
    sight *st = arg;

    st->circles = 0;
    CHECK(DIBS_OK, dibs_deadlocks(st->cl, st->begins, note, st, err));
    return st->circles > 0;
}

static bool waits(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

static bool somebody_waits(void *arg)
{
    const sight *st = arg;
    size_t count = 0;
    char name[96];

    snprintf(name, sizeof(name), "%sb", st->begins);
    CHECK(DIBS_OK, dibs_lease_show(st->cl, name, waits, &count, err));
    return count > 0;
}

static void two_that_wait_for_each_other_are_named(void **state)
{
    sight st = {.cl = core_open()};
    char begins[80], a[96], b[96];
    waiter left, right;

    (void)state;
    snprintf(begins, sizeof(begins), "%s-", core_name());
    snprintf(a, sizeof(a), "%sa", begins);
    snprintf(b, sizeof(b), "%sb", begins);
    st.begins = begins;
    begin(&left, "left", a, b);
    begin(&right, "right", b, a);
    start(&left);
    core_until(somebody_waits, &st);
    /* One alone is no circle. */
    assert_false(found(&st));
    start(&right);
    core_until(found, &st);
    assert_int_equal(st.circles, 1);
    assert_int_equal(st.count, 2);
    assert_string_equal(st.text, "left:a>b right:b>a");
    assert_int_equal(st.fences[0], dibs_lock_fence(left.has));
    assert_int_equal(st.fences[1], dibs_lock_fence(right.has));
    assert_true(st.waited_ms >= 0);

    /* One gives way, and the other gets through. */
    dibs_lock_cancel(right.wants);
    CHECK(DIBS_OK, dibs_lock_release(right.has, err));
    end(&right, DIBS_CANCELLED);
    end(&left, DIBS_OK);
    assert_false(found(&st));
    dibs_close(st.cl);
}

/* Without an identity it is the thread that counts. */
typedef struct pair {
    char names[2][96];
    pthread_barrier_t barrier;
    dibs_lock *wants[2];
} pair;

typedef struct half {
    pair *pr;
    int side;
    dibs_status rc;
    pthread_t thread;
} half;

static void *hold_and_wait(void *arg)
{
    half *hf = arg;
    pair *pr = hf->pr;
    dibs_client *cl = core_open();
    dibs_lock *has = core_lock(cl, pr->names[hf->side], NULL);

    CHECK(DIBS_OK, dibs_lock_try(has, err));
    pr->wants[hf->side] =
        core_lock(cl, pr->names[1 - hf->side],
                  DIBS_LOCK_OPTS(.wait_ms = 30000, .label = "second"));
    pthread_barrier_wait(&pr->barrier);
    hf->rc = dibs_lock_acquire(pr->wants[hf->side], NULL);
    dibs_lock_free(has);
    /* Nobody cancels a handle that is freed. */
    pthread_barrier_wait(&pr->barrier);
    dibs_lock_free(pr->wants[hf->side]);
    dibs_close(cl);
    return NULL;
}

static void threads_are_told_apart(void **state)
{
    sight st = {.cl = core_open()};
    char begins[80];
    pair pr = {.wants = {NULL}};
    half halves[2];

    (void)state;
    snprintf(begins, sizeof(begins), "%s-", core_name());
    st.begins = begins;
    assert_int_equal(pthread_barrier_init(&pr.barrier, NULL, 3), 0);
    for (int i = 0; i < 2; i++)
        snprintf(pr.names[i], sizeof(pr.names[i]), "%s%c", begins, 'a' + i);
    for (int i = 0; i < 2; i++) {
        halves[i] = (half){.pr = &pr, .side = i};
        assert_int_equal(pthread_create(&halves[i].thread, NULL, hold_and_wait,
                                        &halves[i]),
                         0);
    }
    pthread_barrier_wait(&pr.barrier);
    core_until(found, &st);
    assert_int_equal(st.circles, 1);
    assert_int_equal(st.count, 2);
    dibs_lock_cancel(pr.wants[0]);
    pthread_barrier_wait(&pr.barrier);
    for (int i = 0; i < 2; i++)
        pthread_join(halves[i].thread, NULL);
    CHECK(DIBS_CANCELLED, halves[0].rc);
    CHECK(DIBS_OK, halves[1].rc);
    pthread_barrier_destroy(&pr.barrier);
    dibs_close(st.cl);
}

int core_monitor_deadlock_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_wait_for_each_other_are_named),
        cmocka_unit_test(threads_are_told_apart),
    };

    return cmocka_run_group_tests_name("deadlock", tests, NULL, NULL);
}
