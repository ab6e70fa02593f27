/* trace_parent.c - see trace_parent.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/trace_parent.h"
#include <string.h>

/* Lower-case digits of a part, of which one at least is not 0. */
static bool is_id(const char *part, size_t len)
{
    return strspn(part, "0123456789abcdef") == len && strspn(part, "0") < len;
}

/* 00-TRACE-PARENT-FLAGS: 32, 16 and 2 digits. */
bool dibs__trace_parent_ok(const char *text)
{
    static const char version[] = "00-";
    const size_t trace = sizeof(version) - 1, parent = trace + 33,
                 flags = parent + 17, len = flags + 2;

    return text && strlen(text) == len && strncmp(text, version, trace) == 0 &&
           is_id(text + trace, 32) && text[parent - 1] == '-' &&
           is_id(text + parent, 16) && text[flags - 1] == '-' &&
           strspn(text + flags, "0123456789abcdef") == 2;
}
