/* lock_request.c - what run and acquire ask for, from their options and, for nested runs,
 * from the environment. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_request.h"

#include "cli/option_values.h"
#include <stdlib.h>
#include <string.h>

/* Bytes of metadata, with some to spare for what run adds. */
enum { META_BYTES = 200 };

static int say_usage(const dibs__command *cmd, const char *why)
{
    dibs__cli_say("%s: %s", cmd->verb->name, why);
    return DIBS__EXIT_USAGE;
}

static bool has_name(const dibs__lock_request *request, const char *name)
{
    for (size_t i = 0; i < request->count; i++)
        if (strcmp(request->names[i], name) == 0)
            return true;
    return false;
}

static int read_names(const dibs__command *cmd, dibs__lock_request *request)
{
    const char *const *also = dibs__opt_all(cmd, "also");

    request->names[request->count++] = dibs__operands(cmd)[0];
    for (; *also; also++) {
        if (has_name(request, *also))
            continue;
        if (request->count == DIBS_MULTI_MAX)
            return say_usage(cmd, "too many names: at most 64 at once");
        request->names[request->count++] = *also;
    }
    return 0;
}

static int read_mode(const dibs__command *cmd, dibs__lock_request *request)
{
    bool permits = dibs__opt_given(cmd, "permits");
    bool shared = dibs__opt_flag(cmd, "shared");
    int64_t take = dibs__opt_int(cmd, "take");

    if (shared + permits + dibs__opt_flag(cmd, "exclusive") > 1)
        return say_usage(cmd, "one of --shared, --exclusive and --permits");
    if (!permits) {
        request->lock.mode = shared ? DIBS_SHARED : DIBS_EXCLUSIVE;
        return dibs__opt_given(cmd, "take")
                   ? say_usage(cmd, "--take goes with --permits")
                   : 0;
    }
    if (take > dibs__opt_int(cmd, "permits"))
        return say_usage(cmd, "--take is more than there are of --permits");
    if (request->count > 1)
        return say_usage(cmd, "--permits is for one name: not with --also");
    request->lock.mode = DIBS_PERMITS;
    request->lock.capacity = (uint32_t)dibs__opt_int(cmd, "permits");
    request->lock.permits = (uint32_t)take;
    return 0;
}

/* Adds in whose locks this command runs, as far as there is room: it is left out
 * rather than have a lease refused for it. */
static void add_within(dibs__lock_request *request, size_t count, size_t used)
{
    size_t room = used < META_BYTES ? META_BYTES - used : 0;

    if (count > DIBS__META_TEXTS)
        return;
    if (room > sizeof(request->within))
        room = sizeof(request->within);
    dibs__run_env_within(getenv("DIBS_LOCK_CHAIN"), request->within, room);
    if (!request->within[0])
        return;
    memcpy(request->meta, request->lock.meta, count * sizeof(*request->meta));
    request->meta[count] = request->within;
    request->lock.meta = request->meta;
}

static bool is_typed(const dibs__command *cmd, const char *name)
{
    const dibs__option *option =
        dibs__option_find(cmd->verb->name, name, strlen(name));

    return dibs__option_value_of(cmd, option)->source == DIBS__FROM_FLAG;
}

/* Which of the two is meant cannot be known. */
static int check_wait(const dibs__command *cmd)
{
    if (is_typed(cmd, "nonblock") && is_typed(cmd, "wait"))
        return say_usage(cmd, "-n does not wait and -w does; give one of them");
    return 0;
}

static int read_meta(const dibs__command *cmd, dibs__lock_request *request)
{
    size_t count = 0, used = 0;

    request->lock.meta = dibs__opt_all(cmd, "meta");
    for (; request->lock.meta[count]; count++) {
        const char *text = request->lock.meta[count];

        if (!strchr(text, '=') || *text == '=')
            return say_usage(cmd, "--meta is KEY=VALUE");
        used += strlen(text) + 1;
    }
    add_within(request, count, used);
    return 0;
}

/* With a number of retries, the first try must not wait for ever. */
static int64_t wait_ms(const dibs__command *cmd)
{
    if (dibs__opt_flag(cmd, "nonblock"))
        return 0;
    if (dibs__opt_given(cmd, "wait"))
        return dibs__opt_ms(cmd, "wait");
    return dibs__opt_int(cmd, "retries") > 0 ? 0 : -1;
}

int dibs__lock_request_read(const dibs__command *cmd,
                            dibs__lock_request *request)
{
    *request = (dibs__lock_request){
        .lock =
            {
                .size = sizeof(request->lock),
                .flags = dibs__opt_flag(cmd, "barge") ? DIBS_LOCK_BARGE : 0,
                .ttl_ms = dibs__opt_ms(cmd, "ttl"),
                .wait_ms = wait_ms(cmd),
                .retries = (uint32_t)dibs__opt_int(cmd, "retries"),
                .retry_delay_ms = dibs__opt_ms(cmd, "retry-delay"),
                .priority = (int32_t)dibs__opt_int(cmd, "priority"),
                .label = dibs__opt_text(cmd, "owner"),
                .lock_delay_ms = dibs__opt_ms(cmd, "lock-delay"),
                .durability = dibs__opt_text(cmd, "durability"),
            },
        .busy_code = (int)dibs__opt_int(cmd, "conflict-exit-code"),
        .counted = dibs__opt_flag(cmd, "share-stats"),
        .quiet = dibs__opt_flag(cmd, "quiet"),
    };
    request->patient = request->lock.wait_ms > 0 || request->lock.retries > 0;
    int code = check_wait(cmd);
    if (!code)
        code = read_names(cmd, request);
    if (!code)
        code = read_mode(cmd, request);
    if (!code)
        code = read_meta(cmd, request);
    return code;
}

int dibs__lock_request_open(const dibs__command *cmd,
                            dibs__lock_request *request, dibs_client **out)
{
    int code = request->patient ? dibs__cli_open_lazy(cmd, out)
                                : dibs__cli_open(cmd, out);

    if (code == 0)
        request->patient = request->patient ||
                           (request->lock.wait_ms != 0 && dibs_is_lazy(*out));
    return code;
}

bool dibs__lock_request_outwaits(const dibs__lock_request *request,
                                 dibs_status rc)
{
    return request->patient && (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
}

int dibs__lock_request_refused(const dibs__command *cmd,
                               const dibs__lock_request *request,
                               const dibs_error *err)
{
    if (err->status != DIBS_BUSY && err->status != DIBS_TIMEOUT)
        return dibs__cli_fail(cmd, err);
    if (request->busy_code != 0)
        (void)dibs__cli_fail(cmd, err);
    return request->busy_code;
}
