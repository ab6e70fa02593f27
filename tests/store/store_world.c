/* store_world.c - a folder, a database in it, and short ways to use the steps. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

int world_setup(void **state)
{
    world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    snprintf(w->folder, sizeof(w->folder), "/tmp/dibs-store-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof(w->path), "%s/dibs.db", w->folder);
    snprintf(w->url, sizeof(w->url), "sqlite:%s", w->path);
    assert_status(dibs__sqlite_load(&w->err), DIBS_OK);
    *state = w;
    return 0;
}

static int
remove_one(const char *path, const struct stat *at, int type, struct FTW *ftw)
{
    (void)at;
    (void)type;
    (void)ftw;
    return remove(path);
}

int world_teardown(void **state)
{
    world *w = *state;
    int rc = nftw(w->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);

    free(w);
    return rc;
}

dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(10000));
}

dibs__store *world_open_url(world *w, const char *url)
{
    dibs__store *st = NULL;

    (void)w;
    CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
    assert_non_null(st);
    return st;
}

dibs__store *world_open(world *w)
{
    return world_open_url(w, w->url);
}

dibs_status world_refused(world *w, const char *url)
{
    dibs__store *st = NULL;
    dibs_status rc = dibs__store_open(url, soon(), &st, &w->err);

    assert_int_not_equal(rc, DIBS_OK);
    assert_null(st);
    assert_int_equal(w->err.status, rc);
    return rc;
}

const char *owner(unsigned n)
{
    static char text[DIBS_OWNER_SIZE];

    snprintf(text, sizeof(text), "%032x", n);
    return text;
}

static dibs_status ask(world *w, dibs__store *st, const char *name, unsigned n,
                       uint32_t flags, dibs__answer *ans)
{
    dibs__answer unused;
    dibs__ask what = {.name = name,
                      .owner = owner(n),
                      .permits = 1,
                      .flags = flags,
                      .ttl_ms = WORLD_TTL_MS,
                      .who = "here:1 test"};

    return st->ops->lease->acquire(st, &what, soon(), ans ? ans : &unused,
                                   &w->err);
}

dibs_status try_lock(world *w, dibs__store *st, const char *name, unsigned n,
                     dibs__answer *ans)
{
    return ask(w, st, name, n, 0, ans);
}

dibs_status queue_lock(world *w, dibs__store *st, const char *name, unsigned n,
                       dibs__answer *ans)
{
    return ask(w, st, name, n, DIBS__ASK_QUEUE, ans);
}

dibs_status unlock(world *w, dibs__store *st, const char *name, unsigned n)
{
    dibs__leave leave = {.name = name, .owner = owner(n)};

    return st->ops->lease->release(st, &leave, soon(), &w->err);
}

uint64_t put_text(world *w, dibs__store *st, const char *key, const char *text)
{
    dibs__put put = {.key = key,
                     .data = text,
                     .len = strlen(text),
                     .expected = DIBS_VERSION_ANY};
    uint64_t version = 0;

    (void)w;
    CHECK(DIBS_OK, st->ops->value->put(st, &put, soon(), &version, err));
    return version;
}

void assert_text(world *w, dibs__store *st, const char *key, const char *text)
{
    dibs_value value;

    (void)w;
    CHECK(DIBS_OK, st->ops->value->get(st, key, soon(), &value, err));
    assert_string_equal(value.data, text);
    dibs_value_free(&value);
}

static sqlite3 *raw_open(const char *path)
{
    sqlite3 *db = NULL;

    assert_int_equal(dibs__sql.open_v2(path, &db,
                                       SQLITE_OPEN_READWRITE |
                                           SQLITE_OPEN_CREATE,
                                       NULL),
                     SQLITE_OK);
    return db;
}

void world_sql(const char *path, const char *sql)
{
    sqlite3 *db = raw_open(path);

    if (dibs__sql.exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, dibs__sql.errmsg(db));
    assert_int_equal(dibs__sql.close(db), SQLITE_OK);
}

void world_text(const char *path, const char *sql, char *out, size_t size)
{
    sqlite3 *db = raw_open(path);
    sqlite3_stmt *stmt = NULL;

    if (dibs__sql.prepare_v3(db, sql, -1, 0, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, dibs__sql.errmsg(db));
    assert_int_equal(dibs__sql.step(stmt), SQLITE_ROW);
    snprintf(out, size, "%s", (const char *)dibs__sql.column_text(stmt, 0));
    dibs__sql.finalize(stmt);
    assert_int_equal(dibs__sql.close(db), SQLITE_OK);
}

int64_t world_number(const char *path, const char *sql)
{
    char text[32];

    world_text(path, sql, text, sizeof(text));
    return strtoll(text, NULL, 10);
}

void file_write(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

size_t file_read(const char *path, void *data, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len;

    assert_true(fd >= 0);
    len = read(fd, data, size);
    close(fd);
    assert_true(len >= 0 && (size_t)len < size);
    return (size_t)len;
}

int64_t file_size(const char *path)
{
    struct stat at;

    return stat(path, &at) == 0 ? (int64_t)at.st_size : -1;
}
