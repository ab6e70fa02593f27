/* queue.c - the queue steps of clients: push, reserve, tend, leave, each a script. Plain
 * pushes and reserves have short scripts; when one finds that it will not do, it has
 * done nothing, and the long one follows.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/deliver.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/cluster/spread.h"
#include "store/redis/queue_words.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PLAIN_MAX = 1024, /* bytes of a plain item, as in the scripts */
    AGAIN = 8         /* the short way is tried again after so many */
};

enum { PUSHES, RESERVES };

static atomic_uchar *way_of(dibs__redis *rd, int kind, const char *queue)
{
    uint32_t hash = 2166136261u;

    for (; *queue; queue++)
        hash = (hash ^ (unsigned char)*queue) * 16777619u;
    return &rd->queue_ways[kind][hash % DIBS__QUEUE_WAYS];
}

/* A wrong guess costs a round trip, and nothing else. */
static bool is_short_way(atomic_uchar *way)
{
    unsigned char left = atomic_load(way);

    if (left == 0)
        return true;
    atomic_store(way, (unsigned char)(left - 1));
    return false;
}

static bool is_slow(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "slow") == 0;
}

static dibs_status fail_lost(dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "the lane has ended, or the number is over");
}

static dibs_status fail_other(const char *what, dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID,
                      "another %s had this number of the lane", what);
}

static void distrust_queue(dibs__redis *rd, const dibs__queue_names *names)
{
    const char *key = names->key[DIBS__QUEUE_LIST];

    dibs__route_distrust(rd->steps, key, strlen(key));
}

/* ---- replicas */

/* Runs a script, on a connection of its own if replicas must acknowledge it. End with
 * dibs__replica_wait_done(). */
static dibs_status
run_script(dibs__redis *rd, dibs__script script, dibs__words *words,
           uint32_t replicas, dibsx_nsec deadline, dibs__loan *loan,
           redisReply **out, dibs_error *err)
{
    *loan = (dibs__loan){.cn = NULL};
    return replicas > 0
               ? dibs__replica_wait_run(&rd->replica_wait, script, words,
                                        deadline, loan, out, err)
               : dibs__script_run(rd->steps, script, words, deadline, out, err);
}

/* Nothing is taken back: another consumer may have it already. */
static dibs_status
confirm_replicas(dibs__loan *loan, uint32_t replicas, const char *what,
                 const char *queue, dibsx_nsec deadline, dibs_error *err)
{
    int64_t limit_ms =
        dibs__replica_wait_patience_ms(DIBS__LEASE_MAX_MS, deadline);
    uint32_t acked = 0;
    dibs_status rc;

    if (replicas == 0)
        return DIBS_OK;
    rc = dibs__replica_wait_wait(loan, replicas, limit_ms, deadline, &acked,
                                 err);
    if (rc != DIBS_OK)
        return dibsx_unanswered(err);
    if (acked >= replicas)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_UNKNOWN,
                      "%s of `%s` was acknowledged by %u of %u replicas", what,
                      queue, (unsigned)acked, (unsigned)replicas);
}

/* ---- push */

static void clear_push(const dibs__push *push)
{
    for (size_t i = 0; i < push->count; i++) {
        push->items[i].id = 0;
        push->items[i].duplicate = false;
    }
}

static bool is_plain_push(const dibs__push *push)
{
    for (size_t i = 0; i < push->count; i++) {
        const dibs__push_item *item = &push->items[i];

        if (item->delay_ms || item->priority || item->tries || item->to[0] ||
            item->dedup[0] || item->len > PLAIN_MAX)
            return false;
    }
    return push->number > 1;
}

static void add_data(dibs__words *words, const dibs__push_item *item)
{
    dibs__words_add(words, item->len > 0 ? item->data : "", item->len);
}

/* The words that all pushes begin with. */
typedef struct push_head {
    char lane[DIBS__LANE_WORD];
    char number[DIBS__NUMBER_MAX];
    char kept[DIBS__NUMBER_MAX];
} push_head;

static void
add_head(dibs__words *words, const dibs__push *push, push_head *room)
{
    dibs__lane_word(push->lane, room->lane);
    dibs__words_puts(words, room->lane);
    dibs__words_number(words, (int64_t)push->number, room->number);
    dibs__words_number(words, DIBS__PUSH_KEPT_MS, room->kept);
}

/* DIBS_BUSY: use the long script. */
static dibs_status push_plain(dibs__redis *rd, const dibs__push *push,
                              dibsx_nsec deadline, dibs_error *err)
{
    static const dibs__queue_key keys[] = {DIBS__QUEUE_LIST, DIBS__QUEUE_META,
                                           DIBS__QUEUE_WAIT, DIBS__QUEUE_OUT,
                                           DIBS__QUEUE_FROM};
    redisReply *reply = NULL;
    dibs__queue_names names;
    push_head head;
    dibs__words words;
    dibs__loan loan;
    int64_t first;
    dibs_status rc;

    dibs__keys_of_queue(push->queue, &names);
    dibs__script_begin(&words, DIBS__SCRIPT_queue_push, "5");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        dibs__words_puts(&words, names.key[keys[i]]);
    add_head(&words, push, &head);
    for (size_t i = 0; i < push->count; i++)
        add_data(&words, &push->items[i]);
    rc = run_script(rd, DIBS__SCRIPT_queue_push, &words, push->replicas,
                    deadline, &loan, &reply, err);
    if (rc != DIBS_OK)
        return rc;
    if (is_slow(reply)) {
        rc = DIBS_BUSY;
    } else if (dibs__reply_int(reply, &first) && first > 0) {
        for (size_t i = 0; i < push->count; i++)
            push->items[i].id = (uint64_t)first + i;
        rc = confirm_replicas(&loan, push->replicas, "a push", push->queue,
                              deadline, err);
    } else {
        distrust_queue(rd, &names);
        rc = dibs__reply_odd(err);
    }
    dibs__reply_free(reply);
    dibs__replica_wait_done(&loan);
    return rc;
}

enum { SPEC_MAX = 5 * DIBS__NUMBER_MAX + DIBS__WORKER_MAX + DIBS__DEDUP_MAX };

typedef char item_spec[SPEC_MAX];

static void write_spec(const dibs__push_item *item, item_spec out)
{
    snprintf(out, SPEC_MAX, "%" PRId64 " %d %u %" PRId64 " %zu %s%s",
             dibs__step_span(item->delay_ms), (int)item->priority,
             (unsigned)item->tries, dibs__step_span(item->dedup_ms),
             strlen(item->to), item->to, item->dedup);
}

static bool read_pushed(const redisReply *reply, dibs__push_item *item)
{
    char text[DIBS__NUMBER_MAX];
    unsigned long long id;
    char mark = '\0';

    dibs__reply_text(reply, text, sizeof(text));
    if (sscanf(text, "%llu%c", &id, &mark) < 1 || id == 0)
        return false;
    item->id = id;
    item->duplicate = mark == 'd';
    return true;
}

static dibs_status
judge_push(const dibs__push *push, const redisReply *reply, dibs_error *err)
{
    int status = dibs__reply_status(reply);

    if (status == DIBS_LOST)
        return fail_lost(err);
    if (status == DIBS_INVALID)
        return fail_other("push", err);
    if (status == DIBS_FULL)
        return dibs__queue_full(reply, err);
    if (status != DIBS_OK)
        return dibs__reply_odd(err);
    for (size_t i = 0; i < push->count; i++)
        if (!read_pushed(dibs__reply_item(reply, 1 + i), &push->items[i]))
            return dibs__reply_odd(err);
    return DIBS_OK;
}

static dibs_status push_any(dibs__redis *rd, const dibs__push *push,
                            dibsx_nsec deadline, dibs_error *err)
{
    item_spec *specs = dibsx_zalloc_n(push->count, sizeof(*specs));
    redisReply *reply = NULL;
    dibs__queue_names names;
    push_head head;
    dibs__words words;
    dibs__loan loan;
    dibs_status rc;

    if (!specs)
        return dibsx_nomem(err, "a push");
    dibs__queue_begin(&words, DIBS__SCRIPT_queue_put, push->queue, &names);
    add_head(&words, push, &head);
    for (size_t i = 0; i < push->count; i++) {
        write_spec(&push->items[i], specs[i]);
        dibs__words_puts(&words, specs[i]);
        add_data(&words, &push->items[i]);
    }
    rc = run_script(rd, DIBS__SCRIPT_queue_put, &words, push->replicas,
                    deadline, &loan, &reply, err);
    if (rc == DIBS_OK) {
        rc = judge_push(push, reply, err);
        if (rc == DIBS_UNKNOWN)
            distrust_queue(rd, &names);
        if (rc == DIBS_OK)
            rc = confirm_replicas(&loan, push->replicas, "a push", push->queue,
                                  deadline, err);
    }
    dibs__reply_free(reply);
    dibs__replica_wait_done(&loan);
    dibsx_free(specs);
    return rc;
}

static dibs_status push_items(struct dibs__store *st, const dibs__push *push,
                              dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    atomic_uchar *way = way_of(rd, PUSHES, push->queue);
    dibs_status rc = dibs__deliver_check_push(push, err);

    clear_push(push);
    if (rc != DIBS_OK)
        return rc;
    rc = DIBS_BUSY;
    if (is_plain_push(push) && is_short_way(way)) {
        rc = push_plain(rd, push, deadline, err);
        if (rc == DIBS_BUSY)
            atomic_store(way, AGAIN);
    }
    if (rc == DIBS_BUSY)
        rc = push_any(rd, push, deadline, err);
    if (rc != DIBS_OK)
        clear_push(push);
    return rc;
}

/* ---- reserve */

static void clear_reserve(dibs__reserve *ask, dibs_status rc)
{
    ask->stamp = 0;
    ask->due_ms = -1;
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = rc;
}

static bool is_plain_reserve(const dibs__reserve *ask)
{
    for (size_t i = 0; i < ask->settle_count; i++)
        if (ask->settle[i].verb != DIBS__ITEM_ACK)
            return false;
    return ask->number > 1 && ask->limit_ms <= 0 && ask->heard_count == 0;
}

enum { SETTLE_MAX = DIBS__TOKEN_WORD + DIBS__NUMBER_MAX + 4 };

/* The texts that the command of a reserve borrows. */
typedef struct reserve_words {
    dibs__queue_names names;
    char lane[DIBS__LANE_WORD];
    char numbers[6][DIBS__NUMBER_MAX];
    char settle[DIBS__QUEUE_BATCH][SETTLE_MAX];
    char heard[DIBS__QUEUE_BATCH * DIBS__TOKEN_WORD];
} reserve_words;

/* The words of both scripts. */
static void add_ask(dibs__redis *rd, dibs__words *words,
                    const dibs__reserve *ask, reserve_words *room)
{
    dibs__lane_word(ask->lane, room->lane);
    dibs__words_puts(words, room->lane);
    dibs__words_number(words, (int64_t)ask->number, room->numbers[0]);
    dibs__words_number(words, (int64_t)ask->seen, room->numbers[1]);
    dibs__words_number(words, dibs__step_span(ask->span_ms), room->numbers[2]);
    dibs__words_puts(words, dibs__redis_doorbell_address(&rd->bell));
    dibs__words_number(words, ask->want, room->numbers[3]);
    dibs__words_puts(words, ask->wait ? "1" : "0");
    dibs__words_number(words, ask->hands, room->numbers[4]);
}

static void write_take(dibs__redis *rd, dibs__words *words,
                       const dibs__reserve *ask, reserve_words *room)
{
    static const dibs__queue_key keys[] = {DIBS__QUEUE_LIST, DIBS__QUEUE_META,
                                           DIBS__QUEUE_OUT,  DIBS__QUEUE_WAIT,
                                           DIBS__QUEUE_KEPT, DIBS__QUEUE_LATER};

    dibs__keys_of_queue(ask->queue, &room->names);
    dibs__script_begin(words, DIBS__SCRIPT_queue_take, "6");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        dibs__words_puts(words, room->names.key[keys[i]]);
    add_ask(rd, words, ask, room);
    for (size_t i = 0; i < ask->settle_count; i++)
        dibs__words_add(words, room->settle[i],
                        dibs__item_token_write(&ask->settle[i].token,
                                               room->settle[i]));
}

static void write_heard(const dibs__reserve *ask, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < ask->heard_count; i++) {
        if (i > 0)
            out[len++] = ',';
        len += dibs__item_token_write(&ask->heard[i], out + len);
    }
    out[len] = '\0';
}

static void write_work(dibs__redis *rd, dibs__words *words,
                       const dibs__reserve *ask, reserve_words *room)
{
    static const char verbs[] = {[DIBS__ITEM_ACK] = 'a',
                                 [DIBS__ITEM_NACK] = 'n',
                                 [DIBS__ITEM_DEAD] = 'd',
                                 [DIBS__ITEM_UNBEGUN] = 'u',
                                 [DIBS__ITEM_EXTEND] = 'e'};

    dibs__queue_begin(words, DIBS__SCRIPT_queue_work, ask->queue, &room->names);
    add_ask(rd, words, ask, room);
    dibs__words_number(words,
                       ask->limit_ms > 0 ? dibs__step_span(ask->limit_ms) : 0,
                       room->numbers[5]);
    dibs__words_puts(words, ask->as);
    write_heard(ask, room->heard);
    dibs__words_puts(words, room->heard);
    for (size_t i = 0; i < ask->settle_count; i++) {
        const dibs__settlement *settle = &ask->settle[i];
        int64_t ms = settle->ms > 0 ? dibs__step_span(settle->ms) : 0;
        size_t len =
            (size_t)snprintf(room->settle[i], SETTLE_MAX, "%c %" PRId64 " ",
                             verbs[settle->verb], ms);

        len += dibs__item_token_write(&settle->token, room->settle[i] + len);
        dibs__words_add(words, room->settle[i], len);
        dibs__words_add(words, settle->reason ? settle->reason : "",
                        dibs__settle_text(settle));
    }
}

static bool read_delivery(const redisReply *reply, size_t at, bool brief,
                          dibs__delivery *out)
{
    const redisReply *data = dibs__reply_item(reply, at + (brief ? 1 : 4));
    int64_t numbers[3] = {0};

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < 3 && !brief; i++)
        if (!dibs__reply_int(dibs__reply_item(reply, at + 1 + i), &numbers[i]))
            return false;
    if (!dibs__item_token_read(dibs__reply_item(reply, at), &out->token) ||
        !data || data->type != REDIS_REPLY_STRING || numbers[0] < 0 ||
        numbers[0] > UINT32_MAX || numbers[1] < INT32_MIN ||
        numbers[1] > INT32_MAX)
        return false;
    out->lost = (uint32_t)numbers[0];
    out->priority = (int32_t)numbers[1];
    out->limit_ms = numbers[2] > 0 ? numbers[2] : 0;
    out->data = data->str;
    out->len = data->len;
    return true;
}

static bool read_results(const redisReply *reply, dibs__reserve *ask)
{
    char results[DIBS__QUEUE_BATCH + 2];

    dibs__reply_text(reply, results, sizeof(results));
    if (ask->number == 1 || (ask->settle_count == 0 && results[0] == '-'))
        results[0] = '\0';
    return dibs__settle_read(ask->settle, ask->settle_count, results);
}

/* Reads the answer of the short script (`brief`) or of the long one, and shows what was
 * delivered once all of it is known to be right. */
static dibs_status
read_answer(const redisReply *reply, bool brief, dibs__reserve *ask,
            dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    const size_t head = brief ? 2 : 4, size = brief ? 2 : 5;
    dibs__delivery delivery;
    int64_t stamp = 0;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < head ||
        (reply->elements - head) % size != 0 ||
        !dibs__reply_int(dibs__reply_item(reply, brief ? 0 : 1), &stamp) ||
        stamp <= 0 ||
        !dibs__reply_int(dibs__reply_item(reply, head - 1), &ask->due_ms) ||
        ask->due_ms < -1)
        return dibs__reply_odd(err);
    if (!brief && !read_results(dibs__reply_item(reply, 2), ask))
        return dibs__reply_odd(err);
    for (size_t at = head; at < reply->elements; at += size)
        if (!read_delivery(reply, at, brief, &delivery))
            return dibs__reply_odd(err);
    for (size_t i = 0; brief && i < ask->settle_count; i++)
        ask->settle[i].rc = DIBS_OK;
    ask->stamp = (uint64_t)stamp;
    for (size_t at = head; at < reply->elements; at += size)
        if (read_delivery(reply, at, brief, &delivery))
            each(&delivery, arg);
    return DIBS_OK;
}

/* Settlements that replicas must acknowledge. */
static uint32_t acks_of(const dibs__reserve *ask)
{
    uint32_t acks = 0;

    for (size_t i = 0; i < ask->settle_count; i++)
        acks += ask->settle[i].verb == DIBS__ITEM_ACK;
    return acks;
}

/* The deliveries stand; of the acks it is not known whether they survive a failover. */
static void
confirm_acks(dibs__loan *loan, dibs__reserve *ask, dibsx_nsec deadline)
{
    dibs_status rc = confirm_replicas(loan, ask->replicas, "an ack", ask->queue,
                                      deadline, NULL);

    for (size_t i = 0; rc != DIBS_OK && i < ask->settle_count; i++)
        if (ask->settle[i].verb == DIBS__ITEM_ACK &&
            ask->settle[i].rc == DIBS_OK)
            ask->settle[i].rc = DIBS_UNKNOWN;
}

/* One of the two scripts. DIBS_BUSY: the short one will not do. */
static dibs_status run_reserve(dibs__redis *rd, bool brief, dibs__reserve *ask,
                               dibsx_nsec deadline, dibs__delivery_fn *each,
                               void *arg, dibs_error *err)
{
    dibs__script script =
        brief ? DIBS__SCRIPT_queue_take : DIBS__SCRIPT_queue_work;
    const uint32_t replicas = acks_of(ask) > 0 ? ask->replicas : 0;
    reserve_words *room = dibsx_zalloc(sizeof(*room));
    redisReply *reply = NULL;
    dibs__words words;
    dibs__loan loan;
    dibs_status rc;

    if (!room)
        return dibsx_nomem(err, "a reserve");
    if (brief)
        write_take(rd, &words, ask, room);
    else
        write_work(rd, &words, ask, room);
    if (rd->cluster && ask->wait)
        dibs__redis_doorbell_attend(&rd->bell,
                                    dibs__slot_of(room->names.key[0],
                                                  strlen(room->names.key[0])));
    rc = run_script(rd, script, &words, replicas, deadline, &loan, &reply, err);
    if (rc == DIBS_OK) {
        int status = brief ? DIBS_OK : dibs__reply_status(reply);

        if (brief && is_slow(reply))
            rc = DIBS_BUSY;
        else if (status == DIBS_LOST)
            rc = fail_lost(err);
        else if (status == DIBS_INVALID)
            rc = fail_other("request", err);
        else
            rc = status == DIBS_OK
                     ? read_answer(reply, brief, ask, each, arg, err)
                     : dibs__reply_odd(err);
        if (rc == DIBS_UNKNOWN)
            distrust_queue(rd, &room->names);
        if (rc == DIBS_OK && replicas > 0)
            confirm_acks(&loan, ask, deadline);
    }
    dibs__reply_free(reply);
    dibs__replica_wait_done(&loan);
    dibsx_free(room);
    return rc;
}

static dibs_status
reserve_items(struct dibs__store *st, dibs__reserve *ask, dibsx_nsec deadline,
              dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    atomic_uchar *way = way_of(rd, RESERVES, ask->queue);
    dibs_status rc = dibs__deliver_check_reserve(ask, err);

    clear_reserve(ask, rc);
    if (rc != DIBS_OK)
        return rc;
    rc = DIBS_BUSY;
    if (is_plain_reserve(ask) && is_short_way(way)) {
        rc = run_reserve(rd, true, ask, deadline, each, arg, err);
        if (rc == DIBS_BUSY)
            atomic_store(way, AGAIN);
    }
    if (rc == DIBS_BUSY)
        rc = run_reserve(rd, false, ask, deadline, each, arg, err);
    if (rc != DIBS_OK)
        clear_reserve(ask, rc);
    return rc;
}

/* ---- tend and leave */

enum { TEND_KEYS = 5, TEND_PAGE = 16 };

typedef struct tend_words {
    dibs__queue_names names;
    char lane[DIBS__LANE_WORD];
    char span[DIBS__NUMBER_MAX];
} tend_words;

static void
write_tend(dibs__words *words, const dibs__tend *items, size_t count,
           tend_words *room, char key_count[DIBS__NUMBER_MAX])
{
    static const dibs__queue_key keys[TEND_KEYS] = {DIBS__QUEUE_META,
                                                    DIBS__QUEUE_LIST,
                                                    DIBS__QUEUE_OUT,
                                                    DIBS__QUEUE_NEXT,
                                                    DIBS__QUEUE_OWN};

    snprintf(key_count, DIBS__NUMBER_MAX, "%zu", TEND_KEYS * count);
    dibs__script_begin(words, DIBS__SCRIPT_queue_tend, key_count);
    for (size_t i = 0; i < count; i++) {
        dibs__keys_of_queue(items[i].queue, &room[i].names);
        for (size_t k = 0; k < TEND_KEYS; k++)
            dibs__words_puts(words, room[i].names.key[keys[k]]);
    }
    for (size_t i = 0; i < count; i++) {
        dibs__lane_word(items[i].lane, room[i].lane);
        dibs__words_puts(words, room[i].lane);
        dibs__words_number(words, dibs__step_span(items[i].span_ms),
                           room[i].span);
    }
}

static bool read_tend(const redisReply *reply, size_t i, dibs__tend *item)
{
    int64_t left_ms, ready;

    if (!dibs__reply_int(dibs__reply_item(reply, 2 * i), &left_ms) ||
        !dibs__reply_int(dibs__reply_item(reply, 2 * i + 1), &ready) ||
        left_ms < -1)
        return false;
    item->rc = left_ms < 0 ? DIBS_LOST : DIBS_OK;
    item->left_ms = left_ms < 0 ? 0 : left_ms;
    item->ready = left_ms >= 0 && ready == 1;
    return true;
}

static dibs_status tend_page(dibs__redis *rd, dibs__tend *items, size_t count,
                             dibsx_nsec deadline, dibs_error *err)
{
    tend_words *room = dibsx_zalloc_n(count, sizeof(*room));
    char key_count[DIBS__NUMBER_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;

    if (!room)
        return dibsx_nomem(err, "a batch of lanes");
    write_tend(&words, items, count, room, key_count);
    rc = dibs__script_run(rd->renewals, DIBS__SCRIPT_queue_tend, &words,
                          deadline, &reply, err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        if (!read_tend(reply, i, &items[i]))
            rc = dibs__reply_odd(err);
    dibs__reply_free(reply);
    dibsx_free(room);
    return rc;
}

/* The lanes of a step in a cluster. */
typedef struct tending {
    dibs__redis *rd;
    dibs__tend *items;
} tending;

static int slot_of_lane(void *arg, size_t i)
{
    const tending *tn = arg;
    dibs__queue_names names;

    dibs__keys_of_queue(tn->items[i].queue, &names);
    return dibs__slot_of(names.key[0], strlen(names.key[0]));
}

static dibs_status
tend_lane(void *arg, size_t i, dibsx_nsec until, dibs_error *err)
{
    const tending *tn = arg;
    dibs_status rc = tend_page(tn->rd, &tn->items[i], 1, until, err);

    if (rc != DIBS_OK)
        tn->items[i].rc = rc;
    return rc;
}

/* One server may take this part of the shortest span, but has at least this long. */
enum { PATIENCE_PART = 6, PATIENCE_MS = 50 };

static int64_t
choose_patience(const dibs__tend *items, size_t count, dibsx_nsec deadline)
{
    int64_t ms = dibsx_wait_ms(deadline, dibsx_now()) / 2;

    for (size_t i = 0; i < count; i++)
        if (items[i].span_ms / PATIENCE_PART < ms)
            ms = items[i].span_ms / PATIENCE_PART;
    return ms < PATIENCE_MS ? PATIENCE_MS : ms;
}

/* A script has one lane, as its keys are those of one slot. */
static dibs_status
tend_in_cluster(dibs__redis *rd, dibs__tend *items, size_t count,
                dibsx_nsec deadline, dibs_error *err)
{
    tending tn = {.rd = rd, .items = items};
    const dibs__spread spread = {.cluster = rd->cluster,
                                 .count = count,
                                 .patience_ms =
                                     choose_patience(items, count, deadline),
                                 .deadline = deadline,
                                 .slot = slot_of_lane,
                                 .call = tend_lane,
                                 .arg = &tn};

    return dibs__spread_run(&spread, err);
}

static dibs_status
tend_lanes(struct dibs__store *st, dibs__tend *items, size_t count,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count; i++) {
        items[i].rc = DIBS_UNAVAIL;
        items[i].left_ms = 0;
        items[i].ready = false;
    }
    if (rd->cluster)
        return tend_in_cluster(rd, items, count, deadline, err);
    for (size_t i = 0, few; i < count && rc == DIBS_OK; i += few) {
        few = count - i < TEND_PAGE ? count - i : TEND_PAGE;
        rc = tend_page(rd, items + i, few, deadline, err);
        for (size_t k = i; rc != DIBS_OK && k < i + few; k++)
            items[k].rc = rc;
    }
    return rc;
}

static dibs_status
leave_queue(struct dibs__store *st, const char *queue, uint64_t lane,
            dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char name[DIBS__LANE_WORD];
    redisReply *reply = NULL;
    dibs__queue_names names;
    dibs__words words;
    dibs_status rc;

    dibs__queue_begin(&words, DIBS__SCRIPT_queue_leave, queue, &names);
    dibs__lane_word(lane, name);
    dibs__words_puts(&words, name);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_queue_leave, &words, deadline,
                          &reply, err);
    if (rc == DIBS_OK && dibs__reply_status(reply) != DIBS_OK) {
        distrust_queue(rd, &names);
        rc = dibs__reply_odd(err);
    }
    dibs__reply_free(reply);
    return rc;
}

const dibs__queue_ops dibs__redis_queue_ops = {
    .push = push_items,
    .reserve = reserve_items,
    .tend = tend_lanes,
    .leave = leave_queue,
};
