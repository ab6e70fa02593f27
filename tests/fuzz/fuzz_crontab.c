/* fuzz_crontab.c - crontabs: every job has a name of its own, and an expression that
 * can be read. An odd first byte makes it a system crontab. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "jobs/cron.h"
#include "jobs/crontab.h"

enum { NAMES = 64 };

typedef struct seen {
    char names[NAMES][DIBS__CRONTAB_NAME_SIZE];
    size_t count;
    bool system;
} seen;

static void check_job(void *arg, const dibs__crontab_job *job)
{
    seen *sn = arg;
    dibs__cron cron;
    int column;

    REQUIRE(dibs__cron_parse(job->schedule, &cron, &column, NULL) == DIBS_OK);
    REQUIRE(job->shell && strchr(" \t", job->shell[0]) == NULL);
    REQUIRE(!job->user == !sn->system);
    for (size_t i = 0; i < job->env_count; i++)
        REQUIRE(job->env[i].name[0] && job->env[i].value);
    REQUIRE(strlen(job->name) > 0);
    for (size_t i = 0; i < sn->count; i++)
        REQUIRE(strcmp(sn->names[i], job->name) != 0);
    if (sn->count < NAMES)
        strncpy(sn->names[sn->count++], job->name, DIBS__CRONTAB_NAME_SIZE - 1);
}

static void check_note(void *arg, size_t line, int column, const char *message)
{
    (void)arg;
    REQUIRE(line > 0 && column >= 0 && message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    seen sn = {.system = size > 0 && data[0] & 1};
    const dibs__crontab_opts opts = {.fields = 5, .system = sn.system};
    const dibs__crontab_sink sink = {check_job, check_note, &sn};
    char *text = fuzz_text(data, size);

    REQUIRE(dibs__crontab_read(text, &opts, &sink, NULL) == DIBS_OK);
    free(text);
    return 0;
}
