/* fuzz_postgres_step.c - steps on a server that answers with the input: whatever it
 * is, the step ends with a status, in time, and nothing is read beyond what came.
 *
 * The first byte says which step, the second where the server begins to do so, and
 * whether it hangs up then. The rest are messages of the protocol: a type, two bytes
 * of length, and the body; the last may be cut short, or say that it is longer. */
/* SPDX-License-Identifier: MIT */
#include "fake.h"
#include "fuzz_step.h"

#include <poll.h>
#include <sys/socket.h>

/* What a step may take; and what is too long for any machine. */
enum { STEP_MS = 100, HANG_MS = 8000, SENT_MAX = 65536 };

typedef struct words {
    uint8_t bytes[SENT_MAX];
    size_t len;
    bool stays; /* on the line, until the client leaves */
} words;

static void put(words *wd, uint8_t byte)
{
    if (wd->len < sizeof(wd->bytes))
        wd->bytes[wd->len++] = byte;
}

/* One message of the input, with the length that it says it has. */
static size_t put_message(words *wd, const uint8_t *data, size_t size)
{
    size_t len = size > 2 ? (size_t)data[1] << 8 | data[2] : 0;
    size_t body = size > 3 ? size - 3 : 0;
    size_t sent = len < body ? len : body;

    put(wd, data[0]);
    /* From 0x8000 on it says far more: 4 MiB, for which there is no room. */
    put(wd, 0);
    put(wd, len >= 0x8000 ? 0x40 : 0);
    put(wd, (uint8_t)((len + 4) >> 8));
    put(wd, (uint8_t)(len + 4));
    for (size_t i = 0; i < sent; i++)
        put(wd, data[3 + i]);
    return size > 3 ? 3 + sent : size;
}

static void say(fake *fk, int fd)
{
    const words *wd = fk->arg;
    struct pollfd at = {.fd = fd, .events = POLLRDHUP};

    if (fake_send(fk, fd, wd->bytes, wd->len) && wd->stays)
        (void)poll(&at, 1, HANG_MS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static words wd;
    fake fk = {.harm = say, .arg = &wd};
    dibs__store *st = NULL;
    char url[FAKE_URL];
    dibsx_nsec from_at;

    if (size < 2)
        return 0;
    wd = (words){.stays = (data[1] & 4) != 0};
    for (size_t at = 2; at < size;)
        at += put_message(&wd, data + at, size - at);
    fk.point = (data[1] & 3) == 0   ? FAKE_AT_LOGIN
               : (data[1] & 3) == 1 ? FAKE_AT_GREETING
                                    : FAKE_AT_STEP;
    REQUIRE(fake_start(&fk));
    fake_url(&fk, url);
    from_at = dibsx_now();
    REQUIRE(dibs__store_make(url, DIBSX_NEVER, &st, NULL) == DIBS_OK);
    fuzz_step(st, data[0], dibsx_after_ms(from_at, STEP_MS));
    REQUIRE(dibsx_now() < dibsx_after_ms(from_at, HANG_MS));
    dibs__store_close(st);
    fake_stop(&fk);
    return 0;
}
