/* test_shared_file.c - a file is opened to a group, and nothing else is: members of
 * the group can write the folder while root works in it. */
/* SPDX-License-Identifier: MIT */
#include "cli/shared_file.h"
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct world {
    char folder[64];
    char store[PATH_MAX];
    char text[PATH_MAX + 32];
} world;

static const char *in_store(world *w, const char *name)
{
    snprintf(w->text, sizeof(w->text), "%s/%s", w->store, name);
    return w->text;
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static mode_t mode_of(const char *path)
{
    struct stat at;

    assert_int_equal(stat(path, &at), 0);
    return at.st_mode & 07777;
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    snprintf(w->folder, sizeof(w->folder), "/tmp/dibs-shared-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    assert_int_equal(chmod(w->folder, 0755), 0);
    snprintf(w->store, sizeof(w->store), "%s/store", w->folder);
    snprintf(w->text, sizeof(w->text), "%s/secret", w->folder);
    make_file(w->text);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"dibs.db", "dibs.db-wal",
                                        "dibs.db.bells", "other"};
    world *w = *state;
    char path[PATH_MAX];

    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)unlink(in_store(w, names[i]));
    (void)rmdir(w->store);
    (void)unlink(w->store);
    snprintf(path, sizeof(path), "%s/secret", w->folder);
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/real", w->folder);
    (void)rmdir(path);
    assert_int_equal(rmdir(w->folder), 0);
    free(w);
    return 0;
}

static dibs_status share(world *w)
{
    char path[PATH_MAX + 32];
    dibs_error err = {0};
    dibs_status rc;

    snprintf(path, sizeof(path), "%s/dibs.db", w->store);
    rc = dibs__shared_file_make(path, getgid(), &err);
    if (rc == DIBS_OK)
        rc = dibs__shared_file_fit(path, getgid(), &err);
    return rc;
}

static void assert_secret(world *w)
{
    snprintf(w->text, sizeof(w->text), "%s/secret", w->folder);
    assert_int_equal(mode_of(w->text), 0600);
}

static void the_umask_does_not_matter(void **state)
{
    world *w = *state;
    mode_t mask = umask(0777);

    assert_int_equal(share(w), DIBS_OK);
    umask(mask);
    assert_int_equal(mode_of(w->store), 02770);
    assert_int_equal(mode_of(in_store(w, "dibs.db")), 0660);
    assert_int_equal(share(w), DIBS_OK);
}

static void no_link_is_followed(void **state)
{
    static const char *const names[] = {"dibs.db", "dibs.db-wal",
                                        "dibs.db.bells"};
    world *w = *state;
    char secret[PATH_MAX];

    snprintf(secret, sizeof(secret), "%s/secret", w->folder);
    assert_int_equal(mkdir(w->store, 0700), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(symlink(secret, in_store(w, names[i])), 0);
        assert_int_equal(share(w), DIBS_REFUSED);
        assert_secret(w);
        assert_int_equal(unlink(in_store(w, names[i])), 0);
    }
    assert_int_equal(link(secret, in_store(w, "dibs.db-wal")), 0);
    assert_int_equal(share(w), DIBS_REFUSED);
    assert_secret(w);
}

static void the_folder_may_be_a_link(void **state)
{
    world *w = *state;
    char real[PATH_MAX];

    snprintf(real, sizeof(real), "%s/real", w->folder);
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink(real, w->store), 0);
    assert_int_equal(share(w), DIBS_OK);
    assert_int_equal(mode_of(real), 02770);
}

static void other_files_are_not_opened(void **state)
{
    world *w = *state;

    assert_int_equal(mkdir(w->store, 0700), 0);
    make_file(in_store(w, "other"));
    assert_int_equal(share(w), DIBS_REFUSED);
    assert_int_equal(mode_of(w->store), 0700);
}

int main(void)
{
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WORLD_TEST(the_umask_does_not_matter),
        WORLD_TEST(no_link_is_followed),
        WORLD_TEST(the_folder_may_be_a_link),
        WORLD_TEST(other_files_are_not_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
