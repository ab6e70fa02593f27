/* group_seat.c - what a seat in a group is made of; see group_seat.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "coord/group_seat.h"
#include "base/buf.h"
#include "coord/member_name.h"
#include "core/names.h"
#include "core/who.h"
#include <stdio.h>
#include <string.h>

enum { BEATS_PER_TTL = 3, DRIFT_PART = 100 };

static dibs_status
add_meta(dibsx_buf *who, const char *const *meta, dibs_error *err)
{
    for (; meta && *meta; meta++) {
        dibs_status rc = dibs__text_check("the metadata", *meta, err);

        if (rc != DIBS_OK)
            return rc;
        if (!strchr(*meta, '=') || **meta == '=')
            return dibsx_fail(err, DIBS_INVALID,
                              "metadata is key=value, and %.60s is not", *meta);
        dibsx_buf_printf(who, "\t%s", *meta);
    }
    return DIBS_OK;
}

/* "host:pid label", then what follows a tab each. */
static dibs_status write_who(const dibs_client *cl, dibs__group_seat *gs,
                             const dibs__group_opts *opts, dibs_error *err)
{
    char plain[DIBS__WHO_PLAIN], member[DIBS__MEMBER_META];
    dibsx_buf who;
    dibs_status rc =
        opts->member ? dibs__member_check_name(opts->member, err) : DIBS_OK;

    if (rc != DIBS_OK)
        return rc;
    dibs__who_plain(cl, opts->label, plain, sizeof(plain));
    dibsx_buf_init(&who, DIBS__WHO_MAX - 1);
    dibsx_buf_expect(&who, DIBS__WHO_MAX - 1);
    if (!dibsx_buf_ok(&who))
        return dibsx_nomem(err, "a member");
    dibsx_buf_puts(&who, plain);
    if (opts->member) {
        dibs__member_write_name(opts->member, member);
        dibsx_buf_printf(&who, "\t%s", member);
    }
    rc = add_meta(&who, opts->meta, err);
    if (rc == DIBS_OK && !dibsx_buf_ok(&who))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the label and the metadata of a member are longer "
                        "than %d bytes",
                        DIBS__WHO_MAX - 1);
    if (rc == DIBS_OK)
        snprintf(gs->who, sizeof(gs->who), "%s", dibsx_buf_text(&who));
    dibsx_buf_fini(&who);
    return rc;
}

static int64_t less_drift(int64_t span_ms)
{
    return span_ms > 0 ? span_ms - span_ms / DRIFT_PART - 1 : 0;
}

int64_t dibs__group_kept_ms(const dibs__meet *answer)
{
    return less_drift(answer->ttl_ms);
}

int64_t dibs__group_left_ms(const dibs__meet *answer)
{
    return less_drift(answer->left_ms < answer->ttl_ms ? answer->left_ms
                                                       : answer->ttl_ms);
}

/* By then a seat at another server, whose clock may run slower, has ended. */
static int64_t settle_after(int64_t span_ms)
{
    return span_ms + span_ms / DRIFT_PART + 1;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

dibs_status dibs__group_seat_init(dibs_client *cl, dibs__group_seat *gs,
                                  const dibs__group_opts *opts, dibs_error *err)
{
    const char *why = dibs__store_cannot(cl->st, DIBS__CAN_MEET);
    int64_t every_ms = opts->ttl_ms / BEATS_PER_TTL;
    int64_t late_ms = smaller(every_ms, cl->timeout_ms);
    dibs_status rc;

    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    rc = dibs__name_full(cl, opts->group, gs->name, err);
    if (rc == DIBS_OK)
        rc = write_who(cl, gs, opts, err);
    if (rc != DIBS_OK)
        return rc;
    gs->seat = (dibs__session_seat){
        .name = gs->name,
        .who = gs->who,
        .flags = opts->quick ? 0 : DIBS__MEET_STRICT,
        .need = opts->need,
        .ttl_ms = opts->ttl_ms,
        .every_ms = every_ms,
        .settle_ms = opts->quick ? 0 : settle_after(opts->ttl_ms + late_ms),
        .late_ms = late_ms,
        .sits = true,
        .dated = true};
    return DIBS_OK;
}
