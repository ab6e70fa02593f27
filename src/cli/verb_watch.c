/* verb_watch.c - watch: changes of locks, a line each.
 *
 * Looks at the store at intervals and compares with the look before. A party is
 * known by its owner, which is new for every acquisition. Runs on the main
 * thread; signals are taken where it sleeps. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/print.h"
#include "cli/signals.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { SEEN_MAX = 1000000 };

/* One holder or waiter as it was seen. */
typedef struct seen {
    char name[DIBS_NAME_MAX + 1];
    char owner[DIBS_OWNER_SIZE];
    char *host; /* ours, as is label */
    char *label;
    int64_t pid;
    uint64_t fence; /* 0 for a waiter */
    bool holds;
} seen;

/* One look, in the order in which the store lists. */
typedef struct look {
    seen *items;
    size_t count;
    size_t room;
    bool failed;
} look;

static void look_fini(look *lk)
{
    for (size_t i = 0; i < lk->count; i++) {
        dibsx_free(lk->items[i].host);
        dibsx_free(lk->items[i].label);
    }
    dibsx_free(lk->items);
    memset(lk, 0, sizeof(*lk));
}

static bool look_grow(look *lk)
{
    size_t room = lk->room ? lk->room * 2 : 64;
    seen *items;

    if (lk->count < lk->room)
        return true;
    items = room <= SEEN_MAX ? dibsx_realloc_n(lk->items, room, sizeof(seen))
                             : NULL;
    if (!items)
        return false;
    lk->items = items;
    lk->room = room;
    return true;
}

static bool
look_add(look *lk, const char *name, const dibs_party *party, bool holds)
{
    seen *item;

    if (!look_grow(lk))
        return false;
    item = &lk->items[lk->count++];
    item->host = dibsx_strdup(party->host);
    item->label = dibsx_strdup(party->label);
    snprintf(item->name, sizeof(item->name), "%s", name);
    snprintf(item->owner, sizeof(item->owner), "%s", party->owner);
    item->pid = party->pid;
    item->fence = party->fence;
    item->holds = holds;
    return item->host && item->label;
}

static bool each(const dibs_lease_info *info, void *arg)
{
    look *lk = arg;

    for (size_t i = 0; i < info->holder_count && !lk->failed; i++) {
        if (!info->holders[i].left)
            lk->failed = !look_add(lk, info->name, &info->holders[i], true);
    }
    for (size_t i = 0; i < info->waiter_count && !lk->failed; i++)
        lk->failed = !look_add(lk, info->name, &info->waiters[i], false);
    return !lk->failed;
}

/* The same owner under the same name in another look. Both are in order of
 * names, so that *from can move along. */
static const seen *find(const look *lk, const seen *item, size_t *from)
{
    while (*from < lk->count && strcmp(lk->items[*from].name, item->name) < 0)
        ++*from;
    for (size_t i = *from;
         i < lk->count && strcmp(lk->items[i].name, item->name) == 0; i++) {
        if (strcmp(lk->items[i].owner, item->owner) == 0)
            return &lk->items[i];
    }
    return NULL;
}

static int print_json(const char *time, const char *event, const seen *item)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "time", time);
    dibsx_json_pair_text(&report.js, "event", event);
    dibsx_json_pair_text(&report.js, "name", item->name);
    dibsx_json_pair_text(&report.js, "owner", item->owner);
    dibsx_json_pair_text(&report.js, "host", item->host);
    dibsx_json_pair_int(&report.js, "pid", item->pid);
    dibsx_json_pair_text(&report.js, "label", item->label);
    dibsx_json_pair_uint(&report.js, "fence", item->fence);
    return dibs__report_end(&report);
}

static int
print_event(const dibs__command *cmd, const char *event, const seen *item)
{
    const dibs_party party = {.host = item->host,
                              .pid = item->pid,
                              .label = item->label};
    char time[40];
    dibsx_buf line;
    int code;

    dibs__wall_text(time, sizeof(time));
    if (dibs__opt_flag(cmd, "json"))
        return print_json(time, event, item);
    dibsx_buf_init(&line, 8192);
    dibsx_buf_printf(&line, "%s  %-8s  ", time, event);
    dibs__clean(&line, item->name);
    dibsx_buf_puts(&line, "  ");
    dibs__party_text(&line, &party);
    if (item->fence)
        dibsx_buf_printf(&line, "  fence %llu",
                         (unsigned long long)item->fence);
    dibsx_buf_putc(&line, '\n');
    dibs__out_text(dibsx_buf_text(&line));
    code = dibsx_buf_ok(&line) ? dibs__out_done() : DIBS__EXIT_INTERNAL;
    dibsx_buf_fini(&line);
    return code;
}

/* Who has gone: a waiter that holds now has not, it was granted. */
static int
print_gone(const dibs__command *cmd, const look *before, const look *now)
{
    size_t from = 0;
    int code = 0;

    for (size_t i = 0; i < before->count && !code; i++) {
        if (!find(now, &before->items[i], &from))
            code =
                print_event(cmd, before->items[i].holds ? "released" : "left",
                            &before->items[i]);
    }
    return code;
}

static int print_come(const dibs__command *cmd, const look *before,
                      const look *now, bool first)
{
    size_t from = 0;
    int code = 0;

    for (size_t i = 0; i < now->count && !code; i++) {
        const seen *item = &now->items[i], *old = find(before, item, &from);
        const char *event = item->holds ? first ? "held" : "granted"
                            : first     ? "waiting"
                                        : "joined";

        if (!old || old->holds != item->holds)
            code = print_event(cmd, event, item);
    }
    return code;
}

/* Waits one interval. The signal that ends it all, or 0. */
static int pause_for(const dibs__signals *sig, int64_t span_ms)
{
    struct timespec span = {(time_t)(span_ms / 1000),
                            (long)(span_ms % 1000) * 1000000};
    int number = sigtimedwait(&sig->served, NULL, &span);

    if (number == SIGTSTP)
        dibs__signal_stop(false);
    return number > 0 && dibs__signal_fatal(number) ? number : 0;
}

/* One look and what it brought. 0 to go on, or the exit code. */
static int
step(const dibs__command *cmd, dibs_client *cl, look *before, bool *first)
{
    dibs_error err = {0};
    look now = {0};
    dibs_status rc =
        dibs_lease_list(cl, dibs__operands(cmd)[0], each, &now, &err);
    int code = 0;

    if (rc == DIBS_OK && now.failed)
        rc = dibsx_fail(&err, DIBS_NOMEM, "too many locks to watch");
    if (rc != DIBS_OK) {
        look_fini(&now);
        code = dibs__cli_fail(cmd, &err);
        return err.retriable ? 0 : code;
    }
    code = print_gone(cmd, before, &now);
    if (!code)
        code = print_come(cmd, before, &now, *first);
    look_fini(before);
    *before = now;
    *first = false;
    return code;
}

int dibs__verb_watch(const dibs__command *cmd)
{
    int64_t interval_ms = dibs__opt_ms(cmd, "interval");
    look before = {0};
    dibs__signals sig;
    dibs_client *cl = NULL;
    bool first = true;
    int code, fatal = 0;

    dibs__signals_block(&sig);
    code = dibs__cli_open(cmd, &cl);
    while (!code && !fatal) {
        code = step(cmd, cl, &before, &first);
        if (!code)
            fatal = pause_for(&sig, interval_ms);
    }
    look_fini(&before);
    dibs_close(cl);
    if (fatal)
        dibs__signal_die(fatal);
    return code;
}
