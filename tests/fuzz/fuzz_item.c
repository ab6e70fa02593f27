/* fuzz_item.c - what comes back of an item: its headers and data as a store kept them, and
 * its token as another process has it.
 *
 * Whatever the bytes are, the parts are within them, and what is joined of the parts has
 * the same parts again. A text that is no token is refused; one that is finds nothing in
 * an empty store. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "coord/item_data.h"
#include "fuzz.h"

#include <dibs/dibs.h>

static dibs_queue *queue_in_memory(void)
{
    static dibs_queue *queue;
    dibs_client *cl = NULL;

    if (!queue) {
        REQUIRE(dibs_open("memory:fuzz", NULL, &cl, NULL) == DIBS_OK);
        REQUIRE(dibs_queue_new(cl, "q", NULL, &queue, NULL) == DIBS_OK);
    }
    return queue;
}

static void adopt_token(const char *text)
{
    dibs_error err = {0};
    dibs_item *item = NULL;
    dibs_status rc = dibs_queue_adopt(queue_in_memory(), text, &item, &err);

    REQUIRE(rc == DIBS_INVALID || rc == DIBS_OK);
    REQUIRE((rc == DIBS_OK) == (item != NULL));
    REQUIRE(memchr(err.message, '\0', sizeof(err.message)));
    if (item)
        REQUIRE(dibs_item_ack(item, NULL) != DIBS_OK);
    dibs_item_free(item);
}

enum { HEADERS = 64 };

/* How many headers there are; beyond the last there is none. */
static size_t
list_headers(const dibs__item_parts *parts, const char *headers[HEADERS + 1])
{
    size_t count = 0;

    for (; count < HEADERS; count++) {
        headers[count] = dibs__item_header_at(parts, count);
        if (!headers[count])
            break;
        REQUIRE(headers[count] >= parts->headers &&
                headers[count] < parts->headers + parts->headers_len);
    }
    headers[count] = NULL;
    return count;
}

static void join_again(const dibs__item_parts *parts,
                       const char *const headers[HEADERS + 1])
{
    dibs__item_parts again;
    char *bytes;
    size_t len;

    if (dibs__item_join(parts->data, parts->len, headers, &bytes, &len, NULL) !=
        DIBS_OK)
        return;
    dibs__item_split(bytes, len, &again);
    REQUIRE(again.len == parts->len && again.headers_len == parts->headers_len);
    REQUIRE(again.len == 0 || memcmp(again.data, parts->data, again.len) == 0);
    REQUIRE(again.headers_len == 0 ||
            memcmp(again.headers, parts->headers, again.headers_len) == 0);
    dibsx_free(bytes);
}

static void split_item(const char *bytes, size_t len)
{
    const char *headers[HEADERS + 1];
    dibs__item_parts parts;
    size_t count;

    dibs__item_split(bytes, len, &parts);
    REQUIRE(parts.len + parts.headers_len <= len);
    REQUIRE(parts.data >= bytes && parts.data + parts.len == bytes + len);
    (void)dibs__item_header_of(&parts, "key");
    count = list_headers(&parts, headers);
    if (count < HEADERS && (parts.headers || len == 0))
        join_again(&parts, headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + (size == 0));
    char *text = fuzz_text(data, size);

    REQUIRE(bytes);
    if (size > 0)
        memcpy(bytes, data, size);
    split_item(bytes, size);
    adopt_token(text);
    free(text);
    free(bytes);
    return 0;
}
