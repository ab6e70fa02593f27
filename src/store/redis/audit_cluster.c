/* audit_cluster.c - the audit of a cluster: its map, and the findings on its
 * servers.
 *
 * Any thread; changes nothing. A finding that several masters share is reported
 * once. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/redis_store.h"
#include "store/redis/wire/reply.h"
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 256, NOTES_MAX = 1024, SHOWN = 2 };

/* A finding, and the masters that have it. */
typedef struct note {
    dibs_severity severity;
    const char *subject;
    const char *advice;
    char found[TEXT_MAX];
    int masters;
    char where[TEXT_MAX]; /* the first few */
} note;

typedef struct summary {
    dibs_finding_fn *each;
    void *arg;
    note *notes;
    size_t count;
    const dibs__endpoint *endpoint; /* of the master that is being audited */
    int masters;
} summary;

static void
report_finding(const summary *sm, dibs_severity severity, const char *subject,
               const char *found, const char *advice)
{
    const dibs_finding finding = {severity, subject, found, advice};

    sm->each(&finding, sm->arg);
}

/* Figures differ from master to master; their meaning counts. */
static bool is_alike(const note *nt, const dibs_finding *finding)
{
    if (nt->severity != finding->severity ||
        strcmp(nt->subject, finding->subject) != 0)
        return false;
    if (finding->severity == DIBS_FINE && strcmp(nt->subject, "clock") == 0)
        return true;
    return strcmp(nt->subject, "transport") == 0 ||
           strcmp(nt->found, finding->found) == 0;
}

static void name_place(note *nt, const dibs__endpoint *endpoint)
{
    size_t len = strlen(nt->where);

    if (nt->masters++ < SHOWN)
        snprintf(nt->where + len, sizeof(nt->where) - len, "%s%s:%d",
                 len ? ", " : "", endpoint->host, endpoint->port);
}

static void take_note(const dibs_finding *finding, void *arg)
{
    summary *sm = arg;
    size_t i = 0;

    /* The map says which masters have none. */
    if (strcmp(finding->subject, "replicas") == 0 &&
        finding->severity == DIBS_FINE)
        return;
    while (i < sm->count && !is_alike(&sm->notes[i], finding))
        i++;
    if (i == NOTES_MAX)
        return;
    if (i == sm->count) {
        note *nt = &sm->notes[sm->count++];

        *nt = (note){.severity = finding->severity,
                     .subject = finding->subject,
                     .advice = finding->advice};
        snprintf(nt->found, sizeof(nt->found), "%s", finding->found);
    }
    name_place(&sm->notes[i], sm->endpoint);
}

static void tell_notes(const summary *sm)
{
    char text[3 * TEXT_MAX];

    for (size_t i = 0; i < sm->count; i++) {
        const note *nt = &sm->notes[i];

        if (nt->masters == sm->masters && nt->masters > 1)
            snprintf(text, sizeof(text), "%s (all %d masters)", nt->found,
                     nt->masters);
        else if (nt->masters > SHOWN)
            snprintf(text, sizeof(text), "%s (%s and %d more)", nt->found,
                     nt->where, nt->masters - SHOWN);
        else
            snprintf(text, sizeof(text), "%s (%s)", nt->found, nt->where);
        report_finding(sm, nt->severity, nt->subject, text, nt->advice);
    }
}

static void tell_map(const summary *sm, const dibs__topology *map)
{
    int covered = dibs__topology_covered(map);
    char text[TEXT_MAX];
    int bare = 0;

    for (size_t i = 0; i < map->count; i++)
        bare += map->members[i].master && map->members[i].replicas == 0;
    snprintf(text, sizeof(text), "%d masters, %d replicas", sm->masters,
             (int)map->count - sm->masters);
    if (sm->masters < 3)
        report_finding(
            sm, DIBS_CAUTION, "cluster", text,
            "have three masters at least: fewer cannot agree on a failover");
    else
        report_finding(sm, DIBS_FINE, "cluster", text, NULL);
    snprintf(text, sizeof(text), "%d of %d served", covered, DIBS__SLOTS);
    if (covered < DIBS__SLOTS)
        report_finding(
            sm, DIBS_DANGER, "slots", text,
            "bring the missing masters back, or see redis-cli --cluster fix");
    else
        report_finding(sm, DIBS_FINE, "slots", text, NULL);
    if (bare == 0)
        return;
    snprintf(text, sizeof(text), "%d of %d masters have none", bare,
             sm->masters);
    report_finding(
        sm, DIBS_CAUTION, "replicas", text,
        "give each master a replica: without one its names are gone with it");
}

/* Reports whether the cluster serves names while a slot of others is not
 * served. */
static dibs_status tell_coverage(dibs__redis *rd, const summary *sm,
                                 const dibs__endpoint *endpoint,
                                 dibsx_nsec deadline, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    char value[8];
    dibs_status rc;

    dibs__words_puts(&words, "CONFIG");
    dibs__words_puts(&words, "GET");
    dibs__words_puts(&words, "cluster-require-full-coverage");
    rc =
        dibs__route_call_at(rd->steps, endpoint, &words, deadline, &reply, err);
    if (rc != DIBS_OK)
        return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
    dibs__reply_text(dibs__reply_item(reply, 1), value, sizeof(value));
    dibs__reply_free(reply);
    if (!value[0])
        report_finding(sm, DIBS_NOTE, "coverage",
                       "not known: the user may not run CONFIG",
                       "see cluster-require-full-coverage");
    else if (strcmp(value, "no") == 0)
        report_finding(sm, DIBS_FINE, "coverage",
                       "what is served stays so when other slots are lost",
                       NULL);
    else
        report_finding(
            sm, DIBS_NOTE, "coverage",
            "all names are refused while any slot is not served",
            "set cluster-require-full-coverage to no, so that the loss of a "
            "master stops its own names only");
    return DIBS_OK;
}

/* The slots that a master is giving away or taking over: its own line of
 * CLUSTER NODES has them in brackets at its end. */
static int count_moves(const char *nodes)
{
    const char *at = strstr(nodes, "myself");
    int count = 0;

    for (; at && *at && *at != '\n'; at++)
        count += *at == '[';
    return count;
}

/* A move that was begun and never ended blocks the names of its slot. */
static void look_for_moves(dibs__redis *rd, summary *sm, dibsx_nsec deadline)
{
    char text[TEXT_MAX];
    const dibs_finding finding = {DIBS_CAUTION, "moves", text,
                                  "let them end, or end them with redis-cli "
                                  "--cluster fix: their names are blocked "
                                  "meanwhile"};
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    dibs_error why;
    int count = 0;

    dibs__words_puts(&words, "CLUSTER");
    dibs__words_puts(&words, "NODES");
    if (dibs__route_call_at(rd->steps, sm->endpoint, &words, deadline, &reply,
                            &why) == DIBS_OK &&
        reply->type == REDIS_REPLY_STRING)
        count = count_moves(reply->str);
    dibs__reply_free(reply);
    if (count == 0)
        return;
    snprintf(text, sizeof(text), "%d slots are being moved", count);
    take_note(&finding, sm);
}

/* A slot that a master serves; -1 when it has none. */
static int slot_at(const dibs__topology *map, size_t member)
{
    for (int slot = 0; slot < DIBS__SLOTS; slot++)
        if (map->server[slot] == member + 1)
            return slot;
    return -1;
}

/* Publishes to a sharded channel that has no subscriber. */
static void
look_for_channels(dibs__redis *rd, summary *sm, int slot, dibsx_nsec deadline)
{
    static const dibs_finding sharded = {
        DIBS_FINE, "doorbells",
        "sharded channels: a notice stays with the servers of its slot", NULL};
    static const dibs_finding ordinary = {
        DIBS_NOTE, "doorbells",
        "ordinary channels: every notice goes to every server of the cluster",
        "sharded ones need Redis 7.0, and spublish and ssubscribe as in "
        "docs/redis-acl.md"};
    char tag[DIBS__SLOT_TAG], channel[48];
    dibs__words words = {.count = 0};
    redisReply *reply = NULL;
    dibs_error why;

    dibs__slot_tag(slot, tag);
    snprintf(channel, sizeof(channel), "dibs:bell:{%s}:nobody", tag);
    dibs__words_puts(&words, "SPUBLISH");
    dibs__words_puts(&words, channel);
    dibs__words_puts(&words, "");
    if (dibs__route_call_at(rd->steps, sm->endpoint, &words, deadline, &reply,
                            &why) == DIBS_OK)
        take_note(reply->type == REDIS_REPLY_INTEGER ? &sharded : &ordinary,
                  sm);
    dibs__reply_free(reply);
}

/* A master that cannot be reached is a finding, not the end. */
static void look_at(dibs__redis *rd, summary *sm, int slot, dibsx_nsec deadline)
{
    dibs_error why = {0};
    char text[TEXT_MAX];
    const dibs_finding lost = {DIBS_DANGER, "reach", text,
                               "see why it is out of reach from here"};

    look_for_moves(rd, sm, deadline);
    if (slot >= 0)
        look_for_channels(rd, sm, slot, deadline);
    if (dibs__redis_audit_at(rd, sm->endpoint, deadline, take_note, sm, &why) ==
        DIBS_OK)
        return;
    snprintf(text, sizeof(text), "%s", why.message);
    take_note(&lost, sm);
}

static dibs_status
look_at_all(dibs__redis *rd, summary *sm, const dibs__topology *map,
            dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < map->count; i++)
        sm->masters += map->members[i].master;
    tell_map(sm, map);
    for (size_t i = 0; i < map->count; i++) {
        if (!map->members[i].master)
            continue;
        if (!sm->endpoint)
            rc =
                tell_coverage(rd, sm, &map->members[i].endpoint, deadline, err);
        sm->endpoint = &map->members[i].endpoint;
        look_at(rd, sm, slot_at(map, i), deadline);
    }
    tell_notes(sm);
    return rc;
}

dibs_status
dibs__redis_audit_cluster(dibs__redis *rd, dibsx_nsec deadline,
                          dibs_finding_fn *each, void *arg, dibs_error *err)
{
    summary sm = {.each = each, .arg = arg};
    dibs__topology *map = dibsx_zalloc(sizeof(*map));
    dibs_status rc;

    sm.notes = dibsx_zalloc_n(NOTES_MAX, sizeof(*sm.notes));
    if (map && sm.notes)
        rc = dibs__cluster_learn(rd->cluster, deadline, err);
    else
        rc = dibsx_nomem(err, "what is found");
    if (rc == DIBS_OK)
        rc = dibs__cluster_map(rd->cluster, map, err);
    if (rc == DIBS_OK)
        rc = look_at_all(rd, &sm, map, deadline, err);
    if (map)
        dibs__topology_fini(map);
    dibsx_free(map);
    dibsx_free(sm.notes);
    return rc;
}
