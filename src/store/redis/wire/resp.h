/* resp.h - the wire format: commands out, and a guard over what comes in. Pure.
 *
 * Replies are read by hiredis, whose older releases believe any length that a
 * server writes. The guard follows the stream ahead of the reader and refuses a
 * reply that would be too large before anything is allocated for it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_RESP_H
#define DIBS_STORE_REDIS_WIRE_RESP_H

#include <stdbool.h>
#include <stddef.h>

/* Up to this many words in a command. */
enum { DIBS__WORDS_MAX = 640 };

/* The limits of one reply: its bytes, its items with those of inner arrays, and
 * the depth of these: freeing them recurses as deep. The longest has 64 values. */
enum {
    DIBS__REPLY_MAX = 66 << 20,
    DIBS__ITEMS_MAX = 1 << 20,
    DIBS__DEPTH_MAX = 7
};

/* A command as words with their lengths; borrowed. */
typedef struct dibs__words {
    const char *word[DIBS__WORDS_MAX];
    size_t len[DIBS__WORDS_MAX];
    int count;
} dibs__words;

/* Appends a word. There must be room for it. */
void dibs__words_add(dibs__words *words, const void *bytes, size_t len);
void dibs__words_puts(dibs__words *words, const char *text);

/* Room that the command needs at most on the wire; and the command, of which
 * the length is returned. */
size_t dibs__words_room(const dibs__words *words);
size_t dibs__words_encode(const dibs__words *words, char *out);

/* Bytes on the wire of the words from `from` to before `end`. */
size_t dibs__words_size(const dibs__words *words, int from, int end);

/* Zeroed storage is a guard at the start of a stream. */
typedef struct dibs__guard {
    int state;
    char type;
    bool minus;
    size_t number;                /* of the line that is being read */
    size_t digits;                /* it has so far */
    size_t skip;                  /* bytes of a string that are still to come */
    size_t pending;               /* items that the reply still needs, */
    size_t owed[DIBS__DEPTH_MAX]; /* ... and each array that is not complete */
    int depth;                    /* of these */
    size_t items;                 /* of the reply so far, */
    size_t bytes;                 /* ... and its bytes */
} dibs__guard;

/* Looks at the next bytes of the stream. NULL when they may be read, else what
 * is wrong with them; the stream is then of no more use. */
const char *
dibs__guard_admit(dibs__guard *guard, const char *bytes, size_t len);

#endif
