/* run_opts.h - what `dibs run` was asked to do, checked and ready to use. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_OPTS_H
#define DIBS_CLI_RUN_OPTS_H

#include "cli/command.h"

typedef enum dibs__lost_policy {
    DIBS__LOST_KILL,   /* end the tree before the lease could pass on */
    DIBS__LOST_SIGNAL, /* send one signal early, then leave it alone */
    DIBS__LOST_IGNORE, /* say so and go on */
    DIBS__LOST_EXEC    /* run a shell line, then as kill */
} dibs__lost_policy;

/* Text is borrowed from the command. */
typedef struct dibs__run_opts {
    const char *name;
    char *const *argv;   /* what to run; may be shell_argv */
    char *shell_argv[4]; /* for -c */
    int64_t wait_ms;     /* negative: without limit */
    uint32_t retries;
    int64_t retry_delay_ms;
    int64_t ttl_ms;
    int64_t hold_min_ms;
    int64_t hold_max_ms;
    int64_t max_run_ms; /* 0: no bound */
    int64_t kill_after_ms;
    int32_t priority;
    uint32_t flags; /* DIBS_LOCK_* */
    const char *label;
    const char *once;
    int signal; /* what asks the command to end */
    dibs__lost_policy on_lost;
    int lost_signal;        /* for DIBS__LOST_SIGNAL */
    const char *lost_shell; /* for DIBS__LOST_EXEC */
    int busy_code;
    int lost_code;
    int status_fd; /* -1: none */
    bool null_stdin;
    bool foreground;
    bool quiet;
    bool verbose;
} dibs__run_opts;

/* Everything that happened, for the exit code and for --status-fd. */
typedef struct dibs__outcome {
    bool acquired;
    bool nested;  /* a lock held further up the tree was used */
    bool skipped; /* --once: the slot was taken */
    bool lost;
    bool timed_out; /* --max-run ended it */
    bool guard_died;
    int exec_errno;   /* the command could not be started */
    int exit_status;  /* of the command; -1 when it has none */
    int exit_signal;  /* that ended the command; 0: none */
    bool interrupted; /* ... sent by the terminal that it was given */
    int64_t waited_ms;
    int64_t held_ms;
    uint64_t fence;
    char owner[DIBS_OWNER_SIZE];
    int64_t ttl_ms;
} dibs__outcome;

/* 0, or DIBS__EXIT_USAGE after a message. */
int dibs__run_opts_read(const dibs__command *cmd, dibs__run_opts *opts);

/* The exit code that the outcome of a started command calls for. */
int dibs__outcome_code(const dibs__outcome *out, const dibs__run_opts *opts);

/* Writes the line of --status-fd, if it was asked for. */
void dibs__outcome_report(const dibs__outcome *out, const dibs__run_opts *opts,
                          int code);

#endif
