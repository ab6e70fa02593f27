/* test_sqlite_doorbell.c - doorbells of the embedded store: who is notified, what is left
 * behind, what is not believed. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

enum { MANY = 500 };

static int doorbell_of(world *w, dibs__store *st)
{
    int fd = -1;

    assert_status(st->ops->doorbell_open(st, soon(), &fd, &w->err), DIBS_OK);
    assert_true(fd >= 0);
    return fd;
}

static bool has_notice(int fd, int wait_ms)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};

    return poll(&pfd, 1, wait_ms) == 1;
}

static void folder_of(const world *w, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s.bells", w->path);
}

/* How many pipes are in the folder; the path of the last one goes to `out`. */
static int pipes(const world *w, char *out)
{
    char folder[PATH_MAX];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    folder_of(w, folder);
    dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (out)
            snprintf(out, PATH_MAX, "%.2000s/%.200s", folder, entry->d_name);
    }
    closedir(dir);
    return count;
}

/* `a` holds, `b` waits with its bell open, `a` releases. */
static void assert_handed_over(world *w, dibs__store *a, dibs__store *b)
{
    int fd = doorbell_of(w, b);
    dibs__answer queued, mine;
    dibs__notice notice;

    assert_status(try_lock(w, a, "x", 1, NULL), DIBS_OK);
    assert_status(queue_lock(w, b, "x", 2, &queued), DIBS_BUSY);
    assert_true(queued.queued);
    assert_false(has_notice(fd, 0));
    assert_status(unlock(w, a, "x", 1), DIBS_OK);
    assert_true(has_notice(fd, 1000));
    assert_int_equal(b->ops->doorbell_read(b, &notice, 1), 1);
    assert_string_equal(notice.owner, owner(2));
    assert_int_equal(notice.kind, DIBS__NOTICE_GRANTED);
    assert_true(notice.fence > queued.fence);
    assert_status(queue_lock(w, b, "x", 2, &mine), DIBS_OK);
    assert_int_equal(mine.fence, notice.fence);
    assert_int_equal(b->ops->doorbell_read(b, &notice, 1), 0);
    assert_false(has_notice(fd, 0));
    assert_status(unlock(w, b, "x", 2), DIBS_OK);
}

static void a_grant_is_notified_over_a_file(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = world_open(w);
    char folder[PATH_MAX];
    struct stat at;

    assert_handed_over(w, a, b);
    folder_of(w, folder);
    assert_int_equal(stat(folder, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0700);
    dibs__store_close(a);
    dibs__store_close(b);
}

static void a_grant_is_notified_in_memory(void **state)
{
    world *w = *state;
    dibs__store *a = world_open_url(w, "memory:bell");
    dibs__store *b = world_open_url(w, "memory:bell");

    assert_handed_over(w, a, b);
    assert_handed_over(w, b, b);
    dibs__store_close(a);
    dibs__store_close(b);
}

static void a_long_path_is_no_hindrance(void **state)
{
    world *w = *state;
    char url[PATH_MAX], path[PATH_MAX];
    dibs__store *a, *b;
    int len = snprintf(path, sizeof(path), "%s", w->folder);

    for (int i = 0; i < 3; i++) {
        len += snprintf(path + len, sizeof(path) - (size_t)len, "/%0100d", i);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(url, sizeof(url), "sqlite:%.3000s/dibs.db", path);
    a = world_open_url(w, url);
    b = world_open_url(w, url);
    assert_handed_over(w, a, b);
    dibs__store_close(a);
    dibs__store_close(b);
}

static void an_open_doorbell_stays_the_same(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    int fd = doorbell_of(w, st);

    assert_int_equal(doorbell_of(w, st), fd);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pipes(w, NULL), 1);
    dibs__store_close(st);
    assert_int_equal(pipes(w, NULL), 0);
}

static void hundreds_of_notices_are_kept_until_read(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = world_open(w);
    dibs__notice heard[MANY + 1];
    char name[32];

    doorbell_of(w, b);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n-%u", i);
        assert_status(try_lock(w, a, name, 1, NULL), DIBS_OK);
        assert_status(queue_lock(w, b, name, 2 + i, NULL), DIBS_BUSY);
    }
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n-%u", i);
        assert_status(unlock(w, a, name, 1), DIBS_OK);
    }
    assert_int_equal(b->ops->doorbell_read(b, heard, MANY + 1), MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_string_equal(heard[i].owner, owner(2 + i));
    dibs__store_close(a);
    dibs__store_close(b);
}

/* Waits as owner 2 and is killed. */
static pid_t killed_waiter(world *w)
{
    int ready[2];
    pid_t child;
    char byte = 0;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        dibs__store *st = NULL;
        int fd;

        if (dibs__store_open(w->url, soon(), &st, &w->err) == DIBS_OK &&
            st->ops->doorbell_open(st, soon(), &fd, &w->err) == DIBS_OK &&
            queue_lock(w, st, "x", 2, NULL) == DIBS_BUSY)
            byte = 1;
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(child_code(child), 1000 + SIGKILL);
    return child;
}

/* The children open the database before this process does: SQLite's locks do
 * not survive a fork. */
static void hold_by_row(world *w)
{
    char sql[300];

    dibs__store_close(world_open(w));
    snprintf(sql, sizeof(sql),
             "INSERT INTO party VALUES('x', '%s', 0, 0, 1, 0, 0, 0, 1, 0, "
             "10000, %lld, %lld, '', 'here:1', 0); UPDATE party SET fence = 1 "
             "WHERE name = ''",
             owner(1), (long long)(dibsx_now() / 1000),
             (long long)(dibsx_now() / 1000 + 10000000));
    world_sql(w->path, sql);
}

static void the_pipe_of_a_killed_waiter_goes_with_a_notice(void **state)
{
    world *w = *state;
    dibs__store *st;

    hold_by_row(w);
    killed_waiter(w);
    assert_int_equal(pipes(w, NULL), 1);
    st = world_open(w);
    assert_status(unlock(w, st, "x", 1), DIBS_OK);
    assert_int_equal(pipes(w, NULL), 0);
    dibs__store_close(st);
}

static void old_pipes_are_swept_when_a_doorbell_is_opened(void **state)
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    world *w = *state;
    char path[PATH_MAX];
    dibs__store *st;
    int fd;

    hold_by_row(w);
    killed_waiter(w);
    st = world_open(w);
    fd = doorbell_of(w, st);
    assert_int_equal(pipes(w, NULL), 2); /* It might have been a young one. */
    dibs__store_close(st);
    assert_int_equal(pipes(w, path), 1);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);

    /* One that is listened to stays, however old. */
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    st = world_open(w);
    doorbell_of(w, st);
    assert_int_equal(pipes(w, NULL), 2);
    dibs__store_close(st);
    close(fd);
    st = world_open(w);
    doorbell_of(w, st);
    assert_int_equal(pipes(w, NULL), 1);
    dibs__store_close(st);
}

static void a_text_that_is_no_notice_is_not_believed(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = world_open(w);
    dibs__notice notice[4];
    char path[PATH_MAX], junk[200];
    int fd = doorbell_of(w, b), to;

    memset(junk, 'j', sizeof(junk));
    assert_int_equal(pipes(w, path), 1);
    to = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(to >= 0);
    for (size_t len = 1; len <= sizeof(junk); len += 33) {
        assert_int_equal(write(to, junk, len), len);
        while (has_notice(fd, 0))
            assert_int_equal(b->ops->doorbell_read(b, notice, 4), 0);
    }
    close(to);
    assert_handed_over(w, a, b);
    dibs__store_close(a);
    dibs__store_close(b);
}

/* An address is looked for in the folder and nowhere else. */
static void a_forged_address_leads_nowhere(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = world_open(w);
    char victim[PATH_MAX];

    doorbell_of(w, b);
    snprintf(victim, sizeof(victim), "%s/victim", w->folder);
    file_write(victim, "", 0);
    assert_status(try_lock(w, a, "x", 1, NULL), DIBS_OK);
    assert_status(queue_lock(w, b, "x", 2, NULL), DIBS_BUSY);
    world_sql(w->path, "UPDATE party SET bell = '../victim' WHERE role = 1");
    assert_status(unlock(w, a, "x", 1), DIBS_OK);
    assert_int_equal(file_size(victim), 0);
    assert_status(queue_lock(w, b, "x", 2, NULL), DIBS_OK);
    dibs__store_close(a);
    dibs__store_close(b);
}

static void a_doorbell_that_cannot_be_opened_says_why(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    char folder[PATH_MAX];
    int fd = 0;

    folder_of(w, folder);
    file_write(folder, "x", 1);
    assert_status(st->ops->doorbell_open(st, soon(), &fd, &w->err),
                  DIBS_UNAVAIL);
    assert_string_equal(w->err.origin, "ENOTDIR");
    assert_int_equal(fd, -1);
    assert_status(try_lock(w, st, "x", 1, NULL), DIBS_OK);
    assert_int_equal(unlink(folder), 0);
    doorbell_of(w, st);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_grant_is_notified_over_a_file),
        WORLD_TEST(a_grant_is_notified_in_memory),
        WORLD_TEST(a_long_path_is_no_hindrance),
        WORLD_TEST(an_open_doorbell_stays_the_same),
        WORLD_TEST(hundreds_of_notices_are_kept_until_read),
        WORLD_TEST(the_pipe_of_a_killed_waiter_goes_with_a_notice),
        WORLD_TEST(old_pipes_are_swept_when_a_doorbell_is_opened),
        WORLD_TEST(a_text_that_is_no_notice_is_not_believed),
        WORLD_TEST(a_forged_address_leads_nowhere),
        WORLD_TEST(a_doorbell_that_cannot_be_opened_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
