/* producer_machine.c - a producer of a queue; see producer_machine.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "coord/producer_machine.h"
#include <assert.h>

bool dibs__producer_needs_lane(const dibs__producer *p, dibsx_nsec now)
{
    return p->lane == 0 ||
           (p->number > 0 &&
            now >= dibsx_after_ms(p->asked_at, DIBS__PUSH_AGAIN_MS));
}

void dibs__producer_open(dibs__producer *p, uint64_t lane)
{
    *p = (dibs__producer){.lane = lane};
}

uint64_t dibs__producer_ask(dibs__producer *p, dibsx_nsec now)
{
    assert(p->lane != 0 && !p->asking);
    p->asking = true;
    p->doubt = false;
    p->asked_at = now;
    return ++p->number;
}

void dibs__producer_end(dibs__producer *p)
{
    *p = (dibs__producer){.lane = 0};
}

dibs__asked
dibs__producer_answered(dibs__producer *p, dibsx_nsec now, dibs_status rc)
{
    bool doubt = p->doubt || dibs__asked_doubt(rc);
    bool over = now >= dibsx_after_ms(p->asked_at, DIBS__PUSH_AGAIN_MS);

    assert(p->asking);
    if (rc == DIBS_OK || rc == DIBS_FULL) {
        p->asking = p->doubt = false;
        return DIBS__ASKED_DONE;
    }
    if (rc == DIBS_LOST || (doubt && over)) {
        dibs__producer_end(p);
        return doubt ? DIBS__ASKED_UNSURE : DIBS__ASKED_LOST;
    }
    p->doubt = doubt;
    if (doubt)
        return DIBS__ASKED_AGAIN;
    p->asking = false;
    p->number--;
    return DIBS__ASKED_NOT;
}
