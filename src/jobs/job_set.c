/* job_set.c - which of two versions of a set of jobs wins. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_set.h"

#include "base/alloc.h"
#include "jobs/moment.h"
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 5 };

dibs__set_verdict dibs__set_decide(const dibs__job_set *stored,
                                   const dibs__job_set *file, bool force)
{
    bool same = stored && strcmp(stored->hash, file->hash) == 0;

    if (!stored)
        return DIBS__SET_LOAD;
    if (same && (stored->loading || file->version > stored->version))
        return DIBS__SET_LOAD;
    if (same)
        return DIBS__SET_SAME;
    if (force || file->version > stored->version)
        return DIBS__SET_LOAD;
    if (file->version == 0)
        return strcmp(stored->origin, file->origin) == 0 ? DIBS__SET_LOAD
                                                         : DIBS__SET_REFUSED;
    return file->version == stored->version ? DIBS__SET_REFUSED
                                            : DIBS__SET_OLDER;
}

/* The jobs of a set in the order of names. */
typedef struct name_order {
    const dibs__set_job **at;
    size_t count;
} name_order;

static int compare_jobs(const void *a, const void *b)
{
    return strcmp((*(const dibs__set_job *const *)a)->name,
                  (*(const dibs__set_job *const *)b)->name);
}

/* Without memory it is empty. */
static name_order order_names(const dibs__job_set *set)
{
    name_order order = {.at =
                            dibsx_zalloc_n(set->count + 1, sizeof(*order.at))};

    for (; order.at && order.count < set->count; order.count++)
        order.at[order.count] = &set->jobs[order.count];
    if (order.at)
        qsort(order.at, order.count, sizeof(*order.at), compare_jobs);
    return order;
}

static int compare_name(const void *name, const void *job)
{
    return strcmp(name, (*(const dibs__set_job *const *)job)->name);
}

static const dibs__set_job *find_job(const name_order *order, const char *name)
{
    const dibs__set_job *const *found =
        order->count > 0 ? bsearch(name, order->at, order->count,
                                   sizeof(*order->at), compare_name)
                         : NULL;

    return found ? *found : NULL;
}

/* The store keeps the first digits of a hash. */
static bool same_hash(const dibs__set_job *stored, const dibs__set_job *file)
{
    return strncmp(stored->hash, file->hash, strlen(stored->hash)) == 0;
}

static void add_name(dibsx_buf *out, const char *name, size_t *count)
{
    if (*count < NAMES_SHOWN)
        dibsx_buf_printf(out, "%s%s", *count ? ", " : "", name);
    ++*count;
}

/* Jobs that are in one of the two, or in both with other content. */
static size_t add_names(const dibs__job_set *stored, const dibs__job_set *file,
                        dibsx_buf *out)
{
    name_order in_store = order_names(stored), in_file = order_names(file);
    size_t count = 0;

    for (size_t i = 0; i < file->count; i++) {
        const dibs__set_job *job = find_job(&in_store, file->jobs[i].name);

        if (!job || !same_hash(job, &file->jobs[i]))
            add_name(out, file->jobs[i].name, &count);
    }
    for (size_t i = 0; i < stored->count; i++)
        if (!find_job(&in_file, stored->jobs[i].name))
            add_name(out, stored->jobs[i].name, &count);
    dibsx_free(in_store.at);
    dibsx_free(in_file.at);
    if (count > NAMES_SHOWN)
        dibsx_buf_printf(out, " and %zu more", count - NAMES_SHOWN);
    return count;
}

void dibs__set_explain(const dibs__job_set *stored, const dibs__job_set *file,
                       dibs__set_verdict verdict, dibsx_buf *out)
{
    char when[DIBS__MOMENT_SIZE];

    dibs__moment_text(stored->loaded_s, when);
    if (verdict == DIBS__SET_OLDER)
        dibsx_buf_printf(out,
                         "the set %s has version %lld, and this file version "
                         "%lld",
                         file->name, (long long)stored->version,
                         (long long)file->version);
    else if (file->version > 0)
        dibsx_buf_printf(out,
                         "the set %s has version %lld already, with other "
                         "content",
                         file->name, (long long)stored->version);
    else
        dibsx_buf_printf(out, "the set %s was loaded from another file",
                         file->name);
    dibsx_buf_puts(out, ": ");
    if (add_names(stored, file, out) == 0)
        dibsx_buf_puts(out, "the board");
    dibsx_buf_printf(out, " differ; %s loaded it from %s at %sZ", stored->by,
                     stored->origin, when);
    if (verdict == DIBS__SET_OLDER)
        dibsx_buf_puts(out, "; the store keeps what it has");
    else
        dibsx_buf_printf(out, "; %s version, or give --force",
                         file->version > 0 ? "raise" : "give the file a");
}
