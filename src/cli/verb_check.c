/* verb_check.c - check: is a lock held, or still held by a token? */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/token.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* The findings of check. */
typedef struct finding {
    const dibs__command *cmd;
    const dibs__token *token; /* NULL: whoever holds it */
    bool held;
    int code;
} finding;

static bool matches(const finding *found, const dibs_party *party)
{
    return !party->left && (!found->token ||
                            (party->fence == found->token->fence &&
                             (!*found->token->owner ||
                              strcmp(party->owner, found->token->owner) == 0)));
}

static void say_holder(const dibs_party *party)
{
    char age[32], left[32];
    dibsx_buf text;

    dibsx_duration_text(party->age_ms, age, sizeof(age));
    dibsx_duration_text(party->left_ms, left, sizeof(left));
    dibsx_buf_init(&text, 4096);
    dibs__party_text(&text, party);
    printf("held by %s for %s, %s left, fence %llu\n", dibsx_buf_text(&text),
           age, left, (unsigned long long)party->fence);
    dibsx_buf_fini(&text);
}

static int check_report(const char *name, const dibs_party *holder)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", name);
    dibsx_json_pair_bool(&report.js, "held", holder != NULL);
    dibsx_json_key(&report.js, "holder");
    if (holder)
        dibs__json_party(&report.js, holder);
    else
        dibsx_json_null(&report.js);
    return dibs__report_end(&report);
}

static bool check_one(const dibs_lease_info *info, void *arg)
{
    finding *found = arg;
    const dibs_party *holder = NULL;

    for (size_t i = 0; i < info->holder_count && !holder; i++) {
        if (matches(found, &info->holders[i]))
            holder = &info->holders[i];
    }
    if (!holder)
        return false;
    found->held = true;
    if (dibs__opt_flag(found->cmd, "json"))
        found->code = check_report(info->name, holder);
    else if (!dibs__opt_flag(found->cmd, "quiet"))
        say_holder(holder);
    return false;
}

static int check_name(finding *found, dibs_client *cl, const char *name)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lease_show(cl, name, check_one, found, &err);

    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return dibs__cli_fail(found->cmd, &err);
    if (found->held)
        return found->code;
    if (dibs__opt_flag(found->cmd, "json"))
        found->code = check_report(name, NULL);
    else if (!dibs__opt_flag(found->cmd, "quiet"))
        puts(found->token ? "lost" : "free");
    if (found->code)
        return found->code;
    return found->token ? DIBS__EXIT_LOST : 1;
}

static int check_lock(const dibs__command *cmd)
{
    dibs__token token;
    dibs_error err = {0};
    bool given = false;
    finding found = {.cmd = cmd};
    dibs_client *cl = NULL;
    int code;

    if (dibs__token_read(cmd, &token, &given, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    found.token = given ? &token : NULL;
    code = dibs__cli_open(cmd, &cl);
    if (code == 0)
        code = check_name(&found, cl, dibs__operands(cmd)[0]);
    dibs_close(cl);
    return code;
}

const dibs__verb dibs__verb_check = {
    .name = "check",
    .operands = "NAME",
    .summary = "tell whether a lock is held, or still held by a token",
    .about = "Without a token: is anyone holding NAME? With one: is it still "
             "the holder? The token is what acquire printed, OWNER:FENCE, or "
             "only the fence. Changes nothing.\n",
    .examples = "Stop when the lock is gone:\n"
                "  dibs check -q deploy --token \"$token\" || exit\n"
                "The same in a command of dibs run:\n"
                "  dibs check -q deploy --token \"$DIBS_LOCK_FENCE\" || exit\n",
    .exits = "0 held; with a token: held by it\n"
             "1 free (only without a token)\n"
             "122 the token holds it no longer\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = check_lock,
};
