/* hosting.c - see hosting.h. */
/* SPDX-License-Identifier: MIT */
#include "hosting.h"

#include "base/rand.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Below the range from which the kernel picks. */
enum { PORT_FIRST = 10000, PORT_COUNT = 20000 };

/* A byte for each port, which is locked by the process that uses it. */
#define PORTS "/tmp/dibs-test-ports"

/* Addresses of sockets have room for short paths only. */
enum { BASE_MAX = 24 };

static bool port_is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    bool is_free;

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    is_free = bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
    close(fd);
    return is_free;
}

/* Opens the file in which ports are reserved, for all users of this machine. Where
 * it belongs to somebody else it may only be opened, not made. */
static int open_ports(void)
{
    int fd = open(PORTS, O_RDWR | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    fd = open(PORTS, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        (void)fchmod(fd, 0666);
    return fd >= 0 ? fd : open(PORTS, O_RDWR | O_CLOEXEC);
}

/* Whether it is ours until this process ends: a server that is restarted finds its
 * port free then. Where nothing can be reserved, a free port will do. */
static bool reserve(int port)
{
    static atomic_int ports_fd = -1;
    struct flock one = {.l_type = F_WRLCK,
                        .l_whence = SEEK_SET,
                        .l_start = port,
                        .l_len = 1};

    if (atomic_load(&ports_fd) < 0)
        atomic_store(&ports_fd, open_ports());
    return atomic_load(&ports_fd) < 0 ||
           fcntl(atomic_load(&ports_fd), F_OFD_SETLK, &one) == 0;
}

int hosting_free_port(void)
{
    uint32_t bits;

    for (int i = 0; i < 1000; i++) {
        int port;

        if (!dibsx_random(&bits, sizeof(bits)))
            return -1;
        port = PORT_FIRST + (int)(bits % PORT_COUNT);
        if (reserve(port) && port_is_free(port))
            return port;
    }
    return -1;
}

const char *hosting_base(void)
{
    const char *base = getenv("TMPDIR");

    return base && base[0] == '/' && strlen(base) <= BASE_MAX ? base : "/tmp";
}

bool hosting_folder(const char *kind, char *out, size_t size)
{
    snprintf(out, size, "%s/dibs-%s-XXXXXX", hosting_base(), kind);
    if (mkdtemp(out))
        return true;
    fprintf(stderr, "%s: %s\n", out, strerror(errno));
    out[0] = '\0';
    return false;
}

const char *hosting_preload(const char *library)
{
    static char link[64];

    if (!strpbrk(library, " :"))
        return library;
    snprintf(link, sizeof(link), "%s/dibs-preload-%ld.so", hosting_base(),
             (long)getpid());
    if (symlink(library, link) != 0 && errno != EEXIST)
        fprintf(stderr, "%s: %s\n", link, strerror(errno));
    return link;
}

void hosting_remove(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    (void)hosting_await_end(pid);
}

void hosting_show_log(const char *folder, const char *name)
{
    char path[256], text[512];
    FILE *log;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    log = fopen(path, "r");
    while (log && fgets(text, sizeof(text), log))
        fputs(text, stderr);
    if (log)
        fclose(log);
    fprintf(stderr, "%s: it did not come up\n", path);
}

int hosting_await_end(pid_t pid)
{
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

bool hosting_has_ended(pid_t *pid)
{
    if (*pid > 0 && waitpid(*pid, NULL, WNOHANG) == *pid)
        *pid = 0;
    return *pid == 0;
}
