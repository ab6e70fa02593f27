/* verb_lease.c - acquire, release, renew, check: the halves of a lock, for
 * scripts.
 *
 * What acquire takes outlives it: the token is all that is left, so it is handed
 * over before the lease is let go of, and the lease given back when that fails.
 */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/token.h"
#include "cli/waiting.h"

#include <stdio.h>
#include <string.h>

/* What the four have in common. */
typedef struct half {
    const dibs__command *cmd;
    const char *name;
    dibs_client *cl;
    dibs_lock *lock;
} half;

static void half_close(half *hf)
{
    dibs_lock_free(hf->lock);
    dibs_close(hf->cl);
}

static int report_lease(const half *hf, const dibs__token *token)
{
    char text[DIBS__TOKEN_SIZE];
    dibs__report report;

    dibs__token_text(token, text);
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", hf->name);
    dibsx_json_pair_text(&report.js, "token", text);
    dibsx_json_pair_text(&report.js, "owner", token->owner);
    dibsx_json_pair_uint(&report.js, "fence", token->fence);
    dibsx_json_pair_int(&report.js, "valid_ms", dibs_lock_valid_ms(hf->lock));
    return dibs__report_end(&report);
}

static int hand_over(const half *hf, dibs__token_file *file)
{
    char text[DIBS__TOKEN_SIZE];
    dibs__token token;
    dibs_error err;

    dibs_lock_owner(hf->lock, token.owner);
    token.fence = dibs_lock_fence(hf->lock);
    if (file && dibs__token_file_put(file, &token, &err) != DIBS_OK)
        return dibs__cli_fail(hf->cmd, &err);
    if (dibs__opt_flag(hf->cmd, "json"))
        return report_lease(hf, &token);
    if (file)
        return 0;
    dibs__token_text(&token, text);
    printf("%s\n", text);
    return dibs__out_done();
}

static int not_granted(const half *hf, dibs_status rc, const dibs_error *err)
{
    int code = (int)dibs__opt_int(hf->cmd, "conflict-exit-code");

    if (rc != DIBS_BUSY && rc != DIBS_TIMEOUT)
        return dibs__cli_fail(hf->cmd, err);
    if (code != 0)
        (void)dibs__cli_fail(hf->cmd, err);
    return code;
}

static int64_t wait_ms(const dibs__command *cmd)
{
    return dibs__opt_flag(cmd, "nonblock") ? 0 : dibs__opt_ms(cmd, "wait");
}

static dibs_status make_lock(half *hf, dibs_error *err)
{
    const dibs__command *cmd = hf->cmd;
    dibs_lock_opts opts = {
        .size = sizeof(opts),
        .flags = DIBS_LOCK_NO_RENEW,
        .ttl_ms = dibs__opt_ms(cmd, "ttl"),
        .wait_ms = wait_ms(cmd),
        .retries = (uint32_t)dibs__opt_int(cmd, "retries"),
        .retry_delay_ms = dibs__opt_ms(cmd, "retry-delay"),
        .priority = (int32_t)dibs__opt_int(cmd, "priority"),
    };

    if (dibs__opt_flag(cmd, "barge"))
        opts.flags |= DIBS_LOCK_BARGE;
    return dibs_lock_new(hf->cl, hf->name, &opts, &hf->lock, err);
}

/* Waits with the signals served; *fatal is one that ended it. */
static int
take(half *hf, dibs__token_file *file, const dibs__signals *sig, int *fatal)
{
    dibs__run_opts waiting = {
        .name = hf->name,
        .wait_ms = wait_ms(hf->cmd),
        .retries = (uint32_t)dibs__opt_int(hf->cmd, "retries"),
        .quiet = dibs__opt_flag(hf->cmd, "quiet"),
    };
    dibs_error err = {0};
    dibs_status rc = make_lock(hf, &err);
    int code;

    if (rc == DIBS_OK)
        rc = dibs__wait_acquire(hf->cl, hf->lock, &waiting, sig, fatal, &err);
    if (*fatal)
        return DIBS__EXIT_SIGNAL + *fatal;
    if (rc != DIBS_OK)
        return not_granted(hf, rc, &err);
    /* What is granted after a wait is a short claim until it is renewed, and
     * nothing will renew it once this process has gone. */
    if (dibs_lock_renew(hf->lock, &err) != DIBS_OK)
        return dibs__cli_fail(hf->cmd, &err);
    code = hand_over(hf, file);
    if (code == 0)
        dibs_lock_leave(hf->lock);
    return code;
}

int dibs__verb_acquire(const dibs__command *cmd)
{
    const char *path = dibs__opt_text(cmd, "token-file");
    half hf = {.cmd = cmd, .name = dibs__operands(cmd)[0]};
    dibs__token_file file = {.fd = -1};
    dibs__signals sig;
    dibs_error err;
    int fatal = 0, code;

    dibs__signals_block(&sig);
    if (path && dibs__token_file_open(&file, path, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    code = dibs__cli_open(cmd, &hf.cl);
    if (code == 0)
        code = take(&hf, path ? &file : NULL, &sig, &fatal);
    half_close(&hf);
    dibs__token_file_close(&file);
    if (!fatal)
        fatal = dibs__signals_pending(&sig);
    if (fatal && code)
        dibs__signal_die(fatal);
    return code;
}

/* Takes the lease over by its token, which renews it. */
static dibs_status adopt(half *hf, const dibs__token *token, dibs_error *err)
{
    dibs_lock_opts opts = {.size = sizeof(opts), .flags = DIBS_LOCK_NO_RENEW};
    dibs_status rc;

    if (dibs__opt_has(hf->cmd, "ttl"))
        opts.ttl_ms = dibs__opt_ms(hf->cmd, "ttl");
    rc = dibs_lock_new(hf->cl, hf->name, &opts, &hf->lock, err);
    if (rc != DIBS_OK)
        return rc;
    return dibs_lock_adopt(hf->lock, token->owner, token->fence, err);
}

/* Opens the store and adopts: 0, or the exit code. */
static int half_open(half *hf, dibs__token *token)
{
    dibs_error err = {0};
    bool given = false;
    int code;

    if (dibs__token_read(hf->cmd, token, &given, &err) != DIBS_OK)
        return dibs__cli_fail(hf->cmd, &err);
    if (!given) {
        dibs__cli_say("--token or --token-file is needed");
        return DIBS__EXIT_USAGE;
    }
    code = dibs__cli_open(hf->cmd, &hf->cl);
    if (code == 0 && adopt(hf, token, &err) != DIBS_OK)
        code = dibs__cli_fail(hf->cmd, &err);
    return code;
}

int dibs__verb_release(const dibs__command *cmd)
{
    half hf = {.cmd = cmd, .name = dibs__operands(cmd)[0]};
    dibs__token token;
    dibs_error err = {0};
    int code = half_open(&hf, &token);

    if (code == 0 && dibs_lock_release(hf.lock, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    half_close(&hf);
    return code;
}

int dibs__verb_renew(const dibs__command *cmd)
{
    half hf = {.cmd = cmd, .name = dibs__operands(cmd)[0]};
    dibs__token token;
    int code = half_open(&hf, &token);

    if (code == 0) {
        if (dibs__opt_flag(cmd, "json"))
            code = report_lease(&hf, &token);
        dibs_lock_leave(hf.lock);
    }
    half_close(&hf);
    return code;
}

/* What check has found out. */
typedef struct finding {
    const dibs__command *cmd;
    const dibs__token *token; /* NULL: whoever holds it */
    bool held;
    int code;
} finding;

static bool matches(const finding *found, const dibs_party *party)
{
    return !party->left &&
           (!found->token || (party->fence == found->token->fence &&
                              strcmp(party->owner, found->token->owner) == 0));
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

int dibs__verb_check(const dibs__command *cmd)
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
