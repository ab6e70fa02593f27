/* catalog.h - lists of things that are no locks: queues, breakers, groups, barriers,
 * latches, limits and topics, each listed once a second for all who ask.
 *
 *     catalog thread: list what is wanted --> page --> waiters are woken --> pause
 *     others:         take the latest page of a kind, read it, let go of it
 *
 * A page does not change, so that any thread reads it without a mutex. A kind that
 * nobody has asked for rests. The pause after a listing is at least 20 times as long
 * as the listing took.
 *
 * A store lists the breakers that have opened. Others are those that requests have named:
 * dibs__catalog_learn(). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_CATALOG_H
#define DIBS_SERVE_CATALOG_H

#include "base/clock.h"
#include "base/json.h"
#include "serve/life.h"
#include <dibs/dibs.h>
#include <stdatomic.h>

enum {
    DIBS__CATALOG_ROWS_MAX = 10000,
    DIBS__CATALOG_KNOWN_MAX = 256 /* names of a kind that requests named */
};

typedef enum dibs__catalog_kind {
    DIBS__CATALOG_QUEUES,
    DIBS__CATALOG_BREAKERS,
    DIBS__CATALOG_GROUPS,
    DIBS__CATALOG_BARRIERS,
    DIBS__CATALOG_LATCHES,
    DIBS__CATALOG_LIMITS,
    DIBS__CATALOG_TOPICS,
    DIBS__CATALOG_KINDS
} dibs__catalog_kind;

typedef struct dibs__catalog_row {
    char name[DIBS_NAME_MAX + 1];
    char state[16]; /* "open", "paused"; "": it has none */
    char *json;     /* its pairs, without braces */
    union {         /* for metrics, as the kind is; others have none */
        dibs_queue_info queue;
        dibs_breaker_info breaker;
    } facts;
} dibs__catalog_row;

typedef struct dibs__catalog_page {
    atomic_size_t users;
    dibsx_nsec seen_at; /* when the listing began */
    int64_t took_us;
    dibs_status rc; /* of the listing; rows are none if it failed */
    dibs_error err;
    dibs__catalog_row *rows; /* in the order of names */
    size_t count, room;
    bool complete; /* false: there are more, or may be */
} dibs__catalog_page;

typedef void dibs__catalog_wake_fn(void *arg);

/* Adds all rows of a kind with dibs__catalog_add(). Catalog thread. */
typedef struct dibs__serve_catalog dibs__serve_catalog;
typedef dibs_status
dibs__catalog_list_fn(dibs__serve_catalog *ca, dibs__catalog_page *page,
                      dibs_error *err);

struct dibs__serve_catalog {
    dibs_client *cl; /* borrowed */
    int64_t every_ms;
    dibs__catalog_wake_fn *wake;
    void *wake_arg;

    dibs__serve_life life; /* its mutex is for all below */
    struct {
        dibs__catalog_page *latest; /* NULL before the first */
        dibsx_nsec wanted_at, due_at;
        bool wanted; /* once */
        char (*known)[DIBS_NAME_MAX + 1];
        size_t known_count, known_next;
    } kinds[DIBS__CATALOG_KINDS];
};

/* End with dibs__catalog_fini(), which stops it, before the client is closed. */
DIBS_MUST_CHECK dibs_status dibs__catalog_init(dibs__serve_catalog *ca,
                                               dibs_client *cl,
                                               int64_t every_ms,
                                               dibs__catalog_wake_fn *wake,
                                               void *wake_arg, dibs_error *err);
void dibs__catalog_fini(dibs__serve_catalog *ca);

/* The latest page that is no older than the pace; waits for it, for `wait_ms` at most.
 * May be older, or NULL before the first one. End with dibs__catalog_drop(). */
dibs__catalog_page *
dibs__catalog_take(dibs__serve_catalog *ca, dibs__catalog_kind kind,
                   int64_t wait_ms);
void dibs__catalog_drop(dibs__catalog_page *page);

/* A request has named a thing, which is listed from now on, as one of the latest. */
void dibs__catalog_learn(dibs__serve_catalog *ca, dibs__catalog_kind kind,
                         const char *name);

/* Calls `each` for every name that was learnt; false ends that. Catalog thread. */
typedef bool dibs__catalog_name_fn(const char *name, void *arg);
void dibs__catalog_known(dibs__serve_catalog *ca, dibs__catalog_kind kind,
                         dibs__catalog_name_fn *each, void *arg);

/* Adds a row. `pairs` are copied. False: there is no room for more. */
DIBS_MUST_CHECK bool
dibs__catalog_add(dibs__catalog_page *page, const char *name, const char *state,
                  const dibsx_buf *pairs);

/* catalog_list.c: one for each kind. */
extern dibs__catalog_list_fn *const dibs__catalog_lists[DIBS__CATALOG_KINDS];

#endif
