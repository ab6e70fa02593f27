/* name_table.c - the statistics of a client per name; see name_table.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/name_table.h"

#include "base/alloc.h"
#include "base/hash.h"
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

void dibs__name_table_free(dibs__name_table *table)
{
    dibs__name_row *name = table ? table->newest : NULL;

    while (name) {
        dibs__name_row *older = name->older;

        name_free(name);
        name = older;
    }
    dibsx_free(table);
}

static size_t bucket_of(const char *name)
{
    return dibsx_hash_text(name) % DIBS__NAME_TABLE_MAX;
}

/* Returns the pointer to the row of the name, or the end of its bucket. */
static dibs__name_row **seek_row(dibs__name_table *table, const char *name)
{
    dibs__name_row **at = &table->buckets[bucket_of(name)];

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

dibs__name_row *
dibs__name_table_find(const dibs__name_table *table, const char *name)
{
    dibs__name_row *found = table->buckets[bucket_of(name)];

    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    return found;
}

static void pull_out(dibs__name_table *table, dibs__name_row *name)
{
    *(name->newer ? &name->newer->older : &table->newest) = name->older;
    *(name->older ? &name->older->newer : &table->oldest) = name->newer;
    name->newer = name->older = NULL;
}

static void put_first(dibs__name_table *table, dibs__name_row *name)
{
    name->older = table->newest;
    *(name->older ? &name->older->newer : &table->oldest) = name;
    table->newest = name;
}

/* Counts of the oldest name that were not shared yet are dropped with it. */
static void drop_oldest(dibs__name_table *table)
{
    dibs__name_row *name = table->oldest;
    dibs__name_row **at = seek_row(table, name->name);

    *at = name->next;
    pull_out(table, name);
    table->count--;
    name_free(name);
}

static dibs__name_row *add_row(dibs__name_table *table, const char *text)
{
    size_t len = strlen(text) + 1;
    dibs__name_row *name = dibsx_zalloc(sizeof(*name) + len);
    dibs__name_row **at;

    if (!name)
        return NULL;
    memcpy(name->name, text, len);
    if (table->count == DIBS__NAME_TABLE_MAX)
        drop_oldest(table);
    at = seek_row(table, text);
    *at = name;
    put_first(table, name);
    table->count++;
    return name;
}

dibs__name_row *dibs__name_table_use(dibs__name_table *table, const char *text)
{
    dibs__name_row *name = table->newest;

    /* Most often it is the same name as before. */
    if (name && strcmp(name->name, text) == 0)
        return name;
    name = dibs__name_table_find(table, text);
    if (!name)
        return add_row(table, text);
    pull_out(table, name);
    put_first(table, name);
    return name;
}

static void free_attached(dibs_client *cl, dibs__attached *at)
{
    cl->name_table = NULL;
    dibs__name_table_free((dibs__name_table *)(void *)at);
}

dibs__name_table *dibs__name_table_of(dibs_client *cl)
{
    if (cl->name_table || (cl->name_table = dibs__name_table_new()) == NULL)
        return cl->name_table;
    cl->name_table->attached.free = free_attached;
    dibs__attach(cl, &cl->name_table->attached);
    return cl->name_table;
}
