/* process_tree.c - all the processes below one: found through /proc, signalled, killed.
 *
 * Owns nothing between calls. The table of processes is mapped, not allocated:
 * after fork in a process that had threads the heap may be locked for good. */
/* SPDX-License-Identifier: MIT */
#include "exec/process_tree.h"

#include "exec/proc_file.h"
#include "exec/tree_kill.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel's own bound on process numbers. */
enum { TABLE_MAX = 4 * 1024 * 1024, TABLE_START = 4096 };

typedef struct proc {
    pid_t pid;
    pid_t parent;
    pid_t group;
    bool below; /* the root is among its ancestors */
} proc;

/* Sorted by process number, as /proc lists them. */
typedef struct table {
    proc *procs;
    size_t count;
    size_t room;
} table;

static bool table_open(table *tab)
{
    void *at = mmap(NULL, TABLE_START * sizeof(proc), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *tab = (table){.room = TABLE_START};
    if (at != MAP_FAILED)
        tab->procs = at;
    return at != MAP_FAILED;
}

static bool table_grow(table *tab)
{
    if (tab->room >= TABLE_MAX)
        return false;
    void *at = mremap(tab->procs, tab->room * sizeof(proc),
                      tab->room * 2 * sizeof(proc), MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        return false;
    tab->procs = at;
    tab->room *= 2;
    return true;
}

static bool table_add(table *tab, proc item)
{
    if (tab->count == tab->room && !table_grow(tab))
        return false;
    size_t i = tab->count++;
    for (; i > 0 && tab->procs[i - 1].pid > item.pid; i--)
        tab->procs[i] = tab->procs[i - 1];
    tab->procs[i] = item;
    return true;
}

static const proc *table_find(const table *tab, pid_t pid)
{
    size_t low = 0, high = tab->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (tab->procs[mid].pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    bool hit = low < tab->count && tab->procs[low].pid == pid;
    return hit ? &tab->procs[low] : NULL;
}

/* Reads "pid (name) state ppid pgrp ...". The name may hold anything, so what
 * follows its last parenthesis counts. A zombie counts too: its other threads
 * may live on. */
static bool read_stat(int proc_fd, const char *dir, proc *out)
{
    char path[32];
    size_t len = strlen(dir);
    if (len + sizeof "/stat" > sizeof path)
        return false;
    memcpy(path, dir, len);
    memcpy(path + len, "/stat", sizeof "/stat");

    char text[512];
    if (!dibs__proc_read(proc_fd, path, text, sizeof text))
        return false;

    char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4)
        return false;
    char *end = at + 3;
    out->pid = (pid_t)strtol(dir, NULL, 10);
    out->parent = (pid_t)strtol(end, &end, 10);
    out->group = (pid_t)strtol(end, &end, 10);
    out->below = false;
    return out->pid > 0;
}

/* False when some may be missing. */
static bool table_fill(table *tab, int proc_fd)
{
    char page[8192] __attribute__((aligned(8)));
    bool whole = true;
    ssize_t got;
    while ((got = getdents64(proc_fd, page, sizeof page)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry =
                (const struct dirent64 *)(const void *)(page + at);
            proc item;
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                read_stat(proc_fd, entry->d_name, &item))
                whole &= table_add(tab, item);
            at += entry->d_reclen;
        }
    }
    return whole && got == 0;
}

/* Parents mostly have the smaller number, so that one pass marks nearly all. */
static void table_mark(table *tab, pid_t root)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < tab->count; i++) {
            proc *item = &tab->procs[i];
            if (item->below || item->pid == root)
                continue;
            const proc *parent = table_find(tab, item->parent);
            item->below = item->parent == root || (parent && parent->below);
            changed |= item->below;
        }
    }
}

/* `shared_fd` is shared with other processes, and so is its place in the folder. */
static dibs__tree_count
signal_below(int shared_fd, pid_t root, int number, pid_t spare)
{
    dibs__tree_count count = {.blind = true};
    table tab;
    int proc_fd = openat(shared_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc_fd < 0)
        return count;
    if (table_open(&tab)) {
        count.blind = !table_fill(&tab, proc_fd);
        table_mark(&tab, root);
        for (size_t i = 0; i < tab.count; i++) {
            const proc *item = &tab.procs[i];
            if (!item->below || (spare && item->group == spare))
                continue;
            if (kill(item->pid, number) == 0)
                count.sent++;
            else if (errno == EPERM)
                count.denied++;
        }
        munmap(tab.procs, tab.room * sizeof(proc));
    }
    close(proc_fd);
    return count;
}

dibs__tree_count dibs__tree_signal(const dibs__tree_means *means, pid_t root,
                                   int number, pid_t spare)
{
    if (means->proc_fd >= 0)
        return signal_below(means->proc_fd, root, number, spare);
    dibs__tree_count count = {.blind = true};
    if (means->cgroup.fd >= 0)
        count.blind =
            !dibs__cgroup_signal(means->cgroup.fd, number, spare, &count.sent);
    return count;
}

dibs__tree_count dibs__tree_kill(const dibs__tree_means *means, pid_t root)
{
    bool killed = means->cgroup.fd >= 0 && dibs__cgroup_kill(means->cgroup.fd);
    if (!killed && means->proc_fd >= 0 &&
        !dibs__tree_kill_down(means->proc_fd, root))
        (void)dibs__tree_signal(means, root, SIGSTOP, 0);
    /* A process that may change its cgroup has perhaps left this one. */
    return dibs__tree_signal(means, root, SIGKILL, 0);
}

bool dibs__tree_signal_head(pid_t head, int number)
{
    idtype_t type = head < 0 ? P_PGID : P_PID;
    id_t id = (id_t)(head < 0 ? -head : head);
    siginfo_t info;
    bool ours =
        head && waitid(type, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (ours)
        (void)kill(head, number);
    return ours;
}

void dibs__tree_sweep(const dibs__tree_means *means, pid_t head)
{
    for (int pause_ms = 1;; pause_ms = pause_ms < 50 ? pause_ms * 2 : 50) {
        (void)dibs__tree_signal_head(head, SIGKILL);
        (void)dibs__tree_kill(means, getpid());
        pid_t pid;
        do
            pid = waitpid(-1, NULL, WNOHANG);
        while (pid > 0 || (pid < 0 && errno == EINTR));
        if (pid < 0)
            return;
        /* The kernel needs a moment to bury them; new ones may be born. */
        poll(NULL, 0, pause_ms);
    }
}

static bool is_known(pid_t pid, const pid_t *known, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (known[i] == pid)
            return true;
    return false;
}

dibs__tree_count dibs__tree_kill_strays(const dibs__tree_means *means,
                                        const pid_t *known, size_t count)
{
    dibs__tree_count strays = {.blind = true};
    table tab;
    int proc_fd =
        means->proc_fd >= 0
            ? openat(means->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            : -1;
    if (proc_fd < 0)
        return strays;
    if (table_open(&tab)) {
        strays.blind = !table_fill(&tab, proc_fd);
        for (size_t i = 0; i < tab.count; i++) {
            const proc *item = &tab.procs[i];
            if (item->parent != getpid() || is_known(item->pid, known, count))
                continue;
            strays.sent++;
            (void)kill(item->pid, SIGKILL);
            (void)dibs__tree_kill_down(means->proc_fd, item->pid);
        }
        munmap(tab.procs, tab.room * sizeof(proc));
    }
    close(proc_fd);
    return strays;
}
