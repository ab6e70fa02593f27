/* ledger.h - the rule of commits (store/commit.h), and how it reaches the values and
 * indexes of a store. Pure.
 *
 * A store that keeps them itself implements the operations, inside one transaction or
 * under one lock. The rule decides before it changes anything: so a commit that it
 * refuses leaves no trace, and several commits may share a transaction. A failure of an
 * operation ends the step, and the store takes all of it back. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LEDGER_H
#define DIBS_STORE_LEDGER_H

#include "store/commit.h"

typedef struct dibs__ledger dibs__ledger;

/* A value that has expired is none. */
typedef struct dibs__ledger_ops {
    /* The version of a value; 0: there is none. */
    dibs_status (*version)(dibs__ledger *lg, const char *key, uint64_t *out);

    /* Copies a value; DIBS_NOTFOUND: there is none, and *out is zeroed. */
    dibs_status (*read)(dibs__ledger *lg, const char *key, dibs_value *out);

    /* Draws a version, above all that there ever were. */
    dibs_status (*draw)(dibs__ledger *lg, uint64_t *version);

    /* Each writes or removes a value, and tells its topic of a change. */
    dibs_status (*put)(dibs__ledger *lg, const dibs__change *change,
                       uint64_t version);
    dibs_status (*drop)(dibs__ledger *lg, const char *key);

    dibs_status (*enter)(dibs__ledger *lg, const char *index,
                         const char *member, int64_t at);
    dibs_status (*leave)(dibs__ledger *lg, const char *index,
                         const char *member);
    dibs_status (*size)(dibs__ledger *lg, const char *index, uint64_t *out);
    dibs_status (*tell)(dibs__ledger *lg, const char *topic, uint64_t number);
} dibs__ledger_ops;

/* A store embeds this first and downcasts. */
struct dibs__ledger {
    const dibs__ledger_ops *ops;
    int64_t now_us; /* the store's wall clock, of this step */
};

/* Does one commit that dibs__commit_begin() has accepted. DIBS_OK: it has its rc, and
 * changed something only with DIBS_OK in it. */
DIBS_MUST_CHECK dibs_status dibs__ledger_commit(dibs__ledger *lg,
                                                dibs__commit *item);

#endif
