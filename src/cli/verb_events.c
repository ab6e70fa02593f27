/* verb_events.c - events ls, show, trim: topics as their operator sees them. */
/* SPDX-License-Identifier: MIT */
#include "cli/changes.h"
#include "cli/confirm.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ls */

/* Where the topics of a list go. */
typedef struct rows {
    dibs__shape shape;
    void *out;
} rows;

/* The pairs of a topic in the JSON of ls and show. */
static void
put_topic(dibsx_json *js, const char *topic, const dibs_topic_state *at)
{
    dibsx_json_pair_text(js, "topic", topic);
    dibsx_json_pair_uint(js, "events", at->count);
    dibsx_json_pair_uint(js, "bytes", (uint64_t)at->bytes);
    dibsx_json_pair_uint(js, "first", at->first);
    dibsx_json_pair_uint(js, "last", at->last);
}

static bool list_topic(const char *topic, const dibs_topic_state *at, void *arg)
{
    const rows *to = arg;

    if (to->shape == DIBS__AS_NAMES) {
        dibs__list_name(topic);
    } else if (to->shape == DIBS__AS_JSON) {
        dibsx_json_open(to->out, '{');
        put_topic(to->out, topic, at);
        dibsx_json_close(to->out, '}');
    } else {
        dibs__table_cell(to->out, topic);
        dibs__table_cellf(to->out, "%" PRIu64, at->count);
        dibs__table_cellf(to->out, "%" PRId64, at->bytes);
        dibs__table_cellf(to->out, "%" PRIu64, at->first);
        dibs__table_cellf(to->out, "%" PRIu64, at->last);
    }
    return true;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    rows to = {shape, out};

    return dibs_events_list(cl, dibs__operands(cmd)[0], list_topic, &to, err);
}

static int list_topics(const dibs__command *cmd)
{
    static const char *const heads[] = {"TOPIC", "EVENTS", "BYTES", "FIRST",
                                        "LAST"};
    static const dibs__listing topics = {.key = "topics",
                                         .heads = heads,
                                         .columns = 5,
                                         .list = list_in_shape};

    return dibs__list(cmd, &topics);
}

/* ---- show */

static int print_topic(const dibs__command *cmd, const dibs_topic_state *at)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        printf("events  %llu\nbytes   %lld\nfirst   %llu\nlast    %llu\n",
               (unsigned long long)at->count, (long long)at->bytes,
               (unsigned long long)at->first, (unsigned long long)at->last);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    put_topic(&report.js, dibs__operands(cmd)[0], at);
    return dibs__report_end(&report);
}

static int show_topic(const dibs__command *cmd)
{
    dibs_topic_state at;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (dibs_events_show(cl, dibs__operands(cmd)[0], &at, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (at.last == 0) {
        dibs__cli_say("nobody has published to %s", dibs__operands(cmd)[0]);
        code = 1;
    } else {
        code = print_topic(cmd, &at);
    }
    dibs_close(cl);
    return code;
}

/* ---- trim */

/* False after a message. */
static bool find_through(const dibs__command *cmd, uint64_t *through)
{
    const char *text = dibs__opt_text(cmd, "through");
    char *end = NULL;

    if (!dibs__opt_given(cmd, "through")) {
        dibs__cli_say("events trim: --through is missing: a position, or end "
                      "for all events");
        return false;
    }
    *through = UINT64_MAX;
    if (strcmp(text, "end") == 0)
        return true;
    errno = 0;
    *through = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && *end == '\0' && !errno)
        return true;
    dibs__cli_say("--through is a position or end, not '%s'", text);
    return false;
}

/* Says how many there are, and asks, unless --yes. */
static int confirm_trim(const dibs__command *cmd, dibs_client *cl, bool all)
{
    const char *topic = dibs__operands(cmd)[0];
    char question[DIBS_NAME_MAX + 128];
    dibs_topic_state at;
    dibs_error err = {0};

    if (dibs__opt_flag(cmd, "yes"))
        return 0;
    if (dibs_events_show(cl, topic, &at, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (all)
        snprintf(question, sizeof(question),
                 "remove all %" PRIu64 " events of %s?", at.count, topic);
    else
        snprintf(question, sizeof(question),
                 "remove the events of %s up to %.32s? It has %" PRIu64 ".",
                 topic, dibs__opt_text(cmd, "through"), at.count);
    return dibs__confirm(question);
}

static int report_trim(const dibs__command *cmd, uint64_t gone)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        if (dibs__opt_flag(cmd, "quiet"))
            return 0;
        printf("%" PRIu64 " events removed\n", gone);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "topic", dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, "removed", gone);
    return dibs__report_end(&report);
}

static int
remove_events(const dibs__command *cmd, dibs_client *cl, uint64_t through)
{
    const char *topic = dibs__operands(cmd)[0];
    uint64_t gone = 0;
    dibs_error err = {0};
    int code = dibs__cli_change_begin(cmd, cl, "events-trim", topic), reported;
    dibs_status rc;

    if (code)
        return code;
    rc = dibs_events_trim(cl, topic, through, &gone, &err);
    dibs__cli_change_end_items(cmd, cl, "events-trim", topic, gone, rc);
    reported = rc == DIBS_OK || gone > 0 ? report_trim(cmd, gone) : 0;
    return rc != DIBS_OK ? dibs__cli_fail(cmd, &err) : reported;
}

static int trim_topic(const dibs__command *cmd)
{
    uint64_t through;
    dibs_client *cl = NULL;
    int code;

    if (!find_through(cmd, &through))
        return DIBS__EXIT_USAGE;
    code = dibs__confirm_possible(cmd);
    if (!code)
        code = dibs__cli_open(cmd, &cl);
    if (!code)
        code = confirm_trim(cmd, cl, through == UINT64_MAX);
    if (!code)
        code = remove_events(cmd, cl, through);
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("through", "POSITION"), .otherwise = "it must be given",
     .help = "The last event to remove; end: all events."},
};

const dibs__option_rows dibs__options_events =
    DIBS__OPTION_ROWS("events trim", options);

const dibs__verb dibs__verb_events = {
    .name = "events",
    .operands = "VERB",
    .summary = "look at topics and their events, and remove events",
    .about = "publish appends an event to a topic, subscribe prints events as "
             "they come.\n",
};

const dibs__verb dibs__verb_events_ls = {
    .name = "events ls",
    .operands = "[PREFIX]",
    .summary = "list topics with the number of their events",
    .about = "Lists each topic to which somebody has published and whose name "
             "begins with PREFIX, with what `dibs events show` says of it. "
             "Topics of dibs itself begin with `dibs.`. On Redis this looks at "
             "all keys of the server.\n",
    .examples = "The ten topics with the most bytes:\n"
                "  dibs events ls --json | jq -r '.topics | "
                "sort_by(-.bytes)[:10][].topic'\n",
    .exits = "0 listed, even when there are none\n",
    .options = "json,names",
    .max_operands = 1,
    .kind = DIBS__TOPICS,
    .run = list_topics,
};

const dibs__verb dibs__verb_events_show = {
    .name = "events show",
    .operands = "TOPIC",
    .summary = "say how many events a topic keeps, and which",
    .about = "first and last are positions: of the oldest event that is kept, "
             "and of the newest that ever was.\n",
    .exits = "0 printed\n"
             "1 nobody has published to the topic\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__TOPICS,
    .run = show_topic,
};

const dibs__verb dibs__verb_events_trim = {
    .name = "events trim",
    .operands = "TOPIC",
    .summary = "remove the oldest events of a topic",
    .about = "Asks first, unless --yes. Readers that had not read them learn "
             "of the gap. Positions go on.\n",
    .examples = "All events:\n"
                "  dibs events trim orders --through end\n"
                "In a script:\n"
                "  dibs events trim orders --through 1794800000000000 --yes\n",
    .exits = "0 removed, or there were none\n"
             "1 not confirmed\n",
    .options = "json,yes,reason",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__TOPICS,
    .run = trim_topic,
};
