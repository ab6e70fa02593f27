/* verb_break.c - break: taking locks away, with care, or asking for them. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Asks on the terminal. 0 for yes, else the exit code. */
static int confirm_on_terminal(const char *question)
{
    char answer[16];

    fprintf(stderr, "dibs: %s [y/N] ", question);
    if (fgets(answer, sizeof(answer), stdin) &&
        (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    dibs__cli_say("nothing was changed");
    return 1;
}

static int confirm_one(const dibs__command *cmd, dibs_client *cl)
{
    dibs_error err = {0};

    if (dibs_lease_show(cl, dibs__operands(cmd)[0], describe, NULL, &err) !=
        DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return confirm_on_terminal("its holder may still be at work. Break it?");
}

/* *any: there is something to be broken. */
static int confirm_stale(const dibs__command *cmd, dibs_client *cl, bool *any)
{
    dibs_error err = {0};

    if (dibs_lease_list(cl, dibs__operands(cmd)[0], describe_stale, any,
                        &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return *any ? confirm_on_terminal(
                      "their holders seem to be gone. Break them?")
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

static uint64_t fence_of(const dibs__command *cmd)
{
    return dibs__opt_given(cmd, "if-token")
               ? (uint64_t)dibs__opt_int(cmd, "if-token")
               : 0;
}

static int break_one(const dibs__command *cmd, dibs_client *cl)
{
    uint32_t broken = 0;
    dibs_error err = {0};

    if (!dibs__opt_flag(cmd, "yes")) {
        int code = confirm_one(cmd, cl);

        if (code)
            return code;
    }
    if (dibs_lease_break(cl, dibs__operands(cmd)[0], fence_of(cmd),
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
static int ask_holders(const dibs__command *cmd, dibs_client *cl)
{
    const char *name = dibs__operands(cmd)[0];
    uint32_t asked = 0;
    dibs_error err = {0};
    int code;

    if (dibs_lease_yield(cl, name, fence_of(cmd), &asked, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
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
    bool fence = dibs__opt_given(cmd, "if-token");
    bool force = dibs__opt_flag(cmd, "force");
    bool stale = dibs__opt_flag(cmd, "stale"),
         asks = dibs__opt_flag(cmd, "ask");

    if (!stale && dibs__operand_count(cmd) < 1)
        return say_usage("break needs NAME, or --stale");
    if (stale && (fence || force || asks))
        return say_usage(
            "break --stale takes neither --if-token nor --force nor --ask");
    if (asks && force)
        return say_usage("break takes --ask or --force, not both");
    if (fence && force)
        return say_usage("break takes --if-token FENCE or --force, not both");
    if (!fence && !force && !stale && !asks)
        return say_usage("break needs --if-token FENCE or --force");
    if (!asks && !dibs__opt_flag(cmd, "yes") && !isatty(STDIN_FILENO)) {
        dibs__cli_say("there is no terminal to ask on: --yes is needed");
        return DIBS__EXIT_USAGE;
    }
    return 0;
}

static int break_lock(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    int code = check_usage(cmd);

    if (code == 0)
        code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs__opt_flag(cmd, "ask"))
        code = ask_holders(cmd, cl);
    else if (dibs__opt_flag(cmd, "stale"))
        code = break_stale(cmd, cl);
    else
        code = break_one(cmd, cl);
    dibs_close(cl);
    return code;
}

const dibs__verb dibs__verb_break = {
    .name = "break",
    .operands = "NAME | --stale [PREFIX]",
    .summary = "take a lock away from its holder, or ask for it",
    .about =
        "Needs --if-token FENCE (break only what you have seen) or --force. "
        "Asks on a terminal; elsewhere --yes is needed. The trail records "
        "what was broken, by whom and why (dibs trail).\n"
        "--stale breaks every lease whose holder seems to be gone, as ls "
        "--stale lists them, of names that begin with PREFIX, if it is "
        "given.\n"
        "--ask breaks nothing: it asks the holder to give the lock back, and "
        "says how many holders can hear that: programs that listen, and "
        "dibs run with --on-yield.\n"
        "The holder learns of it at its next renewal at the latest. Until "
        "then it still works: only what checks the fencing token is "
        "protected.\n",
    .examples = "Break the lease that show printed:\n"
                "  dibs break nightly --if-token 1731628800000000 "
                "--reason 'host is gone'\n"
                "Ask first:\n"
                "  dibs break nightly --ask\n",
    .exits = "0 broken; with --stale also when there was nothing; with "
             "--ask: somebody can hear it\n"
             "1 nobody holds it, the fence is another, the answer was no, or "
             "nobody can hear it\n",
    .options = "json",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = break_lock,
};
