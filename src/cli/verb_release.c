/* verb_release.c - release and renew: going on with a lease that acquire left. */
/* SPDX-License-Identifier: MIT */
#include "cli/option_values.h"
#include "cli/print.h"
#include "cli/token.h"

/* To adopt a lease that is then released takes no more than this: a store may not
 * allow for the default. The remaining time does not get less. */
enum { RELEASE_TTL_MS = 1000 };

/* The common part of both. */
typedef struct half {
    const dibs__command *cmd;
    const char *name;
    int64_t ttl_ms; /* to adopt it with; 0: what was asked for */
    dibs_client *cl;
    dibs_lock *lock;
} half;

static void half_close(half *hf)
{
    dibs_lock_free(hf->lock);
    dibs_close(hf->cl);
}

/* Takes the lease over by its token, which renews it. */
static dibs_status adopt(half *hf, const dibs__token *token, dibs_error *err)
{
    dibs_lock_opts opts = {.size = sizeof(opts),
                           .flags = DIBS_LOCK_NO_RENEW,
                           .ttl_ms = hf->ttl_ms};
    dibs_status rc;

    if (hf->ttl_ms == 0 && dibs__opt_has(hf->cmd, "ttl"))
        opts.ttl_ms = dibs__opt_ms(hf->cmd, "ttl");
    rc = dibs_lock_new(hf->cl, hf->name, &opts, &hf->lock, err);
    if (rc != DIBS_OK)
        return rc;
    return dibs_lock_adopt(hf->lock, token->owner, token->fence, err);
}

/* Everyone can see a fence, so it is no proof of whose the lease is. */
static int say_fence_alone(const half *hf, uint64_t fence)
{
    dibs__cli_say("%llu is a fence, and the token is needed: OWNER:FENCE, as "
                  "acquire prints it ($DIBS_LOCK_OWNER:$DIBS_LOCK_FENCE under "
                  "dibs run); to end the lease of another: dibs break %s "
                  "--if-fence %llu",
                  (unsigned long long)fence, hf->name,
                  (unsigned long long)fence);
    return DIBS__EXIT_USAGE;
}

/* Opens the store and adopts: 0, or the exit code. */
static int half_open(half *hf)
{
    dibs__token token;
    dibs_error err = {0};
    bool given = false;
    int code;

    if (dibs__token_read(hf->cmd, &token, &given, &err) != DIBS_OK)
        return dibs__cli_fail(hf->cmd, &err);
    if (!given) {
        dibs__cli_say("--token or --token-file is needed");
        return DIBS__EXIT_USAGE;
    }
    if (!*token.owner)
        return say_fence_alone(hf, token.fence);
    code = dibs__cli_open(hf->cmd, &hf->cl);
    if (code == 0 && adopt(hf, &token, &err) != DIBS_OK)
        code = dibs__cli_fail(hf->cmd, &err);
    return code;
}

static int release_lock(const dibs__command *cmd)
{
    half hf = {.cmd = cmd,
               .name = dibs__operands(cmd)[0],
               .ttl_ms = RELEASE_TTL_MS};
    dibs_error err = {0};
    int code = half_open(&hf);

    if (code == 0 && dibs_lock_release(hf.lock, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    half_close(&hf);
    return code;
}

static int renew_lock(const dibs__command *cmd)
{
    half hf = {.cmd = cmd, .name = dibs__operands(cmd)[0]};
    dibs__report report;
    int code = half_open(&hf);

    if (code == 0 && dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        dibs__token_json(&report.js, hf.name, hf.lock);
        code = dibs__report_end(&report);
    }
    if (hf.lock)
        dibs_lock_leave(hf.lock);
    half_close(&hf);
    return code;
}

const dibs__verb dibs__verb_release = {
    .name = "release",
    .operands = "NAME",
    .summary = "give back what acquire took",
    .about = "Needs --token or --token-file. The next in the queue is served "
             "at once.\n",
    .examples = "Release by the token's file:\n"
                "  dibs release unit --token-file /run/unit.token\n",
    .exits = "0 given back\n"
             "122 it was held no longer\n",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = release_lock,
};

const dibs__verb dibs__verb_renew = {
    .name = "renew",
    .operands = "NAME",
    .summary = "extend what acquire took",
    .about = "Needs --token or --token-file. The lease lasts --ttl from now; "
             "it is never made shorter.\n",
    .examples = "Half an hour more:\n"
                "  dibs renew deploy --ttl 30m --token \"$token\"\n",
    .exits = "0 extended\n"
             "122 it is held no longer\n",
    .options = "json,ttl",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = renew_lock,
};
