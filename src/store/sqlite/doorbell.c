/* doorbell.c - doorbells: a pipe per handle, which holds over a thousand notices.
 *
 * Owns the pipe of its handle. For a file the pipes are named ones in a folder
 * beside it, "FILE.bells", under random names; in memory they are found through
 * a list of all that are open in this process. A datagram socket would hold ten
 * notices, as systems are set up. Any thread; nothing blocks. */
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
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ID_BYTES = 8,
    LIST_MAX = 65536,  /* notices of one transaction */
    HEARD_MAX = 32,    /* notices of one read */
    SEEN_MAX = 4096,   /* pipes looked at when a doorbell is opened, */
    SWEPT_MAX = 64,    /* ... and removed */
    SWEPT_AGE_S = 60,  /* a younger one may not have been opened yet */
    MAGIC = 0x64696232 /* "dib2": raised when the message changes */
};

/* A notice in a pipe. Sender and receiver share a machine. The data of a message, or what a
 * change shows, fills the blocks of this size behind its head. A write of all of them is
 * never split. */
typedef struct message {
    uint32_t magic;
    uint16_t kind;
    uint16_t len; /* of the data */
    uint64_t fence;
    char owner[DIBS_OWNER_SIZE - 1];
} message;

_Static_assert(sizeof(message) == 48, "no padding");
_Static_assert(2 * ID_BYTES < DIBS__BELL_MAX, "an address fits");

enum { BLOCKS_MAX = 1 + (DIBS__SAY_MAX + 47) / 48 };

_Static_assert(BLOCKS_MAX * sizeof(message) <= PIPE_BUF, "never split");

static pthread_mutex_t memory_mutex = PTHREAD_MUTEX_INITIALIZER;
static dibs__sqlite_doorbell *memory_doorbells; /* guarded by memory_mutex */

void dibs__sqlite_notices_fini(dibs__sqlite_notices *list)
{
    dibsx_free(list->items);
    dibsx_free(list->shown);
    *list = (dibs__sqlite_notices){0};
}

static bool grow_list(dibs__sqlite_notices *list)
{
    size_t room = list->room ? list->room * 2 : 8;
    void *grown;

    if (room > LIST_MAX)
        return false;
    grown = dibsx_realloc_n(list->items, room, sizeof(*list->items));
    if (!grown)
        return false;
    list->items = grown;
    list->room = room;
    return true;
}

void dibs__sqlite_notices_add(dibs__sqlite_notices *list,
                              const dibs__party *party)
{
    dibs__notice notice = {.kind = party->notice, .fence = party->fence};

    memcpy(notice.owner, party->owner, sizeof(notice.owner));
    (void)dibs__sqlite_notices_put(list, party->bell, &notice);
}

/* A text that is no address has nobody who listens. */
bool dibs__sqlite_notices_put(dibs__sqlite_notices *list, const char *bell,
                              const dibs__notice *notice)
{
    dibs__sqlite_notice *item;

    if (!bell || !bell[0] || strlen(bell) >= sizeof(item->bell))
        return true;
    if (list->count == list->room && !grow_list(list))
        return false;
    item = &list->items[list->count++];
    memcpy(item->bell, bell, strlen(bell) + 1);
    item->notice = *notice;
    return true;
}

void dibs__sqlite_doorbell_init(dibs__sqlite_doorbell *doorbell,
                                const char *db_path)
{
    memset(doorbell, 0, sizeof(*doorbell));
    doorbell->db_path = db_path;
    doorbell->dir_fd = doorbell->hear_fd = doorbell->self_fd = -1;
    pthread_mutex_init(&doorbell->mutex, NULL);
    atomic_init(&doorbell->open, false);
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void unlist_doorbell(dibs__sqlite_doorbell *doorbell)
{
    dibs__sqlite_doorbell **at = &memory_doorbells;

    pthread_mutex_lock(&memory_mutex);
    while (*at && *at != doorbell)
        at = &(*at)->next;
    if (*at)
        *at = doorbell->next;
    pthread_mutex_unlock(&memory_mutex);
}

void dibs__sqlite_doorbell_fini(dibs__sqlite_doorbell *doorbell)
{
    if (doorbell->open && doorbell->db_path)
        (void)unlinkat(doorbell->dir_fd, doorbell->address, 0);
    else if (doorbell->open)
        unlist_doorbell(doorbell);
    fd_close(&doorbell->hear_fd);
    fd_close(&doorbell->self_fd);
    fd_close(&doorbell->dir_fd);
    pthread_mutex_destroy(&doorbell->mutex);
}

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") == len && text[len] == '\0';
}

/* Opens what this process has just made to the users of the database, who are
 * its group or all, whatever the umask. Failing that, their waits are polled. */
static void share_like(const char *db_path, int fd, bool folder)
{
    struct stat at;
    mode_t mode;

    if (stat(db_path, &at) != 0 || !(at.st_mode & (S_IWGRP | S_IWOTH)))
        return;
    mode = at.st_mode & 0666;
    if (folder)
        mode |= (mode_t)(S_ISGID | (mode & 0444) >> 2);
    (void)!fchown(fd, (uid_t)-1, at.st_gid);
    (void)fchmod(fd, mode);
}

/* Opens the folder of the pipes if it is there. Locks: doorbell->mutex. */
static bool folder_open(dibs__sqlite_doorbell *doorbell, bool create)
{
    char path[PATH_MAX + 8];
    bool made;

    if (doorbell->dir_fd >= 0)
        return true;
    snprintf(path, sizeof(path), "%s.bells", doorbell->db_path);
    made = create && mkdir(path, 0700) == 0;
    if (create && !made && errno != EEXIST)
        return false;
    doorbell->dir_fd =
        open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (made && doorbell->dir_fd >= 0)
        share_like(doorbell->db_path, doorbell->dir_fd, true);
    return doorbell->dir_fd >= 0;
}

static int
pipe_open(const dibs__sqlite_doorbell *doorbell, const char *id, int how)
{
    return openat(doorbell->dir_fd, id,
                  how | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes a pipe that nobody listens to; whether it did. Locks: doorbell->mutex. */
static bool sweep_one(const dibs__sqlite_doorbell *doorbell, const char *id)
{
    struct stat at;
    int fd;

    if (fstatat(doorbell->dir_fd, id, &at, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISFIFO(at.st_mode) || time(NULL) - at.st_mtime < SWEPT_AGE_S)
        return false;
    fd = pipe_open(doorbell, id, O_WRONLY);
    if (fd < 0 && errno == ENXIO)
        return unlinkat(doorbell->dir_fd, id, 0) == 0;
    fd_close(&fd);
    return false;
}

/* Killed processes leave their pipes behind. Locks: doorbell->mutex. */
static void sweep_pipes(const dibs__sqlite_doorbell *doorbell)
{
    int fd = openat(doorbell->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *file;
    int seen = 0, swept = 0;

    if (!dir) {
        fd_close(&fd);
        return;
    }
    while (seen < SEEN_MAX && swept < SWEPT_MAX && (file = readdir(dir))) {
        if (!is_hex(file->d_name, 2 * (size_t)ID_BYTES))
            continue;
        seen++;
        swept += sweep_one(doorbell, file->d_name);
    }
    closedir(dir);
}

/* A named pipe. The reader counts as a writer too, so that it is never at its
 * end. Locks: doorbell->mutex. */
static bool open_named(dibs__sqlite_doorbell *doorbell)
{
    int number;

    if (!folder_open(doorbell, true))
        return false;
    sweep_pipes(doorbell);
    if (mkfifoat(doorbell->dir_fd, doorbell->address, 0600) != 0)
        return false;
    doorbell->hear_fd = pipe_open(doorbell, doorbell->address, O_RDWR);
    number = errno;
    if (doorbell->hear_fd < 0)
        (void)unlinkat(doorbell->dir_fd, doorbell->address, 0);
    else
        share_like(doorbell->db_path, doorbell->hear_fd, false);
    errno = number;
    return doorbell->hear_fd >= 0;
}

/* Locks: doorbell->mutex. */
static bool open_listed(dibs__sqlite_doorbell *doorbell)
{
    int fds[2];

    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) != 0)
        return false;
    doorbell->hear_fd = fds[0];
    doorbell->self_fd = fds[1];
    pthread_mutex_lock(&memory_mutex);
    doorbell->next = memory_doorbells;
    memory_doorbells = doorbell;
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

/* Fewer bytes than this have room for a notice and for the longest message. One that does
 * not fit into the rest of a page begins the next one, so that two pages may have little more
 * than one page of bytes; and of the first page most may have been read. */
static void find_full_size(dibs__sqlite_doorbell *doorbell)
{
    int size = fcntl(doorbell->hear_fd, F_GETPIPE_SZ);
    int page = (int)sysconf(_SC_PAGESIZE);
    int pages = size < page ? 0 : size / page;

    doorbell->full_size =
        pages > 2 ? (pages - 1) / 2 * page : (int)sizeof(message);
}

dibs_status dibs__sqlite_doorbell_open(dibs__sqlite_doorbell *doorbell, int *fd,
                                       dibs_error *err)
{
    unsigned char id[ID_BYTES];
    dibs_status rc = DIBS_OK;
    bool done = false;

    pthread_mutex_lock(&doorbell->mutex);
    if (!doorbell->open) {
        if (dibsx_random(id, sizeof(id))) {
            dibsx_hex(id, sizeof(id), doorbell->address);
            done = doorbell->db_path ? open_named(doorbell)
                                     : open_listed(doorbell);
        }
        if (!done)
            rc = open_failed(errno, err);
        else
            find_full_size(doorbell);
        doorbell->open = done;
    }
    *fd = doorbell->hear_fd;
    pthread_mutex_unlock(&doorbell->mutex);
    return rc;
}

const char *dibs__sqlite_doorbell_address(dibs__sqlite_doorbell *doorbell)
{
    return doorbell->open ? doorbell->address : "";
}

static bool read_message(const message *msg, dibs__notice *notice)
{
    if (msg->magic != MAGIC || msg->kind >= DIBS__NOTICE_MISSED)
        return false;
    memcpy(notice->owner, msg->owner, sizeof(msg->owner));
    notice->owner[sizeof(msg->owner)] = '\0';
    notice->kind = (dibs__notice_kind)msg->kind;
    notice->fence = msg->fence;
    notice->said = NULL;
    return is_hex(notice->owner, sizeof(msg->owner));
}

/* Reads up to `size` bytes of the pipe; how many, which are counted. */
static size_t
take_bytes(dibs__sqlite_doorbell *doorbell, void *into, size_t size)
{
    ssize_t len = read(doorbell->hear_fd, into, size);

    if (len <= 0)
        return 0;
    doorbell->taken += (int)len;
    return (size_t)len;
}

/* Notes how full the pipe has been since the last look. Nobody else takes bytes out of it:
 * what was taken and what is left now are together no less than what was in it at any
 * time between. */
static void note_most(dibs__sqlite_doorbell *doorbell)
{
    int waiting = 0;

    if (doorbell->taken == 0)
        return;
    if (ioctl(doorbell->hear_fd, FIONREAD, &waiting) != 0)
        doorbell->lost = true;
    if (waiting + doorbell->taken > doorbell->most)
        doorbell->most = waiting + doorbell->taken;
    doorbell->taken = 0;
}

/* Reads the data of a message: `count` blocks behind its head have been read, the others
 * are in the pipe. The number of blocks that it took of those. */
static size_t read_said(dibs__sqlite_doorbell *doorbell, const message *head,
                        size_t count, dibs__notice *notice)
{
    const message *blocks = head + 1;
    char data[BLOCKS_MAX * sizeof(message)];
    size_t len = head->len <= DIBS__SAY_MAX ? head->len : 0;
    size_t wanted = (len + sizeof(message) - 1) / sizeof(message);
    size_t had = wanted < count ? wanted : count;
    size_t rest = (wanted - had) * sizeof(message);

    memcpy(data, blocks, had * sizeof(message));
    if (rest == 0 ||
        take_bytes(doorbell, data + had * sizeof(message), rest) == rest)
        notice->said = dibs__said_new(len);
    if (notice->said)
        memcpy(notice->said->data, data, len);
    else
        doorbell->lost = true;
    return had;
}

/* Reads the notices in `got` blocks; how many. */
static size_t
read_blocks(dibs__sqlite_doorbell *doorbell, const message *blocks, size_t got,
            dibs__notice *notices)
{
    size_t count = 0;

    for (size_t i = 0; i < got; i++) {
        dibs__notice *notice = &notices[count];

        if (!read_message(&blocks[i], notice))
            continue;
        if (notice->kind == DIBS__NOTICE_SAID || blocks[i].len > 0)
            i += read_said(doorbell, &blocks[i], got - i - 1, notice);
        count += notice->kind != DIBS__NOTICE_SAID || notice->said;
    }
    return count;
}

/* Anyone may have written there: bytes that are no notice are read and dropped, and
 * so is an incomplete message at the end of a read. A pipe that was full has lost
 * notices. A call may read several pipes full, so it looks after each read. Thread: one
 * at a time. */
size_t dibs__sqlite_doorbell_read(dibs__sqlite_doorbell *doorbell,
                                  dibs__notice *notices, size_t max)
{
    message msgs[HEARD_MAX];
    size_t count = 0;

    if (!doorbell->open)
        return 0;
    while (count < max) {
        size_t wanted = max - count < HEARD_MAX ? max - count : HEARD_MAX;
        size_t len = take_bytes(doorbell, msgs, wanted * sizeof(msgs[0]));
        size_t got = len / sizeof(msgs[0]);

        count += read_blocks(doorbell, msgs, got, &notices[count]);
        note_most(doorbell);
        if (got < wanted)
            break;
    }
    if (count == max)
        return count;
    if (doorbell->lost || doorbell->most >= doorbell->full_size)
        notices[count++] = (dibs__notice){.kind = DIBS__NOTICE_MISSED};
    doorbell->most = 0;
    doorbell->lost = false;
    return count;
}

/* A full pipe loses the notice, as notices may be lost. */
static void write_message(int fd, const message *blocks, size_t count)
{
    ssize_t len = write(fd, blocks, count * sizeof(*blocks));

    (void)len;
}

/* Opens a pipe for writing, and for reading too: with a reader of our own the write cannot
 * raise SIGPIPE. False: errno says why. Locks: doorbell->mutex. */
static bool
open_both(const dibs__sqlite_doorbell *doorbell, const char *id, int fds[2])
{
    struct stat at;
    int number;

    fds[0] = -1;
    fds[1] = pipe_open(doorbell, id, O_WRONLY);
    if (fds[1] < 0)
        return false;
    if (fstat(fds[1], &at) == 0 && S_ISFIFO(at.st_mode))
        fds[0] = pipe_open(doorbell, id, O_RDONLY);
    else
        errno = ENOENT;
    number = errno;
    if (fds[0] < 0)
        fd_close(&fds[1]);
    errno = number;
    return fds[0] >= 0;
}

/* False as of dibs__sqlite_doorbell_notify(). Locks: doorbell->mutex. */
static bool notify_named(dibs__sqlite_doorbell *doorbell, const char *id,
                         const message *blocks, size_t count)
{
    int fds[2];

    if (open_both(doorbell, id, fds)) {
        write_message(fds[1], blocks, count);
        fd_close(&fds[0]);
        fd_close(&fds[1]);
        return true;
    }
    if (errno != ENXIO)
        return errno == ENOENT;
    (void)unlinkat(doorbell->dir_fd, id, 0); /* Its reader was killed. */
    return true;
}

static void notify_listed(const char *id, const message *blocks, size_t count)
{
    dibs__sqlite_doorbell *doorbell;

    pthread_mutex_lock(&memory_mutex);
    doorbell = memory_doorbells;
    while (doorbell && strcmp(doorbell->address, id) != 0)
        doorbell = doorbell->next;
    if (doorbell)
        write_message(doorbell->self_fd, blocks, count);
    pthread_mutex_unlock(&memory_mutex);
}

/* The address comes out of the database: it must not lead out of the folder. False as of
 * dibs__sqlite_doorbell_notify(). */
static bool
notify_one(dibs__sqlite_doorbell *doorbell, const dibs__sqlite_notice *item)
{
    message blocks[BLOCKS_MAX] = {{.magic = MAGIC,
                                   .kind = (uint16_t)item->notice.kind,
                                   .fence = item->notice.fence}};
    const dibs__said *said = item->notice.said;
    size_t count = 1;

    memcpy(blocks[0].owner, item->notice.owner, sizeof(blocks[0].owner));
    if (said) {
        blocks[0].len = (uint16_t)said->len;
        memcpy(&blocks[1], said->data, said->len);
        count += (said->len + sizeof(*blocks) - 1) / sizeof(*blocks);
    }
    if (!is_hex(item->bell, 2 * (size_t)ID_BYTES))
        return true;
    if (doorbell->db_path)
        return notify_named(doorbell, item->bell, blocks, count);
    notify_listed(item->bell, blocks, count);
    return true;
}

void dibs__sqlite_doorbell_forked(void)
{
    pthread_mutex_init(&memory_mutex, NULL);
    memory_doorbells = NULL;
}

bool dibs__sqlite_doorbell_notify(dibs__sqlite_doorbell *doorbell,
                                  dibs__sqlite_notices *list)
{
    int number = 0;

    if (list->count == 0)
        return true;
    pthread_mutex_lock(&doorbell->mutex);
    if (doorbell->db_path && !folder_open(doorbell, false)) {
        number = errno == ENOENT ? 0 : errno;
        list->count = 0;
    }
    for (size_t i = 0; i < list->count; i++)
        if (!notify_one(doorbell, &list->items[i]))
            number = errno;
    pthread_mutex_unlock(&doorbell->mutex);
    list->count = 0;
    errno = number;
    return number == 0;
}
