/* tree_means.c - by which means the processes of a command are found and ended.
 *
 * Owns the descriptors. Main thread, before the first other. */
/* SPDX-License-Identifier: MIT */
#include "exec/tree_means.h"

#include "exec/proc_file.h"
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

const char dibs__tree_means_advice[] =
    "mount a /proc for this PID namespace (mount -t proc proc /proc), or let "
    "dibs make a cgroup below its own (systemd: Delegate=yes); with "
    "--tree-unchecked the command runs all the same, and what leaves its "
    "process group may outlive the lease";

/* The numbers of this process in the PID namespace of that /proc and in those
 * below it, from the line "NSpid:"; one, ours, in a /proc of our own. A kernel
 * without such namespaces has "Pid:" alone. */
static bool numbers_are_ours(int proc_fd)
{
    char text[4096];
    if (!dibs__proc_read(proc_fd, "self/status", text, sizeof text))
        return false;
    char *line = strstr(text, "\nNSpid:");
    if (!line)
        line = strstr(text, "\nPid:");
    if (!line)
        return false;
    char *end = strchr(line, ':') + 1;
    long pid = strtol(end, &end, 10);
    return pid == (long)getpid() && *end == '\n';
}

static bool is_proc(int fd)
{
    struct statfs fs;
    return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* A /proc that is mounted nowhere, where we may make one. */
static int make_proc(void)
{
    int made = -1;
    int fs = fsopen("proc", FSOPEN_CLOEXEC);
    if (fs < 0)
        return -1;
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        made = fsmount(fs, FSMOUNT_CLOEXEC, 0);
    close(fs);
    return made;
}

void dibs__tree_means_init(dibs__tree_means *means)
{
    *means = (dibs__tree_means){.proc_fd = -1};
    int mounted = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int proc_fd = is_proc(mounted) ? mounted : -1;
    if (proc_fd < 0 || !numbers_are_ours(proc_fd)) {
        int made = make_proc();
        means->hidden = made >= 0 && numbers_are_ours(made);
        if (means->hidden)
            proc_fd = means->proc_fd = made;
        else if (made >= 0)
            close(made);
    } else {
        means->proc_fd = proc_fd;
    }
    /* To find oneself a /proc of an outer PID namespace is good enough. */
    dibs__cgroup_init(&means->cgroup, proc_fd);
    if (mounted >= 0 && mounted != means->proc_fd)
        close(mounted);
}

void dibs__tree_means_fini(dibs__tree_means *means)
{
    dibs__cgroup_fini(&means->cgroup);
    if (means->proc_fd >= 0)
        close(means->proc_fd);
    means->proc_fd = -1;
}

bool dibs__tree_means_whole(const dibs__tree_means *means)
{
    return means->proc_fd >= 0 || means->cgroup.parent_fd >= 0;
}

const char *dibs__tree_means_text(const dibs__tree_means *means)
{
    if (means->cgroup.parent_fd >= 0)
        return "one kill of its cgroup";
    if (means->proc_fd < 0)
        return "its process group alone";
    return means->hidden ? "a search through a /proc made for it"
                         : "a search through /proc";
}
