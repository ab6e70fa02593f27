/* node_tick.c - the ticks of a node: jobs that are due, up to 64 of them in one request. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/board_many.h"
#include "jobs/follow.h"
#include "jobs/moment.h"
#include "node/node_view.h"
#include "node/node_zones.h"

#include <stdio.h>
#include <string.h>

/* Ticks that are ready are sent after so long, though others of their page are not. One
 * look goes through so many pages behind the first, and the next one goes on after a
 * pause. */
enum {
    TICKS_MAX = DIBS__VIEW_ENTRIES,
    READY_MS = 100,
    PAGES_MAX = 16,
    NEXT_PAGES_MS = 100
};

_Static_assert(TICKS_MAX <= DIBS_COMMITS_MAX &&
                   TICKS_MAX <= (int)DIBS_GET_MANY_MAX,
               "the ticks of a view fit into one request");

/* The step that this node may begin with, by the commit of the tick. */
static bool find_step(const dibs__node *node, const dibs__run *run, size_t *out)
{
    for (size_t i = 0; i < run->step_count; i++) {
        const dibs__run_step *step = &run->steps[i];

        if (step->state == DIBS__STATE_READY &&
            dibs__node_takes(node, step->label)) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* Rule 13. */
static void note_mark(dibs__node_mark *mark, const dibs__job_state *state)
{
    if (state->resets < mark->resets ||
        (state->resets == mark->resets && state->mark_s <= mark->mark_s))
        return;
    mark->resets = state->resets;
    mark->mark_s = state->mark_s;
    mark->local_s = state->mark_local_s;
}

/* ---- one tick */

typedef struct tick {
    const dibs__node_entry *entry;
    dibs__node_mark *mark; /* of its job; NULL: not looked for */
    dibs__stage st;
    bool sends;            /* there is something to be committed */
    dibs__node_task *task; /* that it is committed for; NULL: none */
    dibs_status rc;
    dibs_error err;
} tick;

/* A node with older zone data found this tick. True: it is not due by newer data. */
static bool refresh_next(dibs__stage *st, const dibs__ticker *tk)
{
    dibs__job_state *state = &st->state;

    if (state->paused || !dibs__tzdata_newer(tk->tzdata, state->tzdata))
        return false;
    dibs__tick_refresh(st->sc.job, state, tk);
    return state->due_us == 0 || state->due_us > st->sc.now_us;
}

/* A tick that makes a run is also its claim, if this node may execute it. */
static dibs_status write_tick(dibs__node *node, tick *t)
{
    dibs_status rc = DIBS_OK;
    size_t i;

    if (t->st.run.id[0] && find_step(node, &t->st.run, &i))
        (void)!dibs__node_prepare(node, &t->st, i, &t->task);
    if (!t->task) {
        dibs__scene_write(&t->st.sc);
        rc = dibs__board_check(&t->st.in, 1, &t->err);
    }
    t->sends = rc == DIBS_OK;
    return rc;
}

static dibs_status
take_tick(dibs__node *node, tick *t, const char *tzdata, const dibs__zone *zone)
{
    char hash[DIBS__JOB_HASH_SIZE];
    const dibs__node_mark *mark = t->mark;
    dibs__ticker tk = {.zone = zone, .tzdata = tzdata, .hash = hash};
    dibs_status rc = DIBS_OK;

    tk.jitter_us = dibs__job_jitter_us(t->st.sc.job, node->board->name);
    tk.seen_s = mark->mark_s;
    tk.seen_local_s = mark->local_s;
    tk.seen_resets = mark->resets;
    tk.ran_s = mark->ran_s;
    memcpy(hash, t->st.state.hash, sizeof(hash));
    note_mark(t->mark, &t->st.state);
    if (!refresh_next(&t->st, &tk))
        rc = dibs__tick_take(&t->st.sc, &tk, &t->err);
    return rc == DIBS_OK ? write_tick(node, t) : rc;
}

static const dibs__job *
find_own(const dibs__node *node, const dibs__job_state *state)
{
    return node->opts->calls ? NULL
                             : dibs__node_job(node, state->job, state->hash);
}

/* The definition is in a file of this node as a rule; the store is asked for others. */
static dibs_status
prepare_tick(dibs__node *node, tick *t, const char *tzdata, int64_t now_us)
{
    dibs__stage *st = &t->st;
    dibs__zone *zone = NULL;
    dibs_status rc = DIBS_OK;

    t->mark = dibs__marks_find(&node->marks, st->state.job);
    if (!t->mark)
        return dibsx_nomem(&t->err, "the mark of a job");
    rc = dibs__stage_due(node->board, st, find_own(node, &st->state), &t->err);
    st->sc.now_us = now_us;
    if (rc == DIBS_OK)
        rc = dibs__zone_open(st->sc.job->zone, &zone, &t->err);
    if (rc == DIBS_OK)
        rc = take_tick(node, t, tzdata, zone);
    dibs__zone_free(zone);
    return rc;
}

/* ---- several ticks */

typedef struct tick_list {
    tick *at;
    size_t count;
} tick_list;

/* The store is away: ticks from this one on are not asked for in this look. */
static void
give_up(tick_list *list, size_t from, dibs_status rc, const dibs_error *err)
{
    for (size_t i = from; i < list->count; i++)
        if (list->at[i].rc == DIBS_OK) {
            list->at[i].rc = rc;
            list->at[i].err = *err;
        }
}

/* One record that cannot be read is in the way of no other. */
static void read_one_by_one(dibs__node *node, tick_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        tick *t = &list->at[i];

        if (t->rc != DIBS_OK)
            continue;
        t->rc = dibs__board_state(node->board, t->entry->member, &t->st.state,
                                  &t->err);
        (void)dibs__node_valid_until(node);
        if (dibsx_is_away(t->rc))
            give_up(list, i, t->rc, &t->err);
    }
}

static void read_states(dibs__node *node, tick_list *list)
{
    const char *jobs[TICKS_MAX];
    dibs__job_state *states = dibsx_zalloc_n(list->count, sizeof(*states));
    dibs_error err = {0};
    dibs_status rc = DIBS_NOMEM;
    bool found;

    for (size_t i = 0; i < list->count; i++) {
        jobs[i] = list->at[i].entry->member;
        dibs__job_state_init(&list->at[i].st.state, jobs[i]);
    }
    if (states)
        rc = dibs__board_states(node->board, jobs, list->count, states, &err);
    (void)dibs__node_valid_until(node);
    if (dibsx_is_away(rc))
        give_up(list, 0, rc, &err);
    found = rc == DIBS_OK;
    for (size_t i = 0; i < list->count && found; i++) {
        list->at[i].st.state = states[i];
        found = states[i].version > 0;
    }
    dibsx_free(states);
    if (!found)
        read_one_by_one(node, list);
}

/* The definitions that are in no file of this node, in one request. It asks for the
 * others one by one, and their ticks say why. */
static void read_definitions(dibs__node *node, const tick_list *list)
{
    const char *jobs[TICKS_MAX], *hashes[TICKS_MAX];
    dibs_error err = {0};
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        const tick *t = &list->at[i];
        const dibs__job_state *state = &t->st.state;

        if (t->rc != DIBS_OK || find_own(node, state))
            continue;
        jobs[count] = state->job;
        hashes[count++] = state->hash;
    }
    (void)!dibs__board_jobs(node->board, jobs, hashes, count, &err);
    (void)dibs__node_valid_until(node);
}

/* Prepares ticks from `from` on, and says where it ended. */
static size_t prepare_ticks(dibs__node *node, tick_list *list, size_t from,
                            const dibs__view *v)
{
    char tzdata[DIBS__TZDATA_SIZE];
    dibsx_nsec now = dibsx_now(), until = dibsx_after_ms(now, READY_MS);
    size_t i = from;

    dibs__tzdata_version(tzdata);
    for (; i < list->count && (i == from || now < until); i++) {
        tick *t = &list->at[i];
        int64_t now_us = v->now_us + (now - v->taken_at) / 1000;

        if (t->rc != DIBS_OK)
            continue;
        t->rc = prepare_tick(node, t, tzdata, now_us);
        (void)dibs__node_valid_until(node);
        if (dibsx_is_away(t->rc))
            give_up(list, i, t->rc, &t->err);
        now = dibsx_now();
    }
    return i;
}

/* Sends what is to be committed. Answers of those that are not sent are not looked at. */
static void send_ticks(dibs__node *node, tick_list *list, dibs__answer *answers)
{
    dibs__intent ins[TICKS_MAX]; /* Borrowed from the ticks and the tasks. */
    dibs__answer got[TICKS_MAX] = {{.rc = DIBS_OK}};
    dibs_error err = {0};
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].sends)
            ins[count++] =
                list->at[i].task ? list->at[i].task->in : list->at[i].st.in;
    if (count > 0)
        (void)!dibs__board_commit_many(node->board, ins, count, got, &err);
    count = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i].sends) {
            list->at[i].err = err;
            answers[i] = got[count++];
        }
}

/* The mark was set back, and the tick ran before: the next try deals with it, so that it is
 * not asked for again and again. Another node that has just ticked moved the mark too. */
static void note_ran(const tick *t, const dibs__answer *answer)
{
    const dibs__intent *in = t->task ? &t->task->in : &t->st.in;
    char key[DIBS__PLACE_SIZE];

    (void)snprintf(key, sizeof(key), "run/%s", t->st.run.id);
    if (answer->rc != DIBS_STALE || answer->failed >= in->check_count ||
        strcmp(in->checks[answer->failed].key, key) != 0)
        return;
    t->mark->ran_s = t->st.run.tick_s;
}

/* Once: the same mark may be written again with another next time. */
static void tell_passed(dibs__node *node, const tick *t)
{
    dibs__node_mark *mark = t->mark;
    char when[DIBS__MOMENT_SIZE];

    if (!mark->ran_s || t->st.state.mark_s != mark->ran_s || t->st.run.id[0])
        return;
    dibs__moment_text(mark->ran_s, when);
    dibs__node_say(node, "%s: its time %sZ has run before, and is passed over",
                   mark->job, when);
    mark->ran_s = 0;
}

/* The run that was made needs no second look before it starts. */
static void hear_tick(dibs__node *node, tick *t, const dibs__answer *answer)
{
    t->rc = answer->rc;
    note_ran(t, answer);
    if (answer->rc == DIBS_OK) {
        note_mark(t->mark, &t->st.state);
        tell_passed(node, t);
    }
    if (t->task)
        dibs__node_answered(node, t->task, answer, &t->st.run, &t->err);
}

/* ---- pages */

/* All pages of one look. */
typedef struct pass {
    size_t done;    /* ticks that were committed: their entries have moved */
    size_t refused; /* entries that were tried, and stay where they are */
    bool over;      /* the store does not answer, or there is no memory */
} pass;

/* The next number of a job that was ticked, by this node or by another, is not known yet.
 * A tick that is refused again and again is tried once a second. */
static void plan_after(dibs__node *node, const tick *t)
{
    dibs__node_mark *mark = t->mark;
    bool again = t->rc == DIBS_STALE && mark && mark->stale++ > 0;

    if (t->rc == DIBS_OK && mark)
        mark->stale = 0;
    if ((t->rc == DIBS_OK || t->rc == DIBS_STALE) && !again) {
        dibs__node_hurry(node, 0);
        return;
    }
    if (!dibsx_is_away(t->rc))
        dibs__node_leave(node, t->entry, DIBS__AGAIN_MS);
    dibs__node_hurry(node, DIBS__AGAIN_MS);
}

/* A job that cannot be ticked here, because its zone is not installed, say, is left to
 * others for a while. */
static void end_tick(dibs__node *node, const tick *t, pass *p)
{
    bool answered = t->rc == DIBS_OK || t->rc == DIBS_STALE ||
                    t->rc == DIBS_EARLY || t->rc == DIBS_LATE;

    p->done += t->rc == DIBS_OK;
    p->refused += t->rc != DIBS_OK;
    p->over = p->over || dibsx_is_away(t->rc);
    if (!answered)
        dibs__node_complain(node, t->entry->member, &t->err);
    if (!answered && !dibsx_is_away(t->rc)) {
        dibs__node_leave(node, t->entry, DIBS__STUCK_AGAIN_MS);
        return;
    }
    node->idle = false;
    plan_after(node, t);
}

static void
do_list(dibs__node *node, const dibs__view *v, tick_list *list, pass *p)
{
    dibs__answer answers[TICKS_MAX];
    size_t end = 0;

    if (list->count == 0)
        return;
    read_states(node, list);
    read_definitions(node, list);
    while (end < list->count) {
        tick_list some = {.at = list->at + end};

        some.count = prepare_ticks(node, list, end, v) - end;
        end += some.count;
        send_ticks(node, &some, answers);
        (void)dibs__node_valid_until(node);
        for (size_t i = 0; i < some.count; i++) {
            tick *t = &some.at[i];

            if (t->sends)
                hear_tick(node, t, &answers[i]);
            end_tick(node, t, p);
            dibs__stage_fini(&t->st);
        }
    }
    list->count = 0;
}

static void add_tick(tick_list *list, const dibs__node_entry *entry)
{
    tick *t = &list->at[list->count++];

    *t = (tick){.entry = entry};
    dibs__stage_init(&t->st);
}

/* Ticks for which this node is the first by rank. Entries that are due come first. The
 * ranks of those that are left, or listed here, are 0. */
static void list_own(dibs__node *node, const dibs__view *v, tick_list *list,
                     size_t ranks[DIBS__VIEW_ENTRIES])
{
    const char *others[DIBS__NODE_OTHERS_MAX];

    for (size_t i = 0; i < node->other_count; i++)
        others[i] = node->others[i];
    for (size_t i = 0; i < v->count && v->at[i].look == DIBS__LOOK_DUE; i++) {
        const dibs__node_entry *entry = &v->at[i];

        ranks[i] = 0;
        if (dibs__node_left_ms(node, entry) > 0)
            continue;
        ranks[i] =
            dibs__node_rank(entry->member, node->id, others, node->other_count);
        if (ranks[i] == 0)
            add_tick(list, entry);
    }
}

/* The others wait for their turn, and until this node's own are done. */
static void do_ticks(dibs__node *node, const dibs__view *v, pass *p)
{
    tick_list list = {.at = dibsx_zalloc_n(TICKS_MAX, sizeof(*list.at))};
    size_t ranks[DIBS__VIEW_ENTRIES];

    if (!list.at) {
        dibs__node_hurry(node, DIBS__AGAIN_MS);
        p->over = true;
        return;
    }
    list_own(node, v, &list, ranks);
    do_list(node, v, &list, p);
    for (size_t i = 0; i < v->count && v->at[i].look == DIBS__LOOK_DUE; i++) {
        const dibs__node_entry *entry = &v->at[i];
        int64_t wait_us;

        if (ranks[i] == 0 || p->over)
            continue;
        wait_us = dibs__wake_turn_us(ranks[i], entry->at, v->now_us);
        node->idle = false;
        if (wait_us > 0 || p->done > 0)
            dibs__node_hurry(node, (wait_us + 999) / 1000);
        else
            add_tick(&list, entry);
    }
    do_list(node, v, &list, p);
    dibsx_free(list.at);
}

static bool has_more(const dibs_index_look *look, int64_t now_us)
{
    return look->next >= 0 && look->next <= now_us;
}

/* Entries that are another node's turn, or that this node cannot tick, stay first in the
 * index, any number of them: those that are due behind them are looked at too. A look that
 * has met enough of them ends, and the next one goes on from there. */
static void
tick_beyond(dibs__node *node, dibs_index_look *look, int64_t now_us, pass *p)
{
    uint32_t *skip = &node->tick_skip;
    dibs_error err = {0};

    for (int i = 0; i < PAGES_MAX && has_more(look, now_us) && !p->over &&
                    p->done < TICKS_MAX && p->refused < DIBS__STUCK_MAX;
         i++) {
        size_t done = p->done;
        dibs__view *page;

        look->skip = *skip;
        page = dibs__view_page(node, look, DIBS__LOOK_DUE, &err);
        if (page) {
            do_ticks(node, page, p);
            *skip += look->limit - (uint32_t)(p->done - done);
        } else {
            dibs__node_complain(node, "the board", &err);
            dibs__node_hurry(node, DIBS__AGAIN_MS);
            p->over = true;
        }
        dibs__view_free(page);
    }
}

/* The next look. Ticks that were done have called for one at once, from the front. A walk
 * that began in the middle has not seen entries that moved to the front meanwhile. */
static void plan_ticks(dibs__node *node, const dibs_index_look *look,
                       int64_t now_us, bool from_middle, const pass *p)
{
    bool more = has_more(look, now_us);

    if (!more || p->done > 0)
        node->tick_skip = 0;
    if (!more) {
        if (from_middle)
            dibs__node_hurry(node, DIBS__AGAIN_MS);
        dibs__node_hurry_to(node, look->next, now_us);
    } else if (!p->over) {
        node->idle = false;
        dibs__node_hurry(node, p->refused < DIBS__STUCK_MAX ? NEXT_PAGES_MS
                                                            : DIBS__AGAIN_MS);
    }
}

void dibs__node_tick(dibs__node *node, const dibs__view *v)
{
    dibs_index_look look = v->looks[DIBS__LOOK_DUE];
    bool from_middle = node->tick_skip > look.limit;
    pass p = {.done = 0};
    dibs_error err = {0};

    if (dibs__marks_look(&node->marks, node->board, &err) != DIBS_OK)
        dibs__node_complain(node, "marks of jobs", &err);
    (void)dibs__node_valid_until(node);
    do_ticks(node, v, &p);
    if (!from_middle)
        node->tick_skip = look.limit;
    node->tick_skip -= (uint32_t)p.done;
    tick_beyond(node, &look, v->now_us, &p);
    plan_ticks(node, &look, v->now_us, from_middle, &p);
}
