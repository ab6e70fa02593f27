/* dry_run.c - `dibs run --dry-run`: what a run would do, without doing it.
 *
 * Only looks: at the means to end the command, at the command itself, at the slot
 * of --once, and at each name. Another may come first before the real run. Main
 * thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/dry_run.h"

#include "base/clock.h"
#include "base/fail.h"
#include "cli/option_values.h"
#include "cli/print.h"
#include "cli/run/env.h"
#include "cli/run/once.h"
#include "exec/tree_means.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that the looks have found. */
typedef struct dry {
    const dibs__command *cmd;
    const dibs__run_opts *opts;
    dibs_client *cl;
    dibsx_buf lines;     /* the report for people */
    dibs__report report; /* ... or the report for programs */
    bool json;
    const char *name;      /* the name that is looked at */
    dibs__dry_state worst; /* of all names */
    dibs__run_once once;
    bool used;         /* the slot is */
    const char *would; /* "start", "wait", "give up", "skip", "fail" */
    char why[256];
    int code;
} dry;

static bool is_permits(const dibs_party *party)
{
    return strcmp(party->mode, "permits") == 0;
}

static bool
is_other_kind(const dibs_lease_info *info, const dibs_lock_opts *asked)
{
    const dibs_party *party =
        info->holder_count > 0 ? info->holders : info->waiters;
    bool permits = asked->mode == DIBS_PERMITS;

    if (info->holder_count + info->waiter_count == 0)
        return false;
    return permits != is_permits(party) ||
           (permits && info->capacity && info->capacity != asked->capacity);
}

static bool
fits_beside(const dibs_lease_info *info, const dibs_lock_opts *asked)
{
    uint64_t taken = asked->permits;

    for (size_t i = 0; i < info->holder_count; i++) {
        taken += info->holders[i].permits;
        if (asked->mode == DIBS_EXCLUSIVE ||
            (asked->mode == DIBS_SHARED &&
             strcmp(info->holders[i].mode, "shared") != 0))
            return false;
    }
    return asked->mode != DIBS_PERMITS || taken <= asked->capacity;
}

dibs__dry_state
dibs__dry_run_judge(const dibs_lease_info *info, const dibs_lock_opts *asked)
{
    bool first = (asked->flags & DIBS_LOCK_BARGE) || info->waiter_count == 0 ||
                 info->waiters[0].priority < asked->priority;

    if (is_other_kind(info, asked))
        return DIBS__DRY_OTHER;
    return first && fits_beside(info, asked) ? DIBS__DRY_FREE : DIBS__DRY_BUSY;
}

static const char *state_text(dibs__dry_state state)
{
    switch (state) {
    case DIBS__DRY_FREE:
        return "free";
    case DIBS__DRY_NESTED:
        return "held further up";
    case DIBS__DRY_BUSY:
        return "busy";
    case DIBS__DRY_OTHER:
        return "in use as another kind";
    }
    return "";
}

static void add_state(dry *d, dibs__dry_state state)
{
    if (state > d->worst)
        d->worst = state;
    if (d->json) {
        dibsx_json_pair_text(&d->report.js, "state", state_text(state));
        return;
    }
    dibsx_buf_puts(&d->lines, "lock: ");
    dibs__clean(&d->lines, d->name);
    dibsx_buf_printf(&d->lines, " is %s", state_text(state));
}

/* A name without a party: the store does not know it. */
static void add_unused(dry *d, dibs__dry_state state)
{
    dibs_lease_info none = {.name = d->name};

    if (d->json)
        dibs__json_lease(&d->report.js, &none);
    add_state(d, state);
}

static bool add_used(const dibs_lease_info *info, void *arg)
{
    dry *d = arg;

    if (d->json)
        dibs__json_lease(&d->report.js, info);
    add_state(d, dibs__dry_run_judge(info, &d->opts->request.lock));
    if (d->json)
        return false;
    for (size_t i = 0; i < info->holder_count; i++) {
        dibsx_buf_puts(&d->lines, i ? ", " : ", held by ");
        dibs__party_text(&d->lines, &info->holders[i]);
    }
    if (info->waiter_count > 0)
        dibsx_buf_printf(&d->lines, ", %zu waiting", info->waiter_count);
    return false;
}

static dibs_status look_at_name(dry *d, dibs_error *err)
{
    dibs__held held = {.name = d->name};
    dibs_status rc =
        dibs__run_env_find_held(d->cl, getenv("DIBS_LOCK_CHAIN"),
                                &d->opts->request.lock, &held, err);

    if (rc != DIBS_OK)
        return rc;
    if (held.above) {
        add_unused(d, DIBS__DRY_NESTED);
        return DIBS_OK;
    }
    rc = dibs_lease_show(d->cl, d->name, add_used, d, err);
    if (rc != DIBS_NOTFOUND)
        return rc;
    add_unused(d, DIBS__DRY_FREE);
    return DIBS_OK;
}

/* All that can be said of a name when the store did not answer. */
static void add_unseen(dry *d)
{
    if (d->json) {
        dibsx_json_pair_text(&d->report.js, "name", d->name);
        dibsx_json_pair_text(&d->report.js, "state", NULL);
        return;
    }
    dibsx_buf_puts(&d->lines, "lock: ");
    dibs__clean(&d->lines, d->name);
    dibsx_buf_puts(&d->lines, " was not seen");
}

static dibs_status look_at_names(dry *d, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (d->json) {
        dibsx_json_key(&d->report.js, "locks");
        dibsx_json_open(&d->report.js, '[');
    }
    for (size_t i = 0; i < d->opts->request.count && rc == DIBS_OK; i++) {
        d->name = d->opts->request.names[i];
        if (d->json)
            dibsx_json_open(&d->report.js, '{');
        rc = look_at_name(d, err);
        if (rc != DIBS_OK)
            add_unseen(d);
        if (d->json)
            dibsx_json_close(&d->report.js, '}');
        else
            dibsx_buf_putc(&d->lines, '\n');
    }
    if (d->json)
        dibsx_json_close(&d->report.js, ']');
    return rc;
}

static dibs_status look_at_slot(dry *d, dibs_error *err)
{
    dibs_status rc;

    if (!d->opts->once)
        return DIBS_OK;
    rc = dibs__run_once_init(&d->once, d->opts->name, d->opts->once,
                             dibsx_wall_us(), err);
    if (rc == DIBS_OK)
        rc = dibs__run_once_look(&d->once, d->cl, &d->used, err);
    if (rc != DIBS_OK)
        return rc;
    if (d->json) {
        dibsx_json_pair_text(&d->report.js, "slot", d->once.slot);
        dibsx_json_pair_bool(&d->report.js, "slot_used", d->used);
    } else {
        dibsx_buf_puts(&d->lines, "slot: ");
        dibs__clean(&d->lines, d->once.slot);
        dibsx_buf_puts(&d->lines, d->used ? ", used\n" : ", not used\n");
    }
    return DIBS_OK;
}

static void decide(dry *d, const char *would, int code, const char *why)
{
    if (d->would)
        return;
    d->would = would;
    d->code = code;
    snprintf(d->why, sizeof(d->why), "%s", why);
}

static bool can_run(const char *path, int *number)
{
    struct stat at;

    if (access(path, X_OK) == 0 && stat(path, &at) == 0 && S_ISREG(at.st_mode))
        return true;
    if (access(path, F_OK) == 0)
        *number = EACCES;
    return false;
}

/* As execvp() would look for it. */
static bool find_command(const char *word, int *number)
{
    const char *path = getenv("PATH");
    char whole[PATH_MAX];

    *number = ENOENT;
    if (strchr(word, '/'))
        return can_run(word, number);
    for (const char *at = path ? path : "/bin:/usr/bin"; at;
         at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        int len = (int)strcspn(at, ":");

        snprintf(whole, sizeof(whole), "%.*s%s%s", len, at, len ? "/" : "",
                 word);
        if (can_run(whole, number))
            return true;
    }
    return false;
}

static void look_at_command(dry *d)
{
    dibs__tree_means means;
    int number;

    dibs__tree_means_init(&means);
    if (!dibs__tree_means_whole(&means) && !d->opts->tree_unchecked)
        decide(d, "fail", DIBS__EXIT_WRAPPER,
               "the processes that the command starts could not be found, to "
               "end them; see --tree-unchecked");
    dibs__tree_means_fini(&means);
    if (d->used)
        decide(d, "skip", 0, "the slot of --once has been used already");
    if (!find_command(d->opts->argv[0], &number))
        decide(d, "fail",
               number == ENOENT ? DIBS__EXIT_NOTFOUND : DIBS__EXIT_NOEXEC,
               number == ENOENT ? "the command was not found"
                                : "the command was found but cannot be run");
}

static void decide_wait(dry *d)
{
    const dibs__lock_request *request = &d->opts->request;
    char span[32], why[80] = "as long as it takes";

    if (request->lock.wait_ms == 0 && request->lock.retries == 0) {
        decide(d, "give up", request->busy_code, "the lock is busy");
        return;
    }
    dibsx_duration_text(request->lock.wait_ms, span, sizeof(span));
    if (request->lock.retries > 0)
        snprintf(why, sizeof(why), "and retry %u times",
                 (unsigned)request->lock.retries);
    else if (request->lock.wait_ms >= 0)
        snprintf(why, sizeof(why), "for at most %s", span);
    decide(d, "wait", request->busy_code, why);
}

static void decide_lock(dry *d)
{
    switch (d->worst) {
    case DIBS__DRY_FREE:
        decide(d, "start", 0, "the lock is free");
        break;
    case DIBS__DRY_NESTED:
        decide(d, "start", 0, "the lock is held further up");
        break;
    case DIBS__DRY_BUSY:
        decide_wait(d);
        break;
    case DIBS__DRY_OTHER:
        decide(d, "fail", DIBS__EXIT_USAGE,
               "the name is in use as another kind of lock");
        break;
    }
}

/* The options of run, but for those that the report has already. */
static bool is_setting(const dry *d, const dibs__option *option)
{
    static const char shown[] = "also,command,dry-run,json,once";
    bool moot = (strcmp(option->name, "wait") == 0 &&
                 dibs__opt_flag(d->cmd, "nonblock")) ||
                (strcmp(option->name, "take") == 0 &&
                 !dibs__opt_given(d->cmd, "permits"));

    return dibs__option_has_verb(option, "run") &&
           !dibs__option_global(option) && !moot &&
           !dibs__list_has(shown, ',', option->name, strlen(option->name));
}

/* People see the settings that were given, and those that matter to every run. */
static bool
is_worth_a_line(const dibs__option *option, const dibs__option_value *value)
{
    static const char always[] = "wait,ttl,on-unavailable,on-lost,kill-after";

    return value->source > DIBS__FROM_DEFAULT ||
           dibs__list_has(always, ',', option->name, strlen(option->name));
}

static void add_line(dry *d, const dibs__option *option, const char *value)
{
    dibsx_buf_printf(&d->lines, "  %-20s ", option->name);
    dibs__clean(&d->lines, value);
    dibsx_buf_putc(&d->lines, '\n');
}

static void add_setting(dry *d, const dibs__option *option)
{
    const dibs__option_value *value = dibs__option_value_of(d->cmd, option);
    const char *none = option->otherwise ? option->otherwise : "none";

    if (d->json && option->type == DIBS__FLAG) {
        dibsx_json_pair_bool(&d->report.js, option->name, value->number > 0);
    } else if (d->json && !option->many) {
        dibsx_json_pair_text(&d->report.js, option->name, value->text);
    } else if (d->json) {
        dibsx_json_key(&d->report.js, option->name);
        dibsx_json_open(&d->report.js, '[');
        for (size_t i = 0; i < value->count; i++)
            dibsx_json_text(&d->report.js, value->all[i]);
        dibsx_json_close(&d->report.js, ']');
    } else if (option->many) {
        for (size_t i = 0; i < value->count; i++)
            add_line(d, option, value->all[i]);
    } else if (is_worth_a_line(option, value)) {
        if (option->type == DIBS__FLAG)
            none = value->number > 0 ? "yes" : "no";
        add_line(d, option,
                 option->type != DIBS__FLAG && value->text ? value->text
                                                           : none);
    }
}

static void add_settings(dry *d)
{
    if (d->json) {
        dibsx_json_key(&d->report.js, "settings");
        dibsx_json_open(&d->report.js, '{');
    } else {
        dibsx_buf_puts(&d->lines, "settings:\n");
    }
    for (size_t i = 0; i < dibs__option_count(); i++)
        if (is_setting(d, dibs__option_at(i)))
            add_setting(d, dibs__option_at(i));
    if (d->json)
        dibsx_json_close(&d->report.js, '}');
}

static void add_store(dry *d)
{
    bool own = !dibs__opt_text(d->cmd, "url");

    if (d->json) {
        dibsx_json_pair_text(&d->report.js, "store", dibs_url(d->cl));
        dibsx_json_pair_bool(&d->report.js, "store_configured", !own);
        dibsx_json_pair_text(&d->report.js, "prefix",
                             dibs__opt_text(d->cmd, "prefix"));
        return;
    }
    dibsx_buf_puts(&d->lines, "store: ");
    dibs__clean(&d->lines, dibs_url(d->cl));
    dibsx_buf_puts(&d->lines, own ? ", this user's own (no URL)\n" : "\n");
}

static void add_command(dry *d)
{
    char *const *word = d->opts->argv;

    if (d->json) {
        dibsx_json_key(&d->report.js, "command");
        dibsx_json_open(&d->report.js, '[');
        for (; *word; word++)
            dibsx_json_text(&d->report.js, *word);
        dibsx_json_close(&d->report.js, ']');
        return;
    }
    dibsx_buf_puts(&d->lines, "command:");
    for (; *word; word++) {
        dibsx_buf_putc(&d->lines, ' ');
        dibs__clean(&d->lines, *word);
    }
    dibsx_buf_putc(&d->lines, '\n');
}

static int print_report(dry *d)
{
    if (d->json) {
        dibsx_json_pair_text(&d->report.js, "would", d->would);
        dibsx_json_pair_text(&d->report.js, "why", d->why);
        dibsx_json_pair_int(&d->report.js, "code", d->code);
        return dibs__report_end(&d->report);
    }
    dibsx_buf_printf(&d->lines, "would: %s (%s), exit code %d\n", d->would,
                     d->why, d->code);
    if (!dibsx_buf_ok(&d->lines))
        return dibs__cli_nomem("the output");
    dibs__out(dibsx_buf_text(&d->lines), d->lines.len);
    return dibs__out_done();
}

/* Whether --on-unavailable lets a run start that did not reach the store. A slot is in
 * the store. */
static bool starts_away(dry *d, dibs_status rc)
{
    const char *policy = dibs__opt_text(d->cmd, "on-unavailable");

    if (!dibsx_is_away(rc) || d->opts->once || strcmp(policy, "fail") == 0)
        return false;
    look_at_command(d);
    decide(d, "start", 0,
           strcmp(policy, "open") == 0
               ? "the store is away: without a lock"
               : "the store is away: with locks of this machine");
    return true;
}

/* Without a lock a run uses no store, not even for the slot. */
static dibs_status look_at_store(dry *d, dibs_error *err)
{
    dibs_status rc;

    if (!d->cl) {
        if (d->json)
            dibsx_json_pair_text(&d->report.js, "store", NULL);
        return DIBS_OK;
    }
    add_store(d);
    rc = look_at_names(d, err);
    if (rc == DIBS_OK)
        rc = look_at_slot(d, err);
    return starts_away(d, rc) ? DIBS_OK : rc;
}

int dibs__dry_run(const dibs__command *cmd, const dibs__run_opts *opts)
{
    dry d = {.cmd = cmd, .opts = opts, .json = dibs__opt_flag(cmd, "json")};
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__opt_flag(cmd, "enabled") ? dibs__cli_open(cmd, &d.cl) : 0;

    if (code)
        return code;
    dibsx_buf_init(&d.lines, DIBS__OUT_MAX);
    dibs__report_begin(&d.report);
    rc = look_at_store(&d, &err);
    if (rc == DIBS_OK) {
        add_command(&d);
        add_settings(&d);
        look_at_command(&d);
        if (!d.cl)
            decide(&d, "start", 0, "enabled is no: without a lock");
        decide_lock(&d);
        code = print_report(&d);
        if (!code)
            code = d.code;
    } else {
        code = dibs__cli_fail(cmd, &err);
    }
    if (!d.json || rc != DIBS_OK)
        dibsx_buf_fini(&d.report.buf);
    dibsx_buf_fini(&d.lines);
    dibs_close(d.cl);
    return code;
}
