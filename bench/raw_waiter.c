/* raw_waiter.c - a lock with a queue by the bare driver. Owns two connections. */
/* SPDX-License-Identifier: MIT */
#include "bench/raw_waiter.h"
#include "bench/samples.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

/* Six calls for both. A waiter is known by the name of its channel. */
static const char acquire[] =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', '30000') then "
    "return 1 end redis.call('RPUSH', KEYS[2], ARGV[1]) return 0";
static const char release[] =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
    "local heir = redis.call('LPOP', KEYS[2]) "
    "if heir then redis.call('SET', KEYS[1], heir, 'PX', '30000') "
    "redis.call('PUBLISH', heir, '1') "
    "else redis.call('DEL', KEYS[1]) end return 1";

struct raw_waiter {
    redisContext *asks, *listens;
    char channel[32];
    char acquire[41], release[41];
};

static redisContext *connect_to(int port)
{
    redisContext *context = redisConnect("127.0.0.1", port);

    if (!context || context->err)
        give_up("connect", context ? context->errstr : "out of memory");
    return context;
}

static redisReply *ask(redisContext *context, int count, const char **words)
{
    redisReply *reply = redisCommandArgv(context, count, words, NULL);

    if (!reply)
        give_up("server", context->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        give_up(words[0], reply->str);
    return reply;
}

static void load_script(raw_waiter *waiter, const char *text, char sha[41])
{
    const char *load[] = {"SCRIPT", "LOAD", text};
    redisReply *reply = ask(waiter->asks, 3, load);

    snprintf(sha, 41, "%s", reply->str);
    freeReplyObject(reply);
}

raw_waiter *raw_waiter_open(int port, int number)
{
    raw_waiter *waiter = calloc(1, sizeof(*waiter));
    const char *subscribe[] = {"SUBSCRIBE", NULL};

    if (!waiter)
        give_up("waiter", "out of memory");
    snprintf(waiter->channel, sizeof(waiter->channel), "bench-waiter-%d",
             number);
    waiter->asks = connect_to(port);
    waiter->listens = connect_to(port);
    load_script(waiter, acquire, waiter->acquire);
    load_script(waiter, release, waiter->release);
    subscribe[1] = waiter->channel;
    freeReplyObject(ask(waiter->listens, 2, subscribe));
    return waiter;
}

void raw_waiter_close(raw_waiter *waiter)
{
    redisFree(waiter->asks);
    redisFree(waiter->listens);
    free(waiter);
}

static long long run_script(raw_waiter *waiter, const char *sha)
{
    const char *words[] = {
        "EVALSHA",      sha, "2", "{bench-raw}turn", "{bench-raw}queue",
        waiter->channel};
    redisReply *reply = ask(waiter->asks, 6, words);
    long long number = reply->integer;

    freeReplyObject(reply);
    return number;
}

void raw_waiter_acquire(void *arg)
{
    raw_waiter *waiter = arg;
    void *news;

    if (run_script(waiter, waiter->acquire) == 1)
        return;
    if (redisGetReply(waiter->listens, &news) != REDIS_OK)
        give_up("waiter", waiter->listens->errstr);
    freeReplyObject(news);
}

void raw_waiter_release(void *arg)
{
    raw_waiter *waiter = arg;

    if (run_script(waiter, waiter->release) != 1)
        give_up("waiter", "it did not hold the lock");
}
