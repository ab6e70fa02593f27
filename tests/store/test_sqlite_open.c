/* test_sqlite_open.c - what the embedded store takes as its ground and what not. */
/* SPDX-License-Identifier: MIT */
#include "config/default_url.h"
#include "store/sqlite/ground.h"
#include "store_world.h"
#include <sys/stat.h>
#include <sys/wait.h>

enum { NOBODY = 65534, CROWD = 50, FILE_MAX = 1 << 20 };

/* Opening answers `status`, says `words`, and leaves every byte as it was. */
static void assert_left_alone(world *w, dibs_status status, const char *words)
{
    char *before = malloc(FILE_MAX), *after = malloc(FILE_MAX);
    size_t len = file_read(w->path, before, FILE_MAX);

    assert_status(world_refused(w, w->url), status);
    if (!strstr(w->err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", w->err.message, words);
    assert_int_equal(file_read(w->path, after, FILE_MAX), len);
    assert_memory_equal(before, after, len);
    free(before);
    free(after);
}

static void a_fresh_file_is_made_and_found_again(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    char mode[16];

    put_text(w, st, "k", "kept");
    dibs__store_close(st);
    st = world_open(w);
    assert_text(w, st, "k", "kept");
    dibs__store_close(st);
    world_text(w->path, "PRAGMA journal_mode", mode, sizeof(mode));
    assert_string_equal(mode, "wal");
    assert_int_equal(world_number(w->path, "PRAGMA application_id"),
                     0x64696273);
}

static void an_empty_file_is_taken(void **state)
{
    world *w = *state;
    dibs__store *st;

    file_write(w->path, "", 0);
    st = world_open(w);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
}

static void a_database_of_another_program_is_refused(void **state)
{
    world *w = *state;

    world_sql(w->path, "CREATE TABLE party(name, owner); "
                       "INSERT INTO party VALUES('a', 'b')");
    assert_left_alone(w, DIBS_REFUSED, "another program");
}

static void another_application_id_is_refused(void **state)
{
    world *w = *state;

    world_sql(w->path, "PRAGMA application_id = 7");
    assert_left_alone(w, DIBS_REFUSED, "another program");
}

static void a_foreign_database_in_wal_mode_is_refused(void **state)
{
    world *w = *state;

    world_sql(w->path, "PRAGMA journal_mode = WAL; CREATE TABLE t(x)");
    assert_left_alone(w, DIBS_REFUSED, "another program");
}

static void a_text_file_is_refused(void **state)
{
    world *w = *state;
    const char text[] = "This is a letter to a friend and no database at all.\n"
                        "It is long enough to have a header, if it had one.\n";

    file_write(w->path, text, sizeof(text) - 1);
    assert_left_alone(w, DIBS_REFUSED, "not a dibs database");
    assert_string_equal(w->err.origin, "SQLITE_NOTADB");
}

static void a_newer_schema_is_refused(void **state)
{
    world *w = *state;

    dibs__store_close(world_open(w));
    world_sql(w->path, "PRAGMA user_version = 99");
    assert_left_alone(w, DIBS_REFUSED,
                      "made by a newer dibs; upgrade this one");
}

static void what_is_no_file_is_refused(void **state)
{
    world *w = *state;
    char url[PATH_MAX];

    assert_int_equal(mkdir(w->path, 0700), 0);
    assert_status(world_refused(w, w->url), DIBS_REFUSED);
    assert_string_equal(w->err.origin, "EISDIR");
    snprintf(url, sizeof(url), "%s/", w->url);
    assert_status(world_refused(w, url), DIBS_REFUSED);
    assert_int_equal(rmdir(w->path), 0);
    assert_int_equal(mkfifo(w->path, 0600), 0);
    assert_status(world_refused(w, w->url), DIBS_REFUSED);
    assert_int_equal(unlink(w->path), 0);
    assert_int_equal(symlink("nowhere", w->path), 0);
    assert_status(world_refused(w, w->url), DIBS_REFUSED);
}

static void a_missing_folder_is_refused(void **state)
{
    world *w = *state;
    char url[PATH_MAX];

    snprintf(url, sizeof(url), "sqlite:%s/no/dibs.db", w->folder);
    assert_status(world_refused(w, url), DIBS_REFUSED);
    assert_non_null(strstr(w->err.message, "create it"));
}

static void a_bad_url_is_invalid(void **state)
{
    static const char *const urls[] = {
        "sqlite:",          "sqlite://host/x.db",       "sqlite:/x.db?mode=ro",
        "memory:?any_fs=1", "sqlite:/tmp/x?any_fs=yes", "sqllite:/tmp/x.db",
    };
    world *w = *state;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        assert_status(world_refused(w, urls[i]), DIBS_INVALID);
    assert_non_null(strstr(w->err.message, "sqlite:, memory:"));
}

/* Opens the store at its default place, and not the one of the test. */
static dibs_status open_default(world *w, dibs__store **st)
{
    dibsx_buf url;
    dibs_status rc;

    dibsx_buf_init(&url, DIBSX_URL_MAX);
    rc = dibs__store_default_url(&url, &w->err);
    if (rc == DIBS_OK)
        rc = dibs__store_open(dibsx_buf_text(&url), soon(), st, &w->err);
    dibsx_buf_fini(&url);
    return rc;
}

/* Opens as a user who owns nothing; a process of root must become one. The
 * status of it. */
static int open_as_nobody(world *w)
{
    pid_t child = fork();

    if (child == 0) {
        dibs__store *st = NULL;

        if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(255);
        _exit((int)(w->url[0] ? dibs__store_open(w->url, soon(), &st, &w->err)
                              : open_default(w, &st)));
    }
    return child_code(child);
}

static void an_unwritable_folder_is_denied(void **state)
{
    world *w = *state;

    assert_int_equal(chmod(w->folder, 0555), 0);
    assert_status(open_as_nobody(w), DIBS_DENIED);
    assert_int_equal(chmod(w->folder, 0777), 0);
    assert_status(open_as_nobody(w), DIBS_OK);
}

static void an_unwritable_file_is_denied(void **state)
{
    world *w = *state;

    dibs__store_close(world_open(w));
    assert_int_equal(chmod(w->folder, 0777), 0);
    assert_int_equal(chmod(w->path, 0444), 0);
    assert_status(open_as_nobody(w), DIBS_DENIED);
    assert_int_equal(chmod(w->folder, 0700), 0);
}

static void network_file_systems_are_known(void **state)
{
    static const unsigned long bad[] = {
        0x6969,     0x517b,     0xff534d42, 0xfe534d42, 0x01021997, 0x5346414f,
        0x6b414653, 0x73757245, 0x00c36400, 0x65735546, 0x7461636f, 0x01161970,
    };
    static const unsigned long good[] = {
        0xef53,     0x58465342, 0x9123683e, 0x01021994,
        0x794c7630, 0x2fc12fc1, 0xf2f52010,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(dibs__ground_network(bad[i]));
        assert_null(dibs__ground_local(bad[i]));
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(dibs__ground_network(good[i]));
        assert_non_null(dibs__ground_local(good[i]));
    }
    /* A type above 2^31 comes out negative where f_type is signed. */
    assert_string_equal(dibs__ground_network((unsigned long)(int)0xff534d42),
                        "CIFS");
}

static void any_fs_takes_what_is_there(void **state)
{
    world *w = *state;
    char url[PATH_MAX];

    snprintf(url, sizeof(url), "%s?any_fs=1", w->url);
    dibs__store_close(world_open_url(w, url));
}

static void the_default_place_is_made_for_the_user_alone(void **state)
{
    world *w = *state;
    dibs__store *st = NULL;
    char path[PATH_MAX];
    struct stat at;

    snprintf(path, sizeof(path), "%s/st%%a?te#", w->folder);
    assert_int_equal(setenv("XDG_STATE_HOME", path, 1), 0);
    for (int i = 0; i < 2; i++) {
        assert_status(open_default(w, &st), DIBS_OK);
        dibs__store_close(st);
    }
    unsetenv("XDG_STATE_HOME");
    snprintf(path, sizeof(path), "%s/st%%a?te#/dibs", w->folder);
    assert_int_equal(stat(path, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0700);
    snprintf(path, sizeof(path), "%s/st%%a?te#/dibs/dibs.db", w->folder);
    assert_true(file_size(path) > 0);
}

static void without_xdg_the_home_is_used(void **state)
{
    world *w = *state;
    char path[PATH_MAX];
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    pid_t child;

    unsetenv("XDG_STATE_HOME");
    setenv("HOME", w->folder, 1);
    assert_int_equal(chmod(w->folder, 0777), 0);
    w->url[0] = '\0';
    child = open_as_nobody(w);
    if (home)
        setenv("HOME", home, 1);
    free(home);
    assert_status(child, DIBS_OK);
    snprintf(path, sizeof(path), "%s/.local/state/dibs/dibs.db", w->folder);
    assert_true(file_size(path) > 0);
}

/* Opens as soon as the gate closes, takes a lease of its own and adds one. */
static int crowd_child(world *w, int gate, unsigned n)
{
    dibs__store *st = NULL;
    int64_t sum;
    char byte;

    if (read(gate, &byte, 1) != 0)
        return 2;
    if (dibs__store_open(w->url, soon(), &st, &w->err) != DIBS_OK ||
        st->ops->value->add(st, "sum", 1, soon(), &sum, &w->err) != DIBS_OK ||
        try_lock(w, st, owner(n), n, NULL) != DIBS_OK) {
        fprintf(stderr, "child %u: %s\n", n, w->err.message);
        return pace_explains(w->err.status) ? PACE_MISSED : 1;
    }
    dibs__store_close(st);
    return 0;
}

static void fifty_processes_open_a_fresh_file_at_once(void **state)
{
    world *w = *state;
    pid_t children[CROWD];
    dibs__store *st;
    int gate[2];

    assert_int_equal(pipe(gate), 0);
    for (unsigned i = 0; i < CROWD; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(gate[1]);
            _exit(crowd_child(w, gate[0], i));
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(child_code(children[i]), 0);
    st = world_open(w);
    assert_text(w, st, "sum", "50");
    dibs__store_close(st);
    assert_int_equal(world_number(w->path,
                                  "SELECT count(*) FROM party WHERE name > ''"),
                     CROWD);
}

static void after_a_reboot_leases_are_void_and_values_stay(void **state)
{
    const char *real = dibs__sqlite_boot_id_path;
    world *w = *state;
    dibs__answer before, after;
    char path[PATH_MAX];
    dibs__store *st = world_open(w);

    assert_status(try_lock(w, st, "a", 1, &before), DIBS_OK);
    put_text(w, st, "k", "kept");
    dibs__store_close(st);
    snprintf(path, sizeof(path), "%s/boot_id", w->folder);
    file_write(path, "another-boot\n", 13);
    dibs__sqlite_boot_id_path = path;
    st = world_open(w);
    assert_status(try_lock(w, st, "a", 2, &after), DIBS_OK);
    assert_true(after.fence > before.fence);
    assert_text(w, st, "k", "kept");
    dibs__store_close(st);

    /* The same boot again: nothing is void. */
    st = world_open(w);
    assert_status(try_lock(w, st, "a", 3, &after), DIBS_BUSY);
    dibs__store_close(st);
    assert_int_equal(unlink(path), 0);
    assert_status(world_refused(w, w->url), DIBS_REFUSED);
    dibs__sqlite_boot_id_path = real;
}

static void another_time_namespace_is_refused(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
    world_sql(w->path, "UPDATE meta SET value = substr(value, 1, "
                       "instr(value, ' ')) || 'time:[1]' WHERE key = 'era'");
    assert_status(world_refused(w, w->url), DIBS_REFUSED);
    assert_non_null(strstr(w->err.message, "time namespace"));
    assert_int_equal(
        world_number(w->path, "SELECT count(*) FROM party WHERE name = 'a'"),
        1);
}

static void a_file_replaced_while_in_use_is_noticed(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    uint64_t version;
    int64_t now_us;
    dibs__put put = {.key = "k", .data = "x", .len = 1};
    dibs_value value = {0};

    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    assert_status(st->ops->now(st, soon(), &now_us, &w->err), DIBS_OK);
    assert_int_equal(unlink(w->path), 0);
    assert_status(try_lock(w, st, "b", 1, NULL), DIBS_REFUSED);
    assert_non_null(strstr(w->err.message, "removed or replaced"));
    world_sql(w->path, "CREATE TABLE t(x)");
    assert_status(unlock(w, st, "a", 1), DIBS_REFUSED);
    /* Also by a connection that is opened only now. */
    assert_status(st->ops->value->put(st, &put, soon(), &version, &w->err),
                  DIBS_REFUSED);
    /* And by who only reads. */
    assert_status(st->ops->value->get(st, "k", soon(), &value, &w->err),
                  DIBS_REFUSED);
    assert_status(st->ops->now(st, soon(), &now_us, &w->err), DIBS_REFUSED);
    dibs__store_close(st);
}

static void what_is_read_is_of_the_file_that_is_there(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    uint64_t version;
    dibs__put put = {.key = "k", .data = "x", .len = 1};
    dibs_value value = {0};

    assert_status(st->ops->value->put(st, &put, soon(), &version, &w->err),
                  DIBS_OK);
    assert_int_equal(unlink(w->path), 0);
    assert_status(st->ops->value->get(st, "k", soon(), &value, &w->err),
                  DIBS_REFUSED);
    assert_null(value.data);
    dibs__store_close(st);
}

static void a_child_does_not_open_what_its_parent_has_open(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    pid_t child = fork();

    if (child == 0) {
        char url[PATH_MAX];
        bool wrong = world_refused(w, w->url) != DIBS_REFUSED;
        dibs_status rc;

        snprintf(url, sizeof(url), "%s.other", w->url);
        rc = dibs__store_open(url, soon(), &st, &w->err);
        _exit(pace_explains(rc) ? PACE_MISSED : wrong || rc != DIBS_OK);
    }
    assert_int_equal(child_code(child), 0);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);

    /* Once it is closed, a child may. */
    child = fork();
    if (child == 0)
        _exit((int)dibs__store_open(w->url, soon(), &st, &w->err));
    assert_status(child_code(child), DIBS_OK);
}

static void a_relative_path_outlives_a_change_of_folder(void **state)
{
    world *w = *state;
    char here[PATH_MAX];
    dibs__store *st;

    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(w->folder), 0);
    st = world_open_url(w, "sqlite:dibs.db");
    assert_int_equal(chdir("/"), 0);
    put_text(w, st, "k", "v"); /* by a connection that is opened now */
    dibs__store_close(st);
    st = world_open(w);
    assert_text(w, st, "k", "v");
    dibs__store_close(st);
    assert_int_equal(chdir(here), 0);
}

static void a_link_leads_to_the_same_store(void **state)
{
    world *w = *state;
    char link[PATH_MAX], url[PATH_MAX + 8];
    dibs__store *st = world_open(w);
    dibs__store *other;

    snprintf(link, sizeof(link), "%s/link.db", w->folder);
    snprintf(url, sizeof(url), "sqlite:%s", link);
    assert_int_equal(symlink(w->path, link), 0);
    other = world_open_url(w, url);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    assert_status(try_lock(w, other, "a", 2, NULL), DIBS_BUSY);
    dibs__store_close(other);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_fresh_file_is_made_and_found_again),
        WORLD_TEST(an_empty_file_is_taken),
        WORLD_TEST(a_database_of_another_program_is_refused),
        WORLD_TEST(another_application_id_is_refused),
        WORLD_TEST(a_foreign_database_in_wal_mode_is_refused),
        WORLD_TEST(a_text_file_is_refused),
        WORLD_TEST(a_newer_schema_is_refused),
        WORLD_TEST(what_is_no_file_is_refused),
        WORLD_TEST(a_missing_folder_is_refused),
        WORLD_TEST(a_bad_url_is_invalid),
        WORLD_TEST(an_unwritable_folder_is_denied),
        WORLD_TEST(an_unwritable_file_is_denied),
        WORLD_TEST(network_file_systems_are_known),
        WORLD_TEST(any_fs_takes_what_is_there),
        WORLD_TEST(the_default_place_is_made_for_the_user_alone),
        WORLD_TEST(without_xdg_the_home_is_used),
        WORLD_TEST(fifty_processes_open_a_fresh_file_at_once),
        WORLD_TEST(after_a_reboot_leases_are_void_and_values_stay),
        WORLD_TEST(another_time_namespace_is_refused),
        WORLD_TEST(a_file_replaced_while_in_use_is_noticed),
        WORLD_TEST(what_is_read_is_of_the_file_that_is_there),
        WORLD_TEST(a_child_does_not_open_what_its_parent_has_open),
        WORLD_TEST(a_relative_path_outlives_a_change_of_folder),
        WORLD_TEST(a_link_leads_to_the_same_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
