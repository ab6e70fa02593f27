/* job_effect.c - the command of every job of the job ground, and its witness.
 *
 *     job_effect FOLDER SPAN_MS GROUP
 *
 * It has no code of dibs. FOLDER/effects is a file of lines that are only appended, so
 * that their order is that in which things happened:
 *
 *     start JOB RUN STEP ATTEMPT NODE TICK WALL_US NEEDS
 *     end JOB RUN STEP ATTEMPT
 *     two NAME RUN STEP ATTEMPT      another attempt that NAME excludes is alive
 *
 * A byte of FOLDER/alive is locked for the step of the run and, unless GROUP is "-", one
 * for GROUP, by an open file that every process of the tree has: the kernel lets go of
 * it when the last of them is dead. SPAN_MS is how long it takes at most. Some leave a
 * process in a session of its own, and some do not heed the signal to end. */
/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LINE_ROOM = 4096, NEEDS_ROOM = 2048, LEFT_S = 600 };

static const char *folder;
static uint64_t dice;

static const char *get(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : "-";
}

static int open_file(const char *name, int flags)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, flags | O_CREAT, 0600);
    if (fd < 0) {
        perror(path);
        exit(99);
    }
    return fd;
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One write to the end of the file: lines do not mix. */
static void note(const char *format, ...)
{
    char line[LINE_ROOM];
    int fd = open_file("effects", O_WRONLY | O_APPEND | O_CLOEXEC), len;
    va_list args;

    va_start(args, format);
    len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len <= 0 || len >= LINE_ROOM ||
        write(fd, line, (size_t)len) != (ssize_t)len) {
        perror("effects");
        exit(99);
    }
    close(fd);
}

static uint64_t hash(const char *text)
{
    uint64_t sum = 14695981039346656037U;

    for (; *text; text++)
        sum = (sum ^ (unsigned char)*text) * 1099511628211U;
    return sum;
}

/* Excludes all others who take this name, for as long as this tree lives. */
static void exclude(int fd, const char *name)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)(hash(name) >> 2),
                         .l_len = 1};

    if (fcntl(fd, F_OFD_SETLK, &lock) != 0)
        note("two %s %s %s %s\n", name, get("DIBS_RUN"), get("DIBS_STEP"),
             get("DIBS_ATTEMPT"));
}

/* What the steps before it handed on. */
static void read_needs(char out[NEEDS_ROOM])
{
    const char *path = getenv("DIBS_NEEDS");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t len = fd < 0 ? 0 : read(fd, out, NEEDS_ROOM - 1);

    if (fd >= 0)
        close(fd);
    out[len > 0 ? len : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (!*out)
        snprintf(out, NEEDS_ROOM, "{}");
}

static void hand_on(void)
{
    const char *path = getenv("DIBS_RESULT");
    FILE *out = path ? fopen(path, "w") : NULL;

    if (out) {
        fprintf(out, "%s/%s", get("DIBS_STEP"), get("DIBS_ATTEMPT"));
        fclose(out);
    }
}

static void rest(int64_t ms)
{
    struct timespec span = {.tv_sec = ms / 1000,
                            .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&span, &span) != 0)
        continue;
}

/* It outlives the command, unless somebody ends the whole tree. */
static void leave_behind(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            rest(LEFT_S * 1000);
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    char name[512], needs[NEEDS_ROOM];
    struct timespec now;
    int64_t span_ms;
    int alive;

    if (argc != 4)
        return 98;
    folder = argv[1];
    clock_gettime(CLOCK_REALTIME, &now);
    dice = (uint64_t)getpid() * 0x9e3779b97f4a7c15 ^ (uint64_t)now.tv_nsec;
    dice ^= dice >> 29;
    if (dice % 4 == 0)
        signal(SIGTERM, SIG_IGN);
    alive = open_file("alive", O_RDWR);
    snprintf(name, sizeof(name), "%s/%s", get("DIBS_RUN"), get("DIBS_STEP"));
    exclude(alive, name);
    if (strcmp(argv[3], "-") != 0)
        exclude(alive, argv[3]);
    read_needs(needs);
    note("start %s %s %s %s %s %s %lld %s\n", get("DIBS_JOB"), get("DIBS_RUN"),
         get("DIBS_STEP"), get("DIBS_ATTEMPT"), get("DIBS_NODE"),
         get("DIBS_TICK"), (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000,
         needs);
    if (dice / 4 % 4 == 0)
        leave_behind();
    /* Mostly a short time; death may come in the middle of a long one. */
    span_ms = strtoll(argv[2], NULL, 10);
    rest(
        (int64_t)(dice / 16 %
                  (uint64_t)(dice / 4096 % 4 ? span_ms / 8 + 1 : span_ms + 1)));
    hand_on();
    note("end %s %s %s %s\n", get("DIBS_JOB"), get("DIBS_RUN"),
         get("DIBS_STEP"), get("DIBS_ATTEMPT"));
    return 0;
}
