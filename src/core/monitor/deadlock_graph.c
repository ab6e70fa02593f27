/* deadlock_graph.c - deadlocks in the wait-for graph; see deadlock_graph.h.
 *
 * Everything hangs off one dibs__wait_graph: parties in one array, a name's holders
 * first and then its waiters; agents numbered in the order of their texts, so
 * that the same graph always gives the same answer. */
/* SPDX-License-Identifier: MIT */
#include "core/monitor/deadlock_graph.h"

#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

/* Names with their holders and waiters that are looked at together. */
enum { PARTIES_MAX = 1 << 18 };

/* Parties that the search for cycles looks at before it stops. */
enum { EFFORT_MAX = 1 << 23 };

/* "No such party or agent." */
#define NONE UINT32_MAX

typedef struct party {
    char *agent_text;
    char *label;
    char owner[DIBS_OWNER_SIZE];
    char within[DIBS_OWNER_SIZE];
    dibs__mode mode;
    uint32_t permits;
    uint64_t fence;
    int64_t age_ms;
    uint32_t agent;
    uint32_t name;
    uint32_t next; /* of the same agent: its next hold, or its next wait */
    bool holds;
    bool
        all_in_way; /* a waiter: it or one before it needs every holder to go */
} party;

typedef struct name {
    char *text;
    uint32_t capacity;
    uint32_t first; /* its holders */
    uint32_t holders;
    uint32_t waiters;
    uint32_t served; /* waiters from the head that can get it yet */
    uint32_t
        stuck; /* holders that are; of them exclusive ones; their permits */
    uint32_t stuck_exclusive;
    uint64_t stuck_permits;
    uint32_t seen; /* by which search: for every holder, for exclusive ones */
    uint32_t seen_exclusive;
} name;

typedef struct agent {
    uint32_t holds; /* the first of its parties that hold, and that wait */
    uint32_t waits;
    bool stuck;
    bool shown;        /* is in a cycle that was shown */
    uint32_t seen;     /* by which search, */
    uint32_t came_by;  /* ... through which wait of another, */
    uint32_t found_at; /* ... at which of its holds */
} agent;

struct dibs__wait_graph {
    party *parties;
    uint32_t party_count;
    uint32_t party_room;
    name *names;
    uint32_t name_count;
    uint32_t name_room;
    agent *agents;
    uint32_t agent_count;
    uint32_t *queue;       /* of agents: those to be looked at */
    uint32_t *by_owner;    /* parties, by owner and role */
    dibs_wait_link *links; /* of one cycle: room for every agent */
    uint32_t search;
    uint32_t effort;
};

dibs__wait_graph *dibs__wait_graph_new(void)
{
    return dibsx_zalloc(sizeof(dibs__wait_graph));
}

void dibs__wait_graph_free(dibs__wait_graph *wt)
{
    if (!wt)
        return;
    for (uint32_t i = 0; i < wt->party_count; i++) {
        dibsx_free(wt->parties[i].agent_text);
        dibsx_free(wt->parties[i].label);
    }
    for (uint32_t i = 0; i < wt->name_count; i++)
        dibsx_free(wt->names[i].text);
    dibsx_free(wt->links);
    dibsx_free(wt->by_owner);
    dibsx_free(wt->queue);
    dibsx_free(wt->agents);
    dibsx_free(wt->names);
    dibsx_free(wt->parties);
    dibsx_free(wt);
}

/* Room for `more` items of a size; the new storage, or NULL. */
static void *
have_room(void *items, uint32_t count, uint32_t *room, size_t more, size_t size)
{
    size_t wanted = count + more;
    void *grown;

    if (items && wanted <= *room)
        return items;
    if (wanted > PARTIES_MAX)
        return NULL;
    if (wanted < 2 * (size_t)*room)
        wanted = 2 * (size_t)*room;
    grown = dibsx_realloc_n(items, wanted + 1, size);
    if (grown)
        *room = (uint32_t)wanted;
    return grown;
}

static int by_owner_and_role(const char *owner, bool holds, const party *pt)
{
    int order = strcmp(owner, pt->owner);

    return order ? order : (int)holds - (int)pt->holds;
}

static bool
was_there(const dibs__wait_graph *before, const char *owner, bool holds)
{
    uint32_t low = 0, high = before->party_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const party *pt = &before->parties[before->by_owner[middle]];
        int order = by_owner_and_role(owner, holds, pt);

        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

/* Adds a party; there is room for it. False when memory is short. */
static bool
add_party(dibs__wait_graph *wt, const dibs__wait_party *from, bool holds)
{
    party *pt = &wt->parties[wt->party_count];

    *pt = (party){.agent_text = dibsx_strdup(from->agent),
                  .label = dibsx_strdup(from->label),
                  .mode = from->mode,
                  .permits = from->permits,
                  .fence = from->fence,
                  .age_ms = from->age_ms,
                  .name = wt->name_count - 1,
                  .holds = holds};
    memcpy(pt->owner, from->owner, strnlen(from->owner, DIBS_OWNER_SIZE - 1));
    if (from->within)
        memcpy(pt->within, from->within,
               strnlen(from->within, DIBS_OWNER_SIZE - 1));
    wt->party_count++;
    return pt->agent_text && pt->label;
}

static bool
add_parties(dibs__wait_graph *wt, const dibs__wait_party *list, size_t count,
            bool holds, const dibs__wait_graph *before)
{
    name *nm = &wt->names[wt->name_count - 1];

    for (size_t i = 0; i < count; i++) {
        if (before && !was_there(before, list[i].owner, holds))
            continue;
        if (!add_party(wt, &list[i], holds))
            return false;
        if (holds)
            nm->holders++;
        else
            nm->waiters++;
    }
    return true;
}

bool dibs__wait_graph_add(dibs__wait_graph *wt, const dibs__wait_name *from,
                          const dibs__wait_graph *before)
{
    size_t more = from->holder_count + from->waiter_count;
    party *parties = have_room(wt->parties, wt->party_count, &wt->party_room,
                               more, sizeof(*parties));
    name *names;

    if (!parties)
        return false;
    wt->parties = parties;
    names =
        have_room(wt->names, wt->name_count, &wt->name_room, 1, sizeof(*names));
    if (!names)
        return false;
    wt->names = names;
    names[wt->name_count] = (name){.text = dibsx_strdup(from->name),
                                   .capacity = from->capacity,
                                   .first = wt->party_count};
    wt->name_count++;
    return names[wt->name_count - 1].text &&
           add_parties(wt, from->holders, from->holder_count, true, before) &&
           add_parties(wt, from->waiters, from->waiter_count, false, before);
}

static int by_agent(const void *one, const void *other)
{
    const party *a = *(const party *const *)one;
    const party *b = *(const party *const *)other;
    int order = strcmp(a->agent_text, b->agent_text);

    if (order == 0)
        order = a < b ? -1 : 1;
    return order;
}

static int by_owner(const void *one, const void *other)
{
    const party *a = *(const party *const *)one;
    const party *b = *(const party *const *)other;

    return by_owner_and_role(a->owner, a->holds, b);
}

/* Numbers the agents in the order of their texts; `sorted` has all parties. An
 * agent's chains of parties are in the order in which these were added. */
static void number_agents(dibs__wait_graph *wt, party *const *sorted)
{
    for (uint32_t i = wt->party_count; i-- > 0;) {
        bool last = i + 1 == wt->party_count ||
                    strcmp(sorted[i]->agent_text, sorted[i + 1]->agent_text);
        agent *ag;
        uint32_t *chain;

        if (last) {
            ag = &wt->agents[wt->agent_count++];
            *ag = (agent){.holds = NONE, .waits = NONE};
        }
        ag = &wt->agents[wt->agent_count - 1];
        chain = sorted[i]->holds ? &ag->holds : &ag->waits;
        sorted[i]->agent = wt->agent_count - 1;
        sorted[i]->next = *chain;
        *chain = (uint32_t)(sorted[i] - wt->parties);
    }
}

/* The holder whose owner begins so, or NULL. Holders of names for which nobody
 * waits are not in the graph. */
static const party *find_holder(const dibs__wait_graph *wt, const char *begins)
{
    size_t len = strlen(begins);
    uint32_t low = 0, high = wt->party_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (strcmp(wt->parties[wt->by_owner[middle]].owner, begins) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < wt->party_count; low++) {
        const party *pt = &wt->parties[wt->by_owner[low]];

        if (strncmp(pt->owner, begins, len) != 0)
            return NULL;
        if (pt->holds)
            return pt;
    }
    return NULL;
}

/* Makes each wait within a lease one of the lease's holder. Without that holder it
 * stays one of the process itself, which does no harm. False when memory is
 * short. */
static bool find_outer_agents(dibs__wait_graph *wt)
{
    for (uint32_t i = 0; i < wt->party_count; i++) {
        party *pt = &wt->parties[i];
        const party *outer = pt->within[0] ? find_holder(wt, pt->within) : NULL;

        if (!outer)
            continue;
        dibsx_free(pt->agent_text);
        dibsx_free(pt->label);
        pt->agent_text = dibsx_strdup(outer->agent_text);
        pt->label = dibsx_strdup(outer->label);
        if (!pt->agent_text || !pt->label)
            return false;
    }
    return true;
}

static bool order_parties(dibs__wait_graph *wt)
{
    size_t count = wt->party_count;
    party **sorted = dibsx_zalloc_n(count + 1, sizeof(party *));
    bool found;

    wt->agents = dibsx_zalloc_n(count + 1, sizeof(agent));
    wt->queue = dibsx_zalloc_n(count + 1, sizeof(uint32_t));
    wt->by_owner = dibsx_zalloc_n(count + 1, sizeof(uint32_t));
    wt->links = dibsx_zalloc_n(count + 1, sizeof(dibs_wait_link));
    if (!sorted || !wt->agents || !wt->queue || !wt->by_owner || !wt->links) {
        dibsx_free(sorted);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = &wt->parties[i];
    qsort(sorted, count, sizeof(party *), by_owner);
    for (size_t i = 0; i < count; i++)
        wt->by_owner[i] = (uint32_t)(sorted[i] - wt->parties);
    found = find_outer_agents(wt);
    if (found) {
        qsort(sorted, count, sizeof(party *), by_agent);
        number_agents(wt, sorted);
    }
    dibsx_free(sorted);
    return found;
}

/* Whether a waiter gets the name once all holders that can go have gone. */
static bool can_get(const name *nm, const party *pt)
{
    switch (pt->mode) {
    case DIBS__EXCLUSIVE:
        return nm->stuck == 0;
    case DIBS__SHARED:
        return nm->stuck_exclusive == 0;
    case DIBS__PERMITS:
        break;
    }
    return nm->stuck_permits + pt->permits <= nm->capacity;
}

/* Serves the queue of a name as far as possible. Agents that can go on join the
 * work queue, so that their holds are removed from the counts. */
static void serve_queue(dibs__wait_graph *wt, name *nm, uint32_t *to_do)
{
    const party *waiters = &wt->parties[nm->first + nm->holders];

    while (nm->served < nm->waiters && can_get(nm, &waiters[nm->served])) {
        agent *ag = &wt->agents[waiters[nm->served].agent];

        nm->served++;
        if (!ag->stuck)
            continue;
        ag->stuck = false;
        wt->queue[(*to_do)++] = (uint32_t)(ag - wt->agents);
    }
}

static void count_holder(name *nm, const party *pt, bool in)
{
    uint32_t one = in ? 1 : (uint32_t)-1;

    nm->stuck += one;
    if (pt->mode == DIBS__EXCLUSIVE)
        nm->stuck_exclusive += one;
    if (pt->mode == DIBS__PERMITS)
        nm->stuck_permits += (uint64_t)(in ? 1 : -1) * pt->permits;
}

/* Marks every waiter as stuck. The search clears the mark of agents that can go
 * on. */
static void assume_the_worst(dibs__wait_graph *wt)
{
    for (uint32_t i = 0; i < wt->agent_count; i++)
        wt->agents[i].stuck = wt->agents[i].waits != NONE;
    for (uint32_t i = 0; i < wt->party_count; i++) {
        const party *pt = &wt->parties[i];

        if (pt->holds && wt->agents[pt->agent].stuck)
            count_holder(&wt->names[pt->name], pt, true);
    }
}

/* Marks the remaining waiters that every holder blocks, directly or through a
 * waiter ahead. */
static void mark_in_way(dibs__wait_graph *wt, const name *nm)
{
    party *waiters = &wt->parties[nm->first + nm->holders];
    bool all = false;

    for (uint32_t i = nm->served; i < nm->waiters; i++) {
        all = all || waiters[i].mode != DIBS__SHARED;
        waiters[i].all_in_way = all;
    }
}

bool dibs__wait_graph_solve(dibs__wait_graph *wt)
{
    uint32_t to_do = 0;

    if (!order_parties(wt))
        return false;
    assume_the_worst(wt);
    for (uint32_t i = 0; i < wt->name_count; i++)
        serve_queue(wt, &wt->names[i], &to_do);
    for (uint32_t done = 0; done < to_do; done++) {
        const agent *ag = &wt->agents[wt->queue[done]];

        for (uint32_t i = ag->holds; i != NONE; i = wt->parties[i].next) {
            name *nm = &wt->names[wt->parties[i].name];

            count_holder(nm, &wt->parties[i], false);
            serve_queue(wt, nm, &to_do);
        }
    }
    for (uint32_t i = 0; i < wt->name_count; i++)
        mark_in_way(wt, &wt->names[i]);
    return true;
}

/* Whether this search has yet to look at these holders of the name. */
static bool first_look(const dibs__wait_graph *wt, name *nm, bool all)
{
    if (nm->seen == wt->search)
        return false;
    if (all) {
        nm->seen = wt->search;
        return true;
    }
    if (nm->seen_exclusive == wt->search)
        return false;
    nm->seen_exclusive = wt->search;
    return true;
}

/* Finds the stuck holders in the way of one waiter. True when `target` is among
 * them. */
static bool look_behind(dibs__wait_graph *wt, uint32_t waiter, uint32_t target,
                        uint32_t *found)
{
    const party *pt = &wt->parties[waiter];
    name *nm = &wt->names[pt->name];

    if (!first_look(wt, nm, pt->all_in_way))
        return false;
    for (uint32_t i = nm->first; i < nm->first + nm->holders; i++) {
        agent *ag = &wt->agents[wt->parties[i].agent];

        wt->effort++;
        if (!ag->stuck || ag->seen == wt->search ||
            (!pt->all_in_way && wt->parties[i].mode != DIBS__EXCLUSIVE))
            continue;
        ag->seen = wt->search;
        ag->came_by = waiter;
        ag->found_at = i;
        wt->queue[(*found)++] = (uint32_t)(ag - wt->agents);
        if (wt->parties[i].agent == target)
            return true;
    }
    return false;
}

/* Looks for the shortest way from the agent back to itself, breadth first. True
 * when there is one: came_by leads along it, backwards. */
static bool search_cycle(dibs__wait_graph *wt, uint32_t target)
{
    uint32_t done = 0, found = 0;
    uint32_t from = target;

    wt->search++;
    for (;;) {
        for (uint32_t i = wt->agents[from].waits; i != NONE;
             i = wt->parties[i].next)
            if (look_behind(wt, i, target, &found))
                return true;
        if (done == found || wt->effort > EFFORT_MAX)
            return false;
        from = wt->queue[done++];
    }
}

/* The links of the cycle, in the order of waiting, from the target on. */
static size_t fill_links(dibs__wait_graph *wt, uint32_t target)
{
    uint32_t at = target;
    size_t count = 0;

    do {
        at = wt->parties[wt->agents[at].came_by].agent;
        count++;
    } while (at != target);
    /* Backwards: the agent that waits for `at` comes before it. */
    for (size_t i = count; i-- > 0;) {
        const party *wait = &wt->parties[wt->agents[at].came_by];
        agent *ag = &wt->agents[wait->agent];
        const party *hold = &wt->parties[ag->found_at];

        wt->links[i] = (dibs_wait_link){.who = wait->agent_text,
                                        .label = wait->label,
                                        .holds = wt->names[hold->name].text,
                                        .fence = hold->fence,
                                        .wants = wt->names[wait->name].text,
                                        .waited_ms = wait->age_ms};
        ag->shown = true;
        at = wait->agent;
    }
    return count;
}

size_t dibs__wait_graph_deadlocks(dibs__wait_graph *wt, dibs_deadlock_fn *each,
                                  void *arg)
{
    size_t shown = 0;
    bool more = true;

    /* Numbers rise as texts fall. */
    for (uint32_t i = wt->agent_count; i-- > 0 && more;) {
        const agent *ag = &wt->agents[i];

        if (!ag->stuck || ag->shown || ag->holds == NONE)
            continue;
        if (search_cycle(wt, i)) {
            size_t count = fill_links(wt, i);

            shown++;
            more = !each || each(wt->links, count, arg);
        }
        more = more && wt->effort <= EFFORT_MAX;
    }
    return shown;
}
