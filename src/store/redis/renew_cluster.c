/* renew_cluster.c - renews the leases of a cluster: a script for each slot, the
 * scripts for one server together.
 *
 * Owns nothing; any thread. A server that does not answer costs the leases of
 * the others only a part of their time, and is asked last the next time. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/slot.h"
#include "store/redis/renew.h"

/* One server may take this part of the shortest ttl, but has at least this long. */
enum { PATIENCE_PART = 6, PATIENCE_MS = 50 };

static dibsx_nsec limit_wait(const dibs__renewing *rn)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), rn->patience_ms);

    return until < rn->deadline ? until : rn->deadline;
}

static void write_keep(dibs__renewing *rn, const dibs__renewal *item)
{
    dibs__renewal_sheet *sh = rn->sheet;

    dibs__keys_of(item->name, &sh->keys[0]);
    dibs__script_begin(&sh->words, DIBS__SCRIPT_renew_one_key, "1");
    dibs__words_add(&sh->words, sh->keys[0].key[0], sh->keys[0].len[0]);
    dibs__words_puts(&sh->words, item->owner);
    dibs__words_number(&sh->words, (int64_t)item->fence, sh->fences[0]);
    dibs__words_number(&sh->words, dibs__step_span(item->ttl_ms), sh->ttls[0]);
}

/* Renews one by the key of its lock alone, which is always on one server. False
 * when that does not show the outcome. */
static bool
keep_one(dibs__renewing *rn, dibs__renewal_entry *at, dibsx_nsec until)
{
    dibs__loan loan = {.cn = NULL};
    redisReply *reply = NULL;
    dibs__renewal kept = *at->item;

    write_keep(rn, at->item);
    if (dibs__renewing_run_sheet(rn, DIBS__SCRIPT_renew_one_key,
                                 dibs__renewal_awaits_replicas(at), until, NULL,
                                 &loan, &reply) == DIBS_OK &&
        dibs__reply_int(reply, &kept.left_ms) &&
        dibs__answer_renewal(&kept, &rn->why) == DIBS_OK) {
        at->item->rc = DIBS_OK;
        at->item->left_ms = kept.left_ms;
        at->item->wanted = false;
        at->done = true;
        at->unconfirmed = dibs__renewal_awaits_replicas(at);
        dibs__renewing_confirm(rn, at, 1, &loan);
    }
    dibs__reply_free(reply);
    dibs__replica_wait_done(&loan);
    return at->done;
}

/* A slot may take long to move, and meanwhile refuses scripts with several
 * keys. True when each lease of the piece was renewed by its one key. */
static bool
keep_all(dibs__renewing *rn, const dibs__renewal_piece *pc, dibsx_nsec until)
{
    bool all = true;

    for (size_t i = 0; i < pc->count; i++)
        all = keep_one(rn, &pc->first[i], until) && all;
    return all;
}

/* Runs a script by itself. If replicas must acknowledge it and it is
 * DIBS_UNAVAIL, as while its slot moves, renews each of its leases by one key. */
static void run_alone(dibs__renewing *rn, const dibs__renewal_piece *pc,
                      dibs__loan *shared, dibsx_nsec until)
{
    dibs_status rc = dibs__renewing_run(rn, pc, shared, until);

    if (rc == DIBS_OK)
        return;
    if (rc != DIBS_UNAVAIL || !dibs__renewal_awaits_replicas(pc->first) ||
        !keep_all(rn, pc, limit_wait(rn)))
        dibs__renewing_give_up(rn, pc, rc);
}

/* Runs the scripts that are left, one by one: first those that a server
 * answered, then those whose server did not, in the time that is left. */
static void run_rest(dibs__renewing *rn, bool answered, dibsx_nsec until)
{
    dibs__renewal_piece pc;

    for (size_t i = 0; i < rn->count; i += pc.count) {
        pc = dibs__renewing_piece_at(rn, &rn->entries[i]);
        if (pc.first->done || dibs__renewal_awaits_replicas(pc.first) ||
            pc.first->answered != answered)
            continue;
        if (answered)
            until = limit_wait(rn);
        if (!pc.first->stuck || !keep_all(rn, &pc, until))
            run_alone(rn, &pc, NULL, until);
    }
}

/* Renews the leases of one server that replicas must acknowledge, and waits for those
 * once: a wait in vain takes a server a tenth of a second or more. Returns how many
 * they are. */
static size_t run_durable(dibs__renewing *rn, dibs__renewal_entry *first)
{
    const dibs__renewal_entry *end = rn->entries + rn->count;
    dibs__loan shared = {.cn = NULL};
    dibs__renewal_piece pc;
    size_t count = 0;

    for (; first + count < end && first[count].server == first->server;
         count += pc.count) {
        pc = dibs__renewing_piece_at(rn, first + count);
        run_alone(rn, &pc, &shared, limit_wait(rn));
    }
    dibs__renewing_confirm(rn, first, count, &shared);
    dibs__replica_wait_done(&shared);
    return count;
}

static void run_all(dibs__renewing *rn)
{
    dibsx_nsec until = limit_wait(rn), least;

    for (size_t i = 0; i < rn->count; i++)
        if (!rn->entries[i].sent &&
            !dibs__renewal_awaits_replicas(&rn->entries[i]))
            dibs__renewing_send_to(rn, rn->entries[i].server, limit_wait(rn));
    run_rest(rn, true, until);
    least = dibsx_after_ms(dibsx_now(), PATIENCE_MS);
    until = until > least ? until : least;
    run_rest(rn, false, until < rn->deadline ? until : rn->deadline);
    for (size_t i = 0; i < rn->count;)
        i += dibs__renewal_awaits_replicas(&rn->entries[i])
                 ? run_durable(rn, &rn->entries[i])
                 : 1;
}

/* Finds the server of each, as far as it is known. */
static void find_servers(dibs__renewing *rn)
{
    dibs__keys *keys = rn->sheet->keys;
    int64_t shortest_ms = INT64_MAX;

    for (size_t i = 0; i < rn->count; i++) {
        dibs__renewal_entry *at = &rn->entries[i];

        if (at->item->ttl_ms < shortest_ms)
            shortest_ms = at->item->ttl_ms;
        dibs__keys_of(at->item->name, keys);
        at->slot = dibs__slot_of(keys->key[0], keys->len[0]);
        at->server =
            dibs__cluster_standing(rn->rd->cluster, at->slot, &at->failing);
    }
    rn->patience_ms = shortest_ms / PATIENCE_PART;
    if (rn->patience_ms < PATIENCE_MS)
        rn->patience_ms = PATIENCE_MS;
}

void dibs__renewing_in_cluster(dibs__renewing *rn)
{
    find_servers(rn);
    dibs__renewing_sort(rn);
    run_all(rn);
}
