/* verb_break.c - break: taking a lock away, with care. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool describe(const dibs_lease_info *info, void *arg)
{
    dibsx_buf text;
    char age[32];

    (void)arg;
    dibsx_buf_init(&text, 4096);
    for (size_t i = 0; i < info->holder_count; i++) {
        dibsx_buf_reset(&text);
        dibs__party_text(&text, &info->holders[i]);
        dibsx_duration_text(info->holders[i].age_ms, age, sizeof(age));
        dibs__cli_say("%s is held by %s for %s, fence %llu", info->name,
                      dibsx_buf_text(&text), age,
                      (unsigned long long)info->holders[i].fence);
    }
    dibsx_buf_fini(&text);
    return false;
}

/* Asks on the terminal. 0 for yes, else the exit code. */
static int confirm(const dibs__command *cmd, dibs_client *cl, const char *name)
{
    dibs_error err = {0};
    char answer[16];

    if (dibs_lease_show(cl, name, describe, NULL, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    fprintf(stderr, "dibs: its holder may still be at work. Break it? [y/N] ");
    if (fgets(answer, sizeof(answer), stdin) &&
        (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    dibs__cli_say("nothing was changed");
    return 1;
}

static int
report_broken(const dibs__command *cmd, const char *name, uint32_t broken)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json"))
        return 0; /* the client has logged it */
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", name);
    dibsx_json_pair_uint(&report.js, "broken", broken);
    return dibs__report_end(&report);
}

/* 0 when the command line says enough, else the exit code. */
static int check_usage(const dibs__command *cmd)
{
    bool fence = dibs__opt_given(cmd, "if-token");

    if (fence == dibs__opt_flag(cmd, "force")) {
        dibs__cli_say("break needs --if-token FENCE or --force%s",
                      fence ? ", not both" : "");
        return DIBS__EXIT_USAGE;
    }
    if (!dibs__opt_flag(cmd, "yes") && !isatty(STDIN_FILENO)) {
        dibs__cli_say("there is no terminal to ask on: --yes is needed");
        return DIBS__EXIT_USAGE;
    }
    return 0;
}

int dibs__verb_break(const dibs__command *cmd)
{
    const char *name = dibs__operands(cmd)[0];
    uint64_t fence = 0;
    uint32_t broken = 0;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = check_usage(cmd);

    if (code == 0)
        code = dibs__cli_open(cmd, &cl);
    if (code == 0 && !dibs__opt_flag(cmd, "yes"))
        code = confirm(cmd, cl, name);
    if (code)
        goto out;
    if (dibs__opt_given(cmd, "if-token"))
        fence = (uint64_t)dibs__opt_int(cmd, "if-token");
    if (dibs_lease_break(cl, name, fence, dibs__opt_text(cmd, "reason"),
                         &broken, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = report_broken(cmd, name, broken);
out:
    dibs_close(cl);
    return code;
}
