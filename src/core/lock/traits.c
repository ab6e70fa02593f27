/* traits.c - what handles with the same options share; see traits.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/traits.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "core/client.h"
#include <stddef.h>
#include <string.h>

static dibs__traits *traits_of(dibsx_table_node *node)
{
    return (dibs__traits *)(void *)node;
}

static bool same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

_Static_assert(offsetof(dibs_lock_opts, renew_every_ms) + sizeof(int64_t) ==
                   sizeof(dibs_lock_opts),
               "the comparison below has every member");

/* Member by member: a caller may leave anything in the bytes between two of them. The
 * texts, the callbacks and the priority are not here. */
static bool same_opts(const dibs_lock_opts *one, const dibs_lock_opts *other)
{
    return one->mode == other->mode && one->flags == other->flags &&
           one->ttl_ms == other->ttl_ms && one->wait_ms == other->wait_ms &&
           one->retries == other->retries &&
           one->retry_delay_ms == other->retry_delay_ms &&
           one->hold_min_ms == other->hold_min_ms &&
           one->hold_max_ms == other->hold_max_ms &&
           one->permits == other->permits && one->capacity == other->capacity &&
           one->lock_delay_ms == other->lock_delay_ms &&
           one->progress_ms == other->progress_ms &&
           one->renew_every_ms == other->renew_every_ms;
}

static bool are_alike(const dibs__traits *one, const dibs__traits *other)
{
    return same_opts(&one->opts, &other->opts) && one->hears == other->hears &&
           one->replicas == other->replicas &&
           same_text(one->label, other->label) &&
           same_text(one->meta, other->meta) &&
           same_text(one->identity, other->identity);
}

/* Takes what differs most often. */
static uint32_t hash_of(const dibs__traits *traits)
{
    uint64_t spans = (uint64_t)traits->opts.ttl_ms * 31 +
                     (uint64_t)traits->opts.wait_ms * 7 + traits->opts.flags;

    return dibsx_hash_text(traits->label ? traits->label : "") ^
           dibsx_hash_text(traits->meta ? traits->meta : "") * 3 ^
           dibsx_hash_text(traits->identity ? traits->identity : "") * 5 ^
           (uint32_t)(spans ^ spans >> 32);
}

void dibs__traits_fini(dibs__traits *draft)
{
    dibsx_free(draft->label);
    dibsx_free(draft->meta);
    dibsx_free(draft->identity);
}

const dibs__traits *dibs__traits_keep(dibs_client *cl, dibs__traits *draft)
{
    uint32_t hash = hash_of(draft);
    dibsx_table_node *node = dibsx_table_find(&cl->traits, hash);
    dibs__traits *kept;

    while (node && !are_alike(traits_of(node), draft))
        node = node->next;
    kept = node ? traits_of(node) : dibsx_zalloc(sizeof(*kept));
    if (node || !kept)
        dibs__traits_fini(draft);
    if (!kept)
        return NULL;
    if (!node) {
        *kept = *draft;
        dibsx_table_add(&cl->traits, &kept->node, hash);
    }
    kept->users++;
    return kept;
}

void dibs__traits_drop(dibs_client *cl, const dibs__traits *traits)
{
    /* The client's own, which the handles must not change. */
    dibs__traits *kept = (dibs__traits *)(uintptr_t)traits;

    if (!kept || --kept->users > 0)
        return;
    dibsx_table_remove(&cl->traits, &kept->node);
    dibs__traits_fini(kept);
    dibsx_free(kept);
}
