/* bell.c - doorbells: a datagram socket per handle.
 *
 * Owns the socket of its handle and a second one to ring others with. For a
 * file the sockets are in a folder beside it, "FILE.bells", under random names;
 * they are reached through the folder's descriptor, so that a path of any length
 * fits an address. In memory they are abstract. Any thread; nothing blocks. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/bell.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    ID_BYTES = 8,
    PEAL_MAX = 65536,  /* rings of one transaction */
    SWEPT_MAX = 64,    /* sockets looked at when a bell is opened */
    SWEPT_AGE_S = 60,  /* a younger one may still be on its way to life */
    MAGIC = 0x64696231 /* "dib1": raised when the message changes */
};

#define ABSTRACT "@dibs-"

/* What a ring looks like on the way. Sender and receiver share a machine. */
typedef struct message {
    uint32_t magic;
    uint32_t news;
    uint64_t fence;
    char owner[DIBS_OWNER_SIZE - 1];
} message;

_Static_assert(sizeof(message) == 48, "no padding");
_Static_assert(sizeof(ABSTRACT) + 2 * ID_BYTES <= DIBS__BELL_MAX, "fits");

void dibs__peal_fini(dibs__peal *peal)
{
    dibsx_free(peal->chimes);
    *peal = (dibs__peal){0};
}

static bool peal_grow(dibs__peal *peal)
{
    size_t room = peal->room ? peal->room * 2 : 8;
    void *grown;

    if (room > PEAL_MAX)
        return false;
    grown = dibsx_realloc_n(peal->chimes, room, sizeof(*peal->chimes));
    if (!grown)
        return false;
    peal->chimes = grown;
    peal->room = room;
    return true;
}

void dibs__peal_add(dibs__peal *peal, const dibs__party *party)
{
    dibs__chime *chime;

    if (!party->bell[0] || (peal->count == peal->room && !peal_grow(peal)))
        return;
    chime = &peal->chimes[peal->count++];
    memcpy(chime->bell, party->bell, sizeof(chime->bell));
    memcpy(chime->ring.owner, party->owner, sizeof(chime->ring.owner));
    chime->ring.news = party->news;
    chime->ring.fence = party->fence;
}

void dibs__bell_init(dibs__bell *bell, const char *db_path)
{
    memset(bell, 0, sizeof(*bell));
    bell->db_path = db_path;
    bell->dir_fd = bell->send_fd = bell->hear_fd = -1;
    pthread_mutex_init(&bell->mutex, NULL);
    atomic_init(&bell->open, false);
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void dibs__bell_fini(dibs__bell *bell)
{
    if (bell->open && bell->db_path)
        (void)unlinkat(bell->dir_fd, bell->address, 0);
    fd_close(&bell->hear_fd);
    fd_close(&bell->send_fd);
    fd_close(&bell->dir_fd);
    pthread_mutex_destroy(&bell->mutex);
}

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") >= len;
}

/* Whether it is an address of this kind of bell. It comes out of the database:
 * it must not lead to another place. */
static bool is_address(const dibs__bell *bell, const char *address)
{
    const char *id = address;

    if (!bell->db_path) {
        if (strncmp(address, ABSTRACT, strlen(ABSTRACT)) != 0)
            return false;
        id += strlen(ABSTRACT);
    }
    return strlen(id) == 2 * (size_t)ID_BYTES && is_hex(id, 2 * ID_BYTES);
}

static socklen_t
locate(const dibs__bell *bell, const char *address, struct sockaddr_un *sa)
{
    size_t len;

    memset(sa, 0, sizeof(*sa));
    sa->sun_family = AF_UNIX;
    if (bell->db_path) {
        snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s",
                 bell->dir_fd, address);
        return sizeof(*sa);
    }
    len = strlen(address); /* The "@" stands for a NUL. */
    memcpy(sa->sun_path + 1, address + 1, len - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static int socket_new(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Opens the folder of the sockets if it is there. Locks: bell->mutex. */
static bool folder_open(dibs__bell *bell, bool create)
{
    char path[PATH_MAX + 8];
    int len;

    if (!bell->db_path || bell->dir_fd >= 0)
        return true;
    len = snprintf(path, sizeof(path), "%s.bells", bell->db_path);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (create && mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    bell->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return bell->dir_fd >= 0;
}

/* Removes a socket that nobody listens to. Locks: bell->mutex. */
static void sweep_one(dibs__bell *bell, const char *id)
{
    struct sockaddr_un sa;
    struct stat at;
    int fd;

    if (fstatat(bell->dir_fd, id, &at, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISSOCK(at.st_mode) || time(NULL) - at.st_mtime < SWEPT_AGE_S)
        return;
    fd = socket_new();
    if (fd < 0)
        return;
    if (connect(fd, (struct sockaddr *)&sa, locate(bell, id, &sa)) != 0 &&
        errno == ECONNREFUSED)
        (void)unlinkat(bell->dir_fd, id, 0);
    close(fd);
}

/* Those who were killed leave their sockets behind. Locks: bell->mutex. */
static void sweep(dibs__bell *bell)
{
    int fd = openat(bell->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int seen = 0;

    if (!dir) {
        fd_close(&fd);
        return;
    }
    while (seen < SWEPT_MAX && (entry = readdir(dir))) {
        if (!is_address(bell, entry->d_name))
            continue;
        seen++;
        sweep_one(bell, entry->d_name);
    }
    closedir(dir);
}

static dibs_status bell_failed(int number, dibs_error *err)
{
    return dibsx_fail_at(err,
                         number == EACCES || number == EPERM ? DIBS_DENIED
                                                             : DIBS_UNAVAIL,
                         dibsx_errno_name(number),
                         "no doorbell can be opened (%s); waits are polled",
                         dibsx_errno_name(number));
}

/* Locks: bell->mutex. */
static dibs_status bell_bind(dibs__bell *bell, dibs_error *err)
{
    unsigned char id[ID_BYTES];
    struct sockaddr_un sa;
    size_t skip = bell->db_path ? 0 : strlen(ABSTRACT);
    int number;

    if (!dibsx_random(id, sizeof(id)))
        return bell_failed(errno, err);
    memcpy(bell->address, ABSTRACT, skip);
    dibsx_hex(id, sizeof(id), bell->address + skip);
    bell->hear_fd = socket_new();
    if (bell->hear_fd >= 0 && bind(bell->hear_fd, (struct sockaddr *)&sa,
                                   locate(bell, bell->address, &sa)) == 0)
        return DIBS_OK;
    number = errno;
    fd_close(&bell->hear_fd);
    return bell_failed(number, err);
}

dibs_status dibs__bell_open(dibs__bell *bell, int *fd, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&bell->mutex);
    if (!bell->open) {
        if (!folder_open(bell, true)) {
            rc = bell_failed(errno, err);
        } else {
            if (bell->db_path)
                sweep(bell);
            rc = bell_bind(bell, err);
        }
        bell->open = rc == DIBS_OK;
    }
    *fd = bell->hear_fd;
    pthread_mutex_unlock(&bell->mutex);
    return rc;
}

const char *dibs__bell_address(dibs__bell *bell)
{
    return bell->open ? bell->address : "";
}

static bool read_message(const message *msg, ssize_t len, dibs__ring *ring)
{
    if (len != (ssize_t)sizeof(*msg) || msg->magic != MAGIC ||
        msg->news > DIBS__NEWS_BROKEN)
        return false;
    memcpy(ring->owner, msg->owner, sizeof(msg->owner));
    ring->owner[sizeof(msg->owner)] = '\0';
    ring->news = (dibs__news)msg->news;
    ring->fence = msg->fence;
    return is_hex(ring->owner, sizeof(msg->owner));
}

size_t dibs__bell_hear(dibs__bell *bell, dibs__ring *rings, size_t max)
{
    size_t count = 0;

    if (!bell->open)
        return 0;
    /* Anything may be sent here: what is no ring is taken and forgotten. */
    for (size_t taken = 0; count < max && taken < 4 * max; taken++) {
        message msg;
        ssize_t len =
            recv(bell->hear_fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

        if (len < 0)
            break;
        count += read_message(&msg, len, &rings[count]);
    }
    return count;
}

/* Locks: bell->mutex. */
static void send_one(dibs__bell *bell, const dibs__chime *chime)
{
    message msg = {.magic = MAGIC,
                   .news = (uint32_t)chime->ring.news,
                   .fence = chime->ring.fence};
    struct sockaddr_un sa;

    if (!is_address(bell, chime->bell))
        return;
    memcpy(msg.owner, chime->ring.owner, sizeof(msg.owner));
    if (sendto(bell->send_fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL,
               (struct sockaddr *)&sa, locate(bell, chime->bell, &sa)) >= 0)
        return;
    /* Its address was published after it was bound, so nobody is there. */
    if (errno == ECONNREFUSED && bell->db_path)
        (void)unlinkat(bell->dir_fd, chime->bell, 0);
}

void dibs__bell_ring(dibs__bell *bell, dibs__peal *peal)
{
    if (peal->count == 0)
        return;
    pthread_mutex_lock(&bell->mutex);
    if (bell->send_fd < 0)
        bell->send_fd = socket_new();
    if (bell->send_fd >= 0 && folder_open(bell, false))
        for (size_t i = 0; i < peal->count; i++)
            send_one(bell, &peal->chimes[i]);
    pthread_mutex_unlock(&bell->mutex);
    peal->count = 0;
}
