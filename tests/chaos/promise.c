/* promise.c - see promise.h. */
/* SPDX-License-Identifier: MIT */
#include "promise.h"

#include <stdio.h>
#include <string.h>

/* In the order of the enumeration. */
static const char *const names[INVARIANTS] = {
    "exclusion", "fence", "bank",  "order",   "values",  "told",
    "alive",     "latch", "limit", "barrier", "breaker", "majority"};

typedef struct row {
    const char *topology;
    loss lost;
    level levels[INVARIANTS];
} row;

/* Less lost comes first. */
static const row rows[] = {
    {"sqlite",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT}},
    {"redis",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT}},
    {"redis",
     LOSS_WRITES,
     {COUNTED, KEPT, KEPT, COUNTED, COUNTED, KEPT, KEPT, KEPT, COUNTED, COUNTED,
      COUNTED, KEPT}},
    {"sentinel-async",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT}},
    {"sentinel-async",
     LOSS_WRITES,
     {COUNTED, KEPT, KEPT, COUNTED, COUNTED, KEPT, KEPT, KEPT, COUNTED, COUNTED,
      COUNTED, KEPT}},
    {"sentinel-wait",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT}},
    {"sentinel-wait",
     LOSS_WRITES,
     {KEPT, KEPT, KEPT, COUNTED, COUNTED, KEPT, KEPT, KEPT, COUNTED, COUNTED,
      COUNTED, KEPT}},
    {"sentinel-wait",
     LOSS_SPLIT,
     {COUNTED, KEPT, KEPT, COUNTED, COUNTED, KEPT, KEPT, KEPT, COUNTED, COUNTED,
      COUNTED, KEPT}},
    {"cluster",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT}},
    {"cluster",
     LOSS_WRITES,
     {COUNTED, KEPT, KEPT, COUNTED, COUNTED, KEPT, KEPT, KEPT, COUNTED, COUNTED,
      COUNTED, KEPT}},
    {"redlock",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, ABSENT, ABSENT, KEPT, KEPT, ABSENT, ABSENT, ABSENT,
      ABSENT, ABSENT}},
    {"redlock",
     LOSS_WRITES,
     {COUNTED, KEPT, KEPT, ABSENT, ABSENT, KEPT, KEPT, ABSENT, ABSENT, ABSENT,
      ABSENT, ABSENT}},
    {"postgres",
     LOSS_NONE,
     {KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT, KEPT}},
    {"postgres",
     LOSS_WRITES,
     {COUNTED, KEPT, KEPT, COUNTED, COUNTED, KEPT, KEPT, KEPT, COUNTED, COUNTED,
      COUNTED, KEPT}},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const char *invariant_name(invariant what)
{
    return names[what];
}

static const row *find(const char *topology, loss lost)
{
    const row *found = NULL;

    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].lost <= lost && strcmp(rows[i].topology, topology) == 0)
            found = &rows[i];
    return found;
}

level promised(const char *topology, loss lost, invariant what)
{
    const row *rw = find(topology, lost);

    return rw ? rw->levels[what] : KEPT;
}

bool promise_has(const char *topology)
{
    return find(topology, LOSS_NONE) != NULL;
}

void promise_print(void)
{
    static const char *const words[] = {"kept", "counted", "none"};
    static const char *const losses[] = {"no", "yes", "two primaries"};

    printf("| store | writes lost |");
    for (int i = 0; i < INVARIANTS; i++)
        printf(" %s |", names[i]);
    printf("\n|---|---|");
    for (int i = 0; i < INVARIANTS; i++)
        printf("---|");
    for (size_t i = 0; i < ROWS; i++) {
        printf("\n| %s | %s |", rows[i].topology, losses[rows[i].lost]);
        for (int k = 0; k < INVARIANTS; k++)
            printf(" %s |", words[rows[i].levels[k]]);
    }
    printf("\n");
}
