/* run_ground.c - the ground of `dibs run`: starts run_ground.py, which disturbs
 * those who watch over a command, and is that command.
 *
 *   run_ground [OPTION...] FOLDER   the ground; its options are in run_ground.py
 *   run_ground tree WITNESS         a holder: a tree that writes while it lives
 *   run_ground next WITNESS         the next one: writes for a while, and ends
 *
 * Each write is one line: the fencing token, which process of the tree it was,
 * and when, in microseconds. */
/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* What nobody ends is gone after LIFE_US. */
enum { PAUSE_US = 2000, SUCCESSOR_US = 10000, HASTE_US = 3000 };
enum { NEXT_US = 300000, LIFE_US = 120 * 1000 * 1000 };

static int witness;
static char end_path[4096];  /* when it is there, the top ends */
static char stop_path[4096]; /* ... all of it */
static const char *token;
static int64_t begun_us;

static int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static void rest(long us)
{
    struct timespec pause = {.tv_nsec = us * 1000};

    nanosleep(&pause, NULL);
}

/* False when it is to end. */
static bool act(const char *kind)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "%s %s %lld\n", token, kind,
                       (long long)now_us());

    return write(witness, line, (size_t)len) == len &&
           access(stop_path, F_OK) != 0 && now_us() - begun_us < LIFE_US;
}

_Noreturn static void write_on(const char *kind)
{
    while (act(kind))
        rest(PAUSE_US);
    _exit(0);
}

_Noreturn static void in_group(void)
{
    write_on("group");
}

_Noreturn static void in_session(void)
{
    setsid();
    write_on("session");
}

_Noreturn static void without_parent(void)
{
    if (fork() != 0)
        _exit(0);
    setsid();
    if (fork() != 0)
        _exit(0);
    write_on("orphan");
}

/* Each starts the next and is gone. */
_Noreturn static void succeed(const char *kind, long us)
{
    while (act(kind)) {
        rest(us);
        if (fork() != 0)
            _exit(0);
        setsid();
    }
    _exit(0);
}

_Noreturn static void successors(void)
{
    succeed("successor", SUCCESSOR_US);
}

_Noreturn static void hasty_successors(void)
{
    succeed("hasty", HASTE_US);
}

static int run_tree(void)
{
    void (*const kinds[])(void) = {in_group, in_session, without_parent,
                                   successors, hasty_successors};

    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (fork() == 0)
            kinds[i]();
    while (act("top") && access(end_path, F_OK) != 0)
        rest(PAUSE_US);
    return 0;
}

static int run_next(void)
{
    while (act("next") && now_us() - begun_us < NEXT_US)
        rest(PAUSE_US);
    return 0;
}

static int run_script(char **argv)
{
    char own[4096] = "";

    if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
        perror("/proc/self/exe");
    /* What outlives those who watch over it falls to the script, to be reaped. */
    prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L);
    argv[0] = (char *)RUN_GROUND_SCRIPT;
    setenv("DIBS_BIN", DIBS_PROGRAM, 1);
    setenv("RUN_GROUND_TREE", own, 1);
    execvp(argv[0], argv);
    perror(RUN_GROUND_SCRIPT);
    return 1;
}

int main(int argc, char **argv)
{
    bool tree = argc == 3 && strcmp(argv[1], "tree") == 0;

    if (!tree && (argc != 3 || strcmp(argv[1], "next") != 0))
        return run_script(argv);
    token = getenv("DIBS_LOCK_TOKEN");
    witness = open(argv[2], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (!token || witness < 0) {
        fprintf(stderr, "%s is not there, or this is not run by dibs\n",
                argv[2]);
        return 1;
    }
    snprintf(end_path, sizeof(end_path), "%s.end", argv[2]);
    snprintf(stop_path, sizeof(stop_path), "%s.stop", argv[2]);
    begun_us = now_us();
    return tree ? run_tree() : run_next();
}
