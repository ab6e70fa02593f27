/* test_result_files.c - results pass from command to command, and nothing else does. */
/* SPDX-License-Identifier: MIT */
#include "exec/result_files.h"

#include "attempt_world.h"
#include "exec/executor_main.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const dibs__need needs[] = {{"extract-1", "a \"b\"\n", 6},
                                   {"load", "x\0y", 3}};

/* The variables of files, in front of PATH. */
typedef struct vars {
    dibsx_buf text;
    char *list[8];
} vars;

static void vars_of(vars *v, const dibs__result_files *files)
{
    static char path[] = "PATH=/usr/bin:/bin";
    size_t count = 0;
    dibsx_buf_init(&v->text, 4096);
    dibs__result_files_env(files, needs, 2, &v->text);
    for (size_t at = 0; at < v->text.len; at += strlen(v->text.data + at) + 1)
        v->list[count++] = v->text.data + at;
    v->list[count++] = path;
    v->list[count] = NULL;
}

/* Runs a shell text with the files, and gives its output. */
static const char *run_with(world *w, const dibs__result_files *files,
                            const char *user, const char *shell)
{
    vars v;
    dibs__attempt_spec spec = world_spec(shell);
    vars_of(&v, files);
    spec.env = v.list;
    spec.user = user;
    dibs__attempt *at = world_start(w, &spec);
    (void)world_await(w, at);
    dibsx_buf_fini(&v.text);
    (void)world_text(w, at);
    dibs__attempt_free(at);
    return w->text;
}

static void test_results_pass_on(void **state)
{
    world *w = *state;
    dibs__result_files files;
    char result[DIBS__RESULT_MAX];
    size_t len = 7;
    const char *user = geteuid() == 0 ? "nobody" : NULL;
    CHECK(DIBS_OK, dibs__result_files_make(&files, DIBS__FILES_STEP, "/tmp",
                                           user, needs, 2, err));
    CHECK(DIBS_OK, dibs__result_files_read(&files, result, &len, err));
    assert_int_equal(len, 0);
    const char *text = run_with(
        w, &files, user,
        "printf %s \"$DIBS_NEEDS_EXTRACT_1\"; echo; env | grep -c LOAD; cat "
        "\"$DIBS_NEEDS\"; printf 'the result' > \"$DIBS_RESULT\"; touch "
        "\"$(dirname \"$DIBS_RESULT\")/more\"");
    assert_string_equal(text, "a \"b\"\n\n0\n{\"extract-1\":\"a "
                              "\\\"b\\\"\\n\",\"load\":\"x\\u0000y\"}");
    CHECK(DIBS_OK, dibs__result_files_read(&files, result, &len, err));
    assert_int_equal(len, strlen("the result"));
    assert_memory_equal(result, "the result", len);
    char dir[PATH_MAX];
    memcpy(dir, files.dir, sizeof dir);
    dibs__result_files_remove(&files);
    assert_int_not_equal(access(dir, F_OK), 0);
}

static void test_a_result_is_bounded(void **state)
{
    world *w = *state;
    dibs__result_files files;
    char result[DIBS__RESULT_MAX], text[DIBS__RESULT_MAX + 1];
    size_t len;
    CHECK(DIBS_OK, dibs__result_files_make(&files, DIBS__FILES_STEP, NULL, NULL,
                                           NULL, 0, err));
    (void)run_with(w, &files, NULL, "head -c 4096 /dev/zero > $DIBS_RESULT");
    CHECK(DIBS_OK, dibs__result_files_read(&files, result, &len, err));
    assert_int_equal(len, DIBS__RESULT_MAX);
    (void)run_with(w, &files, NULL, "head -c 4097 /dev/zero > $DIBS_RESULT");
    CHECK(DIBS_INVALID, dibs__result_files_read(&files, result, &len, err));
    CHECK(DIBS_OK, dibs__result_files_read_text(&files, text, err));
    assert_string_equal(text, "");
    (void)run_with(w, &files, NULL, "printf 'why\\n\\n' > $DIBS_RESULT");
    CHECK(DIBS_OK, dibs__result_files_read_text(&files, text, err));
    assert_string_equal(text, "why");
    (void)run_with(w, &files, NULL, "rm $DIBS_RESULT");
    CHECK(DIBS_OK, dibs__result_files_read(&files, result, &len, err));
    assert_int_equal(len, 0);
    dibs__result_files_remove(&files);
}

/* A command must not make a node, which may be root, read for it. */
static void test_the_node_reads_no_other_file(void **state)
{
    static const char *const tricks[] = {
        "rm $DIBS_RESULT; ln -s /etc/passwd $DIBS_RESULT",
        "rm $DIBS_RESULT; mkfifo $DIBS_RESULT",
        "rm $DIBS_RESULT; mkdir $DIBS_RESULT",
        "ln $DIBS_RESULT $DIBS_RESULT.too"};
    world *w = *state;
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++) {
        dibs__result_files files;
        char result[DIBS__RESULT_MAX], dir[PATH_MAX];
        size_t len;
        CHECK(DIBS_OK, dibs__result_files_make(&files, DIBS__FILES_STEP, NULL,
                                               NULL, NULL, 0, err));
        memcpy(dir, files.dir, sizeof dir);
        (void)run_with(w, &files, NULL, tricks[i]);
        CHECK(DIBS_INVALID, dibs__result_files_read(&files, result, &len, err));
        assert_int_equal(len, 0);
        dibs__result_files_remove(&files);
        if (i == 2) {
            char command[PATH_MAX + 16];
            (void)snprintf(command, sizeof command, "%s/result", dir);
            assert_int_equal(rmdir(command), 0);
            assert_int_equal(rmdir(dir), 0);
        }
    }
    dibs__result_files files;
    CHECK(DIBS_INVALID, dibs__result_files_make(&files, DIBS__FILES_STEP, NULL,
                                                "no-such-user", NULL, 0, err));
    CHECK(DIBS_INTERNAL,
          dibs__result_files_make(&files, DIBS__FILES_STEP, "/no/such/folder",
                                  NULL, NULL, 0, err));
}

/* A process that is killed leaves its folder, which the next one removes; not those in
 * use, nor those that may be. */
static void test_folders_of_the_dead_go(void **state)
{
    char place[] = "/tmp/dibs-place-XXXXXX", dead[PATH_MAX], other[PATH_MAX];
    dibs__result_files files, used;
    (void)state;
    assert_non_null(mkdtemp(place));
    CHECK(DIBS_OK, dibs__result_files_make(&files, DIBS__FILES_STEP, place,
                                           NULL, needs, 2, err));
    CHECK(DIBS_OK, dibs__result_files_make(&used, DIBS__FILES_STEP, place, NULL,
                                           needs, 2, err));
    memcpy(dead, files.dir, sizeof dead);
    close(files.dir_fd); /* as its death does */
    (void)snprintf(other, sizeof other, "%s/dibs-stop-1", place);
    assert_int_equal(mkdir(other, 0700), 0);
    dibs__result_files_sweep(DIBS__FILES_STEP, place, 3600);
    assert_int_equal(access(dead, F_OK), 0);
    dibs__result_files_sweep(DIBS__FILES_ITEM, place, 0);
    assert_int_equal(access(dead, F_OK), 0);
    dibs__result_files_sweep(DIBS__FILES_STEP, place, 0);
    assert_int_not_equal(access(dead, F_OK), 0);
    assert_int_equal(access(used.dir, F_OK), 0);
    dibs__result_files_remove(&used);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(rmdir(place), 0);
}

/* When a sweep meets the next folder that is made, before that is in use. */
typedef enum meeting {
    NO_SWEEP,
    SWEPT_UNOPENED, /* the sweep is over before the folder is open, */
    SWEPT_UNLOCKED, /* or before it is locked, */
    BEING_SWEPT     /* or not over when it is */
} meeting;

static struct {
    meeting next;
    char place[32];
    char dir[PATH_MAX]; /* of the folder */
    int lock;           /* BEING_SWEPT: that of the sweep */
} sweeper;

char *__real_mkdtemp(char *path);
char *__wrap_mkdtemp(char *path);
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

char *__wrap_mkdtemp(char *path)
{
    char *made = __real_mkdtemp(path);
    meeting now = sweeper.next;
    if (made && now != NO_SWEEP)
        (void)snprintf(sweeper.dir, sizeof sweeper.dir, "%s", made);
    if (made && now == SWEPT_UNOPENED) {
        sweeper.next = NO_SWEEP;
        dibs__result_files_sweep(DIBS__FILES_ITEM, sweeper.place, 0);
    }
    return made;
}

int __wrap_flock(int fd, int how)
{
    meeting now = sweeper.next;
    sweeper.next = NO_SWEEP;
    if (now == SWEPT_UNLOCKED)
        dibs__result_files_sweep(DIBS__FILES_ITEM, sweeper.place, 0);
    if (now == BEING_SWEPT) {
        sweeper.lock = open(sweeper.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(__real_flock(sweeper.lock, LOCK_EX | LOCK_NB), 0);
    }
    return __real_flock(fd, how);
}

static int entries_of(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    for (assert_non_null(dir); readdir(dir);)
        count++;
    (void)closedir(dir);
    return count - 2; /* "." and ".." */
}

static void test_a_folder_that_is_swept_is_made_again(void **state)
{
    (void)state;
    for (meeting when = SWEPT_UNOPENED; when <= BEING_SWEPT; when++) {
        dibs__result_files files;
        (void)snprintf(sweeper.place, sizeof sweeper.place,
                       "/tmp/dibs-place-XXXXXX");
        assert_non_null(__real_mkdtemp(sweeper.place));
        sweeper.lock = -1;
        sweeper.next = when;
        CHECK(DIBS_OK,
              dibs__result_files_make(&files, DIBS__FILES_ITEM, sweeper.place,
                                      NULL, NULL, 0, err));
        assert_int_equal(sweeper.next, NO_SWEEP);
        assert_string_not_equal(files.dir, sweeper.dir);
        assert_int_equal(entries_of(files.dir), 1);
        if (sweeper.lock >= 0)
            close(sweeper.lock);
        dibs__result_files_sweep(DIBS__FILES_ITEM, sweeper.place, 0);
        assert_int_equal(entries_of(files.dir), 1);
        assert_int_equal(entries_of(sweeper.place), 1);
        dibs__result_files_remove(&files);
        assert_int_equal(rmdir(sweeper.place), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_pass_on),
        cmocka_unit_test(test_a_result_is_bounded),
        cmocka_unit_test(test_folders_of_the_dead_go),
        cmocka_unit_test(test_a_folder_that_is_swept_is_made_again),
        cmocka_unit_test(test_the_node_reads_no_other_file),
    };
    dibs__executor_play(argc, argv);
    return cmocka_run_group_tests_name("result_files", tests, world_make,
                                       world_drop);
}
