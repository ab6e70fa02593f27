/* verb_breaker.c - breaker run, ls, show, open, close.
 *
 * run asks the breaker, runs the command and counts its exit code. The command is a plain
 * child: there is no lease to guard. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/changes.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "exec/no_core_dump.h"
#include "exec/signals.h"
#include <dibs/breaker.h>

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* How a command ended. */
typedef struct outcome {
    int code;      /* as a shell has it */
    bool began;    /* false: it could not be run */
    bool signaled; /* it died of a signal */
    bool stopped;  /* dibs was asked to end, and passed that on */
    int die_of;    /* the signal that ends dibs too; 0: none */
    int64_t took_ms;
} outcome;

/* Reads "1,4-7" from *at: one number, or two with a dash, then a comma or the end. */
static bool read_range(const char **at, long *first, long *last)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    *first = *last = strtol(*at, &end, 10);
    if (*end == '-') {
        *at = end + 1;
        if (**at < '0' || **at > '9')
            return false;
        *last = strtol(*at, &end, 10);
    }
    if ((*end != ',' && *end != '\0') || *first > *last || *last > 255)
        return false;
    *at = *end == ',' ? end + 1 : end;
    return *end == '\0' || **at != '\0';
}

/* Whether the codes are a list, and has `code`. */
static bool has_code(const char *codes, int code, bool *found)
{
    long first, last;

    *found = false;
    do {
        if (!read_range(&codes, &first, &last))
            return false;
        *found = *found || (code >= first && code <= last);
    } while (*codes != '\0');
    return true;
}

static bool is_good(const dibs__command *cmd, const outcome *out)
{
    bool bad = out->code != 0;

    if (dibs__opt_given(cmd, "fail-on"))
        (void)has_code(dibs__opt_text(cmd, "fail-on"), out->code, &bad);
    return !bad && !out->signaled;
}

static int64_t ms_of(const dibs__command *cmd, const char *option)
{
    return dibs__opt_given(cmd, option) ? dibs__opt_ms(cmd, option) : 0;
}

static int64_t int_of(const dibs__command *cmd, const char *option)
{
    return dibs__opt_given(cmd, option) ? dibs__opt_int(cmd, option) : 0;
}

static dibs_breaker_opts read_opts(const dibs__command *cmd)
{
    return (dibs_breaker_opts){.size = sizeof(dibs_breaker_opts),
                               .threshold = int_of(cmd, "threshold"),
                               .rate_percent = int_of(cmd, "rate"),
                               .min_calls = int_of(cmd, "min-calls"),
                               .sampling_ms = ms_of(cmd, "window"),
                               .recovery_ms = ms_of(cmd, "recovery"),
                               .probes = int_of(cmd, "probes"),
                               .need = int_of(cmd, "need"),
                               .probe_ttl_ms = ms_of(cmd, "probe-ttl"),
                               .min_clients = int_of(cmd, "min-clients"),
                               .slow_ms = ms_of(cmd, "slow"),
                               .slow_percent = int_of(cmd, "slow-percent"),
                               .ramp_ms = ms_of(cmd, "ramp")};
}

static void note_signal(const siginfo_t *info, outcome *out)
{
    if (dibs__signal_ends(info->si_signo))
        out->stopped = true;
    if (info->si_signo == SIGINT)
        out->die_of = SIGINT;
}

/* Passes on what was sent to dibs alone: a terminal sends to both. */
static void serve_signal(const siginfo_t *info, pid_t child, outcome *out)
{
    if (info->si_signo == SIGTSTP) {
        (void)dibs__signal_stop(false);
        return;
    }
    note_signal(info, out);
    if (info->si_code <= 0)
        (void)kill(child, info->si_signo);
}

static void await_child(pid_t child, const dibs__signals *sig, outcome *out)
{
    const struct timespec at_once = {0};
    sigset_t awaited = sig->served;
    siginfo_t info;
    int status = 0;

    sigaddset(&awaited, SIGCHLD);
    while (waitpid(child, &status, WNOHANG) == 0)
        if (sigwaitinfo(&awaited, &info) > 0 && info.si_signo != SIGCHLD)
            serve_signal(&info, child, out);
    /* The child may have ended of a ^C that dibs has not looked at yet. */
    while (sigtimedwait(&sig->served, &info, &at_once) > 0)
        note_signal(&info, out);
    out->signaled = WIFSIGNALED(status);
    /* A script goes on after ^C if its command took it. */
    if (!out->signaled || WTERMSIG(status) != SIGINT)
        out->die_of = 0;
    out->code = out->signaled ? DIBS__EXIT_SIGNAL + WTERMSIG(status)
                              : WEXITSTATUS(status);
}

/* The signals that are served are blocked, and so is SIGCHLD. */
static void
run_child(const dibs__command *cmd, const dibs__signals *sig, outcome *out)
{
    char *const *argv = dibs__operands(cmd) + 1;
    dibsx_nsec begun_at = dibsx_now();
    posix_spawnattr_t attr;
    pid_t child;
    int number = posix_spawnattr_init(&attr);

    *out = (outcome){.code = DIBS__EXIT_WRAPPER};
    if (number == 0) {
        posix_spawnattr_setsigmask(&attr, &sig->old_mask);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
        dibs__core_dump_allow();
        number = posix_spawnp(&child, argv[0], NULL, &attr, argv, environ);
        dibs__core_dump_forbid_again();
        posix_spawnattr_destroy(&attr);
    }
    if (number != 0) {
        if (!dibs__opt_flag(cmd, "quiet"))
            dibs__cli_say("cannot run %s: %s", argv[0], strerror(number));
        out->code = number == ENOENT ? DIBS__EXIT_NOTFOUND : DIBS__EXIT_NOEXEC;
        return;
    }
    out->began = true;
    await_child(child, sig, out);
    out->took_ms = (dibsx_now() - begun_at) / DIBSX_MS;
}

static int print_refusal(const dibs__command *cmd, const dibs_breaker *br)
{
    dibs__report report;
    int64_t retry_ms = dibs_breaker_retry_ms(br);

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_bool(&report.js, "passed", false);
    dibsx_json_key(&report.js, "retry_after_ms");
    if (retry_ms < 0)
        dibsx_json_null(&report.js);
    else
        dibsx_json_int(&report.js, retry_ms);
    return dibs__report_end(&report);
}

static int
refuse(const dibs__command *cmd, const dibs_breaker *br, const dibs_error *err)
{
    int busy_code = (int)dibs__opt_int(cmd, "conflict-exit-code");
    int code = 0;

    if (err->status != DIBS_BUSY)
        return dibs__cli_fail(cmd, err);
    if (dibs__opt_flag(cmd, "json"))
        code = print_refusal(cmd, br);
    else if (busy_code != 0)
        (void)dibs__cli_fail(cmd, err);
    return code ? code : busy_code;
}

static int run_guarded(const dibs__command *cmd, dibs_breaker *br,
                       const dibs__signals *sig, int *die_of)
{
    dibs_error err = {0};
    dibs_pass pass;
    outcome out;
    dibs_status rc = dibs_breaker_enter(br, &pass, &err);

    *die_of = dibs__signals_pending(sig);
    if (*die_of)
        return DIBS__EXIT_SIGNAL + *die_of;
    if (rc != DIBS_OK)
        return refuse(cmd, br, &err);
    run_child(cmd, sig, &out);
    /* A command that was not run, or not to its end, says nothing. */
    if (out.began && !out.stopped)
        dibs_breaker_leave_after(br, &pass, is_good(cmd, &out), out.took_ms);
    *die_of = out.die_of;
    return out.code;
}

static int check_run(const dibs__command *cmd)
{
    bool found;

    if (!dibs__opt_given(cmd, "fail-on") ||
        has_code(dibs__opt_text(cmd, "fail-on"), 0, &found))
        return 0;
    dibs__cli_say("breaker run: --fail-on %.40s is no list of exit codes; "
                  "write 1,4-7",
                  dibs__opt_text(cmd, "fail-on"));
    return DIBS__EXIT_USAGE;
}

static int run_command(const dibs__command *cmd)
{
    dibs_breaker_opts opts = read_opts(cmd);
    dibs_breaker *br = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs__signals sig;
    sigset_t child;
    int die_of = 0, code = check_run(cmd);

    if (code)
        return code;
    dibs__signals_block(&sig);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, NULL);
    code = dibs__cli_open_lazy(cmd, &cl);
    if (code)
        die_of = dibs__signals_pending(&sig);
    else if (dibs_breaker_new(cl, dibs__operands(cmd)[0], &opts, &br, &err) !=
             DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = run_guarded(cmd, br, &sig, &die_of);
    dibs_breaker_free(br);
    dibs_close(cl);
    if (die_of)
        dibs__signal_die(die_of);
    return code;
}

static void
json_info(dibsx_json *js, const char *name, const dibs_breaker_info *info)
{
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_pair_text(js, "state", dibs_breaker_state_name(info->state));
    dibsx_json_pair_uint(js, "version", info->version);
    dibsx_json_pair_int(js, "good", info->good);
    dibsx_json_pair_int(js, "bad", info->bad);
    dibsx_json_pair_int(js, "slow", info->slow);
    dibsx_json_pair_int(js, "reporters", info->reporters);
    dibsx_json_key(js, "retry_after_ms");
    if (info->retry_ms < 0)
        dibsx_json_null(js);
    else
        dibsx_json_int(js, info->retry_ms);
}

static int print_info(const dibs__command *cmd, const dibs_breaker_info *info)
{
    const char *state = dibs_breaker_state_name(info->state);
    dibs__report report;
    char span[32];

    if (!dibs__opt_flag(cmd, "json")) {
        printf("%s", state);
        if (info->state == DIBS_BREAKER_OPEN) {
            dibsx_duration_text(info->retry_ms, span, sizeof(span));
            printf(", recovers in %s", span);
        }
        printf("; %lld good, %lld bad, %lld slow\n", (long long)info->good,
               (long long)info->bad, (long long)info->slow);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    json_info(&report.js, dibs__operands(cmd)[0], info);
    return dibs__report_end(&report);
}

/* Where the breakers of a list go. */
typedef struct rows {
    dibs__shape shape;
    void *out;
} rows;

static bool
list_breaker(const char *name, const dibs_breaker_info *info, void *arg)
{
    const rows *to = arg;

    if (to->shape == DIBS__AS_NAMES) {
        dibs__list_name(name);
    } else if (to->shape == DIBS__AS_JSON) {
        dibsx_json_open(to->out, '{');
        json_info(to->out, name, info);
        dibsx_json_close(to->out, '}');
    } else {
        dibs__table_cell(to->out, name);
        dibs__table_cell(to->out, dibs_breaker_state_name(info->state));
        if (info->state == DIBS_BREAKER_OPEN)
            dibs__table_span(to->out, info->retry_ms);
        else
            dibs__table_cell(to->out, "");
        dibs__table_cellf(to->out, "%lld", (long long)info->good);
        dibs__table_cellf(to->out, "%lld", (long long)info->bad);
        dibs__table_cellf(to->out, "%lld", (long long)info->slow);
    }
    return true;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    rows to = {shape, out};

    return dibs_breaker_list(cl, dibs__operands(cmd)[0], list_breaker, &to,
                             err);
}

static int list_breakers(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "STATE", "RECOVERS IN",
                                        "GOOD", "BAD",   "SLOW"};
    static const dibs__listing breakers = {.key = "breakers",
                                           .heads = heads,
                                           .columns = 6,
                                           .list = list_in_shape};

    return dibs__list(cmd, &breakers);
}

static int force_state(const dibs__command *cmd, dibs_client *cl,
                       dibs_breaker *br, dibs_breaker_state state)
{
    const char *name = dibs__operands(cmd)[0];
    const char *action =
        state == DIBS_BREAKER_CLOSED ? "breaker-reset" : "breaker-trip";
    dibs_error err = {0};
    int code = dibs__cli_change_begin(cmd, cl, action, name);

    if (!code) {
        dibs_status rc = dibs_breaker_force(br, state, &err);

        dibs__cli_change_end(cmd, cl, action, name, rc);
        code = rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
    }
    return code;
}

/* Sets the state, unless it is only to be shown, and prints it. */
static int show_or_set(const dibs__command *cmd, const dibs_breaker_state *set)
{
    dibs_breaker_opts opts = {.size = sizeof(opts)};
    dibs_breaker_info info;
    dibs_breaker *br = NULL;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (!set)
        opts.sampling_ms = ms_of(cmd, "window");
    else if (*set == DIBS_BREAKER_OPEN)
        opts.recovery_ms = ms_of(cmd, "recovery");
    if (dibs_breaker_new(cl, dibs__operands(cmd)[0], &opts, &br, &err) !=
        DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (set)
        code = force_state(cmd, cl, br, *set);
    if (code)
        goto out;
    if (dibs_breaker_get(br, &info, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (!set || dibs__opt_flag(cmd, "json"))
        code = print_info(cmd, &info);
out:
    dibs_breaker_free(br);
    dibs_close(cl);
    return code;
}

static int show_breaker(const dibs__command *cmd)
{
    return show_or_set(cmd, NULL);
}

static int open_breaker(const dibs__command *cmd)
{
    dibs_breaker_state state = dibs__opt_given(cmd, "recovery")
                                   ? DIBS_BREAKER_OPEN
                                   : DIBS_BREAKER_FORCED;

    return show_or_set(cmd, &state);
}

static int close_breaker(const dibs__command *cmd)
{
    dibs_breaker_state state = DIBS_BREAKER_CLOSED;

    return show_or_set(cmd, &state);
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("threshold", "N", 1, 1000000000),
     .otherwise = "5 if no rate is given",
     .help = "So many bad commands in the window open the breaker."},
    {DIBS__ROW_INT("rate", "PERCENT", 1, 100),
     .help = "So many bad commands of a hundred open the breaker."},
    {DIBS__ROW_INT("min-calls", "N", 1, 1000000000), .otherwise = "10",
     .help = "The rates count from so many commands in the window on."},
    {DIBS__ROW_SPAN("window", 1, DIBS__DAYS(1)), .otherwise = "1m",
     .verbs = "breaker run,breaker show",
     .help = "Count the commands of this span."},
    {DIBS__ROW_SPAN("recovery", 1, DIBS__DAYS(1)),
     .otherwise = "30s; breaker open: until it is closed",
     .verbs = "breaker run,breaker open",
     .help = "The time from open to the first try; each client adds up to a "
             "tenth, so that not all try at once."},
    {DIBS__ROW_INT("probes", "N", 1, 1000), .otherwise = "1",
     .help = "So many tries at a time, on all machines together."},
    {DIBS__ROW_INT("need", "N", 1, 1000000), .otherwise = "1",
     .help = "So many good tries close the breaker."},
    {DIBS__ROW_SPAN("probe-ttl", 1, DIBS__MINUTES(60)), .otherwise = "10s",
     .help =
         "A try that takes longer is void: give more than the command takes."},
    {DIBS__ROW_INT("min-clients", "N", 1, 32), .otherwise = "1",
     .help = "Bad commands of so many processes are needed to open it."},
    {DIBS__ROW_SPAN("slow", 1, DIBS__DAYS(1)),
     .help = "A command that takes so long is slow."},
    {DIBS__ROW_INT("slow-percent", "PERCENT", 1, 100), .otherwise = "50",
     .help = "With --slow: so many slow commands of a hundred open it."},
    {DIBS__ROW_SPAN("ramp", 1, DIBS__DAYS(1)), .otherwise = "all at once",
     .help = "After it has closed, let a share of the commands run that rises "
             "to all of them in this time."},
    {DIBS__ROW_TEXT("fail-on", "CODES"), .otherwise = "all but 0",
     .help = "The exit codes that are bad: 1,4-7."},
};

const dibs__option_rows dibs__options_breaker =
    DIBS__OPTION_ROWS("breaker run", options);

const dibs__verb dibs__verb_breaker = {
    .name = "breaker",
    .operands = "VERB",
    .summary = "stop commands that fail, on all machines at once",
    .about = "A circuit breaker is closed, and then commands run; or open, and "
             "then they are refused. It opens when too many of them fail. "
             "After a while a command is tried, and if that goes well, the "
             "breaker closes.\n",
};

const dibs__verb dibs__verb_breaker_run = {
    .name = "breaker run",
    .operands = "NAME [--] COMMAND...",
    .summary = "run a command unless it fails too often",
    .about =
        "Runs the command if the breaker NAME lets it, and counts how it "
        "ended. All users of the name share the breaker, and give the same "
        "options. When it is open, dibs exits with 75 at once and says when "
        "to try again.\n"
        "A command is bad if its exit code is not 0 (--fail-on), or if it dies "
        "of a signal. One that could not be run, or that dibs was asked to "
        "end, counts for nothing. While the store is out of reach the command "
        "runs, with a warning on standard error.\n"
        "With --json one object tells that the breaker is open.\n",
    .examples = "Five failures in a minute stop the calls for 30 s, on all "
                "machines:\n"
                "  dibs breaker run pay -- curl -fsS https://pay.example/\n"
                "Half of at least 20 commands, where only 2 and 3 are "
                "failures:\n"
                "  dibs breaker run import --rate 50 --min-calls 20 --fail-on "
                "2,3 -- ./import.sh\n",
    .exits = "0-255 the command's own exit code\n"
             "75 the breaker is open (--conflict-exit-code)\n"
             "126 the command was found but cannot be run\n"
             "127 the command was not found\n"
             "128+N the command died of signal N\n",
    .options = "json",
    .min_operands = 2,
    DIBS__TAKES_COMMAND,
    .run = run_command,
};

const dibs__verb dibs__verb_breaker_ls = {
    .name = "breaker ls",
    .operands = "[PREFIX]",
    .summary = "list breakers",
    .about = "One line per breaker that is open, or has closed within a day, "
             "and whose name begins with PREFIX: its state, when it recovers, "
             "and the calls of the last 60 s. A breaker that has never opened "
             "is not listed.\n",
    .exits = "0 listed\n",
    .options = "json,names",
    .max_operands = 1,
    .run = list_breakers,
};

const dibs__verb dibs__verb_breaker_show = {
    .name = "breaker show",
    .operands = "NAME",
    .summary = "say whether a breaker is open",
    .about = "Prints the state and the calls that are counted in the window "
             "(--window).\n",
    .exits = "0 printed; a breaker that nobody used is closed\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = show_breaker,
};

const dibs__verb dibs__verb_breaker_open = {
    .name = "breaker open",
    .operands = "NAME",
    .summary = "open a breaker by hand",
    .about = "It stays open until `dibs breaker close`; with --recovery it "
             "recovers by itself.\n",
    .examples = "During maintenance:\n"
                "  dibs breaker open pay && ./maintain; dibs breaker close "
                "pay\n",
    .exits = "0 it is open\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = open_breaker,
};

const dibs__verb dibs__verb_breaker_close = {
    .name = "breaker close",
    .operands = "NAME",
    .summary = "close a breaker by hand",
    .exits = "0 it is closed\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = close_breaker,
};
