/* parse.c - reads replies of sentinels: see parse.h. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/reply.h"

bool dibs__sentinel_read_endpoint(const redisReply *host,
                                  const redisReply *port, dibs__endpoint *out)
{
    int64_t number;

    dibs__reply_text(host, out->host, sizeof(out->host));
    if (!out->host[0] || !dibs__reply_int(port, &number) || number < 1 ||
        number > 65535)
        return false;
    out->port = (int)number;
    return true;
}

const redisReply *dibs__sentinel_field(const redisReply *pairs, const char *key)
{
    for (size_t i = 0; dibs__reply_item(pairs, i + 1); i += 2) {
        const redisReply *at = dibs__reply_item(pairs, i);

        if (at->type == REDIS_REPLY_STRING && strcmp(at->str, key) == 0)
            return dibs__reply_item(pairs, i + 1);
    }
    return NULL;
}

/* Takes the next word off a line; false at its end. */
static bool next_word(const char **line, char *out, size_t size)
{
    size_t len = strcspn(*line, " ");

    if (len == 0 || len >= size)
        return false;
    memcpy(out, *line, len);
    out[len] = '\0';
    *line += len + ((*line)[len] == ' ');
    return true;
}

bool dibs__sentinel_read_switch(const char *line, const char *name,
                                dibs__endpoint *out)
{
    char word[DIBS__HOST_MAX + 1], port[8];
    int number = 0;

    if (!next_word(&line, word, sizeof(word)) || strcmp(word, name) != 0 ||
        !next_word(&line, word, sizeof(word)) ||
        !next_word(&line, port, sizeof(port)) ||
        !next_word(&line, out->host, sizeof(out->host)) ||
        !next_word(&line, port, sizeof(port)))
        return false;
    for (const char *at = port; *at; at++) {
        if (*at < '0' || *at > '9')
            return false;
        number = number * 10 + (*at - '0');
    }
    out->port = number;
    return number > 0 && number < 65536;
}
