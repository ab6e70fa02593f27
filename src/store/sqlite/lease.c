/* lease.c - the lease steps: load the roll of a name, apply the grant rule, write
 * back what it marked, in one transaction; send notices once it is committed.
 *
 * Any thread. Renewals have a connection of their own. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <string.h>

/* One grant in so many sweeps, and a sweep looks at more parties than so many
 * grants can leave behind. */
enum { SWEEP_EVERY = 16 };

/* Keeps the outcome of the rule if it can be written. */
static dibs_status save_outcome(dibs__sqlite_conn *cn, const char *name,
                                dibs_status outcome, dibs_error *err)
{
    dibs_status rc;

    if (outcome >= DIBS_UNAVAIL)
        return outcome;
    rc = dibs__sqlite_roll_save(cn, name, err);
    return rc == DIBS_OK ? outcome : rc;
}

static dibs_status fail_replicas(const dibs__store *st, dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNSUPPORTED, "%s",
                      dibs__store_cannot(st, DIBS__CAN_REPLICATE));
}

/* Asks for one name, inside a change. Locks: cn. */
static dibs_status ask_one(dibs__sqlite_conn *cn, const dibs__ask *ask,
                           const char *bell, dibs__answer *ans, dibs_error *err)
{
    uint64_t before = cn->watermark;
    dibs_status rc = dibs__sqlite_roll_load(cn, ask->name, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__grant_acquire(&cn->roll, ask, bell, ans, err);
    rc = save_outcome(cn, ask->name, rc, err);
    if (rc == DIBS_OK && ans->fence > before && ans->fence % SWEEP_EVERY == 0)
        rc = dibs__sqlite_sweep(cn, err);
    return rc;
}

dibs_status
dibs__sqlite_acquire(struct dibs__store *st, const dibs__ask *ask,
                     dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    const char *bell =
        dibs__sqlite_doorbell_address(&dibs__sqlite_of(st)->doorbell);
    dibs__sqlite_conn *cn;
    dibs_status rc;

    memset(ans, 0, sizeof(*ans));
    if (ask->replicas > 0)
        return fail_replicas(st, err);
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    rc = ask_one(cn, ask, bell, ans, err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

/* Ends a step that acquired some names and was refused the last one: it changes
 * nothing, but notifies the holders in the way that asked for such notices. */
static void acquire_none(struct dibs__store *st, dibs__sqlite_conn *cn)
{
    dibs__sqlite_roll_back(cn);
    for (size_t i = 0; i < cn->roll.count; i++) {
        const dibs__party *party = &cn->roll.parties[i];

        if (party->notify && party->notice == DIBS__NOTICE_WANTED)
            dibs__sqlite_notices_add(&cn->notices, party);
    }
    (void)dibs__sqlite_doorbell_notify(&dibs__sqlite_of(st)->doorbell,
                                       &cn->notices);
    dibs__sqlite_leave(cn);
}

dibs_status dibs__sqlite_acquire_all(struct dibs__store *st,
                                     const dibs__ask *asks, size_t count,
                                     dibsx_nsec deadline, dibs__answer *answers,
                                     size_t *blocked, dibs_error *err)
{
    const char *bell =
        dibs__sqlite_doorbell_address(&dibs__sqlite_of(st)->doorbell);
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    *blocked = 0;
    memset(answers, 0, count * sizeof(*answers));
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        *blocked = i;
        rc = ask_one(cn, &asks[i], bell, &answers[i], err);
    }
    if (rc == DIBS_OK || rc >= DIBS_UNAVAIL)
        rc = dibs__sqlite_step_end(st, cn, rc, err);
    else
        acquire_none(st, cn);
    if (rc != DIBS_OK)
        memset(answers, 0, count * sizeof(*answers));
    return rc;
}

dibs_status
dibs__sqlite_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
                   dibsx_nsec deadline, dibs_error *err)
{
    const char *bell =
        dibs__sqlite_doorbell_address(&dibs__sqlite_of(st)->doorbell);
    dibs__sqlite_conn *cn;
    dibs_status rc;

    if (count == 0)
        return DIBS_OK;
    if (items[0].replicas > 0)
        return fail_replicas(st, err);
    rc = dibs__sqlite_step_begin(st, DIBS__SQLITE_RENEW, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = dibs__sqlite_roll_load(cn, items[i].name, err);
        if (rc != DIBS_OK)
            break;
        dibs__grant_renew(&cn->roll, &items[i], bell);
        rc = dibs__sqlite_roll_save(cn, items[i].name, err);
    }
    return dibs__sqlite_step_end(st, cn, rc, err);
}

dibs_status
dibs__sqlite_release(struct dibs__store *st, const dibs__leave *leave,
                     dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, leave->name, err);
    if (rc == DIBS_OK)
        rc = save_outcome(cn, leave->name,
                          dibs__grant_release(&cn->roll, leave, err), err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

dibs_status
dibs__sqlite_revoke(struct dibs__store *st, const char *name, uint64_t fence,
                    dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    *broken = 0;
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, name, err);
    if (rc == DIBS_OK)
        rc = save_outcome(cn, name,
                          dibs__grant_revoke(&cn->roll, fence, broken, err),
                          err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

dibs_status
dibs__sqlite_convert(struct dibs__store *st, const dibs__conversion *conversion,
                     dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc =
        dibs__sqlite_step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    memset(ans, 0, sizeof(*ans));
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, conversion->name, err);
    if (rc == DIBS_OK)
        rc = save_outcome(cn, conversion->name,
                          dibs__grant_convert(&cn->roll, conversion, ans, err),
                          err);
    return dibs__sqlite_step_end(st, cn, rc, err);
}

/* Changes nothing, so it needs no transaction. */
dibs_status
dibs__sqlite_yield(struct dibs__store *st, const char *name, uint64_t fence,
                   dibsx_nsec deadline, uint32_t *asked, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);

    *asked = 0;
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, name, err);
    if (rc == DIBS_OK)
        rc = dibs__grant_yield(&cn->roll, fence, asked, err);
    if (rc == DIBS_OK)
        dibs__sqlite_roll_notify(cn);
    (void)dibs__sqlite_doorbell_notify(&dibs__sqlite_of(st)->doorbell,
                                       &cn->notices);
    dibs__sqlite_leave(cn);
    return rc;
}

#define MEMBER(step, STEP) .step = dibs__sqlite_##step,

const dibs__lease_ops dibs__sqlite_lease_ops = {DIBS__LEASE_STEPS(MEMBER)};
