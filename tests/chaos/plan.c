/* plan.c - see plan.h. */
/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <string.h>

static uint64_t draw(plan *pl)
{
    pl->random ^= pl->random << 13;
    pl->random ^= pl->random >> 7;
    pl->random ^= pl->random << 17;
    return pl->random;
}

static int64_t between(plan *pl, int64_t from, int64_t to)
{
    return from + (int64_t)(draw(pl) % (uint64_t)(to - from + 1));
}

bool wanted_has(const wanted *wt, const char *name)
{
    size_t len = strlen(name);

    if (!wt->names)
        return true;
    for (const char *at = wt->names; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static void add(plan *pl, const void *fault)
{
    if (pl->count < sizeof(pl->table) / sizeof(pl->table[0]))
        pl->table[pl->count++] = fault;
}

loss fault_loss(const ground_fault *ft)
{
    if (ft->flags & FAULT_SPLIT)
        return LOSS_SPLIT;
    return ft->flags & FAULT_LOSSY ? LOSS_WRITES : LOSS_NONE;
}

/* A fault that is named is meant, whatever it loses. */
static bool is_meant(const ground_fault *ft, int lane, const wanted *wt)
{
    if ((ft->lanes & 1u << lane) == 0 || !wanted_has(wt, ft->name))
        return false;
    if (((ft->flags & FAULT_ROOT) && !wt->root) ||
        ((ft->flags & FAULT_CLOCKS) && !wt->clocks))
        return false;
    if (!wt->names && (ft->flags & FAULT_APART) && wt->lost > LOSS_NONE)
        return false;
    return wt->names || wt->lost >= fault_loss(ft);
}

void plan_init(plan *pl, const ground *gr, int lane, uint64_t seed,
               const wanted *wt)
{
    *pl = (plan){.of_crew = lane < 0,
                 .gap_ms = lane < 0 ? 500 : gr->gap_ms,
                 .ttl_ms = gr->ttl_ms,
                 .random = (seed + 1) * 2654435761u + (uint64_t)(lane + 2)};
    for (int i = 0; i < 8; i++)
        (void)draw(pl);
    if (pl->of_crew) {
        for (const crew_fault *ft = crew_faults; ft->name; ft++)
            if (wanted_has(wt, ft->name) &&
                (!ft->sleeps || (wt->clocks && !gr->local)))
                add(pl, ft);
        return;
    }
    for (const ground_fault *ft = gr->faults; ft && ft->name; ft++)
        if (is_meant(ft, lane, wt))
            add(pl, ft);
}

bool plan_next(plan *pl, planned *out)
{
    const void *fault;

    if (pl->count == 0)
        return false;
    fault = pl->table[draw(pl) % pl->count];
    *out = (planned){.gap_ms = between(pl, 0, 2 * pl->gap_ms)};
    if (pl->of_crew) {
        const crew_fault *ft = out->on_worker = fault;

        out->span_ms = between(pl, ft->from, ft->to);
        if (ft->of_ttl)
            out->span_ms = out->span_ms * pl->ttl_ms / 100;
    } else {
        const ground_fault *ft = out->on_store = fault;

        out->span_ms = between(pl, ft->from_ms, ft->to_ms);
    }
    out->dice = draw(pl) >> 8;
    return true;
}
