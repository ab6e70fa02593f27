/* row.c - a lock with its holders and waiters. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/row.h"
#include "base/alloc.h"
#include "show/data_json.h"
#include <stdio.h>
#include <string.h>

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t party_size(const dibs_party *party)
{
    return sizeof(*party) + text_size(party->owner) + text_size(party->host) +
           text_size(party->label) + text_size(party->mode) +
           text_size(party->identity) + text_size(party->meta) +
           text_size(party->stale);
}

static const char *put_text(char **at, const char *text)
{
    const size_t size = text_size(text);
    char *copy = *at;

    if (!text)
        return NULL;
    memcpy(copy, text, size);
    *at += size;
    return copy;
}

static void put_party(char **at, dibs_party *copy, const dibs_party *party)
{
    *copy = *party;
    copy->owner = put_text(at, party->owner);
    copy->host = put_text(at, party->host);
    copy->label = put_text(at, party->label);
    copy->mode = put_text(at, party->mode);
    copy->identity = put_text(at, party->identity);
    copy->meta = put_text(at, party->meta);
    copy->stale = put_text(at, party->stale);
}

dibs_lease_info *dibs__serve_row_copy(const dibs_lease_info *info)
{
    const size_t count = info->holder_count + info->waiter_count;
    size_t size = sizeof(*info) + text_size(info->name);
    dibs_lease_info *copy;
    dibs_party *parties;
    char *at;

    for (size_t i = 0; i < info->holder_count; i++)
        size += party_size(&info->holders[i]);
    for (size_t i = 0; i < info->waiter_count; i++)
        size += party_size(&info->waiters[i]);
    copy = dibsx_zalloc(size);
    if (!copy)
        return NULL;
    *copy = *info;
    parties = (dibs_party *)(copy + 1);
    at = (char *)(parties + count);
    for (size_t i = 0; i < info->holder_count; i++)
        put_party(&at, &parties[i], &info->holders[i]);
    for (size_t i = 0; i < info->waiter_count; i++)
        put_party(&at, &parties[info->holder_count + i], &info->waiters[i]);
    copy->holders = parties;
    copy->waiters = parties + info->holder_count;
    copy->name = put_text(&at, info->name);
    return copy;
}

/* An owner with its fence is the lease: 8 of its digits tell it apart, no more. */
static void
put_holding(dibsx_json *js, const dibs_party *party, int64_t left_ms)
{
    dibsx_json_pair_uint(js, "fence", party->fence);
    dibsx_json_pair_int(js, "left_ms", left_ms > 0 ? left_ms : 0);
    dibsx_json_pair_text(js, "stale", party->stale);
    dibsx_json_pair_bool(js, "claim", party->claim);
    dibsx_json_pair_bool(js, "released", party->left);
    dibsx_json_key(js, "owner8");
    dibsx_json_bytes(js, party->owner, strnlen(party->owner, 8));
}

static void
put_parties(dibsx_json *js, const char *key, const dibs_party *parties,
            size_t count, int64_t since_ms)
{
    dibsx_json_key(js, key);
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < count; i++) {
        const dibs_party *party = &parties[i];

        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "host", party->host);
        dibsx_json_pair_int(js, "pid", party->pid);
        dibsx_json_pair_text(js, "identity", party->identity);
        dibsx_json_pair_text(js, "label", party->label);
        dibsx_json_pair_text(js, "mode", party->mode);
        dibsx_json_pair_uint(js, "permits", party->permits);
        dibsx_json_pair_int(js, "priority", party->priority);
        dibsx_json_pair_int(js, "age_ms", party->age_ms + since_ms);
        dibsx_json_pair_int(js, "ttl_ms", party->ttl_ms);
        dibs__json_meta(js, party->meta);
        if (party->fence)
            put_holding(js, party, party->left_ms - since_ms);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

static size_t least(size_t count, size_t max)
{
    return max && count > max ? max : count;
}

const char *dibs__serve_row_kind(const dibs_lease_info *info)
{
    return info->capacity ? "semaphore" : "lock";
}

/* Also of the holders that a list leaves out. */
static uint64_t permits_used(const dibs_lease_info *info)
{
    uint64_t used = 0;

    for (size_t i = 0; i < info->holder_count; i++)
        used += info->holders[i].permits;
    return used;
}

void dibs__serve_row_json(dibsx_json *js, const dibs_lease_info *info,
                          int64_t since_ms, size_t parties_max)
{
    dibsx_json_pair_text(js, "name", info->name);
    dibsx_json_pair_text(js, "kind", dibs__serve_row_kind(info));
    dibsx_json_pair_uint(js, "capacity", info->capacity);
    if (info->capacity)
        dibsx_json_pair_uint(js, "permits_used", permits_used(info));
    dibsx_json_pair_uint(js, "holder_count", info->holder_count);
    dibsx_json_pair_uint(js, "waiter_count", info->waiter_count);
    put_parties(js, "holders", info->holders,
                least(info->holder_count, parties_max), since_ms);
    put_parties(js, "waiters", info->waiters,
                least(info->waiter_count, parties_max), since_ms);
}

static uint32_t mix_text(uint32_t hash, const char *text, size_t max)
{
    for (size_t i = 0; i < max && text && text[i]; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT32_C(16777619);
    return hash * UINT32_C(16777619);
}

/* A hash of all that a row shows of a party, but for its times. */
static uint32_t party_hash(const dibs_party *party, uint32_t hash)
{
    const uint32_t flags = (party->stale ? 1U : 0U) | (party->claim ? 2U : 0U) |
                           (party->left ? 4U : 0U);

    hash = mix_text(hash, party->owner, 8);
    hash = mix_text(hash, party->mode, SIZE_MAX);
    hash = (hash ^ flags) * UINT32_C(16777619);
    return (hash ^ party->permits) * UINT32_C(16777619);
}

/* The parties in any order. */
static uint32_t row_hash(const dibs_lease_info *info)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < info->holder_count; i++)
        sum += party_hash(&info->holders[i], UINT32_C(2166136261));
    for (size_t i = 0; i < info->waiter_count; i++)
        sum += party_hash(&info->waiters[i], UINT32_C(2166136262));
    return sum;
}

void dibs__serve_row_etag(const dibs_lease_info *info,
                          char out[DIBS__SERVE_ETAG_MAX])
{
    uint64_t fence = 0;

    for (size_t i = 0; info && i < info->holder_count; i++) {
        if (info->holders[i].fence > fence)
            fence = info->holders[i].fence;
    }
    if (info)
        snprintf(out, DIBS__SERVE_ETAG_MAX, "\"%llu-%zu-%zu-%08x\"",
                 (unsigned long long)fence, info->waiter_count,
                 info->holder_count, row_hash(info));
    else
        snprintf(out, DIBS__SERVE_ETAG_MAX, "\"free\"");
}

bool dibs__serve_row_is_stale(const dibs_lease_info *info)
{
    for (size_t i = 0; i < info->holder_count; i++) {
        if (info->holders[i].stale)
            return true;
    }
    return false;
}

int64_t dibs__serve_row_waited_ms(const dibs_lease_info *info)
{
    int64_t longest_ms = 0;

    for (size_t i = 0; i < info->waiter_count; i++) {
        if (info->waiters[i].age_ms > longest_ms)
            longest_ms = info->waiters[i].age_ms;
    }
    return longest_ms;
}
