/* health.c - the health check: a lock, a value, a leader and the members of a group.
 *
 * The lock is taken by the steps of the store, not by a handle: no fallback, no
 * statistics, no threads. Its name has a hash tag, so that all checks of a host use
 * one slot of a cluster. Owns nothing. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/health.h>

#include "base/opts.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "core/client.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <dibs/elect.h>
#include <dibs/members.h>
#include <dibs/state.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLOW_MS = 1000, DETAIL_MAX = 320, KEY_MAX = 96 };

typedef struct checkup {
    dibs_client *cl;
    dibs_health_opts opts;
    char key[KEY_MAX]; /* of the lock and of the value, without the prefix */
    char owner[DIBS_OWNER_SIZE];
    dibs_health worst;
    bool away;        /* a part found the store out of reach */
    dibs_error first; /* the first failure */
} checkup;

/* A part: DIBS_OK, DIBS_NOTFOUND if something is missing, DIBS_UNSUPPORTED, or a
 * failure. `detail` is "" at first. */
typedef dibs_status
part_fn(checkup *cu, char detail[DETAIL_MAX], dibs_error *err);

/* The store did what it must not do. */
static dibs_status fail_unfit(dibs_error *err, const char *did)
{
    return dibsx_fail(err, DIBS_REFUSED,
                      "the store is unfit: it %s; run `dibs doctor`", did);
}

/* A quorum may allow no longer leases than those of its clients. */
static int64_t lock_ttl_ms(const dibs_client *cl)
{
    return cl->ttl_ms < DIBS_HEALTH_TTL_MS ? cl->ttl_ms : DIBS_HEALTH_TTL_MS;
}

static dibs_status take_lock(checkup *cu, const char *full, dibs_error *err)
{
    dibs_client *cl = cu->cl;
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    char who[DIBS__WHO_MAX];
    dibs__ask ask = {.name = full,
                     .owner = cu->owner,
                     .mode = DIBS__EXCLUSIVE,
                     .permits = 1,
                     .ttl_ms = lock_ttl_ms(cl),
                     .who = who,
                     .replicas = cl->replicas};
    dibs__answer ans;
    dibs_status rc = dibs__reach_store(cl, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    dibs__who_plain(cl, "health", who, sizeof(who));
    rc = cl->st->ops->lease->acquire(cl->st, &ask, deadline, &ans, err);
    if (rc == DIBS_BUSY || rc == DIBS_LOST || rc == DIBS_MISMATCH)
        return fail_unfit(err, "refused a lock that is free");
    if (rc == DIBS_OK && ans.fence == 0)
        return fail_unfit(err, "granted a lock without a fence");
    return rc;
}

static dibs_status
check_lock(checkup *cu, char detail[DETAIL_MAX], dibs_error *err)
{
    dibs_client *cl = cu->cl;
    char full[DIBS_NAME_MAX + 1];
    dibs__leave leave = {.name = full, .owner = cu->owner};
    dibsx_nsec begun_at = dibsx_now();
    dibs_status rc = dibs__name_full(cl, cu->key, full, err);

    (void)detail;
    if (rc == DIBS_OK)
        rc = take_lock(cu, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->release(cl->st, &leave,
                                     dibs__client_deadline(cl, dibsx_now()),
                                     err);
    if (rc != DIBS_LOST)
        return rc;
    /* A release later than the ttl finds nothing: the store is slow. */
    if (dibsx_now() >= dibsx_after_ms(begun_at, lock_ttl_ms(cl)))
        return DIBS_OK;
    return fail_unfit(err, "lost a lock that it had granted");
}

/* The bytes and the version of the value are those that were written. */
static dibs_status
read_back(checkup *cu, const char *data, uint64_t version, dibs_error *err)
{
    dibs_value found;
    dibs_status rc = dibs_state_get(cu->cl, cu->key, &found, err);

    if (rc == DIBS_NOTFOUND)
        return fail_unfit(err, "lost a value");
    if (rc != DIBS_OK)
        return rc;
    if (found.version != version || found.len != strlen(data) ||
        memcmp(found.data, data, found.len) != 0)
        rc = fail_unfit(err, "returned another value than was set");
    dibs_value_free(&found);
    return rc;
}

static dibs_status
check_state(checkup *cu, char detail[DETAIL_MAX], dibs_error *err)
{
    uint64_t version = 0;
    dibs_status rc;

    (void)detail;
    rc = dibs_state_cas(cu->cl, cu->key, DIBS_VERSION_NONE, cu->owner,
                        strlen(cu->owner), DIBS_HEALTH_TTL_MS, &version, err);
    if (rc == DIBS_OK)
        rc = read_back(cu, cu->owner, version, err);
    if (rc == DIBS_OK)
        rc = dibs_state_cas(cu->cl, cu->key, version, "health", 6,
                            DIBS_HEALTH_TTL_MS, &version, err);
    if (rc == DIBS_OK)
        rc = dibs_state_delete(cu->cl, cu->key, version, err);
    if (rc == DIBS_STALE || rc == DIBS_NOTFOUND)
        return fail_unfit(err, "lost a value");
    return rc;
}

static dibs_status
check_leader(checkup *cu, char detail[DETAIL_MAX], dibs_error *err)
{
    dibs_leader leader;
    dibs_status rc = dibs_leader_get(cu->cl, cu->opts.election, &leader, err);

    if (rc == DIBS_OK)
        snprintf(detail, DETAIL_MAX,
                 "%s leads %s, term %" PRIu64 ", %u candidate%s waiting",
                 leader.member, cu->opts.election, leader.term,
                 (unsigned)leader.candidates,
                 leader.candidates == 1 ? "" : "s");
    return rc;
}

static bool count_member(const dibs_member_info *info, void *arg)
{
    (void)info;
    ++*(size_t *)arg;
    return true;
}

static dibs_status
check_members(checkup *cu, char detail[DETAIL_MAX], dibs_error *err)
{
    size_t count = 0;
    dibs_status rc =
        dibs_members_list(cu->cl, cu->opts.group, count_member, &count, err);

    if (rc == DIBS_OK)
        snprintf(detail, DETAIL_MAX, "%s has %zu member%s", cu->opts.group,
                 count, count == 1 ? "" : "s");
    return rc;
}

static dibs_part_result
judge_part(const checkup *cu, dibs_status rc, int64_t took_us)
{
    if (rc == DIBS_UNSUPPORTED)
        return DIBS_PART_SKIPPED;
    if (rc == DIBS_NOTFOUND)
        return DIBS_PART_MISSING;
    if (rc != DIBS_OK)
        return DIBS_PART_FAILED;
    return took_us > cu->opts.slow_ms * 1000 ? DIBS_PART_SLOW : DIBS_PART_OK;
}

static void report_part(checkup *cu, const dibs_health_part *part)
{
    dibs_health level = part->result == DIBS_PART_FAILED ? DIBS_UNHEALTHY
                        : part->result >= DIBS_PART_SLOW ? DIBS_DEGRADED
                                                         : DIBS_HEALTHY;

    if (level > cu->worst)
        cu->worst = level;
    if (cu->opts.each)
        cu->opts.each(part, cu->opts.arg);
}

/* A store that refuses changes for now, a replica for one, can still be read. */
static bool is_away(checkup *cu, dibs_status rc, int64_t took_us)
{
    bool quick = took_us / 1000 < cu->cl->timeout_ms / 2;

    if (rc == DIBS_UNAVAIL && quick)
        return dibs_ping(cu->cl, NULL, NULL) != DIBS_OK;
    return dibsx_is_away(rc);
}

static void run_part(checkup *cu, const char *name, part_fn *check)
{
    dibs_health_part part = {.name = name, .result = DIBS_PART_SKIPPED};
    char detail[DETAIL_MAX] = "";
    dibs_error err = {0};
    dibsx_nsec begun_at;

    if (cu->away) {
        part.status = DIBS_UNAVAIL;
        part.detail = "not checked: the store is out of reach";
        report_part(cu, &part);
        return;
    }
    begun_at = dibsx_now();
    part.status = check(cu, detail, &err);
    part.took_us = (dibsx_now() - begun_at) / 1000;
    part.result = judge_part(cu, part.status, part.took_us);
    part.detail = part.status == DIBS_OK ? detail : err.message;
    cu->away = is_away(cu, part.status, part.took_us);
    if (part.result == DIBS_PART_FAILED && cu->first.status == DIBS_OK)
        cu->first = err;
    report_part(cu, &part);
}

static dibs_status
copy_opts(checkup *cu, const dibs_health_opts *opts, dibs_error *err)
{
    dibs_health_opts *out = &cu->opts;
    dibs_status rc =
        dibsx_opts_copy(out, sizeof(*out), opts, "DIBS_HEALTH_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (out->slow_ms < 0 || out->slow_ms > INT64_MAX / 1000)
        return dibsx_fail(err, DIBS_INVALID, "slow_ms is negative or too long");
    if (out->slow_ms == 0)
        out->slow_ms = SLOW_MS;
    return DIBS_OK;
}

/* Checks names before the store is asked, and draws the name of this check. */
static dibs_status prepare(checkup *cu, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = DIBS_OK;

    if (cu->opts.election)
        rc = dibs__name_full(cu->cl, cu->opts.election, full, err);
    if (rc == DIBS_OK && cu->opts.group)
        rc = dibs__name_full(cu->cl, cu->opts.group, full, err);
    if (rc != DIBS_OK)
        return rc;
    if (!dibsx_random_hex(cu->owner, sizeof(cu->owner)))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the system has no random numbers now");
    snprintf(cu->key, sizeof(cu->key), "dibs.health/{%s}/%.16s", cu->cl->host,
             cu->owner);
    return dibs__name_full(cu->cl, cu->key, full, err);
}

dibs_status dibs_health_check(dibs_client *cl, const dibs_health_opts *opts,
                              dibs_health *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    checkup cu = {.cl = cl};
    dibs_status rc = dibs__client_usable(cl, err);

    if (out)
        *out = DIBS_UNHEALTHY;
    if (rc == DIBS_OK)
        rc = copy_opts(&cu, opts, err);
    if (rc == DIBS_OK)
        rc = prepare(&cu, err);
    if (rc != DIBS_OK)
        return rc;
    run_part(&cu, "lock", check_lock);
    run_part(&cu, "state", check_state);
    if (cu.opts.election)
        run_part(&cu, "leader", check_leader);
    if (cu.opts.group)
        run_part(&cu, "members", check_members);
    if (out)
        *out = cu.worst;
    if (err && cu.first.status != DIBS_OK)
        *err = cu.first;
    return cu.first.status;
}
