/* job_steps.c - reads the steps of a job, and checks that their needs form no circle.
 *
 * Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_steps.h"

#include "base/buf.h"
#include "base/suggest.h"
#include "jobs/job_read.h"
#include "jobs/params.h"
#include <stdio.h>
#include <string.h>

/* ---- actions and references */

static const dibs__action step_actions[] = {
    {"run", DIBS__STEP_RUN},     {"shell", DIBS__STEP_SHELL},
    {"call", DIBS__STEP_CALL},   {"wait", DIBS__STEP_WAIT},
    {"sleep", DIBS__STEP_SLEEP}, {"job", DIBS__STEP_JOB},
};

enum { STEP_ACTIONS = sizeof(step_actions) / sizeof(step_actions[0]) };

void dibs__action_words(const dibs__action *actions, size_t count, char *out,
                        size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < count && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s",
                                i == 0           ? ""
                                : i == count - 1 ? " or "
                                                 : ", ",
                                actions[i].key);
}

const dibs__action *
dibs__action_find(dibs__job_reader *rd, const dibs__action *actions,
                  size_t count, const char *of, const dibsx_yaml_node *map)
{
    const dibs__action *found = NULL;
    char words[100];

    for (size_t i = 0; i < count; i++) {
        const dibsx_yaml_node *value = dibs__node_get(map, actions[i].key);

        if (!value)
            continue;
        if (found) {
            dibs__action_words(actions, count, words, sizeof(words));
            dibs__job_mistake(rd, value, "%s has %s and %s; give one of %s", of,
                              found->key, actions[i].key, words);
            break;
        }
        found = &actions[i];
    }
    return found;
}

static void check_text(dibs__job_reader *rd, const dibs__param_list *params,
                       const dibsx_yaml_node *node)
{
    dibs_error err = {0};
    size_t at = 0;

    if (node->kind == DIBSX_YAML_SCALAR &&
        dibs__params_check(node->text, params, &at, &err) != DIBS_OK)
        dibs__job_mistake_within(rd, node, at + 1, err.message);
}

void dibs__refs_check(dibs__job_reader *rd, const dibs__param_list *params,
                      const dibsx_yaml_node *value)
{
    if (!value)
        return;
    if (value->kind == DIBSX_YAML_SCALAR)
        check_text(rd, params, value);
    for (const dibsx_yaml_node *item = value->child; item; item = item->next)
        check_text(rd, params, item->value ? item->value : item);
}

void dibs__shell_check(dibs__job_reader *rd, const dibsx_yaml_node *value)
{
    const char *at = value && value->kind == DIBSX_YAML_SCALAR
                         ? strstr(value->text, "${param.")
                         : NULL;

    if (at)
        dibs__job_mistake_within(
            rd, value, (size_t)(at - value->text) + 1,
            "params are not put into the text of a shell; write "
            "\"$DIBS_PARAM_NAME\", with the name in capitals");
    if (value && value->kind == DIBSX_YAML_SCALAR &&
        strstr(value->text, "${tick}")) /* A shell may have such a variable. */
        dibs__job_warn(rd, value,
                       "${tick} is no reference in the text of a shell; write "
                       "$DIBS_TICK");
}

/* ---- one step */

static void check_wait(dibs__job_reader *rd, const dibs__step *step,
                       const dibsx_yaml_node *value)
{
    const dibs__step_wait *wait = &step->wait;

    if (wait->bookmark && wait->batch)
        dibs__job_mistake(rd, value,
                          "a step waits for a bookmark or for a batch, and "
                          "this one for both");
    else if (!wait->bookmark && !wait->batch)
        dibs__job_mistake(rd, value,
                          "the step waits for nothing; give it bookmark or "
                          "batch");
    else if (wait->bookmark && wait->of != DIBS__JOB_NONE)
        dibs__job_mistake(rd, value, "of is for a batch, not for a bookmark");
}

/* A caller who resumes has the name alone. A run of the store that has one twice goes on
 * (dibs__run_find_bookmark). */
static void check_bookmark(dibs__job_reader *rd, const dibs__job *job,
                           const dibs__step *step, const dibsx_yaml_node *wait)
{
    const char *name = step->wait.bookmark;

    for (size_t i = 0; name && !rd->stored && i < job->step_count; i++)
        if (job->steps[i].wait.bookmark &&
            strcmp(job->steps[i].wait.bookmark, name) == 0) {
            dibs__job_mistake(rd, dibs__node_get(wait, "bookmark"),
                              "the bookmark '%s' is that of step %s; name them "
                              "apart",
                              name, job->steps[i].name);
            return;
        }
}

/* Steps of the job are those before this one. */
static void
check_step(dibs__job_reader *rd, const dibs__job *job, const dibs__step *step,
           const dibsx_yaml_node *key, const dibsx_yaml_node *map)
{
    const dibsx_yaml_node *wait = dibs__node_get(map, "wait");
    const dibsx_yaml_node *with = dibs__node_get(map, "with");
    char words[100];

    if (step->kind == DIBS__STEP_NOTHING) {
        dibs__action_words(step_actions, STEP_ACTIONS, words, sizeof(words));
        dibs__job_mistake(rd, key, "the step '%s' does nothing; give it %s",
                          step->name, words);
    }
    if (wait) {
        check_wait(rd, step, wait);
        check_bookmark(rd, job, step, wait);
    }
    if (with && step->kind != DIBS__STEP_JOB)
        dibs__job_mistake(rd, with, "with is for a step that has job");
    if (step->kind == DIBS__STEP_JOB && step->job &&
        strcmp(step->job, job->name) == 0)
        dibs__job_mistake(rd, dibs__node_get(map, "job"),
                          "the step runs its own job, and would do so for "
                          "ever");
    dibs__refs_check(rd, &job->params, dibs__node_get(map, "run"));
    dibs__refs_check(rd, &job->params, with);
    dibs__refs_check(rd, &job->params, dibs__node_get(wait, "batch"));
    dibs__shell_check(rd, dibs__node_get(map, "shell"));
}

/* `key` is where the name stands. */
static void read_step(dibs__job_reader *rd, dibs__job *job, dibs__step *step,
                      const char *name, const dibsx_yaml_node *key,
                      const dibsx_yaml_node *map, const char *besides)
{
    const dibs__key_scope scopes[] = {{&dibs__step_keys, step},
                                      {&dibs__work_keys, &step->work}};
    const dibs__action *action;

    step->name = dibs__arena_text(rd->ctx.arena, name);
    step->work = job->work;
    step->work.run = (dibs__texts){0};
    step->work.shell = step->work.call = NULL;
    dibs__keys_reset(&dibs__step_keys, &rd->ctx, step);
    if (!step->name)
        return;
    dibs__keys_read(rd, scopes, 2, "a step", besides, map);
    action = dibs__action_find(rd, step_actions, STEP_ACTIONS, "the step", map);
    step->kind = action ? action->kind : DIBS__STEP_NOTHING;
    check_step(rd, job, step, key, map);
}

/* ---- needs */

/* The graph, with the nodes that its steps come from. */
typedef struct graph {
    dibs__job_reader *rd;
    dibs__job *job;
    const dibsx_yaml_node **maps;
    unsigned char *seen; /* 1: on the path; 2: done */
    size_t *path;
    size_t depth;
} graph;

static size_t find_step(const dibs__job *job, const char *name)
{
    size_t i = 0;

    while (i < job->step_count && strcmp(job->steps[i].name, name) != 0)
        i++;
    return i;
}

/* The node of a name in `needs`. */
static const dibsx_yaml_node *
need_node(const dibsx_yaml_node *map, const char *name)
{
    const dibsx_yaml_node *needs = dibs__node_get(map, "needs");

    if (!needs || needs->kind != DIBSX_YAML_LIST)
        return needs ? needs : map;
    for (const dibsx_yaml_node *item = needs->child; item; item = item->next)
        if (item->kind == DIBSX_YAML_SCALAR && strcmp(item->text, name) == 0)
            return item;
    return needs;
}

static void unknown_need(const graph *gr, size_t place, const char *name)
{
    const dibsx_yaml_node *node = need_node(gr->maps[place], name);
    dibsx_suggest sg = {.typed = name};

    for (size_t i = 0; i < gr->job->step_count; i++)
        dibsx_suggest_offer(&sg, gr->job->steps[i].name);
    if (sg.best)
        dibs__job_mistake(gr->rd, node,
                          "needs: there is no step '%.60s'; did you mean "
                          "'%s'?",
                          name, sg.best);
    else
        dibs__job_mistake(gr->rd, node, "needs: there is no step '%.60s'",
                          name);
}

static void link_needs(const graph *gr, size_t place)
{
    dibs__step *step = &gr->job->steps[place];

    for (size_t i = 0; i < step->need_names.count; i++) {
        const char *name = step->need_names.at[i];
        size_t need = name ? find_step(gr->job, name) : place;

        if (need == gr->job->step_count)
            unknown_need(gr, place, name);
        else if (need == place && name)
            dibs__job_mistake(gr->rd, need_node(gr->maps[place], name),
                              "the step '%s' needs itself", name);
        else
            step->needs[need / 64] |= UINT64_C(1) << (need % 64);
    }
}

/* From `first`, which is on the path, to its end and back to it. */
static void report_circle(const graph *gr, size_t place, size_t first)
{
    const char *name = gr->job->steps[first].name;
    size_t i = 0;
    dibsx_buf words;

    while (gr->path[i] != first)
        i++;
    dibsx_buf_init(&words, 300);
    for (; i < gr->depth; i++)
        dibsx_buf_printf(&words, "%s, ", gr->job->steps[gr->path[i]].name);
    dibs__job_mistake(gr->rd, need_node(gr->maps[place], name),
                      "needs goes in a circle: %s%s", dibsx_buf_text(&words),
                      dibsx_buf_ok(&words) ? name : "...");
    dibsx_buf_fini(&words);
}

/* Depth is bounded by the number of steps. */
static void walk_needs(graph *gr, size_t place)
{
    gr->seen[place] = 1;
    gr->path[gr->depth++] = place;
    for (size_t need = 0; need < gr->job->step_count; need++) {
        if (!dibs__step_needs(&gr->job->steps[place], need))
            continue;
        if (gr->seen[need] == 1)
            report_circle(gr, place, need);
        else if (gr->seen[need] == 0)
            walk_needs(gr, need);
    }
    gr->depth--;
    gr->seen[place] = 2;
}

static void
check_needs(dibs__job_reader *rd, dibs__job *job, const dibsx_yaml_node **maps)
{
    unsigned char seen[DIBS__JOB_STEPS_MAX] = {0};
    size_t path[DIBS__JOB_STEPS_MAX];
    graph gr = {.rd = rd, .job = job, .maps = maps, .seen = seen, .path = path};

    for (size_t i = 0; i < job->step_count; i++)
        link_needs(&gr, i);
    for (size_t i = 0; i < job->step_count; i++)
        if (!seen[i])
            walk_needs(&gr, i);
}

/* ---- all steps */

static bool check_name(dibs__job_reader *rd, const dibs__job *job,
                       const dibsx_yaml_node *at, const char *name)
{
    if (!dibs__job_name_ok(name)) {
        dibs__job_mistake(rd, at,
                          "'%.40s' is no name of a step; a name has letters, "
                          "digits and . _ -, and at most %d bytes",
                          name, DIBS__JOB_NAME_MAX);
        return false;
    }
    if (find_step(job, name) < job->step_count) {
        dibs__job_mistake(rd, at, "the step '%s' was given before", name);
        return false;
    }
    return true;
}

/* An item of either form: its name and its map. False after a mistake. */
static bool find_parts(dibs__job_reader *rd, const dibsx_yaml_node *item,
                       const char **name, const dibsx_yaml_node **map)
{
    const dibsx_yaml_node *node;

    if (item->value) {
        *name = item->text;
        *map = item->value;
        return true;
    }
    *map = item;
    node = dibs__node_get(item, "name");
    if (node && node->kind == DIBSX_YAML_SCALAR) {
        *name = node->text;
        return true;
    }
    dibs__job_mistake(rd, item, "the step has no name");
    return false;
}

void dibs__steps_read(dibs__job_reader *rd, dibs__job *job,
                      const dibsx_yaml_node *source)
{
    const dibsx_yaml_node *maps[DIBS__JOB_STEPS_MAX];
    const char *besides = source->kind == DIBSX_YAML_LIST ? "name" : NULL;
    size_t count = 0, mistakes = rd->mistakes;

    for (const dibsx_yaml_node *at = source->child; at; at = at->next)
        count++;
    if (source->kind == DIBSX_YAML_SCALAR || count == 0 ||
        count > DIBS__JOB_STEPS_MAX) {
        dibs__job_mistake(rd, source,
                          "steps takes a map of 1 to %d steps by name",
                          DIBS__JOB_STEPS_MAX);
        return;
    }
    job->steps = dibs__arena_take(rd->ctx.arena, count, sizeof(*job->steps));
    if (!job->steps)
        return;
    for (const dibsx_yaml_node *at = source->child; at; at = at->next) {
        const dibsx_yaml_node *map;
        const char *name;

        if (!find_parts(rd, at, &name, &map) || !check_name(rd, job, at, name))
            continue;
        maps[job->step_count] = map;
        read_step(rd, job, &job->steps[job->step_count], name, at, map,
                  besides);
        if (job->steps[job->step_count].name)
            job->step_count++;
    }
    if (rd->mistakes == mistakes || job->step_count == count)
        check_needs(rd, job, maps);
}

void dibs__steps_make_main(dibs__job_reader *rd, dibs__job *job,
                           dibs__step_kind kind)
{
    dibs__step *step = dibs__arena_take(rd->ctx.arena, 1, sizeof(*step));

    if (!step)
        return;
    step->name = "main";
    step->kind = kind;
    step->work = job->work;
    dibs__keys_reset(&dibs__step_keys, &rd->ctx, step);
    job->steps = step;
    job->step_count = 1;
}
