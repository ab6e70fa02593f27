/* audit.c - the audit of a Redis server.
 *
 * Asks with INFO, CONFIG GET, ACL WHOAMI and TIME. A user may lack the right to
 * any of them: the finding then says "not known". Any thread; changes
 * nothing. */
/* SPDX-License-Identifier: MIT */
#include "store/audit.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Leases count on the clock of the server alone; an offset shows only in fences
 * and in times that people read. */
#define OFFSET_US INT64_C(1000000)

enum { TEXT_MAX = 128, OLDEST = 5, AGED = 7 };

typedef struct report {
    dibs__audit_report to;
    dibs__redis *rd;
    const dibs__endpoint *endpoint; /* of the server; NULL: the only one */
    dibsx_nsec deadline;
    char *info; /* the reply to INFO; "" when it is forbidden */
} report;

/* Asks with up to three words. An error reply leaves *out NULL, for a server
 * may forbid the command; only a server out of reach is a failure. */
static dibs_status
ask_server(const report *rp, const char *one, const char *two,
           const char *three, redisReply **out, dibs_error *err)
{
    dibs__words words;
    dibs_status rc;

    words.count = 0;
    dibs__words_puts(&words, one);
    if (two)
        dibs__words_puts(&words, two);
    if (three)
        dibs__words_puts(&words, three);
    *out = NULL;
    rc = dibs__route_call_at(rp->rd->steps, rp->endpoint, &words, rp->deadline,
                             out, err);
    if (rc == DIBS_OK && (*out)->type == REDIS_REPLY_ERROR) {
        dibs__reply_free(*out);
        *out = NULL;
    }
    return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
}

/* A line "name:value" of the reply to INFO; "" when there is none. */
static void info_of(const report *rp, const char *name, char out[TEXT_MAX])
{
    size_t len = strlen(name);
    const char *at = rp->info;

    out[0] = '\0';
    while ((at = strstr(at, name)) != NULL) {
        if ((at == rp->info || at[-1] == '\n') && at[len] == ':') {
            snprintf(out, TEXT_MAX, "%.*s", (int)strcspn(at + len + 1, "\r\n"),
                     at + len + 1);
            return;
        }
        at += len;
    }
}

/* A setting of the server; "?" when CONFIG is forbidden. */
static dibs_status read_setting(const report *rp, const char *name,
                                char out[TEXT_MAX], dibs_error *err)
{
    redisReply *reply;
    dibs_status rc = ask_server(rp, "CONFIG", "GET", name, &reply, err);

    if (rc != DIBS_OK)
        return rc;
    snprintf(out, TEXT_MAX, "?");
    if (dibs__reply_item(reply, 1))
        dibs__reply_text(dibs__reply_item(reply, 1), out, TEXT_MAX);
    dibs__reply_free(reply);
    return DIBS_OK;
}

static dibs_status read_info(report *rp, dibs_error *err)
{
    redisReply *reply;
    dibs_status rc = ask_server(rp, "INFO", NULL, NULL, &reply, err);

    if (rc != DIBS_OK)
        return rc;
    rp->info = dibsx_strdup(
        reply && reply->type == REDIS_REPLY_STRING ? reply->str : "");
    dibs__reply_free(reply);
    return rp->info ? DIBS_OK : dibsx_nomem(err, "what INFO says");
}

static void report_version(const report *rp)
{
    char version[TEXT_MAX], fork[TEXT_MAX];
    long major;

    info_of(rp, "redis_version", version);
    info_of(rp, "valkey_version", fork);
    major = strtol(version, NULL, 10);
    if (!version[0])
        dibs__audit_tell(&rp->to, DIBS_NOTE, "version", "let the user run INFO",
                         "not known: the user may not run INFO");
    else if (major < OLDEST)
        dibs__audit_tell(&rp->to, DIBS_DANGER, "version",
                         "upgrade to Redis 7 or to Valkey", "%s, older than 5",
                         version);
    else if (major < AGED)
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "version",
                         "upgrade to Redis 7 or to Valkey",
                         "%s, no longer maintained", version);
    else if (fork[0])
        dibs__audit_tell(&rp->to, DIBS_FINE, "version", NULL, "Valkey %s",
                         fork);
    else
        dibs__audit_tell(&rp->to, DIBS_FINE, "version", NULL, "Redis %s",
                         version);
}

static void report_role(const report *rp)
{
    char role[TEXT_MAX], link[TEXT_MAX], replicas[TEXT_MAX];

    info_of(rp, "role", role);
    info_of(rp, "master_link_status", link);
    info_of(rp, "connected_slaves", replicas);
    if (!role[0]) {
        dibs__audit_tell(&rp->to, DIBS_NOTE, "role", "let the user run INFO",
                         "not known: the user may not run INFO");
        return;
    }
    if (strcmp(role, "master") != 0) {
        dibs__audit_tell(&rp->to, DIBS_DANGER, "role", "connect to its primary",
                         "a replica, its link to the primary is %s", link);
        return;
    }
    dibs__audit_tell(&rp->to, DIBS_FINE, "role", NULL, "primary");
    if (strcmp(replicas, "0") == 0)
        dibs__audit_tell(&rp->to, DIBS_FINE, "replicas", NULL, "none");
    else
        dibs__audit_tell(
            &rp->to, DIBS_NOTE, "replicas",
            "a failover may lose the newest leases; let what is guarded check "
            "the fence",
            "%s, which follow asynchronously", replicas);
}

/* A write needs some replicas. If none is to spare, the next lost server stops
 * every grant, for a promoted replica has one fewer. The server counts its
 * replicas while the setting is in force. */
static dibs_status report_spare(const report *rp, dibs_error *err)
{
    const char *advice = "have a replica more than min-replicas-to-write, or "
                         "set it lower: a primary with fewer refuses every "
                         "grant";
    char good[TEXT_MAX], needed[TEXT_MAX];
    dibs_status rc;

    info_of(rp, "min_slaves_good_slaves", good);
    if (!good[0])
        return DIBS_OK;
    rc = read_setting(rp, "min-replicas-to-write", needed, err);
    if (rc != DIBS_OK || needed[0] == '?')
        return rc;
    if (strtol(good, NULL, 10) < strtol(needed, NULL, 10))
        dibs__audit_tell(
            &rp->to, DIBS_CAUTION, "failover", advice,
            "min-replicas-to-write %s, replicas %s: grants are refused now",
            needed, good);
    else if (strtol(good, NULL, 10) == strtol(needed, NULL, 10))
        dibs__audit_tell(
            &rp->to, DIBS_CAUTION, "failover", advice,
            "min-replicas-to-write %s, replicas %s: the loss of one server "
            "stops all grants",
            needed, good);
    return DIBS_OK;
}

static dibs_status report_eviction(const report *rp, dibs_error *err)
{
    char limit[TEXT_MAX], policy[TEXT_MAX];
    dibs_status rc = DIBS_OK;

    info_of(rp, "maxmemory", limit);
    info_of(rp, "maxmemory_policy", policy);
    if (!limit[0])
        rc = read_setting(rp, "maxmemory", limit, err);
    if (rc == DIBS_OK && !policy[0])
        rc = read_setting(rp, "maxmemory-policy", policy, err);
    if (rc != DIBS_OK)
        return rc;
    if (limit[0] == '?' || policy[0] == '?')
        dibs__audit_tell(&rp->to, DIBS_NOTE, "eviction",
                         "make sure that maxmemory-policy is noeviction",
                         "not known: the user may not run INFO and CONFIG");
    else if (strcmp(policy, "noeviction") == 0)
        dibs__audit_tell(&rp->to, DIBS_FINE, "eviction", NULL,
                         "noeviction, maxmemory %s", limit);
    else if (strcmp(limit, "0") == 0)
        dibs__audit_tell(
            &rp->to, DIBS_CAUTION, "eviction",
            "set maxmemory-policy to noeviction before there is a limit",
            "%s, without a limit of memory", policy);
    else
        dibs__audit_tell(
            &rp->to, DIBS_DANGER, "eviction",
            "set maxmemory-policy to noeviction, or use a server of its own: "
            "locks are deleted when memory runs short",
            "%s, maxmemory %s", policy, limit);
    return DIBS_OK;
}

/* `put_off`: the server does not flush while it writes a snapshot or rewrites the
 * file. */
static void say_log(const report *rp, const char *fsync, bool put_off,
                    const char *loading_advice)
{
    if (strcmp(fsync, "always") == 0 && put_off)
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "persistence",
                         "set no-appendfsync-on-rewrite to no: a power cut may "
                         "lose what was written meanwhile",
                         "append-only file, always but while it is rewritten");
    else if (strcmp(fsync, "always") == 0)
        dibs__audit_tell(&rp->to, DIBS_FINE, "persistence", NULL,
                         "append-only file, always");
    else if (strcmp(fsync, "no") == 0)
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "persistence", loading_advice,
                         "append-only file, written when the system likes");
    else
        dibs__audit_tell(&rp->to, DIBS_NOTE, "persistence",
                         "a crash may lose the last second; appendfsync "
                         "always does not",
                         "append-only file, %s",
                         fsync[0] == '?' ? "how often is not known" : fsync);
}

static dibs_status report_persistence(const report *rp, dibs_error *err)
{
    const char *advice = "set appendonly to yes: after a restart, locks that "
                         "are still believed in may be granted again";
    char log[TEXT_MAX], fsync[TEXT_MAX], put_off[TEXT_MAX], save[TEXT_MAX];
    dibs_status rc = read_setting(rp, "appendfsync", fsync, err);

    info_of(rp, "aof_enabled", log);
    if (rc == DIBS_OK)
        rc = read_setting(rp, "no-appendfsync-on-rewrite", put_off, err);
    if (rc == DIBS_OK)
        rc = read_setting(rp, "save", save, err);
    if (rc != DIBS_OK)
        return rc;
    if (log[0] == '1')
        say_log(rp, fsync, strcmp(put_off, "yes") == 0, advice);
    else if (!log[0])
        dibs__audit_tell(&rp->to, DIBS_NOTE, "persistence",
                         "make sure that appendonly is yes",
                         "not known: the user may not run INFO");
    else if (save[0] == '\0')
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "persistence", advice, "none");
    else
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "persistence", advice,
                         "snapshots only (%s), which are minutes old", save);
    return DIBS_OK;
}

/* The server's time was read between two reads of our own clock. */
static dibs_status report_clock(const report *rp, dibs_error *err)
{
    int64_t before = dibsx_wall_us(), after, seconds, us, offset;
    redisReply *reply;
    bool far, told;
    dibs_status rc = ask_server(rp, "TIME", NULL, NULL, &reply, err);

    if (rc != DIBS_OK)
        return rc;
    after = dibsx_wall_us();
    told = dibs__reply_int(dibs__reply_item(reply, 0), &seconds) &&
           dibs__reply_int(dibs__reply_item(reply, 1), &us);
    dibs__reply_free(reply);
    if (!told)
        return dibs__reply_odd(err);
    offset = seconds * 1000000 + us - (before + (after - before) / 2);
    far = offset > OFFSET_US || offset < -OFFSET_US;
    dibs__audit_tell(
        &rp->to, far ? DIBS_CAUTION : DIBS_FINE, "clock",
        far ? "set both by NTP: fences and times shown follow the server"
            : NULL,
        "%+" PRId64 " ms against this machine, %" PRId64 " us away",
        offset / 1000, after - before);
    return DIBS_OK;
}

static dibs_status report_user(const report *rp, dibs_error *err)
{
    char user[TEXT_MAX];
    redisReply *reply;
    dibs_status rc = ask_server(rp, "ACL", "WHOAMI", NULL, &reply, err);

    if (rc != DIBS_OK)
        return rc;
    dibs__reply_text(reply, user, sizeof(user));
    dibs__reply_free(reply);
    if (!user[0])
        dibs__audit_tell(&rp->to, DIBS_FINE, "user", NULL, "%s",
                         rp->rd->conf.user ? rp->rd->conf.user : "not known");
    else if (strcmp(user, "default") == 0)
        dibs__audit_tell(
            &rp->to, DIBS_NOTE, "user",
            "give dibs a user of its own with the rights in docs/redis-acl.md",
            "default");
    else
        dibs__audit_tell(&rp->to, DIBS_FINE, "user", NULL, "%s", user);
    return DIBS_OK;
}

static void report_transport(const report *rp)
{
    const dibs__redis_conf *conf = &rp->rd->conf;
    char where[TEXT_MAX] = "";

    if (rp->endpoint)
        snprintf(where, sizeof(where), "%.100s:%d", rp->endpoint->host,
                 rp->endpoint->port);
    else if (conf->primary)
        snprintf(where, sizeof(where), "the primary of %.60s", conf->primary);
    else if (conf->host)
        snprintf(where, sizeof(where), "%.100s:%d", conf->host, conf->port);
    if (conf->path)
        dibs__audit_tell(&rp->to, DIBS_FINE, "transport", NULL,
                         "unix socket %s", conf->path);
    else if (conf->tls && !conf->insecure)
        dibs__audit_tell(&rp->to, DIBS_FINE, "transport", NULL, "TLS to %s",
                         where);
    else if (conf->tls)
        dibs__audit_tell(&rp->to, DIBS_CAUTION, "transport",
                         "name the CA and drop insecure=1",
                         "TLS to %s, not verified", where);
    else
        dibs__audit_tell(&rp->to, DIBS_NOTE, "transport",
                         conf->primary ? "use tls=1 outside a private net"
                                       : "use rediss:// outside a private net",
                         "plain TCP to %s", where);
}

/* Reports on one server. */
static dibs_status report_server(report *rp, dibs_error *err)
{
    dibs_status rc = read_info(rp, err);

    if (rc != DIBS_OK)
        return rc;
    report_version(rp);
    report_role(rp);
    report_transport(rp);
    if (rp->rd->sentinel)
        rc = dibs__redis_audit_sentinel(rp->rd, rp->deadline, rp->to.each,
                                        rp->to.arg, err);
    if (rc == DIBS_OK)
        rc = report_spare(rp, err);
    if (rc == DIBS_OK)
        rc = report_eviction(rp, err);
    if (rc == DIBS_OK)
        rc = report_persistence(rp, err);
    if (rc == DIBS_OK)
        rc = report_clock(rp, err);
    if (rc == DIBS_OK)
        rc = report_user(rp, err);
    dibsx_free(rp->info);
    rp->info = NULL;
    return rc;
}

dibs_status
dibs__redis_audit_at(dibs__redis *rd, const dibs__endpoint *endpoint,
                     dibsx_nsec deadline, dibs_finding_fn *each, void *arg,
                     dibs_error *err)
{
    report rp = {.to = {each, arg},

                 .rd = rd,
                 .endpoint = endpoint,
                 .deadline = deadline};

    return report_server(&rp, err);
}
