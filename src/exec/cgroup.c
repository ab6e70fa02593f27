/* cgroup.c - a cgroup (version 2) for one command.
 *
 * Owns the descriptors of the folders; the folder of the command is removed by
 * the last who is there. Made on the main thread, used by dibs, the backstop and
 * the guard. */
/* SPDX-License-Identifier: MIT */
#include "exec/cgroup.h"

#include "base/clock.h"
#include "exec/proc_file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nested runs make theirs inside; nobody nests deeper than that for long. */
enum { DEPTH_MAX = 16 };

/* Where cgroups of version 2 are: alone, and beside those of version 1. */
static const char *const mounts[] = {"/sys/fs/cgroup",
                                     "/sys/fs/cgroup/unified"};

/* The path of this process in the hierarchy, from the line "0::/path". */
static bool own_path(int proc_fd, char *out, size_t size)
{
    char text[8192];
    if (!dibs__proc_read(proc_fd, "self/cgroup", text, sizeof text))
        return false;
    char *line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");
    if (!line)
        return false;
    line = strchr(line, '/');
    line[strcspn(line, "\n")] = '\0';
    /* Above what this cgroup namespace shows there is nothing to be opened. */
    if (strstr(line, "/..") || strlen(line) >= size)
        return false;
    memcpy(out, line, strlen(line) + 1);
    return true;
}

static int open_parent(int proc_fd)
{
    char own[PATH_MAX], path[PATH_MAX + 32];
    if (proc_fd < 0 || !own_path(proc_fd, own, sizeof own))
        return -1;
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        struct statfs fs;
        if (statfs(mounts[i], &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
            continue;
        (void)snprintf(path, sizeof path, "%s%s", mounts[i], own);
        return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return -1;
}

/* A cgroup is of use only to a process that may fork into it and kill it. */
static bool works(const dibs__cgroup *group)
{
    if (faccessat(group->fd, "cgroup.kill", W_OK, 0) != 0)
        return false;
    pid_t pid = dibs__cgroup_fork(group->fd);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return false;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return true;
}

void dibs__cgroup_init(dibs__cgroup *group, int proc_fd)
{
    *group = (dibs__cgroup){.fd = -1};
    group->parent_fd = open_parent(proc_fd);
    if (group->parent_fd < 0)
        return;
    bool fit = dibs__cgroup_make(group) && works(group);
    dibs__cgroup_drop(group);
    if (!fit)
        dibs__cgroup_fini(group);
}

void dibs__cgroup_drop(dibs__cgroup *group)
{
    if (group->fd < 0)
        return;
    dibs__cgroup_remove(group);
    close(group->fd);
    group->fd = -1;
}

void dibs__cgroup_fini(dibs__cgroup *group)
{
    dibs__cgroup_drop(group);
    if (group->parent_fd >= 0)
        close(group->parent_fd);
    *group = (dibs__cgroup){.parent_fd = -1, .fd = -1};
}

bool dibs__cgroup_make(dibs__cgroup *group)
{
    if (group->parent_fd < 0)
        return false;
    (void)snprintf(group->name, sizeof group->name, "dibs-run-%d-%" PRIx64,
                   (int)getpid(), (uint64_t)dibsx_now());
    if (mkdirat(group->parent_fd, group->name, 0755) != 0)
        return false;
    group->fd = openat(group->parent_fd, group->name,
                       O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group->fd < 0)
        (void)unlinkat(group->parent_fd, group->name, AT_REMOVEDIR);
    return group->fd >= 0;
}

pid_t dibs__cgroup_fork(int fd)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .cgroup = (unsigned)fd};
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

bool dibs__cgroup_kill(int fd)
{
    int kill_fd = openat(fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (kill_fd < 0)
        return false;
    bool done = write(kill_fd, "1", 1) == 1;
    close(kill_fd);
    return done;
}

/* Reads numbers, one a line, which may be cut where the buffer ends. */
bool dibs__cgroup_signal(int fd, int number, pid_t spare, int *sent)
{
    char text[4096];
    ssize_t got;
    pid_t pid = 0;
    *sent = 0;
    int procs = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    if (procs < 0)
        return false;
    while ((got = read(procs, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            /* 0 is a process of another PID namespace. */
            if (pid > 0 && !(spare && getpgid(pid) == spare) &&
                kill(pid, number) == 0)
                (*sent)++;
            pid = 0;
        }
    }
    close(procs);
    return got == 0;
}

static void remove_below(int fd, int depth);

static void remove_one(int parent_fd, const char *name, int depth)
{
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || depth == 0 ||
        (errno != EBUSY && errno != ENOTEMPTY))
        return;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    remove_below(fd, depth - 1);
    close(fd);
    (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

static void remove_below(int fd, int depth)
{
    char page[4096] __attribute__((aligned(8)));
    ssize_t got;
    while ((got = getdents64(fd, page, sizeof page)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry =
                (const struct dirent64 *)(const void *)(page + at);
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                remove_one(fd, entry->d_name, depth);
            at += entry->d_reclen;
        }
    }
}

void dibs__cgroup_remove(const dibs__cgroup *group)
{
    if (group->parent_fd >= 0 && group->fd >= 0)
        remove_one(group->parent_fd, group->name, DEPTH_MAX);
}
