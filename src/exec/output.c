/* output.c - see output.h.
 *
 *     bytes: [ head_size: the beginning | ring_size: the last bytes, in a ring ]
 *
 * Byte number n of the output is at n below head_size, else in the ring at
 * (n - head_size) modulo its size. Owns the bytes. Any thread; the caller locks. */
/* SPDX-License-Identifier: MIT */
#include "exec/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 64 * 1024 };

dibs_status
dibs__output_init(dibs__output *out, size_t keep, size_t head, dibs_error *err)
{
    *out = (dibs__output){0};
    if (keep > DIBS__OUTPUT_MAX || head > keep)
        return dibsx_fail(err, DIBS_INVALID,
                          "output can be kept up to %zu bytes, its beginning "
                          "included: keep %zu and head %zu cannot be",
                          DIBS__OUTPUT_MAX, keep, head);
    out->head_size = head;
    out->ring_size = keep - head;
    if (keep == 0)
        return DIBS_OK;
    out->bytes = dibsx_zalloc(keep);
    return out->bytes ? DIBS_OK : dibsx_nomem(err, "the output of a command");
}

void dibs__output_fini(dibs__output *out)
{
    dibsx_free(out->bytes);
    *out = (dibs__output){0};
}

static void ring_add(dibs__output *out, const char *bytes, size_t len)
{
    uint64_t from = out->total - out->head_size;
    if (out->ring_size == 0)
        return;
    /* Only the end of more than fits would stay. */
    if (len > out->ring_size) {
        from += len - out->ring_size;
        bytes += len - out->ring_size;
        len = out->ring_size;
    }
    char *ring = out->bytes + out->head_size;
    size_t at = (size_t)(from % out->ring_size);
    size_t first = out->ring_size - at < len ? out->ring_size - at : len;
    memcpy(ring + at, bytes, first);
    memcpy(ring, bytes + first, len - first);
}

void dibs__output_add(dibs__output *out, const void *bytes, size_t len)
{
    const char *from = bytes;
    if (out->total < out->head_size) {
        size_t room = out->head_size - (size_t)out->total;
        size_t part = len < room ? len : room;
        memcpy(out->bytes + out->total, from, part);
        out->total += part;
        from += part;
        len -= part;
    }
    if (len == 0)
        return;
    ring_add(out, from, len);
    out->total += len;
}

bool dibs__output_drain(dibs__output *out, int fd, size_t most)
{
    char bytes[READ_SIZE];
    for (size_t sum = 0; sum < most;) {
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got > 0) {
            dibs__output_add(out, bytes, (size_t)got);
            sum += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            return got < 0 && errno == EAGAIN;
        }
    }
    return true;
}

/* How many bytes the ring holds. */
static size_t ring_count(const dibs__output *out)
{
    uint64_t count =
        out->total > out->head_size ? out->total - out->head_size : 0;
    return count < out->ring_size ? (size_t)count : out->ring_size;
}

uint64_t dibs__output_left_out(const dibs__output *out)
{
    uint64_t head = out->total < out->head_size ? out->total : out->head_size;
    return out->total - head - ring_count(out);
}

void dibs__output_head(const dibs__output *out, dibsx_buf *to)
{
    size_t len =
        out->total < out->head_size ? (size_t)out->total : out->head_size;
    if (len > 0)
        dibsx_buf_add(to, out->bytes, len);
}

void dibs__output_tail(const dibs__output *out, dibsx_buf *to)
{
    size_t count = ring_count(out);
    if (count == 0)
        return;
    const char *ring = out->bytes + out->head_size;
    size_t at =
        (size_t)((out->total - out->head_size - count) % out->ring_size);
    size_t first = out->ring_size - at < count ? out->ring_size - at : count;
    dibsx_buf_add(to, ring + at, first);
    dibsx_buf_add(to, ring, count - first);
}
