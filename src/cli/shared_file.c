/* shared_file.c - a database file that the users of a group can use together.
 *
 * Members of the group may write the folder, also while root works in it: no link
 * is followed, and modes are set on descriptors that were looked at. */
/* SPDX-License-Identifier: MIT */
#include "cli/shared_file.h"

#include "base/fail.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_MODE = 02770, FILE_MODE = 0660 };

/* A path taken apart. */
typedef struct place {
    char folder[PATH_MAX];
    const char *name;
} place;

static dibs_status
fail_system(const char *what, const char *path, dibs_error *err)
{
    int number = errno;
    bool denied = number == EACCES || number == EPERM || number == EROFS;

    return dibsx_fail_at(
        err, denied ? DIBS_DENIED : DIBS_REFUSED, dibsx_errno_name(number),
        "cannot %s %s: %s; run this as its owner or as root, or name another "
        "file with --url sqlite:/FOLDER/FILE",
        what, path, strerror(number));
}

static dibs_status split_path(const char *path, place *out, dibs_error *err)
{
    const char *slash = strrchr(path, '/');

    if (path[0] != '/' || slash == path || !slash[1] ||
        strlen(path) >= sizeof(out->folder))
        return dibsx_fail(err, DIBS_INVALID,
                          "name the file by its whole path, in a folder of its "
                          "own: --url sqlite:/FOLDER/FILE");
    memcpy(out->folder, path, (size_t)(slash - path));
    out->folder[slash - path] = '\0';
    out->name = slash + 1;
    return DIBS_OK;
}

/* The folders above the last may be passed through by all. */
static dibs_status make_folders(char *folder, dibs_error *err)
{
    for (char *end = strchr(folder + 1, '/');; end = strchr(end + 1, '/')) {
        dibs_status rc = DIBS_OK;

        if (end)
            *end = '\0';
        if (mkdir(folder, 0700) == 0) {
            if (chmod(folder, end ? 0755 : 0700) != 0)
                rc = fail_system("open", folder, err);
        } else if (errno != EEXIST) {
            rc = fail_system("make", folder, err);
        }
        if (!end)
            return rc;
        *end = '/';
        if (rc != DIBS_OK)
            return rc;
    }
}

static bool may_pass(const struct stat *at, gid_t gid)
{
    return (at->st_mode & S_IXOTH) ||
           (at->st_gid == gid && (at->st_mode & S_IXGRP));
}

/* A file in a closed home is of no use to others. */
static dibs_status check_way(char *folder, gid_t gid, dibs_error *err)
{
    for (char *end = strchr(folder + 1, '/'); end; end = strchr(end + 1, '/')) {
        struct stat at;
        dibs_status rc = DIBS_OK;

        *end = '\0';
        if (stat(folder, &at) != 0)
            rc = errno == ENOENT ? DIBS_OK : fail_system("reach", folder, err);
        else if (!may_pass(&at, gid))
            rc = dibsx_fail(err, DIBS_REFUSED,
                            "the group cannot reach the file, because the "
                            "folder %s is closed to it; name a file elsewhere "
                            "with --url sqlite:/FOLDER/FILE",
                            folder);
        *end = '/';
        if (rc != DIBS_OK)
            return rc;
    }
    return DIBS_OK;
}

/* Links in the path are the choice of those who may write there. */
static dibs_status resolve_folder(place *at, gid_t gid, dibs_error *err)
{
    char real[PATH_MAX];

    if (!realpath(at->folder, real))
        return fail_system("reach", at->folder, err);
    memcpy(at->folder, real, strlen(real) + 1);
    return check_way(at->folder, gid, err);
}

/* The first entry that is not of the database, into `other`. */
static bool has_others(int dir_fd, const char *name, char other[NAME_MAX + 1])
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *file;
    bool found = false;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    while (!found && (file = readdir(dir))) {
        found = strcmp(file->d_name, ".") != 0 &&
                strcmp(file->d_name, "..") != 0 &&
                strncmp(file->d_name, name, strlen(name)) != 0;
        if (found)
            snprintf(other, NAME_MAX + 1, "%s", file->d_name);
    }
    closedir(dir);
    return found;
}

static dibs_status open_folder(const place *at, int *dir_fd, dibs_error *err)
{
    char other[NAME_MAX + 1];

    *dir_fd = open(at->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*dir_fd < 0)
        return fail_system("open", at->folder, err);
    if (!has_others(*dir_fd, at->name, other))
        return DIBS_OK;
    return dibsx_fail(err, DIBS_REFUSED,
                      "%s has other files, such as %s, which the group could "
                      "then replace; name a file in a folder of its own with "
                      "--url sqlite:/FOLDER/FILE",
                      at->folder, other);
}

/* Sets group and mode of what was opened. */
static dibs_status
give_group(int fd, gid_t gid, mode_t mode, const char *path, dibs_error *err)
{
    struct stat at;

    if (fstat(fd, &at) != 0)
        return fail_system("look at", path, err);
    if (S_ISREG(at.st_mode) && at.st_nlink != 1)
        return dibsx_fail(err, DIBS_REFUSED,
                          "%s is also another file (a hard link), which would "
                          "be opened as well; remove one of them",
                          path);
    if (at.st_gid != gid && fchown(fd, (uid_t)-1, gid) != 0)
        return fail_system("change the group of", path, err);
    if ((at.st_mode & 07777) != mode && fchmod(fd, mode) != 0)
        return fail_system("change the mode of", path, err);
    return DIBS_OK;
}

/* Closing a file drops the locks that SQLite has on it in this process: no client
 * may be open. A file that is missing is no failure, unless flags create it. */
static dibs_status share_entry(int dir_fd, const char *name, int flags,
                               gid_t gid, mode_t mode, dibs_error *err)
{
    struct stat at;
    dibs_status rc;
    int fd =
        openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno == ENOENT ? DIBS_OK : fail_system("open", name, err);
    if (fstat(fd, &at) == 0 && !S_ISREG(at.st_mode) && !S_ISDIR(at.st_mode))
        rc = dibsx_fail(err, DIBS_REFUSED, "%s is not a plain file; remove it",
                        name);
    else
        rc = give_group(fd, gid, mode, name, err);
    close(fd);
    return rc;
}

dibs_status dibs__shared_file_make(const char *path, gid_t gid, dibs_error *err)
{
    int dir_fd = -1;
    place at;
    dibs_status rc = split_path(path, &at, err);

    if (rc == DIBS_OK)
        rc = check_way(at.folder, gid, err);
    if (rc == DIBS_OK)
        rc = make_folders(at.folder, err);
    if (rc == DIBS_OK)
        rc = resolve_folder(&at, gid, err);
    if (rc == DIBS_OK)
        rc = open_folder(&at, &dir_fd, err);
    if (rc == DIBS_OK)
        rc = give_group(dir_fd, gid, FOLDER_MODE, at.folder, err);
    if (rc == DIBS_OK)
        rc =
            share_entry(dir_fd, at.name, O_RDWR | O_CREAT, gid, FILE_MODE, err);
    if (dir_fd >= 0)
        close(dir_fd);
    return rc;
}

dibs_status dibs__shared_file_fit(const char *path, gid_t gid, dibs_error *err)
{
    static const struct {
        const char *ending;
        int flags;
        mode_t mode;
    } parts[] = {{"-wal", O_RDWR, FILE_MODE},
                 {"-shm", O_RDWR, FILE_MODE},
                 {".bells", O_RDONLY | O_DIRECTORY, FOLDER_MODE}};
    int dir_fd = -1;
    place at;
    dibs_status rc = split_path(path, &at, err);

    if (rc == DIBS_OK)
        rc = resolve_folder(&at, gid, err);
    if (rc == DIBS_OK)
        rc = open_folder(&at, &dir_fd, err);
    for (size_t i = 0; rc == DIBS_OK && i < sizeof(parts) / sizeof(parts[0]);
         i++) {
        char name[NAME_MAX + 16];

        snprintf(name, sizeof(name), "%s%s", at.name, parts[i].ending);
        rc = share_entry(dir_fd, name, parts[i].flags, gid, parts[i].mode, err);
    }
    if (dir_fd >= 0)
        close(dir_fd);
    return rc;
}
