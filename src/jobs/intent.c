/* intent.c - a commit that a machine wants. */
/* SPDX-License-Identifier: MIT */
#include "jobs/intent.h"
#include "base/alloc.h"

#include <string.h>

void dibs__intent_init(dibs__intent *in)
{
    memset(in, 0, sizeof(*in));
}

void dibs__intent_fini(dibs__intent *in)
{
    for (size_t i = 0; i < in->check_count; i++)
        dibsx_free(in->checks[i].key);
    for (size_t i = 0; i < in->change_count; i++) {
        dibsx_free(in->changes[i].key);
        dibsx_free(in->changes[i].member);
        dibsx_free(in->changes[i].data);
    }
    dibsx_free(in->changes);
    dibs__intent_init(in);
}

void dibs__intent_check_version(dibs__intent *in, const char *key,
                                uint64_t version)
{
    char *copy;

    if (in->check_count == DIBS__INTENT_CHECKS_MAX) {
        in->failed = true;
        return;
    }
    copy = dibsx_strdup(key);
    if (copy)
        in->checks[in->check_count++] =
            (dibs__intent_check){.key = copy, .version = version};
    else
        in->failed = true;
}

static bool make_room(dibs__intent *in)
{
    size_t room = in->room ? 2 * in->room : 8;
    dibs__intent_change *more;

    if (in->change_count < in->room)
        return true;
    if (in->change_count >= DIBS__INTENT_CHANGES_MAX)
        return false;
    more = dibsx_realloc_n(in->changes, room, sizeof(*more));
    if (!more)
        return false;
    in->changes = more;
    in->room = room;
    return true;
}

static dibs__intent_change *add_change(dibs__intent *in, dibs__intent_verb verb,
                                       const char *key, const char *member)
{
    dibs__intent_change change = {.verb = verb, .key = dibsx_strdup(key)};

    if (member)
        change.member = dibsx_strdup(member);
    if (!change.key || (member && !change.member) || !make_room(in)) {
        dibsx_free(change.key);
        dibsx_free(change.member);
        in->failed = true;
        return NULL;
    }
    in->changes[in->change_count] = change;
    return &in->changes[in->change_count++];
}

void dibs__intent_put(dibs__intent *in, const char *key, const void *data,
                      size_t len, int64_t ttl_ms)
{
    dibs__intent_change *change = add_change(in, DIBS__INTENT_PUT, key, NULL);

    if (!change)
        return;
    change->data = dibsx_zalloc(len + 1);
    if (!change->data) {
        in->failed = true;
        return;
    }
    if (len)
        memcpy(change->data, data, len);
    change->len = len;
    change->ttl_ms = ttl_ms;
}

void dibs__intent_delete(dibs__intent *in, const char *key)
{
    (void)add_change(in, DIBS__INTENT_DELETE, key, NULL);
}

void dibs__intent_enter(dibs__intent *in, const char *index, const char *member,
                        int64_t at)
{
    dibs__intent_change *change =
        add_change(in, DIBS__INTENT_ENTER, index, member);

    if (change)
        change->at = at;
}

void dibs__intent_leave(dibs__intent *in, const char *index, const char *member)
{
    (void)add_change(in, DIBS__INTENT_LEAVE, index, member);
}

void dibs__intent_tell(dibs__intent *in, const char *topic)
{
    for (size_t i = 0; i < in->change_count; i++)
        if (in->changes[i].verb == DIBS__INTENT_TELL &&
            strcmp(in->changes[i].key, topic) == 0)
            return;
    (void)add_change(in, DIBS__INTENT_TELL, topic, NULL);
}

size_t dibs__intent_bytes(const dibs__intent *in)
{
    size_t bytes = 0;

    for (size_t i = 0; i < in->change_count; i++)
        bytes += in->changes[i].len;
    return bytes;
}

void dibs__intent_not_before(dibs__intent *in, int64_t at_us)
{
    if (at_us > in->not_before_us)
        in->not_before_us = at_us;
}

void dibs__intent_not_after(dibs__intent *in, int64_t at_us)
{
    if (at_us && (in->not_after_us == 0 || at_us < in->not_after_us))
        in->not_after_us = at_us;
}

bool dibs__intent_ok(const dibs__intent *in)
{
    return !in->failed;
}
