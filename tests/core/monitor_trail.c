/* monitor_trail.c - taking leases away: with a reason, from holders that are gone,
 * and what is written down about it. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The last entry about a name, and how many there are. */
typedef struct record {
    const char *name;
    size_t count;
    uint64_t position;
    uint64_t fence;
    int64_t wall_us;
    char action[32];
    char reason[1024];
    char by[128];
    char holder[128];
} record;

static bool note(const dibs_trail_entry *entry, void *arg)
{
    record *rd = arg;

    assert_true(entry->position > rd->position);
    rd->position = entry->position;
    if (strcmp(entry->name, rd->name) != 0)
        return true;
    rd->count++;
    rd->fence = entry->fence;
    rd->wall_us = entry->wall_us;
    snprintf(rd->action, sizeof(rd->action), "%s", entry->action);
    snprintf(rd->reason, sizeof(rd->reason), "%s", entry->reason);
    snprintf(rd->by, sizeof(rd->by), "%s", entry->by);
    snprintf(rd->holder, sizeof(rd->holder), "%s", entry->holder);
    return true;
}

static record trail_of(dibs_client *cl, const char *name)
{
    record rd = {.name = name};

    CHECK(DIBS_OK, dibs_trail_read(cl, 0, note, &rd, err));
    return rd;
}

static void a_break_is_written_down(void **state)
{
    const char *reason = "night shift\n\tsaid \\so\x7f: \xc3\xa9";
    dibs_client *cl = core_open();
    dibs_client *boss = NULL;
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name, DIBS_LOCK_OPTS(.label = "worker", .ttl_ms = 20000));
    char self[128];
    uint64_t fence;
    uint32_t broken = 0;
    record rd;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.label = "boss"), &boss, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    CHECK(DIBS_STALE,
          dibs_lease_break(boss, name, fence + 1, reason, &broken, err));
    assert_int_equal(trail_of(boss, name).count, 0);
    CHECK(DIBS_OK, dibs_lease_break(boss, name, fence, reason, &broken, err));
    assert_int_equal(broken, 1);
    rd = trail_of(boss, name);
    assert_int_equal(rd.count, 1);
    assert_string_equal(rd.action, "break");
    assert_string_equal(rd.reason, reason);
    assert_int_equal(rd.fence, fence);
    assert_true(rd.wall_us > 0);
    snprintf(self, sizeof(self), ":%ld boss", (long)getpid());
    assert_non_null(strstr(rd.by, self));
    snprintf(self, sizeof(self), ":%ld worker", (long)getpid());
    assert_non_null(strstr(rd.holder, self));
    CHECK(DIBS_NOTFOUND, dibs_lease_break(boss, name, 0, NULL, NULL, err));
    assert_int_equal(trail_of(boss, name).count, 1);
    dibs_lock_free(lock);
    dibs_close(boss);
    dibs_close(cl);
}

static bool stop(const dibs_trail_entry *entry, void *arg)
{
    *(uint64_t *)arg = entry->position;
    return false;
}

static void every_holder_is_written_down(void **state)
{
    const dibs_lock_opts *opts =
        DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .ttl_ms = 20000);
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *one = core_lock(cl, name, opts);
    dibs_lock *two = core_lock(other, name, opts);
    uint64_t position = 0;
    uint32_t broken = 0;
    record rd;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(one, err));
    CHECK(DIBS_OK, dibs_lock_try(two, err));
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, NULL, &broken, err));
    assert_int_equal(broken, 2);
    rd = trail_of(cl, name);
    assert_int_equal(rd.count, 2);
    assert_string_equal(rd.reason, "");
    /* From a position on, and no further than is asked for. */
    CHECK(DIBS_OK, dibs_trail_read(cl, 0, stop, &position, err));
    assert_true(position > 0 && position < rd.position);
    position = 0;
    CHECK(DIBS_OK, dibs_trail_read(cl, rd.position, stop, &position, err));
    assert_int_equal(position, 0);
    dibs_lock_free(one);
    dibs_lock_free(two);
    dibs_close(other);
    dibs_close(cl);
}

static void a_change_is_written_down(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char long_name[DIBS_NAME_MAX + 2];
    record rd;

    (void)state;
    CHECK(DIBS_OK, dibs_trail_add(cl, "queue-purge", name, 0, "too old", err));
    rd = trail_of(cl, name);
    assert_int_equal(rd.count, 1);
    assert_string_equal(rd.action, "queue-purge");
    assert_string_equal(rd.reason, "too old");
    assert_string_equal(rd.holder, "");
    assert_int_equal(rd.fence, 0);
    CHECK(DIBS_OK, dibs_trail_add(cl, "resign", name, 7, NULL, err));
    rd = trail_of(cl, name);
    assert_int_equal(rd.count, 2);
    assert_int_equal(rd.fence, 7);
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    CHECK(DIBS_INVALID, dibs_trail_add(cl, "a", long_name, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_trail_add(cl, "a", "", 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_trail_add(cl, "", name, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_trail_add(cl, "a b", name, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_trail_add(cl, "abcdefghijabcdefghijabcdefghijab",
                                       name, 0, NULL, err));
    assert_int_equal(trail_of(cl, name).count, 2);
    dibs_close(cl);
}

/* A reason is kept to a bound, and cut between characters. */
static void a_long_reason_is_cut_whole(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 20000));
    char reason[2001];
    size_t len;
    record rd;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(reason); i += 2)
        memcpy(reason + i, "\xc3\xa9", 2);
    reason[sizeof(reason) - 1] = '\0';
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_break(cl, name, 0, reason, NULL, err));
    rd = trail_of(cl, name);
    len = strlen(rd.reason);
    assert_in_range(len, 256, 1000);
    assert_int_equal(len % 2, 0);
    assert_memory_equal(rd.reason, reason, len);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* A store that is no other process's has no other process's holders. */
static void need_processes(void)
{
    if (strncmp(core_url, "memory:", 7) == 0)
        skip();
}

/* Another program that holds the name. */
static pid_t start_holder(const char *name, int64_t ttl_ms)
{
    char line[8] = "", word[24];
    int ends[2];
    pid_t pid;

    snprintf(word, sizeof(word), "%lld", (long long)ttl_ms);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(CORE_HOLDER, CORE_HOLDER, core_url, name, word, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    if (read(ends[0], line, sizeof(line)) != 5)
        fail_msg("the holder has ended: %d", child_code(pid));
    assert_string_equal(line, "held\n");
    close(ends[0]);
    return pid;
}

static void kill_holder(pid_t pid)
{
    int status = 0;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

typedef struct sight {
    dibs_client *cl;
    const char *name;
    size_t holders;
    bool stale;
    char hint[64];
} sight;

static bool see(const dibs_lease_info *info, void *arg)
{
    sight *st = arg;

    st->holders = info->holder_count;
    st->stale = info->holder_count > 0 && info->holders[0].stale != NULL;
    if (st->stale)
        snprintf(st->hint, sizeof(st->hint), "%s", info->holders[0].stale);
    return true;
}

static bool is_stale(void *arg)
{
    sight *st = arg;
    dibs_status rc = dibs_lease_show(st->cl, st->name, see, st, NULL);

    /* The lease has ended before it was seen. */
    IN_TIME(rc != DIBS_NOTFOUND);
    assert_status(rc, DIBS_OK);
    return st->stale;
}

static void a_dead_holder_is_stale_and_can_be_swept_away(void **state)
{
    sight st = {.name = core_name()};
    dibs_client *cl;
    dibs_lock *lock;
    uint32_t broken = 7;
    record rd;
    pid_t pid;

    (void)state;
    need_processes();
    st.cl = cl = core_open();
    lock = core_lock(cl, st.name, NULL);
    pid = start_holder(st.name, pace_ms(4500));
    IN_TIME(!is_stale(&st));
    CHECK(DIBS_OK, dibs_lease_break_stale(cl, st.name, NULL, &broken, err));
    IN_TIME(broken == 0);
    kill_holder(pid);
    core_until(is_stale, &st);
    assert_string_equal(st.hint, "its process is gone");
    /* What is left of its lease is short. */
    IN_TIME(dibs_lock_try(lock, NULL) == DIBS_BUSY);
    CHECK(DIBS_OK, dibs_lease_break_stale(cl, st.name, NULL, &broken, err));
    IN_TIME(broken == 1);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    rd = trail_of(cl, st.name);
    assert_int_equal(rd.count, 1);
    assert_string_equal(rd.action, "break-stale");
    assert_string_equal(rd.reason, "its process is gone");
    assert_non_null(strstr(rd.holder, " holder"));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* As if its node had gone: the process is there and does nothing. */
static void a_holder_that_does_not_renew_is_stale(void **state)
{
    sight st = {.name = core_name()};
    pid_t pid;

    (void)state;
    need_processes();
    st.cl = core_open();
    pid = start_holder(st.name, pace_ms(3000));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    core_until(is_stale, &st);
    assert_memory_equal(st.hint, "it has not renewed for ", 23);
    kill_holder(pid);
    dibs_close(st.cl);
}

static bool runs_out(const dibs_lease_info *info, void *arg)
{
    assert_null(info->holders[0].stale);
    *(int64_t *)arg = info->holders[0].left_ms;
    return true;
}

/* Nobody can tell when a program should have renewed. */
static void a_lease_renewed_by_hand_is_never_stale(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(cl, name,
                                DIBS_LOCK_OPTS(.ttl_ms = pace_ms(1200),
                                               .flags = DIBS_LOCK_NO_RENEW));
    int64_t left_ms = pace_ms(1200);

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    while (left_ms > pace_ms(300)) {
        dibs_status rc = dibs_lease_show(cl, name, runs_out, &left_ms, NULL);

        IN_TIME(rc != DIBS_NOTFOUND);
        assert_status(rc, DIBS_OK);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
}

int core_monitor_trail_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_break_is_written_down),
        cmocka_unit_test(every_holder_is_written_down),
        cmocka_unit_test(a_change_is_written_down),
        cmocka_unit_test(a_long_reason_is_cut_whole),
        cmocka_unit_test(a_dead_holder_is_stale_and_can_be_swept_away),
        cmocka_unit_test(a_holder_that_does_not_renew_is_stale),
        cmocka_unit_test(a_lease_renewed_by_hand_is_never_stale),
    };

    return cmocka_run_group_tests_name("trail", tests, NULL, NULL);
}
