/* log.c - lines for the log sink of a client. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

void dibs__log(const dibs_client *cl, dibs_log_level level, const char *event,
               const char *format, ...)
{
    char line[512];
    va_list args;

    if (!cl->log || (int)level > atomic_load(&cl->log_level))
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    cl->log(level, event, line, cl->log_arg);
}

void dibs__log_alarm(const dibs_client *cl, dibs__store *st)
{
    dibs_error alarm;

    if (st->ops->alarm && st->ops->alarm(st, &alarm))
        dibs__log(cl, DIBS_LOG_WARN, "alarm", "%s", alarm.message);
}
