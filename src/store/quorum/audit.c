/* audit.c - the audit of a quorum.
 *
 * Each node is audited by itself. Any thread; changes nothing. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/quorum/round.h"
#include <inttypes.h>
#include <stdio.h>

enum { TEXT_MAX = 240 };

/* Passes the findings of a node on, with its endpoint in front. */
typedef struct relay {
    const char *endpoint;
    dibs_finding_fn *each;
    void *arg;
} relay;

static void pass_on(const dibs_finding *finding, void *arg)
{
    const relay *rl = arg;
    char subject[TEXT_MAX];
    dibs_finding at = *finding;

    snprintf(subject, sizeof(subject), "%s %s", rl->endpoint, finding->subject);
    at.subject = subject;
    rl->each(&at, rl->arg);
}

static void
report_finding(const relay *rl, dibs_severity severity, const char *subject,
               const char *found, const char *advice)
{
    const dibs_finding finding = {severity, subject, found, advice};

    pass_on(&finding, (void *)(uintptr_t)rl);
}

/* A copy of what is known of a node. */
typedef struct view {
    dibs__voter voter;
    int64_t took_us;
    int64_t off_ms;
    bool counts;
} view;

static view view_of(dibs__quorum *qm, size_t node)
{
    view vw;

    pthread_mutex_lock(&qm->mutex);
    vw.voter = qm->nodes[node].voter;
    vw.took_us = qm->nodes[node].took_us;
    vw.off_ms = dibs__skew_off_ms(&qm->skew, node);
    vw.counts = dibs__node_counts(qm, node, dibsx_now());
    pthread_mutex_unlock(&qm->mutex);
    return vw;
}

/* Whether the node votes, which it says itself when it is asked to renew
 * nothing. */
static bool
report_vote(dibs__quorum *qm, const relay *rl, size_t node, dibsx_nsec deadline)
{
    struct dibs__store *st = qm->nodes[node].st;
    view vw = view_of(qm, node);
    dibs__node_word word;
    char text[TEXT_MAX];
    dibs_error err = {0};
    dibs_status rc =
        st->ops->vote->renew(st, &vw.voter, NULL, 0, deadline, &word, &err);

    if (rc != DIBS_OK) {
        report_finding(rl, DIBS_CAUTION, "vote", err.message,
                       "it counts as away until it votes");
    } else if (!vw.counts) {
        snprintf(text, sizeof(text),
                 "does not count: its clock is %+" PRId64
                 " ms from the middle, "
                 "or has jumped, or it is another node by another name",
                 vw.off_ms);
        report_finding(rl, DIBS_CAUTION, "vote", text,
                       "set all clocks by NTP, slewed");
    } else {
        snprintf(text, sizeof(text),
                 "counts; answers in %" PRId64 " us, its clock is %+" PRId64
                 " ms from the middle",
                 vw.took_us, vw.off_ms);
        report_finding(rl, DIBS_FINE, "vote", text, NULL);
    }
    return rc == DIBS_OK && vw.counts;
}

/* True when it votes. */
static bool report_node(dibs__quorum *qm, size_t node, dibsx_nsec deadline,
                        dibs_finding_fn *each, void *arg)
{
    const relay rl = {qm->nodes[node].endpoint, each, arg};
    struct dibs__store *st = qm->nodes[node].st;
    dibsx_nsec limit = dibs__round_limit(qm, INT64_MAX, deadline);
    dibs__voter voter;
    dibs_error err = {0};
    dibs_status rc = dibs__node_meet(qm, node, limit, &voter, &err);

    if (rc == DIBS_OK)
        rc =
            st->ops->audit(st, deadline, pass_on, (void *)(uintptr_t)&rl, &err);
    if (rc != DIBS_OK) {
        report_finding(&rl, DIBS_CAUTION, "vote", err.message, "bring it back");
        return false;
    }
    return report_vote(qm, &rl, node, deadline);
}

dibs_status
dibs__quorum_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
                   void *arg, dibs_error *err)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    size_t voting = 0;
    char text[TEXT_MAX];
    bool enough;

    (void)err;
    for (size_t i = 0; i < qm->count; i++)
        voting += report_node(qm, i, deadline, each, arg);
    enough = voting >= dibs__majority(qm->count);
    snprintf(
        text, sizeof(text),
        "%zu of %zu nodes vote, %zu are needed; no lease lasts longer than "
        "%" PRId64 " s",
        voting, qm->count, dibs__majority(qm->count), qm->longest_ms / 1000);
    each(&(dibs_finding){!enough               ? DIBS_DANGER
                         : voting == qm->count ? DIBS_FINE
                                               : DIBS_CAUTION,
                         "quorum", text,
                         voting == qm->count ? NULL
                                             : "see the votes of the nodes"},
         arg);
    return DIBS_OK;
}
