/* test_task.c - how answers to the commits of an attempt settle it, and how they do not. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/task.h"

enum { NOW = 1, LONG_AFTER = 3600 };

static dibs__task new_task(bool locks)
{
    dibs__task task;

    dibs__task_init(&task, "a.1", "main", "n", locks);
    return task;
}

/* One that has the lock of its job, and sends its begin. */
static dibs__task beginning(void)
{
    dibs__task task = new_task(true);

    assert_int_equal(dibs__task_answered(&task, DIBS_OK, NOW,
                                         LONG_AFTER * DIBSX_SEC),
                     DIBS__TASK_LOCK);
    assert_int_equal(dibs__task_locked(&task, true), DIBS__TASK_PLAN);
    assert_int_equal(task.state, DIBS__TASK_BEGINNING);
    return task;
}

static dibs__task_todo answer(dibs__task *task, dibs_status rc)
{
    return dibs__task_answered(task, rc, NOW, LONG_AFTER * DIBSX_SEC);
}

static void a_first_try_is_settled(void **state)
{
    dibs__task early = new_task(false), late = new_task(false);

    (void)state;
    assert_int_equal(answer(&early, DIBS_EARLY), DIBS__TASK_DROP);
    assert_int_equal(answer(&late, DIBS_LATE), DIBS__TASK_DROP);
}

/* The one before may yet be carried out. */
static void early_does_not_settle_a_repeat(void **state)
{
    dibs__task task = new_task(false);

    (void)state;
    assert_int_equal(answer(&task, DIBS_UNKNOWN), DIBS__TASK_AGAIN);
    assert_int_equal(answer(&task, DIBS_EARLY), DIBS__TASK_AGAIN);
    assert_int_equal(answer(&task, DIBS_OK), DIBS__TASK_START);
}

/* All that come after it are late too: to send it again would never end. */
static void the_record_decides_after_a_late_repeat(void **state)
{
    dibs__task task = new_task(false);

    (void)state;
    assert_int_equal(answer(&task, DIBS_UNKNOWN), DIBS__TASK_AGAIN);
    assert_int_equal(answer(&task, DIBS_LATE), DIBS__TASK_READ);
    assert_int_equal(dibs__task_read(&task, NULL, NOW, LONG_AFTER * DIBSX_SEC),
                     DIBS__TASK_DROP);
}

static void a_late_begin_ends_the_step(void **state)
{
    dibs__task task = beginning();

    (void)state;
    assert_int_equal(answer(&task, DIBS_LATE), DIBS__TASK_PLAN);
    assert_int_equal(task.state, DIBS__TASK_ENDING);
}

static void an_early_begin_is_sent_again(void **state)
{
    dibs__task task = beginning();

    (void)state;
    assert_int_equal(answer(&task, DIBS_EARLY), DIBS__TASK_AGAIN);
    assert_int_equal(task.state, DIBS__TASK_BEGINNING);
}

/* Its lease may have got short while the start was put off. */
static void a_later_start_needs_the_lease_too(void **state)
{
    dibs__task task = new_task(false);

    (void)state;
    assert_int_equal(answer(&task, DIBS_OK), DIBS__TASK_START);
    assert_int_equal(dibs__task_start_later(&task, NOW, NOW), DIBS__TASK_WAIT);
    assert_int_equal(task.state, DIBS__TASK_HELD);
    assert_int_equal(dibs__task_renewed(&task, NOW, LONG_AFTER * DIBSX_SEC),
                     DIBS__TASK_START);
    assert_int_equal(task.state, DIBS__TASK_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_try_is_settled),
        cmocka_unit_test(early_does_not_settle_a_repeat),
        cmocka_unit_test(the_record_decides_after_a_late_repeat),
        cmocka_unit_test(a_late_begin_ends_the_step),
        cmocka_unit_test(an_early_begin_is_sent_again),
        cmocka_unit_test(a_later_start_needs_the_lease_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
