/* session_machine.c - the machine of session_machine.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/session_machine.h"
#include <string.h>

void dibs__session_init(dibs__session *s, int64_t ttl_ms, size_t leases_max,
                        dibsx_nsec now)
{
    *s = (dibs__session){.ttl_ms = ttl_ms,
                         .leases_max = leases_max,
                         .valid_until = dibsx_after_ms(now, ttl_ms)};
}

bool dibs__session_id_ok(const char *id)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t len = strlen(id);

    return len >= 1 && len <= DIBS__SESSION_ID_MAX &&
           strspn(id, allowed) == len;
}

/* The end of a lease that its client may have had. */
static void
free_lease(dibs__session *s, dibs__session_lease *le, dibs__session_todo todo)
{
    if (le->stage == DIBS__STAGE_WAITING && le->todo == DIBS__SESSION_START) {
        le->todo = DIBS__SESSION_NOTHING; /* It has not begun. */
        le->asking = false;
    } else if (le->stage == DIBS__STAGE_WAITING) {
        dibs__leases_want(&s->leases, le, DIBS__SESSION_CANCEL);
    } else if (le->stage == DIBS__STAGE_HELD) {
        dibs__leases_want(&s->leases, le, todo);
    } else {
        return;
    }
    le->stage = DIBS__STAGE_FREED;
    le->why = DIBS_OK;
    dibs__leases_moved(&s->leases, le);
}

void dibs__session_finish(dibs__session *s, dibs__session_end why)
{
    if (s->end != DIBS__SESSION_OPEN)
        return;
    s->end = why;
    for (dibs__session_lease *le = s->leases.first, *next; le && !le->over;
         le = next) {
        next = le->next;
        free_lease(s, le,
                   why == DIBS__SESSION_DRAINED ? DIBS__SESSION_LEAVE
                                                : DIBS__SESSION_RELEASE);
    }
}

void dibs__session_tick(dibs__session *s, dibsx_nsec now)
{
    if (now >= s->valid_until)
        dibs__session_finish(s, DIBS__SESSION_EXPIRED);
}

bool dibs__session_beat(dibs__session *s, dibsx_nsec now)
{
    dibs__session_tick(s, now);
    if (s->end != DIBS__SESSION_OPEN)
        return false;
    s->valid_until = dibsx_after_ms(now, s->ttl_ms);
    return true;
}

dibs__session_lease *dibs__session_find(const dibs__session *s, const char *id)
{
    return dibs__leases_find(&s->leases, id);
}

dibs__session_put
dibs__session_put_lease(dibs__session *s, dibs__session_lease *fresh,
                        const char *id, dibsx_nsec now,
                        dibs__session_lease **found)
{
    dibs__session_lease *le = dibs__session_find(s, id);

    dibs__session_tick(s, now);
    *found = le;
    if (s->end != DIBS__SESSION_OPEN)
        return DIBS__PUT_ENDED;
    if (le)
        return DIBS__PUT_KNOWN;
    if (s->leases.live_count >= s->leases_max)
        return DIBS__PUT_FULL;
    dibs__leases_add(&s->leases, fresh, id);
    fresh->stage = DIBS__STAGE_WAITING;
    fresh->asking = true;
    dibs__leases_want(&s->leases, fresh, DIBS__SESSION_START);
    *found = fresh;
    return DIBS__PUT_NEW;
}

bool dibs__session_remove(dibs__session *s, dibs__session_lease *fresh,
                          const char *id)
{
    dibs__session_lease *le = dibs__session_find(s, id);
    bool known = le != NULL;

    if (!known) {
        dibs__leases_add(&s->leases, fresh, id);
        le = fresh;
        le->stage = DIBS__STAGE_FREED;
        dibs__leases_moved(&s->leases, le);
    }
    le->removed = true;
    free_lease(s, le, DIBS__SESSION_RELEASE);
    return !known;
}

void dibs__session_answered(dibs__session *s, dibs__session_lease *le,
                            dibs_status rc, uint64_t fence)
{
    bool wanted = le->stage == DIBS__STAGE_WAITING;

    le->asking = false;
    if (rc == DIBS_OK)
        le->fence = fence;
    if (rc == DIBS_OK && wanted) {
        le->stage = DIBS__STAGE_HELD;
    } else if (rc == DIBS_OK) {
        /* Only one that was taken over has a client that believes in it. */
        dibs__leases_want(&s->leases, le,
                          s->end == DIBS__SESSION_DRAINED && le->adopted &&
                                  !le->removed
                              ? DIBS__SESSION_LEAVE
                              : DIBS__SESSION_RELEASE);
    } else {
        le->todo = DIBS__SESSION_NOTHING;
        le->stage = DIBS__STAGE_FREED;
        le->why = wanted ? rc : le->why;
    }
    dibs__leases_moved(&s->leases, le);
}

void dibs__session_lost(dibs__session *s, dibs__session_lease *le)
{
    if (le->stage != DIBS__STAGE_HELD)
        return;
    le->stage = DIBS__STAGE_LOST;
    dibs__leases_moved(&s->leases, le);
}

dibs__session_lease *
dibs__session_next(dibs__session *s, dibs__session_todo *todo)
{
    return dibs__leases_next(&s->leases, todo);
}

void dibs__session_adopting(dibs__session_lease *le)
{
    le->adopted = true;
    le->todo = DIBS__SESSION_NOTHING;
}

dibs__session_lease *dibs__session_forgotten(dibs__session *s)
{
    return dibs__leases_take_old(&s->leases, s->leases_max);
}

int64_t dibs__session_less_drift(int64_t span_ms)
{
    int64_t left_ms = span_ms - (span_ms + 99) / 100 - 2;

    return left_ms > 0 ? left_ms : 0;
}

static int64_t left_ms(const dibs__session *s, dibsx_nsec now, int64_t lease_ms)
{
    int64_t session_ms = dibsx_valid_ms(s->valid_until, now);

    if (s->end != DIBS__SESSION_OPEN)
        return 0;
    return lease_ms < session_ms ? lease_ms : session_ms;
}

int64_t
dibs__session_told_ms(const dibs__session *s, dibsx_nsec now, int64_t lease_ms)
{
    return dibs__session_less_drift(left_ms(s, now, lease_ms));
}

dibsx_nsec dibs__session_told_until(const dibs__session *s, dibsx_nsec now,
                                    int64_t lease_ms)
{
    int64_t span_ms = left_ms(s, now, lease_ms);

    return span_ms > 0 ? dibsx_after_ms(now, span_ms) : 0;
}

static const char *
check_lease(const dibs__session *s, const dibs__session_lease *le)
{
    if (le->stage == DIBS__STAGE_WAITING && !le->asking)
        return "S3: a lease waits without an acquire";
    if (le->asking &&
        (le->stage == DIBS__STAGE_HELD || le->stage == DIBS__STAGE_LOST))
        return "S3: there is an acquire for a lease that has been granted";
    if (s->end != DIBS__SESSION_OPEN &&
        (le->stage == DIBS__STAGE_WAITING || le->stage == DIBS__STAGE_HELD))
        return "S4: an ended session has a lease";
    if (le->stage == DIBS__STAGE_HELD && le->removed)
        return "S4: a lease that was removed is held";
    return NULL;
}

const char *dibs__session_check(const dibs__session *s)
{
    const char *misplaced = dibs__leases_check(&s->leases);

    if (misplaced)
        return misplaced;
    if (s->leases.live_count > s->leases_max)
        return "S6: a session has too many leases";
    for (const dibs__session_lease *le = s->leases.first; le; le = le->next) {
        const char *wrong = check_lease(s, le);

        if (wrong)
            return wrong;
    }
    return NULL;
}
