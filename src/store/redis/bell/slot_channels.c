/* slot_channels.c - the slots of a cluster that a bell subscribes to. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/slot_channels.h"

static bool is_live(const dibs__channel *ch)
{
    return ch->stage != DIBS__UNUSED && ch->stage != DIBS__UNWANTED;
}

dibs__channel *dibs__slot_channels_find(dibs__slot_channels *chs, int slot)
{
    for (size_t i = 0; i < DIBS__CHANNELS_MAX; i++)
        if (chs->list[i].slot == slot && is_live(&chs->list[i]))
            return &chs->list[i];
    return NULL;
}

dibs__channel *dibs__slot_channels_at(dibs__slot_channels *chs, int listener,
                                      dibs__stage stage)
{
    for (size_t i = 0; i < DIBS__CHANNELS_MAX; i++)
        if (chs->list[i].listener == listener && chs->list[i].stage == stage)
            return &chs->list[i];
    return NULL;
}

bool dibs__slot_channels_any(const dibs__slot_channels *chs, int listener)
{
    for (size_t i = 0; i < DIBS__CHANNELS_MAX; i++)
        if (chs->list[i].listener == listener &&
            chs->list[i].stage != DIBS__UNUSED)
            return true;
    return false;
}

bool dibs__slot_channels_add(dibs__slot_channels *chs, int listener, int slot,
                             dibsx_nsec now)
{
    for (size_t i = 0; i < DIBS__CHANNELS_MAX; i++)
        if (chs->list[i].stage == DIBS__UNUSED) {
            chs->list[i] = (dibs__channel){.listener = listener,
                                           .slot = slot,
                                           .stage = DIBS__WANTED,
                                           .used_at = now};
            return true;
        }
    return false;
}

dibs__channel *dibs__slot_channels_surplus(dibs__slot_channels *chs,
                                           dibsx_nsec now, dibsx_nsec idle)
{
    dibs__channel *oldest = NULL;
    size_t count = 0;

    for (size_t i = 0; i < DIBS__CHANNELS_MAX; i++) {
        dibs__channel *ch = &chs->list[i];

        if (!is_live(ch))
            continue;
        count++;
        if (!oldest || ch->used_at < oldest->used_at)
            oldest = ch;
    }
    return oldest &&
                   (count > DIBS__CHANNELS_HIGH || now - oldest->used_at > idle)
               ? oldest
               : NULL;
}

void dibs__channel_give_up(dibs__channel *ch)
{
    ch->stage = ch->stage == DIBS__WANTED ? DIBS__UNUSED : DIBS__UNWANTED;
}

bool dibs__slot_channels_drop(dibs__slot_channels *chs, int listener,
                              dibs__stage stage)
{
    bool dropped = false;

    for (size_t i = 0; i < DIBS__CHANNELS_MAX; i++) {
        dibs__channel *ch = &chs->list[i];

        if (ch->listener != listener || ch->stage == DIBS__UNUSED ||
            (stage != DIBS__UNUSED && ch->stage != stage))
            continue;
        ch->stage = DIBS__UNUSED;
        dropped = true;
    }
    return dropped;
}
