/* tally.c - the statistics of a client per name; see tally.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/tally.h"

#include "base/alloc.h"
#include <string.h>

dibs__tally *dibs__tally_new(void)
{
    return dibsx_zalloc(sizeof(dibs__tally));
}

static void name_free(dibs__tally_name *name)
{
    dibs__counts_fini(&name->all);
    dibs__counts_fini(&name->fresh);
    dibsx_free(name);
}

void dibs__tally_free(dibs__tally *tally)
{
    dibs__tally_name *name = tally ? tally->newest : NULL;

    while (name) {
        dibs__tally_name *older = name->older;

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
static dibs__tally_name **seek(dibs__tally *tally, const char *name)
{
    dibs__tally_name **at = &tally->buckets[bucket_of(name)];

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

dibs__tally_name *dibs__tally_find(const dibs__tally *tally, const char *name)
{
    dibs__tally_name *found = tally->buckets[bucket_of(name)];

    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    return found;
}

static void pull_out(dibs__tally *tally, dibs__tally_name *name)
{
    *(name->newer ? &name->newer->older : &tally->newest) = name->older;
    *(name->older ? &name->older->newer : &tally->oldest) = name->newer;
    name->newer = name->older = NULL;
}

static void put_first(dibs__tally *tally, dibs__tally_name *name)
{
    name->older = tally->newest;
    *(name->older ? &name->older->newer : &tally->oldest) = name;
    tally->newest = name;
}

/* What was not shared yet of the oldest name goes with it. */
static void drop_oldest(dibs__tally *tally)
{
    dibs__tally_name *name = tally->oldest;
    dibs__tally_name **at = seek(tally, name->name);

    *at = name->next;
    pull_out(tally, name);
    tally->count--;
    name_free(name);
}

static dibs__tally_name *add(dibs__tally *tally, const char *text)
{
    size_t len = strlen(text) + 1;
    dibs__tally_name *name = dibsx_zalloc(sizeof(*name) + len);
    dibs__tally_name **at;

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

dibs__tally_name *dibs__tally_use(dibs__tally *tally, const char *text)
{
    dibs__tally_name *name = tally->newest;

    /* Most often it is the one of the last time. */
    if (name && strcmp(name->name, text) == 0)
        return name;
    name = dibs__tally_find(tally, text);
    if (!name)
        return add(tally, text);
    pull_out(tally, name);
    put_first(tally, name);
    return name;
}

static void free_attached(dibs_client *cl, dibs__attached *at)
{
    cl->tally = NULL;
    dibs__tally_free((dibs__tally *)(void *)at);
}

dibs__tally *dibs__tally_of(dibs_client *cl)
{
    if (cl->tally || (cl->tally = dibs__tally_new()) == NULL)
        return cl->tally;
    cl->tally->attached.free = free_attached;
    dibs__attach(cl, &cl->tally->attached);
    return cl->tally;
}
