/* members.c - who is in a group: the roll call of its seats. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/members.h>

#include "base/uncancel.h"
#include "coord/member_name.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <stdio.h>
#include <string.h>

typedef struct visit {
    dibs_member_fn *each;
    void *arg;
    dibs__roster_head head; /* is there before the first seat */
    size_t count;
} visit;

static bool pass_seat(const dibs__seat_entry *seat, void *arg)
{
    visit *vt = arg;
    char name[DIBS__WHO_MAX];
    dibs__who who;
    dibs_member_info info;

    if (vt->head.kind != DIBS__ROSTER_GROUP)
        return false;
    vt->count++;
    dibs__who_read(seat->who, &who);
    info = (dibs_member_info){.member = name,
                              .host = who.host,
                              .pid = who.pid,
                              .label = who.label,
                              .meta = who.meta,
                              .fence = seat->fence,
                              .since_wall_us = (int64_t)seat->fence,
                              .left_ms = seat->left_ms,
                              .counts = seat->counts};
    if (!dibs__member_read_name(&info.meta, name, sizeof(name)))
        dibs__who_agent(&who, name);
    return vt->each(&info, vt->arg);
}

dibs_status dibs_members_list(dibs_client *cl, const char *group,
                              dibs_member_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    visit vt = {.each = each, .arg = arg};
    const char *why;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, group, full, err);
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_MEET);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    rc = cl->st->ops->roster->roll_call(cl->st, full,
                                        dibs__client_deadline(cl, dibsx_now()),
                                        &vt.head, pass_seat, &vt, err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return rc;
    if (rc == DIBS_OK && vt.head.kind != DIBS__ROSTER_GROUP)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "`%s` is a barrier or a latch, not a group", group);
    if (vt.count == 0)
        return dibsx_fail(err, DIBS_NOTFOUND, "the group `%s` has no members",
                          group);
    return DIBS_OK;
}
