/* test_http_chunks.c - chunks and heads that come in pieces mean what they mean
 * whole. */
/* SPDX-License-Identifier: MIT */
#include "http/chunks.h"
#include "http/head.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

typedef struct outcome {
    dibs__http_chunks_found found; /* the last */
    char data[256];
    size_t len;
    size_t taken;
} outcome;

/* Feeds the text in pieces of `size` bytes. */
static void feed(const char *text, size_t size, outcome *oc)
{
    dibs__http_chunks ck = {.left = 0};
    size_t len = strlen(text);

    memset(oc, 0, sizeof(*oc));
    while (oc->taken < len && oc->found < DIBS__HTTP_CHUNKS_END) {
        const char *at = text + oc->taken, *data;
        size_t left = len - oc->taken < size ? len - oc->taken : size;
        size_t data_len;

        do {
            oc->found =
                dibs__http_chunks_take(&ck, &at, &left, &data, &data_len);
            if (oc->found != DIBS__HTTP_CHUNKS_DATA)
                continue;
            memcpy(oc->data + oc->len, data, data_len);
            oc->len += data_len;
        } while (oc->found == DIBS__HTTP_CHUNKS_DATA);
        oc->taken = (size_t)(at - text);
    }
    oc->data[oc->len] = '\0';
}

static void chunks_may_come_in_pieces(void **state)
{
    static const struct {
        const char *text;
        dibs__http_chunks_found found;
        const char *data;
        const char *rest;
    } cases[] = {
        {"0\r\n\r\nGET", DIBS__HTTP_CHUNKS_END, "", "GET"},
        {"1\r\na\r\n0\r\n\r\n", DIBS__HTTP_CHUNKS_END, "a", ""},
        {"3\r\nabc\r\nA;x=y\r\n0123456789\r\n00\r\nT: u\r\nV: w\r\n\r\nrest",
         DIBS__HTTP_CHUNKS_END, "abc0123456789", "rest"},
        {"2\r\n\r\n\r\n0\r\n\r\n", DIBS__HTTP_CHUNKS_END, "\r\n", ""},
        {"3\r\nab", DIBS__HTTP_CHUNKS_MORE, "ab", ""},
        {"0\r\n", DIBS__HTTP_CHUNKS_MORE, "", ""},
        {"3\r\nabcd\r\n", DIBS__HTTP_CHUNKS_BAD, "abc", "d\r\n"},
        {"3\nabc\r\n", DIBS__HTTP_CHUNKS_BAD, "", "\nabc\r\n"},
        {"3\rabc\r\n", DIBS__HTTP_CHUNKS_BAD, "", "abc\r\n"},
        {"\r\n", DIBS__HTTP_CHUNKS_BAD, "", "\r\n"},
        {";x\r\n", DIBS__HTTP_CHUNKS_BAD, "", ";x\r\n"},
        {"123456789\r\n", DIBS__HTTP_CHUNKS_BAD, "", "9\r\n"},
        {"1\r\na\r\n\r\n", DIBS__HTTP_CHUNKS_BAD, "a", "\r\n"},
        {"0\r\nT: u\n\r\n", DIBS__HTTP_CHUNKS_BAD, "", "\n\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t size = 1; size < 64; size++) {
            outcome oc;

            feed(cases[i].text, size, &oc);
            assert_int_equal(oc.found, cases[i].found);
            assert_string_equal(oc.data, cases[i].data);
            assert_string_equal(cases[i].text + oc.taken, cases[i].rest);
        }
    }
}

static void what_nobody_reads_is_bounded(void **state)
{
    char text[8192];
    outcome oc;

    (void)state;
    snprintf(text, sizeof(text), "1;%01000d\r\na\r\n", 0);
    feed(text, sizeof(text), &oc);
    assert_int_equal(oc.found, DIBS__HTTP_CHUNKS_BAD);
    snprintf(text, sizeof(text), "0\r\n");
    for (size_t len = 3; len + 16 < sizeof(text); len = strlen(text))
        snprintf(text + len, sizeof(text) - len, "Name: value\r\n");
    feed(text, sizeof(text), &oc);
    assert_int_equal(oc.found, DIBS__HTTP_CHUNKS_BAD);
}

static void the_end_of_a_head_is_found_once(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest\n";
    const size_t end = strlen(text) - strlen("rest\n");
    size_t seen = 0;

    (void)state;
    for (size_t len = 0; len < end; len++)
        assert_int_equal(dibs__http_head_end(text, len, &seen), 0);
    assert_int_equal(dibs__http_head_end(text, end, &seen), (int)end);
    seen = 0;
    assert_int_equal(dibs__http_head_end(text, sizeof(text) - 1, &seen),
                     (int)end);
    seen = 0;
    assert_int_equal(dibs__http_head_end("a\n", 2, &seen), -1);
    assert_int_equal(dibs__http_head_end("a\n\r\n\r\n", 6, &seen), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_may_come_in_pieces),
        cmocka_unit_test(what_nobody_reads_is_bounded),
        cmocka_unit_test(the_end_of_a_head_is_found_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
