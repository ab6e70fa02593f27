/* refuse.c - see refuse.h. */
/* SPDX-License-Identifier: MIT */
#include "store/refuse.h"
#include "base/fail.h"
#include <stdio.h>
#include <string.h>

dibs_status dibs__refuse_ask(const dibs__ask *ask, dibs_error *err)
{
    if (ask->ttl_ms <= 0)
        return dibsx_fail(err, DIBS_INVALID, "the ttl must be positive");
    if (ask->mode == DIBS__PERMITS && ask->permits == 0)
        return dibsx_fail(err, DIBS_INVALID, "no permits were asked for");
    if (ask->mode == DIBS__PERMITS && ask->permits > ask->capacity)
        return dibsx_fail(err, DIBS_INVALID,
                          "%u permits were asked for, of %u in all",
                          ask->permits, ask->capacity);
    return DIBS_OK;
}

dibs_status dibs__refuse_left(const char *name, dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "this owner has left `" DIBS__NAME_SHOWN "`", name);
}

dibs_status dibs__refuse_absent(const char *name, dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "this owner did not hold `" DIBS__NAME_SHOWN "`", name);
}

dibs_status dibs__refuse_fence(const char *name, dibs_error *err)
{
    return dibsx_fail(err, DIBS_LOST,
                      "this owner does not hold `" DIBS__NAME_SHOWN
                      "` under this fence",
                      name);
}

static void name_kind(uint32_t capacity, char *out, size_t size)
{
    if (capacity == 0)
        snprintf(out, size, "lock");
    else
        snprintf(out, size, "permits of %u", (unsigned)capacity);
}

dibs_status
dibs__refuse_kind(const dibs__ask *ask, uint32_t capacity, dibs_error *err)
{
    char lives[32], asked[32];

    name_kind(capacity, lives, sizeof(lives));
    name_kind(dibs__ask_capacity(ask), asked, sizeof(asked));
    return dibsx_fail(err, DIBS_MISMATCH,
                      "`" DIBS__NAME_SHOWN "` is in use as %s, asked for as %s",
                      ask->name, lives, asked);
}

/* The length of it in a message: no metadata, and no part of a character. */
static int who_len(const char *who)
{
    size_t len = strcspn(who, "\t");

    if (len < DIBS__WHO_PLAIN)
        return (int)len;
    len = DIBS__WHO_PLAIN - 1;
    while (len > 0 && ((unsigned char)who[len] & 0xc0) == 0x80)
        len--;
    return (int)len;
}

static dibs_status
in_the_way(const char *name, const char *how, const char *who, dibs_error *err)
{
    if (who_len(who) == 0)
        who = "others";
    return dibsx_fail(err, DIBS_BUSY, "`" DIBS__NAME_SHOWN "` is %s by %.*s",
                      name, how, who_len(who), who);
}

dibs_status
dibs__refuse_held(const char *name, const char *who, dibs_error *err)
{
    return in_the_way(name, "held", who, err);
}

dibs_status
dibs__refuse_shared(const char *name, const char *who, dibs_error *err)
{
    return in_the_way(name, "shared", who, err);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

dibs_status dibs__refuse_removal(int64_t items, int64_t dead, int64_t consumers,
                                 dibs_error *err)
{
    if (items == 0 && dead == 0)
        return dibsx_fail(err, DIBS_BUSY,
                          "the queue has %lld consumer%s; try again when it "
                          "has none",
                          (long long)consumers, plural(consumers));
    return dibsx_fail(err, DIBS_BUSY,
                      "the queue has %lld item%s, %lld dead letter%s and %lld "
                      "consumer%s; purge it first",
                      (long long)items, plural(items), (long long)dead,
                      plural(dead), (long long)consumers, plural(consumers));
}
