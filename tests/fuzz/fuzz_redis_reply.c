/* fuzz_redis_reply.c - what a server answers: the guard says the same however the
 * stream is cut into pieces, what it admits is within its bounds, and nothing is
 * read beyond what came. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_reply.h"
#include "store/redis/lease_words.h"
#include "store/redis/pipe/batch.h"
#include "store/redis/wire/error.h"

/* Past the end of the stream: it was admitted. */
static size_t refused_at(const uint8_t *data, size_t size, size_t piece)
{
    dibs__guard guard = {0};

    for (size_t at = 0; at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        /* In storage of its own size, so that reading past it is seen. */
        char *bytes = malloc(len);
        bool refused;

        REQUIRE(bytes);
        memcpy(bytes, data + at, len);
        refused = dibs__guard_admit(&guard, bytes, len) != NULL;
        free(bytes);
        if (refused)
            return at;
    }
    return size;
}

static void check_guard(const uint8_t *data, size_t size)
{
    size_t whole = refused_at(data, size, size ? size : 1);
    size_t bytewise = refused_at(data, size, 1);
    size_t piecewise = refused_at(data, size, 7);

    REQUIRE((whole == size) == (bytewise == size));
    REQUIRE((piecewise == size) == (bytewise == size));
    REQUIRE(bytewise == size ||
            (piecewise <= bytewise && bytewise < piecewise + 7));
}

static size_t count_items(const redisReply *reply)
{
    size_t count = 1;

    if (reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++)
            count += count_items(reply->element[i]);
    return count;
}

static void check_text(const redisReply *reply)
{
    char text[16];

    memset(text, 'x', sizeof(text));
    dibs__reply_text(reply, text, sizeof(text));
    REQUIRE(memchr(text, '\0', sizeof(text)));
}

/* As the refusals of a step are read. */
static void check_refusals(const redisReply *reply)
{
    dibs__ask ask = {.name = "k", .owner = "o", .ttl_ms = 1000};
    dibs_error err = {0};

    REQUIRE(dibs__step_held(&ask, reply, &err) == DIBS_BUSY);
    REQUIRE(dibs__step_kind(&ask, reply, &err) != DIBS_OK);
    REQUIRE(memchr(err.message, '\0', sizeof(err.message)));
}

/* Takes the answers of a group apart, all but the first, and leaves the rest. */
static void take_apart(const uint8_t *data, size_t size)
{
    redisReader *reader = dibs__hi.redisReaderCreate();
    dibs__guard guard = {0};
    void *reply = NULL;

    REQUIRE(reader);
    if (!dibs__guard_admit(&guard, (const char *)data, size) &&
        dibs__hi.redisReaderFeed(reader, (const char *)data, size) ==
            REDIS_OK &&
        dibs__hi.redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        for (int count = 1; count <= DIBS__BATCH_MAX; count++)
            if (dibs__batch_is_answer(reply, count))
                for (int i = 1; i < count; i++)
                    dibs__reply_free(dibs__batch_take(reply, i));
        dibs__reply_free(reply);
    }
    dibs__hi.redisReaderFree(reader);
}

static void read_reply(const redisReply *reply)
{
    const redisReply *item = reply;
    int status = dibs__reply_status(reply);
    int64_t number;

    REQUIRE(count_items(reply) <= DIBS__ITEMS_MAX);
    REQUIRE(status >= -1 && status <= DIBS_FORKED);
    for (size_t i = 0; item && i < 64; item = dibs__reply_item(reply, i++)) {
        check_text(item);
        if (dibs__reply_int(item, &number))
            REQUIRE(item->type == REDIS_REPLY_INTEGER ||
                    item->type == REDIS_REPLY_STRING);
        check_refusals(item);
    }
    REQUIRE(!dibs__reply_item(reply, SIZE_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_guard(data, size);
    fuzz_reply(data, size, read_reply);
    take_apart(data, size);
    return 0;
}
