/* node_marks.c - see node_marks.h. */
/* SPDX-License-Identifier: MIT */
#include "node/node_marks.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

/* The marks that one look asks for. */
typedef struct some_marks {
    dibs__node_mark *at[DIBS_GET_MANY_MAX];
    const char *jobs[DIBS_GET_MANY_MAX];
    size_t count;
} some_marks;

static dibs__node_mark *mark_of(dibsx_table_node *node)
{
    return (dibs__node_mark *)(void *)node;
}

static void drop_mark(dibs__node_marks *marks, dibs__node_mark *mark)
{
    dibsx_table_remove(&marks->table, &mark->node);
    dibsx_free(mark);
}

void dibs__marks_free(dibs__node_marks *marks)
{
    dibsx_table_node *node;
    size_t at = 0;

    while ((node = dibsx_table_from(&marks->table, &at)) != NULL)
        drop_mark(marks, mark_of(node));
    dibsx_table_fini(&marks->table);
}

dibs__node_mark *dibs__marks_find(dibs__node_marks *marks, const char *job)
{
    const uint32_t hash = dibsx_hash_text(job);
    dibsx_table_node *node = dibsx_table_find(&marks->table, hash);
    dibs__node_mark *mark;

    while (node && strcmp(mark_of(node)->job, job) != 0)
        node = node->next;
    if (node)
        return mark_of(node);
    mark = dibsx_zalloc(sizeof(*mark));
    if (!mark)
        return NULL;
    (void)snprintf(mark->job, sizeof(mark->job), "%s", job);
    dibsx_table_add(&marks->table, &mark->node, hash);
    return mark;
}

/* Whole chains, as many as there is room for; of one that is too long, a part. */
static void
take_some(const dibs__node_marks *marks, size_t *at, some_marks *some)
{
    dibsx_table_node *node;
    size_t len;

    while ((node = dibsx_table_from(&marks->table, at)) != NULL) {
        len = 0;
        for (const dibsx_table_node *n = node; n; n = n->next)
            len++;
        if (some->count > 0 && some->count + len > DIBS_GET_MANY_MAX)
            return;
        for (; node && some->count < DIBS_GET_MANY_MAX; node = node->next) {
            some->at[some->count] = mark_of(node);
            some->jobs[some->count++] = mark_of(node)->job;
        }
        ++*at;
    }
}

/* Marks whose states cannot be read stay. */
static dibs_status drop_some(dibs__node_marks *marks, const some_marks *some,
                             const dibs__board *board, dibs_error *err)
{
    dibs__job_state *states = dibsx_zalloc_n(some->count, sizeof(*states));
    dibs_status rc;

    if (!states)
        return dibsx_nomem(err, "the states of jobs");
    rc = dibs__board_states(board, some->jobs, some->count, states, err);
    for (size_t i = 0; i < some->count && rc == DIBS_OK; i++)
        if (states[i].version == 0 || !states[i].set[0])
            drop_mark(marks, some->at[i]);
    dibsx_free(states);
    return dibsx_is_away(rc) || rc == DIBS_NOMEM ? rc : DIBS_OK;
}

dibs_status dibs__marks_look(dibs__node_marks *marks, const dibs__board *board,
                             dibs_error *err)
{
    some_marks some = {.count = 0};
    size_t at;
    dibs_status rc = DIBS_OK;

    if (!marks->looks) {
        if (marks->table.count < DIBS__MARKS_FEW ||
            marks->table.count < 2 * marks->seen)
            return DIBS_OK;
        marks->looks = true;
        marks->at = 0;
    }
    at = marks->at;
    take_some(marks, &at, &some);
    if (some.count > 0)
        rc = drop_some(marks, &some, board, err);
    if (rc != DIBS_OK)
        return rc;
    marks->at = at;
    if (some.count == 0) {
        marks->looks = false;
        marks->seen = marks->table.count;
    }
    return DIBS_OK;
}
