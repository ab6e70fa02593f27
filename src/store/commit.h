/* commit.h - the commit steps of the store contract: values and indexes that change
 * together or not at all, and the reads that go with them. store/ledger.h has the rule.
 *
 * An index is a name with members in the order of their numbers, and of their bytes
 * where numbers are equal. It changes by commits alone; without members there is none.
 * Values are those of store/value.h: put, add and delete see the changes of a commit,
 * and it sees theirs.
 *
 * All names of a commit are in one slot, on every store: they have the same {tag}, the
 * text between the first "{" and the "}" after it. A commit that names one value or one
 * index, and nothing else, needs no tag. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_COMMIT_H
#define DIBS_STORE_COMMIT_H

#include "base/clock.h"
#include <dibs/state.h>

struct dibs__store;

enum {
    DIBS__COMMITS_MAX = 64,           /* in one step */
    DIBS__CHECKS_MAX = 64,            /* of one commit */
    DIBS__CHANGES_MAX = 320,          /* of one commit */
    DIBS__COMMIT_DATA_MAX = 16 << 20, /* bytes of values in one step */
    DIBS__GET_MANY_MAX = 64,          /* values of one step */
    DIBS__LOOKS_MAX = 32,             /* indexes of one step */
    DIBS__LOOK_LIMIT_MAX = 1024       /* entries of one look */
};

/* Numbers of an index are 0 to DIBS__INDEX_AT_MAX; from now on they are up to
 * DIBS__INDEX_SPAN_MAX_US. All stores are exact up to there. */
#define DIBS__INDEX_AT_MAX      ((INT64_C(1) << 53) - 1)
#define DIBS__INDEX_SPAN_MAX_US INT64_C(1000000000000000)

typedef struct dibs__check {
    const char *key;  /* of a value */
    uint64_t version; /* 0: there is nothing, or it has expired */
} dibs__check;

typedef enum dibs__change_verb {
    DIBS__CHANGE_PUT,    /* writes the value `key`, and tells its topic */
    DIBS__CHANGE_DELETE, /* removes the value `key` if it is there, and tells */
    DIBS__CHANGE_ENTER,  /* puts `member` into the index `key`, or moves it */
    DIBS__CHANGE_LEAVE, /* takes `member` out of the index `key` if it is in it */
    DIBS__CHANGE_TELL   /* tells the topic `key` a number (store/topic.h) */
} dibs__change_verb;

/* The order of the changes of a commit means nothing: no value and no member of an
 * index is changed twice. */
typedef struct dibs__change {
    dibs__change_verb verb;
    const char *key;
    const char *member; /* 1 to DIBS_NAME_MAX bytes */
    const void *data;   /* of put; up to DIBS_VALUE_MAX bytes */
    size_t len;
    int64_t ttl_ms;  /* of put; 0: for ever */
    int64_t at;      /* of enter: its number */
    bool from_now;   /* `at` is in microseconds from now on the store's clock */
    uint64_t number; /* of tell; 0: the version of this commit */
    bool
        uncounted; /* of enter: `size` is not wanted. Commits of several clients
                        that enter one index do not wait for each other then */
    uint64_t size; /* out, of enter: members of the index after the commit; 0 if
                        they are not counted */
} dibs__change;

/* A commit first looks at the clock, then at the checks in their order, then it does
 * all changes. Its rc is
 *   DIBS_OK       all is done
 *   DIBS_STALE    the value of a check has another version
 *   DIBS_EARLY    the store's clock is below not_before_us
 *   DIBS_LATE     it is above not_after_us
 * or what the step answers otherwise; without DIBS_OK nothing changed, but for
 * DIBS_UNKNOWN. */
typedef struct dibs__commit {
    int64_t not_before_us,
        not_after_us; /* of the store's wall clock; 0: none */
    const dibs__check *checks;
    size_t check_count;
    dibs__change *changes;
    size_t change_count;

    /* The answer: */
    dibs_status rc;
    size_t failed;    /* STALE: the first check that does not hold */
    dibs_value found; /* STALE: its value; zeros: there is none */
    uint64_t version; /* OK: of all that it wrote, used for no key before; also
                         when it wrote no value. Above those of its checks. */
    int64_t now_us; /* the store's wall clock; 0 only if there was no answer */
} dibs__commit;

/* One index to look at: entries with numbers from `from` to `up_to`, in order. */
typedef struct dibs__index_look {
    const char *index;
    int64_t from;
    int64_t up_to;  /* DIBS__UP_TO_NOW: the store's wall clock, in us */
    uint32_t skip;  /* entries that are passed over first */
    uint32_t limit; /* entries to show; 0: none */
    int64_t next; /* out: the number of the first entry behind those shown, also
                     above `up_to`; -1: there is none */
} dibs__index_look;

#define DIBS__UP_TO_NOW (-1)

/* Called for each entry, after the step; the store is not locked. `look` is the
 * number of the look that it is for; they are shown in order. */
typedef void
dibs__index_fn(size_t look, const char *member, int64_t at, void *arg);

typedef struct dibs__commit_ops {
    /* Up to DIBS__COMMITS_MAX commits in one round trip; in a cluster, one for each
     * slot. They are independent, as if several clients had sent them at once.
     * DIBS_OK: each has its rc. Otherwise each has the rc of the step, and
     * DIBS_UNKNOWN means that any of them may have been done.
     * DIBS_INVALID: store/commit_check.h refused one; nothing changed.
     * Free what was found with dibs__commit_fini(). */
    dibs_status (*commit)(struct dibs__store *st, dibs__commit *items,
                          size_t count, dibsx_nsec deadline, dibs_error *err);

    /* Up to DIBS__GET_MANY_MAX values at one moment; in a cluster, those of one slot.
     * The version is 0 where there is none. Free each with dibs_value_free(); all
     * are zeroed without DIBS_OK. */
    dibs_status (*get_many)(struct dibs__store *st, const char *const *keys,
                            size_t count, dibsx_nsec deadline, dibs_value *out,
                            dibs_error *err);

    /* The first entries of up to DIBS__LOOKS_MAX indexes at one moment; in a cluster,
     * those of one slot. */
    dibs_status (*first)(struct dibs__store *st, dibs__index_look *looks,
                         size_t count, dibsx_nsec deadline, int64_t *now_us,
                         dibs__index_fn *each, void *arg, dibs_error *err);
} dibs__commit_ops;

/* As DIBS__LEASE_STEPS(). */
#define DIBS__COMMIT_STEPS(X)                                                  \
    X(commit, COMMIT)                                                          \
    X(get_many, GET_MANY)                                                      \
    X(first, FIRST)

/* Frees what was found; the commits may be sent again. */
void dibs__commit_fini(dibs__commit *items, size_t count);

#endif
