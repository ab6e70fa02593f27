/* queue_findings.h - what doctor says of a queue: what an operator should act on. Pure.
 *
 * A store keeps every promise about these queues. But items wait for somebody who does
 * not come, or the next push or death finds no room. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_QUEUE_FINDINGS_H
#define DIBS_CLI_QUEUE_FINDINGS_H

#include <dibs/queue_admin.h>

enum {
    DIBS__QUEUE_ALONE_MS = 10 * 60 * 1000, /* items without a worker */
    DIBS__QUEUE_SLOW_MS = 60 * 60 * 1000   /* items in spite of workers */
};

/* Calls `each` for what is found. How often it did so. */
int dibs__queue_findings(const char *name, const dibs_queue_info *info,
                         dibs_finding_fn *each, void *arg);

#endif
