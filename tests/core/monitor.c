/* monitor.c - who holds and who waits, as others are shown it. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct sight {
    int calls;
    size_t holders;
    char label[64];
    char host[64];
    int64_t pid;
    uint64_t fence;
    int64_t left_ms;
    char mode[16];
} sight;

static bool look(const dibs_lease_info *info, void *arg)
{
    sight *st = arg;

    st->calls++;
    st->holders = info->holder_count;
    assert_int_equal(info->capacity, 0);
    strncpy(st->label, info->holders[0].label, sizeof(st->label) - 1);
    strncpy(st->host, info->holders[0].host, sizeof(st->host) - 1);
    strncpy(st->mode, info->holders[0].mode, sizeof(st->mode) - 1);
    st->pid = info->holders[0].pid;
    st->fence = info->holders[0].fence;
    st->left_ms = info->holders[0].left_ms;
    return true;
}

static void shows_who_holds(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.label = "night shift", .ttl_ms = 20000));
    sight st = {0};

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_lease_show(cl, name, look, &st, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_show(cl, name, look, &st, err));
    assert_int_equal(st.calls, 1);
    assert_int_equal(st.holders, 1);
    assert_string_equal(st.label, "night shift");
    assert_string_equal(st.mode, "exclusive");
    assert_true(strlen(st.host) > 0);
    assert_int_equal(st.pid, getpid());
    assert_int_equal(st.fence, dibs_lock_fence(lock));
    assert_true(st.left_ms <= 20000);
    IN_TIME(st.left_ms >= 10000);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static bool stop_at_once(const dibs_lease_info *info, void *arg)
{
    assert_non_null(info->name);
    ++*(int *)arg;
    return false;
}

static void lists_what_begins_so_and_stops_when_told(void **state)
{
    dibs_client *cl = NULL;
    const char *prefix = core_name();
    dibs_lock *a, *b;
    sight st = {0};
    int calls = 0;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = prefix), &cl, err));
    a = core_lock(cl, "/a", NULL);
    b = core_lock(cl, "/b", NULL);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    CHECK(DIBS_OK, dibs_lease_list(cl, "/", look, &st, err));
    assert_int_equal(st.calls, 2);
    CHECK(DIBS_OK, dibs_lease_list(cl, NULL, stop_at_once, &calls, err));
    assert_int_equal(calls, 1);
    CHECK(DIBS_INVALID, dibs_lease_list(cl, "\n", look, &st, err));
    CHECK(DIBS_INVALID, dibs_lease_show(cl, "", look, &st, err));
    CHECK(DIBS_INVALID, dibs_lease_break(cl, "", 0, NULL, NULL, err));
    dibs_lock_free(a);
    dibs_lock_free(b);
    dibs_close(cl);
}

/* A label of many bytes is cut, and not inside a character. */
static void long_labels_are_cut_whole(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char label[256] = "";
    dibs_lock *lock;
    sight st = {0};

    (void)state;
    for (int i = 0; i < 60; i++)
        strncat(label, "\xc3\xa9", sizeof(label) - strlen(label) - 1);
    lock = core_lock(cl, name, DIBS_LOCK_OPTS(.label = label));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_show(cl, name, look, &st, err));
    assert_true(strlen(st.label) > 0);
    assert_true(strlen(st.label) < 64);
    assert_int_equal(strlen(st.label) % 2, 0);
    dibs_lock_free(lock);
    dibs_close(cl);
}

typedef struct details {
    char identity[64];
    char meta[256];
    char label[64];
} details;

static bool look_closer(const dibs_lease_info *info, void *arg)
{
    details *dt = arg;
    const dibs_party *party = &info->holders[0];

    assert_null(party->stale);
    snprintf(dt->identity, sizeof(dt->identity), "%s", party->identity);
    snprintf(dt->meta, sizeof(dt->meta), "%s", party->meta);
    snprintf(dt->label, sizeof(dt->label), "%s", party->label);
    return true;
}

static void shows_identity_and_metadata(void **state)
{
    const char *const meta[] = {"job=42", "url=http://x/a b", NULL};
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.identity = "worker-7", .label = "night shift",
                                 .meta = meta));
    dibs_lock *bare;
    details dt;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lease_show(cl, name, look_closer, &dt, err));
    assert_string_equal(dt.identity, "worker-7");
    assert_string_equal(dt.label, "night shift");
    assert_string_equal(dt.meta, "job=42\turl=http://x/a b");
    dibs_lock_free(lock);
    bare = core_lock(cl, name, NULL);
    CHECK(DIBS_OK, dibs_lock_try(bare, err));
    CHECK(DIBS_OK, dibs_lease_show(cl, name, look_closer, &dt, err));
    assert_string_equal(dt.identity, "");
    assert_string_equal(dt.label, "");
    assert_string_equal(dt.meta, "");
    dibs_lock_free(bare);
    dibs_close(cl);
}

static void on_yield(dibs_lock *lock, void *arg)
{
    atomic_int *calls = arg;

    (void)lock;
    atomic_fetch_add(calls, 1);
}

static bool was_asked(void *arg)
{
    return atomic_load((atomic_int *)arg) > 0;
}

static void a_holder_is_asked_to_yield(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    const char *name = core_name();
    atomic_int calls = 0;
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.on_yield = on_yield, .on_yield_arg = &calls,
                                 .ttl_ms = 20000));
    uint32_t asked = 7;
    uint64_t fence;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_lease_yield(other, name, 0, &asked, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    CHECK(DIBS_STALE, dibs_lease_yield(other, name, fence + 1, &asked, err));
    assert_int_equal(asked, 0);
    CHECK(DIBS_OK, dibs_lease_yield(other, name, fence, &asked, err));
    assert_int_equal(asked, 1);
    core_until(was_asked, &calls);
    /* It may ignore it. */
    assert_int_equal(dibs_lock_fence(lock), fence);
    atomic_store(&calls, 0);
    CHECK(DIBS_OK, dibs_lease_yield(other, name, 0, NULL, err));
    core_until(was_asked, &calls);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_INVALID, dibs_lease_yield(other, "", 0, NULL, err));
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(cl);
}

static void note_line(dibs_log_level level, const char *event,
                      const char *message, void *arg)
{
    assert_true(level >= DIBS_LOG_ERROR && level <= DIBS_LOG_TRACE);
    assert_true(strlen(event) > 0 && strlen(message) > 0);
    ++*(int *)arg;
}

static void the_log_can_be_turned_up_and_down(void **state)
{
    dibs_client *cl = NULL;
    dibs_client *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = core_lock(other, name, NULL);
    int lines = 0;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = note_line, .log_arg = &lines), &cl,
                    err));
    lines = 0;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_null(dibs_scope_begin(cl, name, NULL));
    assert_int_equal(lines, 0);
    dibs_log_level_set(cl, DIBS_LOG_INFO);
    assert_null(dibs_scope_begin(cl, name, NULL));
    assert_int_equal(lines, 1);
    dibs_log_level_set(cl, DIBS_LOG_ERROR);
    assert_null(dibs_scope_begin(cl, name, NULL));
    assert_int_equal(lines, 1);
    dibs_log_level_set(NULL, DIBS_LOG_TRACE);
    dibs_lock_free(lock);
    dibs_close(other);
    dibs_close(cl);
}

typedef struct grant_log {
    dibs_lock *release; /* when the third ask is made */
    int asked;
    char asked_text[128];
    char granted[128];
    dibs_log_level level;
} grant_log;

/* On the thread that acquires. */
static void note_grant(dibs_log_level level, const char *event,
                       const char *message, void *arg)
{
    grant_log *log = arg;

    if (strcmp(event, "asked") == 0) {
        snprintf(log->asked_text, sizeof(log->asked_text), "%s", message);
        if (++log->asked == 3)
            CHECK(DIBS_OK, dibs_lock_release(log->release, err));
    } else if (strcmp(event, "granted") == 0) {
        snprintf(log->granted, sizeof(log->granted), "%s", message);
        log->level = level;
    }
}

/* The holder releases when the third attempt begins. */
static void the_log_numbers_attempts(void **state)
{
    dibs_client *cl = NULL, *other = core_open();
    const char *name = core_name();
    dibs_lock *lock = NULL, *held = core_lock(other, name, NULL);
    grant_log log = {.release = held};

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(held, err));
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = note_grant, .log_arg = &log,
                                     .log_level = DIBS_LOG_TRACE),
                    &cl, err));
    lock = core_lock(cl, name,
                     DIBS_LOCK_OPTS(.retries = 100, .retry_delay_ms = 1));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_int_equal(log.asked, 3);
    assert_non_null(strstr(log.asked_text, " (attempt 3)"));
    assert_non_null(strstr(log.granted, " (attempt 3)"));
    assert_int_equal(log.level, DIBS_LOG_INFO);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_null(strstr(log.granted, "attempt"));
    assert_int_equal(log.level, DIBS_LOG_TRACE);
    dibs_lock_free(lock);
    dibs_lock_free(held);
    dibs_close(other);
    dibs_close(cl);
}

int core_monitor_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_who_holds),
        cmocka_unit_test(lists_what_begins_so_and_stops_when_told),
        cmocka_unit_test(long_labels_are_cut_whole),
        cmocka_unit_test(shows_identity_and_metadata),
        cmocka_unit_test(a_holder_is_asked_to_yield),
        cmocka_unit_test(the_log_can_be_turned_up_and_down),
        cmocka_unit_test(the_log_numbers_attempts),
    };

    return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
