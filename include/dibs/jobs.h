/* jobs.h - jobs: functions of a program that run by schedule, on demand or in graphs,
 * each on one node at a time.
 *
 * A program that has functions is a node: it registers them, defines or loads jobs that
 * call them, and runs. Any number of nodes may serve one board: a tick makes one run, and
 * one node executes it. `dibs work` executes commands of the same jobs, and leaves calls
 * to programs that have the function.
 *
 * Any program can start, await, read and cancel runs, and resume their bookmarks. A job
 * or a run of another board than "main" is named "BOARD/NAME" in these calls.
 *
 * All that a node executes hangs on one lease. Before the lease can pass on, the node asks
 * every call to stop: dibs_run_go_on() turns false, and dibs_run_stop_fd() readable. The
 * function has to return then. A thread cannot be ended from outside. So if the function goes on, another
 * node may begin the next attempt meanwhile. The store refuses the result of the first;
 * give dibs_run_token() to all that the function changes, to refuse its late writes too.
 *
 * Jobs need values with commits, which a quorum (redlock:) lacks: DIBS_UNSUPPORTED.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_H
#define DIBS_JOBS_H

#include <dibs/client.h>
#include <dibs/state.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dibs_jobs dibs_jobs;   /* a node */
typedef struct dibs_run dibs_run;     /* one call, borrowed by its function */
typedef struct dibs_graph dibs_graph; /* steps and what they need */

#define DIBS_RUN_SIZE           256  /* the name of a run, with its NUL */
#define DIBS_RESULT_MAX         4096 /* bytes of the result of a step */
#define DIBS_JOBS_FUNCTIONS_MAX 256  /* of one node */
#define DIBS_JOBS_SLOTS_MAX     256

/* Does the work of one attempt, on a thread of the node. It may use the client.
 * DIBS_OK: it is done. DIBS_LOST and DIBS_CANCELLED are recorded as such. Any other
 * status is a failure; dibs job logs shows the message of err. If the node
 * asked it to stop and it returns no DIBS_OK, the reason for that is recorded instead. */
typedef dibs_status dibs_job_fn(dibs_run *run, void *arg, dibs_error *err);

/* A function that does not return when it should stop. */
typedef enum dibs_on_stuck {
    DIBS_STUCK_WAIT = 0, /* it keeps its slot until it returns */
    DIBS_STUCK_ABORT = 1 /* abort() ends the process: after kill_after of the
                            job, or when the lease may pass on */
} dibs_on_stuck;

/* Zero or NULL in any field but size selects the default, given last here. */
typedef struct dibs_jobs_opts {
    size_t size;       /* sizeof(dibs_jobs_opts); the macro sets it */
    const char *board; /* whose jobs it executes; "main" */
    const char *set;   /* the name of the jobs that the program defines; the
                          name of the program */
    int64_t version;   /* of that set: a node with a lower one does not change
                          it; the node that was started last wins */
    const char *const *labels; /* that runs_on may ask for; NULL ends; none */
    uint32_t slots;            /* calls at a time; 4 */
    int64_t ttl_ms; /* of its lease, from 3 s; 30 s. Other nodes take its runs
                       over so long after its death */
    int64_t return_ms;     /* calls have so long to return before the lease
                              can pass on, to a third of ttl_ms; a sixth */
    int64_t stop_grace_ms; /* calls may go on after dibs_jobs_stop(); 30 s.
                              Negative: they stop at once */
    int64_t look_ms;       /* it looks at the store at least so often; 10 s */
    dibs_on_stuck on_stuck;
    const char *sweep_prefix; /* of the locks of its sweeps; "workflow:" */
    dibs_log_fn *log;         /* of starts and ends; none */
    void *log_arg;            /* borrowed until dibs_jobs_close() returns */
} dibs_jobs_opts;

/* A job, as in a jobs file (docs/jobs.md). Zero or NULL in any field but size selects
 * the default there. */
typedef struct dibs_job_opts {
    size_t size; /* sizeof(dibs_job_opts); the macro sets it */
    const char *description;
    const char *schedule;    /* "0 * * * *", "@every 90m"; on demand */
    const char *zone;        /* "Europe/Berlin"; UTC */
    const char *call;        /* the function's name; that of the job */
    const char *lock_key;    /* a lock while it runs; none */
    int64_t lock_ttl_ms;     /* how long after a holder's death it is free */
    int64_t retries;         /* of a lock that is held */
    int64_t retry_delay_ms;  /* between them */
    const char *on_busy;     /* still held: "skip", "fail" or "retry"; "skip" */
    const char *concurrency; /* "allow", "forbid", "replace" or "queue" */
    bool singleton;          /* one run at a time, under a lock of its own */
    int64_t attempts;        /* in all; 1 */
    int64_t attempt_delay_ms; /* before the second; it grows from there */
    bool retry_lost; /* also after a lost lease or a dead node, where it is not
                        known what was done: at least once */
    int64_t timeout_ms; /* of an attempt: its call should stop then */
    int64_t run_timeout_ms;
    const char *more; /* other keys: "jitter: 45s, history: {ok: 3}" */
} dibs_job_opts;

#define DIBS_JOBS_OPTS(...)                                                    \
    (&(dibs_jobs_opts){.size = sizeof(dibs_jobs_opts), __VA_ARGS__})
#define DIBS_JOB_OPTS(...)                                                     \
    (&(dibs_job_opts){.size = sizeof(dibs_job_opts), __VA_ARGS__})

/* A function with its schedule and its lock:
 *
 *     DIBS_JOB(jobs, "hourly-task", handle_hourly_task, .schedule = "0 * * * *",
 *              .lock_key = "hourly-task", .lock_ttl_ms = 300000, .retries = 3,
 *              .retry_delay_ms = 500);
 *
 * Its status may be ignored: after a mistake dibs_jobs_run() reports it. */
#define DIBS_JOB(jobs, name, fn, ...)                                          \
    dibs_jobs_add((jobs), (name), (fn), NULL, DIBS_JOB_OPTS(__VA_ARGS__), NULL)

/* Makes a node, without a call to the store. It copies strings. On failure *out is
 * NULL. Free it with dibs_jobs_close(), before dibs_close().
 *   DIBS_INVALID  an option is malformed */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_jobs_open(dibs_client *client,
                                                    const dibs_jobs_opts *opts,
                                                    dibs_jobs **out,
                                                    dibs_error *err);

/* Frees the node. dibs_jobs_run() must have returned. NULL is a no-op. */
DIBS_API void dibs_jobs_close(dibs_jobs *jobs);

/* Registers a function that `call` of a job may name. `arg` is for its calls. Only
 * before dibs_jobs_run().
 *   DIBS_INVALID  this is no name, the name is taken, or the node runs
 *   DIBS_FULL     DIBS_JOBS_FUNCTIONS_MAX */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_jobs_function(dibs_jobs *jobs,
                                                        const char *name,
                                                        dibs_job_fn *fn,
                                                        void *arg,
                                                        dibs_error *err);

/* Defines a job of this program. opts may be NULL. Only before dibs_jobs_run().
 *   DIBS_INVALID  a mistake, which err names; the name is taken, or the node runs */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_jobs_define(dibs_jobs *jobs,
                                                      const char *name,
                                                      const dibs_job_opts *opts,
                                                      dibs_error *err);

/* Both of the above in one: a job, and the function of its name. */
DIBS_API dibs_status dibs_jobs_add(dibs_jobs *jobs, const char *name,
                                   dibs_job_fn *fn, void *arg,
                                   const dibs_job_opts *opts, dibs_error *err);

/* Writes the defined jobs into the store, by the rule of dibs job load. A job that the
 * program does not define any more is not due again. dibs_jobs_run() does this first.
 *   DIBS_INVALID  a job was refused before, is in another set, or two programs claim
 *                 the same version */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_jobs_publish(dibs_jobs *jobs,
                                                       dibs_error *err);

/* Reads a jobs file and writes its jobs into the store in the same way. A file with a
 * lower version than the store's changes nothing.
 *   DIBS_NOTFOUND  there is no such file
 *   DIBS_INVALID   it has mistakes, is for another board, or its version does not win;
 *                  err has the first with line and column */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_jobs_load(dibs_jobs *jobs,
                                                    const char *path,
                                                    dibs_error *err);

/* Runs the node on the calling thread: it ticks the jobs of the board and executes calls,
 * on other threads, until dibs_jobs_stop(). Returns when all functions have returned.
 *   DIBS_OK       it was stopped
 *   DIBS_INVALID  as dibs_jobs_publish(); or another thread runs this node
 *   DIBS_UNAVAIL  the store was out of reach when it began; later it waits */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_jobs_run(dibs_jobs *jobs,
                                                   dibs_error *err);

/* Ends dibs_jobs_run(), now or later: nothing new is taken, and calls have
 * stop_grace_ms. After a second stop they should return at once. Does not block; safe in a signal
 * handler. */
DIBS_API void dibs_jobs_stop(dibs_jobs *jobs);

/* The name of the run that a function has been given, for dibs_job_show(). This and other
 * texts are valid until the function returns; other threads may use them until then. */
DIBS_API const char *dibs_run_id(const dibs_run *run);

/* The name of its job. */
DIBS_API const char *dibs_run_job(const dibs_run *run);

/* The name of its step; "main" in a job without steps. */
DIBS_API const char *dibs_run_step(const dibs_run *run);

/* Which attempt it is, from 1. */
DIBS_API uint32_t dibs_run_attempt(const dibs_run *run);

/* The instant at which the run was due, in microseconds since 1970; 0: it was started
 * by a caller or by another run. A rerun has that of the run which is done again. */
DIBS_API int64_t dibs_run_tick_us(const dibs_run *run);

/* A number that is higher for every later attempt on the board. */
DIBS_API uint64_t dibs_run_token(const dibs_run *run);

/* The fence of the job's lock; 0: it has none. */
DIBS_API uint64_t dibs_run_fence(const dibs_run *run);

/* The value of a param; NULL: it has none. */
DIBS_API const char *dibs_run_param(const dibs_run *run, const char *name);

/* The result of a step that this one needs, with a NUL beyond its *len bytes (may be
 * NULL). NULL: it has none, or this step does not need that one. */
DIBS_API const void *
dibs_run_need(const dibs_run *run, const char *step, size_t *len);

/* False: cancelled, timed out, lost, or the node stops. Return soon. It compares clocks
 * and never asks the store. */
DIBS_API bool dibs_run_go_on(const dibs_run *run);

/* Why it is to stop: "cancelled", "timeout", "lost" or "stopped"; NULL: it is not. */
DIBS_API const char *dibs_run_why(const dibs_run *run);

/* Readable as soon as it is to stop. The node closes it. */
DIBS_API int dibs_run_stop_fd(const dibs_run *run);

/* The result of this step, for those that need it and for dibs_job_result(). The last
 * call counts. Kept if the function succeeds.
 *   DIBS_INVALID  it has more than DIBS_RESULT_MAX bytes */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_run_result(dibs_run *run,
                                                     const void *data,
                                                     size_t len,
                                                     dibs_error *err);

/* Runs, from any program. */

typedef struct dibs_start_opts {
    size_t size;    /* sizeof(dibs_start_opts); the macro sets it */
    const char *id; /* behind the name of the job; random. A second start with
                       the same id starts nothing */
    const char *const *params; /* "name=value" texts; NULL ends; none */
    const char *batch;         /* it becomes a member of this batch; none */
    uint32_t of;               /* members of the batch in all; not said yet */
} dibs_start_opts;

#define DIBS_START_OPTS(...)                                                   \
    (&(dibs_start_opts){.size = sizeof(dibs_start_opts), __VA_ARGS__})

/* Runs are QUEUED or ACTIVE, and then in a state from OK on, which is final. Steps may
 * have all but ACTIVE. */
typedef enum dibs_run_state {
    DIBS_RUN_QUEUED = 0, /* nothing was begun */
    DIBS_RUN_ACTIVE = 1,
    DIBS_RUN_PENDING = 2, /* needs others first */
    DIBS_RUN_READY = 3,
    DIBS_RUN_CLAIMED = 4, /* a node waits for the lock of the job */
    DIBS_RUN_RUNNING = 5,
    DIBS_RUN_RETRY = 6,   /* until the next attempt */
    DIBS_RUN_WAITING = 7, /* for a bookmark, a time, a batch or a run */
    DIBS_RUN_OK = 8,
    DIBS_RUN_FAILED = 9,
    DIBS_RUN_CANCELLED = 10,
    DIBS_RUN_MISSED = 11, /* start_deadline was over */
    DIBS_RUN_SKIPPED = 12 /* the lock was held, or what it needs has failed */
} dibs_run_state;

/* Times are microseconds of the store's wall clock since 1970; 0: not yet. */
typedef struct dibs_run_info {
    size_t size; /* sizeof(dibs_run_info), set by the caller */
    char run[DIBS_RUN_SIZE];
    char job[104];
    dibs_run_state state;
    bool ended;
    char reason[16]; /* "failed", "timeout", "lost"; "": it went well */
    char cause[16];  /* "tick", "hand", "then", "rerun", "child" */
    int64_t tick_us; /* the instant at which it was due */
    int64_t made_us;
    int64_t started_us;
    int64_t ended_us;
    uint32_t steps;
} dibs_run_info;

/* Valid during the call only. */
typedef struct dibs_step_info {
    const char *name;
    dibs_run_state state;
    const char *reason; /* "": none */
    uint32_t attempt;   /* attempts that were begun */
    int32_t code;       /* of a command: exit code; of a function: status */
    int64_t started_us;
    int64_t ended_us;
    const void *result; /* NULL: none */
    size_t len;
} dibs_step_info;

/* Both return false to see no more. They may use the client. */
typedef bool dibs_step_fn(const dibs_step_info *step, void *arg);
typedef bool dibs_run_fn(const dibs_run_info *info, void *arg);

/* Starts a run of a job, and writes its name for the calls below. A call without an
 * answer can be repeated with the same opts.id: it starts one run.
 *   DIBS_NOTFOUND  there is no such job
 *   DIBS_BUSY      concurrency is "forbid", and one lives; or it is "queue", and one
 *                  more waits
 *   DIBS_FULL      all members of the batch were started
 *   DIBS_INVALID   an id or a param is malformed, missing or unknown; or the id is that
 *                  of a run of another job */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_job_start(dibs_client *client,
                                                    const char *job,
                                                    const dibs_start_opts *opts,
                                                    char run[DIBS_RUN_SIZE],
                                                    dibs_error *err);

/* Waits until the run has ended, for wait_ms at most; negative: without limit. *out
 * (may be NULL) says how.
 *   DIBS_OK         it has ended, well or not
 *   DIBS_TIMEOUT    it has not, in time
 *   DIBS_NOTFOUND   there is no such run, or no more
 *   DIBS_CANCELLED  dibs_close() ended the wait */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_job_wait(dibs_client *client,
                                                   const char *run,
                                                   int64_t wait_ms,
                                                   dibs_run_info *out,
                                                   dibs_error *err);

/* Reads a run, and calls `each` (may be NULL) for its steps. *out may be NULL.
 *   DIBS_NOTFOUND  there is no such run */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_job_show(dibs_client *client,
                                                   const char *run,
                                                   dibs_run_info *out,
                                                   dibs_step_fn *each,
                                                   void *arg, dibs_error *err);

/* Reads the result of a step; "main" in a job without steps. Free it with
 * dibs_value_free().
 *   DIBS_NOTFOUND  there is no such run or step, or it has no result */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_job_result(dibs_client *client,
                                                     const char *run,
                                                     const char *step,
                                                     dibs_value *out,
                                                     dibs_error *err);

/* Calls `each` for the runs of a job that the store has, up to 1,024 of them. They
 * come in the order of their ends, or of their beginnings while they live. */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_job_runs(dibs_client *client,
                                                   const char *job,
                                                   dibs_run_fn *each, void *arg,
                                                   dibs_error *err);

/* Cancels a run and the runs of its steps. Calls that run should
 * stop. Steps with `when:
 * always` still run, and a second cancel skips them too.
 *   DIBS_STALE     it has ended
 *   DIBS_NOTFOUND  there is no such run */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_job_cancel(dibs_client *client,
                                                     const char *run,
                                                     dibs_error *err);

/* Resumes a step that waits for a bookmark; data (may be NULL) is its result. One of
 * all callers succeeds. The lock "workflow:RUN:bookmark:ID" stops the others meanwhile.
 *   DIBS_BUSY      already in progress by another caller; or the run has not come to it
 *   DIBS_STALE     it was resumed before, or its time is over; err says by whom
 *   DIBS_NOTFOUND  there is no such run or bookmark
 *   DIBS_INVALID   more than DIBS_RESULT_MAX bytes */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_bookmark_resume(dibs_client *client, const char *run, const char *bookmark,
                     const void *data, size_t len, dibs_error *err);

/* Work to be done before the run goes on. Writes up to DIBS_RESULT_MAX bytes of data. If
 * it does not return DIBS_OK, the bookmark stays, and others may try. */
typedef dibs_status
dibs_bookmark_fn(void *arg, char *data, size_t *len, dibs_error *err);

/* The same with work under the lock: a second caller meets DIBS_BUSY as long as it
 * takes. If this client loses the lock meanwhile, another may begin the work too; one of
 * both resumes the run, and the other meets DIBS_STALE. */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_bookmark_work(dibs_client *client, const char *run, const char *bookmark,
                   dibs_bookmark_fn *work, void *arg, dibs_error *err);

/* Graphs of jobs, made in code. The name is that of the job which a graph becomes: its
 * runs are found under it. Free it with dibs_graph_free().
 *   DIBS_INVALID  this is no name of a job */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_graph_new(const char *name,
                                                    dibs_graph **out,
                                                    dibs_error *err);

/* NULL is a no-op. */
DIBS_API void dibs_graph_free(dibs_graph *graph);

/* Adds a step: a run of `job`, after the steps in `needs` (NULL ends; NULL: none) have
 * succeeded.
 *   DIBS_INVALID  a name is none or is taken, or `needs` names a step that was not added
 *   DIBS_FULL     256 steps */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_graph_add(dibs_graph *graph,
                                                    const char *step,
                                                    const char *job,
                                                    const char *const *needs,
                                                    dibs_error *err);

/* A param of the step that was added last.
 *   DIBS_INVALID  there is no step yet, or this is no name of a param */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_graph_param(dibs_graph *graph,
                                                      const char *name,
                                                      const char *value,
                                                      dibs_error *err);

/* Starts a run of the graph. The graph may be started again.
 *   DIBS_NOTFOUND  a step names a job that is not on the board
 *   DIBS_INVALID   it has no steps, or the name is a job of a file */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_graph_start(dibs_client *client,
                                                      const dibs_graph *graph,
                                                      char run[DIBS_RUN_SIZE],
                                                      dibs_error *err);

typedef struct dibs_batch_sum {
    uint32_t of;     /* members in all; 0: not said yet */
    uint32_t ended;  /* that have ended */
    uint32_t failed; /* that ended without success */
} dibs_batch_sum;

/* Waits until `of` members of a batch have ended, for wait_ms at most; negative: without
 * limit; 0: looks once. If `of` is 0, the starts of members say how many there are.
 * Otherwise nobody need have started one yet. *out (may be NULL) is the sum, also after
 * DIBS_TIMEOUT.
 *   DIBS_OK        all have ended, well or not
 *   DIBS_TIMEOUT   they have not, in time
 *   DIBS_NOTFOUND  `of` is 0, and nobody has started a member
 *   DIBS_INVALID   `of` is another than the batch was started with */
DIBS_API DIBS_MUST_CHECK dibs_status
dibs_batch_wait(dibs_client *client, const char *batch, uint32_t of,
                int64_t wait_ms, dibs_batch_sum *out, dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
