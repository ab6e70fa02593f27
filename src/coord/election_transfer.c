/* election_transfer.c - a leader hands the lead to a candidate that it names.
 *
 * It names the candidate, waits until that is at the head of the queue, and then gives
 * the lease back: the store grants it to the head. A candidate that does not answer
 * costs nothing, because the leader leads until then. */
/* SPDX-License-Identifier: MIT */
#include "base/uncancel.h"
#include "coord/election.h"
#include "core/client.h"
#include <poll.h>
#include <string.h>

/* Each candidate hears its name by a look within a second; NAMED_MS: the value lives so
 * long at least. */
enum { LOOK_MS = 10, NAMED_MS = 5000 };

static dibs_status fail_lost(const dibs_election *el, dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST, "%s does not lead %s", el->member,
                      el->name);
}

static dibs_status
check_heir(dibs_election *el, const char *member, dibs_error *err)
{
    const char *why = dibs__store_cannot(el->cl->st, DIBS__CAN_QUEUE);
    dibs__election_place place;
    dibs_status rc;

    if (!why)
        why = dibs__store_cannot(el->cl->st, DIBS__CAN_TOPIC);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    if (dibs_election_check(el) != DIBS_OK)
        return fail_lost(el, err);
    rc = dibs__election_find(el, member, &place, err);
    if (rc == DIBS_OK && place.at == SIZE_MAX)
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "no candidate for %s is called %.63s; dibs show lists "
                        "them",
                        el->name, member);
    return rc;
}

/* Another process has named one: the same, or this transfer has to wait. */
static dibs_status check_named(dibs_election *el, const char *key,
                               const char *member, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc = dibs_state_get(el->cl, key, &value, err);

    if (rc == DIBS_OK && strcmp(value.data, member) != 0)
        rc = dibsx_fail(err, DIBS_BUSY,
                        "a transfer of %s to %.63s is under way; try again "
                        "when it is over",
                        el->name, (const char *)value.data);
    dibs_value_free(&value);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* Names the heir, unless a process has done so: *version is 0 then. */
static dibs_status
name_heir(dibs_election *el, const char *key, const char *member,
          uint64_t *version, dibs_error *err)
{
    int64_t ttl_ms = el->opts.ttl_ms > NAMED_MS ? el->opts.ttl_ms : NAMED_MS;
    uint64_t drawn = 0;
    dibs_status rc = dibs_state_cas(el->cl, key, DIBS_VERSION_NONE, member,
                                    strlen(member), ttl_ms, &drawn, err);

    if (rc == DIBS_OK)
        *version = drawn;
    return rc == DIBS_STALE ? check_named(el, key, member, err) : rc;
}

/* Names the heir, and waits until it is the next. Locks: none held. */
static dibs_status
call_heir(dibs_election *el, const char *member, dibs_error *err)
{
    dibsx_nsec deadline = dibs__client_deadline(el->cl, dibsx_now());
    uint64_t version = 0;
    dibsx_nsec named_at;
    char key[DIBS__HEIR_KEY_SIZE];
    dibs__election_place place;
    bool next = false;
    dibs_status rc;

    dibs__election_heir_key(el, key);
    rc = name_heir(el, key, member, &version, err);
    named_at = dibsx_now();
    while (rc == DIBS_OK && !next) {
        rc = dibs__election_find(el, member, &place, err);
        next = dibs__election_is_next(&place, named_at);
        if (rc == DIBS_OK && !next && dibsx_now() >= deadline)
            rc = dibsx_fail(err, DIBS_TIMEOUT,
                            "%.63s did not come to the head of the queue for "
                            "%s; it leads on",
                            member, el->name);
        if (rc == DIBS_OK && dibs_election_check(el) != DIBS_OK)
            rc = fail_lost(el, err);
        if (rc == DIBS_OK && !next)
            (void)poll(NULL, 0, LOOK_MS);
        if (rc == DIBS_OK && !next && !version)
            rc = name_heir(el, key, member, &version, err);
    }
    if (version)
        (void)!dibs_state_delete(el->cl, key, version, NULL);
    return rc;
}

/* Locks: el->mutex, let go meanwhile. */
static dibs_status end_term(dibs_election *el, dibs_error *err)
{
    uint64_t releases = el->releases;

    if (!dibs__election_leads(&el->machine, dibsx_now()))
        return fail_lost(el, err);
    el->work_stopped = true;
    dibs__election_resign(&el->machine, true);
    dibs__election_publish(el);
    pthread_cond_broadcast(&el->cond);
    while (el->releases == releases)
        pthread_cond_wait(&el->cond, &el->mutex);
    el->work_stopped = false;
    if (el->released.status == DIBS_OK)
        return DIBS_OK;
    return dibsx_fail_at(err, el->released.status, el->released.origin, "%s",
                         el->released.message);
}

dibs_status
dibs_election_transfer(dibs_election *el, const char *member, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc;
    bool inside;

    if (!el || !member || !*member || strlen(member) >= DIBS__MEMBER_SIZE)
        return dibsx_fail(err, DIBS_INVALID,
                          "a transfer needs an election and a member");
    rc = dibs__client_usable(el->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&el->mutex);
    inside = el->running && pthread_equal(pthread_self(), el->thread);
    el->transfers += inside ? 0 : 1;
    pthread_mutex_unlock(&el->mutex);
    if (inside)
        return dibsx_fail(err, DIBS_INVALID,
                          "a callback of an election cannot transfer it");
    rc = check_heir(el, member, err);
    if (rc == DIBS_OK)
        rc = call_heir(el, member, err);
    pthread_mutex_lock(&el->mutex);
    if (rc == DIBS_OK)
        rc = end_term(el, err);
    el->transfers--;
    pthread_mutex_unlock(&el->mutex);
    return rc;
}
