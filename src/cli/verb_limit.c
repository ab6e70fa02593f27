/* verb_limit.c - limit: takes tokens of a rate limit, then runs a command; or lists
 * limits.
 *
 * The command replaces this process: there is nothing to watch while it runs. Main
 * thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/rate_text.h"
#include "cli/verbs.h"
#include "exec/no_core_dump.h"
#include "show/limit_json.h"
#include <dibs/limit.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static int read_opts(const dibs__command *cmd, dibs_limit_opts *opts)
{
    const char *rate = dibs__opt_text(cmd, "rate");

    *opts = (dibs_limit_opts){.size = sizeof(*opts)};
    if (!rate) {
        dibs__cli_say("limit: the rate is missing; give --rate 100/s");
        return DIBS__EXIT_USAGE;
    }
    if (!dibs__rate_parse(rate, &opts->count, &opts->period_ms)) {
        dibs__cli_say("limit: --rate %.40s is no rate; write tokens and a "
                      "span: 100/s, 10/30s, 1000/h",
                      rate);
        return DIBS__EXIT_USAGE;
    }
    if (dibs__opt_given(cmd, "burst"))
        opts->burst = dibs__opt_int(cmd, "burst");
    if (dibs__opt_given(cmd, "wait"))
        opts->wait_ms = dibs__opt_ms(cmd, "wait");
    if (strcmp(dibs__opt_text(cmd, "on-unavailable"), "open") == 0)
        opts->on_unavailable = DIBS_AWAY_OPEN;
    return 0;
}

static int print_outcome(const dibs__command *cmd, const dibs_limit *limit,
                         bool granted, int64_t waited_ms)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_bool(&report.js, "granted", granted);
    dibsx_json_pair_int(&report.js, "tokens", dibs__opt_int(cmd, "tokens"));
    dibsx_json_pair_int(&report.js, "remaining", dibs_limit_remaining(limit));
    dibsx_json_pair_int(&report.js, "waited_ms", waited_ms);
    dibsx_json_key(&report.js, "retry_after_ms");
    if (granted)
        dibsx_json_null(&report.js);
    else
        dibsx_json_int(&report.js, dibs_limit_retry_ms(limit));
    return dibs__report_end(&report);
}

/* 0: the tokens may be used; -1: they may not, and that is no failure. */
static int take_tokens(const dibs__command *cmd, dibs_limit *limit)
{
    bool has_command = dibs__operand_count(cmd) > 1;
    dibsx_nsec begun_at = dibsx_now();
    dibs_error err = {0};
    dibs_status rc = dibs_limit_take(limit, dibs__opt_int(cmd, "tokens"), &err);
    int busy_code = (int)dibs__opt_int(cmd, "conflict-exit-code");
    int code = 0;

    if (rc != DIBS_OK && rc != DIBS_BUSY)
        return dibs__cli_fail(cmd, &err);
    if (dibs__opt_flag(cmd, "json") && !(rc == DIBS_OK && has_command))
        code = print_outcome(cmd, limit, rc == DIBS_OK,
                             (dibsx_now() - begun_at) / DIBSX_MS);
    else if (rc == DIBS_BUSY && busy_code != 0)
        (void)dibs__cli_fail(cmd, &err);
    if (rc == DIBS_BUSY && code == 0)
        code = busy_code != 0 ? busy_code : -1;
    return code;
}

static int replace_process(const dibs__command *cmd, char *const *argv)
{
    int number;

    dibs__core_dump_allow();
    execvp(argv[0], argv);
    number = errno;
    dibs__core_dump_forbid_again();
    if (!dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("cannot run %s: %s", argv[0], strerror(number));
    return number == ENOENT ? DIBS__EXIT_NOTFOUND : DIBS__EXIT_NOEXEC;
}

/* "100/s": in the shortest span that has a whole number of tokens. */
static void put_rate(dibs__table *table, const dibs_limit_info *info)
{
    static const struct {
        int64_t us;
        char letter;
    } spans[] = {{INT64_C(1000000), 's'},
                 {INT64_C(60000000), 'm'},
                 {INT64_C(3600000000), 'h'}};
    int64_t tokens;

    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        if (!__builtin_mul_overflow(info->count, spans[i].us, &tokens) &&
            tokens % info->period_us == 0) {
            dibs__table_cellf(table, "%" PRId64 "/%c", tokens / info->period_us,
                              spans[i].letter);
            return;
        }
    dibs__table_cellf(table, "%" PRId64 "/%" PRId64 "us", info->count,
                      info->period_us);
}

/* Where the limits of a list go. */
typedef struct rows {
    dibs__shape shape;
    void *out;
} rows;

static bool list_limit(const dibs_limit_info *info, void *arg)
{
    const rows *to = arg;

    if (to->shape == DIBS__AS_NAMES) {
        dibs__list_name(info->name);
    } else if (to->shape == DIBS__AS_JSON) {
        dibsx_json_open(to->out, '{');
        dibsx_json_pair_text(to->out, "name", info->name);
        dibs__show_limit(to->out, info);
        dibsx_json_close(to->out, '}');
    } else {
        dibs__table_cell(to->out, info->name);
        put_rate(to->out, info);
        dibs__table_cellf(to->out, "%" PRId64, info->out);
        dibs__table_span(to->out, info->full_ms);
    }
    return true;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    rows to = {shape, out};
    const char *begins =
        dibs__operand_count(cmd) == 2 ? dibs__operands(cmd)[1] : NULL;

    return dibs_limit_list(cl, begins, list_limit, &to, err);
}

static int list_limits(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "RATE", "OUT", "BACK IN"};
    static const dibs__listing limits = {.key = "limits",
                                         .heads = heads,
                                         .columns = 4,
                                         .list = list_in_shape};

    if (dibs__operand_count(cmd) > 2) {
        dibs__cli_say("limit: '%.40s' is too many: limit ls takes one "
                      "beginning of names, after its options",
                      dibs__operands(cmd)[2]);
        return DIBS__EXIT_USAGE;
    }
    return dibs__list(cmd, &limits);
}

/* `dibs limit ls --rate 5/s` is a limit of that name: a draw needs --rate. */
static bool is_listing(const dibs__command *cmd)
{
    return strcmp(dibs__operands(cmd)[0], "ls") == 0 &&
           !dibs__opt_given(cmd, "rate");
}

static int take_and_run(const dibs__command *cmd)
{
    dibs_limit_opts opts;
    dibs_limit *limit = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = read_opts(cmd, &opts);

    if (!code)
        code = opts.on_unavailable == DIBS_AWAY_OPEN
                   ? dibs__cli_open_lazy(cmd, &cl)
                   : dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs_limit_new(cl, dibs__operands(cmd)[0], &opts, &limit, &err) !=
        DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = take_tokens(cmd, limit);
    dibs_limit_free(limit);
    dibs_close(cl);
    if (code == 0 && dibs__operand_count(cmd) > 1)
        return replace_process(cmd, dibs__operands(cmd) + 1);
    return code < 0 ? 0 : code;
}

static int limit_command(const dibs__command *cmd)
{
    return is_listing(cmd) ? list_limits(cmd) : take_and_run(cmd);
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("rate", "RATE"), .letter = 'r',
     .help =
         "Tokens and the span in which they are handed out: 100/s, 5/m, "
         "10/30s, 1000/h; a number alone is for each second. Needed, but for "
         "ls."},
    {DIBS__ROW_INT("burst", "N", 1, INT64_MAX), .letter = 'b',
     .otherwise = "the tokens of one span",
     .help = "So many tokens may be taken at once, after a pause."},
    {DIBS__ROW_INT("tokens", "N", 1, INT64_MAX), .initial = "1",
     .help = "Take so many tokens, at most the burst."},
    {DIBS__ROW_WAIT, .initial = "0s", .otherwise = "do not wait",
     .help = "Wait at most this long for the tokens. If they take longer, dibs "
             "refuses at once. An interrupted wait has used its tokens."},
    {DIBS__ROW_CONFLICT, .verbs = "limit,breaker run",
     .help = "The exit code when the limit is reached or the breaker is open. "
             "Under cron, -E 0 makes a skipped run a success."},
    {DIBS__ROW_CHOICE("on-unavailable", "POLICY", "fail|open"),
     .initial = "fail",
     .help = "When the store is unavailable: fail; or open, go on without a "
             "limit, with a warning on standard error."},
};

const dibs__option_rows dibs__options_limit =
    DIBS__OPTION_ROWS("limit", options);

const dibs__verb dibs__verb_limit = {
    .name = "limit",
    .operands = "[ls] NAME --rate RATE [--] [COMMAND...]",
    .summary = "keep to a rate that programs share",
    .about =
        "Takes a token of the limit NAME, and runs the command, if there is "
        "one. All users of the name share the limit, and give the same rate "
        "and burst. When no token is left, dibs exits with 75 and says when "
        "to try again; with -w it waits for its token, in order.\n"
        "With --json one object tells the outcome: granted, remaining, "
        "retry_after_ms. With a command it is printed only if the limit is "
        "reached. "
        "The command replaces dibs: signals and exit code are its own.\n"
        "`dibs limit ls [PREFIX]`, without --rate, lists the limits of which "
        "tokens are out: the rate, how many, and when all are back.\n",
    .examples = "At most 100 messages a second, 20 at once, over all "
                "machines:\n"
                "  dibs limit sms --rate 100/s --burst 20 -w 5s -- ./send.sh\n"
                "Restart a service five times an hour at most:\n"
                "  dibs limit restart:web --rate 5/h -- systemctl restart "
                "web\n"
                "Ask only, and see when to come back:\n"
                "  dibs limit api --rate 10/30s --json\n"
                "All limits in use whose names begin with sms:\n"
                "  dibs limit ls sms\n",
    .exits = "0 the token was granted, and there is no command; ls: printed\n"
             "0-255 the command's own exit code\n"
             "75 the limit is reached, also after -w (--conflict-exit-code)\n"
             "126 the command was found but cannot be run\n"
             "127 the command was not found\n",
    .options = "json,names",
    .min_operands = 1,
    DIBS__TAKES_COMMAND,
    .run = limit_command,
};
