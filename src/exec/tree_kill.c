/* tree_kill.c - killing a whole tree, from its root down.
 *
 * The lists of children in /proc make a walk as long as the tree, not as the list
 * of all processes: a process is killed some microseconds after it was found. A
 * fork that it is in just then fails, or its child is in a list already when
 * kill() returns: the kernel looks for SIGKILL, and for no other signal, under the
 * lock under which it lists the child. (A process that was sent SIGSTOP within
 * fork() has its child later, after any number of walks that found nobody new.)
 * A process whose parent dies moves to the list of the root, which the next walk
 * reads first.
 *
 * Owns nothing between calls. Runs in dibs, the backstop and the guard; the
 * tables are mapped, for the heap may be locked for good after fork. */
/* SPDX-License-Identifier: MIT */
#include "exec/tree_kill.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* PIDS: the kernel's own bound on process numbers. The others bound the work;
 * what they leave out the next round kills. */
enum { PIDS = 4 * 1024 * 1024, TODO_MAX = 64 * 1024, WALKS_MAX = 64 };

typedef struct walk {
    int proc_fd;
    uint8_t *seen; /* a bit for each process number */
    pid_t *todo;   /* whose children are still to be looked at */
    size_t count;
    bool fresh; /* somebody was found who had not been killed before */
} walk;

static void found(walk *w, pid_t pid)
{
    uint8_t bit = (uint8_t)(1u << (pid % CHAR_BIT));
    if (pid <= 0 || pid >= PIDS)
        return;
    if (!(w->seen[pid / CHAR_BIT] & bit)) {
        (void)kill(pid, SIGKILL);
        w->seen[pid / CHAR_BIT] |= bit;
        w->fresh = true;
    }
    if (w->count < TODO_MAX)
        w->todo[w->count++] = pid;
}

/* Reads process numbers with a space behind each. */
static bool read_children(walk *w, int task_fd, const char *thread)
{
    char path[64], text[4096];
    size_t len = strlen(thread);
    if (len + sizeof "/children" > sizeof path)
        return false;
    memcpy(path, thread, len);
    memcpy(path + len, "/children", sizeof "/children");
    int fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got;
    pid_t pid = 0;
    while ((got = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            found(w, pid);
            pid = 0;
        }
    }
    close(fd);
    return true;
}

/* "123/task" */
static int open_threads(int proc_fd, pid_t pid)
{
    char path[32];
    char *at = path + sizeof path - sizeof "/task";
    memcpy(at, "/task", sizeof "/task");
    for (; pid > 0; pid /= 10)
        *--at = (char)('0' + pid % 10);
    return openat(proc_fd, at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* False when the kernel does not tell. */
static bool look_at(walk *w, pid_t pid)
{
    char page[4096] __attribute__((aligned(8)));
    bool told = false;
    ssize_t got;
    int task_fd = open_threads(w->proc_fd, pid);
    if (task_fd < 0)
        return false;
    while ((got = getdents64(task_fd, page, sizeof page)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry =
                (const struct dirent64 *)(const void *)(page + at);
            if (entry->d_name[0] != '.')
                told |= read_children(w, task_fd, entry->d_name);
            at += entry->d_reclen;
        }
    }
    close(task_fd);
    return told;
}

bool dibs__tree_kill_down(int proc_fd, pid_t root)
{
    const size_t seen = PIDS / CHAR_BIT;
    const size_t size = seen + TODO_MAX * sizeof(pid_t);
    void *tables = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (tables == MAP_FAILED)
        return false;
    walk w = {.proc_fd = proc_fd,
              .seen = tables,
              .todo = (pid_t *)(void *)((uint8_t *)tables + seen)};
    bool told = true;
    /* While somebody reaps the children of whom is looked at, as a guard below the
     * backstop may, the kernel skips others in the list: another quiet walk. */
    for (int i = 0, quiet = 0; i < WALKS_MAX && quiet < 2 && told; i++) {
        w.fresh = false;
        told = look_at(&w, root);
        while (w.count > 0)
            (void)look_at(&w, w.todo[--w.count]);
        quiet = w.fresh ? 0 : quiet + 1;
    }
    munmap(tables, size);
    return told;
}
