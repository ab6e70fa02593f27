/* guard.c - starting the guard and talking with it; the side of dibs.
 *
 * Owns the shared page and one end of the socket. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "exec/guard.h"

#include "base/fail.h"
#include "exec/backstop.h"
#include "exec/process_tree.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static dibs_status failed(dibs_error *err, const char *what)
{
    int number = errno;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number), "%s: %s",
                         what, strerror(number));
}

static dibs_status page_map(dibs__guard *guard, dibsx_nsec kill_at,
                            dibsx_nsec last_at, dibs_error *err)
{
    void *at = mmap(NULL, sizeof(dibs__guard_page), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return failed(err, "cannot map a page to share with the guard");
    guard->page = at;
    /* The rest is 0, as mapped. */
    atomic_init(&guard->page->kill_at, kill_at);
    atomic_init(&guard->page->last_at, last_at);
    return DIBS_OK;
}

dibs_status
dibs__guard_start(dibs__guard *guard, const dibs__guard_spec *job,
                  dibsx_nsec kill_at, dibsx_nsec last_at, dibs_error *err)
{
    int pair[2] = {-1, -1};
    *guard = (dibs__guard){.sock = -1, .means = job->means};
    dibs_status rc = page_map(guard, kill_at, last_at, err);
    if (rc != DIBS_OK)
        return rc;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        rc = failed(err, "cannot make a socket to the guard");
        goto out;
    }
    /* Should guard and backstop be killed, the tree falls to this process. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);

    pid_t group = getpgrp();
    guard->pid = fork();
    if (guard->pid == 0) {
        close(pair[0]);
        dibs__backstop_main(job, guard->page, pair[1], group);
    }
    close(pair[1]);
    guard->sock = pair[0];
    if (guard->pid < 0) {
        guard->pid = 0;
        rc = failed(err, "cannot fork");
    }
out:
    if (rc != DIBS_OK)
        dibs__guard_end(guard);
    return rc;
}

void dibs__guard_deadline(dibs__guard *guard, dibsx_nsec kill_at,
                          dibsx_nsec last_at)
{
    atomic_store(&guard->page->last_at, last_at);
    int64_t old = atomic_exchange(&guard->page->kill_at, kill_at);
    /* A later moment the guard finds when it wakes at the old one. */
    if (kill_at < old)
        dibs__guard_tell(guard, DIBS__ORDER_LOOK, 0);
}

void dibs__guard_tell(dibs__guard *guard, dibs__order order, int arg)
{
    /* If the order does not arrive, the guard is dead, which closes the socket, or
     * does not answer, which shows when the tree is not dead in time. */
    dibs__event msg = {.kind = (int32_t)order, .arg = arg};
    (void)send(guard->sock, &msg, sizeof msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

dibs__event dibs__guard_hear(dibs__guard *guard)
{
    dibs__event event = {.kind = DIBS__EVENT_NONE};
    ssize_t got;
    /* A guard that exits with an order unread resets the connection; what it
     * said before comes after that error. */
    do
        got = recv(guard->sock, &event, sizeof event, MSG_DONTWAIT);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && errno == EAGAIN)
        return (dibs__event){.kind = DIBS__EVENT_NONE};
    if (got != (ssize_t)sizeof event)
        return (dibs__event){.kind = DIBS__EVENT_GONE};
    return event;
}

static dibsx_nsec pick_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

dibsx_nsec
dibs__guard_kill_at(const dibs__guard_page *page, const dibs__belief *belief)
{
    return pick_earlier(atomic_load(&page->kill_at),
                        belief ? atomic_load(&belief->kill_at) : DIBSX_NEVER);
}

dibsx_nsec
dibs__guard_last_at(const dibs__guard_page *page, const dibs__belief *belief)
{
    return pick_earlier(atomic_load(&page->last_at),
                        belief ? atomic_load(&belief->last_at) : DIBSX_NEVER);
}

static void bury(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void bury_both(dibs__guard *guard)
{
    if (!guard->pid)
        return;
    bury(guard->pid);
    guard->pid = 0;
    /* The guard has fallen to this process, unless it was buried before. */
    pid_t inner = atomic_load(&guard->page->guard);
    if (inner > 0 && waitpid(inner, NULL, WNOHANG) == 0)
        bury(inner);
}

void dibs__guard_sweep(dibs__guard *guard)
{
    bury_both(guard);
    dibs__tree_sweep(guard->means, atomic_load(&guard->page->head));
}

void dibs__guard_end(dibs__guard *guard)
{
    /* An outer run must not find them left behind. */
    bury_both(guard);
    if (guard->sock >= 0)
        close(guard->sock);
    if (guard->page)
        munmap(guard->page, sizeof *guard->page);
    *guard = (dibs__guard){.sock = -1};
}
