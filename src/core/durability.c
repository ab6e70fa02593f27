/* durability.c - how many replicas must have a write before it counts. Pure. */
/* SPDX-License-Identifier: MIT */
#include "core/durability.h"
#include "base/fail.h"
#include "config/option.h"

dibs_status dibs__durability_read(const char *text, uint32_t initial,
                                  uint32_t *replicas, dibs_error *err)
{
    *replicas = initial;
    if (!text)
        return DIBS_OK;
    if (!dibs__replicas_parse(text, replicas))
        return dibsx_fail(err, DIBS_INVALID,
                          "durability is async, or wait:K with K from 1 to 9, "
                          "and not %.40s",
                          text);
    return DIBS_OK;
}
