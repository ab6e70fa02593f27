/* durability.c - how many replicas must have a lease before it counts. Pure. */
/* SPDX-License-Identifier: MIT */
#include "core/durability.h"

#include "base/fail.h"
#include <string.h>

dibs_status dibs__durability_read(const char *text, uint32_t initial,
                                  uint32_t *replicas, dibs_error *err)
{
    *replicas = initial;
    if (!text)
        return DIBS_OK;
    *replicas = 0;
    if (strcmp(text, "async") == 0)
        return DIBS_OK;
    if (strncmp(text, "wait:", 5) != 0 || text[5] < '1' || text[5] > '9' ||
        text[6] != '\0')
        return dibsx_fail(err, DIBS_INVALID,
                          "durability is async, or wait:K with K from 1 to 9, "
                          "and not %.40s",
                          text);
    *replicas = (uint32_t)(text[5] - '0');
    return DIBS_OK;
}
