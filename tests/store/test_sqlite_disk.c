/* test_sqlite_disk.c - the embedded store on a disk that is full, or that may not be
 * written.
 *
 * The disk is a small tmpfs in a mount namespace of this process; where none may
 * be made, the tests are skipped. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

enum { BIG = 100 * 1000 };

static bool may_mount; /* set once, before the tests */

static bool tell(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(text);
    bool done = fd >= 0 && write(fd, text, len) == (ssize_t)len;

    if (fd >= 0)
        close(fd);
    return done;
}

/* Root of a user namespace of its own. */
static bool own_users(void)
{
    char users[32], groups[32];

    snprintf(users, sizeof(users), "0 %u 1", geteuid());
    snprintf(groups, sizeof(groups), "0 %u 1", getegid());
    return unshare(CLONE_NEWUSER) == 0 &&
           tell("/proc/self/setgroups", "deny") &&
           tell("/proc/self/uid_map", users) &&
           tell("/proc/self/gid_map", groups);
}

static bool own_mounts(void)
{
    if (unshare(CLONE_NEWNS) != 0 &&
        (!own_users() || unshare(CLONE_NEWNS) != 0))
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int disk_setup(void **state)
{
    world *w;

    if (world_setup(state) != 0)
        return -1;
    w = *state;
    if (may_mount)
        may_mount = mount("none", w->folder, "tmpfs", 0, "size=2m") == 0;
    return 0;
}

static int disk_teardown(void **state)
{
    const world *w = *state;

    if (may_mount && umount2(w->folder, MNT_DETACH) != 0)
        return -1;
    return world_teardown(state);
}

static void need_mount(void)
{
    if (may_mount)
        return;
    print_message("skipped: no tmpfs may be mounted here; run it as root\n");
    skip();
}

/* Takes all space that is left. */
static void fill(const world *w)
{
    static const char block[4096];
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/filler", w->folder);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void make_space(const world *w)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/filler", w->folder);
    assert_int_equal(unlink(path), 0);
}

static dibs_status put_big(world *w, dibs__store *st)
{
    static char data[BIG];
    dibs__put put = {.key = "big", .data = data, .len = sizeof(data)};
    uint64_t version;

    put.expected = DIBS_VERSION_ANY;
    return st->ops->value->put(st, &put, soon(), &version, &w->err);
}

static void assert_sound(const world *w)
{
    char verdict[64];

    world_text(w->path, "PRAGMA integrity_check", verdict, sizeof(verdict));
    assert_string_equal(verdict, "ok");
}

static void a_full_disk_fails_the_step_and_loses_nothing(void **state)
{
    world *w = *state;
    dibs__store *st;
    dibs_value value;

    need_mount();
    st = world_open(w);
    put_text(w, st, "k", "kept");
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    fill(w);
    for (int i = 0; i < 3; i++) {
        assert_status(put_big(w, st), DIBS_UNAVAIL);
        assert_string_equal(w->err.origin, "SQLITE_FULL");
        assert_non_null(strstr(w->err.message, "disk is full"));
        assert_true(w->err.retriable);
    }
    assert_status(st->ops->value->get(st, "big", soon(), &value, &w->err),
                  DIBS_NOTFOUND);
    assert_text(w, st, "k", "kept");
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);

    make_space(w);
    assert_status(put_big(w, st), DIBS_OK);
    assert_text(w, st, "k", "kept");
    assert_status(try_lock(w, st, "a", 2, NULL), DIBS_BUSY);
    assert_status(unlock(w, st, "a", 1), DIBS_OK);
    dibs__store_close(st);
    assert_sound(w);
}

/* Steps go on in the space that the log has, then fail; none of those that
 * answered DIBS_OK is lost. */
static void leases_on_a_full_disk_are_granted_or_not(void **state)
{
    world *w = *state;
    dibs__store *st;
    char name[32];
    unsigned granted = 0, refused = 0;

    need_mount();
    st = world_open(w);
    assert_status(try_lock(w, st, "n-0", 0, NULL), DIBS_OK);
    fill(w);
    for (unsigned i = 1; i < 400 && refused < 5; i++) {
        dibs_status rc;

        snprintf(name, sizeof(name), "n-%u", i);
        rc = try_lock(w, st, name, i, NULL);
        if (rc != DIBS_OK)
            assert_status(rc, DIBS_UNAVAIL);
        granted += rc == DIBS_OK;
        refused += rc != DIBS_OK;
    }
    assert_true(refused > 0);
    make_space(w);
    assert_status(try_lock(w, st, "n-0", 1000, NULL), DIBS_BUSY);
    for (unsigned i = 1; i <= granted; i++) {
        snprintf(name, sizeof(name), "n-%u", i);
        assert_status(try_lock(w, st, name, 1000, NULL), DIBS_BUSY);
    }
    snprintf(name, sizeof(name), "n-%u", granted + 1);
    assert_status(try_lock(w, st, name, 1000, NULL), DIBS_OK);
    dibs__store_close(st);
    assert_sound(w);
}

static void count_entry(size_t look, const char *member, int64_t at, void *arg)
{
    (void)look;
    (void)member;
    (void)at;
    ++*(int *)arg;
}

static int count_entries(world *w, dibs__store *st)
{
    dibs__index_look look = {.index = "{b}i",
                             .up_to = DIBS__INDEX_AT_MAX,
                             .limit = 9};
    int64_t now_us;
    int count = 0;

    assert_status(st->ops->commit->first(st, &look, 1, soon(), &now_us,
                                         count_entry, &count, &w->err),
                  DIBS_OK);
    return count;
}

/* A step of commits is one transaction: a disk that is full refuses all of them. One that
 * is refused for its versions needs no space. */
static void commits_on_a_full_disk_leave_nothing(void **state)
{
    static char data[BIG];
    world *w = *state;
    dibs__change enter = {.verb = DIBS__CHANGE_ENTER,
                          .key = "{b}i",
                          .member = "m"};
    dibs__change put = {.verb = DIBS__CHANGE_PUT,
                        .key = "{b}big",
                        .data = data,
                        .len = BIG};
    dibs__check check = {.key = "{b}k", .version = 1};
    dibs__commit items[] = {{.changes = &enter, .change_count = 1},
                            {.changes = &put, .change_count = 1}};
    dibs__commit stale = {.checks = &check,
                          .check_count = 1,
                          .changes = &put,
                          .change_count = 1};
    dibs__store *st;

    need_mount();
    st = world_open(w);
    put_text(w, st, "{b}k", "kept");
    fill(w);
    assert_status(st->ops->commit->commit(st, items, 2, soon(), &w->err),
                  DIBS_UNAVAIL);
    assert_status(items[0].rc, DIBS_UNAVAIL);
    assert_status(items[1].rc, DIBS_UNAVAIL);
    assert_int_equal(items[0].version, 0);
    assert_int_equal(count_entries(w, st), 0);
    assert_status(st->ops->commit->commit(st, &stale, 1, soon(), &w->err),
                  DIBS_OK);
    assert_status(stale.rc, DIBS_STALE);
    assert_string_equal(stale.found.data, "kept");
    dibs__commit_fini(&stale, 1);
    make_space(w);
    assert_status(st->ops->commit->commit(st, items, 2, soon(), &w->err),
                  DIBS_OK);
    assert_int_equal(enter.size, 1);
    assert_int_equal(count_entries(w, st), 1);
    dibs__store_close(st);
    assert_sound(w);
}

static void a_fresh_file_on_a_full_disk_can_be_opened_later(void **state)
{
    world *w = *state;
    dibs__store *st = NULL;

    need_mount();
    fill(w);
    assert_status(world_refused(w, w->url), DIBS_UNAVAIL);
    make_space(w);
    st = world_open(w);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
    assert_sound(w);
}

/* Makes steps fail: uses up what space the log has. */
static void exhaust(world *w, dibs__store *st)
{
    unsigned refused = 0;
    char name[32];

    fill(w);
    for (unsigned i = 0; i < 400 && refused < 5; i++) {
        snprintf(name, sizeof(name), "e-%u", i);
        refused += try_lock(w, st, name, i, NULL) != DIBS_OK;
    }
    assert_int_equal(refused, 5);
}

/* A grant that could not be committed is nobody's. */
static void a_grant_that_was_rolled_back_is_not_notified(void **state)
{
    world *w = *state;
    dibs__store *holder, *waiter;
    dibs__answer queued;
    dibs__notice notice;
    int bell = -1;

    need_mount();
    holder = world_open(w);
    waiter = world_open(w);
    assert_status(waiter->ops->doorbell_open(waiter, soon(), &bell, &w->err),
                  DIBS_OK);
    assert_status(try_lock(w, holder, "a", 1, NULL), DIBS_OK);
    assert_status(queue_lock(w, waiter, "a", 2, &queued), DIBS_BUSY);
    exhaust(w, holder);
    assert_status(unlock(w, holder, "a", 1), DIBS_UNAVAIL);
    assert_int_equal(waiter->ops->doorbell_read(waiter, &notice, 1), 0);
    make_space(w);
    assert_status(queue_lock(w, waiter, "a", 2, &queued), DIBS_BUSY);
    assert_status(unlock(w, holder, "a", 1), DIBS_OK);
    assert_int_equal(waiter->ops->doorbell_read(waiter, &notice, 1), 1);
    assert_string_equal(notice.owner, owner(2));
    assert_true(notice.fence > queued.fence);
    dibs__store_close(waiter);
    dibs__store_close(holder);
}

static void make_read_only(const world *w, bool read_only)
{
    assert_int_equal(mount("none", w->folder, NULL,
                           MS_REMOUNT | (read_only ? MS_RDONLY : 0), "size=2m"),
                     0);
}

/* Nothing that another try could mend, and not the fault of the URL. */
static void a_read_only_file_system_is_denied(void **state)
{
    world *w = *state;
    dibs__store *st;

    need_mount();
    make_read_only(w, true);
    assert_status(world_refused(w, w->url), DIBS_DENIED);
    assert_string_equal(w->err.origin, "EROFS");
    make_read_only(w, false);
    st = world_open(w);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
    make_read_only(w, true);
    assert_status(world_refused(w, w->url), DIBS_DENIED);
    assert_string_equal(w->err.origin, "EROFS");
    make_read_only(w, false);
}

#define DISK_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, disk_setup, disk_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DISK_TEST(a_full_disk_fails_the_step_and_loses_nothing),
        DISK_TEST(leases_on_a_full_disk_are_granted_or_not),
        DISK_TEST(commits_on_a_full_disk_leave_nothing),
        DISK_TEST(a_fresh_file_on_a_full_disk_can_be_opened_later),
        DISK_TEST(a_grant_that_was_rolled_back_is_not_notified),
        DISK_TEST(a_read_only_file_system_is_denied),
    };

    may_mount = own_mounts();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
