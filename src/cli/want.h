/* want.h - what run and acquire ask for: which names, of what kind, how long to
 * wait for them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_WANT_H
#define DIBS_CLI_WANT_H

#include "cli/command.h"

/* Text is borrowed from the command. */
typedef struct dibs__want {
    const char *names[DIBS_MULTI_MAX]; /* as given, without repeats */
    size_t count;
    dibs_lock_opts lock; /* for each of them */
    int busy_code;       /* -E */
    bool counted;        /* --share-stats */
    bool quiet;
} dibs__want;

/* 0, or DIBS__EXIT_USAGE after a message. */
int dibs__want_read(const dibs__command *cmd, dibs__want *want);

/* Says why it was not granted and returns the exit code. Under cron `-E 0` means
 * that a busy lock is no news. */
int dibs__want_refused(const dibs__command *cmd, const dibs__want *want,
                       const dibs_error *err);

#endif
