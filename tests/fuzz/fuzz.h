/* fuzz.h - what every fuzz target shares: its entry, a check, input as text. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_FUZZ_H
#define DIBS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert, on in every build. */
#define REQUIRE(condition)                                                     \
    do {                                                                       \
        if (!(condition))                                                      \
            abort();                                                           \
    } while (0)

/* The input up to its first NUL as a string in storage of exactly its size, so
 * that reading past the end is seen. Freed with free(). */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    size_t len = 0;
    char *text;

    while (len < size && data[len])
        len++;
    text = malloc(len + 1);
    REQUIRE(text);
    if (len)
        memcpy(text, data, len);
    text[len] = '\0';
    return text;
}

#endif
