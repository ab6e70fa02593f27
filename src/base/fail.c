/* fail.c - the one way to raise an error.
 *
 * Owns nothing; callable from any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_retriable(dibs_status status)
{
    return status == DIBS_UNAVAIL || status == DIBS_UNKNOWN ||
           status == DIBS_BUSY || status == DIBS_TIMEOUT ||
           status == DIBS_EARLY;
}

/* Drops the last character when the cut went through it. */
static void end_whole(char *message)
{
    size_t len = strlen(message);
    size_t tail = 0; /* continuation bytes at the end */
    size_t wanted;
    unsigned char lead;

    while (tail < len && tail < 4 &&
           ((unsigned char)message[len - 1 - tail] & 0xC0) == 0x80)
        tail++;
    if (tail == len)
        return;
    lead = (unsigned char)message[len - 1 - tail];
    wanted = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (tail < wanted)
        message[len - 1 - tail] = '\0';
}

/* Control characters would break the promise of one line. */
static void make_one_line(char *message)
{
    for (char *c = message; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = ' ';
    }
}

__attribute__((format(printf, 4, 0))) static void
fill(dibs_error *err, dibs_status status, const char *origin,
     const char *format, va_list args)
{
    /* Made apart from *err, whose own text may be among the arguments. */
    dibs_error made = {.status = status, .retriable = is_retriable(status)};
    int len;

    if (!err)
        return;
    (void)snprintf(made.origin, sizeof(made.origin), "%s", origin);
    len = vsnprintf(made.message, sizeof(made.message), format, args);
    if (len >= (int)sizeof(made.message))
        end_whole(made.message);
    make_one_line(made.message);
    *err = made;
}

dibs_status
dibsx_fail(dibs_error *err, dibs_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fill(err, status, "", format, args);
    va_end(args);
    return status;
}

dibs_status dibsx_fail_at(dibs_error *err, dibs_status status,
                          const char *origin, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fill(err, status, origin, format, args);
    va_end(args);
    return status;
}

dibs_status dibsx_nomem(dibs_error *err, const char *thing, ...)
{
    char named[sizeof(err->message)];
    va_list args;

    va_start(args, thing);
    (void)vsnprintf(named, sizeof(named), thing, args);
    va_end(args);
    return dibsx_fail(err, DIBS_NOMEM,
                      "there is no memory for %s: the system or a limit of the "
                      "process refused it; free some, or raise the limit",
                      named);
}

dibs_status dibsx_unanswered(dibs_error *err)
{
    if (err) {
        err->status = DIBS_UNKNOWN;
        err->retriable = is_retriable(DIBS_UNKNOWN);
    }
    return DIBS_UNKNOWN;
}

const char *dibsx_errno_name(int number)
{
    const char *name = strerrorname_np(number);

    return name ? name : "EUNKNOWN";
}
