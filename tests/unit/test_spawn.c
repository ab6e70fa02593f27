/* test_spawn.c - what others can tell of a program the moment it runs. */
/* SPDX-License-Identifier: MIT */
#include "exec/spawn.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where its head is told, in a file that the program itself can read. */
typedef struct page {
    int fd;
    _Atomic int32_t *head;
} page;

static page make_page(void)
{
    page made = {.fd = memfd_create("page", MFD_CLOEXEC)};
    assert_true(made.fd >= 0);
    assert_return_code(ftruncate(made.fd, sizeof *made.head), errno);
    made.head = mmap(NULL, sizeof *made.head, PROT_READ | PROT_WRITE,
                     MAP_SHARED, made.fd, 0);
    assert_ptr_not_equal(made.head, MAP_FAILED);
    return made;
}

static void end_page(const page *made)
{
    munmap(made->head, sizeof *made->head);
    close(made->fd);
}

static int start_on(const page *made, const char *program, pid_t group, int out,
                    pid_t *pid)
{
    char *const argv[] = {(char *)program, (char *)"-An", (char *)"-td4",
                          (char *)"-N4", NULL};
    static dibs__signals signals;
    dibs__spawn_stage stage;
    const dibs__spawn start = {.argv = argv,
                               .envp = environ,
                               .signals = &signals,
                               .tty = -1,
                               .stdio = {made->fd, out, -1},
                               .cgroup_fd = -1,
                               .group = group,
                               .head = made->head};
    return dibs__spawn_start(&start, pid, &stage);
}

/* What the program reads there, which nobody but it and what it was can have told. */
static long head_seen(const page *made, pid_t group, pid_t *pid)
{
    char text[32] = "";
    int out[2];
    int status = -1;
    assert_return_code(pipe(out), errno);
    assert_return_code(lseek(made->fd, 0, SEEK_SET), errno);
    assert_int_equal(start_on(made, "od", group, out[1], pid), 0);
    close(out[1]);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    close(out[0]);
    assert_int_equal(waitpid(*pid, &status, 0), *pid);
    assert_int_equal(status, 0);
    return strtol(text, NULL, 10);
}

static void test_the_head_is_told_before_the_program_runs(void **state)
{
    (void)state;
    page made = make_page();
    pid_t pid = 0;
    long seen = head_seen(&made, 0, &pid);
    assert_int_equal(seen, -pid);
    seen = head_seen(&made, getpgrp(), &pid);
    assert_int_equal(seen, pid);
    end_page(&made);
}

static void test_no_program_has_no_head(void **state)
{
    (void)state;
    page made = make_page();
    pid_t pid = 0;
    assert_int_equal(start_on(&made, "/nonexistent", 0, -1, &pid), ENOENT);
    assert_int_equal(atomic_load(made.head), 0);
    assert_int_equal(pid, 0);
    end_page(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_head_is_told_before_the_program_runs),
        cmocka_unit_test(test_no_program_has_no_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
