/* node_command.c - attempts as commands: what a command finds, how it ended, its output.
 * It is not in libdibs, for the executor is the program itself, executed anew. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "exec/executor.h"
#include "exec/result_files.h"
#include "exec/spawn.h"
#include "jobs/params.h"
#include "node/node_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `at` of a task. */
typedef struct command {
    dibs__attempt *at;
    dibs__result_files files;
} command;

enum {
    ENV_MAX = 1024 * 1024,
    ARGS_MAX = 1024 * 1024,
    FLUSH_FIRST_MS = 1000,
    STALE_S = 24 * 3600 /* folders of commands */
};

static bool has_variable(char *const *list, size_t count, const char *text)
{
    size_t len = strcspn(text, "=") + 1;

    for (size_t i = 0; i < count; i++)
        if (strncmp(list[i], text, len) == 0)
            return true;
    return false;
}

/* Texts one after the other, each with a NUL, as a list that ends with NULL.
 * Variables: the first of a name counts. */
static char **list_texts(const dibsx_buf *texts, bool variables)
{
    size_t count = 0, n = 0;
    char **list;

    for (size_t i = 0; i < texts->len; i++)
        count += texts->data[i] == '\0';
    list = dibsx_zalloc_n(count + 1, sizeof(*list));
    for (size_t i = 0; list && i < texts->len; i += strlen(texts->data + i) + 1)
        if (!variables || !has_variable(list, n, texts->data + i))
            list[n++] = texts->data + i;
    return list;
}

static void put_variable(dibsx_buf *env, const char *name, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

static void
put_variable(dibsx_buf *env, const char *name, const char *format, ...)
{
    char text[DIBS_NAME_MAX + 64];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dibsx_buf_printf(env, "%s=%s", name, text);
    dibsx_buf_putc(env, '\0');
}

static void pass_variable(dibsx_buf *env, const char *name)
{
    const char *value = getenv(name);

    if (value) {
        dibsx_buf_printf(env, "%s=%s", name, value);
        dibsx_buf_putc(env, '\0');
    }
}

/* HOME, USER and SHELL of the user that the command runs as. Without a user it runs as
 * the node, and has its variables. */
static dibs_status put_user(dibsx_buf *env, const char *user, dibs_error *err)
{
    int number;

    if (!user) {
        pass_variable(env, "HOME");
        pass_variable(env, "USER");
        pass_variable(env, "SHELL");
        return DIBS_OK;
    }
    number = dibs__spawn_user_env(user, env);
    return number == 0
               ? DIBS_OK
               : dibsx_fail_at(err, DIBS_INVALID, dibsx_errno_name(number),
                               "cannot find the home of user %s: %s", user,
                               strerror(number));
}

static void put_names(dibs__node *node, const dibs__node_task *task,
                      const dibs__run *run, dibsx_buf *env)
{
    char tick[DIBS__TICK_TEXT_SIZE];

    dibs__run_tick_text(run, tick);
    put_variable(env, "DIBS_BOARD", "%s", node->board->name);
    put_variable(env, "DIBS_JOB", "%s", run->job);
    put_variable(env, "DIBS_RUN", "%s", run->id);
    put_variable(env, "DIBS_STEP", "%s", task->step->name);
    put_variable(env, "DIBS_ATTEMPT", "%" PRIu32, task->attempt);
    put_variable(env, "DIBS_RUN_TOKEN", "%" PRIu64, run->version);
    put_variable(env, "DIBS_NODE", "%s", node->id);
    if (tick[0])
        put_variable(env, "DIBS_TICK", "%s", tick);
    if (task->lock)
        put_variable(env, "DIBS_FENCE", "%" PRIu64,
                     dibs_lock_fence(task->lock));
    for (size_t i = 0; i < run->param_count; i++) {
        char name[DIBS__PARAM_VARIABLE_SIZE];

        dibs__param_variable(run->params[i].name, name);
        dibsx_buf_printf(env, "%s=%s", name, run->params[i].value);
        dibsx_buf_putc(env, '\0');
    }
}

static void put_own(const dibs__work *work, dibsx_buf *env)
{
    for (size_t i = 0; i < work->env.count; i++) {
        dibsx_buf_printf(env, "%s=%s", work->env.at[i].name,
                         work->env.at[i].value);
        dibsx_buf_putc(env, '\0');
    }
}

static size_t find_needs(const dibs__job *job, const dibs__node_task *task,
                         const dibs__run *run, dibs__need *out)
{
    size_t count = 0;

    for (size_t i = 0; i < job->step_count && i < run->step_count; i++)
        if (dibs__step_needs(task->step, i))
            out[count++] = (dibs__need){.step = run->steps[i].name,
                                        .result = run->steps[i].result,
                                        .len = run->steps[i].result_len};
    return count;
}

static void
put_args(const dibs__work *work, const dibs__run *run, dibsx_buf *args)
{
    const dibs__pairs values = {.at = run->params, .count = run->param_count};
    char tick[DIBS__TICK_TEXT_SIZE];

    dibs__run_tick_text(run, tick);
    for (size_t i = 0; i < work->run.count; i++) {
        dibs__params_expand(work->run.at[i], &values, tick, args);
        dibsx_buf_putc(args, '\0');
    }
}

static dibs_status
start_with(dibs__node *node, dibs__node_task *task, command *cmd,
           const dibsx_buf *args, const dibsx_buf *env, dibs_error *err)
{
    const dibs__work *work = &task->step->work;
    char **argv = list_texts(args, false), **vars = list_texts(env, true);
    dibs__attempt_spec spec = {
        .argv = argv,
        .shell = task->step->kind == DIBS__STEP_SHELL ? work->shell : NULL,
        .env = vars,
        .env_file = work->env_file,
        .dir = work->dir,
        .user = work->user,
        .input = work->input,
        .input_len = work->input ? strlen(work->input) : 0,
        .timeout_ms = work->timeout_ms == DIBS__JOB_NONE ? 0 : work->timeout_ms,
        .kill_after_ms = work->kill_after_ms,
        .signal = (int)work->signal,
        .outlives_belief = task->job->on_lost == DIBS__LOST_FINISH,
        .output_keep = (size_t)work->output.keep,
        .output_head = (size_t)work->output.head};
    dibs_status rc = DIBS_OK;

    if (!argv || !vars || !dibsx_buf_ok(args) || !dibsx_buf_ok(env))
        rc = dibsx_fail(err, DIBS_NOMEM,
                        "the words and variables of the command do not fit");
    if (rc == DIBS_OK)
        rc = dibs__attempt_start(node->executor, &spec, task, &cmd->at, err);
    dibsx_free(argv);
    dibsx_free(vars);
    return rc;
}

static void free_command(command *cmd)
{
    dibs__result_files_remove(&cmd->files);
    dibsx_free(cmd);
}

static dibs_status
prepare_command(dibs__node *node, dibs__node_task *task, command *cmd,
                const dibs__run *run, dibs_error *err)
{
    const dibs__work *work = &task->step->work;
    dibs__need *needs =
        dibsx_zalloc_n(task->job->step_count + 1, sizeof(*needs));
    size_t count = needs ? find_needs(task->job, task, run, needs) : 0;
    dibsx_buf args, env;
    dibs_status rc =
        dibs__result_files_make(&cmd->files, DIBS__FILES_STEP, NULL, work->user,
                                needs, count, err);

    dibsx_buf_init(&args, ARGS_MAX);
    dibsx_buf_init(&env, ENV_MAX);
    if (rc == DIBS_OK) {
        put_args(work, run, &args);
        put_own(work, &env);
        pass_variable(&env, "PATH");
        pass_variable(&env, "LANG");
        rc = put_user(&env, work->user, err);
        put_names(node, task, run, &env);
        dibs__result_files_env(&cmd->files, needs, count, &env);
    }
    if (rc == DIBS_OK)
        rc = start_with(node, task, cmd, &args, &env, err);
    dibsx_buf_fini(&env);
    dibsx_buf_fini(&args);
    dibsx_free(needs);
    return rc;
}

static dibs_status start_command(dibs__node *node, dibs__node_task *task,
                                 const dibs__run *run, dibs_error *err)
{
    command *cmd = dibsx_zalloc(sizeof(*cmd));
    dibs_status rc;

    if (!cmd)
        return dibsx_nomem(err, "a command");
    cmd->files.dir_fd = -1;
    rc = prepare_command(node, task, cmd, run, err);
    if (rc != DIBS_OK) {
        free_command(cmd);
        return rc;
    }
    task->at = cmd;
    task->flush_ms = FLUSH_FIRST_MS;
    task->flush_at = dibsx_after_ms(dibsx_now(), task->flush_ms);
    return DIBS_OK;
}

static dibs__reason
find_reason(const dibs__node_task *task, const dibs__attempt_end *end)
{
    switch (end->reason) {
    case DIBS__ATTEMPT_OK:
    case DIBS__ATTEMPT_FAILED:
        return dibs__work_code_ok(&task->step->work, end->exit_code)
                   ? DIBS__REASON_NONE
                   : DIBS__REASON_FAILED;
    case DIBS__ATTEMPT_TIMEOUT:
        return DIBS__REASON_TIMEOUT;
    case DIBS__ATTEMPT_CANCELLED:
        return task->ends_by ? task->ends_by : DIBS__REASON_CANCELLED;
    case DIBS__ATTEMPT_STOPPED:
        return DIBS__REASON_STOPPED;
    case DIBS__ATTEMPT_NOT_STARTED:
        return DIBS__REASON_UNSTARTED;
    default:
        return DIBS__REASON_LOST;
    }
}

/* As a shell has it; 0: nothing has ended that has one. */
static int32_t code_of_end(const dibs__attempt_end *end)
{
    if (end->exit_code >= 0)
        return end->exit_code;
    return end->exit_signal > 0 ? 128 + end->exit_signal : 0;
}

static void take_outcome(dibs__node *node, dibs__node_task *task)
{
    command *cmd = task->at;
    dibs__attempt_end end = dibs__attempt_result(cmd->at);
    dibs_error err = {0};
    size_t len = 0;

    task->outcome = (dibs__outcome){.reason = find_reason(task, &end),
                                    .exit_code = code_of_end(&end)};
    if (dibs__result_files_read(&cmd->files, task->result, &len, &err) ==
        DIBS_OK) {
        task->outcome.result = len > 0 ? task->result : NULL;
        task->outcome.result_len = len;
    } else if (task->outcome.reason == DIBS__REASON_NONE) {
        dibs__node_complain(node, task->task.run, &err);
        task->outcome.reason = DIBS__REASON_FAILED;
    }
    dibs__node_say(node, "%s/%s attempt %" PRIu32 ": %s%s%s", task->task.run,
                   task->task.step, task->attempt,
                   task->outcome.reason
                       ? dibs__reason_name(task->outcome.reason)
                       : "ok",
                   end.message[0] ? ": " : "", end.message);
}

/* Why the command was not started, or was lost, in a line behind its output. */
static void
put_message(const char *message, const dibsx_buf *head, dibsx_buf *tail)
{
    const dibsx_buf *last = tail->len > 0 ? tail : head;

    if (!message[0])
        return;
    if (last->len > 0 && last->data[last->len - 1] != '\n')
        dibsx_buf_putc(tail, '\n');
    dibsx_buf_printf(tail, "%s\n", message);
}

static void flush_output(dibs__node *node, dibs__node_task *task)
{
    const command *cmd = task->at;
    dibsx_buf head, tail;
    uint64_t left_out;

    dibsx_buf_init(&head, DIBS_VALUE_MAX);
    dibsx_buf_init(&tail, DIBS_VALUE_MAX);
    left_out = dibs__attempt_output(cmd->at, &head, &tail);
    put_message(dibs__attempt_result(cmd->at).message, &head, &tail);
    if (dibsx_buf_ok(&head) && dibsx_buf_ok(&tail))
        dibs__node_keep_output(node, task, head.data, head.len, tail.data,
                               tail.len, left_out);
    dibsx_buf_fini(&tail);
    dibsx_buf_fini(&head);
}

/* ---- the executor */

static dibs_status open_executor(dibs__node *node, dibs_error *err)
{
    dibs__executor *ex = NULL;
    dibs_status rc = dibs__executor_open(node->opts->slots, NULL, &ex, err);

    /* A node that is killed cannot remove the folders of its commands. */
    dibs__result_files_sweep(DIBS__FILES_STEP, NULL, STALE_S);
    node->executor = ex;
    return rc;
}

static void close_executor(dibs__node *node)
{
    dibs__executor_close(node->executor);
    node->executor = NULL;
    for (size_t i = 0; i < node->opts->slots; i++)
        if (node->tasks[i].at) {
            free_command(node->tasks[i].at);
            node->tasks[i].at = NULL;
        }
}

static int executor_fd(const dibs__node *node)
{
    return dibs__executor_fd(node->executor);
}

static void believe_lease(dibs__node *node, dibsx_nsec valid_until)
{
    dibs__executor_believe(node->executor, valid_until, node->opts->ttl_ms);
}

static int64_t kill_margin_ms(const dibs__node *node)
{
    return dibs__executor_margin_ms(node->executor, node->opts->ttl_ms);
}

static bool ends_with_lease(const dibs__node_task *task)
{
    return task->job->on_lost == DIBS__LOST_KILL;
}

static void stop_command(dibs__node *node, dibs__node_task *task,
                         dibs__reason why, bool at_once)
{
    command *cmd = task->at;

    (void)node;
    dibs__attempt_stop(cmd->at,
                       why == DIBS__REASON_STOPPED ? DIBS__ATTEMPT_STOPPED
                                                   : DIBS__ATTEMPT_CANCELLED,
                       at_once);
}

static dibs__node_task *next_ended(dibs__node *node)
{
    dibs__attempt *at;

    dibs__executor_process(node->executor);
    at = dibs__executor_ended(node->executor);
    return at ? dibs__attempt_arg(at) : NULL;
}

static void end_command(dibs__node_task *task)
{
    command *cmd = task->at;

    dibs__attempt_free(cmd->at);
    free_command(cmd);
}

static const dibs__attempt_ops commands = {
    .open = open_executor,
    .close = close_executor,
    .event_fd = executor_fd,
    .believe = believe_lease,
    .margin_ms = kill_margin_ms,
    .ends_with_lease = ends_with_lease,
    .start = start_command,
    .stop = stop_command,
    .next_ended = next_ended,
    .take_outcome = take_outcome,
    .flush = flush_output,
    .end = end_command,
};

dibs_status dibs__node_run(const dibs__node_opts *opts, dibs_error *err)
{
    return dibs__node_serve(opts, &commands, err);
}
