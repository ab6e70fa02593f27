/* client_graph.c - graphs of jobs that are made in code: as the text of a jobs file, so that
 * one reader knows the rules (dibs/jobs.h). */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "jobs/board_change.h"
#include "jobs/board_name.h"
#include "jobs/board_set.h"
#include "jobs/job_text.h"
#include "jobs/params.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    GRAPH_MAX = 256 * 1024,
    ID_DIGITS = 12,
    LOADS_MAX = 100,
    LOAD_AGAIN_MS = 20
};

/* A set of its own, so that a graph never replaces the jobs of a file. */
static const char SET[] = "graph.";

typedef struct graph_step {
    char name[DIBS__JOB_NAME_SIZE];
    char job[DIBS__JOB_NAME_SIZE];
    dibsx_buf needs; /* names, as JSON with commas between them */
    dibsx_buf with;  /* "name": "value", ... */
} graph_step;

struct dibs_graph {
    char name[DIBS_RUN_SIZE]; /* with its board, if one is named */
    graph_step *steps;
    size_t count;
};

static bool is_graph_name(const char *name)
{
    return dibs__job_name_ok(name) &&
           strlen(name) + sizeof(SET) <= DIBS__JOB_NAME_SIZE;
}

dibs_status dibs_graph_new(const char *name, dibs_graph **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    const char *slash = name ? strchr(name, '/') : NULL;
    dibs_graph *graph;

    *out = NULL;
    if (!name || !is_graph_name(slash ? slash + 1 : name) ||
        strlen(name) >= sizeof(graph->name))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no name of a graph: letters, digits, "
                          "'.', '_' and '-', up to %zu",
                          name ? name : "",
                          (size_t)DIBS__JOB_NAME_SIZE - sizeof(SET));
    graph = dibsx_zalloc(sizeof(*graph));
    if (!graph)
        return dibsx_nomem(err, "a graph");
    (void)snprintf(graph->name, sizeof(graph->name), "%s", name);
    *out = graph;
    return DIBS_OK;
}

void dibs_graph_free(dibs_graph *graph)
{
    DIBSX_UNCANCEL;

    if (!graph)
        return;
    for (size_t i = 0; i < graph->count; i++) {
        dibsx_buf_fini(&graph->steps[i].needs);
        dibsx_buf_fini(&graph->steps[i].with);
    }
    dibsx_free(graph->steps);
    dibsx_free(graph);
}

static bool has_step(const dibs_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->count; i++)
        if (strcmp(graph->steps[i].name, name) == 0)
            return true;
    return false;
}

static void put_json_text(dibsx_buf *out, const char *text)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_text(&js, text);
}

/* Needs name steps that are there, so that no graph has a circle. */
static dibs_status
check_step(const dibs_graph *graph, const char *step, const char *job,
           const char *const *needs, dibs_error *err)
{
    if (!step || !dibs__job_name_ok(step) || !job || !dibs__job_name_ok(job))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no step, or '%.60s' no job",
                          step ? step : "", job ? job : "");
    if (has_step(graph, step))
        return dibsx_fail(err, DIBS_INVALID,
                          "the graph has a step %s already; rename one", step);
    for (size_t i = 0; needs && needs[i]; i++)
        if (!has_step(graph, needs[i]))
            return dibsx_fail(err, DIBS_INVALID,
                              "the step %s needs '%.60s', which was not added; "
                              "add it first",
                              step, needs[i]);
    if (graph->count == DIBS__JOB_STEPS_MAX)
        return dibsx_fail(err, DIBS_FULL, "a graph has at most %d steps",
                          DIBS__JOB_STEPS_MAX);
    return DIBS_OK;
}

dibs_status dibs_graph_add(dibs_graph *graph, const char *step, const char *job,
                           const char *const *needs, dibs_error *err)
{
    DIBSX_UNCANCEL;
    graph_step *more;
    dibs_status rc = check_step(graph, step, job, needs, err);

    if (rc != DIBS_OK)
        return rc;
    more = dibsx_realloc_n(graph->steps, graph->count + 1, sizeof(*more));
    if (!more)
        return dibsx_nomem(err, "a step of a graph");
    graph->steps = more;
    more += graph->count;
    *more = (graph_step){.name = ""};
    (void)snprintf(more->name, sizeof(more->name), "%s", step);
    (void)snprintf(more->job, sizeof(more->job), "%s", job);
    dibsx_buf_init(&more->needs, GRAPH_MAX);
    dibsx_buf_init(&more->with, GRAPH_MAX);
    for (size_t i = 0; needs && needs[i]; i++) {
        dibsx_buf_puts(&more->needs, i ? ", " : "");
        put_json_text(&more->needs, needs[i]);
    }
    graph->count++;
    return DIBS_OK;
}

/* "${" in a value would be a reference; it stands for itself here. */
static void put_value(dibsx_buf *out, const char *value)
{
    dibsx_buf plain;

    dibsx_buf_init(&plain, 2 * DIBS__PARAM_VALUE_MAX);
    for (const char *at = value; *at; at++) {
        if (at[0] == '$' && at[1] == '{')
            dibsx_buf_putc(&plain, '$');
        dibsx_buf_putc(&plain, *at);
    }
    put_json_text(out, dibsx_buf_text(&plain));
    dibsx_buf_fini(&plain);
}

dibs_status dibs_graph_param(dibs_graph *graph, const char *name,
                             const char *value, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_buf *with;

    if (graph->count == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "the graph has no step yet; add one first");
    if (!name || !dibs__param_name_ok(name) || !value ||
        strlen(value) > DIBS__PARAM_VALUE_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no param, or its value has more than %d "
                          "bytes",
                          name ? name : "", DIBS__PARAM_VALUE_MAX);
    with = &graph->steps[graph->count - 1].with;
    dibsx_buf_puts(with, with->len ? ", " : "");
    put_json_text(with, name);
    dibsx_buf_puts(with, ": ");
    put_value(with, value);
    return DIBS_OK;
}

/* ---- start */

static void write_graph(const dibs_graph *graph, const dibs__board *board,
                        const char *name, dibsx_buf *out)
{
    dibsx_buf_printf(
        out,
        "{\"set\": \"%s%s\", \"board\": \"%s\", \"jobs\": {\"%s\": "
        "{\"steps\": {",
        SET, name, board->name, name);
    for (size_t i = 0; i < graph->count; i++) {
        const graph_step *step = &graph->steps[i];

        dibsx_buf_printf(out, "%s\n\"%s\": {\"job\": \"%s\"", i ? "," : "",
                         step->name, step->job);
        if (step->needs.len) {
            dibsx_buf_puts(out, ", \"needs\": [");
            dibsx_buf_add(out, step->needs.data, step->needs.len);
            dibsx_buf_puts(out, "]");
        }
        if (step->with.len) {
            dibsx_buf_puts(out, ", \"with\": {");
            dibsx_buf_add(out, step->with.data, step->with.len);
            dibsx_buf_puts(out, "}");
        }
        if (!dibsx_buf_ok(&step->needs) || !dibsx_buf_ok(&step->with))
            dibsx_buf_puts(out, "]"); /* No text: memory was short. */
        dibsx_buf_puts(out, "}");
    }
    dibsx_buf_puts(out, "}}}}");
}

typedef struct graph_order {
    const char *id;
    const char *hash;
} graph_order;

static dibs_status
make_graph_run(const dibs__job *job, const dibs__job_state *state,
               dibs__run *run, void *arg, dibs_error *err)
{
    const graph_order *o = arg;
    dibs_status rc = dibs__run_make(run, o->id, job, o->hash, err);

    (void)state;
    if (rc == DIBS_OK)
        run->cause = DIBS__CAUSE_HAND;
    return rc;
}

/* A run would wait for a job that is not there, and fail much later. */
static dibs_status
check_jobs(const dibs_graph *graph, const dibs__board *board, dibs_error *err)
{
    for (size_t i = 0; i < graph->count; i++) {
        dibs__job_state state;
        dibs_status rc =
            dibs__board_state(board, graph->steps[i].job, &state, err);

        if (rc != DIBS_OK)
            return rc;
    }
    return DIBS_OK;
}

/* The run has the hash of this very graph, also if another program defines one of the same
 * name meanwhile. */
static dibs_status
start_file(const dibs__board *board, const dibs__job_file *file, const char *id,
           dibs_error *err)
{
    const dibs__load_opts opts = {.origin = "program", .by = "", .force = true};
    graph_order o = {.id = id, .hash = file->entries[0].hash};
    const char *name = file->entries[0].job->name;
    dibs_status rc = DIBS_STALE;

    for (int tries = 0; rc == DIBS_STALE && tries < LOADS_MAX; tries++) {
        dibs__load_sum sum = {.verdict = DIBS__SET_SAME};
        dibsx_buf why;

        if (tries > 0)
            (void)poll(NULL, 0, LOAD_AGAIN_MS);
        dibsx_buf_init(&why, 4096);
        rc = dibs__board_load(board, file, &opts, NULL, NULL, &sum, &why, err);
        dibsx_buf_fini(&why);
    }
    return rc == DIBS_OK ? dibs__board_start_run(board, name, id, o.hash,
                                                 make_graph_run, &o, err)
                         : rc;
}

static dibs_status
start_graph(const dibs_graph *graph, const dibs__board *board, const char *name,
            const char *id, dibs_error *err)
{
    dibs__job_file file = {.version = 0};
    dibsx_buf text;
    dibs_status rc = check_jobs(graph, board, err);

    dibsx_buf_init(&text, GRAPH_MAX);
    if (rc == DIBS_OK) {
        write_graph(graph, board, name, &text);
        rc = dibs__job_text_read(&text, name, false, &file, err);
    }
    if (rc == DIBS_OK)
        rc = start_file(board, &file, id, err);
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&text);
    return rc;
}

dibs_status dibs_graph_start(dibs_client *cl, const dibs_graph *graph,
                             char run[DIBS_RUN_SIZE], dibs_error *err)
{
    DIBSX_UNCANCEL;
    char id[DIBS__RUN_ID_SIZE], drawn[ID_DIGITS + 1];
    dibs__board board;
    const char *name = NULL;
    dibs_status rc = dibs__board_split(cl, graph->name, &board, &name, err);

    run[0] = '\0';
    if (rc == DIBS_OK && graph->count == 0)
        rc = dibsx_fail(err, DIBS_INVALID, "the graph %s has no steps", name);
    if (rc == DIBS_OK && !dibsx_random_hex(drawn, sizeof(drawn)))
        rc = dibsx_fail(err, DIBS_INTERNAL, "the kernel has no randomness");
    if (rc != DIBS_OK)
        return rc;
    (void)snprintf(id, sizeof(id), "%.100s.%s", name, drawn);
    rc = start_graph(graph, &board, name, id, err);
    if (rc == DIBS_OK)
        dibs__board_join(&board, id, run);
    return rc;
}
