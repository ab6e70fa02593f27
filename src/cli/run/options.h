/* options.h - what `dibs run` was asked to do, checked and ready to use. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_OPTIONS_H
#define DIBS_CLI_RUN_OPTIONS_H

#include "cli/lock_request.h"

typedef enum dibs__lost_policy {
    DIBS__LOST_KILL,   /* end the tree before the lease could pass on */
    DIBS__LOST_SIGNAL, /* send one signal early, then leave it alone */
    DIBS__LOST_IGNORE, /* say so and go on */
    DIBS__LOST_EXEC    /* run a shell line, then as kill */
} dibs__lost_policy;

typedef enum dibs__yield_policy {
    DIBS__YIELD_IGNORE,
    DIBS__YIELD_SIGNAL, /* one signal to the command for each request */
    DIBS__YIELD_EXIT    /* end the tree */
} dibs__yield_policy;

/* Text is borrowed from the command. */
typedef struct dibs__run_opts {
    dibs__lock_request request;
    const char *name;    /* the first of its names */
    char *const *argv;   /* what to run; may be shell_argv */
    char *shell_argv[4]; /* for -c */
    int64_t ttl_ms;      /* as the lease has it */
    int64_t progress_ms; /* 0: not asked for */
    int64_t max_run_ms;  /* 0: no bound */
    int64_t kill_after_ms;
    const char *once;
    int signal; /* what asks the command to end */
    dibs__lost_policy on_lost;
    int lost_signal;        /* for DIBS__LOST_SIGNAL */
    const char *lost_shell; /* for DIBS__LOST_EXEC */
    dibs__yield_policy on_yield;
    int yield_signal;      /* for DIBS__YIELD_SIGNAL */
    const char *yield_why; /* for DIBS__YIELD_EXIT: the reason that is said */
    int lost_code;
    int status_fd; /* -1: none */
    int output_fd; /* the command's standard output; -1: this process' own */
    bool once_after_success; /* else the start uses the slot up */
    bool null_stdin;
    bool foreground;
    bool tree_unchecked; /* run also where a tree cannot be found */
    bool quiet;
    bool verbose;
} dibs__run_opts;

/* Everything that happened, for the exit code and for --status-fd. */
typedef struct dibs__outcome {
    bool acquired;
    bool nested;  /* all of it was held further up the tree */
    bool skipped; /* --once: the slot was taken */
    bool lost;
    bool timed_out;    /* --max-run ended it */
    bool yielded;      /* --on-yield ended it */
    bool asked_to_end; /* by a signal, which the command got */
    bool guard_died;
    int stop_signal; /* of an item: the second signal, which ended it; 0: none */
    int exec_errno;  /* the command could not be started */
    int exit_status;  /* of the command; -1 when it has none */
    int exit_signal;  /* that ended the command; 0: none */
    bool interrupted; /* ... sent by the terminal that it was given */
    int64_t waited_ms;
    int64_t held_ms;
    uint64_t fence; /* of the first name */
} dibs__outcome;

/* 0, or DIBS__EXIT_USAGE after a message. */
int dibs__run_opts_read(const dibs__command *cmd, dibs__run_opts *opts);

/* The exit code that the outcome of a started command calls for. */
int dibs__outcome_code(const dibs__outcome *out, const dibs__run_opts *opts);

/* Returns unless ^C ended the command, which had the terminal, so that it reached no
 * other process. Then this process sends it to its group, the script around it for one,
 * and dies of it. */
void dibs__outcome_interrupt(const dibs__outcome *out);

/* Writes the line of --status-fd, if it was asked for. */
void dibs__outcome_report(const dibs__outcome *out, const dibs__run_opts *opts,
                          int code);

#endif
