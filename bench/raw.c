/* raw.c - the bare driver, to measure against: one connection, no library. */
/* SPDX-License-Identifier: MIT */
#include "bench/raw.h"
#include "bench/samples.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then "
    "return redis.call('DEL', KEYS[1]) else return 0 end";

static const char renewal[] =
    "for i = 1, #KEYS do if redis.call('GET', KEYS[i]) == ARGV[i] then "
    "redis.call('PEXPIRE', KEYS[i], 30000) end end return 1";

/* Leases of a script, and commands on the way. */
enum { PART_MAX = 100, FLYING = 100 };

struct raw {
    redisContext *context;
    unsigned long long acquired;
    char sha[41];
    char renewal[41];
};

/* Sends a command and waits for its reply, which is no error. */
static redisReply *ask(raw *r, int count, const char **words)
{
    redisReply *reply = redisCommandArgv(r->context, count, words, NULL);

    if (!reply)
        give_up("server", r->context->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        give_up(words[0], reply->str);
    return reply;
}

static void load_script(raw *r, const char *text, char sha[41])
{
    const char *load[] = {"SCRIPT", "LOAD", text};
    redisReply *reply = ask(r, 3, load);

    snprintf(sha, 41, "%s", reply->str);
    freeReplyObject(reply);
}

static raw *raw_on(redisContext *context)
{
    raw *r = calloc(1, sizeof(*r));

    if (!r)
        give_up("raw", "out of memory");
    r->context = context;
    if (!r->context || r->context->err)
        give_up("connect", r->context ? r->context->errstr : "out of memory");
    load_script(r, script, r->sha);
    load_script(r, renewal, r->renewal);
    return r;
}

raw *raw_open(int port)
{
    return raw_on(redisConnect("127.0.0.1", port));
}

raw *raw_open_unix(raw *r, char *path, size_t room)
{
    const char *where[] = {"CONFIG", "GET", "unixsocket"};
    redisReply *reply = ask(r, 3, where);

    if (reply->elements != 2 || reply->element[1]->len == 0 ||
        reply->element[1]->len >= room)
        give_up("unix socket", "the server has none, or one with a long path");
    snprintf(path, room, "%s", reply->element[1]->str);
    freeReplyObject(reply);
    return raw_on(redisConnectUnix(path));
}

void raw_close(raw *r)
{
    redisFree(r->context);
    free(r);
}

void raw_pair(raw *r)
{
    char owner[33];
    const char *set[] = {"SET", "bench-raw", owner, "NX", "PX", "30000"};
    const char *del[] = {"EVALSHA", r->sha, "1", "bench-raw", owner};
    redisReply *reply;

    /* As long as an owner of ours, and another each time. */
    snprintf(owner, sizeof(owner), "%032llx", ++r->acquired);
    reply = ask(r, 6, set);
    if (reply->type != REDIS_REPLY_STATUS)
        give_up("raw", "the name was not free");
    freeReplyObject(reply);
    reply = ask(r, 5, del);
    if (reply->integer != 1)
        give_up("raw", "the name was not held");
    freeReplyObject(reply);
}

void raw_count(raw *r)
{
    const char *incr[] = {"INCR", "bench-raw-count"};

    freeReplyObject(ask(r, 2, incr));
}

static void send_limit(raw *r)
{
    if (redisAppendCommand(r->context, "INCR bench-raw-limit") != REDIS_OK ||
        redisAppendCommand(r->context, "EXPIRE bench-raw-limit 60") != REDIS_OK)
        give_up("raw", r->context->errstr);
}

static void read_replies(raw *r, int count)
{
    void *reply;

    for (int i = 0; i < count; i++) {
        if (redisGetReply(r->context, &reply) != REDIS_OK)
            give_up("raw", r->context->errstr);
        freeReplyObject(reply);
    }
}

/* A command for each of some names. */
static void send_each(raw *r, int first, int count, bool set)
{
    for (int i = first; i < first + count; i++) {
        char owner[33], name[32];
        const char *words[][6] = {
            {"EVALSHA", r->sha, "1", name, owner},
            {"SET", name, owner, "NX", "PX", "30000"},
        };

        snprintf(owner, sizeof(owner), "%032llx", r->acquired);
        snprintf(name, sizeof(name), "bench-raw-%05d", i);
        if (redisAppendCommandArgv(r->context, set ? 6 : 5, words[set], NULL) !=
            REDIS_OK)
            give_up("raw", r->context->errstr);
    }
    read_replies(r, count);
}

void raw_pairs(raw *r, int names, int flying)
{
    r->acquired++;
    for (int i = 0; i < names; i += flying) {
        send_each(r, i, flying, true);
        send_each(r, i, flying, false);
    }
}

void raw_limit(raw *r)
{
    send_limit(r);
    read_replies(r, 2);
}

void raw_limit_flying(raw *r, int flying, int times)
{
    int sent = 0;

    for (; sent < flying && sent < times; sent++)
        send_limit(r);
    for (int i = 0; i < times; i++) {
        read_replies(r, 2);
        if (sent++ < times)
            send_limit(r);
    }
}

void raw_tell_begin(raw *r)
{
    int done = 0;

    if (redisAppendCommand(r->context, "PUBLISH bench-raw 1") != REDIS_OK)
        give_up("raw", r->context->errstr);
    while (!done)
        if (redisBufferWrite(r->context, &done) != REDIS_OK)
            give_up("raw", r->context->errstr);
}

void raw_tell_end(raw *r)
{
    read_replies(r, 1);
}

void raw_tell(raw *r)
{
    raw_tell_begin(r);
    raw_tell_end(r);
}

int raw_fd(const raw *r)
{
    return r->context->fd;
}

void raw_pause(raw *r, int span_ms)
{
    char span[16];
    const char *pause[] = {"CLIENT", "PAUSE", span, "ALL"};

    snprintf(span, sizeof(span), "%d", span_ms);
    freeReplyObject(ask(r, 4, pause));
}

void raw_listen(raw *r)
{
    const char *subscribe[] = {"SUBSCRIBE", "bench-raw"};

    freeReplyObject(ask(r, 2, subscribe));
}

void raw_hear(raw *r)
{
    read_replies(r, 1);
}

void raw_push(raw *r, const char *list, const char *text)
{
    const char *push[] = {"LPUSH", list, text};

    freeReplyObject(ask(r, 3, push));
}

void raw_pop(raw *r, const char *list)
{
    const char *pop[] = {"BRPOPLPUSH", list, "bench-raw-taken", "0"};

    freeReplyObject(ask(r, 4, pop));
}

static double info_number(const char *info, const char *name)
{
    char line[64];
    const char *at;

    snprintf(line, sizeof(line), "\n%s:", name);
    at = strstr(info, line);
    if (!at)
        give_up("INFO lacks", name);
    return strtod(at + strlen(line), NULL);
}

long long raw_info(raw *r, const char *name)
{
    const char *info[] = {"INFO"};
    redisReply *reply = ask(r, 1, info);
    double number = info_number(reply->str, name);

    freeReplyObject(reply);
    return (long long)number;
}

double raw_cpu_us(raw *r)
{
    const char *info[] = {"INFO", "cpu"};
    redisReply *reply = ask(r, 2, info);
    double seconds = info_number(reply->str, "used_cpu_user") +
                     info_number(reply->str, "used_cpu_sys");

    freeReplyObject(reply);
    return seconds * 1e6;
}

long long raw_calls(raw *r, const char *command)
{
    const char *info[] = {"INFO", "commandstats"};
    redisReply *reply = ask(r, 2, info);
    char line[64];
    const char *at;
    long long calls;

    snprintf(line, sizeof(line), "cmdstat_%s:calls=", command);
    at = strstr(reply->str, line);
    calls = at ? strtoll(at + strlen(line), NULL, 10) : 0;
    freeReplyObject(reply);
    return calls;
}

/* Sends a command for each `part` of the leases, with some on the way. */
static void send_parts(raw *r, size_t count, size_t part,
                       void (*send)(raw *r, size_t from, size_t part))
{
    int flying = 0;

    for (size_t i = 0; i < count; i += part) {
        if (flying == FLYING) {
            read_replies(r, flying);
            flying = 0;
        }
        send(r, i, part < count - i ? part : count - i);
        flying++;
    }
    read_replies(r, flying);
}

static void send_hold(raw *r, size_t from, size_t part)
{
    (void)part;
    if (redisAppendCommand(r->context, "SET raw:%08lu %032lx PX 60000",
                           (unsigned long)from,
                           (unsigned long)from) != REDIS_OK)
        give_up("raw", r->context->errstr);
}

static void send_drop(raw *r, size_t from, size_t part)
{
    (void)part;
    if (redisAppendCommand(r->context, "DEL raw:%08lu", (unsigned long)from) !=
        REDIS_OK)
        give_up("raw", r->context->errstr);
}

void raw_hold(raw *r, size_t count)
{
    send_parts(r, count, 1, send_hold);
}

void raw_drop(raw *r, size_t count)
{
    send_parts(r, count, 1, send_drop);
}

static void send_renewal(raw *r, size_t from, size_t part)
{
    char texts[2 * PART_MAX][33], number[8];
    const char *words[3 + 2 * PART_MAX] = {"EVALSHA", r->renewal, number};

    snprintf(number, sizeof(number), "%zu", part);
    for (size_t i = 0; i < part; i++) {
        snprintf(texts[i], sizeof(texts[i]), "raw:%08zu", from + i);
        snprintf(texts[part + i], sizeof(texts[i]), "%032zx", from + i);
    }
    for (size_t i = 0; i < 2 * part; i++)
        words[3 + i] = texts[i];
    if (redisAppendCommandArgv(r->context, (int)(3 + 2 * part), words, NULL) !=
        REDIS_OK)
        give_up("raw", r->context->errstr);
}

void raw_renew(raw *r, size_t count, size_t part)
{
    send_parts(r, count, part < PART_MAX ? part : PART_MAX, send_renewal);
}

long long raw_usage(raw *r, size_t *keys)
{
    const char *list[] = {"KEYS", "*"};
    redisReply *names = ask(r, 2, list);
    long long sum = 0;

    *keys = names->elements;
    for (size_t i = 0; i < names->elements; i++) {
        const char *usage[] = {"MEMORY", "USAGE", names->element[i]->str};
        redisReply *reply = ask(r, 3, usage);

        sum += reply->integer;
        freeReplyObject(reply);
    }
    freeReplyObject(names);
    return sum;
}

/* The hashes of one step of SCAN, all on the way together. */
static void read_hashes(raw *r, const redisReply *names)
{
    for (size_t i = 0; i < names->elements; i++)
        if (redisAppendCommand(r->context, "HGETALL %s",
                               names->element[i]->str) != REDIS_OK)
            give_up("raw", r->context->errstr);
    read_replies(r, (int)names->elements);
}

size_t raw_list(raw *r)
{
    char cursor[24] = "0";
    size_t count = 0;

    do {
        const char *scan[] = {"SCAN", cursor, "COUNT", "1000", "TYPE", "hash"};
        redisReply *reply = ask(r, 6, scan);

        snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
        read_hashes(r, reply->element[1]);
        count += reply->element[1]->elements;
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
    return count;
}
