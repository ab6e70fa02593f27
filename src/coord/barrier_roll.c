/* barrier_roll.c - names the parties that are missing; see barrier_roll.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/barrier_roll.h"
#include "core/names.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A look that takes longer is not worth the wait: it is for a message alone. */
enum { NAMED_MAX = 3, SOON_MS = 1000 };

static bool note_party(const dibs__seat_entry *seat, void *arg)
{
    dibs__barrier_roll *roll = arg;
    dibs__roll_party *party = &roll->parties[roll->count];

    if (roll->count == DIBS__ROLL_MAX)
        return false;
    roll->count++;
    roll->arrived += seat->arrived;
    party->fence = seat->fence;
    party->arrived = seat->arrived;
    snprintf(party->who, sizeof(party->who), "%.*s", DIBS__ROLL_WHO - 1,
             seat->who);
    dibs__text_clean(party->who); /* it may have been cut inside a character */
    return true;
}

void dibs__barrier_roll_take(dibs_client *cl, const char *name,
                             dibs__barrier_roll *out)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibsx_nsec soon = dibsx_after_ms(now, SOON_MS);
    dibs__roster_head head;
    dibs_status rc;

    out->arrived = out->count = 0;
    rc = cl->st->ops->roster->roll_call(cl->st, name,
                                        soon < deadline ? soon : deadline,
                                        &head, note_party, out, NULL);
    out->seen = rc == DIBS_OK || rc == DIBS_NOTFOUND;
}

__attribute__((format(printf, 3, 4))) static void
add_text(char *out, size_t size, const char *format, ...)
{
    size_t len = strlen(out);
    va_list args;

    va_start(args, format);
    vsnprintf(out + len, size - len, format, args);
    va_end(args);
}

/* Lists names after a lead; the number of those that it counted. */
typedef struct name_list {
    char *out;
    size_t size;
    const char *lead;
    uint32_t count;
} name_list;

static void add_name(name_list *list, const char *who)
{
    const char *name = *who ? who : "a party";

    if (list->count < NAMED_MAX)
        add_text(list->out, list->size, "%s%s",
                 list->count == 0 ? list->lead : ", ", name);
    list->count++;
}

static void end_names(const name_list *list)
{
    if (list->count > NAMED_MAX)
        add_text(list->out, list->size, " and %u more",
                 (unsigned)(list->count - NAMED_MAX));
}

/* Names the seats whose party had not come. */
static void add_absent(const dibs__barrier_roll *roll, uint32_t parties,
                       const char *lead, char *out, size_t size)
{
    name_list list = {.out = out, .size = size, .lead = lead};
    uint32_t unseated = parties > roll->count ? parties - roll->count : 0;

    for (uint32_t i = 0; i < roll->count; i++)
        if (!roll->parties[i].arrived)
            add_name(&list, roll->parties[i].who);
    end_names(&list);
    if (unseated > 0)
        add_text(out, size, "%s%u without a seat",
                 list.count == 0 ? lead : " and ", (unsigned)unseated);
}

void dibs__barrier_roll_late(const dibs__barrier_roll *roll, uint32_t parties,
                             char *out, size_t size)
{
    out[0] = '\0';
    if (!roll || !roll->seen)
        return;
    add_text(out, size, ": %u of %u parties came", (unsigned)roll->arrived,
             (unsigned)parties);
    add_absent(roll, parties, "; missing: ", out, size);
}

static bool has_seat(const dibs__barrier_roll *roll, uint64_t fence)
{
    for (uint32_t i = 0; i < roll->count; i++)
        if (roll->parties[i].fence == fence)
            return true;
    return false;
}

void dibs__barrier_roll_broken(const dibs__barrier_roll *before,
                               const dibs__barrier_roll *after,
                               uint32_t parties, char *out, size_t size)
{
    name_list gone = {.out = out, .size = size, .lead = ": gone: "};

    out[0] = '\0';
    if (!after || !after->seen) {
        add_text(out, size, ": a party died or gave up");
        return;
    }
    for (uint32_t i = 0; before && before->seen && i < before->count; i++)
        if (!has_seat(after, before->parties[i].fence))
            add_name(&gone, before->parties[i].who);
    end_names(&gone);
    if (gone.count == 0 && after->count < parties)
        add_text(out, size, ": %u of %u parties have a seat",
                 (unsigned)after->count, (unsigned)parties);
    else if (gone.count == 0)
        add_text(out, size, ": a party gave up");
    if (before && before->seen && before->arrived < parties)
        add_absent(before, parties, "; had not come: ", out, size);
}
