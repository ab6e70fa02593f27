/* ledger.c - the rule of commits; see ledger.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/ledger.h"

/* The value that a check found, for the caller to go on with. Memory may be short for
 * it: that commit changes nothing, and the others go on. */
static dibs_status show_found(dibs__ledger *lg, dibs__commit *item)
{
    const char *key = item->checks[item->failed].key;
    dibs_status rc = lg->ops->read(lg, key, &item->found);

    if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    if (rc != DIBS_NOMEM)
        return rc;
    item->rc = DIBS_NOMEM;
    return DIBS_OK;
}

/* Decides, and writes the rc; changes nothing. */
static dibs_status decide_commit(dibs__ledger *lg, dibs__commit *item)
{
    item->now_us = lg->now_us;
    item->rc = DIBS_OK;
    if (lg->now_us < item->not_before_us)
        item->rc = DIBS_EARLY;
    else if (item->not_after_us && lg->now_us > item->not_after_us)
        item->rc = DIBS_LATE;
    for (size_t i = 0; i < item->check_count && item->rc == DIBS_OK; i++) {
        uint64_t version;
        dibs_status rc = lg->ops->version(lg, item->checks[i].key, &version);

        if (rc != DIBS_OK)
            return rc;
        if (version == item->checks[i].version)
            continue;
        item->rc = DIBS_STALE;
        item->failed = i;
        return show_found(lg, item);
    }
    return DIBS_OK;
}

static dibs_status
do_change(dibs__ledger *lg, const dibs__change *change, uint64_t version)
{
    switch (change->verb) {
    case DIBS__CHANGE_PUT:
        return lg->ops->put(lg, change, version);
    case DIBS__CHANGE_DELETE:
        return lg->ops->drop(lg, change->key);
    case DIBS__CHANGE_ENTER:
        return lg->ops->enter(lg, change->key, change->member,
                              change->from_now ? lg->now_us + change->at
                                               : change->at);
    case DIBS__CHANGE_LEAVE:
        return lg->ops->leave(lg, change->key, change->member);
    case DIBS__CHANGE_TELL:
        return lg->ops->tell(lg, change->key,
                             change->number ? change->number : version);
    }
    return DIBS_OK;
}

/* The sizes are those after all changes. */
static dibs_status count_members(dibs__ledger *lg, dibs__commit *item)
{
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < item->change_count && rc == DIBS_OK; i++)
        if (item->changes[i].verb == DIBS__CHANGE_ENTER &&
            !item->changes[i].uncounted)
            rc =
                lg->ops->size(lg, item->changes[i].key, &item->changes[i].size);
    return rc;
}

dibs_status dibs__ledger_commit(dibs__ledger *lg, dibs__commit *item)
{
    dibs_status rc = decide_commit(lg, item);

    if (rc != DIBS_OK || item->rc != DIBS_OK)
        return rc;
    rc = lg->ops->draw(lg, &item->version);
    for (size_t i = 0; i < item->change_count && rc == DIBS_OK; i++)
        rc = do_change(lg, &item->changes[i], item->version);
    return rc == DIBS_OK ? count_members(lg, item) : rc;
}
