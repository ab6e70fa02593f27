/* renew.h - renewals under way: entries, the scripts that renew them, and the
 * outcome of each. Shared by the files of the step: renew.c, renew_cluster.c,
 * and below both renew_script.c. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_RENEW_H
#define DIBS_STORE_REDIS_RENEW_H

#include "base/buf.h"
#include "store/redis/lease_words.h"

/* Leases renewed by one script: few enough that other commands do not wait for
 * long. Each has four keys and three words. */
enum { DIBS__RENEWAL_BATCH = 64 };
_Static_assert(6 + 7 * DIBS__RENEWAL_BATCH <= DIBS__WORDS_MAX,
               "they fit into a command");

/* The words of one script, and their storage. */
typedef struct dibs__renewal_sheet {
    dibs__words words;
    dibs__keys keys[DIBS__RENEWAL_BATCH];
    char fences[DIBS__RENEWAL_BATCH][DIBS__NUMBER_MAX];
    char ttls[DIBS__RENEWAL_BATCH][DIBS__NUMBER_MAX];
    char key_count[DIBS__NUMBER_MAX];
} dibs__renewal_sheet;

typedef struct dibs__renewal_entry {
    dibs__renewal *item;
    int slot; /* both are 0 when there is no cluster */
    int server;
    bool failing; /* the server has failed the last time */
    bool sent;
    bool answered; /* of the first of a script: with an error, */
    bool stuck;    /* ... because its slot is being moved */
    bool done;
    bool unconfirmed; /* replicas must acknowledge it still */
} dibs__renewal_entry;

/* A script: entries that are next to each other. */
typedef struct dibs__renewal_piece {
    dibs__renewal_entry *first;
    size_t count;
} dibs__renewal_piece;

/* Renewals under way. */
typedef struct dibs__renewing {
    dibs__redis *rd;
    dibs__renewal_entry *entries;
    size_t count;
    dibsx_nsec deadline;
    int64_t patience_ms; /* in a cluster, for one server */
    dibs__renewal_sheet *sheet;
    dibsx_buf bytes;
    size_t failed;
    bool unsure;    /* one of them may have been renewed */
    dibs_error why; /* the reason why the last one failed */
} dibs__renewing;

/* Replicas must acknowledge it. */
static inline bool dibs__renewal_awaits_replicas(const dibs__renewal_entry *at)
{
    return at->item->replicas > 0;
}

/* Sorts entries so that one script's are together. Renewals that replicas must
 * acknowledge come last, before them servers that failed the last time. */
void dibs__renewing_sort(dibs__renewing *rn);

/* As many as one script can do, from `first` on. */
dibs__renewal_piece
dibs__renewing_piece_at(const dibs__renewing *rn, dibs__renewal_entry *first);

/* Sends the scripts for a server that were not sent yet together, except
 * renewals that replicas must acknowledge. A script that is redirected, or
 * meets another error, is left for later; in a cluster so is one that was not
 * sent. */
void dibs__renewing_send_to(dibs__renewing *rn, int server, dibsx_nsec until);

/* Runs a script by itself: it follows redirections, and brings its text along.
 * With any status but DIBS_OK nothing is noted yet. Renewals that need replicas
 * are confirmed too; but if they ran on the connection of `shared`, or were the first to
 * borrow one for it, the caller confirms them. NULL: nothing is shared. */
DIBS_MUST_CHECK dibs_status dibs__renewing_run(dibs__renewing *rn,
                                               const dibs__renewal_piece *pc,
                                               dibs__loan *shared,
                                               dibsx_nsec until);

/* Runs the script of the sheet. If replicas must acknowledge it, it runs on a
 * connection of its own, which is then lent, or on that of `shared`. */
DIBS_MUST_CHECK dibs_status dibs__renewing_run_sheet(
    dibs__renewing *rn, dibs__script script, bool awaits_replicas,
    dibsx_nsec until, dibs__loan *shared, dibs__loan *loan, redisReply **reply);

/* Waits once for the replicas of all that is unconfirmed. A renewal that too few of
 * them acknowledged may be lost: the lease keeps its earlier end. */
void dibs__renewing_confirm(dibs__renewing *rn, dibs__renewal_entry *first,
                            size_t count, dibs__loan *loan);

/* Notes that the entries had no answer. */
void dibs__renewing_give_up(dibs__renewing *rn, const dibs__renewal_piece *pc,
                            dibs_status rc);

/* Renews all of them in a cluster (renew_cluster.c). */
void dibs__renewing_in_cluster(dibs__renewing *rn);

#endif
