/* changes.c - an operator's changes by the command, with their entries in the trail.
 * Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/messages.h"
#include "cli/option_values.h"
#include "jobs/board_name.h"
#include "show/change_trail.h"

enum { USER_SIZE = 128 };

const char *dibs__cli_change_reason(const dibs__command *cmd)
{
    return dibs__opt_has(cmd, "reason") && dibs__opt_given(cmd, "reason")
               ? dibs__opt_text(cmd, "reason")
               : NULL;
}

static void say_missing(const dibs__command *cmd, const dibs__change *change,
                        const dibs_error *err)
{
    if (!dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("the trail did not take %s of %s: %s", change->action,
                      change->target, err->message);
}

int dibs__cli_change_begin(const dibs__command *cmd, dibs_client *cl,
                           const char *action, const char *target)
{
    char user[USER_SIZE];
    const dibs__change change = {.action = action,
                                 .target = target,
                                 .cause = {.reason =
                                               dibs__cli_change_reason(cmd),
                                           .who = user}};
    dibs_error err = {0};

    dibs__board_whoami(user, sizeof(user));
    if (dibs__change_add(cl, &change, &err) == DIBS_OK)
        return 0;
    say_missing(cmd, &change, &err);
    return dibs__cli_fail(cmd, &err);
}

void dibs__cli_change_end_items(const dibs__command *cmd, dibs_client *cl,
                                const char *action, const char *target,
                                uint64_t done, dibs_status rc)
{
    char user[USER_SIZE];
    const dibs__change change = {.action = action,
                                 .target = target,
                                 .cause = {.who = user}};
    dibs_error err = {0};

    dibs__board_whoami(user, sizeof(user));
    if (!dibs__change_may_be_done(rc) &&
        dibs__change_add_failed(cl, &change, rc, done, &err) != DIBS_OK)
        say_missing(cmd, &change, &err);
}

void dibs__cli_change_end(const dibs__command *cmd, dibs_client *cl,
                          const char *action, const char *target,
                          dibs_status rc)
{
    dibs__cli_change_end_items(cmd, cl, action, target, 0, rc);
}

void dibs__cli_change_made(const dibs__command *cmd, dibs_client *cl,
                           const char *action, const char *target,
                           const char *reason, dibs_status rc)
{
    char user[USER_SIZE];
    const dibs__change change = {.action = action,
                                 .target = target,
                                 .cause = {.reason = reason, .who = user}};
    dibs_error err = {0};

    dibs__board_whoami(user, sizeof(user));
    if (dibs__change_may_be_done(rc) &&
        dibs__change_add(cl, &change, &err) != DIBS_OK)
        say_missing(cmd, &change, &err);
}
