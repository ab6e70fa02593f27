/* attempt.h - one try to run a command: what to run, how it ended; and its packed form,
 * in which the executor receives it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_ATTEMPT_H
#define DIBS_EXEC_ATTEMPT_H

#include <dibs/types.h>

/* Command, environment and the rest of an attempt together. */
#define DIBS__ATTEMPT_MAX ((size_t)4 * 1024 * 1024)

/* Borrowed for the call. */
typedef struct dibs__attempt_spec {
    char *const *argv; /* looked up in the PATH of `env` */
    const char *shell; /* a text for /bin/sh instead, or NULL */
    char *const *env;  /* all of it: nothing is inherited */
    const char
        *env_file;     /* lines of NAME=value, which go over `env`; or NULL */
    const char *dir;   /* NULL: where the node was started */
    const char *user;  /* a name or a number; NULL: as the node */
    const void *input; /* standard input; NULL: /dev/null */
    size_t input_len;
    int64_t timeout_ms;    /* 0: none */
    int64_t kill_after_ms; /* from the signal to KILL */
    int signal;            /* asks the tree to end; 0: TERM */
    bool outlives_belief;  /* it goes on when the node's lease has ended */
    size_t output_keep;    /* see output.h */
    size_t output_head;
} dibs__attempt_spec;

typedef enum dibs__attempt_reason {
    DIBS__ATTEMPT_RUNNING,
    DIBS__ATTEMPT_OK,
    DIBS__ATTEMPT_FAILED,
    DIBS__ATTEMPT_TIMEOUT,
    DIBS__ATTEMPT_LOST, /* killed: the node's lease ended, or what guards it died */
    DIBS__ATTEMPT_CANCELLED,
    DIBS__ATTEMPT_STOPPED,    /* the node stops */
    DIBS__ATTEMPT_NOT_STARTED /* nothing was run */
} dibs__attempt_reason;

typedef struct dibs__attempt_end {
    dibs__attempt_reason reason;
    int exit_code;     /* -1: it did not exit by itself */
    int exit_signal;   /* 0: none ended it */
    char message[216]; /* of NOT_STARTED and LOST: why; else "" */
} dibs__attempt_end;

/* A spec as the executor has it: the strings are in `bytes`. */
typedef struct dibs__attempt_packed {
    char *bytes;
    char **argv;
    char **env;
    const char *dir;
    const char *user;
    int64_t timeout_ms;
    int64_t kill_after_ms;
    int signal;
    bool outlives_belief;
} dibs__attempt_packed;

/* Writes a spec into a memfd, with the environment of its file. -1 when it cannot. */
int dibs__attempt_pack(const dibs__attempt_spec *spec, dibs_error *err);

/* Reads it back. False when it is not whole, or memory is short. Free with
 * dibs__attempt_packed_fini(). */
bool dibs__attempt_unpack(int fd, dibs__attempt_packed *out);
void dibs__attempt_packed_fini(dibs__attempt_packed *packed);

#endif
