/* name_table.c - the statistics of a client per name; see name_table.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/name_table.h"

#include "base/alloc.h"
#include <string.h>

dibs__name_table *dibs__name_table_new(void)
{
    return dibsx_zalloc(sizeof(dibs__name_table));
}

static void name_free(dibs__name_row *name)
{
    dibs__counts_fini(&name->all);
    dibs__counts_fini(&name->fresh);
    dibsx_free(name);
}

void dibs__name_table_free(dibs__name_table *tally)
{
    dibs__name_row *name = tally ? tally->newest : NULL;

    while (name) {
        dibs__name_row *older = name->older;

        name_free(name);
        name = older;
    }
    dibsx_free(tally);
}

static size_t bucket_of(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % DIBS__TALLY_NAMES;
}

/* What points at the record of the name, or at the end of its bucket. */
static dibs__name_row **seek(dibs__name_table *tally, const char *name)
{
    dibs__name_row **at = &tally->buckets[bucket_of(name)];

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

dibs__name_row *
dibs__name_table_find(const dibs__name_table *tally, const char *name)
{
    dibs__name_row *found = tally->buckets[bucket_of(name)];

    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    return found;
}

static void pull_out(dibs__name_table *tally, dibs__name_row *name)
{
    *(name->newer ? &name->newer->older : &tally->newest) = name->older;
    *(name->older ? &name->older->newer : &tally->oldest) = name->newer;
    name->newer = name->older = NULL;
}

static void put_first(dibs__name_table *tally, dibs__name_row *name)
{
    name->older = tally->newest;
    *(name->older ? &name->older->newer : &tally->oldest) = name;
    tally->newest = name;
}

/* What was not shared yet of the oldest name goes with it. */
static void drop_oldest(dibs__name_table *tally)
{
    dibs__name_row *name = tally->oldest;
    dibs__name_row **at = seek(tally, name->name);

    *at = name->next;
    pull_out(tally, name);
    tally->count--;
    name_free(name);
}

static dibs__name_row *add(dibs__name_table *tally, const char *text)
{
    size_t len = strlen(text) + 1;
    dibs__name_row *name = dibsx_zalloc(sizeof(*name) + len);
    dibs__name_row **at;

    if (!name)
        return NULL;
    memcpy(name->name, text, len);
    if (tally->count == DIBS__TALLY_NAMES)
        drop_oldest(tally);
    at = seek(tally, text);
    *at = name;
    put_first(tally, name);
    tally->count++;
    return name;
}

dibs__name_row *dibs__name_table_use(dibs__name_table *tally, const char *text)
{
    dibs__name_row *name = tally->newest;

    /* Most often it is the one of the last time. */
    if (name && strcmp(name->name, text) == 0)
        return name;
    name = dibs__name_table_find(tally, text);
    if (!name)
        return add(tally, text);
    pull_out(tally, name);
    put_first(tally, name);
    return name;
}

static void free_attached(dibs_client *cl, dibs__attached *at)
{
    cl->tally = NULL;
    dibs__name_table_free((dibs__name_table *)(void *)at);
}

dibs__name_table *dibs__name_table_of(dibs_client *cl)
{
    if (cl->tally || (cl->tally = dibs__name_table_new()) == NULL)
        return cl->tally;
    cl->tally->attached.free = free_attached;
    dibs__attach(cl, &cl->tally->attached);
    return cl->tally;
}
