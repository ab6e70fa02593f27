/* job_plan.c - see job_plan.h. */
/* SPDX-License-Identifier: MIT */
#include "job_plan.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>

#define EACH "schedule: '* * * * * *', "
#define ALL  "misfire: {policy: run_all}, "
#define AGAIN                                                                  \
    "retry: {attempts: 100, on: [failed, timeout, lost], delay: 50ms, "        \
    "factor: 1}, "

typedef struct kind {
    const char *name; /* and a number */
    int count;
    const char *policy; /* for the checker */
    const char *keys;   /* of the job */
    int span_ms;        /* that its command takes at most */
    const char *group;  /* of which one attempt may live; NULL: its own job's */
} kind;

/* What each tick has to become is decided by the policy; check_jobs.py has the list. */
static const kind kinds[] = {
    {"all", 6, "again", EACH ALL AGAIN "concurrency: allow, ", 3000, "-"},
    {"most", 4, "at most once", EACH ALL "concurrency: allow, ", 3000, "-"},
    {"forbid", 1, "forbid", EACH AGAIN "concurrency: forbid, ", 1500, NULL},
    {"queue", 1, "queue", EACH AGAIN "concurrency: queue, ", 1500, NULL},
    {"replace", 2, "replace", EACH "concurrency: replace, ", 2000, NULL},
    {"lock", 2, "lock",
     EACH ALL AGAIN "concurrency: allow, lock: {key: ground, ttl: 2s, "
                    "retries: 3, retry_delay: 100ms}, ",
     300, "ground"},
    {"skip", 1, "skip",
     EACH AGAIN "concurrency: allow, misfire: {policy: skip, grace: 2s}, ", 200,
     "-"},
    {"graph", 3, "again", EACH ALL AGAIN "concurrency: allow, ", 1000, "-"},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

void plan_each(void (*each)(const char *job, void *arg), void *arg)
{
    char name[32];

    for (int i = 0; i < KINDS; i++)
        for (int n = 0; n < kinds[i].count; n++) {
            snprintf(name, sizeof(name), "%s-%d", kinds[i].name, n);
            each(name, arg);
        }
}

static void
put_command(FILE *out, const char *folder, const kind *kd, const char *job)
{
    fprintf(out, "run: ['%s', '%s', '%d', '%s']", JOB_EFFECT, folder,
            kd->span_ms, kd->group ? kd->group : job);
}

/* One before two before one. */
static void
put_graph(FILE *out, const char *folder, const kind *kd, const char *job)
{
    static const char *const steps[][2] = {{"first", ""},
                                           {"left", "first"},
                                           {"right", "first"},
                                           {"last", "left, right"}};

    fprintf(out, "steps: {");
    for (int i = 0; i < 4; i++) {
        fprintf(out, "%s%s: {", i ? ", " : "", steps[i][0]);
        put_command(out, folder, kd, job);
        fprintf(out, ", needs: [%s]}", steps[i][1]);
    }
    fprintf(out, "}");
}

static void put_moment(FILE *out, const char *key, int64_t at_s)
{
    char text[32];
    time_t at = (time_t)at_s;
    struct tm parts;

    gmtime_r(&at, &parts);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    fprintf(out, "%s: %s, ", key, text);
}

static void put_jobs(FILE *out, const char *folder, int version, int64_t from_s,
                     int64_t until_s)
{
    fprintf(out,
            "version: %d\nset: ground\n"
            "defaults: {history: {ok: 10000, failed: 10000}, output: "
            "{keep: 0, head: 0}, kill_after: 300ms}\n"
            "jobs:\n",
            version);
    for (int i = 0; i < KINDS; i++)
        for (int n = 0; n < kinds[i].count; n++) {
            const kind *kd = &kinds[i];
            char job[32];

            snprintf(job, sizeof(job), "%s-%d", kd->name, n);
            fprintf(out, "  %s: {%s", job, kd->keys);
            put_moment(out, "from", from_s);
            put_moment(out, "until", until_s);
            if (kd->name[0] == 'g')
                put_graph(out, folder, kd, job);
            else
                put_command(out, folder, kd, job);
            fprintf(out, "}\n");
        }
    fprintf(out, "  approve: {" AGAIN "steps: {ask: {");
    put_command(out, folder, &kinds[0], "");
    fprintf(out, "}, ok: {wait: {bookmark: ok}, needs: [ask]}, after: {");
    put_command(out, folder, &kinds[0], "");
    fprintf(out, ", needs: [ok]}}}\n");
}

static void
put_policies(FILE *out, int64_t from_s, int64_t until_s, bool true_clock)
{
    fprintf(out,
            "{\"from\": %lld, \"until\": %lld, \"true_clock\": %s, \"jobs\": {",
            (long long)from_s, (long long)until_s,
            true_clock ? "true" : "false");
    for (int i = 0; i < KINDS; i++)
        for (int n = 0; n < kinds[i].count; n++)
            fprintf(out, "\"%s-%d\": \"%s\", ", kinds[i].name, n,
                    kinds[i].policy);
    fprintf(out, "\"approve\": \"by hand\"}}\n");
}

static FILE *create(const char *folder, const char *name)
{
    char path[PATH_MAX];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "we");
    if (!out)
        perror(path);
    return out;
}

bool plan_write(const char *folder, int version, int64_t from_s,
                int64_t until_s, bool true_clock)
{
    FILE *jobs = create(folder, "jobs.yaml");
    FILE *plan = create(folder, "plan.json");
    bool ok = jobs && plan;

    if (ok) {
        put_jobs(jobs, folder, version, from_s, until_s);
        put_policies(plan, from_s, until_s, true_clock);
    }
    ok = (!jobs || fclose(jobs) == 0) && ok;
    return (!plan || fclose(plan) == 0) && ok;
}
