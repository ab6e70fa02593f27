/* verb_publish.c - publish: an event to a topic, or a message that nobody keeps. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/fail.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int report_position(const dibs__command *cmd, uint64_t position)
{
    dibs__report report;

    if (dibs__opt_flag(cmd, "quiet"))
        return 0;
    if (!dibs__opt_flag(cmd, "json")) {
        printf("%llu\n", (unsigned long long)position);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "topic", dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, "position", position);
    return dibs__report_end(&report);
}

static int send_one(const dibs__command *cmd, dibs_client *cl, const void *data,
                    size_t len)
{
    dibs_error err = {0};
    dibs__report report;

    if (dibs_message_send(cl, dibs__operands(cmd)[0], data, len, &err) !=
        DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (dibs__opt_flag(cmd, "quiet") || !dibs__opt_flag(cmd, "json"))
        return 0;
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "topic", dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, "bytes", len);
    return dibs__report_end(&report);
}

static int publish_one(const dibs__command *cmd, dibs_client *cl,
                       const void *data, size_t len)
{
    dibs_append_opts opts = {
        .size = sizeof(opts),
        .keep = (uint32_t)dibs__opt_int(cmd, "keep"),
        .keep_bytes = dibs__opt_int(cmd, "keep-bytes"),
        .keep_ms = dibs__opt_ms(cmd, "keep-for"),
    };
    uint64_t position = 0;
    dibs_error err = {0};

    if (dibs__opt_flag(cmd, "live"))
        return send_one(cmd, cl, data, len);
    if (dibs_events_append(cl, dibs__operands(cmd)[0], data, len, &opts,
                           &position, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return report_position(cmd, position);
}

static int fail_stdin(const dibs__command *cmd, bool too_long)
{
    dibs_error err = {0};

    if (too_long)
        (void)dibsx_fail(&err, DIBS_INVALID,
                         "an event may have %d bytes; standard input has more",
                         DIBS_EVENT_MAX);
    else
        (void)dibsx_fail_at(&err, DIBS_INTERNAL, dibsx_errno_name(errno),
                            "cannot read standard input: %s", strerror(errno));
    return dibs__cli_fail(cmd, &err);
}

static int publish_stdin(const dibs__command *cmd, dibs_client *cl)
{
    char part[8192];
    dibsx_buf buf;
    ssize_t got;
    int code;

    dibsx_buf_init(&buf, DIBS_EVENT_MAX);
    do {
        got = read(STDIN_FILENO, part, sizeof(part));
        if (got > 0)
            dibsx_buf_add(&buf, part, (size_t)got);
    } while ((got > 0 && dibsx_buf_ok(&buf)) || (got < 0 && errno == EINTR));
    if (got < 0 || !dibsx_buf_ok(&buf))
        code = fail_stdin(cmd, got >= 0);
    else
        code = publish_one(cmd, cl, dibsx_buf_text(&buf), buf.len);
    dibsx_buf_fini(&buf);
    return code;
}

/* Reads up to the end of a line, or of the input, which may have any bytes; the line has
 * room for DIBS_EVENT_MAX + 1. False: there is none, or it is longer: *len is beyond. */
static bool read_line(char *line, size_t *len)
{
    int c = EOF;

    *len = 0;
    while (*len <= DIBS_EVENT_MAX && (c = getc(stdin)) != EOF && c != '\n')
        line[(*len)++] = (char)c;
    return *len <= DIBS_EVENT_MAX && (*len > 0 || c == '\n');
}

/* One event for each line. */
static int publish_lines(const dibs__command *cmd, dibs_client *cl)
{
    char line[DIBS_EVENT_MAX + 1];
    size_t len = 0;
    int code = 0;

    while (!code && read_line(line, &len))
        code = publish_one(cmd, cl, line, len);
    if (!code && (ferror(stdin) || len > DIBS_EVENT_MAX))
        code = fail_stdin(cmd, len > DIBS_EVENT_MAX);
    return code;
}

static int check_usage(const dibs__command *cmd)
{
    const char *why = NULL;

    if (dibs__opt_flag(cmd, "live") &&
        (dibs__opt_given(cmd, "keep") || dibs__opt_given(cmd, "keep-bytes") ||
         dibs__opt_given(cmd, "keep-for")))
        why = "--live keeps nothing: leave out --keep, --keep-bytes and "
              "--keep-for";
    else if (dibs__opt_flag(cmd, "lines") && dibs__operand_count(cmd) > 1)
        why = "publish: --lines reads standard input; give no DATA";
    if (why)
        dibs__cli_say("%s", why);
    return why ? DIBS__EXIT_USAGE : 0;
}

static int publish_event(const dibs__command *cmd)
{
    const char *data =
        dibs__operand_count(cmd) > 1 ? dibs__operands(cmd)[1] : "-";
    dibs_client *cl = NULL;
    int code = check_usage(cmd);

    if (code)
        return code;
    code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs__opt_flag(cmd, "lines"))
        code = publish_lines(cmd, cl);
    else if (strcmp(data, "-") == 0)
        code = publish_stdin(cmd, cl);
    else
        code = publish_one(cmd, cl, data, strlen(data));
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {.name = "live",
     .help = "Send a message to those who listen now (subscribe --live), at "
             "most once, and keep nothing. It has 3,900 bytes at most."},
    {.name = "lines",
     .help = "Publish each line of standard input as an event of its own."},
    {DIBS__ROW_INT("keep", "N", 1, DIBS_EVENT_KEEP_MAX), .initial = "100000",
     .help = "Keep so many events of the topic; the oldest go."},
    {DIBS__ROW_INT("keep-bytes", "N", 1, INT64_MAX), .initial = "268435456",
     .help = "Keep so many bytes of data."},
    {DIBS__ROW_SPAN("keep-for", 1, DIBS__YEAR), .initial = "168h",
     .help = "Keep events for so long."},
};

const dibs__option_rows dibs__options_publish =
    DIBS__OPTION_ROWS("publish", options);

const dibs__verb dibs__verb_publish = {
    .name = "publish",
    .operands = "TOPIC [DATA]",
    .summary = "append an event to a topic",
    .about = "Every subscriber gets the event, and the store keeps it for "
             "those that come later. Prints its position. Without DATA, or if "
             "it is -, standard input is the event. An event has 65,536 bytes "
             "at most. If an answer of the store is lost, the command asks "
             "again: the event is in the topic once.\n",
    .examples = "Tell every instance:\n"
                "  dibs publish job-completed '{\"job\": 42}'\n"
                "Each line of a file, the topic bounded by a day:\n"
                "  dibs publish --lines --keep-for 1d orders <orders.txt\n"
                "Of no use later, so kept by nobody:\n"
                "  dibs publish --live progress '42 of 100'\n",
    .exits = "0 the event is in the topic; with --live: it was sent\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__TOPICS,
    .run = publish_event,
};
