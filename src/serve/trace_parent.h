/* trace_parent.h - the header `traceparent` of W3C Trace Context, by which a tracing
 * system finds the request in the log. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TRACE_PARENT_H
#define DIBS_SERVE_TRACE_PARENT_H

#include <stdbool.h>

/* Whether the text is one of version 00, and may stand in the log as it is. NULL is
 * none. */
bool dibs__trace_parent_ok(const char *text);

#endif
