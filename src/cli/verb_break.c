/* verb_break.c - break: taking locks away, with care, or asking for them. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/changes.h"
#include "cli/confirm.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/token.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

static void say_holder(const char *name, const dibs_party *holder)
{
    dibsx_buf text;
    char age[32];

    dibsx_buf_init(&text, 4096);
    dibs__party_text(&text, holder);
    dibsx_duration_text(holder->age_ms, age, sizeof(age));
    dibs__cli_say("%s is held by %s for %s, fence %llu%s%s", name,
                  dibsx_buf_text(&text), age, (unsigned long long)holder->fence,
                  holder->stale ? ", stale: " : "",
                  holder->stale ? holder->stale : "");
    dibsx_buf_fini(&text);
}

static bool describe(const dibs_lease_info *info, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < info->holder_count; i++)
        say_holder(info->name, &info->holders[i]);
    return false;
}

static bool describe_stale(const dibs_lease_info *info, void *arg)
{
    bool *any = arg;

    for (size_t i = 0; i < info->holder_count; i++) {
        if (!info->holders[i].stale)
            continue;
        say_holder(info->name, &info->holders[i]);
        *any = true;
    }
    return true;
}

static int confirm_one(const dibs__command *cmd, dibs_client *cl)
{
    dibs_error err = {0};

    if (dibs_lease_show(cl, dibs__operands(cmd)[0], describe, NULL, &err) !=
        DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return dibs__confirm("its holder may still be at work. Break it?");
}

/* *any: there is something to be broken. */
static int confirm_stale(const dibs__command *cmd, dibs_client *cl, bool *any)
{
    dibs_error err = {0};

    if (dibs_lease_list(cl, dibs__operands(cmd)[0], describe_stale, any,
                        &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return *any ? dibs__confirm("their holders seem to be gone. Break them?")
                : 0;
}

/* In words the client has logged it, and says more. */
static int
report_count(const dibs__command *cmd, const char *key, uint32_t count)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json"))
        return 0;
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js,
                         dibs__opt_flag(cmd, "stale") ? "prefix" : "name",
                         dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, key, count);
    return dibs__report_end(&report);
}

static int break_one(const dibs__command *cmd, dibs_client *cl, uint64_t fence)
{
    uint32_t broken = 0;
    dibs_error err = {0};

    if (!dibs__opt_flag(cmd, "yes")) {
        int code = confirm_one(cmd, cl);

        if (code)
            return code;
    }
    if (dibs_lease_break(cl, dibs__operands(cmd)[0], fence,
                         dibs__opt_text(cmd, "reason"), &broken,
                         &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return report_count(cmd, "broken", broken);
}

static int break_stale(const dibs__command *cmd, dibs_client *cl)
{
    uint32_t broken = 0;
    bool any = true;
    dibs_error err = {0};
    int code = 0;

    if (!dibs__opt_flag(cmd, "yes")) {
        any = false;
        code = confirm_stale(cmd, cl, &any);
    }
    if (code)
        return code;
    if (any && dibs_lease_break_stale(cl, dibs__operands(cmd)[0],
                                      dibs__opt_text(cmd, "reason"), &broken,
                                      &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (!broken && !dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("no lease is stale");
    return report_count(cmd, "broken", broken);
}

/* 1 when nobody can hear. */
static int
ask_holders(const dibs__command *cmd, dibs_client *cl, uint64_t fence)
{
    const char *name = dibs__operands(cmd)[0];
    uint32_t asked = 0;
    dibs_error err = {0};
    int code;

    if (dibs_lease_yield(cl, name, fence, &asked, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    dibs__cli_change_made(cmd, cl, "yield", name, dibs__cli_change_reason(cmd),
                          DIBS_OK);
    if (!dibs__opt_flag(cmd, "quiet")) {
        if (asked)
            dibs__cli_say("%s: %u can hear that it is asked for", name,
                          (unsigned)asked);
        else
            dibs__cli_say("%s: its holder cannot hear that it is asked for",
                          name);
    }
    code = report_count(cmd, "asked", asked);
    return code ? code : !asked;
}

static int say_usage(const char *why)
{
    dibs__cli_say("%s", why);
    return DIBS__EXIT_USAGE;
}

/* 0 when the command line says enough, else the exit code. */
static int check_usage(const dibs__command *cmd)
{
    bool fence = dibs__opt_given(cmd, "if-fence");
    bool force = dibs__opt_flag(cmd, "force");
    bool stale = dibs__opt_flag(cmd, "stale"),
         asks = dibs__opt_flag(cmd, "ask");

    if (!stale && dibs__operand_count(cmd) < 1)
        return say_usage("break needs NAME, or --stale");
    if (stale && (fence || force || asks))
        return say_usage(
            "break --stale takes neither --if-fence nor --force nor --ask");
    if (asks && force)
        return say_usage("break takes --ask or --force, not both");
    if (fence && force)
        return say_usage("break takes --if-fence FENCE or --force, not both");
    if (!fence && !force && !stale && !asks)
        return say_usage("break needs --if-fence FENCE or --force");
    return asks ? 0 : dibs__confirm_possible(cmd);
}

/* 0: every holder. */
static int read_fence(const dibs__command *cmd, uint64_t *fence)
{
    dibs__token token = {.fence = 0};
    dibs_error err = {0};

    if (dibs__opt_given(cmd, "if-fence") &&
        dibs__token_parse(dibs__opt_text(cmd, "if-fence"), &token, &err) !=
            DIBS_OK)
        return say_usage("--if-fence: not a fence: the number is expected that "
                         "show prints, or the token that acquire printed");
    *fence = token.fence;
    return 0;
}

static int break_lock(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    uint64_t fence = 0;
    int code = check_usage(cmd);

    if (code == 0)
        code = read_fence(cmd, &fence);
    if (code == 0)
        code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs__opt_flag(cmd, "ask"))
        code = ask_holders(cmd, cl, fence);
    else if (dibs__opt_flag(cmd, "stale"))
        code = break_stale(cmd, cl);
    else
        code = break_one(cmd, cl, fence);
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {.name = "ask",
     .help = "Break nothing: ask the holder to give the lock back. The holder "
             "decides (--on-yield of run)."},
    {DIBS__ROW_TEXT("if-fence", "FENCE"), .aliases = "if-token",
     .help = "Break only the lease with this fence, as show prints it. A "
             "token, OWNER:FENCE, will do as well."},
    {.name = "force", .help = "Break whatever lease there is."},
    {DIBS__ROW_TEXT("reason", "TEXT"),
     .help = "The reason, for the log and the trail."},
};

const dibs__option_rows dibs__options_break =
    DIBS__OPTION_ROWS("break", options);

const dibs__verb dibs__verb_break = {
    .name = "break",
    .operands = "NAME | --stale [PREFIX]",
    .summary = "take a lock away from its holder, or ask for it",
    .about =
        "Needs --if-fence FENCE (break only what you have seen) or --force. "
        "Asks on a terminal; elsewhere --yes is needed. The trail records "
        "what was broken, by whom and why (dibs trail).\n"
        "--stale breaks every lease whose holder seems to be gone, as ls "
        "--stale lists them, of names that begin with PREFIX, if it is "
        "given.\n"
        "--ask breaks nothing: it asks the holder to give the lock back, and "
        "says how many holders were notified. Programs that listen hear it, "
        "and dibs run with --on-yield; the store does not know which of the "
        "notified ones do.\n"
        "The holder learns of it at its next renewal at the latest. Until "
        "then it still works: only what checks the fence is "
        "protected.\n",
    .examples = "Break the lease that show printed:\n"
                "  dibs break nightly --if-fence 1731628800000000 "
                "--reason 'host is gone'\n"
                "Ask first:\n"
                "  dibs break nightly --ask\n",
    .exits = "0 broken; with --stale also when there was nothing; with "
             "--ask: somebody can hear it\n"
             "1 nobody holds it, the fence is another, the answer was no, or "
             "nobody can hear it\n",
    .options = "json,owner,stale,yes",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = break_lock,
};
