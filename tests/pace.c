/* pace.c - see pace.h. */
/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PACE_MAX 30.0

static double read_pace(void)
{
    const char *word = getenv("DIBS_PACE");
    double pace = word ? strtod(word, NULL) : 1;

    return pace < 1 ? 1 : pace > PACE_MAX ? PACE_MAX : pace;
}

int64_t pace_ms(int64_t span_ms)
{
    static _Atomic double known;
    double pace = atomic_load(&known);

    if (pace < 1) {
        pace = read_pace();
        atomic_store(&known, pace);
    }
    return (int64_t)((double)span_ms * pace);
}

void pace_missed(const char *file, int line, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s:%d: not in time: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(stderr);
    /* Past the sanitizers, which would have something to say about threads. */
    syscall(SYS_exit_group, PACE_MISSED);
    abort();
}
