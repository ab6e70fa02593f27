/* noun_json.c - the JSON of queues, topics, breakers, groups, barriers and latches. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/noun_json.h"
#include "base/clock.h"
#include <stdio.h>
#include <string.h>

#define MEMBER "member="

static void pair_ms(dibsx_json *js, const char *key, int64_t ms)
{
    dibsx_json_key(js, key);
    if (ms < 0)
        dibsx_json_null(js);
    else
        dibsx_json_int(js, ms);
}

void dibs__noun_queue(dibsx_json *js, const dibs_queue_info *info)
{
    const dibs_queue_settings *settings = &info->settings;

    dibsx_json_pair_bool(js, "paused", settings->paused);
    dibsx_json_pair_uint(js, "ready", info->ready);
    dibsx_json_pair_uint(js, "later", info->later);
    dibsx_json_pair_uint(js, "out", info->out);
    dibsx_json_pair_uint(js, "dead", info->dead);
    dibsx_json_pair_int(js, "oldest_ms", info->oldest_ms);
    dibsx_json_pair_uint(js, "consumers", info->consumers);
    dibsx_json_pair_uint(js, "waiting", info->waiting);
    dibsx_json_key(js, "totals");
    dibsx_json_open(js, '{');
    dibsx_json_pair_uint(js, "pushed", info->pushed);
    dibsx_json_pair_uint(js, "delivered", info->delivered);
    dibsx_json_pair_uint(js, "acked", info->acked);
    dibsx_json_pair_uint(js, "nacked", info->nacked);
    dibsx_json_pair_uint(js, "lost", info->lost);
    dibsx_json_pair_uint(js, "died", info->died);
    dibsx_json_pair_uint(js, "dropped", info->dropped);
    dibsx_json_pair_uint(js, "purged", info->purged);
    dibsx_json_close(js, '}');
    dibsx_json_key(js, "settings");
    dibsx_json_open(js, '{');
    dibsx_json_pair_bool(js, "serial", settings->serial);
    dibsx_json_pair_uint(js, "cap", settings->cap);
    dibsx_json_pair_uint(js, "tries", settings->tries);
    dibsx_json_pair_uint(js, "deads", settings->deads);
    dibsx_json_pair_uint(js, "lost_max", settings->lost_max);
    dibsx_json_close(js, '}');
}

void dibs__noun_breaker(dibsx_json *js, const dibs_breaker_info *info)
{
    dibsx_json_pair_text(js, "state", dibs_breaker_state_name(info->state));
    dibsx_json_pair_uint(js, "version", info->version);
    pair_ms(js, "retry_ms", info->retry_ms);
    dibsx_json_pair_int(js, "good", info->good);
    dibsx_json_pair_int(js, "bad", info->bad);
    dibsx_json_pair_int(js, "slow", info->slow);
    dibsx_json_pair_int(js, "reporters", info->reporters);
}

void dibs__noun_barrier(dibsx_json *js, const dibs_barrier_state *state)
{
    dibsx_json_pair_uint(js, "generation", state->generation);
    dibsx_json_pair_uint(js, "parties", state->parties);
    dibsx_json_pair_uint(js, "seated", state->seated);
    dibsx_json_pair_uint(js, "arrived", state->arrived);
}

void dibs__noun_latch(dibsx_json *js, const dibs_latch_state *state)
{
    dibsx_json_pair_text(js, "state", state->left ? "closed" : "open");
    dibsx_json_pair_uint(js, "generation", state->generation);
    dibsx_json_pair_uint(js, "count", state->count);
    dibsx_json_pair_uint(js, "left", state->left);
}

static void put_meta(dibsx_json *js, const char *text, size_t len)
{
    const char *sign = memchr(text, '=', len);
    const size_t key_len = sign ? (size_t)(sign - text) : len;
    char key[256];

    snprintf(key, sizeof(key), "%.*s", (int)key_len, text);
    dibsx_json_key(js, key);
    dibsx_json_bytes(js, sign ? sign + 1 : "", sign ? len - key_len - 1 : 0);
}

void dibs__noun_meta(dibsx_json *js, const char *meta)
{
    dibsx_json_key(js, "meta");
    dibsx_json_open(js, '{');
    while (*meta) {
        const size_t len = strcspn(meta, "\t");

        if (len)
            put_meta(js, meta, len);
        meta += len + (meta[len] == '\t');
    }
    dibsx_json_close(js, '}');
}

void dibs__noun_topic(dibsx_json *js, const dibs_topic_state *state)
{
    dibsx_json_pair_uint(js, "first", state->first);
    dibsx_json_pair_uint(js, "last", state->last);
    dibsx_json_pair_uint(js, "count", state->count);
    dibsx_json_pair_int(js, "bytes", state->bytes);
}

void dibs__noun_member(dibsx_json *js, const dibs_member_info *info)
{
    char since[40];

    dibsx_wall_text(info->since_wall_us, since, sizeof(since));
    dibsx_json_pair_text(js, "member", info->member);
    dibsx_json_pair_text(js, "host", info->host);
    dibsx_json_pair_int(js, "pid", info->pid);
    dibsx_json_pair_text(js, "label", info->label);
    dibsx_json_pair_uint(js, "fence", info->fence);
    dibsx_json_pair_text(js, "since_at", since);
    dibsx_json_pair_int(js, "left_ms", info->left_ms);
    dibsx_json_pair_bool(js, "counts", info->counts);
    dibs__noun_meta(js, info->meta);
}

/* -- Elections, which are leases whose parties give a member first. */

static bool is_member(const dibs_party *party)
{
    return strncmp(party->meta, MEMBER, sizeof(MEMBER) - 1) == 0;
}

const dibs_party *dibs__noun_leader(const dibs_lease_info *info)
{
    for (size_t i = 0; i < info->holder_count; i++)
        if (!info->holders[i].left)
            return &info->holders[i];
    return NULL;
}

bool dibs__noun_is_election(const dibs_lease_info *info)
{
    const dibs_party *leader = dibs__noun_leader(info);

    if (leader)
        return is_member(leader);
    return info->waiter_count > 0 && is_member(&info->waiters[0]);
}

static void put_party(dibsx_json *js, const dibs_party *party)
{
    const char *meta = party->meta, *member = "";
    size_t len = 0;

    if (is_member(party)) {
        member = meta + sizeof(MEMBER) - 1;
        len = strcspn(member, "\t");
        meta = member + len + (member[len] == '\t');
    }
    dibsx_json_key(js, "member");
    dibsx_json_bytes(js, member, len);
    dibsx_json_pair_text(js, "host", party->host);
    dibsx_json_pair_int(js, "pid", party->pid);
    dibsx_json_pair_text(js, "label", party->label);
    dibsx_json_pair_int(js, "priority", party->priority);
    dibs__noun_meta(js, meta);
}

static void
put_leader(dibsx_json *js, const dibs_party *leader, int64_t since_ms)
{
    const int64_t left_ms = leader->left_ms - since_ms;

    dibsx_json_open(js, '{');
    put_party(js, leader);
    dibsx_json_pair_int(js, "age_ms", leader->age_ms + since_ms);
    dibsx_json_pair_int(js, "left_ms", left_ms > 0 ? left_ms : 0);
    dibsx_json_pair_text(js, "stale", leader->stale);
    dibsx_json_close(js, '}');
}

void dibs__noun_election(dibsx_json *js, const dibs_lease_info *info,
                         int64_t since_ms, size_t parties_max)
{
    const dibs_party *leader = dibs__noun_leader(info);

    dibsx_json_pair_text(js, "name", info->name);
    dibsx_json_key(js, "leader");
    if (leader)
        put_leader(js, leader, since_ms);
    else
        dibsx_json_null(js);
    dibsx_json_pair_uint(js, "term", leader ? leader->fence : 0);
    dibsx_json_pair_uint(js, "candidate_count", info->waiter_count);
    dibsx_json_key(js, "candidates");
    dibsx_json_open(js, '[');
    for (size_t i = 0;
         i < info->waiter_count && (!parties_max || i < parties_max); i++) {
        dibsx_json_open(js, '{');
        put_party(js, &info->waiters[i]);
        dibsx_json_pair_int(js, "waited_ms",
                            info->waiters[i].age_ms + since_ms);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}
