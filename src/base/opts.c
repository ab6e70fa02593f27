/* opts.c - options of the public interface; see opts.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/opts.h"
#include <string.h>

/* No options are so large: this is memory that nobody has set. */
enum { SIZE_LIMIT = 4096 };

dibs_status dibsx_opts_copy(void *out, size_t out_size, const void *given,
                            const char *macro, dibs_error *err)
{
    size_t size;

    memset(out, 0, out_size);
    if (!given)
        return DIBS_OK;
    memcpy(&size, given, sizeof(size));
    if (size < sizeof(size) || size > SIZE_LIMIT)
        return dibsx_fail(err, DIBS_INVALID,
                          "the size of the options is not set; use %s", macro);
    memcpy(out, given, size < out_size ? size : out_size);
    return DIBS_OK;
}
