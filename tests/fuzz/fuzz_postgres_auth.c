/* fuzz_postgres_auth.c - what a server asks for before it lets a client in: whatever
 * it sends, cut wherever, libpq never reads a request for a password in clear text
 * that was not noticed before.
 *
 * The first byte draws where the stream is cut. The rest are messages: a shape, two
 * bytes of length, and the body. The shape is the kind of a request (the low four
 * bits), or a message of another letter, or bytes as they are; and by how much the
 * message lies about its length. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include "store/postgres/auth.h"

#include <stdbool.h>

enum { STREAM_MAX = 16384, BODY_MAX = 2100, HEAD = 5 };

/* What libpq knows of requests (fe-auth.c). */
enum {
    ASKS_NOTHING = 0,
    ASKS_CLEAR = 3,
    ASKS_MD5 = 5,
    GSS_MORE = 8,
    SASL = 10,
    SASL_MORE = 11,
    SASL_END = 12
};

typedef struct stream {
    uint8_t bytes[STREAM_MAX];
    size_t len;
} stream;

static void put(stream *sm, uint8_t byte)
{
    if (sm->len < sizeof(sm->bytes))
        sm->bytes[sm->len++] = byte;
}

static void put_number(stream *sm, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        put(sm, (uint8_t)(number >> shift));
}

/* A body of the length, of which the input has the beginning; the rest are its last
 * byte again and again, so that a short input makes a long message. */
static void put_body(stream *sm, const uint8_t *data, size_t has, size_t len)
{
    for (size_t i = 0; i < len; i++)
        put(sm, i < has ? data[i] : has > 0 ? data[has - 1] : 0);
}

/* One message of the input; what it has used of that. */
static size_t put_message(stream *sm, const uint8_t *data, size_t size)
{
    static const char letters[] = "ENvZKSR ";
    static const int lies[] = {0, 0, 1, -1, 4, -4, 9, 2000};
    uint8_t shape = data[0];
    size_t len = size > 2 ? ((size_t)data[1] << 8 | data[2]) % BODY_MAX : 0;
    size_t body = size > 3 ? size - 3 : 0;
    size_t has = len < body ? len : body;
    uint32_t said = (uint32_t)((int)len + lies[shape >> 5]);

    if ((shape & 16) == 0) {
        put(sm, 'R');
        put_number(sm, said + 8);
        put_number(sm, shape & 15);
    } else if ((shape & 15) < sizeof(letters) - 1) {
        put(sm, (uint8_t)letters[shape & 15]);
        put_number(sm, said + 4);
    }
    put_body(sm, data + (size > 3 ? 3 : size), has, len);
    return size > 3 ? 3 + has : size;
}

static uint32_t number_at(const stream *sm, size_t at)
{
    return (uint32_t)sm->bytes[at] << 24 | (uint32_t)sm->bytes[at + 1] << 16 |
           (uint32_t)sm->bytes[at + 2] << 8 | sm->bytes[at + 3];
}

/* Where the names of ways to log in end for libpq: behind an empty one. */
static size_t end_of_names(const stream *sm, size_t at)
{
    while (at < sm->len && sm->bytes[at]) {
        while (at < sm->len && sm->bytes[at])
            at++;
        at++;
    }
    return at + 1;
}

/* Where libpq goes on after a request of this kind: up to version 15 where it ended,
 * later where it said that it would. SIZE_MAX: it gives up. */
static size_t end_of_request(const stream *sm, size_t at, bool by_length)
{
    uint32_t size = number_at(sm, at + 1);
    uint32_t kind = number_at(sm, at + HEAD);
    size_t body = at + HEAD + 4;

    if (kind == ASKS_NOTHING)
        return SIZE_MAX; /* From here on no request is answered. */
    if (by_length || kind == GSS_MORE || kind == SASL_MORE || kind == SASL_END)
        return at + 1 + size;
    if (kind == SASL)
        return end_of_names(sm, body);
    if (kind == ASKS_MD5)
        return body + 4;
    return kind < SASL_END ? body : SIZE_MAX;
}

/* How many bytes have come when libpq sees a request for clear text, which it then
 * answers; SIZE_MAX when it sees none. It looks at a request when all that this says
 * it has is there. Messages of other letters it takes by their length, or gives up. */
static size_t clear_at(const stream *sm, bool by_length)
{
    size_t at = 0, come = 0;

    while (at < sm->len && sm->len - at >= HEAD + 4) {
        uint32_t size = number_at(sm, at + 1);

        if (sm->bytes[at] == 'E')
            return SIZE_MAX;
        if (sm->bytes[at] != 'R') {
            at += 1 + (size_t)(size < 4 ? 4 : size);
            continue;
        }
        if (size < 8 || size > DIBS__PG_AUTH_MAX || sm->len - at < 1 + size)
            return SIZE_MAX;
        if (come < at + 1 + size)
            come = at + 1 + size;
        if (number_at(sm, at + HEAD) == ASKS_CLEAR)
            return come;
        at = end_of_request(sm, at, by_length);
    }
    return SIZE_MAX;
}

/* Reads the stream in pieces: how many bytes had come when it was stopped, or all. A
 * piece ends where the storage ends, so that reading past it is seen. */
static size_t read_pieces(const stream *sm, uint8_t cuts, dibs__pg_auth *auth,
                          dibs__pg_auth_verdict *verdict)
{
    size_t most = 1 + cuts * (size_t)4, at = 0;
    uint8_t *room = malloc(most);
    uint32_t dice = cuts;

    REQUIRE(room);
    *auth = (dibs__pg_auth){.open = false};
    *verdict = DIBS__PG_AUTH_FINE;
    while (at < sm->len && *verdict == DIBS__PG_AUTH_FINE) {
        size_t left = sm->len - at, piece;

        dice = dice * 1664525 + 1013904223;
        piece = 1 + (dice >> 16) % most;
        piece = piece < left ? piece : left;
        memcpy(room + most - piece, sm->bytes + at, piece);
        *verdict = dibs__pg_auth_read(auth, room + most - piece, piece);
        at += piece;
        REQUIRE(auth->len <= sizeof(auth->message));
    }
    free(room);
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stream sm;
    dibs__pg_auth auth, whole;
    dibs__pg_auth_verdict verdict, at_once;
    size_t stopped, exact;

    if (size < 1)
        return 0;
    sm.len = 0;
    for (size_t at = 1; at < size;)
        at += put_message(&sm, data + at, size - at);
    stopped = read_pieces(&sm, data[0], &auth, &verdict);
    exact = read_pieces(&sm, 0, &whole, &at_once);
    /* Cuts change nothing. */
    REQUIRE(verdict == at_once && stopped >= exact);
    REQUIRE(verdict != DIBS__PG_AUTH_FINE ||
            (auth.open == whole.open && auth.len == whole.len &&
             auth.skip == whole.skip));
    /* libpq does not get the whole of what it would answer in clear text. */
    for (int by_length = 0; by_length < 2; by_length++) {
        size_t end = clear_at(&sm, by_length);

        REQUIRE(end > sm.len ||
                (at_once != DIBS__PG_AUTH_FINE && exact <= end));
    }
    return 0;
}
