/* problem.c - errors as problem details. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/problem.h"
#include "serve/daemon.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const dibs__serve_problem dibs__serve_problems[] = {
    {"busy", 409, "Another owner holds the name"},
    {"timeout", 409, "The name was not granted in time"},
    {"mismatch", 409, "The name is in use in another mode or capacity"},
    {"stale", 409, "The fence or the version is out of date; nothing changed"},
    {"full", 409, "The queue has as many items as it may have"},
    {"broken", 409, "A party of the barrier died or gave up"},
    {"lost", 410, "The lease has ended"},
    {"notfound", 404, "There is no such thing"},
    {"unavail", 503, "The store is out of reach; nothing changed"},
    {"unknown", 504, "The store did not answer; it may have been done"},
    {"invalid", 400, "The request is not valid"},
    {"unsupported", 501, "The store cannot do that"},
    {"nomem", 503, "The daemon has no memory left"},
    {"internal", 500, "The daemon has failed"},
    {"store-denied", 502, "The store refuses the daemon's access"},
    {"store-refused", 502, "The store is unfit to be used"},
    {"cancelled", 503, "The daemon is shutting down; nothing changed"},
    {"token", 401, "An access token is needed"},
    {"role", 403, "The token may not do this"},
    {"origin", 403, "A web page of another origin asks"},
    {"method", 405, "The path does not take this method"},
    {"not-acceptable", 406, "There is no such form of the answer"},
    {"slow", 408, "The request took too long to arrive"},
    {"precondition", 412, "The thing is not as the request expects"},
    {"too-long", 413, "The body is too long"},
    {"media-type", 415, "The body must be JSON"},
    {"expectation", 417, "The expectation is not known"},
    {"host", 421, "The request is for another host"},
    {"fence-missing", 428, "The request must say which lease it means"},
    {"differs", 409, "The id is in use for a lease that was asked otherwise"},
    {"freed", 410, "The lease was given back"},
    {"session-unknown", 404, "The session has ended; adopt its leases"},
    {"draining", 503, "The daemon is shutting down; nothing changed"},
    {"too-busy", 503, "The daemon has too much to do; nothing changed"},
    {"keep", 400, "A stream cannot keep the session here"},
    {"limit", 429, "There were too many"},
    {"head-too-long", 431, "The head of the request is too long"},
    {"http-version", 505, "The version of HTTP is not known"},
    {NULL, 0, NULL}};

/* In the order of the enum, for those that differ from their name. */
static const struct {
    dibs_status rc;
    const char *code;
} codes[] = {{DIBS_BUSY, "busy"},
             {DIBS_TIMEOUT, "timeout"},
             {DIBS_LOST, "lost"},
             {DIBS_STALE, "stale"},
             {DIBS_NOTFOUND, "notfound"},
             {DIBS_MISMATCH, "mismatch"},
             {DIBS_CANCELLED, "cancelled"},
             {DIBS_BROKEN, "broken"},
             {DIBS_FULL, "full"},
             {DIBS_UNAVAIL, "unavail"},
             {DIBS_UNKNOWN, "unknown"},
             {DIBS_INVALID, "invalid"},
             {DIBS_UNSUPPORTED, "unsupported"},
             {DIBS_NOMEM, "nomem"},
             {DIBS_INTERNAL, "internal"},
             {DIBS_DENIED, "store-denied"},
             {DIBS_REFUSED, "store-refused"},
             {DIBS_FORKED, "internal"}};

static const dibs__serve_problem *find_problem(const char *code)
{
    const dibs__serve_problem *problem = dibs__serve_problems;

    while (problem->code && strcmp(problem->code, code) != 0)
        problem++;
    return problem;
}

/* The one whose status this is and no other's meaning. */
static const dibs__serve_problem *find_status(int status)
{
    static const char *const first[] = {"invalid",  "token",   "origin",
                                        "notfound", "unavail", "internal",
                                        "busy"};
    const dibs__serve_problem *problem;

    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        problem = find_problem(first[i]);
        if (problem->status == status)
            return problem;
    }
    problem = dibs__serve_problems;
    while (problem->code && problem->status != status)
        problem++;
    return problem->code ? problem : find_problem("internal");
}

const char *dibs__serve_problem_code(dibs_status rc)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].rc == rc)
            return codes[i].code;
    }
    return "internal";
}

int dibs__serve_problem_status(dibs_status rc)
{
    return find_problem(dibs__serve_problem_code(rc))->status;
}

static void put_problem(dibsx_json *js, const dibs__serve *sv, int status,
                        const dibs__serve_problem *problem, const char *detail)
{
    char type[256];

    snprintf(type, sizeof(type), "%s/problems#%s", sv->base, problem->code);
    dibsx_json_pair_text(js, "type", type);
    dibsx_json_pair_text(js, "title", problem->title);
    dibsx_json_pair_int(js, "status", status);
    dibsx_json_pair_text(js, "detail", detail);
    dibsx_json_pair_text(js, "code", problem->code);
}

void dibs__serve_fail_wait(dibs__http_exchange *ex, const dibs_error *err)
{
    if (err->status == DIBS_CANCELLED)
        (void)dibs__serve_refuse(ex, 404, "session-unknown",
                                 "the session has ended, and the wait with it");
    else
        (void)dibs__serve_fail(ex, err);
}

void dibs__serve_refuse_bound(dibs__http_exchange *ex, const dibs_error *err)
{
    if (err->status == DIBS_LOST)
        (void)dibs__serve_refuse(ex, 404, "session-unknown", "%s",
                                 err->message);
    else if (err->status == DIBS_FULL)
        (void)dibs__serve_refuse(ex, 429, "limit", "%s", err->message);
    else if (err->status == DIBS_STALE)
        (void)dibs__serve_refuse(ex, 409, "differs", "%s", err->message);
    else
        (void)dibs__serve_fail(ex, err);
}

void dibs__serve_problem_shape(dibsx_json *js, const void *arg, int status,
                               const char *message)
{
    const dibs__serve *sv = arg;
    const bool cancelled =
        status == 503 && atomic_load(&sv->phase) == DIBS__SERVE_DRAINING;

    put_problem(js, sv, status,
                cancelled       ? find_problem("cancelled")
                : status == 503 ? find_problem("too-busy")
                                : find_status(status),
                message);
}

dibsx_json *dibs__serve_refuse(dibs__http_exchange *ex, int status,
                               const char *code, const char *format, ...)
{
    char message[512];
    dibsx_json *js;
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    js = dibs__http_answer_as(ex, status, DIBS__SERVE_PROBLEM_TYPE);
    put_problem(js, dibs__http_arg(ex), status, find_problem(code), message);
    return js;
}

dibsx_json *dibs__serve_fail(dibs__http_exchange *ex, const dibs_error *err)
{
    const char *code = dibs__serve_problem_code(err->status);
    const int status = find_problem(code)->status;
    dibsx_json *js = dibs__serve_refuse(ex, status, code, "%s", err->message);

    if (status == 503)
        dibs__http_set(ex, "Retry-After", "1");
    dibsx_json_pair_bool(js, "retriable", err->retriable);
    if (err->origin[0])
        dibsx_json_pair_text(js, "origin", err->origin);
    return js;
}
