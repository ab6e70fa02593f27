/* judge.c - runs a test, and repeats it when the machine was too slow to judge it.
 *
 *     judge NAME COMMAND...
 *
 * While the test runs, the judge looks now and then how late a timer is, how long a
 * few milliseconds of work take, and how long the disk. A test that ends with PACE_MISSED (pace.h)
 * was not in time. On a machine that was quick enough it has failed; else the judge
 * says so and repeats it a while later, with more time for everything. It never passes
 * a test that did not pass, and any other failure stands. DIBS_JUDGE_TRIES sets how often
 * it tries (8), DIBS_JUDGE_LOG names a file for a line about each repetition,
 * DIBS_JUDGE_COSTS one for what each test took, and DIBS_PACE says how slow the machine
 * is at least (1). DIBS_JUDGE_STUTTER makes the machine a bad one: the first try is
 * stopped at random, for up to so many milliseconds (`make test STUTTER=1500`).
 *
 * Each try has a TMPDIR of its own, which is removed after it. One thread. */
/* SPDX-License-Identifier: MIT */
#include "pace.h"
#include "seed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 8,
    REST_MAX_S = 15, /* after 2, 4, 8 s before */
    FIRST_LOOKS = 3,
    MORE_LOOKS = 6, /* when the first found the machine busy, */
    MORE_MS = 80,   /* ... so far apart */
    LOOK_MS = 400,  /* between two looks */
    DISK_LOOKS = 5  /* of which one is at the disk too */
};

#define WORK_US 2000.0  /* of the processor, at each look */
#define DISK_US 20000.0 /* what a disk takes that has little else to do */

/* No test takes so long on an idle machine; on a slow one it is given more. */
#define HANG_S    300.0
#define TIMES_MAX 6.0

/* Beyond these the machine is too slow to judge. */
#define SLOW_TIMES   1.5
#define SLOW_LATE_MS 50.0

/* How slow the machine was over some looks. */
typedef struct pace {
    double wall_us, work_us; /* of the work done at the looks */
    double late_ms;          /* the longest that anything was put off */
    bool hung;               /* the test did not end */
} pace;

static double moment_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void note_late(pace *pc, double late_us)
{
    if (late_us / 1e3 > pc->late_ms)
        pc->late_ms = late_us / 1e3;
}

/* Works for a moment. */
static void look(pace *pc)
{
    double from_us = moment_us(CLOCK_MONOTONIC);
    double work_from_us = moment_us(CLOCK_THREAD_CPUTIME_ID);
    double work_us, wall_us;

    do
        work_us = moment_us(CLOCK_THREAD_CPUTIME_ID) - work_from_us;
    while (work_us < WORK_US);
    wall_us = moment_us(CLOCK_MONOTONIC) - from_us;
    pc->wall_us += wall_us;
    pc->work_us += work_us;
    note_late(pc, wall_us - work_us);
}

/* Writes to the disk on which the test has its files. */
static void look_at_disk(pace *pc, int fd)
{
    double from_us = moment_us(CLOCK_MONOTONIC);

    if (pwrite(fd, "x", 1, 0) == 1 && fdatasync(fd) == 0)
        note_late(pc, moment_us(CLOCK_MONOTONIC) - from_us - DISK_US);
}

/* How many times slower than when idle. */
static double times_of(const pace *pc)
{
    double times = pc->work_us > 0 ? pc->wall_us / pc->work_us : 1;

    return times < 1 ? 1 : times;
}

/* A number below `bound`, of a sequence that is another one for each test. */
static int64_t next_below(int64_t bound)
{
    static uint64_t last;

    if (last == 0)
        last = seed_of_run() * 1000003 + (uint64_t)getpid();
    last = last * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((last >> 33) % (uint64_t)bound);
}

/* Stops the test for a while: mostly a short one, once in four times up to the whole
 * span. */
static void stutter(pid_t pid, int64_t span_ms, pace *pc)
{
    int64_t part_ms = next_below(4) ? span_ms / 10 : span_ms;
    int64_t stop_ms = 1 + next_below(part_ms + 1);
    struct timespec span = {.tv_sec = stop_ms / 1000,
                            .tv_nsec = stop_ms % 1000 * 1000000L};

    kill(pid, SIGSTOP);
    nanosleep(&span, NULL);
    kill(pid, SIGCONT);
    note_late(pc, (double)stop_ms * 1e3);
}

/* Waits until the test ends, and looks meanwhile; one that takes too long is ended.
 * Its status. */
static int
attend(pid_t pid, double times, int64_t stutter_ms, int disk_fd, pace *pc)
{
    struct timespec span = {.tv_nsec = LOOK_MS * 1000000L};
    double end_us = moment_us(CLOCK_MONOTONIC) +
                    HANG_S * 1e6 * (times < TIMES_MAX ? times : TIMES_MAX);
    sigset_t ended;
    int status = 0, looks = 0;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        double due_us;

        if (stutter_ms > 0)
            span.tv_nsec = next_below(LOOK_MS) * 1000000L;
        due_us = moment_us(CLOCK_MONOTONIC) + (double)span.tv_nsec / 1e3;
        if (sigtimedwait(&ended, NULL, &span) < 0 && errno == EAGAIN) {
            note_late(pc, moment_us(CLOCK_MONOTONIC) - due_us);
            look(pc);
            if (++looks % DISK_LOOKS == 0)
                look_at_disk(pc, disk_fd);
            if (stutter_ms > 0)
                stutter(pid, stutter_ms, pc);
        }
        if (moment_us(CLOCK_MONOTONIC) > end_us && !pc->hung) {
            pc->hung = true;
            kill(pid, SIGKILL);
        }
    }
    look(pc);
    return status;
}

/* In the child. */
static void become(char **words, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(words[0], words);
    fprintf(stderr, "judge: %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static int await_end(pid_t pid)
{
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static void remove_folder(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    (void)await_end(pid);
}

/* A try; its exit code. */
static int attempt(char **words, double times, int64_t stutter_ms, pace *pc,
                   const sigset_t *mask)
{
    char folder[] = "/tmp/dibs-XXXXXX", path[64], text[32];
    pid_t pid;
    int status, disk_fd;

    /* Servers of other users have folders in it. */
    if (!mkdtemp(folder) || chmod(folder, 0755) != 0) {
        fprintf(stderr, "judge: %s: %s\n", folder, strerror(errno));
        return 1;
    }
    snprintf(path, sizeof(path), "%s/judge", folder);
    disk_fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    snprintf(text, sizeof(text), "%.2f", times);
    setenv("DIBS_PACE", text, 1);
    setenv("TMPDIR", folder, 1);
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        become(words, mask);
    if (pid < 0) {
        fprintf(stderr, "judge: fork: %s\n", strerror(errno));
        return 1;
    }
    status = attend(pid, times, stutter_ms, disk_fd, pc);
    if (disk_fd >= 0)
        close(disk_fd);
    remove_folder(folder);
    if (pc->hung) {
        fprintf(stderr, "judge: it did not end, and was killed\n");
        return PACE_MISSED;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void note_repetition(const char *test, const pace *pc)
{
    const char *path = getenv("DIBS_JUDGE_LOG");
    FILE *out = path ? fopen(path, "a") : NULL;

    if (!out)
        return;
    fprintf(out, "%s: %.1f times slower than idle, up to %.0f ms late%s\n",
            test, times_of(pc), pc->late_ms,
            pc->hung ? "; it did not end, and was killed" : "");
    fclose(out);
}

/* Whether there is to be another try. */
static bool is_too_slow(const char *test, int number, const pace *pc)
{
    bool slow = times_of(pc) >= SLOW_TIMES || pc->late_ms >= SLOW_LATE_MS;

    fprintf(stderr,
            "judge: try %d of %s was not in time; the machine was %.1f times "
            "slower than idle, timers and disk up to %.0f ms late: %s\n",
            number, test, times_of(pc), pc->late_ms,
            slow ? "too slow to judge" : "quick enough, so it has failed");
    return slow;
}

static double seconds(struct timeval span)
{
    return (double)span.tv_sec + (double)span.tv_usec / 1e6;
}

/* What a test took of the clock and of the processors: in its own code, in the system. */
static void note_cost(const char *test, double from_us)
{
    const char *path = getenv("DIBS_JUDGE_COSTS");
    FILE *out = path ? fopen(path, "a") : NULL;
    struct rusage used;

    if (!out)
        return;
    getrusage(RUSAGE_CHILDREN, &used);
    fprintf(out, "%s %.1f %.1f %.1f\n", test,
            (moment_us(CLOCK_MONOTONIC) - from_us) / 1e6,
            seconds(used.ru_utime), seconds(used.ru_stime));
    fclose(out);
}

/* Others have the machine, mostly not for long. */
static void rest_before(int try)
{
    struct timespec span = {.tv_sec = try < 5 ? 1 << (try - 1) : REST_MAX_S};

    if (span.tv_sec > REST_MAX_S)
        span.tv_sec = REST_MAX_S;
    nanosleep(&span, NULL);
}

/* How slow the machine is before a try. Tests that begin together are in each other's way
 * for a moment, and what one finds then would be its pace for minutes: so a second, longer
 * look counts if it finds less. */
static double first_times(pace *pc)
{
    const struct timespec span = {.tv_nsec = MORE_MS * 1000000L};
    pace more = {0};

    for (int i = 0; i < FIRST_LOOKS; i++)
        look(pc);
    if (times_of(pc) < 2 * SLOW_TIMES)
        return times_of(pc);
    for (int i = 0; i < MORE_LOOKS; i++) {
        nanosleep(&span, NULL);
        look(&more);
    }
    return times_of(&more) < times_of(pc) ? times_of(&more) : times_of(pc);
}

/* Runs the command until there is a judgement; the exit code. */
static int
try_until_judged(char **argv, int tries, double times, const sigset_t *mask)
{
    const char *word = getenv("DIBS_JUDGE_STUTTER");
    int64_t stutter_ms = word ? strtoll(word, NULL, 10) : 0;

    for (int i = 1; i <= tries; i++) {
        pace pc = {0};
        double found;
        int rc;

        if (i > 1)
            rest_before(i);
        found = first_times(&pc);
        if (found > times)
            times = found;
        rc = attempt(argv + 2, times, i == 1 ? stutter_ms : 0, &pc, mask);
        if (rc != PACE_MISSED)
            return rc;
        if (!is_too_slow(argv[1], i, &pc))
            return 1;
        note_repetition(argv[1], &pc);
        times = 2 * (times_of(&pc) > times ? times_of(&pc) : times);
    }
    fprintf(stderr, "judge: %s could not be judged in %d tries\n", argv[1],
            tries);
    return 1;
}

int main(int argc, char **argv)
{
    const char *word = getenv("DIBS_JUDGE_TRIES");
    const char *least = getenv("DIBS_PACE");
    int tries = word ? (int)strtol(word, NULL, 10) : TRIES;
    double times = least ? strtod(least, NULL) : 1;
    double from_us = moment_us(CLOCK_MONOTONIC);
    sigset_t ended, mask;
    int rc;

    if (argc < 3) {
        fprintf(stderr, "usage: judge NAME COMMAND...\n");
        return 2;
    }
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, &mask);
    rc = try_until_judged(argv, tries, times, &mask);
    note_cost(argv[1], from_us);
    return rc;
}
