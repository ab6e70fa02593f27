/* result_files.c - see result_files.h.
 *
 * The folder belongs to the user of the command, who can put anything in it: links, pipes,
 * the file of another. So the result is opened without following a link or waiting, and it counts
 * only if it is a file of that user with no other name. Owns the folder. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "exec/result_files.h"

#include "base/fail.h"
#include "base/json_data.h"
#include "base/write_all.h"
#include "exec/spawn.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* 256 steps with results that are escapes to the last byte. */
#define NEEDS_MAX ((size_t)256 * 6 * DIBS__RESULT_MAX + 65536)

enum { FOLDERS_MAX = 8 }; /* that sweeps may take before a make fails */

static const char *const prefixes[] = {
    [DIBS__FILES_STEP] = "dibs-step-", [DIBS__FILES_ITEM] = "dibs-item-"};
static const char *const variables[] = {[DIBS__FILES_STEP] = "DIBS_RESULT",
                                        [DIBS__FILES_ITEM] =
                                            "DIBS_ITEM_RESULT"};
static const char result_name[] = DIBS__RESULT_NAME,
                  needs_name[] = "needs.json";

static dibs_status
folder_failed(dibs_error *err, const char *what, const char *path)
{
    int number = errno;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number),
                         "cannot %s %s: %s", what, path, strerror(number));
}

static void write_json(const dibs__need *needs, size_t count, dibsx_buf *to)
{
    dibsx_json js;
    dibsx_json_init(&js, to);
    dibsx_json_open(&js, '{');
    for (size_t i = 0; i < count; i++) {
        dibsx_json_data(&js, needs[i].step, needs[i].result, needs[i].len);
    }
    dibsx_json_close(&js, '}');
}

/* Writes a file of the user. */
static bool put_file(const dibs__result_files *files, const char *name,
                     gid_t gid, const dibsx_buf *text)
{
    int fd = openat(files->dir_fd, name,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool done = dibsx_write_all(fd, dibsx_buf_text(text), text->len) &&
                (files->uid == geteuid() || fchown(fd, files->uid, gid) == 0);
    close(fd);
    return done;
}

/* The lock tells a sweep that the folder is in use. A file system without locks has no
 * sweeps either: they lock, too. */
static bool lock_folder(dibs__result_files *files)
{
    files->dir_fd = open(files->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return files->dir_fd >= 0 &&
           (flock(files->dir_fd, LOCK_EX | LOCK_NB) == 0 ||
            errno != EWOULDBLOCK);
}

/* The folder is handed over last, when all is in it. */
static bool
fill_folder(dibs__result_files *files, gid_t gid, const dibsx_buf *needs)
{
    dibsx_buf none;
    dibsx_buf_init(&none, 1);
    return lock_folder(files) && put_file(files, result_name, gid, &none) &&
           (files->kind != DIBS__FILES_STEP ||
            put_file(files, needs_name, gid, needs)) &&
           (files->uid == geteuid() ||
            fchown(files->dir_fd, files->uid, gid) == 0);
}

static dibs_status
name_folder(dibs__result_files *files, const char *where, dibs_error *err)
{
    int len = snprintf(files->dir, sizeof files->dir, "%s/%sXXXXXX", where,
                       prefixes[files->kind]);
    if (len >= 0 && (size_t)len < sizeof files->dir)
        return DIBS_OK;
    files->dir[0] = '\0';
    return dibsx_fail(err, DIBS_INVALID,
                      "the folder for results has too long a name: %.60s",
                      where);
}

/* Until it is locked, a sweep can take the folder (ENOENT), or be about to (EWOULDBLOCK):
 * then another one is made. */
static dibs_status
make_folder(dibs__result_files *files, const char *where, gid_t gid,
            const dibsx_buf *needs, dibs_error *err)
{
    bool swept = true;
    dibs_status rc = DIBS_OK;
    for (int i = 0; i < FOLDERS_MAX && swept; i++) {
        rc = name_folder(files, where, err);
        if (rc != DIBS_OK)
            return rc;
        if (!mkdtemp(files->dir)) {
            rc = folder_failed(err, "make a folder like", files->dir);
            files->dir[0] = '\0';
            return rc;
        }
        if (fill_folder(files, gid, needs))
            return DIBS_OK;
        swept = errno == ENOENT || errno == EWOULDBLOCK;
        rc = folder_failed(err, "write to", files->dir);
        dibs__result_files_remove(files);
    }
    return rc;
}

static dibs_status
find_user(const char *user, uid_t *uid, gid_t *gid, dibs_error *err)
{
    dibs__spawn_user found = {.uid = geteuid(), .gid = getegid()};
    int number = user ? dibs__spawn_user_find(user, &found) : 0;
    *uid = found.uid;
    *gid = found.gid;
    if (number == 0)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_INVALID, dibsx_errno_name(number),
                         "cannot run as user %s: %s", user,
                         number == ENOENT ? "there is no such user"
                                          : strerror(number));
}

static const char *find_place(const char *where)
{
    if (!where)
        where = getenv("TMPDIR");
    return where && *where ? where : "/tmp";
}

dibs_status
dibs__result_files_make(dibs__result_files *files, dibs__files_kind kind,
                        const char *where, const char *user,
                        const dibs__need *needs, size_t count, dibs_error *err)
{
    gid_t gid;
    dibsx_buf text;
    *files = (dibs__result_files){.dir_fd = -1, .kind = kind};
    where = find_place(where);
    dibs_status rc = find_user(user, &files->uid, &gid, err);
    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&text, NEEDS_MAX);
    write_json(needs, count, &text);
    rc = dibsx_buf_ok(&text) ? make_folder(files, where, gid, &text, err)
                             : dibsx_nomem(err, "the results of other steps");
    dibsx_buf_fini(&text);
    return rc;
}

/* The command may have put other files beside them. Folders it has made stay. The folder
 * goes before its lock: a lock that is taken later is one on nothing. */
void dibs__result_files_remove(dibs__result_files *files)
{
    DIR *dir = files->dir_fd >= 0 ? fdopendir(files->dir_fd) : NULL;
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        (void)unlinkat(files->dir_fd, entry->d_name, 0);
    if (files->dir[0])
        (void)rmdir(files->dir);
    if (dir)
        (void)closedir(dir);
    else if (files->dir_fd >= 0)
        close(files->dir_fd);
    files->dir[0] = '\0';
    files->dir_fd = -1;
}

/* Takes over a folder that nobody uses; dir_fd is -1 when it is none. */
static void
take_stale(const char *path, int64_t age_s, dibs__result_files *files)
{
    struct stat st;
    *files = (dibs__result_files){.dir_fd = -1};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || geteuid() == 0) &&
        time(NULL) - st.st_ctime >= age_s && flock(fd, LOCK_EX | LOCK_NB) == 0)
        files->dir_fd = fd;
    else
        close(fd);
}

void dibs__result_files_sweep(dibs__files_kind kind, const char *where,
                              int64_t age_s)
{
    const char *prefix = prefixes[kind];
    const struct dirent *entry;
    where = find_place(where);
    DIR *dir = opendir(where);
    while (dir && (entry = readdir(dir))) {
        dibs__result_files files;
        char path[PATH_MAX];
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            snprintf(path, sizeof path, "%s/%s", where, entry->d_name) >=
                (int)sizeof files.dir)
            continue;
        take_stale(path, age_s, &files);
        if (files.dir_fd < 0)
            continue;
        memcpy(files.dir, path, strlen(path) + 1);
        dibs__result_files_remove(&files);
    }
    if (dir)
        (void)closedir(dir);
}

static void add_need(const dibs__need *need, dibsx_buf *to)
{
    if (need->len > 0 && memchr(need->result, '\0', need->len))
        return;
    dibsx_buf_puts(to, "DIBS_NEEDS_");
    for (const char *at = need->step; *at; at++)
        dibsx_buf_putc(to, isalnum((unsigned char)*at)
                               ? (char)toupper((unsigned char)*at)
                               : '_');
    dibsx_buf_putc(to, '=');
    if (need->len > 0)
        dibsx_buf_add(to, need->result, need->len);
    dibsx_buf_putc(to, '\0');
}

void dibs__result_files_env(const dibs__result_files *files,
                            const dibs__need *needs, size_t count,
                            dibsx_buf *to)
{
    dibsx_buf_printf(to, "DIBS_RESULT=%s/%s", files->dir, result_name);
    dibsx_buf_putc(to, '\0');
    dibsx_buf_printf(to, "DIBS_NEEDS=%s/%s", files->dir, needs_name);
    dibsx_buf_putc(to, '\0');
    for (size_t i = 0; i < count; i++)
        add_need(&needs[i], to);
}

static bool is_own_file(const dibs__result_files *files, int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
           info.st_uid == files->uid && info.st_nlink == 1;
}

/* In *more is whether there are more bytes than DIBS__RESULT_MAX. */
static dibs_status
read_start(const dibs__result_files *files, char result[DIBS__RESULT_MAX],
           size_t *len, bool *more, dibs_error *err)
{
    const char *variable = variables[files->kind];
    char beyond;
    ssize_t got = 0;
    *len = 0;
    *more = false;
    int fd = openat(files->dir_fd, result_name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return DIBS_OK;
    if (fd < 0 || !is_own_file(files, fd)) {
        if (fd >= 0)
            close(fd);
        return dibsx_fail(err, DIBS_INVALID,
                          "$%s is no plain file of the command's user any "
                          "more; write to it, and do not replace it by a link",
                          variable);
    }
    while (*len < DIBS__RESULT_MAX &&
           ((got = read(fd, result + *len, DIBS__RESULT_MAX - *len)) > 0 ||
            (got < 0 && errno == EINTR)))
        *len += got > 0 ? (size_t)got : 0;
    *more = *len == DIBS__RESULT_MAX && read(fd, &beyond, 1) > 0;
    close(fd);
    return got < 0 ? dibsx_fail(err, DIBS_INTERNAL, "cannot read $%s: %s",
                                variable, strerror(errno))
                   : DIBS_OK;
}

dibs_status dibs__result_files_read(const dibs__result_files *files,
                                    char result[DIBS__RESULT_MAX], size_t *len,
                                    dibs_error *err)
{
    bool more;
    dibs_status rc = read_start(files, result, len, &more, err);
    if (rc != DIBS_OK || !more)
        return rc;
    *len = 0;
    return dibsx_fail(
        err, DIBS_INVALID,
        "the result has more than %d bytes; write it to a place of "
        "your own, and that place to $DIBS_RESULT",
        DIBS__RESULT_MAX);
}

dibs_status
dibs__result_files_read_text(const dibs__result_files *files,
                             char text[DIBS__RESULT_MAX + 1], dibs_error *err)
{
    bool more;
    size_t len;
    dibs_status rc = read_start(files, text, &len, &more, err);
    text[len] = '\0';
    for (len = strlen(text); len > 0 && text[len - 1] == '\n'; len--)
        text[len - 1] = '\0';
    return rc;
}
