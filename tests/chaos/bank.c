/* bank.c - see bank.h.
 *
 * One thread serves all; the order of the log is the order in which it did. */
/* SPDX-License-Identifier: MIT */
#include "bank.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENTS = 2 * WORKERS_MAX };

typedef struct account {
    uint64_t fence; /* the highest seen */
    uint64_t value;
} account;

typedef struct bank {
    bank_log *log;
    account accounts[KEYS];
    struct pollfd fds[CLIENTS + 1]; /* the first listens */
    nfds_t count;
} bank;

/* An address has room for a short path only, so it goes by way of a descriptor of
 * the folder, which the caller closes. */
static struct sockaddr_un place_of(const char *folder, int *folder_fd)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    *folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/bank.socket",
             *folder_fd);
    return at;
}

static int listen_in(const char *folder)
{
    int folder_fd;
    struct sockaddr_un at = place_of(folder, &folder_fd);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
                    listen(fd, CLIENTS) != 0)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0)
        fprintf(stderr, "bank: %s/bank.socket: %s\n", folder, strerror(errno));
    if (folder_fd >= 0)
        close(folder_fd);
    return fd;
}

static void serve(bank *bk, bank_entry *entry)
{
    account *ac = &bk->accounts[entry->key % KEYS];
    unsigned count = atomic_load(&bk->log->count);

    entry->at_ns = now_ns();
    entry->accepted = entry->fence >= ac->fence && count < BANK_ROOM;
    if (entry->accepted) {
        ac->fence = entry->fence;
        if (entry->write)
            ac->value = entry->value;
        else
            entry->value = ac->value;
    }
    if (count < BANK_ROOM) {
        bk->log->entries[count] = *entry;
        atomic_store(&bk->log->count, count + 1);
    }
}

/* False when the client is gone. */
static bool attend(bank *bk, int fd)
{
    bank_entry entry;

    if (recv(fd, &entry, sizeof(entry), 0) != (ssize_t)sizeof(entry))
        return false;
    serve(bk, &entry);
    return send(fd, &entry, sizeof(entry), MSG_NOSIGNAL) ==
           (ssize_t)sizeof(entry);
}

static void welcome(bank *bk)
{
    int fd = accept4(bk->fds[0].fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (bk->count > CLIENTS)
        close(fd);
    else
        bk->fds[bk->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

int bank_main(const char *folder)
{
    static bank bk;
    int fd;

    share_sleep(folder);
    bk.log = map_file(folder, "bank", sizeof(*bk.log));
    fd = listen_in(folder);
    if (fd < 0)
        return 2;
    bk.fds[bk.count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    for (;;) {
        (void)poll(bk.fds, bk.count, -1);
        for (nfds_t i = bk.count - 1; i > 0; i--)
            if (bk.fds[i].revents && !attend(&bk, bk.fds[i].fd)) {
                close(bk.fds[i].fd);
                bk.fds[i] = bk.fds[--bk.count];
            }
        if (bk.fds[0].revents)
            welcome(&bk);
    }
}

int bank_connect(const char *folder)
{
    int folder_fd;
    struct sockaddr_un at = place_of(folder, &folder_fd);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        fd = -1;
    }
    if (folder_fd >= 0)
        close(folder_fd);
    return fd;
}

bool bank_ask(int fd, bank_entry *entry)
{
    ssize_t got;

    do
        got = send(fd, entry, sizeof(*entry), MSG_NOSIGNAL);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(*entry))
        return false;
    do
        got = recv(fd, entry, sizeof(*entry), 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(*entry);
}
