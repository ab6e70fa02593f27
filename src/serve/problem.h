/* problem.h - errors as problem details (RFC 9457).
 *
 * {"type":"/problems#busy","title":...,"status":409,"detail":...,"code":"busy",
 *  "retriable":true}: the code is for programs, the type leads people to a page. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_PROBLEM_H
#define DIBS_SERVE_PROBLEM_H

#include "http/exchange.h"

#define DIBS__SERVE_PROBLEM_TYPE "application/problem+json"

/* The status of HTTP that says what is true of the store. */
int dibs__serve_problem_status(dibs_status rc);

/* "busy", "lost", "store-denied". */
const char *dibs__serve_problem_code(dibs_status rc);

/* Answers with the failure of a call. Returns the writer for further members. */
dibsx_json *dibs__serve_fail(dibs__http_exchange *ex, const dibs_error *err);

/* The same for a call that waits for a session, and is cancelled when that ends. */
void dibs__serve_fail_wait(dibs__http_exchange *ex, const dibs_error *err);

/* Answers with a refusal of the daemon's own. Returns the writer, too. */
dibsx_json *dibs__serve_refuse(dibs__http_exchange *ex, int status,
                               const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Answers with the failure of dibs__bound_take() or dibs__bound_call(). */
void dibs__serve_refuse_bound(dibs__http_exchange *ex, const dibs_error *err);

/* The shape of the server's own errors; `arg` is the daemon. */
void dibs__serve_problem_shape(dibsx_json *js, const void *arg, int status,
                               const char *message);

/* Every code with its title, as a page; ends with a code of NULL. */
typedef struct dibs__serve_problem {
    const char *code;
    int status;
    const char *title;
} dibs__serve_problem;

extern const dibs__serve_problem dibs__serve_problems[];

#endif
