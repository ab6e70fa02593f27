/* queue_bare_redis.c - queues as a bare driver has them on Redis: a list, a stream. */
/* SPDX-License-Identifier: MIT */
#include "bench/queue_bare.h"
#include "bench/samples.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 16, WORDS_MAX = 8 + BATCH_MAX };

/* A take that is on the way, and whether it acknowledges by now. */
typedef struct flight {
    bool acks;
    char id[BATCH_MAX][64]; /* of a stream; of a list the item */
    int count;
} flight;

struct bare {
    redisContext *context;
    char data[BARE_BYTES + 1];
    flight flights[BARE_FLYING];
};

static redisReply *read_reply(bare *b)
{
    void *reply = NULL;

    if (redisGetReply(b->context, &reply) != REDIS_OK)
        give_up("bare", b->context->errstr);
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
        give_up("bare", ((redisReply *)reply)->str);
    return reply;
}

static void send_words(bare *b, int count, const char **words)
{
    if (redisAppendCommandArgv(b->context, count, words, NULL) != REDIS_OK)
        give_up("bare", b->context->errstr);
}

static void drop_reply(bare *b)
{
    freeReplyObject(read_reply(b));
}

static bare *open_bare(const char *url)
{
    bare *b = calloc(1, sizeof(*b));
    const char *at = strrchr(url, ':');

    if (!b || !at)
        give_up("bare", "takes redis://127.0.0.1:PORT");
    b->context = redisConnect("127.0.0.1", (int)strtol(at + 1, NULL, 10));
    if (!b->context || b->context->err)
        give_up("connect", b->context ? b->context->errstr : "out of memory");
    memset(b->data, 'x', BARE_BYTES);
    send_words(b, 4,
               (const char *[]){"DEL", "bench-list", "bench-work",
                                "bench-stream"});
    drop_reply(b);
    return b;
}

static void close_bare(bare *b)
{
    redisFree(b->context);
    free(b);
}

/* ---- a list */

static void send_lpush(bare *b, int batch)
{
    const char *words[WORDS_MAX] = {"LPUSH", "bench-list"};

    for (int i = 0; i < batch; i++)
        words[2 + i] = b->data;
    send_words(b, 2 + batch, words);
}

static void push_list(bare *b, int flying, int times, int batch)
{
    int sent = 0;

    for (; sent < flying && sent < times; sent++)
        send_lpush(b, batch);
    for (int i = 0; i < times; i++) {
        drop_reply(b);
        if (sent++ < times)
            send_lpush(b, batch);
    }
}

static void send_pop(bare *b)
{
    send_words(b, 3, (const char *[]){"RPOPLPUSH", "bench-list", "bench-work"});
}

/* Answers come in the order of the requests, so each flight is asked in its turn. */
static void take_list(bare *b, int flying, int times, int batch)
{
    int begun = 0, left = times * batch;

    times *= batch;
    for (; begun < flying && begun < times; begun++) {
        b->flights[begun].acks = false;
        send_pop(b);
    }
    flying = begun;
    for (int at = 0; left > 0; at = (at + 1) % flying) {
        flight *fl = &b->flights[at];

        if (fl->count < 0)
            continue;
        if (!fl->acks) {
            redisReply *reply = read_reply(b);

            if (reply->type != REDIS_REPLY_STRING)
                give_up("bare", "the list is empty");
            send_words(b, 4,
                       (const char *[]){"LREM", "bench-work", "1", reply->str});
            freeReplyObject(reply);
            fl->acks = true;
            continue;
        }
        drop_reply(b);
        left--;
        fl->acks = false;
        if (begun < times) {
            begun++;
            send_pop(b);
        } else {
            fl->count = -1;
        }
    }
    for (int i = 0; i < flying; i++)
        b->flights[i].count = 0;
}

const bare_ops bare_list = {open_bare, close_bare, push_list, take_list};

/* ---- a stream */

static bare *open_stream(const char *url)
{
    bare *b = open_bare(url);

    send_words(b, 6,
               (const char *[]){"XGROUP", "CREATE", "bench-stream", "bench",
                                "$", "MKSTREAM"});
    drop_reply(b);
    return b;
}

static void send_xadd(bare *b, int batch)
{
    for (int i = 0; i < batch; i++)
        send_words(b, 5,
                   (const char *[]){"XADD", "bench-stream", "*", "d", b->data});
}

static void push_stream(bare *b, int flying, int times, int batch)
{
    int sent = 0;

    for (; sent < flying && sent < times; sent++)
        send_xadd(b, batch);
    for (int i = 0; i < times; i++) {
        for (int k = 0; k < batch; k++)
            drop_reply(b);
        if (sent++ < times)
            send_xadd(b, batch);
    }
}

static void send_read(bare *b, int batch)
{
    send_words(b, 9,
               (const char *[]){"XREADGROUP", "GROUP", "bench", "me", "COUNT",
                                batch == 1 ? "1" : "16", "STREAMS",
                                "bench-stream", ">"});
}

static void read_entries(flight *fl, const redisReply *reply, int batch)
{
    const redisReply *list;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1)
        give_up("bare", "the stream is empty");
    list = reply->element[0]->element[1];
    fl->count = (int)list->elements;
    if (fl->count != batch)
        give_up("bare", "the stream has too few entries");
    for (int i = 0; i < batch; i++)
        strncpy(fl->id[i], list->element[i]->element[0]->str,
                sizeof(fl->id[i]) - 1);
}

static void send_acks(bare *b, const flight *fl)
{
    const char *ack[WORDS_MAX] = {"XACK", "bench-stream", "bench"};
    const char *del[WORDS_MAX] = {"XDEL", "bench-stream"};

    for (int i = 0; i < fl->count; i++)
        ack[3 + i] = del[2 + i] = fl->id[i];
    send_words(b, 3 + fl->count, ack);
    send_words(b, 2 + fl->count, del);
}

static void take_stream(bare *b, int flying, int times, int batch)
{
    int begun = 0, left = times;

    for (; begun < flying && begun < times; begun++) {
        b->flights[begun].acks = false;
        b->flights[begun].count = 0;
        send_read(b, batch);
    }
    flying = begun;
    for (int at = 0; left > 0; at = (at + 1) % flying) {
        flight *fl = &b->flights[at];

        if (fl->count < 0)
            continue;
        if (!fl->acks) {
            redisReply *reply = read_reply(b);

            read_entries(fl, reply, batch);
            freeReplyObject(reply);
            send_acks(b, fl);
            fl->acks = true;
            continue;
        }
        drop_reply(b);
        drop_reply(b);
        left--;
        fl->acks = false;
        if (begun < times) {
            begun++;
            send_read(b, batch);
        } else {
            fl->count = -1;
        }
    }
    for (int i = 0; i < flying; i++)
        b->flights[i].count = 0;
}

const bare_ops bare_stream = {open_stream, close_bare, push_stream,
                              take_stream};

/* A number of what INFO says of a part of the server. */
static double info(bare *b, const char *part, const char *name)
{
    redisReply *reply;
    const char *at;
    double number;

    send_words(b, 2, (const char *[]){"INFO", part});
    reply = read_reply(b);
    at = strstr(reply->str, name);
    if (!at)
        give_up("INFO lacks", name);
    number = strtod(at + strlen(name), NULL);
    freeReplyObject(reply);
    return number;
}

long long bare_redis_bytes(bare *b)
{
    return (long long)info(b, "memory", "used_memory:");
}

double bare_redis_cpu_ms(bare *b)
{
    return 1e3 *
           (info(b, "cpu", "used_cpu_user:") + info(b, "cpu", "used_cpu_sys:"));
}
