/* verb_watch.c - watch: changes of locks, a line each.
 *
 * Looks at the store at intervals and compares with the look before. A party is
 * known by its owner, which is new for every acquisition. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/poll_verb.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { SEEN_MAX = 1000000, TEXT_MAX = 16 * 1024 };

/* One holder or waiter as it was seen. */
typedef struct seen {
    char *text; /* ours: name and the party's texts, each with its NUL */
    const char *name;
    dibs_party party;
    uint32_t capacity;
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
    for (size_t i = 0; i < lk->count; i++)
        dibsx_free(lk->items[i].text);
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

static const char *next_text(const char **at)
{
    const char *text = *at;

    *at += strlen(text) + 1;
    return text;
}

/* The texts of the party are the store's, for the time of the call. */
static bool copy_texts(seen *item, const char *name)
{
    dibs_party *party = &item->party;
    const bool stale = party->stale != NULL;
    const char *at;
    dibsx_buf text;

    dibsx_buf_init(&text, TEXT_MAX);
    dibsx_buf_printf(&text, "%s%c%s%c%s%c%s%c%s%c%s%c%s%c%s", name, 0,
                     party->owner, 0, party->host, 0, party->identity, 0,
                     party->label, 0, party->meta, 0, party->mode, 0,
                     stale ? party->stale : "");
    at = item->text = dibsx_buf_take(&text);
    dibsx_buf_fini(&text);
    if (!at)
        return false;
    item->name = next_text(&at);
    party->owner = next_text(&at);
    party->host = next_text(&at);
    party->identity = next_text(&at);
    party->label = next_text(&at);
    party->meta = next_text(&at);
    party->mode = next_text(&at);
    party->stale = stale ? at : NULL;
    return true;
}

static bool look_add(look *lk, const dibs_lease_info *info,
                     const dibs_party *party, bool holds)
{
    seen item = {.party = *party, .capacity = info->capacity, .holds = holds};

    if (!look_grow(lk) || !copy_texts(&item, info->name))
        return false;
    lk->items[lk->count++] = item;
    return true;
}

static bool add_parties(const dibs_lease_info *info, void *arg)
{
    look *lk = arg;

    for (size_t i = 0; i < info->holder_count && !lk->failed; i++) {
        if (!info->holders[i].left)
            lk->failed = !look_add(lk, info, &info->holders[i], true);
    }
    for (size_t i = 0; i < info->waiter_count && !lk->failed; i++)
        lk->failed = !look_add(lk, info, &info->waiters[i], false);
    return !lk->failed;
}

/* The same owner under the same name in another look. Both are in order of
 * names, so that *from can move along. */
static const seen *find_seen(const look *lk, const seen *item, size_t *from)
{
    while (*from < lk->count && strcmp(lk->items[*from].name, item->name) < 0)
        ++*from;
    for (size_t i = *from;
         i < lk->count && strcmp(lk->items[i].name, item->name) == 0; i++) {
        if (strcmp(lk->items[i].party.owner, item->party.owner) == 0)
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
    dibsx_json_pair_uint(&report.js, "capacity", item->capacity);
    dibs__json_party_pairs(&report.js, &item->party);
    return dibs__report_end(&report);
}

static void event_text(dibsx_buf *line, const char *time, const char *event,
                       const seen *item)
{
    const dibs_party *party = &item->party;

    dibsx_buf_printf(line, "%s  %-8s  ", time, event);
    dibs__clean(line, item->name);
    dibsx_buf_puts(line, "  ");
    dibs__mode_text(line, party, item->capacity);
    dibsx_buf_puts(line, "  ");
    dibs__party_text(line, party);
    if (party->priority)
        dibsx_buf_printf(line, "  priority %d", (int)party->priority);
    if (party->fence)
        dibsx_buf_printf(line, "  fence %llu",
                         (unsigned long long)party->fence);
    if (party->stale) {
        dibsx_buf_puts(line, "  stale: ");
        dibs__clean(line, party->stale);
    }
    dibsx_buf_putc(line, '\n');
}

static int
print_event(const dibs__command *cmd, const char *event, const seen *item)
{
    char time[40];
    dibsx_buf line;
    int code;

    dibs__wall_text(dibsx_wall_us(), time, sizeof(time));
    if (dibs__opt_flag(cmd, "json"))
        return print_json(time, event, item);
    dibsx_buf_init(&line, TEXT_MAX);
    event_text(&line, time, event, item);
    dibs__out_text(dibsx_buf_text(&line));
    code = dibsx_buf_ok(&line) ? dibs__out_done() : DIBS__EXIT_INTERNAL;
    dibsx_buf_fini(&line);
    return code;
}

/* A party as it was seen last; a holder that has gone has released. */
static int print_last(const dibs__command *cmd, const seen *item)
{
    seen last = *item;

    last.party.left = item->holds;
    return print_event(cmd, item->holds ? "released" : "left", &last);
}

/* Prints the parties that have gone. A waiter that holds now was granted. */
static int
print_gone(const dibs__command *cmd, const look *before, const look *now)
{
    size_t from = 0;
    int code = 0;

    for (size_t i = 0; i < before->count && !code; i++) {
        if (!find_seen(now, &before->items[i], &from))
            code = print_last(cmd, &before->items[i]);
    }
    return code;
}

/* The change of a party; NULL when there is none. */
static const char *news(const seen *old, const seen *item, bool first)
{
    if (old && old->holds == item->holds)
        return item->party.stale && !old->party.stale ? "stale" : NULL;
    if (item->holds)
        return first ? "held" : "granted";
    return first ? "waiting" : "joined";
}

static int print_come(const dibs__command *cmd, const look *before,
                      const look *now, bool first)
{
    size_t from = 0;
    int code = 0;

    for (size_t i = 0; i < now->count && !code; i++) {
        const seen *item = &now->items[i];
        const char *event = news(find_seen(before, item, &from), item, first);

        if (event)
            code = print_event(cmd, event, item);
    }
    return code;
}

typedef struct watching {
    look before;
    bool begun;
} watching;

static int look_once(const dibs__command *cmd, dibs_client *cl, void *arg)
{
    watching *wt = arg;
    dibs_error err = {0};
    look now = {0};
    dibs_status rc =
        dibs_lease_list(cl, dibs__operands(cmd)[0], add_parties, &now, &err);
    int code = 0;

    if (rc == DIBS_OK && now.failed)
        rc = dibsx_fail(&err, DIBS_NOMEM,
                        "there are too many locks to watch; ask for names with "
                        "a longer beginning");
    if (rc != DIBS_OK) {
        look_fini(&now);
        return dibs__poll_verb_failed(cmd, &err);
    }
    code = print_gone(cmd, &wt->before, &now);
    if (!code)
        code = print_come(cmd, &wt->before, &now, !wt->begun);
    look_fini(&wt->before);
    wt->before = now;
    wt->begun = true;
    return code;
}

static int watch_locks(const dibs__command *cmd)
{
    watching wt = {.begun = false};
    int code = dibs__poll_verb(cmd, look_once, &wt);

    look_fini(&wt.before);
    return code;
}

const dibs__verb dibs__verb_watch = {
    .name = "watch",
    .operands = "[PREFIX]",
    .summary = "print changes of locks as they happen",
    .about =
        "First what is there (held, waiting), then one line per change: "
        "granted, released, stale (its holder seems to be gone), joined (the "
        "queue) and left (it). With --json each line is an object. Goes on "
        "until it is interrupted.\n",
    .examples = "Follow the locks of a workflow:\n"
                "  dibs watch --interval 200ms workflow:\n",
    .exits = "128+N ended by signal N\n",
    .options = "json,interval",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = watch_locks,
};
