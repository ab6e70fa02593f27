/* rate_text.h - a rate as people write it. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RATE_TEXT_H
#define DIBS_CLI_RATE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads "100/s", "10/30s", "5/m"; a bare number is per second. False: it is no rate, and
 * nothing is set. */
bool dibs__rate_parse(const char *text, int64_t *count, int64_t *period_ms);

#endif
