/* jobs.c - a node in a program: dibs/jobs.h. Owns its functions and definitions. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/opts.h"
#include "base/table.h"
#include "base/uncancel.h"
#include "jobs/board_set.h"
#include "jobs/job_text.h"
#include "node/call.h"
#include "node/define.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SLOTS = 4,
    TTL_MS = 30000,
    TTL_LEAST_MS = 3000,
    TTL_MOST_MS = 24 * 3600 * 1000,
    LOOK_MS = 10000,
    GRACE_MS = 30000,
    LOADS_MAX = 100,
    LOAD_AGAIN_MS = 50,
    FRAME_MAX = 1024 /* bytes of a jobs file around its jobs */
};

/* The name of a job that the program has defined; in the arena. */
typedef struct defined_name {
    dibsx_table_node node; /* first, so that one is the other */
    char name[DIBS__JOB_NAME_SIZE];
} defined_name;

struct dibs_jobs {
    dibs_client *cl;
    dibs__board board;
    dibs_jobs_opts opts; /* with defaults; its strings are in the arena */
    dibs__arena *arena;
    dibs__function functions[DIBS_JOBS_FUNCTIONS_MAX];
    size_t function_count;
    dibsx_buf jobs;    /* of the jobs file of this program, below "jobs" */
    dibsx_table names; /* of these jobs */
    dibs_error failed; /* the first job that was refused */
    int stop_fd;
    pid_t pid; /* of the process that made it */
    atomic_bool runs;
};

/* ---- open and close */

static dibs_status check_opts(const dibs_jobs_opts *o, dibs_error *err)
{
    if (o->slots > DIBS_JOBS_SLOTS_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a node has at most %d slots",
                          DIBS_JOBS_SLOTS_MAX);
    if (o->ttl_ms && (o->ttl_ms < TTL_LEAST_MS || o->ttl_ms > TTL_MOST_MS))
        return dibsx_fail(err, DIBS_INVALID,
                          "the ttl of a node is %d ms to 24 h", TTL_LEAST_MS);
    if (o->return_ms < 0 || o->return_ms > (o->ttl_ms ? o->ttl_ms : TTL_MS) / 3)
        return dibsx_fail(err, DIBS_INVALID,
                          "return_ms is at most a third of ttl_ms");
    if (o->on_stuck < DIBS_STUCK_WAIT || o->on_stuck > DIBS_STUCK_ABORT)
        return dibsx_fail(err, DIBS_INVALID,
                          "on_stuck is %d, which is no dibs_on_stuck",
                          (int)o->on_stuck);
    if (o->look_ms < 0 || o->version < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "look_ms and version are not negative");
    if (o->set && !dibs__job_name_ok(o->set))
        return dibsx_fail(err, DIBS_INVALID, "'%.60s' is no name of a set",
                          o->set);
    for (size_t i = 0; o->labels && o->labels[i]; i++)
        if (!dibs__job_name_ok(o->labels[i]) || i >= DIBS__NODE_LABELS_MAX)
            return dibsx_fail(err, DIBS_INVALID,
                              "'%.60s' is no label, or there are more than %d",
                              o->labels[i], DIBS__NODE_LABELS_MAX);
    return DIBS_OK;
}

/* "my prog" becomes my-prog. */
static const char *name_program(dibs__arena *arena)
{
    char *name = dibs__arena_text(arena, program_invocation_short_name);

    for (char *at = name; at && *at; at++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                    "0123456789._-",
                    *at))
            *at = '-';
    if (name && strlen(name) > DIBS__JOB_NAME_MAX)
        name[DIBS__JOB_NAME_MAX] = '\0';
    return name && dibs__job_name_ok(name) ? name : "program";
}

static const char *
copy_text(dibs__arena *arena, const char *text, const char *otherwise)
{
    return text ? dibs__arena_text(arena, text) : otherwise;
}

static void copy_labels(dibs_jobs *jb)
{
    const char *const *given = jb->opts.labels;
    const char **copy;
    size_t count = 0;

    while (given && given[count])
        count++;
    copy = dibs__arena_take(jb->arena, count + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = dibs__arena_text(jb->arena, given[i]);
    jb->opts.labels = copy;
}

static void fill_opts(dibs_jobs *jb)
{
    dibs_jobs_opts *o = &jb->opts;

    o->set =
        o->set ? dibs__arena_text(jb->arena, o->set) : name_program(jb->arena);
    o->sweep_prefix = copy_text(jb->arena, o->sweep_prefix, "workflow:");
    copy_labels(jb);
    o->slots = o->slots ? o->slots : SLOTS;
    o->ttl_ms = o->ttl_ms ? o->ttl_ms : TTL_MS;
    o->return_ms = o->return_ms ? o->return_ms : o->ttl_ms / 6;
    o->look_ms = o->look_ms ? o->look_ms : LOOK_MS;
    if (o->stop_grace_ms == 0)
        o->stop_grace_ms = GRACE_MS;
    else if (o->stop_grace_ms < 0)
        o->stop_grace_ms = 0;
}

dibs_status dibs_jobs_open(dibs_client *cl, const dibs_jobs_opts *opts,
                           dibs_jobs **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_jobs *jb = dibsx_zalloc(sizeof(*jb));
    dibs_status rc;

    *out = NULL;
    if (!jb)
        return dibsx_nomem(err, "a node");
    jb->cl = cl;
    jb->stop_fd = -1;
    jb->pid = getpid();
    dibsx_buf_init(&jb->jobs, DIBS__JOB_FILE_MAX);
    jb->arena = dibs__arena_new();
    rc = jb->arena ? dibsx_opts_copy(&jb->opts, sizeof(jb->opts), opts,
                                     "DIBS_JOBS_OPTS()", err)
                   : dibsx_nomem(err, "a node");
    if (rc == DIBS_OK)
        rc = check_opts(&jb->opts, err);
    if (rc == DIBS_OK)
        rc = dibs__board_init(&jb->board, cl,
                              jb->opts.board ? jb->opts.board : "main", err);
    if (rc == DIBS_OK) {
        fill_opts(jb);
        jb->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
        if (jb->stop_fd < 0 || !dibs__arena_ok(jb->arena))
            rc = dibsx_nomem(err, "a node");
    }
    if (rc == DIBS_OK)
        rc = dibs__sweep_check_prefix(cl, jb->opts.sweep_prefix, err);
    if (rc == DIBS_OK)
        *out = jb;
    else
        dibs_jobs_close(jb);
    return rc;
}

void dibs_jobs_close(dibs_jobs *jb)
{
    DIBSX_UNCANCEL;

    if (!jb)
        return;
    if (jb->stop_fd >= 0)
        close(jb->stop_fd);
    dibsx_buf_fini(&jb->jobs);
    dibsx_table_fini(&jb->names);
    dibs__arena_free(jb->arena);
    dibsx_free(jb);
}

/* ---- functions and definitions */

/* Keeps the first failure for dibs_jobs_run(). */
static dibs_status keep_failure(dibs_jobs *jb, dibs_status rc, dibs_error *err,
                                const dibs_error *why)
{
    if (rc == DIBS_OK)
        return rc;
    if (jb->failed.status == DIBS_OK)
        jb->failed = *why;
    if (err)
        *err = *why;
    return rc;
}

static dibs_status check_name(dibs_jobs *jb, const char *name, dibs_error *err)
{
    if (atomic_load(&jb->runs))
        return dibsx_fail(err, DIBS_INVALID,
                          "the node runs; define '%.60s' before it does",
                          name ? name : "");
    if (!name || !dibs__job_name_ok(name))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no name: letters, digits, '.', '_' and "
                          "'-', up to %d",
                          name ? name : "", DIBS__JOB_NAME_MAX);
    return DIBS_OK;
}

static dibs_status add_function(dibs_jobs *jb, const char *name,
                                dibs_job_fn *fn, void *arg, dibs_error *err)
{
    dibs_status rc = check_name(jb, name, err);

    if (rc != DIBS_OK)
        return rc;
    if (!fn)
        return dibsx_fail(err, DIBS_INVALID, "the function %s is NULL", name);
    for (size_t i = 0; i < jb->function_count; i++)
        if (strcmp(jb->functions[i].name, name) == 0)
            return dibsx_fail(err, DIBS_INVALID,
                              "there is a function %s already; rename one",
                              name);
    if (jb->function_count == DIBS_JOBS_FUNCTIONS_MAX)
        return dibsx_fail(err, DIBS_FULL, "a node has at most %d functions",
                          DIBS_JOBS_FUNCTIONS_MAX);
    jb->functions[jb->function_count] = (dibs__function){.fn = fn, .arg = arg};
    (void)snprintf(jb->functions[jb->function_count++].name,
                   DIBS__JOB_NAME_SIZE, "%s", name);
    return DIBS_OK;
}

dibs_status dibs_jobs_function(dibs_jobs *jb, const char *name, dibs_job_fn *fn,
                               void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_error why = {0};

    return keep_failure(jb, add_function(jb, name, fn, arg, &why), err, &why);
}

/* Begins the jobs file of the program; the jobs, and three brackets, follow. */
static void begin_file(const dibs_jobs *jb, dibsx_buf *text)
{
    dibsx_buf_puts(text, "{");
    if (jb->opts.version > 0)
        dibsx_buf_printf(text, "\"version\": %lld, ",
                         (long long)jb->opts.version);
    dibsx_buf_printf(text, "\"set\": \"%s\", \"board\": \"%s\", \"jobs\": {",
                     jb->opts.set, jb->board.name);
}

static void end_file(const dibsx_buf *jobs, dibsx_buf *text)
{
    dibsx_buf_add(text, jobs->data, jobs->len);
    dibsx_buf_puts(text, "}}");
}

static bool is_defined(const dibs_jobs *jb, const char *name)
{
    dibsx_table_node *at = dibsx_table_find(&jb->names, dibsx_hash_text(name));

    while (at && strcmp(((defined_name *)(void *)at)->name, name) != 0)
        at = at->next;
    return at != NULL;
}

static dibs_status
keep_job(dibs_jobs *jb, const char *name, const dibsx_buf *job, dibs_error *err)
{
    defined_name *defined = dibs__arena_take(jb->arena, 1, sizeof(*defined));

    if (jb->jobs.len + job->len + FRAME_MAX > DIBS__JOB_FILE_MAX)
        return dibsx_fail(err, DIBS_FULL,
                          "the jobs of a program have at most %d MiB as text",
                          DIBS__JOB_FILE_MAX >> 20);
    dibsx_buf_puts(&jb->jobs, jb->jobs.len ? ",\n" : "");
    dibsx_buf_add(&jb->jobs, job->data, job->len);
    if (!defined || !dibsx_buf_ok(&jb->jobs))
        return dibsx_nomem(err, "the job %s", name);
    (void)snprintf(defined->name, sizeof(defined->name), "%s", name);
    dibsx_table_add(&jb->names, &defined->node, dibsx_hash_text(name));
    return DIBS_OK;
}

/* The job alone must be a jobs file. A publication looks at how jobs refer to each
 * other. */
static dibs_status define_job(dibs_jobs *jb, const char *name,
                              const dibs_job_opts *given, dibs_error *err)
{
    dibs_job_opts opts;
    dibs__job_file file = {.version = 0};
    dibsx_buf job, text;
    dibs_status rc = check_name(jb, name, err);

    dibsx_buf_init(&job, DIBS__JOB_FILE_MAX);
    dibsx_buf_init(&text, DIBS__JOB_FILE_MAX);
    if (rc == DIBS_OK && is_defined(jb, name))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "there is a job %s already; rename one", name);
    if (rc == DIBS_OK)
        rc =
            dibsx_opts_copy(&opts, sizeof(opts), given, "DIBS_JOB_OPTS()", err);
    if (rc == DIBS_OK) {
        dibs__define_job(&job, name, &opts);
        begin_file(jb, &text);
        end_file(&job, &text);
        rc = dibs__job_text_read(&text, name, false, &file, err);
    }
    if (rc == DIBS_OK)
        rc = keep_job(jb, name, &job, err);
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&text);
    dibsx_buf_fini(&job);
    return rc;
}

dibs_status dibs_jobs_define(dibs_jobs *jb, const char *name,
                             const dibs_job_opts *opts, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_error why = {0};

    return keep_failure(jb, define_job(jb, name, opts, &why), err, &why);
}

dibs_status dibs_jobs_add(dibs_jobs *jb, const char *name, dibs_job_fn *fn,
                          void *arg, const dibs_job_opts *opts, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_error why = {0};
    dibs_status rc = add_function(jb, name, fn, arg, &why);

    if (rc == DIBS_OK) {
        rc = define_job(jb, name, opts, &why);
        if (rc != DIBS_OK)
            jb->function_count--;
    }
    return keep_failure(jb, rc, err, &why);
}

/* ---- into the store */

static void say_line(void *arg, const char *line)
{
    const dibs_jobs *jb = arg;

    if (jb->opts.log)
        jb->opts.log(DIBS_LOG_INFO, "jobs", line, jb->opts.log_arg);
}

static dibs_status load_file(dibs_jobs *jb, const dibs__job_file *file,
                             const char *origin, dibs_error *err)
{
    char host[64] = "";
    dibs__load_opts opts = {.origin = origin, .by = host};
    dibs__load_sum sum = {.verdict = DIBS__SET_SAME};
    dibs_status rc = DIBS_OK;
    dibsx_buf why;
    int tries = 0;

    if (strcmp(file->board, jb->board.name) != 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "%.80s is for the board %.40s, and this node for "
                          "%.40s; open a node for each board",
                          origin, file->board, jb->board.name);
    (void)gethostname(host, sizeof(host) - 1);
    dibsx_buf_init(&why, 4096);
    /* Another node may be loading the same jobs just now. */
    do {
        dibsx_buf_reset(&why);
        if (rc == DIBS_STALE)
            (void)poll(NULL, 0, LOAD_AGAIN_MS);
        rc = dibs__board_load(&jb->board, file, &opts, NULL, NULL, &sum, &why,
                              err);
    } while (rc == DIBS_STALE && ++tries < LOADS_MAX);
    if (rc == DIBS_OK && sum.verdict == DIBS__SET_REFUSED)
        rc = dibsx_fail(err, DIBS_INVALID, "%s", dibsx_buf_text(&why));
    else if (rc == DIBS_OK && sum.verdict == DIBS__SET_OLDER)
        say_line(jb, dibsx_buf_text(&why));
    dibsx_buf_fini(&why);
    return rc;
}

/* The origin has no host: wherever the program starts, it is the same set. */
dibs_status dibs_jobs_publish(dibs_jobs *jb, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__job_file file = {.version = 0};
    char origin[DIBS__JOB_NAME_SIZE + 16];
    dibsx_buf text;
    dibs_status rc = DIBS_OK;

    if (jb->failed.status != DIBS_OK) {
        if (err)
            *err = jb->failed;
        return jb->failed.status;
    }
    if (jb->jobs.len == 0)
        return DIBS_OK;
    dibsx_buf_init(&text, DIBS__JOB_FILE_MAX);
    begin_file(jb, &text);
    end_file(&jb->jobs, &text);
    (void)snprintf(origin, sizeof(origin), "program:%s", jb->opts.set);
    rc = dibs__job_text_read(&text, jb->opts.set, false, &file, err);
    if (rc == DIBS_OK)
        rc = load_file(jb, &file, origin, err);
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&text);
    return rc;
}

static dibs_status read_path(const char *path, dibsx_buf *text, dibs_error *err)
{
    char part[8192];
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && (got = read(fd, part, sizeof(part))) > 0)
        dibsx_buf_add(text, part, (size_t)got);
    if (fd < 0 || got < 0) {
        int why = errno;

        if (fd >= 0)
            close(fd);
        return dibsx_fail(err, why == ENOENT ? DIBS_NOTFOUND : DIBS_DENIED,
                          "cannot read %.120s: %s", path, strerror(why));
    }
    close(fd);
    return DIBS_OK;
}

dibs_status dibs_jobs_load(dibs_jobs *jb, const char *path, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char host[64] = "", origin[PATH_MAX + 80];
    dibs__job_file file = {.version = 0};
    char *whole = realpath(path, NULL);
    dibsx_buf text;
    dibs_status rc;

    dibsx_buf_init(&text, DIBS__JOB_FILE_MAX);
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(origin, sizeof(origin), "%s:%s", host, whole ? whole : path);
    free(whole);
    rc = read_path(path, &text, err);
    if (rc == DIBS_OK)
        rc = dibs__job_text_read(&text, path, true, &file, err);
    if (rc == DIBS_OK)
        rc = load_file(jb, &file, origin, err);
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&text);
    return rc;
}

/* ---- the node */

dibs_status dibs_jobs_run(dibs_jobs *jb, dibs_error *err)
{
    DIBSX_UNCANCEL;
    const struct dibs__calls calls = {.functions = jb->functions,
                                      .count = jb->function_count,
                                      .return_ms = jb->opts.return_ms,
                                      .abort_stuck = jb->opts.on_stuck ==
                                                     DIBS_STUCK_ABORT};
    const dibs__node_opts opts = {
        .board = &jb->board,
        .labels = jb->opts.labels,
        .slots = jb->opts.slots,
        .ttl_ms = jb->opts.ttl_ms,
        .look_ms = jb->opts.look_ms,
        .drain_ms = jb->opts.stop_grace_ms,
        .sweep_prefix = jb->opts.sweep_prefix,
        .sweep_ms =
            {[DIBS__SWEEP_TIMEOUT] = 1000, [DIBS__SWEEP_CLEANUP] = 60000},
        .stop_fd = jb->stop_fd,
        .calls = &calls,
        .say = say_line,
        .arg = jb};
    dibs_status rc;

    if (atomic_exchange(&jb->runs, true))
        return dibsx_fail(err, DIBS_INVALID, "another thread runs this node");
    rc = dibs_jobs_publish(jb, err);
    if (rc == DIBS_OK)
        rc = dibs__node_serve(&opts, &dibs__call_ops, err);
    atomic_store(&jb->runs, false);
    return rc;
}

void dibs_jobs_stop(dibs_jobs *jb)
{
    const uint64_t one = 1;
    int number = errno;

    /* The descriptor of a child of fork() is that of its parent, which goes on. */
    if (jb && jb->pid == getpid())
        (void)!write(jb->stop_fd, &one, sizeof(one));
    errno = number;
}
