/* lock_request.c - what run and acquire ask for, from their options and, for nested runs,
 * from the environment. */
/* SPDX-License-Identifier: MIT */
#include "cli/lock_request.h"

#include "cli/option_values.h"
#include "cli/options.h"
#include "config/settings.h"
#include <stdlib.h>
#include <string.h>

/* Options of taking a lock. Other verbs ask for some of them, such as ttl. */
static const dibs__option options[] = {
    {.name = "shared",
     .letter = 's',
     .help = "Hold the lock beside others that share it: a reader."},
    {.name = "exclusive",
     .letter = 'x',
     .help = "Hold the lock alone: a mutex, or the writer among readers. This "
             "is the default."},
    {DIBS__ROW_INT("permits", "N", 1, UINT32_MAX), .letter = 'p',
     .help = "Use the name as a semaphore of N permits, and hold one of them; "
             "every user of the name must give the same N."},
    {DIBS__ROW_INT("take", "K", 1, UINT32_MAX), .initial = "1",
     .help = "With --permits: hold K of the permits at once."},
    {DIBS__ROW_TEXT("also", "NAME"), .many = true,
     .help = "Hold this name as well: all or none; cannot deadlock. May be "
             "given again."},
    {DIBS__SETTING_ENABLED, .verbs = "run",
     .help = "Take the lock although a variable or file says enabled: no. With "
             "no, run needs no store: it runs the command without a lock, and "
             "says so on standard error. For one machine that works alone, "
             "such as a developer's."},
    {DIBS__ROW_NONBLOCK,
     .help =
         "Do not wait: give up at once when the lock is busy. Not with -w."},
    {DIBS__SETTING_WAIT, .aliases = "timeout", .letter = 'w', .metavar = "DUR",
     .otherwise = "wait without limit",
     .help = "Wait at most this long for the lock, and for a store that is not "
             "up; 0 is the same as -n. Without it dibs waits for the lock "
             "alone. -n wins over a variable or file that says how long."},
    {DIBS__ROW_SPAN("wait", 0, DIBS__YEAR), .letter = 'w', .initial = "0s",
     .otherwise = "do not wait", .verbs = "ping",
     .help = "Wait at most this long for a store that is not up yet."},
    {DIBS__ROW_CONFLICT,
     .help = "The exit code when the lock is busy or was not granted in time. "
             "Under cron, -E 0 makes a skipped run a success."},
    {DIBS__SETTING_TTL, .metavar = "DUR",
     .help = "The length of the lease: if the holder dies, others wait this "
             "long. run and elect renew it every third of this, or as "
             "--renew-every says."},
    {DIBS__SETTING_RENEW_EVERY, .metavar = "DUR",
     .otherwise = "a third of the ttl", .verbs = "run,elect",
     .help = "Renew the lease this often, at most a third of --ttl. Sooner "
             "costs requests and notices sooner that the store has lost the "
             "lease. From a variable or file it is cut to a third of the ttl."},
    {DIBS__SETTING_RETRIES, .metavar = "N",
     .help =
         "Retry this many times when the lock is busy or the store is not up."},
    {DIBS__SETTING_RETRY_DELAY, .metavar = "DUR",
     .help = "Pause before each retry, with some jitter."},
    {DIBS__SETTING_ON_UNAVAILABLE, .metavar = "POLICY", .verbs = "run",
     .help = "When the store is unavailable: fail; local, hold the lock on "
             "this machine only, in the embedded store; or open, go on without "
             "a lock. The last two print a warning on standard error."},
    {DIBS__SETTING_DURABILITY, .metavar = "LEVEL",
     .offers = "async|wait:1|wait:2", .otherwise = "async",
     .help = "Replicas that must acknowledge a grant, a push or an ack: async, "
             "none; or wait:K, K of them (1 to 9), so that a failover does not "
             "lose it. Redis only."},
    {DIBS__ROW_SPAN("hold-min", 0, DIBS__DAYS(1)), .initial = "0s",
     .verbs = "run",
     .help = "Keep others out at least this long, even when the command ends "
             "sooner. Guards a short job against clocks that differ."},
    {DIBS__ROW_SPAN("hold-max", 0, DIBS__YEAR), .initial = "0s",
     .otherwise = "no bound", .verbs = "run",
     .help = "Hold the lock no longer than this. Shortly before, the command "
             "is ended as --on-lost says: it has --kill-after to end in, or a "
             "twentieth of DUR if that is less. 0 is no bound."},
    {DIBS__SETTING_OWNER, .aliases = "label", .metavar = "TEXT",
     .otherwise = "none",
     .help = "A label that others see beside host and pid."},
    {DIBS__ROW_TEXT("meta", "KEY=VALUE"), .many = true,
     .help = "A piece of information that others see with the lock, or with "
             "the member. May be given again."},
    {DIBS__ROW_INT("priority", "N", -1000000, 1000000), .initial = "0",
     .help = "Among waiters, a higher priority is served first."},
    {.name = "barge",
     .help = "Take the lock whenever it is free, even when others are queued "
             "for it."},
    {DIBS__ROW_SPAN("lock-delay", 0, DIBS__DAYS(1)), .initial = "0s",
     .help = "When this holder dies, the next one waits this much longer than "
             "the lease: time for what is still under way to end."},
    {DIBS__SETTING_SHARE_STATS,
     .help = "Add the use of this lock to the statistics in the store, which "
             "dibs stats shows."},
    {DIBS__SETTING_SHARE_EVENTS,
     .help = "Tell those who watch, such as the dashboard, when this lock is "
             "acquired and released, however short it is held."},
};

const dibs__option_rows dibs__options_lock =
    DIBS__SHARED_ROWS("run,acquire", options);

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
        return say_usage(cmd, "--shared, --exclusive and --permits exclude "
                              "each other; give one of them");
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

/* From a variable or file it is for locks of every ttl: the client cuts it. */
int dibs__lock_request_renewal(const dibs__command *cmd, dibs_lock_opts *lock)
{
    if (!is_typed(cmd, "renew-every"))
        return 0;
    lock->renew_every_ms = dibs__opt_ms(cmd, "renew-every");
    if (lock->renew_every_ms <= lock->ttl_ms / DIBS_RENEWALS_PER_TTL)
        return 0;
    return say_usage(cmd, "--renew-every is more than a third of --ttl, so "
                          "that a renewal that fails could be a loss");
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
