/* renew.c - the lease step that renews many leases, with few scripts.
 *
 * Any thread. Renewals have connections of their own. A script renews leases of one
 * slot, or any when there is no cluster; the scripts for one server are sent
 * together. Renewals that replicas must acknowledge come last of all, as they
 * may take long. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/renew.h"
#include "base/alloc.h"
#include "base/fail.h"

/* The bytes of scripts that are sent together. */
enum { TOGETHER_BYTES = 8 << 20 };

static bool is_mixed(const dibs__renewing *rn)
{
    bool awaits_replicas = dibs__renewal_awaits_replicas(&rn->entries[0]);

    for (size_t i = 1; i < rn->count; i++)
        if (dibs__renewal_awaits_replicas(&rn->entries[i]) != awaits_replicas)
            return true;
    return false;
}

/* Sends all scripts together; then those that met an error and those that
 * replicas must acknowledge, each by itself. */
static void run_on_one_server(dibs__renewing *rn)
{
    dibs__renewal_piece pc;
    dibs_status rc;

    if (is_mixed(rn))
        dibs__renewing_sort(rn);
    for (size_t i = 0; i < rn->count; i++)
        if (!rn->entries[i].sent &&
            !dibs__renewal_awaits_replicas(&rn->entries[i]))
            dibs__renewing_send_to(rn, 0, rn->deadline);
    for (size_t i = 0; i < rn->count; i += pc.count) {
        pc = dibs__renewing_piece_at(rn, &rn->entries[i]);
        if (pc.first->done)
            continue;
        rc = dibs__renewing_run(rn, &pc, NULL, rn->deadline);
        if (rc != DIBS_OK)
            dibs__renewing_give_up(rn, &pc, rc);
    }
}

dibs_status
dibs__redis_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
                  dibsx_nsec deadline, dibs_error *err)
{
    dibs__renewing rn = {.rd = dibs__redis_of(st),
                         .count = count,
                         .deadline = deadline};
    dibs_status rc = DIBS_OK;

    if (count == 0)
        return rc;
    dibsx_buf_init(&rn.bytes, TOGETHER_BYTES);
    rn.entries = dibsx_zalloc_n(count, sizeof(*rn.entries));
    /* Large, and written before it is read. */
    rn.sheet = dibsx_realloc_n(NULL, 1, sizeof(*rn.sheet));
    if (!rn.entries || !rn.sheet)
        rc = dibsx_nomem(err, "a batch of renewals");
    if (rc == DIBS_OK) {
        for (size_t i = 0; i < count; i++)
            rn.entries[i].item = &items[i];
        if (rn.rd->cluster)
            dibs__renewing_in_cluster(&rn);
        else
            run_on_one_server(&rn);
    }
    /* Each has its own outcome, unless all have failed. */
    if (rc == DIBS_OK && rn.failed == count)
        rc = dibsx_fail_at(err, rn.unsure ? DIBS_UNKNOWN : rn.why.status,
                           rn.why.origin, "%s", rn.why.message);
    dibsx_free(rn.sheet);
    dibsx_free(rn.entries);
    dibsx_buf_fini(&rn.bytes);
    return rc;
}
