/* verb_queue_push.c - queue push: one item, or one for each line of standard input. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include <dibs/queue.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BATCH_BYTES = 1 << 20, /* of one push of many */
    PART_BYTES = 64 << 10  /* of one read */
};

/* Lines that were read and not pushed. */
typedef struct lines {
    const dibs__command *cmd;
    dibs_queue *queue;
    const dibs_push_opts *opts;
    size_t extra; /* bytes of the headers, which each item has */
    char *bytes;
    size_t len;
    uint64_t pushed;
} lines;

/* A line that has begun, a part, and the newline that the last line may lack. */
enum { LINES_BYTES = DIBS_ITEM_MAX + PART_BYTES + 1 };

static int print_pushed(const dibs__command *cmd, const dibs_pushed *pushed)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        printf("%" PRIu64 "%s\n", pushed->id,
               pushed->duplicate ? " duplicate" : "");
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, "id", pushed->id);
    dibsx_json_pair_bool(&report.js, "duplicate", pushed->duplicate);
    return dibs__report_end(&report);
}

static int push_one(const dibs__command *cmd, dibs_queue *queue,
                    const dibs_push_opts *opts)
{
    dibs_pushed pushed = {.id = 0};
    dibs_error err = {0};
    dibs__input in;
    int code;
    dibs_status rc = dibs__input_read(&in, dibs__operands(cmd)[1], "an item",
                                      DIBS_ITEM_MAX, &err);

    if (rc == DIBS_OK)
        rc = dibs_queue_push(queue, in.data, in.len, opts, &pushed, &err);
    dibsx_buf_fini(&in.buf);
    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    code = print_pushed(cmd, &pushed);
    if (!code && pushed.duplicate && dibs__opt_flag(cmd, "fail-duplicate"))
        code = 1;
    return code;
}

/* Fills a queue that has room for some of them only, and waits for room for one item: of
 * many, all or none are pushed. */
static dibs_status push_parts(lines *ls, const dibs_push_item *items,
                              size_t count, int *code, dibs_error *err)
{
    dibs_pushed pushed[DIBS_QUEUE_BATCH];
    dibs_push_opts opts = *ls->opts;
    dibs_status rc = DIBS_OK;
    size_t part = count;

    for (size_t at = 0; at < count && rc == DIBS_OK && *code == 0;) {
        if (part > count - at)
            part = count - at;
        opts.wait_ms = part > 1 ? 0 : ls->opts->wait_ms;
        rc = dibs_queue_push_many(ls->queue, &items[at], part, &opts, pushed,
                                  err);
        if (rc == DIBS_FULL && part > 1) {
            part /= 2;
            rc = DIBS_OK;
            continue;
        }
        for (size_t i = 0; rc == DIBS_OK && *code == 0 && i < part; i++)
            *code = print_pushed(ls->cmd, &pushed[i]);
        ls->pushed += rc == DIBS_OK ? part : 0;
        at += part;
    }
    return rc;
}

/* Pushes lines from `at` on, as many as one push can have. */
static dibs_status push_batch(lines *ls, size_t *at, int *code, dibs_error *err)
{
    dibs_push_item items[DIBS_QUEUE_BATCH];
    size_t count = 0, bytes = 0;
    const char *end;

    while (count < DIBS_QUEUE_BATCH && *at < ls->len &&
           (end = memchr(ls->bytes + *at, '\n', ls->len - *at))) {
        size_t len = (size_t)(end - (ls->bytes + *at));

        bytes += len + ls->extra;
        if (bytes > BATCH_BYTES && count > 0)
            break;
        items[count++] = (dibs_push_item){.data = ls->bytes + *at, .len = len};
        *at += len + 1;
    }
    return push_parts(ls, items, count, code, err);
}

/* Pushes all whole lines, and keeps the rest. */
static dibs_status push_lines(lines *ls, int *code, dibs_error *err)
{
    size_t at = 0, before = 1;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && *code == 0 && at != before) {
        before = at;
        rc = push_batch(ls, &at, code, err);
    }
    if (rc != DIBS_OK)
        return rc;
    memmove(ls->bytes, ls->bytes + at, ls->len - at);
    ls->len -= at;
    if (ls->len > DIBS_ITEM_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "an item may have %d bytes; line %" PRIu64
                          " has more",
                          DIBS_ITEM_MAX, ls->pushed + 1);
    return DIBS_OK;
}

/* Each line goes as soon as it is there: the input may be a pipe without end. */
static dibs_status follow_stdin(lines *ls, int *code, dibs_error *err)
{
    size_t got = 1;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && *code == 0 && got > 0) {
        rc = dibs__input_part(ls->bytes + ls->len, PART_BYTES, &got, err);
        if (rc != DIBS_OK)
            break;
        ls->len += got;
        if (got == 0 && ls->len > 0 && ls->bytes[ls->len - 1] != '\n')
            ls->bytes[ls->len++] = '\n';
        rc = push_lines(ls, code, err);
    }
    return rc;
}

/* With a length in front, which has three bytes at most. */
static size_t count_headers(const char *const *headers)
{
    size_t bytes = 3;

    for (; headers && *headers; headers++)
        bytes += strlen(*headers) + 1;
    return bytes;
}

static int push_stdin(const dibs__command *cmd, dibs_queue *queue,
                      const dibs_push_opts *opts)
{
    lines ls = {.cmd = cmd,
                .queue = queue,
                .opts = opts,
                .extra = count_headers(opts->headers),
                .bytes = dibsx_zalloc(LINES_BYTES)};
    dibs_error err = {0};
    int code = 0;

    if (!ls.bytes)
        return dibs__cli_nomem("the lines of standard input");
    if (follow_stdin(&ls, &code, &err) != DIBS_OK) {
        code = dibs__cli_fail(cmd, &err);
        if (!dibs__opt_flag(cmd, "quiet"))
            dibs__cli_say("queue push: it has pushed %" PRIu64 " line%s",
                          ls.pushed, ls.pushed == 1 ? "" : "s");
    }
    dibsx_free(ls.bytes);
    return code;
}

static int64_t ms_of(const dibs__command *cmd, const char *option)
{
    return dibs__opt_given(cmd, option) ? dibs__opt_ms(cmd, option) : 0;
}

static dibs_push_opts read_opts(const dibs__command *cmd)
{
    return (dibs_push_opts){
        .size = sizeof(dibs_push_opts),
        .delay_ms = ms_of(cmd, "delay"),
        .priority = (int32_t)dibs__opt_int(cmd, "priority"),
        .tries = dibs__opt_given(cmd, "tries")
                     ? (uint32_t)dibs__opt_int(cmd, "tries")
                     : 0,
        .dedup_id = dibs__opt_text(cmd, "id"),
        .dedup_ms = ms_of(cmd, "window"),
        .to = dibs__opt_text(cmd, "to"),
        .headers = dibs__opt_all(cmd, "header"),
        .wait_ms = ms_of(cmd, "wait"),
    };
}

/* 0 when the command line makes sense, else the exit code. */
static int check_usage(const dibs__command *cmd)
{
    const char *why = NULL;

    if (dibs__opt_flag(cmd, "lines") && dibs__operand_count(cmd) > 1)
        why = "queue push: --lines reads standard input; give no DATA";
    else if (dibs__opt_flag(cmd, "lines") && dibs__opt_given(cmd, "id"))
        why = "queue push: --lines pushes many items and --id is of one; give "
              "one of them";
    else if (dibs__opt_given(cmd, "window") && !dibs__opt_given(cmd, "id"))
        why = "queue push: --window is about an id; give --id too";
    if (why)
        dibs__cli_say("%s", why);
    return why ? DIBS__EXIT_USAGE : 0;
}

static int push_command(const dibs__command *cmd)
{
    dibs_push_opts opts = read_opts(cmd);
    dibs_queue *queue = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = check_usage(cmd);

    if (!code)
        code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs_queue_new(cl, dibs__operands(cmd)[0],
                       DIBS_QUEUE_OPTS(.durability =
                                           dibs__opt_text(cmd, "durability")),
                       &queue, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (dibs__opt_flag(cmd, "lines"))
        code = push_stdin(cmd, queue, &opts);
    else
        code = push_one(cmd, queue, &opts);
    dibs_queue_free(queue);
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_SPAN("delay", 0, DIBS__YEAR), .otherwise = "at once",
     .help = "Deliver the item no sooner than after this long."},
    {DIBS__ROW_INT("priority", "N", INT32_MIN, INT32_MAX), .initial = "0",
     .help = "Items of a higher priority are delivered first."},
    {DIBS__ROW_INT("tries", "N", 1, UINT32_MAX), .otherwise = "the queue's",
     .help = "Attempts of this item until it is dead."},
    {DIBS__ROW_TEXT("id", "ID"), .otherwise = "none",
     .help = "Push nothing while an item with this id, of up to 64 bytes, is "
             "ready, delayed or out. The line then has the number of that "
             "item, and \"duplicate\"."},
    {DIBS__ROW_SPAN("window", 0, DIBS__YEAR), .otherwise = "none",
     .help = "With --id: nor within this long after that push, also if the "
             "item is done."},
    {.name = "fail-duplicate",
     .help = "Exit with 1 when the item is a duplicate."},
    {DIBS__ROW_TEXT("to", "WORKER"), .otherwise = "any worker",
     .help = "The worker that should have it (--as of queue run). Others "
             "take it if they have nothing else to do."},
    {DIBS__ROW_TEXT("header", "KEY=VALUE"), .many = true,
     .help = "A piece of information that workers see with the data. May be "
             "given again."},
    {.name = "lines",
     .help = "Push an item for each line of standard input, as the lines "
             "come, in batches."},
    {DIBS__ROW_WAIT, .otherwise = "do not wait",
     .help = "Wait at most this long while the queue is full."},
};

const dibs__option_rows dibs__options_queue_push =
    DIBS__OPTION_ROWS("queue push", options);

const dibs__verb dibs__verb_queue_push = {
    .name = "queue push",
    .operands = "NAME [DATA]",
    .summary = "push an item, or many",
    .about =
        "Pushes DATA, or what standard input has, and prints the number of "
        "the item. An item has up to 256 KiB. A push whose answer was lost is "
        "sent again and makes one item.\n",
    .examples = "An order, once however often this runs within five minutes:\n"
                "  dibs queue push orders --id order-17 --window 5m "
                "'{\"order\":17}'\n"
                "An hour from now, before others:\n"
                "  dibs queue push mail --delay 1h --priority 10 <letter.txt\n"
                "Each line of a file:\n"
                "  dibs queue push urls --lines <urls.txt\n",
    .exits = "0 pushed; also a duplicate, but for --fail-duplicate\n"
             "1 --fail-duplicate: it is a duplicate\n"
             "69 the store is out of reach; the item may be there\n"
             "75 the queue is full\n",
    .options = "json,durability",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__QUEUES,
    .run = push_command,
};
