/* test_sqlite_doorbell.c - doorbells of the embedded store: who is notified, what is left
 * behind, what is not believed. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "store/topic.h"
#include "store_world.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MANY = 500, AT_ONCE = 64, FEW = 5, FLOOD = 100, EARS = 9 };

/* Of a pipe, in bytes. */
enum { PAGES = 16, PAGE = 4096, NOTICE = 48 };

/* Sends more messages than a pipe holds, once, right after somebody looked how full it is. */
typedef struct flood {
    world *w;
    dibs__store *from;
} flood;

static flood *next_flood;

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

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
    IN_TIME(mine.fence == notice.fence); /* A claim stands for seconds only. */
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
        dibsx_nsec from_at = dibsx_now();

        snprintf(name, sizeof(name), "n-%u", i);
        assert_status(try_lock(w, a, name, 1, NULL), DIBS_OK);
        assert_status(queue_lock(w, b, name, 2 + i, NULL), DIBS_BUSY);
        assert_status(unlock(w, a, name, 1), DIBS_OK);
        /* A place whose waiter does not ask again lives for three seconds. */
        IN_TIME(dibsx_now() - from_at < 2 * DIBSX_SEC);
    }
    assert_int_equal(b->ops->doorbell_read(b, heard, MANY + 1), MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_string_equal(heard[i].owner, owner(2 + i));
    dibs__store_close(a);
    dibs__store_close(b);
}

static void say(world *w, dibs__store *st, int count)
{
    char data[DIBS__SAY_MAX] = "x";

    for (int i = 0; i < count; i++)
        assert_status(st->ops->topic->say(st, "t", data, sizeof(data), soon(),
                                          &w->err),
                      DIBS_OK);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    flood *due = next_flood;
    va_list args;
    void *out;
    int rc;

    va_start(args, request);
    out = va_arg(args, void *);
    va_end(args);
    rc = __real_ioctl(fd, request, out);
    if (due && request == FIONREAD) {
        next_flood = NULL;
        say(due->w, due->from, FLOOD);
    }
    return rc;
}

static dibs__store *open_ear(world *w)
{
    dibs__store *st = world_open(w);

    doorbell_of(w, st);
    assert_status(st->ops->topic->ear(st, "t", true, soon(), &w->err), DIBS_OK);
    return st;
}

/* Reads all that is there; how many messages, and how often some were lost. */
static int hear_all(dibs__store *st, int *missed)
{
    dibs__notice heard[AT_ONCE];
    size_t count;
    int said = 0;

    *missed = 0;
    do {
        count = st->ops->doorbell_read(st, heard, AT_ONCE);
        for (size_t i = 0; i < count; i++) {
            said += heard[i].kind == DIBS__NOTICE_SAID;
            *missed += heard[i].kind == DIBS__NOTICE_MISSED;
            dibs__notice_drop(&heard[i]);
        }
    } while (count > 0);
    return said;
}

/* One call reads several pipes full: it was not full when the call began, and is not when
 * it ends. */
static void messages_lost_during_a_read_are_reported(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = open_ear(w);
    flood during = {.w = w, .from = a};
    int missed;

    say(w, a, FEW);
    assert_int_equal(hear_all(b, &missed), FEW);
    assert_int_equal(missed, 0);
    say(w, a, FEW);
    next_flood = &during;
    assert_true(hear_all(b, &missed) < FEW + FLOOD);
    assert_null(next_flood);
    assert_int_equal(missed, 1);
    say(w, a, FEW);
    assert_int_equal(hear_all(b, &missed), FEW);
    assert_int_equal(missed, 0);
    dibs__store_close(a);
    dibs__store_close(b);
}

static void tell(world *w, dibs__store *st, int count)
{
    for (int i = 0; i < count; i++)
        assert_status(st->ops->topic->tell(st, "t", 1, soon(), &w->err),
                      DIBS_OK);
}

/* Most of the first page has been read, and each of the others has one message: there are
 * fewer bytes than in half a pipe. */
static void messages_lost_after_a_part_was_read_are_reported(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = open_ear(w);
    dibs__notice heard[AT_ONCE];
    char data[PAGE / 2] = "x";
    int missed, said;

    tell(w, a, AT_ONCE + 1);
    assert_int_equal(b->ops->doorbell_read(b, heard, AT_ONCE), AT_ONCE);
    for (int i = 0; i < PAGES; i++)
        assert_status(a->ops->topic->say(a, "t", data, sizeof(data), soon(),
                                         &w->err),
                      DIBS_OK);
    said = hear_all(b, &missed);
    assert_true(said == PAGES || missed > 0);
    dibs__store_close(a);
    dibs__store_close(b);
}

/* Notices fill all pages but the last, which has a few: there is room for more of them,
 * and not for a message. */
static void the_first_message_without_room_is_reported(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = open_ear(w);
    int missed, said;

    tell(w, a, (PAGES - 1) * (PAGE / NOTICE) + FEW);
    say(w, a, 1);
    said = hear_all(b, &missed);
    assert_true(said == 1 || missed > 0);
    dibs__store_close(a);
    dibs__store_close(b);
}

static void a_message_without_memory_is_reported(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = open_ear(w);
    int missed;

    say(w, a, FEW);
    dibsx_alloc_fail_at(2);
    assert_int_equal(hear_all(b, &missed), FEW - 1);
    dibsx_alloc_fail_at(0);
    assert_int_equal(missed, 1);
    say(w, a, 1);
    assert_int_equal(hear_all(b, &missed), 1);
    assert_int_equal(missed, 0);
    dibs__store_close(a);
    dibs__store_close(b);
}

/* A message to so many that its list grows twice. No other thread allocates anything. */
static void a_message_that_finds_no_memory_is_not_sent(void **state)
{
    world *w = *state;
    dibs__store *ears[EARS];
    dibs_status rc = DIBS_NOMEM;
    unsigned long n = 0;
    int missed;

    for (size_t i = 0; i < EARS; i++)
        ears[i] = open_ear(w);
    while (rc == DIBS_NOMEM) {
        dibs__store *st = world_open(w); /* It has no list yet. */
        int heard = 0;

        dibsx_alloc_fail_at(++n);
        rc = st->ops->topic->say(st, "t", "x", 1, soon(), &w->err);
        dibsx_alloc_fail_at(0);
        for (size_t i = 0; i < EARS; i++) {
            heard += hear_all(ears[i], &missed);
            assert_int_equal(missed, 0);
        }
        assert_int_equal(heard, rc == DIBS_OK ? EARS : 0);
        dibs__store_close(st);
    }
    assert_status(rc, DIBS_OK);
    assert_int_equal(n, 4); /* A message, its list, and that once more. */
    for (size_t i = 0; i < EARS; i++)
        dibs__store_close(ears[i]);
}

/* What listens to the value would not learn of the change. */
static void a_change_that_nobody_can_be_told_of_is_not_made(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = world_open(w);
    const dibs__put put = {.key = "k",
                           .data = "x",
                           .len = 1,
                           .expected = DIBS_VERSION_ANY};
    const dibs__put other = {.key = "o", .expected = DIBS_VERSION_ANY};
    dibs__notice notice;
    uint64_t version;

    doorbell_of(w, b);
    assert_status(b->ops->topic->ear(b, "value:k", true, soon(), &w->err),
                  DIBS_OK);
    assert_status(a->ops->value->put(a, &other, soon(), &version, &w->err),
                  DIBS_OK);
    dibsx_alloc_fail_at(1);
    assert_status(a->ops->value->put(a, &put, soon(), &version, &w->err),
                  DIBS_NOMEM);
    dibsx_alloc_fail_at(0);
    assert_int_equal(b->ops->doorbell_read(b, &notice, 1), 0);
    assert_status(a->ops->value->put(a, &put, soon(), &version, &w->err),
                  DIBS_OK);
    assert_int_equal(b->ops->doorbell_read(b, &notice, 1), 1);
    assert_int_equal(notice.fence, version);
    dibs__store_close(a);
    dibs__store_close(b);
}

/* The sender has no descriptor left for the pipe of the listener. */
static void a_message_that_reached_not_all_says_so(void **state)
{
    world *w = *state;
    dibs__store *a = world_open(w), *b = open_ear(w);
    struct rlimit old, few;
    int free_fd, missed;

    say(w, a, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(free_fd >= 0);
    close(free_fd);
    few =
        (struct rlimit){.rlim_cur = (rlim_t)free_fd, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_status(a->ops->topic->say(a, "t", "x", 1, soon(), &w->err),
                  DIBS_UNKNOWN);
    few.rlim_cur++; /* One of the two that it takes. */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_status(a->ops->topic->say(a, "t", "x", 1, soon(), &w->err),
                  DIBS_UNKNOWN);
    assert_string_equal(w->err.origin, "EMFILE");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(hear_all(b, &missed), 1);
    dibs__store_close(b);
    say(w, a, 1); /* One that has gone misses nothing. */
    dibs__store_close(a);
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
        else if (pace_explains(w->err.status))
            byte = 2;
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(child_code(child), 1000 + SIGKILL);
    IN_TIME(byte != 2);
    assert_int_equal(byte, 1);
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
             "%d, %lld, %lld, '', 'here:1', 0); UPDATE party SET fence = 1 "
             "WHERE name = ''",
             owner(1), WORLD_TTL_MS, (long long)(dibsx_now() / 1000),
             (long long)(dibsx_now() / 1000 + WORLD_TTL_MS * 1000LL));
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
        WORLD_TEST(messages_lost_during_a_read_are_reported),
        WORLD_TEST(messages_lost_after_a_part_was_read_are_reported),
        WORLD_TEST(the_first_message_without_room_is_reported),
        WORLD_TEST(a_message_without_memory_is_reported),
        WORLD_TEST(a_message_that_finds_no_memory_is_not_sent),
        WORLD_TEST(a_change_that_nobody_can_be_told_of_is_not_made),
        WORLD_TEST(a_message_that_reached_not_all_says_so),
        WORLD_TEST(the_pipe_of_a_killed_waiter_goes_with_a_notice),
        WORLD_TEST(old_pipes_are_swept_when_a_doorbell_is_opened),
        WORLD_TEST(a_text_that_is_no_notice_is_not_believed),
        WORLD_TEST(a_forged_address_leads_nowhere),
        WORLD_TEST(a_doorbell_that_cannot_be_opened_says_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
