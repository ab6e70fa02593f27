/* verb_queue.c - queue ls, stats, set, pause, resume, rm: queues as a whole. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/changes.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include <dibs/queue_admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- ls */

/* Where the queues of a list go. */
typedef struct listing {
    dibs_client *cl;
    dibs__shape shape;
    void *out;
    dibs_status rc;
    dibs_error *err;
} listing;

static void
add_row(dibs__table *table, const char *name, const dibs_queue_info *info)
{
    const uint64_t counts[] = {info->ready, info->later, info->out, info->dead,
                               info->consumers};
    char span[32] = "";

    if (info->ready > 0)
        dibsx_duration_text(info->oldest_ms, span, sizeof(span));
    dibs__table_cell(table, name);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        dibs__table_cellf(table, "%" PRIu64, counts[i]);
    dibs__table_cell(table, span);
    dibs__table_cell(table, info->settings.paused ? "paused" : "running");
}

static void
add_object(dibsx_json *js, const char *name, const dibs_queue_info *info)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_pair_bool(js, "paused", info->settings.paused);
    dibsx_json_pair_uint(js, "ready", info->ready);
    dibsx_json_pair_uint(js, "later", info->later);
    dibsx_json_pair_uint(js, "out", info->out);
    dibsx_json_pair_uint(js, "dead", info->dead);
    dibsx_json_pair_uint(js, "workers", info->consumers);
    dibsx_json_pair_int(js, "oldest_ms", info->oldest_ms);
    dibsx_json_close(js, '}');
}

/* A queue that has gone meanwhile is left out. */
static bool show_queue(const char *name, void *arg)
{
    listing *ls = arg;
    dibs_queue_info info = {.size = sizeof(info)};

    if (ls->shape == DIBS__AS_NAMES) {
        dibs__list_name(name);
        return true;
    }
    ls->rc = dibs_queue_stats(ls->cl, name, &info, ls->err);
    if (ls->rc == DIBS_NOTFOUND)
        ls->rc = DIBS_OK;
    else if (ls->rc == DIBS_OK && ls->shape == DIBS__AS_JSON)
        add_object(ls->out, name, &info);
    else if (ls->rc == DIBS_OK)
        add_row(ls->out, name, &info);
    return ls->rc == DIBS_OK;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    listing ls = {.cl = cl, .shape = shape, .out = out, .err = err};
    dibs_status rc =
        dibs_queue_list(cl, dibs__operands(cmd)[0], show_queue, &ls, err);

    return rc == DIBS_OK ? ls.rc : rc;
}

static int list_queues(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "READY",   "LATER",  "OUT",
                                        "DEAD", "WORKERS", "OLDEST", "STATE"};
    static const dibs__listing queues = {.key = "queues",
                                         .heads = heads,
                                         .columns = 8,
                                         .list = list_in_shape};

    return dibs__list(cmd, &queues);
}

/* ---- stats */

/* Counts at two moments. */
typedef struct rates {
    dibs_queue_info first;
    int64_t span_ms; /* 0: there was one look */
} rates;

/* The number that came between. A queue that was made anew meanwhile has new totals. */
static uint64_t came_since(uint64_t now, uint64_t then)
{
    return now < then ? now : now - then;
}

static double per_second(uint64_t now, uint64_t then, int64_t span_ms)
{
    return (double)came_since(now, then) * 1000 / (double)span_ms;
}

/* Attempts that ended badly, whether the worker said so or died. */
static uint64_t failed_of(const dibs_queue_info *info)
{
    return info->nacked + info->lost;
}

static void
add_rates(dibsx_json *js, const dibs_queue_info *info, const rates *rt)
{
    dibsx_json_pair_int(js, "span_ms", rt->span_ms);
    dibsx_json_pair_uint(js, "pushed_in_span",
                         came_since(info->pushed, rt->first.pushed));
    dibsx_json_pair_uint(js, "delivered_in_span",
                         came_since(info->delivered, rt->first.delivered));
    dibsx_json_pair_uint(js, "acked_in_span",
                         came_since(info->acked, rt->first.acked));
    dibsx_json_pair_uint(js, "failed_in_span",
                         came_since(failed_of(info), failed_of(&rt->first)));
}

static int
print_json(const char *name, const dibs_queue_info *info, const rates *rt)
{
    const dibs_queue_settings *set = &info->settings;
    const struct {
        const char *key;
        uint64_t number;
    } pairs[] = {
        {"ready", info->ready},
        {"later", info->later},
        {"out", info->out},
        {"dead", info->dead},
        {"done", info->done},
        {"workers", info->consumers},
        {"waiting", info->waiting},
        {"pushed", info->pushed},
        {"delivered", info->delivered},
        {"acked", info->acked},
        {"nacked", info->nacked},
        {"lost", info->lost},
        {"died", info->died},
        {"dropped", info->dropped},
        {"purged", info->purged},
        {"cap", set->cap},
        {"tries", set->tries},
        {"deads", set->deads},
        {"lost_max", set->lost_max},
        {"keep_done", set->keep_done},
    };
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", name);
    dibsx_json_pair_bool(&report.js, "paused", set->paused);
    dibsx_json_pair_bool(&report.js, "serial", set->serial);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        dibsx_json_pair_uint(&report.js, pairs[i].key, pairs[i].number);
    dibsx_json_pair_int(&report.js, "oldest_ms", info->oldest_ms);
    if (rt->span_ms > 0)
        add_rates(&report.js, info, rt);
    return dibs__report_end(&report);
}

static void print_counts(const dibs_queue_info *info)
{
    char span[32];

    printf("ready    %" PRIu64, info->ready);
    if (info->ready > 0) {
        dibsx_duration_text(info->oldest_ms, span, sizeof(span));
        printf(", the oldest for %s", span);
    }
    printf("\nlater    %" PRIu64 "\nout      %" PRIu64 "\ndead     %" PRIu64
           "\n",
           info->later, info->out, info->dead);
    if (info->settings.keep_done > 0)
        printf("done     %" PRIu64 " records\n", info->done);
    printf("workers  %" PRIu64 ", %" PRIu64 " waiting\n", info->consumers,
           info->waiting);
    printf("totals   pushed %" PRIu64 ", delivered %" PRIu64 ", acked %" PRIu64
           ", nacked %" PRIu64 ", lost %" PRIu64 ", died %" PRIu64
           ", dropped %" PRIu64 ", purged %" PRIu64 "\n",
           info->pushed, info->delivered, info->acked, info->nacked, info->lost,
           info->died, info->dropped, info->purged);
}

static int print_text(const dibs_queue_info *info, const rates *rt)
{
    const dibs_queue_settings *set = &info->settings;

    printf("state    %s%s\n", set->paused ? "paused" : "running",
           set->serial ? ", serial" : "");
    print_counts(info);
    if (rt->span_ms > 0)
        printf("rates    pushed %.1f/s, delivered %.1f/s, acked %.1f/s, "
               "failed %.1f/s\n",
               per_second(info->pushed, rt->first.pushed, rt->span_ms),
               per_second(info->delivered, rt->first.delivered, rt->span_ms),
               per_second(info->acked, rt->first.acked, rt->span_ms),
               per_second(failed_of(info), failed_of(&rt->first), rt->span_ms));
    printf("limits   cap %u, tries %u, deads %u, lost-max %u", set->cap,
           set->tries, set->deads, set->lost_max);
    if (set->keep_done > 0)
        printf(", keep-done %u", set->keep_done);
    putchar('\n');
    return dibs__out_done();
}

static dibs_status read_info(dibs_client *cl, const char *name,
                             dibs_queue_info *info, dibs_error *err)
{
    *info = (dibs_queue_info){.size = sizeof(*info)};
    return dibs_queue_stats(cl, name, info, err);
}

/* Two looks, --interval apart. */
static dibs_status look_twice(const dibs__command *cmd, dibs_client *cl,
                              dibs_queue_info *info, rates *rt, dibs_error *err)
{
    const char *name = dibs__operands(cmd)[0];
    int64_t pause_ms = dibs__opt_ms(cmd, "interval");
    struct timespec pause = {.tv_sec = pause_ms / 1000,
                             .tv_nsec = pause_ms % 1000 * DIBSX_MS};
    dibsx_nsec begun_at = dibsx_now();
    dibs_status rc = read_info(cl, name, &rt->first, err);

    if (rc != DIBS_OK)
        return rc;
    (void)nanosleep(&pause, NULL);
    rc = read_info(cl, name, info, err);
    rt->span_ms = (dibsx_now() - begun_at) / DIBSX_MS;
    return rc;
}

static int show_stats(const dibs__command *cmd)
{
    const char *name = dibs__operands(cmd)[0];
    dibs_queue_info info;
    rates rt = {.span_ms = 0};
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    rc = dibs__opt_given(cmd, "interval")
             ? look_twice(cmd, cl, &info, &rt, &err)
             : read_info(cl, name, &info, &err);
    if (rc != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (dibs__opt_flag(cmd, "json"))
        code = print_json(name, &info, &rt);
    else
        code = print_text(&info, &rt);
    dibs_close(cl);
    return code;
}

/* ---- changes */

static void take_number(const dibs__command *cmd, const char *option,
                        uint32_t field, uint32_t *number, uint32_t *fields)
{
    if (!dibs__opt_given(cmd, option))
        return;
    *number = (uint32_t)dibs__opt_int(cmd, option);
    *fields |= field;
}

static dibs_queue_settings read_settings(const dibs__command *cmd)
{
    dibs_queue_settings set = {.size = sizeof(set)};

    take_number(cmd, "cap", DIBS_QUEUE_SET_CAP, &set.cap, &set.fields);
    take_number(cmd, "tries", DIBS_QUEUE_SET_TRIES, &set.tries, &set.fields);
    take_number(cmd, "deads", DIBS_QUEUE_SET_DEADS, &set.deads, &set.fields);
    take_number(cmd, "lost-max", DIBS_QUEUE_SET_LOST_MAX, &set.lost_max,
                &set.fields);
    take_number(cmd, "keep-done", DIBS_QUEUE_SET_KEEP_DONE, &set.keep_done,
                &set.fields);
    if (dibs__opt_given(cmd, "serial")) {
        set.serial = strcmp(dibs__opt_text(cmd, "serial"), "yes") == 0;
        set.fields |= DIBS_QUEUE_SET_SERIAL;
    }
    return set;
}

/* The settings that were given. */
static int
print_settings(const dibs__command *cmd, const dibs_queue_settings *set)
{
    const struct {
        const char *key;
        uint32_t field, number;
    } pairs[] = {
        {"cap", DIBS_QUEUE_SET_CAP, set->cap},
        {"tries", DIBS_QUEUE_SET_TRIES, set->tries},
        {"deads", DIBS_QUEUE_SET_DEADS, set->deads},
        {"lost_max", DIBS_QUEUE_SET_LOST_MAX, set->lost_max},
        {"keep_done", DIBS_QUEUE_SET_KEEP_DONE, set->keep_done},
    };
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json"))
        return 0;
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (set->fields & pairs[i].field)
            dibsx_json_pair_uint(&report.js, pairs[i].key, pairs[i].number);
    if (set->fields & DIBS_QUEUE_SET_SERIAL)
        dibsx_json_pair_bool(&report.js, "serial", set->serial);
    return dibs__report_end(&report);
}

static int change_settings(const dibs__command *cmd)
{
    dibs_queue_settings set = read_settings(cmd);
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code;

    if (set.fields == 0) {
        dibs__cli_say("queue set: no setting is given; give --cap, --tries, "
                      "--deads, --lost-max, --keep-done or --serial");
        return DIBS__EXIT_USAGE;
    }
    code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    rc = dibs_queue_set(cl, dibs__operands(cmd)[0], &set, &err);
    dibs__cli_change_made(cmd, cl, "queue-set", dibs__operands(cmd)[0],
                          dibs__cli_change_reason(cmd), rc);
    code =
        rc == DIBS_OK ? print_settings(cmd, &set) : dibs__cli_fail(cmd, &err);
    dibs_close(cl);
    return code;
}

/* A call that needs the name alone. */
typedef dibs_status
queue_fn(dibs_client *cl, const char *queue, dibs_error *err);

/* Such a change, and its pair in the JSON. */
typedef struct change {
    const char *action;
    queue_fn *call;
    const char *key;
    bool value;
} change;

static int print_change(const dibs__command *cmd, const change *made)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json"))
        return 0;
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_bool(&report.js, made->key, made->value);
    return dibs__report_end(&report);
}

static int change_queue(const dibs__command *cmd, const change *wanted)
{
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    rc = wanted->call(cl, dibs__operands(cmd)[0], &err);
    dibs__cli_change_made(cmd, cl, wanted->action, dibs__operands(cmd)[0],
                          dibs__cli_change_reason(cmd), rc);
    code =
        rc == DIBS_OK ? print_change(cmd, wanted) : dibs__cli_fail(cmd, &err);
    dibs_close(cl);
    return code;
}

static int pause_queue(const dibs__command *cmd)
{
    static const change pause = {"queue-pause", dibs_queue_pause, "paused",
                                 true};

    return change_queue(cmd, &pause);
}

static int resume_queue(const dibs__command *cmd)
{
    static const change resume = {"queue-resume", dibs_queue_resume, "paused",
                                  false};

    return change_queue(cmd, &resume);
}

static int remove_queue(const dibs__command *cmd)
{
    static const change removal = {"queue-rm", dibs_queue_remove, "removed",
                                   true};

    return change_queue(cmd, &removal);
}

static const dibs__option options[] = {
    {DIBS__ROW_INTERVAL, .otherwise = "one look, without rates",
     .verbs = "queue stats",
     .help = "Look twice, this long apart, and show the rates between."},
    {DIBS__ROW_INT("cap", "N", 0, UINT32_MAX),
     .help = "Items that may be ready, delayed or out; then a push finds the "
             "queue full. 1000000 is the default."},
    {DIBS__ROW_INT("tries", "N", 0, UINT32_MAX),
     .help = "Attempts of an item until it is dead. 16 is the default."},
    {DIBS__ROW_INT("deads", "N", 0, UINT32_MAX),
     .help = "Dead letters that are kept; the oldest are dropped, as others "
             "come. 10000 is the default."},
    {DIBS__ROW_INT("lost-max", "N", 0, UINT32_MAX),
     .help = "Deliveries of an item that may end with the death of their "
             "worker, until it is dead. 4 is the default."},
    {DIBS__ROW_INT("keep-done", "N", 0, DIBS_QUEUE_KEEP_MAX),
     .help = "Keep records of the last N items that were acked, each with its "
             "result; queue peek --place done shows them. 0 is the default."},
    {DIBS__ROW_CHOICE("serial", "WHETHER", "yes|no"),
     .help = "Deliver one item at a time: the next one when it is settled, "
             "and a retry holds up the rest."},
};

const dibs__option_rows dibs__options_queue =
    DIBS__OPTION_ROWS("queue set", options);

const dibs__verb dibs__verb_queue = {
    .name = "queue",
    .operands = "VERB",
    .summary = "queues of items, each done by one worker",
    .about =
        "An item is delivered at least once, until a worker has acked it or "
        "it is dead; one worker has it at a time. An item whose worker dies "
        "comes back. Items go by priority, then in the order of pushes. "
        "docs/queues.md has patterns and promises.\n",
};

const dibs__verb dibs__verb_queue_ls = {
    .name = "queue ls",
    .operands = "[PREFIX]",
    .summary = "list queues with the number of their items",
    .about = "A queue is there while it has an item, a dead letter, a worker "
             "or a setting, and for a while after: on Redis for a day. On "
             "Redis this looks at all keys of the server.\n",
    .exits = "0 listed, even when there are none\n",
    .options = "json,names",
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = list_queues,
};

const dibs__verb dibs__verb_queue_stats = {
    .name = "queue stats",
    .operands = "NAME",
    .summary = "print how many items a queue has, and its totals",
    .about = "Items are ready, later (delayed), out (with a worker) or dead. "
             "The totals count from when the queue was made. lost: deliveries "
             "whose worker died. dropped: dead letters beyond deads, and items "
             "that a Redis server has lost. With "
             "--interval, failed are the attempts that were nacked or lost.\n",
    .examples = "Rates, measured for ten seconds:\n"
                "  dibs queue stats mail --interval 10s\n",
    .exits = "0 printed\n"
             "1 there is no such queue\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = show_stats,
};

const dibs__verb dibs__verb_queue_set = {
    .name = "queue set",
    .operands = "NAME",
    .summary = "change the settings of a queue",
    .about = "The settings are in the store, for all users of the queue. 0 "
             "sets a number back to its default. A queue with a setting stays "
             "when it is empty, until dibs queue rm.\n",
    .examples = "Three attempts, and no more than 10,000 items:\n"
                "  dibs queue set mail --tries 3 --cap 10000\n",
    .exits = "0 changed\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = change_settings,
};

const dibs__verb dibs__verb_queue_pause = {
    .name = "queue pause",
    .operands = "NAME",
    .summary = "deliver nothing for now",
    .about = "Pushes go on, and so does the work on items that are out. "
             "A paused queue stays so until dibs queue resume.\n",
    .exits = "0 paused, also if it was\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = pause_queue,
};

const dibs__verb dibs__verb_queue_resume = {
    .name = "queue resume",
    .operands = "NAME",
    .summary = "deliver again",
    .exits = "0 resumed, also if it was not paused\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = resume_queue,
};

const dibs__verb dibs__verb_queue_rm = {
    .name = "queue rm",
    .operands = "NAME",
    .summary = "forget an empty queue with its settings and totals",
    .exits = "0 removed\n"
             "1 there is no such queue\n"
             "75 it has items, dead letters or workers; purge it first\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = remove_queue,
};
