/* traits.h - what handles with the same options share: their client has it once.
 *
 * Owns the options of the handles of a client, and copies of their texts. Immutable
 * while a handle uses them. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_TRAITS_H
#define DIBS_CORE_LOCK_TRAITS_H

#include "base/table.h"
#include "core/machine/lease.h"
#include <dibs/lock.h>

typedef struct dibs__traits {
    dibsx_table_node node; /* first: in the client's table */
    size_t users;          /* handles */
    dibs_lock_opts opts;   /* whole, without texts, callbacks and priority */
    char *label;           /* NULL: the client's */
    char *meta;        /* as others are shown it, tabs included; NULL: none */
    char *identity;    /* NULL: the thread that acquires */
    bool hears;        /* the holder must get the notices of its doorbell */
    uint32_t replicas; /* must have the lease too, in the client's store */
    dibs__terms terms; /* for each lease, in the client's store */
    dibs__ask ask;     /* for each acquire: what the options say of it */
} dibs__traits;

/* Has the client keep `draft`, or find what it has already that is alike; one more
 * handle uses it. The texts of the draft belong to the client afterwards, also when
 * memory is short: NULL. Locks: cl->mutex. */
const dibs__traits *dibs__traits_keep(dibs_client *cl, dibs__traits *draft);

/* A handle uses them no more. Locks: cl->mutex. */
void dibs__traits_drop(dibs_client *cl, const dibs__traits *traits);

/* Frees the texts of a draft. */
void dibs__traits_fini(dibs__traits *draft);

#endif
