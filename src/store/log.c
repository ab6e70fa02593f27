/* log.c - the part of the log steps that all stores share. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/log.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

dibs_status dibs__append_check(const dibs__append *what, dibs_error *err)
{
    if (what->len > DIBS__LOG_DATA_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "an entry of a log has at most %d bytes",
                          DIBS__LOG_DATA_MAX);
    if (what->lane > DIBS__LANE_MAX || what->number > DIBS__LANE_MAX)
        return dibsx_fail(err, DIBS_INVALID, "the lane or number is too large");
    return DIBS_OK;
}

dibs_status dibs__append_late(dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "the writer has appended a later entry; this one was not "
                      "appended");
}

void dibs__log_list_from(const dibs__log_query *query,
                         char out[DIBS__LOG_FROM_SIZE])
{
    if (query->after[0] && strcmp(query->after, query->begins) >= 0)
        snprintf(out, DIBS__LOG_FROM_SIZE, "%s\x01", query->after);
    else
        snprintf(out, DIBS__LOG_FROM_SIZE, "%s", query->begins);
}
