/* engine.c - see engine.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/engine.h"
#include "base/alloc.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/thread.h"
#include "jobs/board_set.h"
#include "node/node.h"
#include "serve/job_files.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { AGAIN_MS = 500, STALE_AGAIN_MS = 50, LOADS_MAX = 100 };

/* A node with its files, which live as long as it. */
typedef struct dibs__engine_node {
    struct dibs__engine_node *next;
    dibs__serve_engine *engine;
    dibs__serve_job_files files;
    char *label_texts;
    const char **labels;
    dibs__board board;
    dibs__node_opts opts;
    pthread_t thread;
    bool started;
    bool follows; /* one that is at work: these are new files */
    bool told;    /* to stop */
    int stop_fd;  /* a semaphore: of the node's options */
    atomic_int phase;
    _Atomic int64_t behind_us; /* the clock of the store */
} dibs__engine_node;

static const char *const phase_names[] = {"off",      "loading", "running",
                                          "draining", "refused", "ended"};

const char *dibs__engine_phase_name(dibs__engine_phase phase)
{
    return phase_names[phase];
}

/* As dibs__node_say_fn. */
static void say_line(void *arg, const char *line)
{
    const dibs__engine_node *node = arg;

    dibs__serve_say(node->engine->log, DIBS_LOG_INFO, "jobs", NULL, "%s", line);
}

static void
complain(const dibs__engine_node *node, const char *what, const char *why)
{
    dibs__serve_say(node->engine->log, DIBS_LOG_ERROR, "jobs_failed", NULL,
                    "%s: %s", what, why);
}

/* True: it is to stop. */
static bool rest_for(const dibs__engine_node *node, int span_ms)
{
    struct pollfd fd = {.fd = node->stop_fd, .events = POLLIN};

    return poll(&fd, 1, span_ms) == 1;
}

/* ---- files */

static void origin_of(const char *path, char *out, size_t size)
{
    char host[64] = "", *whole = realpath(path, NULL);

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(out, size, "%s:%s", host, whole ? whole : path);
    free(whole);
}

/* The rule of dibs job load. INVALID: the file does not win. */
static dibs_status load_file(dibs__engine_node *node, size_t i, dibs_error *err)
{
    char origin[PATH_MAX + 80], host[64] = "", who[DIBS__RUN_NOTE_SIZE];
    dibs__load_opts opts = {.origin = origin, .by = who};
    dibs__load_sum sum = {.verdict = DIBS__SET_SAME};
    dibsx_buf why;
    dibs_status rc = DIBS_OK;
    int tries = 0;

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(who, sizeof(who), "serve@%s", host);
    origin_of(node->files.paths[i], origin, sizeof(origin));
    dibsx_buf_init(&why, 4096);
    /* Another daemon may be loading the same file just now. */
    do {
        dibsx_buf_reset(&why);
        if (rc == DIBS_STALE && rest_for(node, STALE_AGAIN_MS))
            break;
        rc = dibs__board_load(&node->board, &node->files.files[i], &opts, NULL,
                              NULL, &sum, &why, err);
    } while (rc == DIBS_STALE && ++tries < LOADS_MAX);
    if (rc == DIBS_OK && sum.verdict == DIBS__SET_OLDER)
        dibs__serve_say(node->engine->log, DIBS_LOG_WARN, "jobs_older", NULL,
                        "%s: %s", node->files.paths[i], dibsx_buf_text(&why));
    if (rc == DIBS_OK && sum.verdict == DIBS__SET_REFUSED)
        rc = dibsx_fail(err, DIBS_INVALID, "%s: %s", node->files.paths[i],
                        dibsx_buf_text(&why));
    dibsx_buf_fini(&why);
    return rc;
}

static dibs_status load_all(dibs__engine_node *node, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < node->files.count && rc == DIBS_OK; i++)
        rc = load_file(node, i, err);
    return rc;
}

/* Whether a later try may end otherwise. */
static bool is_passing(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN || rc == DIBS_STALE ||
           rc == DIBS_BUSY || rc == DIBS_NOMEM;
}

/* Locks: the engine's mutex. */
static void tell_node(dibs__engine_node *node)
{
    int running = DIBS__ENGINE_RUNNING;

    node->told = true;
    (void)atomic_compare_exchange_strong(&node->phase, &running,
                                         DIBS__ENGINE_DRAINING);
    dibsx_event_set(node->stop_fd);
}

/* Ends the nodes of the files before; their commands go on until they end by themselves, or
 * the daemon stops. */
static void relieve_older(dibs__engine_node *node)
{
    pthread_mutex_lock(&node->engine->mutex);
    for (dibs__engine_node *at = node->next; at; at = at->next) {
        if (!at->started || at->told)
            continue;
        at->opts.drain_ms = -1;
        tell_node(at);
    }
    pthread_mutex_unlock(&node->engine->mutex);
}

/* The files of the reload do not win: those before stay. */
static void refuse_files(const dibs__engine_node *node, const char *why)
{
    complain(node,
             node->follows ? "the daemon goes on with the jobs that it has"
                           : "the daemon executes no jobs",
             why);
    if (node->follows)
        dibs__serve_counts_jobs(node->engine->counts, true);
}

static void *run_engine(void *arg)
{
    dibs__engine_node *node = arg;
    dibs_error err = {0};
    dibs_status rc;

    while ((rc = load_all(node, &err)) != DIBS_OK && is_passing(rc)) {
        complain(node, "cannot load the jobs yet", err.message);
        if (rest_for(node, AGAIN_MS))
            break;
    }
    if (rc != DIBS_OK) {
        if (!is_passing(rc))
            refuse_files(node, err.message);
        atomic_store(&node->phase, is_passing(rc) ? DIBS__ENGINE_ENDED
                                                  : DIBS__ENGINE_REFUSED);
        return NULL;
    }
    atomic_store(&node->phase, DIBS__ENGINE_RUNNING);
    relieve_older(node);
    while ((rc = dibs__node_run(&node->opts, &err)) != DIBS_OK) {
        complain(node, "cannot join the board", err.message);
        if (!is_passing(rc) || rest_for(node, AGAIN_MS))
            break;
    }
    atomic_store(&node->phase, rc == DIBS_OK || is_passing(rc)
                                   ? DIBS__ENGINE_ENDED
                                   : DIBS__ENGINE_REFUSED);
    return NULL;
}

/* ---- nodes */

static void free_node(dibs__engine_node *node)
{
    if (!node)
        return;
    if (node->stop_fd >= 0)
        close(node->stop_fd);
    dibs__serve_job_files_fini(&node->files);
    dibsx_free(node->labels);
    dibsx_free(node->label_texts);
    dibsx_free(node);
}

/* As dibs__serve_note_fn. */
static void note_mistake(void *arg, bool warning, const char *line)
{
    dibs__serve_log *log = arg;

    dibs__serve_say(log, warning ? DIBS_LOG_WARN : DIBS_LOG_ERROR,
                    warning ? "jobs_warning" : "jobs_mistake", NULL, "%s",
                    line);
}

static dibs_status check_labels(const char *const *labels, dibs_error *err)
{
    size_t count = 0;

    for (; labels[count]; count++)
        if (!dibs__job_name_ok(labels[count]))
            return dibsx_fail(err, DIBS_REFUSED,
                              "'%.60s' is no label: letters, digits, '.', '_' "
                              "and '-', up to %d",
                              labels[count], DIBS__JOB_NAME_MAX);
    if (count > DIBS__NODE_LABELS_MAX)
        return dibsx_fail(err, DIBS_REFUSED, "a node has at most %d labels",
                          DIBS__NODE_LABELS_MAX);
    return DIBS_OK;
}

static dibs_status make_node(const dibs__serve_opts *opts, dibs__serve_log *log,
                             dibs__engine_node **out, dibs_error *err)
{
    dibs__engine_node *node = dibsx_zalloc(sizeof(*node));
    dibs_status rc = node ? DIBS_OK : dibsx_nomem(err, "the job engine");
    size_t count;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    node->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    node->labels = dibs__serve_split(opts->labels, &node->label_texts, &count);
    if (node->stop_fd < 0 || !node->labels)
        rc = dibsx_nomem(err, "the job engine");
    if (rc == DIBS_OK)
        rc = check_labels(node->labels, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_job_files_read(opts->jobs, opts->board,
                                        log ? note_mistake : NULL, log,
                                        &node->files, err);
    if (rc == DIBS_OK)
        *out = node;
    else
        free_node(node);
    return rc;
}

static bool is_wanted(const dibs__serve_opts *opts)
{
    return opts->engine == DIBS__SERVE_ENGINE_ON ||
           (opts->engine == DIBS__SERVE_ENGINE_AUTO && opts->jobs);
}

dibs_status dibs__engine_check(const dibs__serve_opts *opts, dibs_error *err)
{
    dibs__engine_node *node = NULL;
    dibs_status rc = make_node(opts, NULL, &node, err);

    free_node(node);
    return rc;
}

dibs_status
dibs__engine_init(dibs__serve_engine *engine, const dibs__serve_opts *opts,
                  dibs__serve_log *log, dibs_error *err)
{
    dibs__engine_node *node = NULL;
    dibs_status rc = make_node(opts, log, &node, err);

    engine->opts = opts;
    engine->log = log;
    pthread_mutex_init(&engine->mutex, NULL);
    if (rc != DIBS_OK)
        return rc;
    (void)snprintf(engine->board, sizeof(engine->board), "%s",
                   node->files.board);
    if (is_wanted(opts)) {
        node->engine = engine;
        engine->nodes = node;
    } else {
        free_node(node);
    }
    return DIBS_OK;
}

static dibs_status start_node(dibs__engine_node *node, dibs_error *err)
{
    const dibs__serve_opts *opts = node->engine->opts;
    dibs_status rc = dibs__board_init(&node->board, node->engine->cl,
                                      node->engine->board, err);

    node->opts = (dibs__node_opts){
        .board = &node->board,
        .files = node->files.list,
        .file_count = node->files.count,
        .labels = node->labels,
        .slots = opts->slots,
        .ttl_ms = opts->node_ttl_ms,
        .look_ms = opts->look_every_ms,
        .drain_ms = opts->drain_ms,
        .sweep_prefix = opts->sweep_prefix,
        .sweep_ms = {[DIBS__SWEEP_RETRY] = opts->retry_every_ms,
                     [DIBS__SWEEP_TIMEOUT] = opts->timeout_every_ms,
                     [DIBS__SWEEP_RESUME] = opts->resume_every_ms,
                     [DIBS__SWEEP_CLEANUP] = opts->cleanup_every_ms},
        .stop_fd = node->stop_fd,
        .say = say_line,
        .arg = node,
        .behind_us = &node->behind_us};
    atomic_store(&node->phase, DIBS__ENGINE_LOADING);
    if (rc == DIBS_OK &&
        dibsx_thread_start(&node->thread, run_engine, node) != 0)
        rc = dibsx_nomem(err, "the thread of the job engine");
    node->started = rc == DIBS_OK;
    return rc;
}

dibs_status dibs__engine_start(dibs__serve_engine *engine, dibs_client *cl,
                               dibs__serve_counts *counts, dibs_error *err)
{
    engine->cl = cl;
    engine->counts = counts;
    return engine->nodes ? start_node(engine->nodes, err) : DIBS_OK;
}

static bool has_ended(const dibs__engine_node *node)
{
    int phase = atomic_load(&node->phase);

    return !node->started || phase == DIBS__ENGINE_ENDED ||
           phase == DIBS__ENGINE_REFUSED;
}

/* Takes out an older node that has ended; NULL: there is none. */
static dibs__engine_node *take_ended(dibs__serve_engine *engine)
{
    dibs__engine_node *found = NULL, *newest = engine->nodes;

    pthread_mutex_lock(&engine->mutex);
    for (dibs__engine_node **at = &newest->next; *at && !found;) {
        if (has_ended(*at)) {
            found = *at;
            *at = found->next;
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&engine->mutex);
    return found;
}

static void drop_ended(dibs__serve_engine *engine)
{
    dibs__engine_node *node;

    while ((node = take_ended(engine)) != NULL) {
        if (node->started)
            pthread_join(node->thread, NULL);
        free_node(node);
    }
}

dibs_status dibs__engine_reload(dibs__serve_engine *engine, dibs_error *err)
{
    dibs__engine_node *node = NULL, *old = engine->nodes;
    dibs_status rc = DIBS_OK;

    if (!old)
        return DIBS_OK;
    rc = make_node(engine->opts, engine->log, &node, err);
    if (rc == DIBS_OK && strcmp(node->files.board, engine->board) != 0)
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "the jobs files are for the board %s now; restart the "
                        "daemon for that",
                        node->files.board);
    if (rc == DIBS_OK) {
        node->engine = engine;
        node->next = old;
        node->follows = true;
        dibs__serve_counts_jobs(engine->counts, false);
        rc = start_node(node, err);
    }
    if (rc != DIBS_OK) {
        free_node(node);
        return rc;
    }
    pthread_mutex_lock(&engine->mutex);
    engine->nodes = node;
    pthread_mutex_unlock(&engine->mutex);
    drop_ended(engine);
    return DIBS_OK;
}

void dibs__engine_drain(dibs__serve_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    for (dibs__engine_node *node = engine->nodes; node; node = node->next)
        if (node->started && !node->told)
            tell_node(node);
    pthread_mutex_unlock(&engine->mutex);
}

/* Nodes of older files are asked again when the time is over: they would go on for longer. */
static void drain_older(dibs__serve_engine *engine)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), engine->opts->drain_ms);

    for (dibs__engine_node *at = engine->nodes->next; at; at = at->next) {
        if (at->opts.drain_ms >= 0)
            continue;
        while (!has_ended(at) && dibsx_now() < until)
            (void)poll(NULL, 0, 10);
        if (!has_ended(at))
            dibsx_event_set(at->stop_fd);
    }
}

void dibs__engine_stop(dibs__serve_engine *engine)
{
    if (!engine->nodes)
        return;
    dibs__engine_drain(engine);
    drain_older(engine);
    for (dibs__engine_node *node = engine->nodes; node; node = node->next) {
        if (!node->started)
            continue;
        pthread_join(node->thread, NULL);
        node->started = false;
    }
}

void dibs__engine_fini(dibs__serve_engine *engine)
{
    if (!engine->opts)
        return;
    dibs__engine_stop(engine);
    while (engine->nodes) {
        dibs__engine_node *next = engine->nodes->next;

        free_node(engine->nodes);
        engine->nodes = next;
    }
    pthread_mutex_destroy(&engine->mutex);
}

dibs__engine_phase dibs__engine_phase_of(dibs__serve_engine *engine)
{
    int phase = DIBS__ENGINE_OFF;

    /* Files that were refused, or are not loaded yet, leave the node before at work. */
    pthread_mutex_lock(&engine->mutex);
    for (dibs__engine_node *node = engine->nodes;
         node && phase != DIBS__ENGINE_RUNNING; node = node->next) {
        const int own = atomic_load(&node->phase);

        if (node == engine->nodes || own == DIBS__ENGINE_RUNNING)
            phase = own;
    }
    pthread_mutex_unlock(&engine->mutex);
    return (dibs__engine_phase)phase;
}

int64_t dibs__engine_behind_us(dibs__serve_engine *engine)
{
    int64_t behind_us = 0;

    pthread_mutex_lock(&engine->mutex);
    if (engine->nodes && !has_ended(engine->nodes))
        behind_us = atomic_load(&engine->nodes->behind_us);
    pthread_mutex_unlock(&engine->mutex);
    return behind_us;
}
