/* queue_findings.c - what doctor says of a queue. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/queue_findings.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* The queue, and who hears of it. */
typedef struct report {
    const char *name;
    const dibs_queue_info *info;
    dibs_finding_fn *each;
    void *arg;
    char oldest[32]; /* how long the first item has been ready */
    int count;
} report;

__attribute__((format(printf, 4, 5))) static void
tell(report *to, dibs_severity severity, const char *advice, const char *format,
     ...)
{
    char subject[DIBS_NAME_MAX + 16], found[200];
    const dibs_finding finding = {.severity = severity,
                                  .subject = subject,
                                  .found = found,
                                  .advice = advice};
    va_list args;

    snprintf(subject, sizeof(subject), "queue %s", to->name);
    va_start(args, format);
    vsnprintf(found, sizeof(found), format, args);
    va_end(args);
    to->each(&finding, to->arg);
    to->count++;
}

/* Nine tenths of a bound are near it. */
static bool is_near(uint64_t count, uint32_t bound)
{
    return count > 0 && count >= bound - bound / 10;
}

/* Items that wait: for the end of a pause, for a worker, or for a free one. */
static void look_at_waiting(report *to)
{
    const dibs_queue_info *info = to->info;

    if (info->ready == 0)
        return;
    if (info->settings.paused)
        tell(to, DIBS_NOTE,
             "`dibs queue resume` lets deliveries go on, if nobody holds them "
             "back on purpose",
             "paused with ready items: %" PRIu64 ", the oldest for %s",
             info->ready, to->oldest);
    else if (info->consumers == 0 && info->oldest_ms >= DIBS__QUEUE_ALONE_MS)
        tell(to, DIBS_CAUTION,
             "start workers (`dibs queue run`), or drop what nobody wants "
             "(`dibs queue purge`)",
             "no worker is there for the ready items: %" PRIu64
             ", the oldest for %s",
             info->ready, to->oldest);
    else if (info->consumers > 0 && info->oldest_ms >= DIBS__QUEUE_SLOW_MS)
        tell(to, DIBS_NOTE,
             "look at the rates (`dibs queue stats --interval 10s`): add "
             "workers, or find out why items fail",
             "workers do not keep up: the oldest ready item has waited for %s, "
             "workers: %" PRIu64,
             to->oldest, info->consumers);
}

static void look_at_bounds(report *to)
{
    const dibs_queue_info *info = to->info;
    const dibs_queue_settings *set = &info->settings;
    uint64_t items = info->ready + info->later + info->out;

    if (is_near(items, set->cap))
        tell(to, DIBS_CAUTION,
             "pushes fail at the bound: add workers, drop items (`dibs queue "
             "purge`), or raise it (`dibs queue set --cap`)",
             "%s: %" PRIu64 " items of at most %" PRIu32,
             items >= set->cap ? "full" : "nearly full", items, set->cap);
    if (is_near(info->dead, set->deads))
        tell(to, DIBS_CAUTION,
             "the oldest are dropped beyond the bound: look at them (`dibs "
             "queue dead`), then `dibs queue redrive` or `dibs queue purge "
             "--dead`",
             "dead letters: %" PRIu64 " of at most %" PRIu32, info->dead,
             set->deads);
}

int dibs__queue_findings(const char *name, const dibs_queue_info *info,
                         dibs_finding_fn *each, void *arg)
{
    report to = {.name = name, .info = info, .each = each, .arg = arg};

    dibsx_duration_text(info->oldest_ms, to.oldest, sizeof(to.oldest));
    look_at_waiting(&to);
    look_at_bounds(&to);
    return to.count;
}
