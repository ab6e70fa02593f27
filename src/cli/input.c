/* input.c - bytes for the store: an operand, or what standard input gives. Main thread
 * only. */
/* SPDX-License-Identifier: MIT */
#include "cli/input.h"

#include "base/fail.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

dibs_status
dibs__input_part(void *out, size_t size, size_t *got, dibs_error *err)
{
    ssize_t len;

    do {
        len = read(STDIN_FILENO, out, size);
    } while (len < 0 && errno == EINTR);
    *got = len < 0 ? 0 : (size_t)len;
    if (len < 0)
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                             "cannot read standard input: %s", strerror(errno));
    return DIBS_OK;
}

static dibs_status
read_stdin(dibs__input *in, const char *thing, size_t max, dibs_error *err)
{
    char part[8192];
    size_t got;
    dibs_status rc;

    do {
        rc = dibs__input_part(part, sizeof(part), &got, err);
        if (rc == DIBS_OK)
            dibsx_buf_add(&in->buf, part, got);
    } while (rc == DIBS_OK && got > 0 && dibsx_buf_ok(&in->buf));
    if (rc != DIBS_OK)
        return rc;
    if (!dibsx_buf_ok(&in->buf))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s may have %zu bytes; standard input has more",
                          thing, max);
    in->data = dibsx_buf_text(&in->buf);
    in->len = in->buf.len;
    return DIBS_OK;
}

dibs_status dibs__input_read(dibs__input *in, const char *operand,
                             const char *thing, size_t max, dibs_error *err)
{
    dibsx_buf_init(&in->buf, max);
    if (!operand || strcmp(operand, "-") == 0)
        return read_stdin(in, thing, max, err);
    in->data = operand;
    in->len = strlen(operand);
    return DIBS_OK;
}
