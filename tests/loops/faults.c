/* faults.c - see faults.h. Any thread; all is atomic. */
/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int armed = -1; /* a fault_kind */
static _Atomic unsigned long first, last;
static _Atomic int chosen;
static _Atomic unsigned long counts[FAULT_KINDS];
static _Thread_local bool takes_part;
_Atomic long faults_live;

typedef enum thing { SOCKET, PIPE, FILE_, OTHER, THINGS } thing;

/* What really happens to such calls; a list ends with 0. */
static const int errors[FAULT_KINDS][THINGS][FAULT_SORTS + 1] = {
    [FAULT_ALLOC] = {[OTHER] = {ENOMEM}},
    [FAULT_READ] = {[SOCKET] = {ECONNRESET, EINTR, FAULT_END, ETIMEDOUT},
                    [PIPE] = {EINTR, EAGAIN},
                    [FILE_] = {EIO, EINTR},
                    [OTHER] = {EINTR, EAGAIN}},
    [FAULT_WRITE] =
        {[SOCKET] = {EPIPE, EINTR, ECONNRESET, EAGAIN},
         [PIPE] = {EAGAIN, EINTR, EPIPE},
         [FILE_] = {ENOSPC, EINTR, EIO, EDQUOT},
         [OTHER] = {EINTR}}, /* there is always room in an eventfd */
    [FAULT_CONNECT] = {[SOCKET] = {ECONNREFUSED, ETIMEDOUT, ENETUNREACH,
                                   EADDRNOTAVAIL}},
    [FAULT_POLL] = {[OTHER] = {EINTR, ENOMEM}},
    [FAULT_OPEN] = {[FILE_] = {EMFILE, EINTR, ENOMEM, EIO},
                    [OTHER] = {EMFILE, ENFILE, ENOMEM}},
    [FAULT_FSYNC] = {[FILE_] = {EIO, ENOSPC, EDQUOT}, [OTHER] = {EIO}},
    [FAULT_LOCK] = {[FILE_] = {ENOLCK, EIO, EINTR}},
    [FAULT_MAP] = {[OTHER] = {ENOMEM}, [FILE_] = {ENOMEM}},
    [FAULT_THREAD] = {[OTHER] = {EAGAIN}},
};

static const char *const names[FAULT_KINDS] = {"alloc",   "read", "write",
                                               "connect", "poll", "open",
                                               "fsync",   "lock", "map",
                                               "thread"};

const char *fault_name(fault_kind kind)
{
    return names[kind];
}

void faults_arm(fault_kind kind, unsigned long n, unsigned long span, int sort)
{
    faults_disarm();
    for (int i = 0; i < FAULT_KINDS; i++)
        atomic_store(&counts[i], 0);
    atomic_store(&first, n);
    atomic_store(&last, n + span - 1);
    atomic_store(&chosen, sort);
    atomic_store(&armed, (int)kind);
}

void faults_disarm(void)
{
    atomic_store(&armed, -1);
}

unsigned long faults_count(fault_kind kind)
{
    return atomic_load(&counts[kind]);
}

void faults_take_part(bool yes)
{
    takes_part = yes;
}

bool faults_taking_part(void)
{
    return takes_part;
}

long faults_blocks(void)
{
    return atomic_load(&faults_live);
}

/* Opening has no descriptor yet: 0 says that it is a file's. */
static thing thing_of(fault_kind kind, int fd)
{
    struct stat about;

    if (kind == FAULT_OPEN)
        return fd == 0 ? FILE_ : OTHER;
    if (fd < 0 || syscall(SYS_fstat, fd, &about) != 0)
        return OTHER;
    return S_ISSOCK(about.st_mode)   ? SOCKET
           : S_ISFIFO(about.st_mode) ? PIPE
           : S_ISREG(about.st_mode)  ? FILE_
                                     : OTHER;
}

int faults_error(fault_kind kind, int fd)
{
    unsigned long n;
    const int *list;
    int count = 0;

    if (!takes_part)
        return 0;
    n = atomic_fetch_add(&counts[kind], 1) + 1;
    if (atomic_load(&armed) != (int)kind || n < atomic_load(&first) ||
        n > atomic_load(&last))
        return 0;
    list = errors[kind][thing_of(kind, fd)];
    while (list[count])
        count++;
    return count ? list[atomic_load(&chosen) % count] : 0;
}
