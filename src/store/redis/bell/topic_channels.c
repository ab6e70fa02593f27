/* topic_channels.c - the channels of topics that a bell subscribes to. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/topic_channels.h"
#include "base/alloc.h"
#include <string.h>

void dibs__topic_channels_fini(dibs__topic_channels *chs)
{
    for (size_t i = 0; i < chs->count; i++)
        dibsx_free(chs->list[i].name);
    dibsx_free(chs->list);
    *chs = (dibs__topic_channels){0};
}

dibs__topic_channel *
dibs__topic_channels_find(dibs__topic_channels *chs, const char *name)
{
    for (size_t i = 0; i < chs->count; i++)
        if (strcmp(chs->list[i].name, name) == 0)
            return &chs->list[i];
    return NULL;
}

static bool grow_list(dibs__topic_channels *chs)
{
    size_t room = chs->room ? 2 * chs->room : 8;
    void *grown = room > DIBS__TOPIC_CHANNELS_MAX
                      ? NULL
                      : dibsx_realloc_n(chs->list, room, sizeof(*chs->list));

    if (!grown)
        return false;
    chs->list = grown;
    chs->room = room;
    return true;
}

dibs__topic_channel *dibs__topic_channels_add(dibs__topic_channels *chs,
                                              const char *name, int listener)
{
    char *copy;

    if (chs->count == chs->room && !grow_list(chs))
        return NULL;
    copy = dibsx_strdup(name);
    if (!copy)
        return NULL;
    chs->list[chs->count] = (dibs__topic_channel){.name = copy,
                                                  .listener = listener,
                                                  .stage = DIBS__TOPIC_WANTED};
    return &chs->list[chs->count++];
}

dibs__topic_channel *
dibs__topic_channels_at(dibs__topic_channels *chs, int listener,
                        dibs__topic_stage stage)
{
    dibs__topic_channel *found = NULL;

    for (size_t i = 0; i < chs->count; i++) {
        dibs__topic_channel *ch = &chs->list[i];

        if (ch->listener == listener && ch->stage == stage &&
            (!found || ch->order < found->order))
            found = ch;
    }
    return found;
}

bool dibs__topic_channels_any(const dibs__topic_channels *chs, int listener)
{
    for (size_t i = 0; i < chs->count; i++)
        if (chs->list[i].listener == listener &&
            chs->list[i].stage != DIBS__TOPIC_REFUSED)
            return true;
    return false;
}

void dibs__topic_channel_sent(dibs__topic_channels *chs,
                              dibs__topic_channel *ch)
{
    ch->stage = DIBS__TOPIC_SENT;
    ch->order = ++chs->sent;
}

void dibs__topic_channels_remove(dibs__topic_channels *chs,
                                 dibs__topic_channel *ch)
{
    dibsx_free(ch->name);
    *ch = chs->list[--chs->count];
}

bool dibs__topic_channels_drop(dibs__topic_channels *chs, int listener)
{
    bool heard = false;

    for (size_t i = chs->count; i > 0; i--) {
        dibs__topic_channel *ch = &chs->list[i - 1];

        if (ch->listener != listener)
            continue;
        heard = heard || ch->stage == DIBS__TOPIC_HEARD;
        dibs__topic_channels_remove(chs, ch);
    }
    return heard;
}
