/* node_sweeps.c - which entries of a look a node sweeps, page by page, under the locks of
 * sweeps. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "node/node_view.h"

#include <stdio.h>
#include <string.h>

enum {
    SWEEP_TTL_MS = 30000,
    BEYOND_AGAIN_MS = 1000, /* between looks behind the first of `live` */
    NEXT_PAGES_MS = 200,    /* until those are swept that are left for now */
    PAGES_MAX = 16,         /* behind the first ones, in one look */
    PART_MS = 500           /* of one sweep in one look */
};

typedef struct sweep {
    size_t look;
    dibs__sweep_kind kind;
    const char *name;
    dibs__sweep_fn *fn;
} sweep;

static const sweep sweeps[] = {
    {DIBS__LOOK_RETRY, DIBS__SWEEP_RETRY, "retry-scheduler", dibs__sweep_retry},
    {DIBS__LOOK_DEADLINE, DIBS__SWEEP_TIMEOUT, "timeout-scheduler",
     dibs__sweep_deadline},
    {DIBS__LOOK_LIVE, DIBS__SWEEP_TIMEOUT, "timeout-scheduler",
     dibs__sweep_live},
    {DIBS__LOOK_RESUME, DIBS__SWEEP_RESUME, "resume-scheduler",
     dibs__sweep_resume},
    {DIBS__LOOK_TRIM, DIBS__SWEEP_CLEANUP, "cleanup-scheduler",
     dibs__sweep_trim},
};

bool dibs__sweep_is_name(const char *name)
{
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++)
        if (strcmp(name, sweeps[i].name) == 0)
            return true;
    return false;
}

/* The sweep of one index in one look. */
typedef struct pass {
    const sweep *s;
    dibs_lock *lock;  /* taken when there is something to do */
    bool over;        /* another node sweeps, or the store is away */
    dibsx_nsec until; /* its time in this look, */
    bool cut;         /* which was too short */
    size_t done, refused;
    char first[DIBS__PLACE_SIZE]; /* the first entry that was done */
} pass;

/* A node looks after its own commands by itself, and leaves those of a node alone that was
 * seen alive; and an entry that it could not deal with, for a while: it looks again then. */
static bool
is_for(dibs__node *node, const dibs__node_entry *one, const sweep *s)
{
    int64_t left_ms;

    if (one->look != s->look)
        return false;
    left_ms = dibs__node_left_ms(node, one);
    if (left_ms > 0) {
        dibs__node_hurry(node, left_ms);
        return false;
    }
    return s->look != DIBS__LOOK_LIVE || ((uint64_t)one->at != node->fence &&
                                          !dibs__node_is_known(node, one));
}

static bool has_any(dibs__node *node, const dibs__view *v, const sweep *s)
{
    for (size_t i = 0; i < v->count; i++)
        if (is_for(node, &v->at[i], s))
            return true;
    return false;
}

static dibs_status
make_lock(dibs_client *cl, const char *prefix, const char *sweep_name,
          int64_t ttl_ms, dibs_lock **out, dibs_error *err)
{
    char name[DIBS_NAME_MAX + 2]; /* too long a name is refused, not cut */

    (void)snprintf(name, sizeof(name), "%s%s", prefix, sweep_name);
    return dibs_lock_new(cl, name,
                         DIBS_LOCK_OPTS(.ttl_ms = ttl_ms < SWEEP_TTL_MS
                                                      ? ttl_ms
                                                      : SWEEP_TTL_MS),
                         out, err);
}

dibs_status
dibs__sweep_check_prefix(dibs_client *cl, const char *prefix, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]) && rc == DIBS_OK;
         i++) {
        dibs_lock *lock = NULL;
        dibs_error why;

        rc = make_lock(cl, prefix, sweeps[i].name, SWEEP_TTL_MS, &lock, &why);
        if (rc != DIBS_OK)
            rc =
                dibsx_fail_at(err, rc, why.origin,
                              "the locks of sweeps cannot have this prefix: %s",
                              why.message);
        dibs_lock_free(lock);
    }
    return rc;
}

/* The lock saves work; no rule rests on it. Nobody sweeps after the death of a node that
 * did until its lock ends, which is no later than its lease. */
static void take_lock(dibs__node *node, pass *p)
{
    dibs_error err = {0};
    dibs_status rc = make_lock(node->board->cl, node->opts->sweep_prefix,
                               p->s->name, node->opts->ttl_ms, &p->lock, &err);

    if (rc == DIBS_OK)
        rc = dibs_lock_try(p->lock, &err);
    if (rc != DIBS_OK && rc != DIBS_BUSY)
        dibs__node_complain(node, p->s->name, &err);
    p->over = rc != DIBS_OK;
    if (p->over)
        dibs__node_hurry(node, DIBS__AGAIN_MS);
}

/* An entry that is only busy is tried again soon; one that cannot be read, say, later. */
static int64_t leave_ms(dibs_status rc, bool is_first)
{
    if (rc != DIBS_BUSY && rc != DIBS_FULL)
        return DIBS__STUCK_AGAIN_MS;
    return is_first ? DIBS__AGAIN_MS : DIBS__LOOK_AGAIN_MS;
}

static void sweep_entry(dibs__node *node, const dibs__node_entry *entry,
                        bool is_first, pass *p)
{
    dibs_error err = {0};
    dibs_status rc = p->s->fn(node, entry, &err);

    (void)dibs__node_valid_until(node);
    /* A step of a node that lives stays where it is. */
    if (rc == DIBS_OK && p->s->look == DIBS__LOOK_LIVE &&
        dibs__node_is_known(node, entry))
        return;
    if (rc == DIBS_OK) {
        if (p->done++ == 0)
            (void)snprintf(p->first, sizeof(p->first), "%s", entry->member);
        return;
    }
    dibs__node_complain(node, entry->member, &err);
    p->over = dibsx_is_away(rc);
    if (p->over) {
        dibs__node_hurry(node, DIBS__AGAIN_MS);
        return;
    }
    p->refused++;
    dibs__node_leave(node, entry, leave_ms(rc, is_first));
    dibs__node_hurry(node, leave_ms(rc, is_first));
}

/* A look that was too short goes on with the entry that it ended at: those before it may
 * take all the time of the next one too. */
static void
sweep_page(dibs__node *node, const dibs__view *v, bool is_first, pass *p)
{
    size_t *from = &node->sweep_from[p->s->look];
    size_t start = is_first && *from < v->count ? *from : 0;

    if (!p->lock && has_any(node, v, p->s))
        take_lock(node, p);
    for (size_t k = 0; k < v->count && p->lock && !p->over && !p->cut; k++) {
        size_t i = (start + k) % v->count;

        if (!is_for(node, &v->at[i], p->s))
            continue;
        p->cut = dibsx_now() >= p->until;
        if (!p->cut)
            sweep_entry(node, &v->at[i], is_first, p);
        else if (is_first)
            *from = i;
    }
    if (is_first && !p->cut)
        *from = 0;
}

/* ---- entries behind the first ones */

/* `live` has no numbers that come due, and most of it is of nodes that live: it is not
 * looked through with every look. */
static bool may_go_beyond(dibs__node *node, const pass *p, dibsx_nsec now)
{
    if (p->s->look != DIBS__LOOK_LIVE)
        return true;
    if (now < node->beyond_at) {
        dibs__node_hurry(node, dibsx_wait_ms(node->beyond_at, now));
        return false;
    }
    node->beyond_at = dibsx_after_ms(now, BEYOND_AGAIN_MS);
    return true;
}

static bool has_more(const dibs_index_look *look, int64_t now_us)
{
    return look->next >= 0 &&
           (look->up_to == DIBS_INDEX_AT_MAX || look->next <= now_us);
}

/* The next look after a walk. One that began in the middle has not seen the entries that
 * moved to the front meanwhile, and the view shows no number behind those that are due. */
static void plan_after_walk(dibs__node *node, const dibs__view *v,
                            const dibs_index_look *look, bool from_middle)
{
    if (has_more(look, v->now_us)) {
        dibs__node_hurry(node, NEXT_PAGES_MS);
        return;
    }
    if (from_middle)
        dibs__node_hurry(node, DIBS__AGAIN_MS);
    if (look->up_to != DIBS_INDEX_AT_MAX)
        dibs__node_hurry_to(node, look->next, v->now_us);
}

/* Entries that this node cannot deal with stay first in the index, any number of them:
 * those behind them are swept too. A look that has met enough of them ends, and the next
 * one goes on from there. */
static void sweep_beyond(dibs__node *node, const dibs__view *v, pass *p)
{
    dibs_index_look look = v->looks[p->s->look];
    uint32_t *skip = &node->sweep_skip[p->s->look];
    bool more = has_more(&look, v->now_us), from_middle = *skip > look.limit;
    dibs_error err = {0};

    for (int i = 0; i < PAGES_MAX && more && !p->over && !p->cut &&
                    p->done == 0 && p->refused < DIBS__STUCK_MAX;
         i++) {
        dibs__view *page;

        if (*skip < look.limit)
            *skip = look.limit;
        look.skip = *skip;
        page = dibs__view_page(node, &look, p->s->look, &err);
        if (!page) {
            dibs__node_complain(node, "the board", &err);
            dibs__node_hurry(node, DIBS__AGAIN_MS);
            return;
        }
        sweep_page(node, page, false, p);
        dibs__view_free(page);
        more = has_more(&look, v->now_us);
        if (!p->cut)
            *skip = more ? *skip + look.limit : 0;
    }
    plan_after_walk(node, v, &look, from_middle);
}

/* The node looks again at once, but later if the sweep did not get rid of the first entry.
 * Entries that are left are swept soon, whatever time is between two sweeps. */
static void
look_after_sweep(dibs__node *node, const dibs__view *v, const pass *p)
{
    char *last = node->swept[p->s->look];
    bool same = strcmp(last, p->first) == 0;

    if (p->cut ||
        (p->done > 0 && !same && has_more(&v->looks[p->s->look], v->now_us)))
        node->sweep_soon[p->s->kind] = true;
    if (p->done == 0)
        return;
    if (p->s->look != DIBS__LOOK_LIVE)
        node->idle = false;
    dibs__node_hurry(node, same ? DIBS__AGAIN_MS : 0);
    (void)snprintf(last, DIBS__PLACE_SIZE, "%s", p->first);
}

/* A history that is swept in several looks: its entry may have moved since the first. */
static void go_on_trimming(dibs__node *node, pass *p)
{
    dibs__node_entry entry = {.look = DIBS__LOOK_TRIM};

    (void)snprintf(entry.member, sizeof(entry.member), "%s",
                   dibs__node_trims(node));
    take_lock(node, p);
    if (!p->over)
        sweep_entry(node, &entry, true, p);
}

static void
do_sweep(dibs__node *node, const dibs__view *v, const sweep *s, dibsx_nsec now)
{
    pass p = {.s = s, .until = dibsx_after_ms(dibsx_now(), PART_MS)};

    if (s->look == DIBS__LOOK_TRIM && dibs__node_trims(node))
        go_on_trimming(node, &p);
    else
        sweep_page(node, v, true, &p);
    if (!has_more(&v->looks[s->look], v->now_us))
        node->sweep_skip[s->look] = 0;
    else if (p.done == 0 && !p.over && !p.cut && may_go_beyond(node, &p, now))
        sweep_beyond(node, v, &p);
    dibs_lock_free(p.lock);
    look_after_sweep(node, v, &p);
}

/* `live` has its own time for what is behind the first of it. */
static bool has_due_beyond(const dibs__view *v, const sweep *s)
{
    return s->look != DIBS__LOOK_LIVE &&
           has_more(&v->looks[s->look], v->now_us);
}

/* The end of a round. A sweep that has not done all of it goes on soon. */
static void plan_sweep(dibs__node *node, size_t kind, dibsx_nsec now)
{
    bool soon = node->sweep_soon[kind] ||
                (kind == DIBS__SWEEP_CLEANUP && dibs__node_trims(node));
    int64_t pause_ms = node->opts->sweep_ms[kind];

    if (soon && pause_ms > NEXT_PAGES_MS)
        pause_ms = NEXT_PAGES_MS;
    node->sweep_at[kind] = dibsx_after_ms(now, pause_ms);
    if (soon)
        dibs__node_hurry(node, NEXT_PAGES_MS);
}

void dibs__node_sweep(dibs__node *node, const dibs__view *v, dibsx_nsec now)
{
    memset(node->sweep_soon, 0, sizeof(node->sweep_soon));
    for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
        dibsx_nsec at = node->sweep_at[sweeps[i].kind];

        if (now >= at)
            do_sweep(node, v, &sweeps[i], now);
        else if (has_any(node, v, &sweeps[i]) || has_due_beyond(v, &sweeps[i]))
            dibs__node_hurry(node, dibsx_wait_ms(at, now));
    }
    for (size_t i = 0; i < DIBS__SWEEPS; i++)
        if (now >= node->sweep_at[i])
            plan_sweep(node, i, now);
    if (dibs__node_trims(node))
        dibs__node_hurry(node,
                         dibsx_wait_ms(node->sweep_at[DIBS__SWEEP_CLEANUP],
                                       now));
}
