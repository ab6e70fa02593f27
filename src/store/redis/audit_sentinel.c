/* audit_sentinel.c - the audit of the sentinels.
 *
 * Owns nothing. Runs on the thread that asks for the audit. */
/* SPDX-License-Identifier: MIT */
#include "store/audit.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A sentinel that takes longer counts as one that does not answer. */
enum { PATIENCE_MS = 1000 };

/* Fewer sentinels cannot outvote a wrong one. */
enum { FEW = 3 };

typedef struct sentinel_audit {
    dibs__redis *rd;
    dibs__audit_report to;
    dibsx_nsec deadline;
    size_t known;    /* sentinels */
    size_t answered; /* sentinels that answered */
    bool differ;     /* they name different primaries */
    char primary[DIBS__HOST_MAX + 8];
    int64_t quorum;
    int64_t others; /* sentinels that the first knows of */
    int64_t replicas;
} sentinel_audit;

/* False when the sentinel did not answer, or does not know the name. */
static bool ask_sentinel(const sentinel_audit *au, dibs__conn *cn,
                         const char *question, redisReply **out)
{
    dibs__words words = {.count = 0};

    *out = NULL;
    dibs__words_puts(&words, "SENTINEL");
    dibs__words_puts(&words, question);
    dibs__words_puts(&words, dibs__sentinel_name(au->rd->sentinel));
    return dibs__conn_ask(cn, &words, dibsx_after_ms(dibsx_now(), PATIENCE_MS),
                          out, NULL) == DIBS_OK &&
           (*out)->type == REDIS_REPLY_ARRAY;
}

static void hear_primary(sentinel_audit *au, const redisReply *reply)
{
    char primary[sizeof(au->primary)];
    dibs__endpoint endpoint = {.port = 0};

    (void)dibs__sentinel_read_endpoint(dibs__reply_item(reply, 0),
                                       dibs__reply_item(reply, 1), &endpoint);
    snprintf(primary, sizeof(primary), "%s:%d", endpoint.host, endpoint.port);
    if (au->answered++ == 0)
        memcpy(au->primary, primary, sizeof(primary));
    else if (strcmp(au->primary, primary) != 0)
        au->differ = true;
}

/* Asks one sentinel; the first one answers for the whole. */
static void visit_sentinel(sentinel_audit *au, dibs__conn *cn)
{
    redisReply *reply = NULL;

    if (ask_sentinel(au, cn, "get-master-addr-by-name", &reply))
        hear_primary(au, reply);
    dibs__reply_free(reply);
    if (au->answered != 1)
        return;
    if (ask_sentinel(au, cn, "master", &reply)) {
        (void)dibs__reply_int(dibs__sentinel_field(reply, "quorum"),
                              &au->quorum);
        (void)dibs__reply_int(dibs__sentinel_field(reply,
                                                   "num-other-sentinels"),
                              &au->others);
        (void)dibs__reply_int(dibs__sentinel_field(reply, "num-slaves"),
                              &au->replicas);
    }
    dibs__reply_free(reply);
}

static void visit_all(sentinel_audit *au)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; rc != DIBS_NOTFOUND && dibsx_now() < au->deadline; i++) {
        dibs__conn *cn = NULL;

        rc = dibs__sentinel_open(au->rd->sentinel, i, -1,
                                 dibsx_after_ms(dibsx_now(), PATIENCE_MS), &cn,
                                 NULL);
        if (rc != DIBS_NOTFOUND)
            au->known++;
        if (rc == DIBS_OK)
            visit_sentinel(au, cn);
        dibs__conn_close(cn);
    }
}

static void report_sentinels(const sentinel_audit *au)
{
    if (au->differ)
        dibs__audit_tell(
            &au->to, DIBS_CAUTION, "sentinels",
            "a failover is under way, or the network between them is cut",
            "%zu of %zu answer and do not agree on the primary", au->answered,
            au->known);
    else if (2 * au->answered <= au->known)
        dibs__audit_tell(&au->to, DIBS_CAUTION, "sentinels",
                         "without a majority of them there is no failover",
                         "%zu of %zu answer", au->answered, au->known);
    else if (au->known < FEW)
        dibs__audit_tell(&au->to, DIBS_CAUTION, "sentinels",
                         "run three or more, each on a machine of its own",
                         "%zu of %zu answer", au->answered, au->known);
    else
        dibs__audit_tell(&au->to, DIBS_FINE, "sentinels", NULL,
                         "%zu of %zu answer: %s", au->answered, au->known,
                         au->primary);
}

static void report_quorum(const sentinel_audit *au)
{
    int64_t all = au->others + 1;

    if (au->quorum == 0)
        dibs__audit_tell(&au->to, DIBS_NOTE, "quorum",
                         "let the user run SENTINEL MASTER", "not known");
    else if (au->quorum == 1)
        dibs__audit_tell(
            &au->to, DIBS_CAUTION, "quorum",
            "set it to a majority: what one sentinel cannot reach is not down",
            "1 of %" PRId64, all);
    else if (au->quorum > all)
        dibs__audit_tell(&au->to, DIBS_CAUTION, "quorum",
                         "there are too few to ever fail over",
                         "%" PRId64 " of %" PRId64, au->quorum, all);
    else
        dibs__audit_tell(&au->to, DIBS_FINE, "quorum", NULL,
                         "%" PRId64 " of %" PRId64, au->quorum, all);
    if (au->quorum > 0 && au->replicas == 0)
        dibs__audit_tell(&au->to, DIBS_CAUTION, "failover",
                         "add replicas: there is none to "
                         "become the primary",
                         "no replica is known to the sentinels");
}

/* A primary that is cut off goes on to grant, if it does not need its
 * replicas. */
static dibs_status report_isolation(const sentinel_audit *au, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    char number[32] = "?";
    dibs_status rc;

    dibs__words_puts(&words, "CONFIG");
    dibs__words_puts(&words, "GET");
    dibs__words_puts(&words, "min-replicas-to-write");
    rc = dibs__route_call_at(au->rd->steps, NULL, &words, au->deadline, &reply,
                             err);
    if (rc != DIBS_OK)
        return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
    if (dibs__reply_item(reply, 1))
        dibs__reply_text(dibs__reply_item(reply, 1), number, sizeof(number));
    dibs__reply_free(reply);
    if (number[0] == '?')
        dibs__audit_tell(&au->to, DIBS_NOTE, "isolation",
                         "make sure that min-replicas-to-write is 1 or more",
                         "not known: the user may not run CONFIG");
    else if (strcmp(number, "0") == 0)
        dibs__audit_tell(
            &au->to, DIBS_CAUTION, "isolation",
            "set min-replicas-to-write 1 and min-replicas-max-lag 2: a primary "
            "that is cut off goes on to grant",
            "min-replicas-to-write 0");
    else
        dibs__audit_tell(&au->to, DIBS_FINE, "isolation", NULL,
                         "min-replicas-to-write %s", number);
    return DIBS_OK;
}

dibs_status
dibs__redis_audit_sentinel(dibs__redis *rd, dibsx_nsec deadline,
                           dibs_finding_fn *each, void *arg, dibs_error *err)
{
    sentinel_audit au = {.rd = rd,
                         .to = {each, arg},

                         .deadline = deadline};

    visit_all(&au);
    report_sentinels(&au);
    report_quorum(&au);
    return report_isolation(&au, err);
}
