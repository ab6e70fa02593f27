/* renew.c - the lease step that renews many leases, with few scripts.
 *
 * Any thread. Renewals have a lane of their own. A script renews leases of one
 * slot, or any when there is no cluster; the scripts for one server are sent
 * together. A server of a cluster that does not answer costs the leases of the
 * others a part of their time only, and is asked last the next time. What replicas
 * must have comes last of all, as it may take long. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Leases renewed by one script: few enough that others do not wait for long. Each
 * has four keys and three words. */
enum { BATCH = 36 };
_Static_assert(6 + 7 * BATCH <= DIBS__WORDS_MAX, "they fit into a command");

/* Scripts sent together, and their bytes. */
enum { TOGETHER = 64, TOGETHER_BYTES = 8 << 20 };

/* In a cluster one server may take this part of the shortest ttl, but has at least
 * this long. */
enum { PATIENCE_PART = 6, PATIENCE_MS = 50 };

/* The words of one script and what they are made of. */
typedef struct sheet {
    dibs__words words;
    dibs__keys keys[BATCH];
    char fences[BATCH][DIBS__NUMBER_MAX];
    char ttls[BATCH][DIBS__NUMBER_MAX];
    char key_count[DIBS__NUMBER_MAX];
} sheet;

typedef struct entry {
    dibs__renewal *item;
    int slot; /* both are 0 when there is no cluster */
    int server;
    bool failing; /* the server has failed the last time */
    bool sent;
    bool answered; /* of the first of a script: with an error, */
    bool stuck;    /* ... because its slot is being moved */
    bool done;
} entry;

/* A script: entries that are next to each other. */
typedef struct piece {
    entry *first;
    size_t count;
} piece;

/* Renewals under way. */
typedef struct rounds {
    dibs__redis *rd;
    entry *entries;
    size_t count;
    int64_t
        patience_ms; /* for one server; negative: as long as there is time */
    dibsx_nsec deadline;
    sheet *sheet;
    dibsx_buf bytes;
    size_t failed;
    bool unsure;    /* one of them may have been renewed */
    dibs_error why; /* the last one failed */
} rounds;

/* Replicas must have it too. */
static bool is_durable(const entry *at)
{
    return at->item->replicas > 0;
}

static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (is_durable(x) != is_durable(y))
        return is_durable(x) - is_durable(y);
    return x->failing != y->failing ? x->failing - y->failing
                                    : x->slot - y->slot;
}

/* Twice the time left, plus one when somebody waits; or -1. */
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

static dibs_status
read_answers(const piece *pc, const redisReply *reply, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < pc->count && rc == DIBS_OK; i++)
        rc = read_answer(dibs__reply_item(reply, i), pc->first[i].item, err);
    for (size_t i = 0; i < pc->count && rc == DIBS_OK; i++)
        pc->first[i].done = true;
    return rc;
}

/* Those had no answer. */
static void give_up(rounds *rn, const piece *pc, dibs_status rc)
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

static void
take_in(rounds *rn, const piece *pc, const redisReply *reply, dibs__loan *loan)
{
    dibs_status rc = read_answers(pc, reply, &rn->why);

    if (rc == DIBS_OK)
        return;
    dibs__step_distrust(rn->rd->renewals, pc->first->item->name, loan);
    give_up(rn, pc, rc);
}

/* As many as one script can do, from `first` on. */
static piece piece_at(const rounds *rn, entry *first)
{
    const entry *end = rn->entries + rn->count;
    piece pc = {.first = first};

    while (first + pc.count < end && pc.count < BATCH &&
           first[pc.count].slot == first->slot &&
           is_durable(&first[pc.count]) == is_durable(first))
        pc.count++;
    return pc;
}

static void write_words(rounds *rn, const piece *pc)
{
    sheet *sh = rn->sheet;

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
    dibs__words_puts(&sh->words, dibs__redis_bell_address(&rn->rd->bell));
}

static dibsx_nsec patience(const rounds *rn)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), rn->patience_ms);

    return until < rn->deadline ? until : rn->deadline;
}

/* Puts the scripts for a server that were not sent yet together: their number. */
static int gather(rounds *rn, int server, piece *pieces)
{
    int count = 0;
    piece pc;

    dibsx_buf_reset(&rn->bytes);
    for (size_t i = 0; i < rn->count && count < TOGETHER; i += pc.count) {
        pc = piece_at(rn, &rn->entries[i]);
        if (pc.first->sent || is_durable(pc.first) ||
            pc.first->server != server)
            continue;
        for (size_t j = 0; j < pc.count; j++)
            pc.first[j].sent = true;
        write_words(rn, &pc);
        if (dibs__script_append(rn->rd->renewals, &rn->sheet->words, &rn->bytes,
                                &rn->why) == DIBS_OK)
            pieces[count++] = pc;
        else
            give_up(rn, &pc, rn->why.status);
    }
    return count;
}

static void note_error(entry *first, const char *error)
{
    first->answered = true;
    first->stuck =
        strncmp(error, "TRYAGAIN ", 9) == 0 || strncmp(error, "ASK ", 4) == 0;
}

/* Sends the scripts for a server together. Who is referred elsewhere, or meets
 * another error, is left for later. */
static void send_to(rounds *rn, int server)
{
    piece pieces[TOGETHER];
    redisReply *replies[TOGETHER];
    int count = gather(rn, server, pieces);
    dibs_status rc;

    if (count == 0)
        return;
    rc = dibs__route_unit(rn->rd->renewals, pieces[0].first->slot,
                          rn->bytes.data, rn->bytes.len, count, patience(rn),
                          replies, &rn->why);
    for (int i = 0; i < count; i++) {
        if (rc != DIBS_OK) {
            /* Nothing was sent: the next of its servers may be better. */
            if (rc != DIBS_UNAVAIL || !rn->rd->cluster)
                give_up(rn, &pieces[i], rc);
            continue;
        }
        if (replies[i]->type != REDIS_REPLY_ERROR)
            take_in(rn, &pieces[i], replies[i], NULL);
        else
            note_error(pieces[i].first, replies[i]->str);
        dibs__reply_free(replies[i]);
    }
}

/* A renewal that too few replicas have may be lost, so that the lease is no longer
 * than it was. */
static void confirm(rounds *rn, const piece *pc, dibs__loan *loan)
{
    uint32_t most = 0, acked;
    int64_t ttl_ms = INT64_MAX;
    dibs_status rc;

    for (size_t i = 0; i < pc->count; i++) {
        const dibs__renewal *item = pc->first[i].item;

        most = item->replicas > most ? item->replicas : most;
        ttl_ms = item->ttl_ms < ttl_ms ? item->ttl_ms : ttl_ms;
    }
    /* Others may wait for the thread that renews: half as long as a grant. */
    rc = dibs__durable_wait(loan, most,
                            dibs__durable_patience_ms(ttl_ms / 2, rn->deadline),
                            rn->deadline, &acked, &rn->why);
    for (size_t i = 0; i < pc->count; i++) {
        dibs__renewal *item = pc->first[i].item;

        if (item->rc != DIBS_OK || (rc == DIBS_OK && acked >= item->replicas))
            continue;
        item->rc = rc == DIBS_OK ? DIBS_UNKNOWN : rc;
        rn->failed += rc != DIBS_OK;
        rn->unsure = true;
    }
}

/* Runs the script of the sheet: where replicas must have what it does, on a
 * connection of its own, which is then lent. */
static dibs_status
run_sheet(rounds *rn, dibs__script script, bool durable, dibsx_nsec until,
          dibs__loan *loan, redisReply **reply)
{
    dibs__words *words = &rn->sheet->words;

    if (durable)
        return dibs__durable_run(&rn->rd->durable, script, words, until, loan,
                                 reply, &rn->why);
    return dibs__script_run(rn->rd->renewals, script, words, until, reply,
                            &rn->why);
}

static void write_keep(rounds *rn, const dibs__renewal *item)
{
    sheet *sh = rn->sheet;

    dibs__keys_of(item->name, &sh->keys[0]);
    dibs__script_begin(&sh->words, DIBS__SCRIPT_keep, "1");
    dibs__words_add(&sh->words, sh->keys[0].key[0], sh->keys[0].len[0]);
    dibs__words_puts(&sh->words, item->owner);
    dibs__words_number(&sh->words, (int64_t)item->fence, sh->fences[0]);
    dibs__words_number(&sh->words, dibs__step_span(item->ttl_ms), sh->ttls[0]);
}

/* Renews one by the key of its lock alone, which is always in one place. False when
 * that cannot tell. */
static bool keep_one(rounds *rn, entry *at, dibsx_nsec until)
{
    const piece pc = {.first = at, .count = 1};
    dibs__loan loan = {.cn = NULL};
    redisReply *reply = NULL;
    dibs__renewal kept = *at->item;

    write_keep(rn, at->item);
    if (run_sheet(rn, DIBS__SCRIPT_keep, is_durable(at), until, &loan,
                  &reply) == DIBS_OK &&
        dibs__reply_int(reply, &kept.left_ms) &&
        dibs__answer_renewal(&kept, &rn->why) == DIBS_OK) {
        at->item->rc = DIBS_OK;
        at->item->left_ms = kept.left_ms;
        at->item->wanted = false;
        at->done = true;
        if (is_durable(at))
            confirm(rn, &pc, &loan);
    }
    dibs__reply_free(reply);
    dibs__durable_done(&loan);
    return at->done;
}

/* A slot may take long to be moved, and meanwhile lets no script in that has
 * several keys. True when all of the piece were kept without. */
static bool keep_all(rounds *rn, const piece *pc, dibsx_nsec until)
{
    bool all = true;

    for (size_t i = 0; i < pc->count; i++)
        all = keep_one(rn, &pc->first[i], until) && all;
    return all;
}

/* Runs a script for itself: it goes where it is referred to, and brings its text
 * along. */
static void run_alone(rounds *rn, const piece *pc, dibsx_nsec until)
{
    bool durable = is_durable(pc->first);
    dibs__loan loan = {.cn = NULL};
    redisReply *reply = NULL;
    dibs_status rc;

    write_words(rn, pc);
    rc = run_sheet(rn, DIBS__SCRIPT_renew, durable, until, &loan, &reply);
    if (rc == DIBS_OK) {
        take_in(rn, pc, reply, &loan);
        if (durable)
            confirm(rn, pc, &loan);
    } else if (!durable || rc != DIBS_UNAVAIL || !rn->rd->cluster ||
               !keep_all(rn, pc, patience(rn))) {
        give_up(rn, pc, rc);
    }
    dibs__durable_done(&loan);
    dibs__reply_free(reply);
}

/* Runs those that are left, one by one: first those that a server answered, then
 * those whose server did not, for which there is what is left of its time. */
static void run_rest(rounds *rn, bool answered, dibsx_nsec until)
{
    piece pc;

    for (size_t i = 0; i < rn->count; i += pc.count) {
        pc = piece_at(rn, &rn->entries[i]);
        if (pc.first->done || is_durable(pc.first) ||
            pc.first->answered != answered)
            continue;
        if (answered)
            until = patience(rn);
        if (!pc.first->stuck || !keep_all(rn, &pc, until))
            run_alone(rn, &pc, until);
    }
}

static void run_all(rounds *rn)
{
    dibsx_nsec until = patience(rn), least;
    piece pc;

    for (size_t i = 0; i < rn->count; i++)
        if (!rn->entries[i].sent && !is_durable(&rn->entries[i]))
            send_to(rn, rn->entries[i].server);
    run_rest(rn, true, until);
    least = dibsx_after_ms(dibsx_now(), PATIENCE_MS);
    until = until > least ? until : least;
    run_rest(rn, false, until < rn->deadline ? until : rn->deadline);
    for (size_t i = 0; i < rn->count; i += pc.count) {
        pc = piece_at(rn, &rn->entries[i]);
        if (is_durable(pc.first))
            run_alone(rn, &pc, patience(rn));
    }
}

/* Finds out where each belongs, as far as that is known, and brings them in
 * order. */
static void sort_out(rounds *rn, dibs__renewal *items)
{
    dibs__cluster *cl = rn->rd->cluster;
    int64_t shortest_ms = INT64_MAX;
    dibs__keys *keys = rn->sheet->keys;
    bool mixed = cl != NULL;

    for (size_t i = 0; i < rn->count; i++) {
        entry *at = &rn->entries[i];

        at->item = &items[i];
        if (items[i].ttl_ms < shortest_ms)
            shortest_ms = items[i].ttl_ms;
        mixed = mixed || is_durable(at) != is_durable(&rn->entries[0]);
        if (!cl)
            continue;
        dibs__keys_of(items[i].name, keys);
        at->slot = dibs__slot_of(keys->key[0], keys->len[0]);
        at->server = dibs__cluster_standing(cl, at->slot, &at->failing);
    }
    rn->patience_ms = -1;
    if (mixed)
        qsort(rn->entries, rn->count, sizeof(*rn->entries), in_order);
    if (cl) {
        rn->patience_ms = shortest_ms / PATIENCE_PART;
        if (rn->patience_ms < PATIENCE_MS)
            rn->patience_ms = PATIENCE_MS;
    }
}

dibs_status
dibs__redis_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
                  dibsx_nsec deadline, dibs_error *err)
{
    rounds rn = {.rd = dibs__redis_of(st),
                 .count = count,
                 .deadline = deadline};
    dibs_status rc = DIBS_OK;

    if (count == 0)
        return rc;
    dibsx_buf_init(&rn.bytes, TOGETHER_BYTES);
    rn.entries = dibsx_zalloc_n(count, sizeof(*rn.entries));
    rn.sheet = dibsx_zalloc(sizeof(*rn.sheet));
    if (!rn.entries || !rn.sheet)
        rc = dibsx_nomem(err, "a batch of renewals");
    if (rc == DIBS_OK) {
        sort_out(&rn, items);
        run_all(&rn);
    }
    /* Each has its own outcome, unless all have failed. */
    if (rc == DIBS_OK && rn.failed == count)
        rc = dibsx_fail_at(err, rn.unsure ? DIBS_UNKNOWN : rn.why.status,
                           rn.why.origin, "%s", rn.why.message);
    dibsx_free(rn.sheet);
    dibsx_free(rn.entries);
    dibsx_buf_fini(&rn.bytes);
    return rc;
}
