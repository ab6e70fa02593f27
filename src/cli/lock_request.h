/* lock_request.h - what run and acquire ask for: which names, of what kind, how long to
 * wait for them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_LOCK_REQUEST_H
#define DIBS_CLI_LOCK_REQUEST_H

#include "cli/command.h"
#include "cli/run/env.h"

/* So many texts of metadata, of two bytes at least, fit into a lease, and one more
 * is ours. */
enum { DIBS__META_TEXTS = 80 };

/* Text is borrowed from the command. It points into itself: it cannot be copied. */
typedef struct dibs__lock_request {
    const char *names[DIBS_MULTI_MAX]; /* as given, without repeats */
    size_t count;
    dibs_lock_opts lock; /* for each of them */
    char within[DIBS__WITHIN_SIZE];
    const char *meta[DIBS__META_TEXTS + 2]; /* given, and `within` */
    int busy_code;                          /* -E */
    bool counted;                           /* --share-stats */
    bool patient; /* -w or --retries: a store that is away is waited for */
    bool quiet;
} dibs__lock_request;

/* 0, or DIBS__EXIT_USAGE after a message. */
int dibs__lock_request_read(const dibs__command *cmd,
                            dibs__lock_request *request);

/* Reads --renew-every of run and elect; the ttl is known. As above. */
int dibs__lock_request_renewal(const dibs__command *cmd, dibs_lock_opts *lock);

/* Opens the client that the request wants: without contact when it is patient, and
 * it becomes so when the URL asks for none. As dibs__cli_open(). */
int dibs__lock_request_open(const dibs__command *cmd,
                            dibs__lock_request *request, dibs_client **out);

/* Whether the request waits on after this failure of the store. */
bool dibs__lock_request_outwaits(const dibs__lock_request *request,
                                 dibs_status rc);

/* Says why it was not granted and returns the exit code. Under cron `-E 0` means
 * that a busy lock is no news. */
int dibs__lock_request_refused(const dibs__command *cmd,
                               const dibs__lock_request *request,
                               const dibs_error *err);

#endif
