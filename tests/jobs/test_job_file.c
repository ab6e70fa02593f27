/* test_job_file.c - jobs files: what they mean, and where their mistakes are. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "check.h"
#include "jobs/job_file.h"
#include "jobs/job_json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* All notes, a line each. */
static void collect(void *arg, bool warning, size_t line, size_t column,
                    const char *message)
{
    dibsx_buf_printf(arg, "%zu:%zu: %s%s\n", line, column,
                     warning ? "warning: " : "", message);
}

static dibs_status read_text(const char *text, dibs__job_file *out,
                             dibsx_buf *notes, dibs_error *err)
{
    const dibs__job_sink sink = {collect, notes};

    dibsx_buf_init(notes, 64 * 1024);
    return dibs__job_file_read(text, strlen(text), "dir/my jobs.yaml", &sink,
                               out, err);
}

static void must_read(const char *text, dibs__job_file *out)
{
    dibs_error err = {0};
    dibsx_buf notes;

    if (read_text(text, out, &notes, &err) != DIBS_OK)
        fail_msg("%s: %s\n%s", text, err.message, dibsx_buf_text(&notes));
    dibsx_buf_fini(&notes);
}

static const dibs__job *job_of(const dibs__job_file *file, const char *name)
{
    const dibs__job_entry *entry = dibs__job_file_find(file, name);

    assert_non_null(entry);
    return entry->job;
}

/* ---- mistakes */

/* The text of a file, and the notes that it gives. J begins with a job that is whole. */
typedef struct mistake {
    const char *text;
    const char *notes;
} mistake;

#define J "jobs:\n  a:\n    run: [x]\n"

static const mistake mistakes[] = {
    {"", "1:1: a jobs file is a map, with a map of jobs by name below jobs\n"},
    {"[a]",
     "1:1: a jobs file is a map, with a map of jobs by name below jobs\n"},
    {"version: 1", "1:1: a jobs file has a map of jobs by name below jobs\n"},
    {"jobs: [a]", "1:7: a jobs file has a map of jobs by name below jobs\n"},
    {"jobs: {a: &x b}", "1:11: anchors are not supported\n"},
    {"jobs: {a: {run: [x]}, a: {run: [x]}}",
     "1:23: this key was given before\n"},
    {"jbos: 1\n" J, "1:1: a jobs file has no key 'jbos'; did you mean "
                    "'jobs'?\n"},
    {"version: x\n" J, "1:10: version: 'x' is not a whole number\n"},
    {"set: a b\n" J, "1:6: set takes a name: letters, digits and . _ -, at "
                     "most 100 bytes\n"},
    {"jobs: {a b: {run: [x]}}",
     "1:8: 'a b' is no name of a job; a name has letters, digits and . _ -, "
     "and at most 100 bytes\n"},
    {"jobs: {a: 1}", "1:11: the job 'a' takes a map, with lines such as run: "
                     "[echo, hello]\n"},

    /* Keys. */
    {J "    scedule: x\n",
     "4:5: a job has no key 'scedule'; did you mean 'schedule'?\n"},
    {J "    colour: x\n",
     "4:5: a job has no key 'colour'; docs/jobs.md lists them\n"},
    {J "    retry: {atempts: 1}\n",
     "4:13: retry has no key 'atempts'; did you mean 'attempts'?\n"},
    {J "    retry: 3\n",
     "4:12: retry takes a map, with lines such as attempts: ...\n"},
    {"jobs: {a: {steps: {b: {run: [x], schedule: x}}}}",
     "1:34: a step has no key 'schedule'; a job has it\n"},
    {J "    timeout: {a: b}\n",
     "4:14: timeout takes one value; put text with a colon in it in quotes\n"},
    {J "    timeout: soon\n", "4:14: timeout: 'soon' is not a duration such as "
                              "500ms, 30s, 2m, 1h or 30d\n"},
    {J "    timeout: 0\n", "4:14: timeout: 0 is not between 1ms and 366d\n"},
    {J "    retry: {attempts: 0}\n",
     "4:23: attempts: 0 is not between 1 and 1000\n"},
    {J "    schedule: '0 2 * * *'\n    jitter: 5m\n    start_deadline: 2m\n",
     "6:21: start_deadline is not longer than jitter; a tick that comes late "
     "by "
     "it would never run\n"},
    {J "    retry: {jitter: 20}\n",
     "4:21: jitter: '20' is not a part such as 20%, up to 100%\n"},
    {J "    retry: {on: [failed, never]}\n",
     "4:26: on: 'never' is not one of failed|timeout|lost\n"},
    {J "    retry: {on: []}\n", "4:17: on is empty\n"},
    {J "    output: {keep: 64kb}\n",
     "4:20: keep: '64kb' is not a size such as 512, 64k or 1m\n"},
    {J "    output: {keep: 2m}\n",
     "4:20: keep: 2m is not between 0 and 1048576 bytes\n"},
    {J "    ok_codes: [0, 256]\n",
     "4:19: ok_codes: 256 is not between 0 and 255\n"},
    {J "    signal: STOP\n",
     "4:13: signal: 'STOP' is none of the signals TERM, INT, HUP, QUIT, KILL, "
     "ABRT, USR1 and USR2\n"},
    {J "    enabled: maybe\n",
     "4:14: enabled: 'maybe' is not yes, no, true or false\n"},
    {J "    dir: work\n", "4:10: dir: 'work' is no path that begins with /\n"},
    {J "    env: {DIBS_URL: x, DIBS_PARAM_A: x}\n",
     "4:24: env: 'DIBS_PARAM_A' is set by dibs itself; use another name\n"},
    {J "    env: {DIBS_BOARD: x, DIBS_NODE: x, DIBS_FENCE: x}\n",
     "4:11: env: 'DIBS_BOARD' is set by dibs itself; use another name\n"
     "4:26: env: 'DIBS_NODE' is set by dibs itself; use another name\n"
     "4:40: env: 'DIBS_FENCE' is set by dibs itself; use another name\n"},
    {J "    env: {1a: x}\n", "4:11: env: '1a' is no name of a variable\n"},
    {J "    env: [a]\n", "4:10: env takes a map, such as {NAME: value}\n"},
    {J "    from: tomorrow\n",
     "4:11: from: 'tomorrow' is no time; write 2026-11-15T02:00:00Z, or "
     "2026-11-15 02:00 in the zone of the job\n"},

    /* Actions. */
    {"jobs: {a: {}}", "1:8: the job 'a' does nothing; give it run, shell, call "
                      "or steps\n"},
    {"defaults: {run: [x]}\njobs: {a: {run: null}}",
     "2:8: the job 'a' does nothing; give it run, shell, call or steps\n"},
    {"defaults: {steps: {b: {run: [x]}}}\njobs: {a: {steps: null}}",
     "2:8: the job 'a' does nothing; give it run, shell, call or steps\n"},
    {J "    shell: y\n", "4:12: the job has run and shell; give one of run, "
                         "shell, call or steps\n"},
    {"jobs: {a: {run: x}}",
     "1:17: run takes a list of words, such as [echo, hello]; shell takes a "
     "text\n"},
    {"jobs: {a: {run: []}}", "1:17: run names no command\n"},
    {"jobs: {a: {run: [[x]]}}", "1:18: run: an entry is one word here\n"},
    {"jobs: {a: {steps: {}}}",
     "1:19: steps takes a map of 1 to 256 steps by name\n"},
    {"jobs: {a: {steps: {b: {}}}}",
     "1:20: the step 'b' does nothing; give it run, shell, call, wait, sleep "
     "or job\n"},
    {"jobs: {a: {steps: {b: {run: [x], sleep: 1}}}}",
     "1:41: the step has run and sleep; give one of run, shell, call, wait, "
     "sleep or job\n"},
    {"jobs: {a: {steps: {b: {wait: {of: 3}}}}}",
     "1:30: the step waits for nothing; give it bookmark or batch\n"},
    {"jobs: {a: {steps: {b: {wait: {bookmark: x, batch: y}}}}}",
     "1:30: a step waits for a bookmark or for a batch, and this one for "
     "both\n"},
    {"jobs: {a: {steps: {b: {wait: {bookmark: x}}, c: {wait: {batch: x}},\n"
     "  d: {wait: {bookmark: x}}}}}",
     "2:24: the bookmark 'x' is that of step b; name them apart\n"},
    {"jobs: {a: {steps: {b: {job: a}}}}",
     "1:29: the step runs its own job, and would do so for ever\n"},
    {"jobs: {a: {steps: {b: {run: [x], with: {c: d}}}}}",
     "1:40: with is for a step that has job\n"},
    {"jobs: {a: {steps: {b: {job: c, with: {d: e}}}},\n"
     "  c: {run: [x], params: {f: {required: yes}}}}",
     "1:29: the job 'c' requires the param 'f'; give it in with\n"
     "1:38: the job 'c' has no param 'd'\n"},
    {"jobs: {a: {steps: {b: {job: c}}},\n"
     "  c: {steps: {d: {run: [x]}, e: {job: a}}}}",
     "2:39: jobs run each other in a circle: a, c, a\n"},

    {J "    schedule: '@daily'\n    params: {a: {default: x},\n"
       "      b: {required: yes}}\n",
     "6:10: the param 'b' is required, and a schedule gives no value; give it "
     "a "
     "default\n"},
    {"defaults: {params: {b: {required: yes}}}\n"
     "jobs: {a: {run: [x], schedule: '@daily'}}",
     "2:32: the param 'b' is required, and a schedule gives no value; give it "
     "a default\n"},

    /* Needs. */
    {"jobs: {a: {steps: {b: {run: [x], needs: [c]}}}}",
     "1:42: needs: there is no step 'c'\n"},
    {"jobs: {a: {steps: {load: {run: [x], needs: laod}}}}",
     "1:44: needs: there is no step 'laod'; did you mean 'load'?\n"},
    {"jobs: {a: {steps: {b: {run: [x], needs: [b]}}}}",
     "1:42: the step 'b' needs itself\n"},
    {"jobs: {a: {steps: {b: {run: [x], needs: [c, c]}, c: {run: [x]}}}}",
     "1:45: needs: 'c' was given before\n"},
    {"jobs: {a: {steps: {first: {run: [x]}, b: {run: [x], needs: [c]},\n"
     "  c: {run: [x], needs: [b]}}}}",
     "2:25: needs goes in a circle: b, c, b\n"},
    {"jobs:\n  a:\n    steps:\n"
     "      load: {run: [x], needs: [first, settle]}\n"
     "      settle: {run: [x], needs: [load]}\n"
     "      first: {run: [x]}\n",
     "5:34: needs goes in a circle: load, settle, load\n"},

    /* Schedules, with columns within them. */
    {J "    schedule: 0 25 * * *\n",
     "4:17: schedule: hour 25 is not within 0 to 23\n"},
    {J "    schedule: '0 25 * * *'\n",
     "4:18: schedule: hour 25 is not within 0 to 23\n"},
    {J "    schedule: ['0 2 * * *', \"0 0 30 2 *\"]\n",
     "4:30: schedule: it never fires\n"},
    {J "    schedule: 0 0 0 * * 1\n",
     "4:15: warning: a weekday is a number here: 0 and 7 are Sunday, but 1 is "
     "Sunday in Quartz; write a name, such as MON\n"},
    {J "    schedule: 0 2 1 1 *\n    from: 2026-02-01\n    until: "
       "2026-12-31\n",
     "4:15: the schedule never fires between from and until\n"},
    {J "    from: 2026-02-01\n    until: 2026-01-31\n",
     "5:12: until is before from; the job is never due\n"},

    /* Rules of several keys. */
    {J "    timeout: 3h\n    run_timeout: 2h\n",
     "4:14: timeout is 3h, longer than the whole run may take (run_timeout: "
     "2h)\n"},
    {"jobs: {a: {run_timeout: 1m, steps: {b: {run: [x], timeout: 2m},\n"
     "  c: {sleep: 2m}, d: {wait: {bookmark: x, timeout: 2m}}}}}",
     "1:60: timeout is 2m, longer than the whole run may take (run_timeout: "
     "1m)\n"
     "2:14: sleep is 2m, longer than the whole run may take (run_timeout: "
     "1m)\n"
     "2:52: timeout is 2m, longer than the whole run may take (run_timeout: "
     "1m)\n"},
    {J "    concurrency: queue\n    on_lost: finish\n",
     "5:14: on_lost: finish needs concurrency: allow; with queue no run may "
     "begin while the processes of a lost one go on\n"},
    {J "    concurrency: replace\n    on_lost: finish\n",
     "5:14: on_lost: finish needs concurrency: allow; with replace no run may "
     "begin while the processes of a lost one go on\n"},
    {J "    schedule: '@daily'\n    on_lost: finish\n",
     "5:14: on_lost: finish needs concurrency: allow; with forbid no run may "
     "begin while the processes of a lost one go on\n"},
    {J "    on_lost: finish\n    retry: {attempts: 2, on: lost}\n",
     "4:14: on_lost: finish does not go with a retry of lost runs: both would "
     "run\n"},
    {J "    on_lost: finish\n    lock: {key: k}\n",
     "4:14: on_lost: finish does not go with a lock, which ends with the "
     "node\n"},
    {J "    lock: {ttl: 10s}\n", "4:11: the lock has no key; give it a name\n"},
    {J "    singleton: yes\n    concurrency: allow\n",
     "5:18: a singleton has concurrency: forbid; leave concurrency out\n"},
    {J "    max_running: 3\n    concurrency: forbid\n",
     "4:18: warning: max_running counts with concurrency: allow; this job "
     "runs once at a time\n"},
    {J "    schedule: '@daily'\n    misfire: {policy: run_all}\n",
     "5:14: warning: with concurrency: forbid most ticks that run_all makes up "
     "for are dropped; use concurrency: allow, and max_running: 1 for one run "
     "at a time\n"},
    {J "    then: {ok: [a]}\n",
     "4:11: then names the job itself, which would run for ever; use retry, "
     "or a schedule\n"},
    {J "    then: {ok: [b]}\n  b: {run: [x], then: {failed: [c, a]}}\n",
     "5:23: warning: jobs follow each other in a circle, and may run for ever: "
     "a, b, a\n"},
    {J "    lock: {key: k}\n  b: {run: [x], lock: {key: k}}\n",
     "5:3: warning: the job 'b' has the lock 'k', as the job 'a'; only one of "
     "them runs at a time\n"},

    /* Params. */
    {"jobs: {a: {run: [x, '${param.b}']}}",
     "1:22: the job has no param 'b'; name it below params\n"},
    {"jobs: {a: {params: {bar: {}}, run: [x, \"a ${param.baz}\"]}}",
     "1:43: the job has no param 'baz'; did you mean 'bar'?\n"},
    {"jobs: {a: {run: ['${now}']}}",
     "1:19: '${now}' is no reference; write ${tick} or ${param.NAME}, and $${ "
     "for the text ${\n"},
    {"jobs: {a: {shell: 'echo ${param.b}', params: {b: {}}}}",
     "1:25: params are not put into the text of a shell; write "
     "\"$DIBS_PARAM_NAME\", with the name in capitals\n"},
    {"jobs: {a: {steps: {b: {shell: 'echo ${tick}'}}}}",
     "1:31: warning: ${tick} is no reference in the text of a shell; write "
     "$DIBS_TICK\n"},
    {J "    params: {b: {default: x, required: yes}}\n",
     "4:14: the param 'b' is required and has a default; leave one of them "
     "out\n"},
    {J "    params: {b: {default: x, pattern: '[0-9]+'}}\n",
     "4:17: the param 'b' is 'x', which does not match its pattern [0-9]+\n"},
    {J "    params: {b: {pattern: '('}}\n",
     "4:27: pattern: the pattern is no extended regular expression: Unmatched "
     "( or \\(\n"},
    {J "    params: {b: {}, B: {}}\n",
     "4:21: the params 'b' and 'B' have one variable; name them apart\n"},
    {J "    params: {1b: {}}\n",
     "4:14: '1b' is no name of a param: a letter, then letters, digits and "
     "_\n"},

    /* Mistakes of the defaults are reported once. */
    {"defaults: {zoen: UTC}\n" J "  b: {run: [y]}\n",
     "1:12: a job has no key 'zoen'; did you mean 'zone'?\n"},
};

/* The folder is named as far as there is room. */
static void an_unknown_zone_is_named(void **state)
{
    static const char head[] = "4:11: the zone Mars/Base is not in ";
    dibs__job_file file;
    dibs_error err = {0};
    dibsx_buf notes;

    (void)state;
    assert_status(read_text(J "    zone: Mars/Base\n", &file, &notes, &err),
                  DIBS_INVALID);
    assert_memory_equal(dibsx_buf_text(&notes), head, sizeof(head) - 1);
    assert_non_null(strstr(dibsx_buf_text(&notes),
                           "; use a name like Europe/Berlin, or install the "
                           "package tzdata\n"));
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&notes);
}

static void mistakes_have_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        bool mere = strstr(mistakes[i].notes, ": warning: ") != NULL;
        dibs__job_file file;
        dibs_error err = {0};
        dibsx_buf notes;
        dibs_status rc = read_text(mistakes[i].text, &file, &notes, &err);

        if (rc != (mere ? DIBS_OK : DIBS_INVALID) ||
            strcmp(dibsx_buf_text(&notes), mistakes[i].notes) != 0)
            fail_msg("%s: %s\n%sinstead of\n%s", mistakes[i].text,
                     dibs_status_name(rc), dibsx_buf_text(&notes),
                     mistakes[i].notes);
        assert_int_equal(file.count, rc == DIBS_OK ? file.count : 0);
        dibs__job_file_fini(&file);
        dibsx_buf_fini(&notes);
    }
}

static void all_mistakes_are_counted_and_twenty_reported(void **state)
{
    dibs__job_file file;
    dibs_error err = {0};
    dibsx_buf text, notes;
    size_t lines = 0;

    (void)state;
    dibsx_buf_init(&text, 64 * 1024);
    dibsx_buf_puts(&text, "jobs:\n");
    for (int i = 0; i < 50; i++)
        dibsx_buf_printf(&text, "  job-%d: {run: [x], colour: red}\n", i);
    assert_int_equal(read_text(dibsx_buf_text(&text), &file, &notes, &err),
                     DIBS_INVALID);
    assert_int_equal(file.mistakes, 50);
    for (const char *c = dibsx_buf_text(&notes); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, DIBS__JOB_NOTES_MAX);
    assert_string_equal(err.message, "dir/my jobs.yaml has 50 mistakes");
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&notes);
    dibsx_buf_fini(&text);
}

/* ---- meaning */

static void a_plain_job_has_its_defaults(void **state)
{
    dibs__job_file file;
    const dibs__job *job;
    const dibs__step *step;

    (void)state;
    must_read("jobs: {a: {run: [echo, hi]}, b: {schedule: '@daily', shell: "
              "x}}",
              &file);
    assert_string_equal(file.set, "my-jobs");
    assert_string_equal(file.board, "main");
    assert_int_equal(file.version, 0);
    job = job_of(&file, "a");
    assert_true(job->enabled && !job->has_steps && !job->singleton);
    assert_string_equal(job->zone, "UTC");
    assert_int_equal(job->concurrency, DIBS__CONCURRENCY_ALLOW);
    assert_int_equal(job->misfire.policy, DIBS__MISFIRE_RUN_ONCE);
    assert_int_equal(job->misfire.grace_ms, 60000);
    assert_int_equal(job->run_timeout_ms, DIBS__JOB_NONE);
    assert_int_equal(job->from_s, DIBS__JOB_NONE);
    assert_null(job->lock.key);
    assert_int_equal(job->history.keep_ms, INT64_C(30) * 86400000);
    assert_int_equal(job->step_count, 1);
    step = dibs__job_step(job, "main");
    assert_non_null(step);
    assert_int_equal(step->kind, DIBS__STEP_RUN);
    assert_int_equal(step->work.run.count, 2);
    assert_string_equal(step->work.run.at[1], "hi");
    assert_null(step->work.run.at[2]);
    assert_int_equal(step->work.retry.attempts, 1);
    assert_int_equal(step->work.retry.on,
                     DIBS__RETRY_FAILED | DIBS__RETRY_TIMEOUT);
    assert_int_equal(step->work.signal, SIGTERM);
    assert_true(dibs__work_code_ok(&step->work, 0));
    assert_false(dibs__work_code_ok(&step->work, 1));
    /* A tick does not overlap the one before, by default. */
    job = job_of(&file, "b");
    assert_int_equal(job->concurrency, DIBS__CONCURRENCY_FORBID);
    dibs__job_file_fini(&file);
}

static void a_set_is_named_after_its_file(void **state)
{
    static const mistake rows[] = {
        {"jobs.yaml", "jobs"},
        {"/etc/dibs/a.b.yml", "a.b"},
        {"-", "jobs"},
        {"/x/.hidden.yaml", "hidden"},
        {"dir.d/noext", "noext"},
        {"my jobs (2).yaml", "my-jobs--2-"},
        {"", "jobs"},
        {"/", "jobs"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        dibs__job_file file;

        CHECK(DIBS_OK, dibs__job_file_read("jobs: {}", 8, rows[i].text, NULL,
                                           &file, err));
        assert_string_equal(file.set, rows[i].notes);
        dibs__job_file_fini(&file);
    }
}

static void defaults_hold_where_a_job_gives_none(void **state)
{
    dibs__job_file file;
    const dibs__job *job;

    (void)state;
    must_read("version: 7\nset: s\nboard: b\n"
              "defaults: {zone: Europe/Berlin, env: {A: '1', B: '1'},\n"
              "  retry: {attempts: 5, delay: 1m}, run: [fallback],\n"
              "  timeout: 10s}\n"
              "jobs:\n"
              "  a: {}\n"
              "  b: {zone: UTC, env: {B: '2', C: '2'}, retry: {attempts: 2},\n"
              "      shell: x, timeout: null}\n"
              "  c: {from: 2026-07-01 12:00, enabled: False, env: {A: null}}\n",
              &file);
    assert_int_equal(file.version, 7);
    assert_string_equal(file.set, "s");
    assert_string_equal(file.board, "b");
    job = job_of(&file, "a");
    assert_string_equal(job->zone, "Europe/Berlin");
    assert_string_equal(job->work.run.at[0], "fallback");
    assert_int_equal(job->work.timeout_ms, 10000);
    job = job_of(&file, "b");
    assert_string_equal(job->zone, "UTC");
    assert_int_equal(job->work.env.count, 3);
    assert_string_equal(job->work.env.at[1].value, "2");
    assert_int_equal(job->work.retry.attempts, 2);
    assert_int_equal(job->work.retry.delay_ms, 60000);
    assert_string_equal(job->work.shell, "x");
    assert_int_equal(job->work.run.count, 0);
    assert_int_equal(job->steps[0].kind, DIBS__STEP_SHELL);
    /* null is the default of dibs itself. */
    assert_int_equal(job->work.timeout_ms, DIBS__JOB_NONE);
    /* A time without an offset is one of the zone. */
    job = job_of(&file, "c");
    assert_int_equal(job->from_s, 1782900000);
    assert_false(job->enabled);
    assert_string_equal(job->work.env.at[0].value, "");
    dibs__job_file_fini(&file);
}

static void null_takes_a_default_back(void **state)
{
    dibs__job_file file;
    const dibs__job *job;

    (void)state;
    must_read("defaults: {zone: Europe/Berlin, concurrency: allow,\n"
              "  lock: {key: k}, schedule: '@daily', run: [x]}\n"
              "jobs:\n"
              "  a: {from: 2026-07-01 12:00}\n"
              "  b: {from: 2026-07-01 12:00, zone: null, concurrency: null,\n"
              "      lock: null}\n",
              &file);
    job = job_of(&file, "a");
    assert_int_equal(job->from_s, 1782900000);
    assert_int_equal(job->concurrency, DIBS__CONCURRENCY_ALLOW);
    assert_string_equal(job->lock.key, "k");
    job = job_of(&file, "b");
    assert_string_equal(job->zone, "UTC");
    assert_int_equal(job->from_s, 1782907200);
    assert_int_equal(job->concurrency, DIBS__CONCURRENCY_FORBID);
    assert_null(job->lock.key);
    dibs__job_file_fini(&file);
}

static void put_params(dibsx_buf *out, const char *key, int from, int count)
{
    dibsx_buf_printf(out, "%s: {", key);
    for (int i = from; i < from + count; i++)
        dibsx_buf_printf(out, "%sP%d: %s", i > from ? ", " : "", i,
                         key[0] == 'p' ? "{default: x}" : "x");
    dibsx_buf_puts(out, "}");
}

/* Names that a job has in common with its defaults count once against the bound. */
static void a_name_of_both_counts_once(void **state)
{
    static const struct {
        const char *key;
        int max;
    } cases[] = {{"params", DIBS__JOB_PARAMS_MAX}, {"env", 200}};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int more = 0; more < 2; more++) {
            const int max = cases[i].max;
            dibsx_buf text, notes;
            dibs__job_file file;
            dibs_error err = {0};
            dibs_status rc;

            dibsx_buf_init(&text, 100000);
            dibsx_buf_puts(&text, "defaults: {");
            put_params(&text, cases[i].key, 0, max);
            dibsx_buf_puts(&text, "}\njobs: {a: {run: [x],\n  ");
            put_params(&text, cases[i].key, more, max);
            dibsx_buf_puts(&text, "}}\n");
            rc = read_text(dibsx_buf_text(&text), &file, &notes, &err);
            assert_int_equal(rc, more ? DIBS_INVALID : DIBS_OK);
            if (more)
                assert_non_null(
                    strstr(dibsx_buf_text(&notes), "has more than"));
            else
                dibs__job_file_fini(&file);
            dibsx_buf_fini(&notes);
            dibsx_buf_fini(&text);
        }
}

static void a_singleton_has_a_lock(void **state)
{
    dibs__job_file file;
    const dibs__job *job;

    (void)state;
    must_read("jobs:\n  a: {run: [x], singleton: yes}\n"
              "  b: {run: [x], singleton: yes, lock: {ttl: 5m}}\n"
              "  c: {run: [x], lock: {key: k, on_busy: retry}}\n",
              &file);
    job = job_of(&file, "a");
    assert_int_equal(job->concurrency, DIBS__CONCURRENCY_FORBID);
    assert_string_equal(job->lock.key, "job:a");
    assert_int_equal(job->lock.on_busy, DIBS__BUSY_SKIP);
    job = job_of(&file, "b");
    assert_string_equal(job->lock.key, "job:b");
    assert_int_equal(job->lock.ttl_ms, 300000);
    job = job_of(&file, "c");
    assert_int_equal(job->lock.on_busy, DIBS__BUSY_RETRY);
    assert_int_equal(job->concurrency, DIBS__CONCURRENCY_ALLOW);
    dibs__job_file_fini(&file);
}

static const char graph[] =
    "jobs:\n"
    "  etl:\n"
    "    timeout: 20m\n"
    "    env: {A: '1'}\n"
    "    output: {keep: 8k}\n"
    "    params: {batch: {}}\n"
    "    steps:\n"
    "      extract: {run: [./extract], env: {B: '2'}}\n"
    "      transform: {shell: ./t, needs: extract, retry: {attempts: 2},\n"
    "                  timeout: null}\n"
    "      approve: {wait: {bookmark: ok, timeout: 3d, on_timeout: continue},\n"
    "                needs: [transform], on_failure: continue}\n"
    "      settle: {sleep: 10m, needs: [approve]}\n"
    "      parts: {wait: {batch: '${param.batch}', of: 40}, needs: [approve]}\n"
    "      load: {job: table, with: {region: eu}, needs: [settle, parts]}\n"
    "      clean: {call: clean_up, needs: [load], when: always}\n";

static void steps_have_what_their_job_has(void **state)
{
    dibs__job_file file;
    const dibs__job *job;

    (void)state;
    must_read(graph, &file);
    job = job_of(&file, "etl");
    assert_true(job->has_steps);
    assert_int_equal(job->step_count, 7);
    assert_string_equal(job->steps[0].name, "extract");
    assert_int_equal(job->steps[0].work.timeout_ms, 20 * 60000);
    assert_int_equal(job->steps[0].work.env.count, 2);
    assert_int_equal(job->steps[0].work.output.head, 8192);
    assert_int_equal(job->steps[1].work.timeout_ms, DIBS__JOB_NONE);
    assert_int_equal(job->steps[1].work.env.count, 1);
    assert_int_equal(job->steps[1].work.retry.attempts, 2);
    assert_int_equal(job->steps[2].kind, DIBS__STEP_WAIT);
    assert_int_equal(job->steps[2].wait.on_timeout, DIBS__TIMEOUT_CONTINUE);
    assert_int_equal(job->steps[2].on_failure, DIBS__FAILURE_CONTINUE);
    assert_int_equal(job->steps[3].sleep_ms, 600000);
    assert_int_equal(job->steps[4].wait.of, 40);
    assert_string_equal(job->steps[5].with.at[0].value, "eu");
    assert_int_equal(job->steps[6].when, DIBS__WHEN_ALWAYS);
    assert_string_equal(job->steps[6].work.call, "clean_up");
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 7; j++)
            assert_int_equal(dibs__step_needs(&job->steps[i], j),
                             (i == 5 && (j == 3 || j == 4)) ||
                                 (i == 4 && j == 2) ||
                                 (i > 0 && i != 4 && i != 5 && j == i - 1));
    dibs__job_file_fini(&file);
}

/* ---- many */

/* A graph of 256 steps in a chain is deep enough for any walk. */
static void a_long_chain_is_walked(void **state)
{
    dibs__job_file file;
    dibs_error err = {0};
    dibsx_buf text, notes;

    (void)state;
    dibsx_buf_init(&text, 64 * 1024);
    dibsx_buf_puts(&text, "jobs:\n  a:\n    steps:\n");
    for (int i = 0; i < 256; i++)
        dibsx_buf_printf(&text, "      s%d: {run: [x], needs: [s%d]}\n", i,
                         (i + 1) % 256);
    assert_int_equal(read_text(dibsx_buf_text(&text), &file, &notes, &err),
                     DIBS_INVALID);
    assert_int_equal(file.mistakes, 1);
    assert_non_null(strstr(dibsx_buf_text(&notes),
                           "259:32: needs goes in a circle: s0, s1, s2"));
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&notes);

    /* One step more is too many. */
    dibsx_buf_puts(&text, "      last: {run: [x]}\n");
    assert_int_equal(read_text(dibsx_buf_text(&text), &file, &notes, &err),
                     DIBS_INVALID);
    assert_string_equal(dibsx_buf_text(&notes),
                        "4:7: steps takes a map of 1 to 256 steps by name\n");
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&notes);
    dibsx_buf_fini(&text);
}

/* One commit ends a run and begins the one that waits for it. */
static void a_queue_has_fewer_steps(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++) {
        dibs__job_file file;
        dibs_error err = {0};
        dibsx_buf text, notes;

        dibsx_buf_init(&text, 64 * 1024);
        dibsx_buf_puts(&text,
                       "jobs:\n  a:\n    concurrency: queue\n    steps:\n");
        for (int i = 0; i < DIBS__JOB_QUEUE_MAX + many; i++)
            dibsx_buf_printf(&text, "      s%d: {run: [x]}\n", i);
        assert_int_equal(read_text(dibsx_buf_text(&text), &file, &notes, &err),
                         many ? DIBS_INVALID : DIBS_OK);
        assert_string_equal(
            dibsx_buf_text(&notes),
            many ? "3:18: a job with concurrency: queue has at most 150 steps; "
                   "move some into another job, and run that by a step\n"
                 : "");
        dibs__job_file_fini(&file);
        dibsx_buf_fini(&notes);
        dibsx_buf_fini(&text);
    }
}

/* Jobs that run each other in a chain as long as the file, which no walk may follow
 * by recursion. */
static void ten_thousand_jobs_are_read(void **state)
{
    dibs__job_file file;
    dibsx_buf text;

    (void)state;
    dibsx_buf_init(&text, 4 * 1024 * 1024);
    dibsx_buf_puts(&text, "jobs:\n");
    for (int i = 0; i < 10000; i++)
        dibsx_buf_printf(&text,
                         "  job-%d: {schedule: '%d * * * *', steps: {s: {job: "
                         "job-%d}}}\n",
                         i, i % 60, i + 1);
    must_read(dibsx_buf_text(&text), &file);
    assert_int_equal(file.count, 10000);
    assert_string_equal(file.entries[9999].job->name, "job-9999");
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&text);
}

static void a_definition_has_sixteen_kilobytes(void **state)
{
    dibs__job_file file;
    dibs_error err = {0};
    dibsx_buf text, notes;

    (void)state;
    dibsx_buf_init(&text, 64 * 1024);
    dibsx_buf_puts(&text, "jobs: {a: {shell: ");
    for (int i = 0; i < 12 * 1024; i++)
        dibsx_buf_putc(&text, 'x');
    dibsx_buf_puts(&text, ", stdin: ");
    for (int i = 0; i < 4 * 1024; i++)
        dibsx_buf_putc(&text, 'x');
    dibsx_buf_puts(&text, "}}");
    assert_int_equal(read_text(dibsx_buf_text(&text), &file, &notes, &err),
                     DIBS_INVALID);
    assert_non_null(
        strstr(dibsx_buf_text(&notes), "1:8: the definition of 'a' has 16"));
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&notes);
    dibsx_buf_fini(&text);
}

/* ---- canonical JSON */

/* The JSON of a job that was read from `text`, in `out`. */
static void json_of(const char *text, dibsx_buf *out)
{
    dibs__job_file file;

    must_read(text, &file);
    dibsx_buf_init(out, 64 * 1024);
    dibs__job_json(file.entries[0].job, out);
    assert_true(dibsx_buf_ok(out));
    dibs__job_file_fini(&file);
}

static void texts_that_mean_the_same_have_one_json(void **state)
{
    static const char *const same[] = {
        "jobs: {a: {timeout: 90s, run: [x], env: {B: '2', A: '1'}}}",
        "jobs:\n  a:\n    env: {A: 1, B: 2}\n    run:\n    - x\n"
        "    timeout: 1m30s\n    zone: UTC\n    enabled: true\n",
        "defaults: {timeout: 90, env: {B: 2}}\n"
        "jobs: {a: {run: ['x'], env: {A: \"1\"}, signal: SIGTERM}}",
    };
    dibsx_buf first, other;

    (void)state;
    json_of(same[0], &first);
    for (size_t i = 1; i < COUNT_OF(same); i++) {
        json_of(same[i], &other);
        assert_string_equal(dibsx_buf_text(&other), dibsx_buf_text(&first));
        dibsx_buf_fini(&other);
    }
    dibsx_buf_fini(&first);
}

static void the_json_is_as_documented(void **state)
{
    dibsx_buf json;
    char hash[DIBS__JOB_HASH_SIZE];

    (void)state;
    json_of("jobs: {a: {schedule: '@daily', run: [x, é], output: {keep: 100},"
            " steps: null, from: 2026-01-01T01:00:00+01:00}}",
            &json);
    assert_string_equal(
        dibsx_buf_text(&json),
        "{\"concurrency\":\"forbid\",\"enabled\":true,"
        "\"from\":\"2026-01-01T00:00:00Z\","
        "\"history\":{\"failed\":10,\"keep\":\"30d\",\"ok\":3},"
        "\"jitter\":\"0s\",\"kill_after\":\"10s\","
        "\"misfire\":{\"grace\":\"1m\",\"max\":100,\"policy\":\"run_once\"},"
        "\"name\":\"a\",\"ok_codes\":[0],\"on_lost\":\"kill\","
        "\"output\":{\"head\":\"100\",\"keep\":\"100\"},"
        "\"retry\":{\"attempts\":1,\"delay\":\"10s\",\"factor\":2,"
        "\"jitter\":\"20%\",\"max_delay\":\"5m\",\"on\":[\"failed\","
        "\"timeout\"]},\"run\":[\"x\",\"é\"],\"schedule\":[\"@daily\"],"
        "\"signal\":\"TERM\",\"singleton\":false,\"zone\":\"UTC\"}");
    dibs__job_hash("abc", 3, hash);
    assert_string_equal(hash, "ba7816bf8f01cfea");
    dibsx_buf_fini(&json);
}

static const char every_key[] =
    "jobs:\n"
    "  a:\n"
    "    description: \"Sync\\torders \\u263a\"\n"
    "    enabled: no\n"
    "    schedule: ['0 * * * *', '30 8 * * MON#1', '@every 90m']\n"
    "    zone: America/New_York\n"
    "    from: 2026-01-01T00:00:00Z\n"
    "    until: 2027-12-31T23:59:59Z\n"
    "    jitter: 45s\n"
    "    misfire: {policy: run_all, grace: 61s, max: 99}\n"
    "    start_deadline: 10m\n"
    "    concurrency: allow\n"
    "    max_running: 4\n"
    "    lock: {key: 'h \"x\"', ttl: 300s, wait: 1ms, retries: 3,\n"
    "           retry_delay: 1500ms, hold_min: 1s, on_busy: fail}\n"
    "    run: [/bin/sync, '${tick}', '$${x}', '${param.region}', '']\n"
    "    dir: /srv/app\n"
    "    user: app\n"
    "    env: {LANG: C.UTF-8, EMPTY: ''}\n"
    "    env_file: /etc/app/env\n"
    "    stdin: ''\n"
    "    runs_on: eu\n"
    "    params: {region: {default: eu, pattern: '[a-z]{2}'}, since: {}}\n"
    "    ok_codes: [0, 3, 255]\n"
    "    timeout: 20m\n"
    "    signal: INT\n"
    "    kill_after: 0\n"
    "    run_timeout: 2h\n"
    "    on_lost: kill\n"
    "    retry: {attempts: 3, on: [lost], delay: 0, factor: 1,\n"
    "            max_delay: 1d, jitter: 0%}\n"
    "    output: {keep: 0, head: 0}\n"
    "    history: {ok: 0, failed: 1, keep: 36h}\n"
    "    then: {ok: [b, c], failed: d}\n";

static void reading_json_back_changes_nothing(void **state)
{
    static const char *const texts[] = {
        every_key, graph, "jobs: {a: {call: f}}",
        "jobs: {a: {shell: x, singleton: yes}}",
        "jobs: {a: {timeout: 5m, dir: /a, steps: {z: {run: [x], dir: null},"
        " b: {run: [x], timeout: 1m, env: {A: b}}}}}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        dibsx_buf json, again;
        dibs__job *job = NULL;

        json_of(texts[i], &json);
        CHECK(DIBS_OK,
              dibs__job_from_json(dibsx_buf_text(&json), json.len, &job, err));
        dibsx_buf_init(&again, 64 * 1024);
        dibs__job_json(job, &again);
        assert_string_equal(dibsx_buf_text(&again), dibsx_buf_text(&json));
        dibs__job_free(job);
        dibsx_buf_fini(&again);
        dibsx_buf_fini(&json);
    }
}

/* Steps keep the order of the file: records of runs count by it. */
static void json_keeps_the_order_of_steps(void **state)
{
    dibs__job *job = NULL;
    dibsx_buf json;

    (void)state;
    json_of(graph, &json);
    CHECK(DIBS_OK,
          dibs__job_from_json(dibsx_buf_text(&json), json.len, &job, err));
    assert_string_equal(job->steps[5].name, "load");
    assert_true(dibs__step_needs(&job->steps[5], 3));
    assert_int_equal(job->steps[1].work.timeout_ms, DIBS__JOB_NONE);
    dibs__job_free(job);
    dibsx_buf_fini(&json);
}

static void json_of_the_store_is_checked(void **state)
{
    static const mistake bad[] = {
        {"{", "\"{\""},
        {"[]", "the definition of a job is no object of texts and whole "
               "numbers"},
        {"{\"run\":[\"x\"]}", "the definition of a job has no name"},
        {"{\"name\":\"a b\",\"run\":[\"x\"]}",
         "the definition of a job has no name"},
        {"{\"name\":\"a\"}",
         "the definition of the job 'a' is wrong: the job 'a' does nothing; "
         "give it run, shell, call or steps"},
        {"{\"name\":\"a\",\"run\":[\"x\\u0000y\"]}",
         "the definition of a job is no object of texts and whole numbers"},
        {"{\"name\":\"a\",\"run\":[\"x\"],\"colour\":1}",
         "the definition of the job 'a' is wrong: a job has no key 'colour'; "
         "docs/jobs.md lists them"},
    };
    static const char one_name[] =
        "{\"name\":\"a\",\"steps\":[{\"name\":\"b\",\"wait\":{\"bookmark\":"
        "\"x\"}},"
        "{\"name\":\"c\",\"wait\":{\"bookmark\":\"x\"}}]}";
    dibs__job *job = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        dibs_error err = {0};

        assert_int_equal(dibs__job_from_json(bad[i].text, strlen(bad[i].text),
                                             &job, &err),
                         DIBS_INVALID);
        assert_null(job);
        if (i > 0)
            assert_string_equal(err.message, bad[i].notes);
    }
    /* A node that lacks the zone can still read of it. */
    CHECK(DIBS_OK,
          dibs__job_from_json(
              "{\"name\":\"a\",\"run\":[\"x\"],\"zone\":\"Mars/Base\"}",
              strlen("{\"name\":\"a\",\"run\":[\"x\"],\"zone\":\"Mars/Base\"}"),
              &job, err));
    assert_string_equal(job->zone, "Mars/Base");
    dibs__job_free(job);
    CHECK(DIBS_OK, dibs__job_from_json(one_name, strlen(one_name), &job, err));
    assert_int_equal(job->step_count, 2);
    dibs__job_free(job);
}

static void the_hash_of_a_file_is_of_its_jobs(void **state)
{
    dibs__job_file one, two, three;

    (void)state;
    must_read("jobs: {a: {run: [x]}, b: {run: [y]}}", &one);
    must_read("version: 2\njobs: {b: {run: [y]}, a: {run: [x]}}", &two);
    must_read("board: other\njobs: {a: {run: [x]}, b: {run: [y]}}", &three);
    assert_string_equal(one.hash, two.hash);
    assert_string_not_equal(one.hash, three.hash);
    assert_string_not_equal(one.entries[0].hash, one.entries[1].hash);
    dibs__job_file_fini(&one);
    dibs__job_file_fini(&two);
    dibs__job_file_fini(&three);
}

/* ---- memory */

/* Each allocation fails in turn. */
static void lack_of_memory_is_survived(void **state)
{
    dibs__job_file file;
    dibs__job *job = NULL;
    dibsx_buf json, notes;
    dibs_status rc;

    (void)state;
    json_of(graph, &json);
    for (unsigned long n = 1;; n++) {
        dibs_error err = {0};

        dibsx_alloc_fail_at(n);
        rc = read_text(graph, &file, &notes, &err);
        if (rc == DIBS_OK)
            rc = dibs__job_from_json(dibsx_buf_text(&json), json.len, &job,
                                     &err);
        dibsx_alloc_fail_at(0);
        dibs__job_free(job);
        job = NULL;
        dibs__job_file_fini(&file);
        dibsx_buf_fini(&notes);
        if (rc == DIBS_OK && n > 50)
            break;
        if (rc != DIBS_OK && rc != DIBS_NOMEM)
            fail_msg("allocation %lu: %s: %s", n, dibs_status_name(rc),
                     err.message);
    }
    dibsx_buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_zone_is_named),
        cmocka_unit_test(mistakes_have_their_place),
        cmocka_unit_test(all_mistakes_are_counted_and_twenty_reported),
        cmocka_unit_test(a_plain_job_has_its_defaults),
        cmocka_unit_test(a_set_is_named_after_its_file),
        cmocka_unit_test(defaults_hold_where_a_job_gives_none),
        cmocka_unit_test(null_takes_a_default_back),
        cmocka_unit_test(a_name_of_both_counts_once),
        cmocka_unit_test(a_singleton_has_a_lock),
        cmocka_unit_test(steps_have_what_their_job_has),
        cmocka_unit_test(a_long_chain_is_walked),
        cmocka_unit_test(a_queue_has_fewer_steps),
        cmocka_unit_test(ten_thousand_jobs_are_read),
        cmocka_unit_test(a_definition_has_sixteen_kilobytes),
        cmocka_unit_test(texts_that_mean_the_same_have_one_json),
        cmocka_unit_test(the_json_is_as_documented),
        cmocka_unit_test(reading_json_back_changes_nothing),
        cmocka_unit_test(json_keeps_the_order_of_steps),
        cmocka_unit_test(json_of_the_store_is_checked),
        cmocka_unit_test(the_hash_of_a_file_is_of_its_jobs),
        cmocka_unit_test(lack_of_memory_is_survived),
    };

    if (setenv("TZDIR", JOBS_ZONES, 1) != 0)
        return 1;
    return cmocka_run_group_tests_name("job_file", tests, NULL, NULL);
}
