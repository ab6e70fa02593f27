/* renew_script.c - the scripts that renew leases: their words, their answers,
 * and the replicas that must acknowledge them.
 *
 * Owns nothing; any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/renew.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Scripts sent together. */
enum { TOGETHER = 64 };

static int in_order(const void *a, const void *b)
{
    const dibs__renewal_entry *x = a, *y = b;

    if (dibs__renewal_awaits_replicas(x) != dibs__renewal_awaits_replicas(y))
        return dibs__renewal_awaits_replicas(x) -
               dibs__renewal_awaits_replicas(y);
    if (x->failing != y->failing)
        return x->failing - y->failing;
    return x->server != y->server ? x->server - y->server : x->slot - y->slot;
}

void dibs__renewing_sort(dibs__renewing *rn)
{
    qsort(rn->entries, rn->count, sizeof(*rn->entries), in_order);
}

/* Reads twice the time left, plus one when there is a waiter; or -1. */
static dibs_status
read_answer(const redisReply *reply, dibs__renewal *item, dibs_error *err)
{
    int64_t number;

    if (!dibs__reply_int(reply, &number) || number < -1)
        return dibs__reply_odd(err);
    item->rc = number < 0 ? DIBS_LOST : DIBS_OK;
    item->left_ms = number < 0 ? 0 : number / 2;
    item->wanted = number > 0 && number % 2 == 1;
    return number < 0 ? DIBS_OK : dibs__answer_renewal(item, err);
}

static dibs_status read_answers(const dibs__renewal_piece *pc,
                                const redisReply *reply, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < pc->count && rc == DIBS_OK; i++)
        rc = read_answer(dibs__reply_item(reply, i), pc->first[i].item, err);
    for (size_t i = 0; i < pc->count && rc == DIBS_OK; i++)
        pc->first[i].done = true;
    return rc;
}

void dibs__renewing_give_up(dibs__renewing *rn, const dibs__renewal_piece *pc,
                            dibs_status rc)
{
    for (size_t i = 0; i < pc->count; i++) {
        if (pc->first[i].done)
            continue;
        pc->first[i].item->rc = rc;
        pc->first[i].item->left_ms = 0;
        pc->first[i].item->wanted = false;
        pc->first[i].done = true;
        rn->failed++;
    }
    rn->unsure = rn->unsure || rc == DIBS_UNKNOWN;
}

static void take_in(dibs__renewing *rn, const dibs__renewal_piece *pc,
                    const redisReply *reply, dibs__loan *loan)
{
    dibs_status rc = read_answers(pc, reply, &rn->why);

    if (rc == DIBS_OK)
        return;
    dibs__step_distrust(rn->rd->renewals, pc->first->item->name, loan);
    dibs__renewing_give_up(rn, pc, rc);
}

dibs__renewal_piece
dibs__renewing_piece_at(const dibs__renewing *rn, dibs__renewal_entry *first)
{
    const dibs__renewal_entry *end = rn->entries + rn->count;
    dibs__renewal_piece pc = {.first = first};

    while (first + pc.count < end && pc.count < DIBS__RENEWAL_BATCH &&
           first[pc.count].slot == first->slot &&
           dibs__renewal_awaits_replicas(&first[pc.count]) ==
               dibs__renewal_awaits_replicas(first))
        pc.count++;
    return pc;
}

static void write_words(dibs__renewing *rn, const dibs__renewal_piece *pc)
{
    dibs__renewal_sheet *sh = rn->sheet;

    snprintf(sh->key_count, sizeof(sh->key_count), "%zu",
             1 + DIBS__KEYS * pc->count);
    dibs__script_begin(&sh->words, DIBS__SCRIPT_renew, sh->key_count);
    dibs__words_puts(&sh->words, DIBS__KEY_FENCE);
    for (size_t i = 0; i < pc->count; i++) {
        dibs__keys_of(pc->first[i].item->name, &sh->keys[i]);
        dibs__keys_add(&sh->keys[i], &sh->words);
    }
    for (size_t i = 0; i < pc->count; i++) {
        const dibs__renewal *item = pc->first[i].item;

        dibs__words_puts(&sh->words, item->owner);
        dibs__words_number(&sh->words, (int64_t)item->fence, sh->fences[i]);
        dibs__words_number(&sh->words, dibs__step_span(item->ttl_ms),
                           sh->ttls[i]);
    }
    dibs__words_puts(&sh->words, dibs__redis_doorbell_address(&rn->rd->bell));
}

/* Encodes the scripts for a server that were not sent yet: their number. */
static int
gather_scripts(dibs__renewing *rn, int server, dibs__renewal_piece *pieces)
{
    int count = 0;
    dibs__renewal_piece pc;

    dibsx_buf_reset(&rn->bytes);
    for (size_t i = 0; i < rn->count && count < TOGETHER; i += pc.count) {
        pc = dibs__renewing_piece_at(rn, &rn->entries[i]);
        if (pc.first->sent || dibs__renewal_awaits_replicas(pc.first) ||
            pc.first->server != server)
            continue;
        for (size_t j = 0; j < pc.count; j++)
            pc.first[j].sent = true;
        write_words(rn, &pc);
        if (dibs__script_append(rn->rd->renewals, &rn->sheet->words, &rn->bytes,
                                &rn->why) == DIBS_OK)
            pieces[count++] = pc;
        else
            dibs__renewing_give_up(rn, &pc, rn->why.status);
    }
    return count;
}

static void note_error(dibs__renewal_entry *first, const char *error)
{
    first->answered = true;
    first->stuck =
        strncmp(error, "TRYAGAIN ", 9) == 0 || strncmp(error, "ASK ", 4) == 0;
}

void dibs__renewing_send_to(dibs__renewing *rn, int server, dibsx_nsec until)
{
    dibs__renewal_piece pieces[TOGETHER];
    redisReply *replies[TOGETHER];
    int count = gather_scripts(rn, server, pieces);
    dibs_status rc;

    if (count == 0)
        return;
    rc = dibs__route_unit(rn->rd->renewals, pieces[0].first->slot,
                          rn->bytes.data, rn->bytes.len, count, until, replies,
                          &rn->why);
    for (int i = 0; i < count; i++) {
        if (rc != DIBS_OK) {
            /* Nothing was sent: the next of its servers may be better. */
            if (rc != DIBS_UNAVAIL || !rn->rd->cluster)
                dibs__renewing_give_up(rn, &pieces[i], rc);
            continue;
        }
        if (replies[i]->type != REDIS_REPLY_ERROR)
            take_in(rn, &pieces[i], replies[i], NULL);
        else
            note_error(pieces[i].first, replies[i]->str);
        dibs__reply_free(replies[i]);
    }
}

void dibs__renewing_confirm(dibs__renewing *rn, dibs__renewal_entry *first,
                            size_t count, dibs__loan *loan)
{
    uint32_t most = 0, acked;
    int64_t ttl_ms = INT64_MAX;
    dibs_status rc;

    for (size_t i = 0; i < count; i++) {
        const dibs__renewal *item = first[i].item;

        if (first[i].unconfirmed && item->replicas > most)
            most = item->replicas;
        if (first[i].unconfirmed && item->ttl_ms < ttl_ms)
            ttl_ms = item->ttl_ms;
    }
    if (most == 0)
        return;
    /* Other leases may wait for the renewing thread: half as long as a
     * grant. */
    rc = dibs__replica_wait_wait(loan, most,
                                 dibs__replica_wait_patience_ms(ttl_ms / 2,
                                                                rn->deadline),
                                 rn->deadline, &acked, &rn->why);
    for (size_t i = 0; i < count; i++) {
        dibs__renewal *item = first[i].item;

        if (first[i].unconfirmed && item->rc == DIBS_OK &&
            (rc != DIBS_OK || acked < item->replicas)) {
            item->rc = rc == DIBS_OK ? DIBS_UNKNOWN : rc;
            rn->failed += rc != DIBS_OK;
            rn->unsure = true;
        }
        first[i].unconfirmed = false;
    }
}

dibs_status dibs__renewing_run_sheet(dibs__renewing *rn, dibs__script script,
                                     bool awaits_replicas, dibsx_nsec until,
                                     dibs__loan *shared, dibs__loan *loan,
                                     redisReply **reply)
{
    dibs__words *words = &rn->sheet->words;

    if (awaits_replicas && shared)
        return dibs__replica_wait_run_on(shared, script, words, until, loan,
                                         reply, &rn->why);
    if (awaits_replicas)
        return dibs__replica_wait_run(&rn->rd->replica_wait, script, words,
                                      until, loan, reply, &rn->why);
    return dibs__script_run(rn->rd->renewals, script, words, until, reply,
                            &rn->why);
}

dibs_status
dibs__renewing_run(dibs__renewing *rn, const dibs__renewal_piece *pc,
                   dibs__loan *shared, dibsx_nsec until)
{
    bool awaits_replicas = dibs__renewal_awaits_replicas(pc->first);
    bool first = shared && !shared->cn;
    dibs__loan own = {.cn = NULL};
    redisReply *reply = NULL;
    dibs_status rc;

    write_words(rn, pc);
    rc = dibs__renewing_run_sheet(rn, DIBS__SCRIPT_renew, awaits_replicas,
                                  until, first ? NULL : shared,
                                  first ? shared : &own, &reply);
    if (rc == DIBS_OK) {
        take_in(rn, pc, reply, own.cn ? &own : shared);
        for (size_t i = 0; i < pc->count; i++)
            pc->first[i].unconfirmed = awaits_replicas;
    }
    if (own.cn)
        dibs__renewing_confirm(rn, pc->first, pc->count, &own);
    dibs__replica_wait_done(&own);
    dibs__reply_free(reply);
    return rc;
}
