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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_closed_client_starts_no_thread),
        WORLD_TEST(a_call_that_waited_for_its_turn_finds_the_client_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
