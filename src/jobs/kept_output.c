/* kept_output.c - see kept_output.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/kept_output.h"
#include "base/fail.h"
#include "jobs/history.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_LEN = 2 * 20 + 2 }; /* two numbers, a space and the end */

/* False: the value is none. */
static bool read_value(dibs__kept_output *out)
{
    const char *bytes = out->value.data;
    const char *line = memchr(bytes, '\n', out->value.len);
    size_t head_len;
    char *end;

    if (!line)
        return false;
    head_len = strtoul(bytes, &end, 10);
    out->left_out = strtoull(end, &end, 10);
    if (end != line || head_len > out->value.len - (size_t)(line + 1 - bytes))
        return false;
    out->head = line + 1;
    out->head_len = head_len;
    out->tail = out->head + head_len;
    out->tail_len = out->value.len - (size_t)(out->tail - bytes);
    return true;
}

dibs_status
dibs__kept_output_read(const dibs__board *board, const dibs__run *run,
                       const dibs__run_step *step, uint32_t attempt,
                       dibs__kept_output *out, dibs_error *err)
{
    char inner[DIBS__PLACE_SIZE], key[DIBS_NAME_MAX + 1];
    dibs_status rc;

    *out = (dibs__kept_output){.head = "", .tail = ""};
    dibs__output_key(run, step, attempt, inner);
    rc = dibs__board_key(board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_state_get(board->cl, key, &out->value, err);
    if (rc == DIBS_OK && !read_value(out))
        rc = dibsx_fail(err, DIBS_BROKEN, "the output %s is no output", inner);
    return rc;
}

void dibs__kept_output_fini(dibs__kept_output *out)
{
    dibs_value_free(&out->value);
}

void dibs__kept_output_put(dibsx_buf *value, const char *head, size_t head_len,
                           const char *tail, size_t tail_len, uint64_t left_out)
{
    const size_t len = head_len + tail_len,
                 room = DIBS_VALUE_MAX - LINE_MAX_LEN;
    const size_t over = len > room ? len - room : 0;
    const size_t cut = over < tail_len ? over : tail_len;

    if (cut)
        tail += cut;
    tail_len -= cut;
    head_len -= over - cut;
    left_out += over;
    dibsx_buf_printf(value, "%zu %" PRIu64 "\n", head_len, left_out);
    dibsx_buf_add(value, head, head_len);
    dibsx_buf_add(value, tail, tail_len);
}
