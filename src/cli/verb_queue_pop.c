/* verb_queue_pop.c - queue pop, ack, nack, extend: a delivery in the hands of a script.
 *
 * pop detaches the delivery from this process: the store keeps it for --ttl, and the
 * token settles it from another process. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/json_data.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/signal_wait.h"
#include "cli/token.h"
#include "cli/value_json.h"
#include "cli/verbs.h"
#include "exec/signals.h"
#include <dibs/queue.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A pop on its way. */
typedef struct pop {
    const dibs__command *cmd;
    dibs_client *cl;
    dibs_queue *queue;
    dibs_item *item;
    dibs__token_file file; /* signals are served while there is one */
    dibs__signals sig;
    int fatal; /* a signal that ended the wait; 0: none */
    char token[DIBS_ITEM_TOKEN_SIZE];
} pop;

static void add_headers(dibsx_json *js, const dibs_item *item)
{
    const char *header;

    dibsx_json_key(js, "headers");
    dibsx_json_open(js, '{');
    for (size_t i = 0; (header = dibs_item_header_at(item, i)) != NULL; i++)
        dibs__json_header(js, header);
    dibsx_json_close(js, '}');
}

static int print_json(const pop *p)
{
    const void *data;
    dibs__report report;
    size_t len;

    data = dibs_item_data(p->item, &len);
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(p->cmd)[0]);
    dibsx_json_pair_uint(&report.js, "id", dibs_item_id(p->item));
    dibsx_json_pair_text(&report.js, "token", p->token[0] ? p->token : NULL);
    dibsx_json_pair_uint(&report.js, "fence", dibs_item_fence(p->item));
    dibsx_json_pair_uint(&report.js, "attempt", dibs_item_attempt(p->item));
    dibsx_json_pair_uint(&report.js, "lost", dibs_item_losses(p->item));
    dibsx_json_pair_int(&report.js, "priority", dibs_item_priority(p->item));
    add_headers(&report.js, p->item);
    dibsx_json_data(&report.js, "data", data, len);
    return dibs__report_end(&report);
}

static int print_item(const pop *p)
{
    const void *data;
    size_t len;

    if (dibs__opt_flag(p->cmd, "json"))
        return print_json(p);
    data = dibs_item_data(p->item, &len);
    dibs__out(data, len);
    if (!dibs__opt_flag(p->cmd, "raw"))
        dibs__out_text("\n");
    return dibs__out_done();
}

/* The data is out first: an item whose print failed comes back. */
static int print_and_ack(pop *p)
{
    dibs_error err = {0};
    int code = print_item(p);

    if (!code && dibs_item_ack(p->item, &err) != DIBS_OK)
        code = dibs__cli_fail(p->cmd, &err);
    return code;
}

/* Nobody has the token: the item would be out for all of its ttl. If the store does not
 * answer, it is. */
static void give_back(const pop *p)
{
    dibs_item *item = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_queue_adopt(p->queue, p->token, &item, &err);

    if (rc == DIBS_OK)
        rc =
            dibs_item_nack(item, 0, "its token could not be handed over", &err);
    if (rc != DIBS_OK)
        (void)dibs__cli_fail(p->cmd, &err);
    dibs_item_free(item);
}

static int print_and_leave(pop *p)
{
    char line[DIBS_ITEM_TOKEN_SIZE + 1];
    dibs_error err = {0};
    dibs_status rc = dibs_item_detach(p->item, p->token, &err);
    int code;

    if (rc != DIBS_OK)
        return dibs__cli_fail(p->cmd, &err);
    snprintf(line, sizeof(line), "%s\n", p->token);
    if (p->file.path)
        rc = dibs__token_file_put(&p->file, line, &err);
    if (p->file.path && rc == DIBS_OK) /* A print may last. */
        pthread_sigmask(SIG_SETMASK, &p->sig.old_mask, NULL);
    code = rc == DIBS_OK ? print_item(p) : dibs__cli_fail(p->cmd, &err);
    /* A token that is in its file can still be used. */
    if (code && (rc != DIBS_OK || !p->file.path))
        give_back(p);
    return code;
}

static int64_t wait_of(const dibs__command *cmd)
{
    if (dibs__opt_flag(cmd, "nonblock"))
        return 0;
    return dibs__opt_given(cmd, "wait") ? dibs__opt_ms(cmd, "wait") : -1;
}

/* ---- waiting with a draft of the token's file, which a signal must not leave behind */

static void cancel_wait(void *arg)
{
    dibs_queue_cancel(arg);
}

static dibs_status reserve_served(pop *p, dibs_error *err)
{
    dibs__signal_wait wait = {.cancel = cancel_wait, .arg = p->queue};
    dibs_status rc = dibs__signal_wait_begin(&wait, &p->sig, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs_queue_reserve(p->queue, wait_of(p->cmd), &p->item, err);
    dibs__signal_wait_end(&wait);
    p->fatal = wait.fatal;
    return rc;
}

static int take_item(pop *p)
{
    dibs_queue_opts opts = {.size = sizeof(opts),
                            .as = dibs__opt_text(p->cmd, "as"),
                            .ttl_ms = dibs__opt_ms(p->cmd, "ttl")};
    dibs_error err = {0};
    dibs_status rc = dibs_queue_new(p->cl, dibs__operands(p->cmd)[0], &opts,
                                    &p->queue, &err);

    if (rc == DIBS_OK && p->file.path)
        rc = reserve_served(p, &err);
    else if (rc == DIBS_OK)
        rc = dibs_queue_reserve(p->queue, wait_of(p->cmd), &p->item, &err);
    if (p->fatal)
        return DIBS__EXIT_SIGNAL + p->fatal;
    if (rc == DIBS_BUSY || rc == DIBS_TIMEOUT) {
        int busy_code = (int)dibs__opt_int(p->cmd, "conflict-exit-code");

        if (busy_code != 0)
            (void)dibs__cli_fail(p->cmd, &err);
        return busy_code;
    }
    return rc == DIBS_OK ? 0 : dibs__cli_fail(p->cmd, &err);
}

static int check_pop(const dibs__command *cmd)
{
    bool ack = dibs__opt_flag(cmd, "ack");
    const char *why = NULL;

    if (ack && dibs__opt_given(cmd, "token-file"))
        why = "queue pop: --ack leaves no token for --token-file; give one of "
              "them";
    else if (!ack && !dibs__opt_given(cmd, "token-file") &&
             !dibs__opt_flag(cmd, "json"))
        why =
            "queue pop: the token would be lost, and the item come back; give "
            "--token-file FILE, --json or --ack";
    else if (dibs__opt_flag(cmd, "nonblock") && dibs__opt_given(cmd, "wait"))
        why = "queue pop: -n does not wait and -w does; give one of them";
    if (why)
        dibs__cli_say("%s", why);
    return why ? DIBS__EXIT_USAGE : 0;
}

/* An item that is not settled comes back. */
static int pop_to(pop *p)
{
    int code = dibs__cli_open(p->cmd, &p->cl);

    if (!code)
        code = take_item(p);
    if (!code && p->item)
        code = dibs__opt_flag(p->cmd, "ack") ? print_and_ack(p)
                                             : print_and_leave(p);
    dibs_item_free(p->item);
    dibs_queue_free(p->queue);
    dibs_close(p->cl);
    return code;
}

static int pop_item(const dibs__command *cmd)
{
    pop p = {.cmd = cmd, .file = {.fd = -1}};
    const char *path = dibs__opt_text(cmd, "token-file");
    dibs_error err = {0};
    int code = check_pop(cmd);

    if (code)
        return code;
    if (!path)
        return pop_to(&p);
    dibs__signals_block(&p.sig);
    if (dibs__token_file_open(&p.file, path, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    code = pop_to(&p);
    dibs__token_file_close(&p.file);
    if (!p.fatal)
        p.fatal = dibs__signals_pending(&p.sig);
    if (p.fatal && code)
        dibs__signal_die(p.fatal);
    return code;
}

/* As $DIBS_ITEM_TOKEN of queue run: ID-FENCE-ATTEMPT. */
static bool is_name_of_delivery(const char *text)
{
    static const char digits[] = "0123456789";

    for (int part = 1;; part++) {
        size_t len = strspn(text, digits);

        if (len == 0 || text[len] != (part < 3 ? '-' : '\0'))
            return false;
        if (part == 3)
            return true;
        text += len + 1;
    }
}

static dibs_status check_token(const char *token, dibs_error *err)
{
    if (!is_name_of_delivery(token))
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "%s is DIBS_ITEM_TOKEN of queue run, which names a "
                      "delivery and is no token of queue pop; the worker "
                      "itself keeps and settles the item by the exit code of "
                      "its command",
                      token);
}

/* The operand, or the first line of --token-file. */
static dibs_status read_token(const dibs__command *cmd,
                              char out[DIBS_ITEM_TOKEN_SIZE], dibs_error *err)
{
    const char *path = dibs__opt_text(cmd, "token-file");
    const char *word = dibs__operands(cmd)[1];
    FILE *file;
    bool read;

    if (!path == !word)
        return dibsx_fail(err, DIBS_INVALID,
                          "give TOKEN, or --token-file FILE%s",
                          path ? ", not both" : "");
    if (word) {
        if (strlen(word) >= DIBS_ITEM_TOKEN_SIZE)
            return dibsx_fail(err, DIBS_INVALID, "that is not a token");
        memcpy(out, word, strlen(word) + 1);
        return check_token(word, err);
    }
    file = fopen(path, "re");
    if (!file)
        return dibsx_fail(err, DIBS_INVALID, "cannot open %s: %s", path,
                          strerror(errno));
    read = fgets(out, DIBS_ITEM_TOKEN_SIZE, file) != NULL;
    fclose(file);
    if (!read)
        return dibsx_fail(err, DIBS_INVALID, "%s has no token", path);
    out[strcspn(out, "\n")] = '\0';
    return DIBS_OK;
}

typedef dibs_status
settle_fn(const dibs__command *cmd, dibs_item *item, dibs_error *err);

static int print_outcome(const dibs__command *cmd, const dibs_item *item,
                         const char *outcome)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json"))
        return 0;
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, "id", dibs_item_id(item));
    dibsx_json_pair_uint(&report.js, "attempt", dibs_item_attempt(item));
    dibsx_json_pair_text(&report.js, "outcome", outcome);
    return dibs__report_end(&report);
}

static int
settle_item(const dibs__command *cmd, settle_fn *settle, const char *outcome)
{
    char token[DIBS_ITEM_TOKEN_SIZE];
    dibs_queue_opts opts = {.size = sizeof(opts)};
    dibs_queue *queue = NULL;
    dibs_item *item = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code;
    dibs_status rc = read_token(cmd, token, &err);

    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs__opt_has(cmd, "durability"))
        opts.durability = dibs__opt_text(cmd, "durability");
    rc = dibs_queue_new(cl, dibs__operands(cmd)[0], &opts, &queue, &err);
    if (rc == DIBS_OK)
        rc = dibs_queue_adopt(queue, token, &item, &err);
    if (rc == DIBS_OK)
        rc = settle(cmd, item, &err);
    code = rc == DIBS_OK ? print_outcome(cmd, item, outcome)
                         : dibs__cli_fail(cmd, &err);
    dibs_item_free(item);
    dibs_queue_free(queue);
    dibs_close(cl);
    return code;
}

static dibs_status
ack(const dibs__command *cmd, dibs_item *item, dibs_error *err)
{
    return dibs_item_ack_result(item, dibs__opt_text(cmd, "result"), err);
}

static dibs_status
nack(const dibs__command *cmd, dibs_item *item, dibs_error *err)
{
    const char *reason = dibs__opt_text(cmd, "reason");

    if (dibs__opt_flag(cmd, "dead"))
        return dibs_item_dead(item, reason, err);
    return dibs_item_nack(item,
                          dibs__opt_given(cmd, "delay")
                              ? dibs__opt_ms(cmd, "delay")
                              : -1,
                          reason, err);
}

static dibs_status
extend(const dibs__command *cmd, dibs_item *item, dibs_error *err)
{
    return dibs_item_extend(item, dibs__opt_ms(cmd, "ttl"), err);
}

static int ack_item(const dibs__command *cmd)
{
    return settle_item(cmd, ack, "acked");
}

static int nack_item(const dibs__command *cmd)
{
    if (dibs__opt_flag(cmd, "dead") && dibs__opt_given(cmd, "delay")) {
        dibs__cli_say("queue nack: --dead does not come back after --delay; "
                      "give one of them");
        return DIBS__EXIT_USAGE;
    }
    return settle_item(cmd, nack,
                       dibs__opt_flag(cmd, "dead") ? "dead" : "nacked");
}

static int extend_item(const dibs__command *cmd)
{
    return settle_item(cmd, extend, "extended");
}

static const dibs__option options[] = {
    {DIBS__ROW_WAIT_LONG, .help = "Wait at most this long for an item."},
    {DIBS__ROW_NONBLOCK, .help = "Do not wait: take an item if one is ready."},
    {DIBS__ROW_CONFLICT, .help = "The exit code when no item came in time."},
    {DIBS__ROW_TEXT("as", "WORKER"), .otherwise = "none",
     .verbs = "queue pop,queue run",
     .help = "Take items for this worker first (--to of queue push), with "
             "those for nobody; then help the worker that has most."},
    {DIBS__ROW_TEXT("token-file", "FILE"),
     .verbs = "queue pop,queue ack,queue nack,queue extend",
     .help = "The file for the token: pop writes it, readable for its owner "
             "only; the others read it."},
    {.name = "ack",
     .help = "Ack the item when its data was printed, and leave no token. "
             "The work on it is at your risk."},
    {.name = "raw",
     .help = "Print the bytes as they are, without a newline after them."},
    {DIBS__ROW_TEXT("result", "TEXT"), .verbs = "queue ack",
     .otherwise = "none",
     .help = "The result, cut to 1,023 bytes, for the record of the item: "
             "queue peek --place done shows it, if the queue keeps records "
             "(--keep-done of queue set)."},
    {DIBS__ROW_SPAN("delay", 0, DIBS__YEAR), .verbs = "queue nack",
     .otherwise = "2s, 4s, 8s .. 10m, by the attempt, with jitter",
     .help = "The item comes back after this long."},
    {DIBS__ROW_TEXT("reason", "TEXT"), .verbs = "queue nack",
     .help = "The reason, for people: queue peek and queue dead show it."},
    {.name = "dead",
     .verbs = "queue nack",
     .help = "Do not try again: the item goes to the dead letters."},
};

const dibs__option_rows dibs__options_queue_pop =
    DIBS__OPTION_ROWS("queue pop", options);

const dibs__verb dibs__verb_queue_pop = {
    .name = "queue pop",
    .operands = "NAME",
    .summary = "take an item and print it, to ack it later",
    .about =
        "Prints the data of an item and leaves its token in --token-file, or "
        "with --json in the output. The item is yours for --ttl. Settle it "
        "with ack or nack before that, or move the time on with extend; else "
        "it comes back, and counts as lost. To run a command for each item, "
        "dibs queue run does all of this.\n",
    .examples = "By hand:\n"
                "  dibs queue pop mail --token-file t --ttl 5m >letter\n"
                "  sh send.sh letter && dibs queue ack mail --token-file t\n"
                "All that is ready, where a loss does not matter:\n"
                "  while dibs queue pop -n --ack mail; do :; done\n",
    .exits = "0 printed\n"
             "75 no item came in time, or none is ready (-E)\n",
    .options = "json,ttl",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = pop_item,
};

const dibs__verb dibs__verb_queue_ack = {
    .name = "queue ack",
    .operands = "NAME [TOKEN]",
    .summary = "say that the work on a popped item is done",
    .exits = "0 accepted: the item is gone\n"
             "122 the token is over: the item came back, or is settled\n",
    .options = "json,durability",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__QUEUES,
    .run = ack_item,
};

const dibs__verb dibs__verb_queue_nack = {
    .name = "queue nack",
    .operands = "NAME [TOKEN]",
    .summary = "give a popped item back, or up",
    .about = "The item comes back after --delay, or is dead after its last "
             "try.\n",
    .exits = "0 accepted\n"
             "122 the token is over: the item came back, or is settled\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__QUEUES,
    .run = nack_item,
};

const dibs__verb dibs__verb_queue_extend = {
    .name = "queue extend",
    .operands = "NAME [TOKEN]",
    .summary = "keep a popped item for --ttl from now on",
    .exits = "0 extended\n"
             "122 the token is over: the item came back, or is settled\n",
    .options = "json,ttl",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__QUEUES,
    .run = extend_item,
};
