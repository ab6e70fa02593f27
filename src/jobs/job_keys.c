/* job_keys.c - the keys of a jobs file, in order of names. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_keys.h"

#include "jobs/definition.h"
#include <string.h>

enum { TEXT_MAX = 12 * 1024 };

#define SECOND    INT64_C(1000)
#define HOUR      (3600 * SECOND)
#define DAY       (24 * HOUR)
#define YEAR      (366 * DAY)
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define AT(field) offsetof(STRUCT, field)

#define STRUCT    dibs__misfire
static const dibs__key misfire_rows[] = {
    {.name = "grace",
     .type = DIBS__KEY_DURATION,
     .at = AT(grace_ms),
     .max = YEAR,
     .initial = "60s",
     .doc = "with skip: how late a tick may be and still run"},
    {.name = "max",
     .type = DIBS__KEY_INT,
     .at = AT(max),
     .min = 1,
     .max = 100,
     .initial = "100",
     .doc = "with run_all: how many missed ticks run; older ones are "
            "recorded as missed"},
    {.name = "policy",
     .type = DIBS__KEY_CHOICE,
     .at = AT(policy),
     .choices = "skip|run_once|run_all",
     .initial = "run_once",
     .doc = "which ticks run that were missed while no node was there"},
};
static const dibs__keys misfire_keys = {"misfire", misfire_rows,
                                        COUNT(misfire_rows)};

#undef STRUCT
#define STRUCT dibs__job_lock
static const dibs__key lock_rows[] = {
    {.name = "hold_min",
     .type = DIBS__KEY_DURATION,
     .at = AT(hold_min_ms),
     .max = DAY,
     .initial = "0",
     .doc = "keep the lock at least this long, however short the run is"},
    {.name = "key",
     .type = DIBS__KEY_TEXT,
     .at = AT(key),
     .min = 1,
     .max = 500,
     .doc = "the name of the lock"},
    {.name = "on_busy",
     .type = DIBS__KEY_CHOICE,
     .at = AT(on_busy),
     .choices = "skip|fail|retry",
     .initial = "skip",
     .doc = "how the run goes on when another holder has the lock"},
    {.name = "retries",
     .type = DIBS__KEY_INT,
     .at = AT(retries),
     .max = 1000,
     .initial = "0",
     .doc = "further attempts to take the lock"},
    {.name = "retry_delay",
     .type = DIBS__KEY_DURATION,
     .at = AT(retry_delay_ms),
     .min = 1,
     .max = HOUR,
     .initial = "500ms",
     .doc = "the pause before each of them"},
    {.name = "ttl",
     .type = DIBS__KEY_DURATION,
     .at = AT(ttl_ms),
     .min = SECOND,
     .max = DAY,
     .initial = "30s",
     .doc = "how long the lock outlives a node that dies"},
    {.name = "wait",
     .type = DIBS__KEY_DURATION,
     .at = AT(wait_ms),
     .max = DAY,
     .initial = "0",
     .doc = "how long one attempt waits for the lock"},
};
static const dibs__keys lock_keys = {"lock", lock_rows, COUNT(lock_rows)};

#undef STRUCT
#define STRUCT dibs__retry
static const dibs__key retry_rows[] = {
    {.name = "attempts",
     .type = DIBS__KEY_INT,
     .at = AT(attempts),
     .min = 1,
     .max = 1000,
     .initial = "1",
     .doc = "attempts in all; 1 is no retry"},
    {.name = "delay",
     .type = DIBS__KEY_DURATION,
     .at = AT(delay_ms),
     .max = DAY,
     .initial = "10s",
     .doc = "the pause before the second attempt"},
    {.name = "factor",
     .type = DIBS__KEY_INT,
     .at = AT(factor),
     .min = 1,
     .max = 10,
     .initial = "2",
     .doc = "each further pause is this many times longer"},
    {.name = "jitter",
     .type = DIBS__KEY_PERCENT,
     .at = AT(jitter_pct),
     .max = 100,
     .initial = "20%",
     .doc = "a pause is up to this much longer or shorter"},
    {.name = "max_delay",
     .type = DIBS__KEY_DURATION,
     .at = AT(max_delay_ms),
     .max = 30 * DAY,
     .initial = "5m",
     .doc = "no pause is longer"},
    {.name = "on",
     .type = DIBS__KEY_CHOICES,
     .at = AT(on),
     .choices = "failed|timeout|lost",
     .initial = "failed|timeout",
     .doc = "after which ends a further attempt follows; lost: its node died"},
};
static const dibs__keys retry_keys = {"retry", retry_rows, COUNT(retry_rows)};

#undef STRUCT
#define STRUCT dibs__output_limits
static const dibs__key output_rows[] = {
    {.name = "head",
     .type = DIBS__KEY_SIZE,
     .at = AT(head),
     .max = 1024 * 1024,
     .initial = "16k",
     .doc = "how many of these bytes are from the beginning"},
    {.name = "keep",
     .type = DIBS__KEY_SIZE,
     .at = AT(keep),
     .max = 1024 * 1024,
     .initial = "64k",
     .doc = "bytes of output that are kept; 0: none"},
};
static const dibs__keys output_keys = {"output", output_rows,
                                       COUNT(output_rows)};

#undef STRUCT
#define STRUCT dibs__history
static const dibs__key history_rows[] = {
    {.name = "failed",
     .type = DIBS__KEY_INT,
     .at = AT(failed),
     .max = 10000,
     .initial = "10",
     .doc = "runs that failed or were cancelled, and are kept"},
    {.name = "keep",
     .type = DIBS__KEY_DURATION,
     .at = AT(keep_ms),
     .min = SECOND,
     .max = 10 * YEAR,
     .initial = "30d",
     .doc = "no run is kept longer"},
    {.name = "ok",
     .type = DIBS__KEY_INT,
     .at = AT(ok),
     .max = 10000,
     .initial = "3",
     .doc = "runs that went well, and are kept; and as many that were skipped "
            "or missed"},
};
static const dibs__keys history_keys = {"history", history_rows,
                                        COUNT(history_rows)};

#undef STRUCT
#define STRUCT dibs__then
static const dibs__key then_rows[] = {
    {.name = "failed",
     .type = DIBS__KEY_NAMES,
     .at = AT(failed),
     .max = 16,
     .doc = "jobs of which a run begins for each run that failed"},
    {.name = "ok",
     .type = DIBS__KEY_NAMES,
     .at = AT(ok),
     .max = 16,
     .doc = "jobs of which a run begins for each run that went well"},
};
static const dibs__keys then_keys = {"then", then_rows, COUNT(then_rows)};

#undef STRUCT
#define STRUCT dibs__step_wait
static const dibs__key wait_rows[] = {
    {.name = "batch",
     .type = DIBS__KEY_TEXT,
     .at = AT(batch),
     .min = 1,
     .max = 200,
     .doc = "wait until all members of this batch have ended"},
    {.name = "bookmark",
     .type = DIBS__KEY_NAME,
     .at = AT(bookmark),
     .doc = "wait for dibs job resume RUN with this name"},
    {.name = "of",
     .type = DIBS__KEY_INT,
     .at = AT(of),
     .min = 1,
     .max = 1000000,
     .doc = "how many members the batch has"},
    {.name = "on_timeout",
     .type = DIBS__KEY_CHOICE,
     .at = AT(on_timeout),
     .choices = "fail|continue",
     .initial = "fail",
     .doc = "how the step ends when its time is up"},
    {.name = "timeout",
     .type = DIBS__KEY_DURATION,
     .at = AT(timeout_ms),
     .min = 1,
     .max = YEAR,
     .doc = "wait no longer than this"},
};
static const dibs__keys wait_keys = {"wait", wait_rows, COUNT(wait_rows)};

#undef STRUCT
#define STRUCT dibs__param
static const dibs__key param_rows[] = {
    {.name = "default",
     .type = DIBS__KEY_TEXT,
     .at = AT(initial),
     .max = TEXT_MAX,
     .doc = "its value when a run gives none"},
    {.name = "pattern",
     .type = DIBS__KEY_PATTERN,
     .at = AT(pattern),
     .min = 1,
     .max = 200,
     .doc = "an extended regular expression for the whole value"},
    {.name = "required",
     .type = DIBS__KEY_FLAG,
     .at = AT(required),
     .initial = "no",
     .doc = "a run must give it"},
};
const dibs__keys dibs__param_keys = {"a param", param_rows, COUNT(param_rows)};

#undef STRUCT
#define STRUCT dibs__work
static const dibs__key work_rows[] = {
    {.name = "call",
     .type = DIBS__KEY_NAME,
     .at = AT(call),
     .doc = "a function of the program that is the node"},
    {.name = "dir",
     .type = DIBS__KEY_PATH,
     .at = AT(dir),
     .max = 4000,
     .doc = "the folder that the command starts in"},
    {.name = "env",
     .type = DIBS__KEY_ENV,
     .at = AT(env),
     .max = 200,
     .doc = "variables beside PATH, HOME, USER, SHELL, LANG and DIBS_*"},
    {.name = "env_file",
     .type = DIBS__KEY_PATH,
     .at = AT(env_file),
     .max = 4000,
     .doc = "a file of NAME=value lines, read at each start"},
    {.name = "kill_after",
     .type = DIBS__KEY_DURATION,
     .at = AT(kill_after_ms),
     .max = HOUR,
     .initial = "10s",
     .doc = "how long after the signal the tree is killed"},
    {.name = "ok_codes",
     .type = DIBS__KEY_CODES,
     .at = AT(ok_codes),
     .max = 255,
     .initial = "0",
     .doc = "exit codes that mean success"},
    {.name = "output",
     .type = DIBS__KEY_GROUP,
     .at = AT(output),
     .group = &output_keys,
     .doc = "how much output is kept"},
    {.name = "retry",
     .type = DIBS__KEY_GROUP,
     .at = AT(retry),
     .group = &retry_keys,
     .doc = "further attempts"},
    {.name = "run",
     .type = DIBS__KEY_WORDS,
     .at = AT(run),
     .min = 1,
     .max = 1000,
     .doc = "the command, as a list of words; no shell reads it"},
    {.name = "runs_on",
     .type = DIBS__KEY_NAME,
     .at = AT(runs_on),
     .doc = "a label that a node must have"},
    {.name = "shell",
     .type = DIBS__KEY_TEXT,
     .at = AT(shell),
     .min = 1,
     .max = TEXT_MAX,
     .doc = "text for /bin/sh -c"},
    {.name = "signal",
     .type = DIBS__KEY_SIGNAL,
     .at = AT(signal),
     .initial = "TERM",
     .doc = "the signal that asks the tree to end"},
    {.name = "stdin",
     .type = DIBS__KEY_TEXT,
     .at = AT(input),
     .max = TEXT_MAX,
     .doc = "text for its standard input, which else is /dev/null"},
    {.name = "timeout",
     .type = DIBS__KEY_DURATION,
     .at = AT(timeout_ms),
     .min = 1,
     .max = YEAR,
     .doc = "how long one attempt may take"},
    {.name = "user",
     .type = DIBS__KEY_TEXT,
     .at = AT(user),
     .min = 1,
     .max = 100,
     .doc = "the user that it runs as; the node must run as root"},
};
const dibs__keys dibs__work_keys = {"a job or a step", work_rows,
                                    COUNT(work_rows)};

#undef STRUCT
#define STRUCT dibs__step
static const dibs__key step_rows[] = {
    {.name = "job",
     .type = DIBS__KEY_NAME,
     .at = AT(job),
     .doc = "the step is a run of this job"},
    {.name = "needs",
     .type = DIBS__KEY_NAMES,
     .at = AT(need_names),
     .max = DIBS__JOB_STEPS_MAX,
     .doc = "steps that must have ended before"},
    {.name = "on_failure",
     .type = DIBS__KEY_CHOICE,
     .at = AT(on_failure),
     .choices = "fail|skip|continue",
     .initial = "fail",
     .doc = "what its failure does to the run"},
    {.name = "sleep",
     .type = DIBS__KEY_DURATION,
     .at = AT(sleep_ms),
     .min = 1,
     .max = YEAR,
     .doc = "the step ends after this time"},
    {.name = "wait",
     .type = DIBS__KEY_GROUP,
     .at = AT(wait),
     .group = &wait_keys,
     .doc = "the step waits for a bookmark or a batch"},
    {.name = "when",
     .type = DIBS__KEY_CHOICE,
     .at = AT(when),
     .choices = "ok|failed|always",
     .initial = "ok",
     .doc = "whether it runs when the steps before it went well, or failed"},
    {.name = "with",
     .type = DIBS__KEY_WITH,
     .at = AT(with),
     .max = DIBS__JOB_PARAMS_MAX,
     .doc = "params for the run of job"},
};
const dibs__keys dibs__step_keys = {"a step", step_rows, COUNT(step_rows)};

#undef STRUCT
#define STRUCT dibs__job
static const dibs__key job_rows[] = {
    {.name = "concurrency",
     .type = DIBS__KEY_CHOICE,
     .at = AT(concurrency),
     .choices = "allow|forbid|replace|queue",
     .initial = "allow",
     .doc = "what a tick does while an earlier run lives; forbid is the "
            "default of "
            "jobs with a schedule"},
    {.name = "description",
     .type = DIBS__KEY_TEXT,
     .at = AT(description),
     .max = 1000,
     .doc = "a line for people"},
    {.name = "enabled",
     .type = DIBS__KEY_FLAG,
     .at = AT(enabled),
     .initial = "yes",
     .doc = "no: the job is known, and never due"},
    {.name = "from",
     .type = DIBS__KEY_MOMENT,
     .at = AT(from_s),
     .doc = "the first moment at which it may be due"},
    {.name = "history",
     .type = DIBS__KEY_GROUP,
     .at = AT(history),
     .group = &history_keys,
     .doc = "which runs are kept, and how long"},
    {.name = "jitter",
     .type = DIBS__KEY_DURATION,
     .at = AT(jitter_ms),
     .max = DAY,
     .initial = "0",
     .doc =
         "ticks are late by a fixed part of this, which differs between jobs"},
    {.name = "lock",
     .type = DIBS__KEY_GROUP,
     .at = AT(lock),
     .group = &lock_keys,
     .doc = "a lock that each attempt holds"},
    {.name = "max_running",
     .type = DIBS__KEY_INT,
     .at = AT(max_running),
     .min = 1,
     .max = 100000,
     .doc = "with allow: further runs wait"},
    {.name = "misfire",
     .type = DIBS__KEY_GROUP,
     .at = AT(misfire),
     .group = &misfire_keys,
     .doc = "what becomes of ticks that were missed"},
    {.name = "on_lost",
     .type = DIBS__KEY_CHOICE,
     .at = AT(on_lost),
     .choices = "kill|finish",
     .initial = "kill",
     .doc = "what its processes do when the lease of their node ends"},
    {.name = "params",
     .type = DIBS__KEY_PARAMS,
     .at = AT(params),
     .max = DIBS__JOB_PARAMS_MAX,
     .doc = "values that a run may be given"},
    {.name = "run_timeout",
     .type = DIBS__KEY_DURATION,
     .at = AT(run_timeout_ms),
     .min = 1,
     .max = YEAR,
     .doc = "how long a run may take, waits and retries included"},
    {.name = "schedule",
     .type = DIBS__KEY_SCHEDULES,
     .at = AT(schedule),
     .max = DIBS__JOB_SCHEDULES_MAX,
     .doc = "a cron expression, or a list of them; none: on demand"},
    {.name = "singleton",
     .type = DIBS__KEY_FLAG,
     .at = AT(singleton),
     .initial = "no",
     .doc = "one run at a time in the whole fleet, under a lock"},
    {.name = "start_deadline",
     .type = DIBS__KEY_DURATION,
     .at = AT(start_deadline_ms),
     .min = 1,
     .max = YEAR,
     .doc = "no attempt begins later than this after its tick"},
    {.name = "steps",
     .type = DIBS__KEY_STEPS,
     .at = AT(steps),
     .max = DIBS__JOB_STEPS_MAX,
     .doc = "a graph of steps, by name"},
    {.name = "then",
     .type = DIBS__KEY_GROUP,
     .at = AT(then),
     .group = &then_keys,
     .doc = "jobs that follow a run of this one"},
    {.name = "until",
     .type = DIBS__KEY_MOMENT,
     .at = AT(until_s),
     .doc = "the last moment at which it may be due"},
    {.name = "zone",
     .type = DIBS__KEY_ZONE,
     .at = AT(zone),
     .initial = "UTC",
     .doc = "the time zone of the schedule, such as Europe/Berlin"},
};
const dibs__keys dibs__job_keys = {"a job", job_rows, COUNT(job_rows)};

const dibs__key *dibs__keys_find(const dibs__keys *keys, const char *name)
{
    size_t low = 0, high = keys->count;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(name, keys->rows[mid].name);

        if (order == 0)
            return &keys->rows[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const char *dibs__choice_at(const char *choices, int place, size_t *len)
{
    const char *at = choices;

    for (; at && place > 0; place--) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    if (at)
        *len = strcspn(at, "|");
    return at;
}

int dibs__choice_find(const char *choices, const char *word)
{
    size_t len;
    const char *at;

    for (int i = 0; (at = dibs__choice_at(choices, i, &len)); i++)
        if (strlen(word) == len && memcmp(at, word, len) == 0)
            return i;
    return -1;
}
