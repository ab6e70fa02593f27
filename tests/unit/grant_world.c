/* grant_world.c - a store of one name in memory. */
/* SPDX-License-Identifier: MIT */
#include "grant_world.h"
#include <stdio.h>
#include <string.h>

void world_init(world *w)
{
    memset(w, 0, sizeof(*w));
    w->now_us = 5000000;
    w->wall_us = 1700000000000000;
}

void world_fini(world *w)
{
    dibs__roll_fini(&w->roll);
}

void world_pass(world *w, int64_t span_ms)
{
    w->now_us += span_ms * 1000;
    w->wall_us += span_ms * 1000;
}

dibs__party *world_row(world *w, const char *owner)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->rows[i].owner, owner) == 0)
            return &w->rows[i];
    return NULL;
}

dibs__party *world_plant(world *w, const char *owner)
{
    dibs__party *row = &w->rows[w->count++];

    assert_true(w->count <= WORLD_ROWS);
    memset(row, 0, sizeof(*row));
    snprintf(row->owner, sizeof(row->owner), "%s", owner);
    row->permits = 1;
    row->ttl_ms = 1000;
    row->until_us = w->now_us + 1000000;
    return row;
}

dibs__roll *world_load(world *w)
{
    dibs__roll_reset(&w->roll);
    for (size_t i = 0; i < w->count; i++) {
        dibs__party *party = dibs__roll_add(&w->roll);

        assert_non_null(party);
        *party = w->rows[i];
    }
    w->roll.watermark = w->watermark;
    w->roll.now_us = w->now_us;
    w->roll.now_wall_us = w->wall_us;
    return &w->roll;
}

void world_note(char *out, const char *before, const char *owner,
                const char *after)
{
    size_t len = strlen(out);

    snprintf(out + len, WORLD_TEXT - len, "%s%s%s ", before, owner, after);
}

static void write_back(world *w, const dibs__party *party)
{
    dibs__party *row = world_row(w, party->owner);

    if (party->mark == DIBS__ADDED) {
        assert_null(row);
        row = world_plant(w, party->owner);
    }
    assert_non_null(row);
    if (party->mark == DIBS__KEPT) {
        assert_int_equal(row->role, party->role);
        assert_int_equal(row->mode, party->mode);
        assert_int_equal(row->claim, party->claim);
        assert_int_equal(row->tell, party->tell);
        assert_string_equal(row->bell, party->bell);
        assert_true(row->fence == party->fence && row->seq == party->seq);
        assert_int_equal(row->until_us, party->until_us);
    }
    *row = *party;
    row->mark = DIBS__KEPT;
    row->notify = false;
    if (party->mark == DIBS__DROPPED)
        *row = w->rows[--w->count];
}

static const char *sign_of(dibs__notice_kind kind)
{
    static const char *const signs[] = {[DIBS__NOTICE_GRANTED] = "+",
                                        [DIBS__NOTICE_BROKEN] = "-",
                                        [DIBS__NOTICE_WANTED] = "?",
                                        [DIBS__NOTICE_YIELD] = "!"};

    return signs[kind];
}

static void note_notices(world *w)
{
    w->notified[0] = '\0';
    for (size_t i = 0; i < w->roll.count; i++) {
        const dibs__party *party = &w->roll.parties[i];

        if (party->notify)
            world_note(w->notified, sign_of(party->notice), party->owner, "");
    }
}

void world_commit(world *w)
{
    assert_true(w->roll.watermark >= w->watermark);
    w->watermark = w->roll.watermark;
    note_notices(w);
    for (size_t i = 0; i < w->roll.count; i++)
        write_back(w, &w->roll.parties[i]);
    dibs__roll_check(world_load(w));
}

const char *world_show(world *w)
{
    dibs__entry entries[WORLD_ROWS];
    size_t count = dibs__roll_show(world_load(w), entries);
    size_t i = 0;

    w->shown[0] = '\0';
    for (; i < count && entries[i].holder; i++) {
        const char *sign = entries[i].left ? "~" : "";

        world_note(w->shown, "", entries[i].owner,
                   entries[i].claim ? "*" : sign);
    }
    world_note(w->shown, "", "|", "");
    for (; i < count; i++)
        world_note(w->shown, "", entries[i].owner, "");
    return w->shown;
}

dibs_status world_acquire(world *w, const char *owner, const world_want *what,
                          uint32_t flags)
{
    dibs__ask ask = {.name = "n",
                     .owner = owner,
                     .mode = what->mode,
                     .permits = what->permits,
                     .capacity = what->capacity,
                     .flags = flags,
                     .priority = what->priority,
                     .ttl_ms = WORLD_TTL_MS,
                     .who = "host:1 label"};
    dibs_status rc;

    rc = dibs__grant_acquire(world_load(w), &ask, "bell", &w->ans, &w->err);
    assert_true(rc == DIBS_OK || w->err.status == rc);
    world_commit(w);
    return rc;
}

dibs__renewal
world_renew(world *w, const char *owner, uint64_t fence, int64_t ttl_ms)
{
    dibs__renewal item = {.name = "n",
                          .owner = owner,
                          .fence = fence,
                          .ttl_ms = ttl_ms};

    dibs__grant_renew(world_load(w), &item, "bell");
    world_commit(w);
    return item;
}

dibs_status
world_release(world *w, const char *owner, bool unanswered, int64_t keep_ms)
{
    dibs__leave leave = {.name = "n",
                         .owner = owner,
                         .unanswered = unanswered,
                         .keep_ms = keep_ms};
    dibs_status rc = dibs__grant_release(world_load(w), &leave, &w->err);

    assert_true(rc == DIBS_OK || w->err.status == rc);
    world_commit(w);
    return rc;
}

dibs_status world_take(world *w, uint64_t fence, uint32_t *broken)
{
    dibs_status rc = dibs__grant_revoke(world_load(w), fence, broken, &w->err);

    assert_true(rc == DIBS_OK || w->err.status == rc);
    world_commit(w);
    return rc;
}

dibs_status world_turn(world *w, const char *owner, uint64_t fence,
                       dibs__mode mode, const char *to_owner)
{
    dibs__conversion turn = {.name = "n",
                             .owner = owner,
                             .fence = fence,
                             .mode = mode,
                             .to_owner = to_owner ? to_owner : owner,
                             .ttl_ms = WORLD_TTL_MS};
    dibs_status rc =
        dibs__grant_convert(world_load(w), &turn, &w->ans, &w->err);

    assert_true(rc == DIBS_OK || w->err.status == rc);
    if (rc < DIBS_UNAVAIL) /* Else a store rolls back. */
        world_commit(w);
    return rc;
}

dibs_status world_yield(world *w, uint64_t fence, uint32_t *asked)
{
    dibs_status rc = dibs__grant_yield(world_load(w), fence, asked, &w->err);

    assert_true(rc == DIBS_OK || w->err.status == rc);
    for (size_t i = 0; i < w->roll.count; i++)
        assert_int_equal(w->roll.parties[i].mark, DIBS__KEPT);
    assert_int_equal(w->roll.count, w->count);
    assert_int_equal(w->roll.watermark, w->watermark);
    note_notices(w);
    return rc;
}
