/* majority.c - a lock on several servers, without a library: see majority.h.
 *
 * Owns the connections. The answers of the slower servers are read with those of the
 * next command. */
/* SPDX-License-Identifier: MIT */
#include "bench/majority.h"
#include "bench/samples.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then "
    "return redis.call('DEL', KEYS[1]) else return 0 end";

typedef struct link {
    redisContext *context;
    int due; /* answers to come */
} link;

struct majority {
    link links[MAJORITY_MAX];
    int count;
    unsigned long long acquired;
    char sha[41];
};

static void load_script(majority *mj, redisContext *context)
{
    redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", script);

    if (!reply || reply->type != REDIS_REPLY_STRING)
        give_up("script", "a server does not take it");
    snprintf(mj->sha, sizeof(mj->sha), "%s", reply->str);
    freeReplyObject(reply);
}

majority *majority_open(const int *ports, int count)
{
    majority *mj = calloc(1, sizeof(*mj));

    if (!mj)
        give_up("servers", "out of memory");
    mj->count = count;
    for (int i = 0; i < count; i++) {
        redisContext *context = redisConnect("127.0.0.1", ports[i]);

        if (!context || context->err)
            give_up("connect", context ? context->errstr : "out of memory");
        load_script(mj, context);
        context->flags &= ~REDIS_BLOCK;
        mj->links[i].context = context;
    }
    return mj;
}

void majority_close(majority *mj)
{
    for (int i = 0; i < mj->count; i++)
        redisFree(mj->links[i].context);
    free(mj);
}

static void send_to(link *ln, int count, const char **words)
{
    int done = 0;

    redisAppendCommandArgv(ln->context, count, words, NULL);
    while (!done)
        if (redisBufferWrite(ln->context, &done) != REDIS_OK)
            give_up("send", ln->context->errstr);
    ln->due++;
}

/* Reads what has arrived; true when the last answer was among it. */
static int has_answered(link *ln)
{
    void *reply = NULL;

    if (redisBufferRead(ln->context) != REDIS_OK)
        give_up("receive", ln->context->errstr);
    while (redisGetReplyFromReader(ln->context, &reply) == REDIS_OK && reply) {
        if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
            give_up("server", ((redisReply *)reply)->str);
        freeReplyObject(reply);
        reply = NULL;
        ln->due--;
    }
    return ln->due == 0;
}

static void ask_all(majority *mj, int count, const char **words)
{
    int answered = 0;

    for (int i = 0; i < mj->count; i++)
        send_to(&mj->links[i], count, words);
    while (answered < mj->count / 2 + 1) {
        struct pollfd fds[MAJORITY_MAX];

        for (int i = 0; i < mj->count; i++)
            fds[i] = (struct pollfd){.fd = mj->links[i].due
                                               ? mj->links[i].context->fd
                                               : -1,
                                     .events = POLLIN};
        if (poll(fds, (nfds_t)mj->count, 1000) <= 0)
            give_up("servers", "no majority answered");
        for (int i = 0; i < mj->count; i++)
            if (fds[i].revents)
                answered += has_answered(&mj->links[i]);
    }
}

void majority_pair(void *arg)
{
    majority *mj = arg;
    char value[40];

    snprintf(value, sizeof(value), "%032llx", ++mj->acquired);
    ask_all(mj, 6,
            (const char *[]){"SET", "bare-majority", value, "NX", "PX",
                             "30000"});
    ask_all(mj, 5,
            (const char *[]){"EVALSHA", mj->sha, "1", "bare-majority", value});
}
