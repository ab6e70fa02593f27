/* ground.c - checks whether the path of a database file is fit for it.
 *
 * Only looks: the file is never opened here, for closing it would drop the locks
 * that SQLite holds on it in this process. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/ground.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

typedef struct fs_name {
    unsigned long type;
    const char *name;
} fs_name;

static const fs_name network[] = {
    {0x00006969, "NFS"},      {0x0000517b, "SMB"},
    {0xff534d42, "CIFS"},     {0xfe534d42, "SMB2"},
    {0x01021997, "9P"},       {0x5346414f, "AFS"},
    {0x6b414653, "AFS"},      {0x73757245, "Coda"},
    {0x00c36400, "Ceph"},     {0x65735546, "FUSE"},
    {0x0000564c, "NCP"},      {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"},     {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},     {0x20030528, "OrangeFS"},
    {0x19830326, "BeeGFS"},   {0x786f4256, "VirtualBox shared folder"},
    {0xaad7aaea, "PanFS"},    {0xbacbacbc, "VMware shared folder"},
    {0x61636673, "ACFS"},     {0x7c7c6673, "Parallels shared folder"},
    {0xbeefdead, "StorNext"},
};

static const fs_name local[] = {
    {0x0000ef53, "ext4"},      {0x58465342, "xfs"},   {0x9123683e, "btrfs"},
    {0x01021994, "tmpfs"},     {0x2fc12fc1, "zfs"},   {0xf2f52010, "f2fs"},
    {0x794c7630, "overlayfs"}, {0x858458f6, "ramfs"}, {0xca451a4e, "bcachefs"},
};

static const char *
find_fs(const fs_name *names, size_t count, unsigned long type)
{
    for (size_t i = 0; i < count; i++)
        if (names[i].type == (type & 0xffffffffUL))
            return names[i].name;
    return NULL;
}

const char *dibs__ground_network(unsigned long type)
{
    return find_fs(network, sizeof(network) / sizeof(network[0]), type);
}

const char *dibs__ground_local(unsigned long type)
{
    return find_fs(local, sizeof(local) / sizeof(local[0]), type);
}

static dibs_status
fail_path(const char *path, const char *what, int number, dibs_error *err)
{
    dibs_status status = DIBS_REFUSED;

    if (number == EACCES || number == EPERM || number == EROFS)
        status = DIBS_DENIED;
    return dibsx_fail_at(err, status, dibsx_errno_name(number), "%s (%s, %s)",
                         what, path, dibsx_errno_name(number));
}

static dibs_status fail_closed(const char *path, int number, dibs_error *err)
{
    return fail_path(path,
                     number == EROFS
                         ? "the file system is read-only; name another file"
                         : "this user may not write here; the owner can open "
                           "it to a group with `dibs store share`, or name "
                           "another file",
                     number, err);
}

static dibs_status check_fs(const char *folder, dibs_error *err)
{
    struct statfs fs;
    const char *name;

    if (statfs(folder, &fs) != 0)
        return fail_path(folder, "the type of the file system is unknown",
                         errno, err);
    name = dibs__ground_network((unsigned long)fs.f_type);
    if (!name)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_REFUSED,
                      "%s is no ground for a database of locks; put it on a "
                      "local disk, use a server, or add ?any_fs=1 if only this "
                      "machine uses it (%s)",
                      name, folder);
}

static dibs_status check_folder(const char *folder, dibs_error *err)
{
    struct stat at;

    if (stat(folder, &at) != 0)
        return fail_path(folder,
                         errno == ENOENT ? "there is no such folder; create it"
                                         : "the folder cannot be reached",
                         errno, err);
    if (!S_ISDIR(at.st_mode))
        return fail_path(folder, "not a folder; name a file in one", ENOTDIR,
                         err);
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        return fail_closed(folder, errno, err);
    return DIBS_OK;
}

static dibs_status check_file(const char *path, dibs_error *err)
{
    struct stat at;

    if (stat(path, &at) != 0) {
        int number = errno;

        /* It may be there by now: another process made it. Only a link that
         * leads nowhere is unfit for one. */
        if (number == ENOENT && (lstat(path, &at) != 0 || !S_ISLNK(at.st_mode)))
            return DIBS_OK;
        return fail_path(path,
                         number == EACCES
                             ? "this user may not enter the folder; join the "
                               "group that it is open to, or name another file"
                             : "the file cannot be reached",
                         number, err);
    }
    if (S_ISDIR(at.st_mode))
        return fail_path(path, "it is a folder; name a file in it", EISDIR,
                         err);
    if (!S_ISREG(at.st_mode))
        return dibsx_fail(err, DIBS_REFUSED,
                          "the path is not a plain file; name another (%s)",
                          path);
    if (faccessat(AT_FDCWD, path, W_OK | R_OK, AT_EACCESS) != 0)
        return fail_closed(path, errno, err);
    return DIBS_OK;
}

/* Splits an absolute path at its last slash: the folder goes to `folder`, what
 * is returned is the name in it. */
static const char *split_path(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (!slash) {
        memcpy(folder, ".", 2);
        return path;
    }
    if (len == 0)
        len = 1;
    memcpy(folder, path, len);
    folder[len] = '\0';
    return slash + 1;
}

static dibs_status
join_path(const char *folder, const char *name, char **out, dibs_error *err)
{
    dibsx_buf buf;

    dibsx_buf_init(&buf, PATH_MAX);
    dibsx_buf_printf(&buf, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder,
                     name);
    *out = dibsx_buf_take(&buf);
    dibsx_buf_fini(&buf);
    return *out ? DIBS_OK : dibsx_nomem(err, "the path");
}

dibs_status
dibs__ground_check(const char *path, bool any_fs, char **out, dibs_error *err)
{
    char real[PATH_MAX], folder[PATH_MAX], real_folder[PATH_MAX];
    const char *name;
    dibs_status rc;

    *out = NULL;
    if (strlen(path) >= PATH_MAX)
        return fail_path("", "the path is too long", ENAMETOOLONG, err);
    rc = check_file(path, err);
    if (rc != DIBS_OK)
        return rc;
    name = split_path(realpath(path, real) ? real : path, folder);
    if (!*name)
        return fail_path(path, "it is a folder; name a file in it", EISDIR,
                         err);
    rc = check_folder(folder, err);
    if (rc == DIBS_OK && !any_fs)
        rc = check_fs(folder, err);
    if (rc != DIBS_OK)
        return rc;
    if (!realpath(folder, real_folder))
        return fail_path(folder, "the folder cannot be reached", errno, err);
    return join_path(real_folder, name, out, err);
}
