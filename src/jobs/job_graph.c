/* job_graph.c - rules of a jobs file that concern more than one job. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_graph.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <stdlib.h>
#include <string.h>

/* A job of the file, for orders by name and by lock. */
typedef struct place {
    const dibs__job *job;
    const dibsx_yaml_node *key;
    size_t index;
} place;

typedef struct graph {
    dibs__job_reader *rd;
    place *in_file; /* in the order of the file */
    place *by_name;
    size_t count;
    /* A walk from job to job: */
    bool followers;      /* along `then`, else along steps that are jobs */
    unsigned char *seen; /* 1: on the path; 2: done */
    struct frame *path;
    size_t depth;
} graph;

/* Where a walk is: a job, and which of its steps or followers it looks at next. */
typedef struct frame {
    size_t index;
    size_t next;
} frame;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const place *)a)->job->name, ((const place *)b)->job->name);
}

static int compare_locks(const void *a, const void *b)
{
    const place *one = a, *two = b;
    int order = strcmp(one->job->lock.key, two->job->lock.key);

    if (order != 0)
        return order;
    return one->index < two->index ? -1 : one->index > two->index;
}

static const place *find_job(const graph *gr, const char *name)
{
    const dibs__job wanted = {.name = name};
    const place key = {.job = &wanted};

    return bsearch(&key, gr->by_name, gr->count, sizeof(key), compare_names);
}

/* ---- locks */

static dibs_status check_locks(graph *gr, dibs_error *err)
{
    place *locked = dibsx_zalloc_n(gr->count + 1, sizeof(*locked));
    size_t count = 0;

    if (!locked)
        return dibsx_nomem(err, "the list of jobs");
    for (size_t i = 0; i < gr->count; i++)
        if (gr->in_file[i].job->lock.key)
            locked[count++] = gr->in_file[i];
    qsort(locked, count, sizeof(*locked), compare_locks);
    for (size_t i = 1; i < count; i++) {
        const char *key = locked[i].job->lock.key;

        if (strcmp(key, locked[i - 1].job->lock.key) == 0)
            dibs__job_warn(gr->rd, locked[i].key,
                           "the job '%s' has the lock '%.60s', as the job "
                           "'%s'; only one of them runs at a time",
                           locked[i].job->name, key, locked[i - 1].job->name);
    }
    dibsx_free(locked);
    return DIBS_OK;
}

/* ---- steps that are runs of other jobs */

/* The node of a step's job or params, or the name of the job. */
static const dibsx_yaml_node *
step_node(const place *pl, const dibs__step *step, const char *key)
{
    const dibsx_yaml_node *steps = dibs__node_get(pl->key->value, "steps");
    const dibsx_yaml_node *node =
        dibs__node_get(dibs__node_get(steps, step->name), key);

    return node ? node : pl->key;
}

static bool has_name(const dibs__pairs *pairs, const char *name)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->at[i].name, name) == 0)
            return true;
    return false;
}

static bool has_param(const dibs__param_list *params, const char *name)
{
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->at[i].name, name) == 0)
            return true;
    return false;
}

static void check_with(graph *gr, const place *pl, const dibs__step *step,
                       const dibs__job *other)
{
    for (size_t i = 0; i < other->params.count; i++) {
        const dibs__param *param = &other->params.at[i];

        if (param->required && !has_name(&step->with, param->name))
            dibs__job_mistake(gr->rd, step_node(pl, step, "job"),
                              "the job '%s' requires the param '%s'; give it "
                              "in with",
                              other->name, param->name);
    }
    for (size_t i = 0; i < step->with.count; i++)
        if (!has_param(&other->params, step->with.at[i].name))
            dibs__job_mistake(gr->rd, step_node(pl, step, "with"),
                              "the job '%s' has no param '%s'", other->name,
                              step->with.at[i].name);
}

/* ---- circles */

/* The job that a job leads to by its n-th step or follower, NULL: it is not in the
 * file. False: there are no more. */
static bool
find_next(const graph *gr, const dibs__job *job, size_t n, const place **out)
{
    const dibs__texts *lists[] = {&job->then.ok, &job->then.failed};

    *out = NULL;
    if (!gr->followers) {
        if (n >= job->step_count)
            return false;
        if (job->steps[n].kind == DIBS__STEP_JOB)
            *out = find_job(gr, job->steps[n].job);
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        if (n < lists[i]->count) {
            *out = find_job(gr, lists[i]->at[n]);
            return true;
        }
        n -= lists[i]->count;
    }
    return false;
}

/* A job that follows itself may be meant, but one that waits for itself is not. */
static void report_circle(graph *gr, size_t first)
{
    const frame *last = &gr->path[gr->depth - 1];
    const place *pl = &gr->in_file[last->index];
    const dibsx_yaml_node *then = dibs__node_get(pl->key->value, "then");
    size_t i = 0;
    dibsx_buf words;

    while (gr->path[i].index != first)
        i++;
    dibsx_buf_init(&words, 300);
    for (; i < gr->depth; i++)
        dibsx_buf_printf(&words, "%s, ",
                         gr->in_file[gr->path[i].index].job->name);
    dibsx_buf_puts(&words, gr->in_file[first].job->name);
    if (!dibsx_buf_ok(&words)) {
        dibsx_buf_reset(&words);
        dibsx_buf_puts(&words, "more than can be shown");
    }
    if (gr->followers)
        dibs__job_warn(gr->rd, then ? then : pl->key,
                       "jobs follow each other in a circle, and may run for "
                       "ever: %s",
                       dibsx_buf_text(&words));
    else
        dibs__job_mistake(gr->rd,
                          step_node(pl, &pl->job->steps[last->next - 1], "job"),
                          "jobs run each other in a circle: %s",
                          dibsx_buf_text(&words));
    dibsx_buf_fini(&words);
}

static void enter_job(graph *gr, size_t index)
{
    gr->seen[index] = 1;
    gr->path[gr->depth++] = (frame){.index = index};
}

/* Without recursion: a chain may be as long as the file. */
static void walk_jobs(graph *gr, size_t index)
{
    enter_job(gr, index);
    while (gr->depth > 0) {
        frame *top = &gr->path[gr->depth - 1];
        const place *other = NULL;
        bool more = true;

        while (more && !other)
            more =
                find_next(gr, gr->in_file[top->index].job, top->next++, &other);
        if (!other) {
            gr->seen[top->index] = 2;
            gr->depth--;
        } else if (gr->seen[other->index] == 1) {
            report_circle(gr, other->index);
        } else if (gr->seen[other->index] == 0) {
            enter_job(gr, other->index);
        }
    }
}

static void check_circles(graph *gr, bool followers)
{
    gr->followers = followers;
    memset(gr->seen, 0, gr->count);
    for (size_t i = 0; i < gr->count; i++)
        if (!gr->seen[i])
            walk_jobs(gr, i);
}

static void check_params(graph *gr)
{
    for (size_t i = 0; i < gr->count; i++) {
        const place *pl = &gr->in_file[i];

        for (size_t j = 0; j < pl->job->step_count; j++) {
            const dibs__step *step = &pl->job->steps[j];
            const place *other =
                step->kind == DIBS__STEP_JOB ? find_job(gr, step->job) : NULL;

            if (other)
                check_with(gr, pl, step, other->job);
        }
    }
}

static dibs_status check_graph(graph *gr, dibs_error *err)
{
    check_params(gr);
    check_circles(gr, false);
    check_circles(gr, true);
    return check_locks(gr, err);
}

dibs_status dibs__job_graph_check(dibs__job_reader *rd,
                                  const dibs__job_entry *entries, size_t count,
                                  const dibsx_yaml_node *jobs, dibs_error *err)
{
    graph gr = {.rd = rd,
                .in_file = dibsx_zalloc_n(count + 1, sizeof(place)),
                .by_name = dibsx_zalloc_n(count + 1, sizeof(place)),
                .count = count,
                .seen = dibsx_zalloc_n(count + 1, 1),
                .path = dibsx_zalloc_n(count + 1, sizeof(frame))};
    const dibsx_yaml_node *key = jobs->child;
    dibs_status rc;

    if (gr.in_file && gr.by_name && gr.seen && gr.path) {
        for (size_t i = 0; i < count; i++, key = key->next)
            gr.in_file[i] = gr.by_name[i] = (place){entries[i].job, key, i};
        qsort(gr.by_name, count, sizeof(place), compare_names);
        rc = check_graph(&gr, err);
    } else {
        rc = dibsx_nomem(err, "the list of jobs");
    }
    dibsx_free(gr.in_file);
    dibsx_free(gr.by_name);
    dibsx_free(gr.seen);
    dibsx_free(gr.path);
    return rc;
}
