/* calls.c - the calls into the system that may fail, in the place of the C
 * library's. Those that do not fail go straight to the kernel. */
/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

/* As checked builds of libraries name them. */
SEEN ssize_t __read_chk(int fd, void *out, size_t size, size_t room);
SEEN ssize_t __recv_chk(int fd, void *out, size_t size, size_t room, int flags);
SEEN int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t room);
SEEN int __open_2(const char *path, int flags);
SEEN int __open64_2(const char *path, int flags);
SEEN int __openat_2(int folder, const char *path, int flags);
SEEN ssize_t __pread64_chk(int fd, void *out, size_t size, off64_t at,
                           size_t room);

/* True with errno when the call must fail; *end when it must find the end. */
static bool fails(fault_kind kind, int fd, bool *end)
{
    int number = faults_error(kind, fd);

    if (end)
        *end = number == FAULT_END;
    if (number > 0)
        errno = number;
    return number > 0;
}

static bool must_fail(fault_kind kind, int fd)
{
    return fails(kind, fd, NULL);
}

SEEN ssize_t read(int fd, void *out, size_t size)
{
    bool end;

    if (fails(FAULT_READ, fd, &end))
        return -1;
    return end ? 0 : syscall(SYS_read, fd, out, size);
}

ssize_t __read_chk(int fd, void *out, size_t size, size_t room)
{
    (void)room;
    return read(fd, out, size);
}

SEEN ssize_t pread64(int fd, void *out, size_t size, off64_t at)
{
    return must_fail(FAULT_READ, fd) ? -1
                                     : syscall(SYS_pread64, fd, out, size, at);
}

ssize_t __pread64_chk(int fd, void *out, size_t size, off64_t at, size_t room)
{
    (void)room;
    return pread64(fd, out, size, at);
}

SEEN ssize_t recv(int fd, void *out, size_t size, int flags)
{
    bool end;

    if (fails(FAULT_READ, fd, &end))
        return -1;
    return end ? 0 : syscall(SYS_recvfrom, fd, out, size, flags, NULL, NULL);
}

ssize_t __recv_chk(int fd, void *out, size_t size, size_t room, int flags)
{
    (void)room;
    return recv(fd, out, size, flags);
}

SEEN ssize_t write(int fd, const void *bytes, size_t size)
{
    return must_fail(FAULT_WRITE, fd) ? -1
                                      : syscall(SYS_write, fd, bytes, size);
}

SEEN ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
    return must_fail(FAULT_WRITE, fd)
               ? -1
               : syscall(SYS_pwrite64, fd, bytes, size, at);
}

SEEN ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    return must_fail(FAULT_WRITE, fd)
               ? -1
               : syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

SEEN int ftruncate64(int fd, off64_t size)
{
    return must_fail(FAULT_WRITE, fd) ? -1
                                      : (int)syscall(SYS_ftruncate, fd, size);
}

SEEN int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
    return must_fail(FAULT_CONNECT, fd)
               ? -1
               : (int)syscall(SYS_connect, fd, to.__sockaddr__, len);
}

SEEN int poll(struct pollfd *fds, nfds_t count, int ms)
{
    struct timespec span = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    if (must_fail(FAULT_POLL, -1))
        return -1;
    return (int)syscall(SYS_ppoll, fds, count, ms < 0 ? NULL : &span, NULL,
                        (size_t)(_NSIG / 8));
}

int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t room)
{
    (void)room;
    return poll(fds, count, ms);
}

/* The mode, when there is one. */
static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

static int open_with(int folder, const char *path, int flags, mode_t mode)
{
    return must_fail(FAULT_OPEN, 0)
               ? -1
               : (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPENS_IN(folder, flags)                                                \
    do {                                                                       \
        va_list args;                                                          \
        mode_t mode;                                                           \
        va_start(args, flags);                                                 \
        mode = mode_of(flags, args);                                           \
        va_end(args);                                                          \
        return open_with(folder, path, flags, mode);                           \
    } while (0)

SEEN int open(const char *path, int flags, ...)
{
    OPENS_IN(AT_FDCWD, flags);
}

SEEN int open64(const char *path, int flags, ...)
{
    OPENS_IN(AT_FDCWD, flags);
}

SEEN int openat(int folder, const char *path, int flags, ...)
{
    OPENS_IN(folder, flags);
}

int __open_2(const char *path, int flags)
{
    return open_with(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
    return open_with(AT_FDCWD, path, flags, 0);
}

int __openat_2(int folder, const char *path, int flags)
{
    return open_with(folder, path, flags, 0);
}

SEEN int socket(int family, int type, int protocol)
{
    return must_fail(FAULT_OPEN, -1)
               ? -1
               : (int)syscall(SYS_socket, family, type, protocol);
}

SEEN int eventfd(unsigned int count, int flags)
{
    return must_fail(FAULT_OPEN, -1) ? -1
                                     : (int)syscall(SYS_eventfd2, count, flags);
}

SEEN int timerfd_create(clockid_t clock, int flags)
{
    return must_fail(FAULT_OPEN, -1)
               ? -1
               : (int)syscall(SYS_timerfd_create, clock, flags);
}

SEEN int pipe2(int fds[2], int flags)
{
    return must_fail(FAULT_OPEN, -1) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

SEEN int fsync(int fd)
{
    return must_fail(FAULT_FSYNC, fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

SEEN int fdatasync(int fd)
{
    return must_fail(FAULT_FSYNC, fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* Only taking a lock fails: to give one back always works. */
SEEN int fcntl64(int fd, int what, ...)
{
    va_list args;
    void *arg;

    va_start(args, what);
    arg = va_arg(args, void *);
    va_end(args);
    if ((what == F_SETLK || what == F_SETLKW) &&
        ((const struct flock64 *)arg)->l_type != F_UNLCK &&
        must_fail(FAULT_LOCK, fd))
        return -1;
    return (int)syscall(SYS_fcntl, fd, what, arg);
}

SEEN void *mmap(void *at, size_t size, int may, int flags, int fd, off_t from)
{
    if (must_fail(FAULT_MAP, fd))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, may, flags, fd, from);
}

SEEN void *
mmap64(void *at, size_t size, int may, int flags, int fd, off64_t from)
{
    return mmap(at, size, may, flags, fd, from);
}

typedef int
starter(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

#ifdef DIBS_SANITIZED
/* A sanitizer that joins a thread has to have started it. */
extern starter __interceptor_pthread_create;

static starter *find_starter(void)
{
    return __interceptor_pthread_create;
}
#else
static starter *find_starter(void)
{
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    starter *real;

    memcpy(&real, &found, sizeof(real));
    return real;
}
#endif

/* Who is started by one that takes part takes part as well. */
typedef struct birth {
    void *(*body)(void *);
    void *arg;
    bool takes_part;
} birth;

static void *begin(void *arg)
{
    birth given = *(birth *)arg;

    free(arg);
    faults_take_part(given.takes_part);
    return given.body(given.arg);
}

SEEN int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                        void *(*body)(void *), void *arg)
{
    static starter *real;
    bool takes_part = faults_taking_part();
    birth *given;
    int rc = faults_error(FAULT_THREAD, -1);

    if (rc != 0)
        return rc;
    /* What this needs itself is no part of it. */
    faults_take_part(false);
    if (!real)
        real = find_starter();
    given = malloc(sizeof(*given));
    if (!given)
        abort();
    *given = (birth){.body = body, .arg = arg, .takes_part = takes_part};
    rc = real(thread, attr, begin, given);
    if (rc != 0)
        free(given);
    faults_take_part(takes_part);
    return rc;
}
