/* audit_sentinel.c - what the sentinels say of themselves and of the servers.
 *
 * Owns nothing. Runs on the thread that asks for the audit. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sentinel that takes longer counts as one that does not answer. */
enum { PATIENCE_MS = 1000 };

/* Fewer cannot outvote one that is wrong. */
enum { FEW = 3 };

typedef struct survey {
    dibs__redis *rd;
    dibs_finding_fn *each;
    void *arg;
    dibsx_nsec deadline;
    size_t known;    /* sentinels */
    size_t answered; /* ... of which so many do */
    bool differ;     /* they name different primaries */
    char primary[DIBS__HOST_MAX + 8];
    int64_t quorum;
    int64_t others; /* sentinels that the first knows of */
    int64_t replicas;
} survey;

__attribute__((format(printf, 5, 6))) static void
say(const survey *sv, dibs_severity severity, const char *subject,
    const char *advice, const char *format, ...)
{
    char found[256];
    dibs_finding finding = {severity, subject, found, advice};
    va_list args;

    va_start(args, format);
    vsnprintf(found, sizeof(found), format, args);
    va_end(args);
    sv->each(&finding, sv->arg);
}

/* False when it did not answer as a sentinel that knows the name. */
static bool ask_sentinel(const survey *sv, dibs__conn *cn, const char *question,
                         redisReply **out)
{
    dibs__words words = {.count = 0};

    *out = NULL;
    dibs__words_puts(&words, "SENTINEL");
    dibs__words_puts(&words, question);
    dibs__words_puts(&words, dibs__sentinel_name(sv->rd->sentinel));
    return dibs__conn_ask(cn, &words, dibsx_after_ms(dibsx_now(), PATIENCE_MS),
                          out, NULL) == DIBS_OK &&
           (*out)->type == REDIS_REPLY_ARRAY;
}

static void hear_primary(survey *sv, const redisReply *reply)
{
    char primary[sizeof(sv->primary)];
    dibs__endpoint place = {.port = 0};

    (void)dibs__sentinel_read_endpoint(dibs__reply_item(reply, 0),
                                       dibs__reply_item(reply, 1), &place);
    snprintf(primary, sizeof(primary), "%s:%d", place.host, place.port);
    if (sv->answered++ == 0)
        memcpy(sv->primary, primary, sizeof(primary));
    else if (strcmp(sv->primary, primary) != 0)
        sv->differ = true;
}

/* Asks one sentinel; what it says of the whole is taken from the first. */
static void visit_sentinel(survey *sv, dibs__conn *cn)
{
    redisReply *reply = NULL;

    if (ask_sentinel(sv, cn, "get-master-addr-by-name", &reply))
        hear_primary(sv, reply);
    dibs__reply_free(reply);
    if (sv->answered != 1)
        return;
    if (ask_sentinel(sv, cn, "master", &reply)) {
        (void)dibs__reply_int(dibs__sentinel_field(reply, "quorum"),
                              &sv->quorum);
        (void)dibs__reply_int(dibs__sentinel_field(reply,
                                                   "num-other-sentinels"),
                              &sv->others);
        (void)dibs__reply_int(dibs__sentinel_field(reply, "num-slaves"),
                              &sv->replicas);
    }
    dibs__reply_free(reply);
}

static void visit_all(survey *sv)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; rc != DIBS_NOTFOUND && dibsx_now() < sv->deadline; i++) {
        dibs__conn *cn = NULL;

        rc = dibs__sentinel_open(sv->rd->sentinel, i, -1,
                                 dibsx_after_ms(dibsx_now(), PATIENCE_MS), &cn,
                                 NULL);
        if (rc != DIBS_NOTFOUND)
            sv->known++;
        if (rc == DIBS_OK)
            visit_sentinel(sv, cn);
        dibs__conn_close(cn);
    }
}

static void report_sentinels(const survey *sv)
{
    if (sv->differ)
        say(sv, DIBS_CAUTION, "sentinels",
            "a failover is under way, or the network between them is cut",
            "%zu of %zu answer and do not agree on the primary", sv->answered,
            sv->known);
    else if (2 * sv->answered <= sv->known)
        say(sv, DIBS_CAUTION, "sentinels",
            "without a majority of them there is no failover",
            "%zu of %zu answer", sv->answered, sv->known);
    else if (sv->known < FEW)
        say(sv, DIBS_CAUTION, "sentinels",
            "run three or more, each on a machine of its own",
            "%zu of %zu answer", sv->answered, sv->known);
    else
        say(sv, DIBS_FINE, "sentinels", NULL, "%zu of %zu answer: %s",
            sv->answered, sv->known, sv->primary);
}

static void report_quorum(const survey *sv)
{
    int64_t all = sv->others + 1;

    if (sv->quorum == 0)
        say(sv, DIBS_NOTE, "quorum", "let the user run SENTINEL MASTER",
            "cannot be told");
    else if (sv->quorum == 1)
        say(sv, DIBS_CAUTION, "quorum",
            "set it to a majority: what one sentinel cannot reach is not down",
            "1 of %" PRId64, all);
    else if (sv->quorum > all)
        say(sv, DIBS_CAUTION, "quorum", "there are too few to ever fail over",
            "%" PRId64 " of %" PRId64, sv->quorum, all);
    else
        say(sv, DIBS_FINE, "quorum", NULL, "%" PRId64 " of %" PRId64,
            sv->quorum, all);
    if (sv->quorum > 0 && sv->replicas == 0)
        say(sv, DIBS_CAUTION, "failover",
            "add replicas: there is none to "
            "become the primary",
            "no replica is known to the sentinels");
}

/* A primary that is cut off goes on to grant, unless it needs its replicas. */
static dibs_status report_isolation(const survey *sv, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    char number[32] = "?";
    dibs_status rc;

    dibs__words_puts(&words, "CONFIG");
    dibs__words_puts(&words, "GET");
    dibs__words_puts(&words, "min-replicas-to-write");
    rc = dibs__route_call_at(sv->rd->steps, NULL, &words, sv->deadline, &reply,
                             err);
    if (rc != DIBS_OK)
        return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
    if (dibs__reply_item(reply, 1))
        dibs__reply_text(dibs__reply_item(reply, 1), number, sizeof(number));
    dibs__reply_free(reply);
    if (number[0] == '?')
        say(sv, DIBS_NOTE, "isolation",
            "make sure that min-replicas-to-write is 1 or more",
            "cannot be told: CONFIG may not be asked");
    else if (strcmp(number, "0") == 0)
        say(sv, DIBS_CAUTION, "isolation",
            "set min-replicas-to-write 1 and min-replicas-max-lag 2: a primary "
            "that is cut off goes on to grant",
            "min-replicas-to-write 0");
    else
        say(sv, DIBS_FINE, "isolation", NULL, "min-replicas-to-write %s",
            number);
    return DIBS_OK;
}

dibs_status
dibs__redis_audit_sentinel(dibs__redis *rd, dibsx_nsec deadline,
                           dibs_finding_fn *each, void *arg, dibs_error *err)
{
    survey sv = {.rd = rd, .each = each, .arg = arg, .deadline = deadline};

    visit_all(&sv);
    report_sentinels(&sv);
    report_quorum(&sv);
    return report_isolation(&sv, err);
}
