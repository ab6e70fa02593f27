/* doorbell.c - doorbells: a pipe per handle, which holds over a thousand rings.
 *
 * Owns the pipe of its handle. For a file the pipes are named ones in a folder
 * beside it, "FILE.bells", under random names; in memory they are found through
 * a list of all that are open in this process. A datagram socket would hold ten
 * rings, as systems are set up. Any thread; nothing blocks. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/doorbell.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ID_BYTES = 8,
    PEAL_MAX = 65536,  /* rings of one transaction */
    HEARD_MAX = 32,    /* rings taken by one read */
    SEEN_MAX = 4096,   /* pipes looked at when a bell is opened, */
    SWEPT_MAX = 64,    /* ... and removed */
    SWEPT_AGE_S = 60,  /* a younger one may not have been opened yet */
    MAGIC = 0x64696231 /* "dib1": raised when the message changes */
};

/* What a ring looks like on the way. Sender and receiver share a machine. A
 * write of this size is never split. */
typedef struct message {
    uint32_t magic;
    uint32_t kind;
    uint64_t fence;
    char owner[DIBS_OWNER_SIZE - 1];
} message;

_Static_assert(sizeof(message) == 48, "no padding");
_Static_assert(2 * ID_BYTES < DIBS__BELL_MAX, "an address fits");

static pthread_mutex_t memory_mutex = PTHREAD_MUTEX_INITIALIZER;
static dibs__bell *memory_bells; /* guarded by memory_mutex */

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
    chime->ring.kind = party->news;
    chime->ring.fence = party->fence;
}

void dibs__bell_init(dibs__bell *bell, const char *db_path)
{
    memset(bell, 0, sizeof(*bell));
    bell->db_path = db_path;
    bell->dir_fd = bell->hear_fd = bell->self_fd = -1;
    pthread_mutex_init(&bell->mutex, NULL);
    atomic_init(&bell->open, false);
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void unlist_doorbell(dibs__bell *bell)
{
    dibs__bell **at = &memory_bells;

    pthread_mutex_lock(&memory_mutex);
    while (*at && *at != bell)
        at = &(*at)->next;
    if (*at)
        *at = bell->next;
    pthread_mutex_unlock(&memory_mutex);
}

void dibs__bell_fini(dibs__bell *bell)
{
    if (bell->open && bell->db_path)
        (void)unlinkat(bell->dir_fd, bell->address, 0);
    else if (bell->open)
        unlist_doorbell(bell);
    fd_close(&bell->hear_fd);
    fd_close(&bell->self_fd);
    fd_close(&bell->dir_fd);
    pthread_mutex_destroy(&bell->mutex);
}

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") == len && text[len] == '\0';
}

/* Opens the folder of the pipes if it is there. Locks: bell->mutex. */
static bool folder_open(dibs__bell *bell, bool create)
{
    char path[PATH_MAX + 8];

    if (bell->dir_fd >= 0)
        return true;
    snprintf(path, sizeof(path), "%s.bells", bell->db_path);
    if (create && mkdir(path, 0700) != 0 && errno != EEXIST)
        return false;
    bell->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return bell->dir_fd >= 0;
}

static int pipe_open(const dibs__bell *bell, const char *id, int how)
{
    return openat(bell->dir_fd, id, how | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes a pipe that nobody listens to; whether it did. Locks: bell->mutex. */
static bool sweep_one(const dibs__bell *bell, const char *id)
{
    struct stat at;
    int fd;

    if (fstatat(bell->dir_fd, id, &at, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISFIFO(at.st_mode) || time(NULL) - at.st_mtime < SWEPT_AGE_S)
        return false;
    fd = pipe_open(bell, id, O_WRONLY);
    if (fd < 0 && errno == ENXIO)
        return unlinkat(bell->dir_fd, id, 0) == 0;
    fd_close(&fd);
    return false;
}

/* Those who were killed leave their pipes behind. Locks: bell->mutex. */
static void sweep_pipes(const dibs__bell *bell)
{
    int fd = openat(bell->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    int seen = 0, swept = 0;

    if (!dir) {
        fd_close(&fd);
        return;
    }
    while (seen < SEEN_MAX && swept < SWEPT_MAX && (entry = readdir(dir))) {
        if (!is_hex(entry->d_name, 2 * (size_t)ID_BYTES))
            continue;
        seen++;
        swept += sweep_one(bell, entry->d_name);
    }
    closedir(dir);
}

/* A named pipe. The reader counts as a writer too, so that it is never at its
 * end. Locks: bell->mutex. */
static bool open_named(dibs__bell *bell)
{
    int number;

    if (!folder_open(bell, true))
        return false;
    sweep_pipes(bell);
    if (mkfifoat(bell->dir_fd, bell->address, 0600) != 0)
        return false;
    bell->hear_fd = pipe_open(bell, bell->address, O_RDWR);
    number = errno;
    if (bell->hear_fd < 0)
        (void)unlinkat(bell->dir_fd, bell->address, 0);
    errno = number;
    return bell->hear_fd >= 0;
}

/* Locks: bell->mutex. */
static bool open_listed(dibs__bell *bell)
{
    int fds[2];

    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0)
        return false;
    bell->hear_fd = fds[0];
    bell->self_fd = fds[1];
    pthread_mutex_lock(&memory_mutex);
    bell->next = memory_bells;
    memory_bells = bell;
    pthread_mutex_unlock(&memory_mutex);
    return true;
}

static dibs_status open_failed(int number, dibs_error *err)
{
    bool denied = number == EACCES || number == EPERM || number == EROFS;

    return dibsx_fail_at(err, denied ? DIBS_DENIED : DIBS_UNAVAIL,
                         dibsx_errno_name(number),
                         "no doorbell can be opened, so waits are polled (%s)",
                         dibsx_errno_name(number));
}

dibs_status dibs__bell_open(dibs__bell *bell, int *fd, dibs_error *err)
{
    unsigned char id[ID_BYTES];
    dibs_status rc = DIBS_OK;
    bool done = false;

    pthread_mutex_lock(&bell->mutex);
    if (!bell->open) {
        if (dibsx_random(id, sizeof(id))) {
            dibsx_hex(id, sizeof(id), bell->address);
            done = bell->db_path ? open_named(bell) : open_listed(bell);
        }
        if (!done)
            rc = open_failed(errno, err);
        bell->open = done;
    }
    *fd = bell->hear_fd;
    pthread_mutex_unlock(&bell->mutex);
    return rc;
}

const char *dibs__bell_address(dibs__bell *bell)
{
    return bell->open ? bell->address : "";
}

static bool read_message(const message *msg, dibs__notice *ring)
{
    if (msg->magic != MAGIC || msg->kind >= DIBS__NOTICE_MISSED)
        return false;
    memcpy(ring->owner, msg->owner, sizeof(msg->owner));
    ring->owner[sizeof(msg->owner)] = '\0';
    ring->kind = (dibs__notice_kind)msg->kind;
    ring->fence = msg->fence;
    return is_hex(ring->owner, sizeof(msg->owner));
}

/* Anything may have been written there: what is no ring is taken and forgotten,
 * and so is the rest of a read that did not come out even. */
size_t dibs__bell_hear(dibs__bell *bell, dibs__notice *rings, size_t max)
{
    message msgs[HEARD_MAX];
    size_t count = 0;

    if (!bell->open)
        return 0;
    while (count < max) {
        size_t wanted = max - count < HEARD_MAX ? max - count : HEARD_MAX;
        ssize_t len = read(bell->hear_fd, msgs, wanted * sizeof(msgs[0]));
        size_t got = len > 0 ? (size_t)len / sizeof(msgs[0]) : 0;

        for (size_t i = 0; i < got; i++)
            count += read_message(&msgs[i], &rings[count]);
        if (got < wanted)
            break;
    }
    return count;
}

/* A pipe that is full loses the ring, as rings may be lost. */
static void write_message(int fd, const message *msg)
{
    ssize_t len = write(fd, msg, sizeof(*msg));

    (void)len;
}

/* Locks: bell->mutex. */
static void ring_named(dibs__bell *bell, const char *id, const message *msg)
{
    int to = pipe_open(bell, id, O_WRONLY);
    int guard = -1;
    struct stat at;

    if (to < 0 && errno == ENXIO) {
        (void)unlinkat(bell->dir_fd, id, 0); /* Its reader was killed. */
        return;
    }
    /* With a reader of our own the write cannot raise SIGPIPE. */
    if (to >= 0 && fstat(to, &at) == 0 && S_ISFIFO(at.st_mode))
        guard = pipe_open(bell, id, O_RDONLY);
    if (guard >= 0)
        write_message(to, msg);
    fd_close(&guard);
    fd_close(&to);
}

static void ring_listed(const char *id, const message *msg)
{
    dibs__bell *bell;

    pthread_mutex_lock(&memory_mutex);
    bell = memory_bells;
    while (bell && strcmp(bell->address, id) != 0)
        bell = bell->next;
    if (bell)
        write_message(bell->self_fd, msg);
    pthread_mutex_unlock(&memory_mutex);
}

/* The address comes out of the database: it must not lead to another place. */
static void ring_one(dibs__bell *bell, const dibs__chime *chime)
{
    message msg = {.magic = MAGIC,
                   .kind = (uint32_t)chime->ring.kind,
                   .fence = chime->ring.fence};

    memcpy(msg.owner, chime->ring.owner, sizeof(msg.owner));
    if (!is_hex(chime->bell, 2 * (size_t)ID_BYTES))
        return;
    if (bell->db_path)
        ring_named(bell, chime->bell, &msg);
    else
        ring_listed(chime->bell, &msg);
}

void dibs__bell_forked(void)
{
    pthread_mutex_init(&memory_mutex, NULL);
    memory_bells = NULL;
}

void dibs__bell_ring(dibs__bell *bell, dibs__peal *peal)
{
    if (peal->count == 0)
        return;
    pthread_mutex_lock(&bell->mutex);
    if (!bell->db_path || folder_open(bell, false))
        for (size_t i = 0; i < peal->count; i++)
            ring_one(bell, &peal->chimes[i]);
    pthread_mutex_unlock(&bell->mutex);
    peal->count = 0;
}
