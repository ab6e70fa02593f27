/* driver.h - the libpq library, loaded when the first server is spoken to.
 *
 * Nothing links to libpq: its functions are called through the table below,
 * `dibs__pq.PQgetResult(...)`. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_DRIVER_H
#define DIBS_STORE_POSTGRES_DRIVER_H

#include <dibs/types.h>
#include <libpq-fe.h>

#define DIBS__PQ_CALLS(X)                                                      \
    X(PQbackendPID)                                                            \
    X(PQclear)                                                                 \
    X(PQconnectPoll)                                                           \
    X(PQconnectStartParams)                                                    \
    X(PQconsumeInput)                                                          \
    X(PQerrorMessage)                                                          \
    X(PQfinish)                                                                \
    X(PQflush)                                                                 \
    X(PQfreemem)                                                               \
    X(PQgetResult)                                                             \
    X(PQgetisnull)                                                             \
    X(PQgetlength)                                                             \
    X(PQgetvalue)                                                              \
    X(PQgssEncInUse)                                                           \
    X(PQhost)                                                                  \
    X(PQisBusy)                                                                \
    X(PQnfields)                                                               \
    X(PQnotifies)                                                              \
    X(PQntuples)                                                               \
    X(PQport)                                                                  \
    X(PQresultErrorField)                                                      \
    X(PQresultStatus)                                                          \
    X(PQsendPrepare)                                                           \
    X(PQsendQuery)                                                             \
    X(PQsendQueryParams)                                                       \
    X(PQsendQueryPrepared)                                                     \
    X(PQserverVersion)                                                         \
    X(PQsetErrorVerbosity)                                                     \
    X(PQsetNoticeReceiver)                                                     \
    X(PQsetnonblocking)                                                        \
    X(PQsocket)                                                                \
    X(PQsslInUse)                                                              \
    X(PQstatus)

#define DIBS__PQ_SLOT(call) __typeof__(call) *call;

typedef struct dibs__pq_calls {
    DIBS__PQ_CALLS(DIBS__PQ_SLOT)
} dibs__pq_calls;

/* Filled by dibs__pq_load(), constant afterwards. */
extern dibs__pq_calls dibs__pq;

/* Any thread; the first success is for good. DIBS_UNAVAIL: not installed, and
 * err says what to install. */
DIBS_MUST_CHECK dibs_status dibs__pq_load(dibs_error *err);

#endif
