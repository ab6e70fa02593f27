/* lease.c - the lease steps: load the roll of a name, apply the grant rule, write
 * back what it marked, in one transaction; ring once it is committed.
 *
 * Any thread. Renewals have a connection of their own. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/db.h"
#include <string.h>

/* One grant in so many sweeps, and a sweep looks at more parties than so many
 * grants can leave behind. */
enum { SWEEP_EVERY = 16 };

static dibs_status
step_begin(struct dibs__store *st, dibs__sqlite_role role, dibsx_nsec deadline,
           dibs__sqlite_conn **cn, dibs_error *err)
{
    dibs_status rc;

    *cn = dibs__sqlite_conn_of(st, role);
    rc = dibs__sqlite_enter(*cn, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_begin(*cn, err);
    if (rc != DIBS_OK)
        dibs__sqlite_leave(*cn);
    return rc;
}

static dibs_status step_end(struct dibs__store *st, dibs__sqlite_conn *cn,
                            dibs_status rc, dibs_error *err)
{
    rc = dibs__sqlite_end(cn, rc, err);
    dibs__bell_ring(&dibs__sqlite_of(st)->bell, &cn->peal);
    dibs__sqlite_leave(cn);
    return rc;
}

/* Keeps the outcome of the rule if it can be written. */
static dibs_status save(dibs__sqlite_conn *cn, const char *name,
                        dibs_status outcome, dibs_error *err)
{
    dibs_status rc;

    if (outcome >= DIBS_UNAVAIL)
        return outcome;
    rc = dibs__sqlite_roll_save(cn, name, err);
    return rc == DIBS_OK ? outcome : rc;
}

static dibs_status
acquire(struct dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline,
        dibs__answer *ans, dibs_error *err)
{
    const char *bell = dibs__bell_address(&dibs__sqlite_of(st)->bell);
    dibs__sqlite_conn *cn;
    dibs_status rc = step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);
    uint64_t before;

    memset(ans, 0, sizeof(*ans));
    if (rc != DIBS_OK)
        return rc;
    before = cn->watermark;
    rc = dibs__sqlite_roll_load(cn, ask->name, err);
    if (rc == DIBS_OK) {
        rc = dibs__grant_acquire(&cn->roll, ask, bell, ans, err);
        rc = save(cn, ask->name, rc, err);
    }
    if (rc == DIBS_OK && ans->fence > before && ans->fence % SWEEP_EVERY == 0)
        rc = dibs__sqlite_sweep(cn, err);
    return step_end(st, cn, rc, err);
}

static dibs_status renew(struct dibs__store *st, dibs__renewal *items,
                         size_t count, dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc;

    if (count == 0)
        return DIBS_OK;
    rc = step_begin(st, DIBS__SQLITE_RENEW, deadline, &cn, err);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = dibs__sqlite_roll_load(cn, items[i].name, err);
        if (rc != DIBS_OK)
            break;
        dibs__grant_renew(&cn->roll, &items[i]);
        rc = dibs__sqlite_roll_save(cn, items[i].name, err);
    }
    return step_end(st, cn, rc, err);
}

static dibs_status release(struct dibs__store *st, const dibs__leave *leave,
                           dibsx_nsec deadline, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc = step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, leave->name, err);
    if (rc == DIBS_OK)
        rc = save(cn, leave->name, dibs__grant_release(&cn->roll, leave, err),
                  err);
    return step_end(st, cn, rc, err);
}

static dibs_status
take(struct dibs__store *st, const char *name, uint64_t fence,
     dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    dibs__sqlite_conn *cn;
    dibs_status rc = step_begin(st, DIBS__SQLITE_LEASE, deadline, &cn, err);

    *broken = 0;
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_roll_load(cn, name, err);
    if (rc == DIBS_OK)
        rc = save(cn, name, dibs__grant_take(&cn->roll, fence, broken, err),
                  err);
    return step_end(st, cn, rc, err);
}

const dibs__lease_ops dibs__sqlite_lease_ops = {
    .acquire = acquire,
    .renew = renew,
    .release = release,
    .inspect = dibs__sqlite_inspect,
    .list = dibs__sqlite_list,
    .take = take,
};
