/* test_grant_model.c - random steps of the grant rule beside a simple model.
 *
 * The model keeps two lists, who holds in the order of grant and who waits in
 * the order of service, and moves people between them; it has no marks, no
 * sequence numbers and no roles. After each step both must show the same and have
 * notified the same. A failure names its seed. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "grant_world.h"
#include "seed.h"
#include <stdio.h>
#include <string.h>

enum { OWNERS = 12, SEEDS = 60, STEPS = 1000 };

typedef struct person {
    char owner[4];
    dibs__mode mode;
    uint32_t permits;
    uint32_t capacity;
    int32_t priority;
    int64_t ttl_us;
    int64_t until_us;
    uint64_t fence;
    bool claim;
    bool left;
    bool tomb_follows;
    bool tell;
    bool bell;
    bool fresh; /* granted by this step, and notified for that */
} person;

typedef struct list {
    person all[OWNERS];
    size_t count;
} list;

typedef struct model {
    list holders;
    list queue;
    list tombs;
    int64_t now_us;
    int64_t wall_us;
    uint64_t watermark;
    uint32_t capacity; /* mostly asked for; 0: lock */
    char notified[WORLD_TEXT];
    char from[4], to[4]; /* of the last turn */
    dibs__conversion turn;
} model;

static person *list_find(list *l, const char *owner)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->all[i].owner, owner) == 0)
            return &l->all[i];
    return NULL;
}

static void list_insert(list *l, size_t at, const person *one)
{
    assert_true(l->count < OWNERS);
    memmove(&l->all[at + 1], &l->all[at], (l->count - at) * sizeof(*one));
    l->all[at] = *one;
    l->count++;
}

static void list_remove(list *l, const person *one)
{
    size_t at = (size_t)(one - l->all);

    memmove(&l->all[at], &l->all[at + 1], (--l->count - at) * sizeof(*one));
}

static void list_expire(list *l, int64_t now_us)
{
    for (size_t i = 0; i < l->count;) {
        if (l->all[i].until_us <= now_us)
            list_remove(l, &l->all[i]);
        else
            i++;
    }
}

static void model_bury(model *m, const char *owner, int64_t from_us)
{
    person one = {.until_us = from_us + DIBS__TOMB_MS * INT64_C(1000)};
    person *old = list_find(&m->tombs, owner);

    snprintf(one.owner, sizeof(one.owner), "%s", owner);
    if (old)
        *old = one;
    else
        list_insert(&m->tombs, m->tombs.count, &one);
}

/* What comes before each step. */
static void model_begin(model *m)
{
    m->notified[0] = '\0';
    for (size_t i = 0; i < m->holders.count; i++)
        m->holders.all[i].fresh = false;
    for (size_t i = 0; i < m->holders.count; i++) {
        const person *one = &m->holders.all[i];

        if (one->until_us <= m->now_us && one->tomb_follows)
            model_bury(m, one->owner, one->until_us);
    }
    list_expire(&m->holders, m->now_us);
    list_expire(&m->queue, m->now_us);
    list_expire(&m->tombs, m->now_us);
}

static bool model_fits(const model *m, const person *one)
{
    uint32_t left = one->capacity;

    for (size_t i = 0; i < m->holders.count; i++) {
        const person *other = &m->holders.all[i];

        if (one->mode == DIBS__PERMITS)
            left -= other->permits;
        else if (one->mode != DIBS__SHARED || other->mode != DIBS__SHARED)
            return false;
    }
    return one->mode != DIBS__PERMITS || one->permits <= left;
}

static uint64_t model_fence(model *m)
{
    m->watermark++;
    if (m->wall_us > (int64_t)m->watermark)
        m->watermark = (uint64_t)m->wall_us;
    return m->watermark;
}

static void model_grant(model *m, person *waiting, const char *asker)
{
    person one = *waiting;

    list_remove(&m->queue, waiting);
    one.claim = strcmp(one.owner, asker) != 0;
    one.until_us =
        m->now_us + (one.claim ? DIBS__CLAIM_MS * INT64_C(1000) : one.ttl_us);
    one.fence = model_fence(m);
    one.fresh = one.claim;
    if (one.fresh)
        world_note(m->notified, "+", one.owner, "");
    list_insert(&m->holders, m->holders.count, &one);
}

static void model_serve(model *m, const char *asker)
{
    while (m->queue.count && model_fits(m, &m->queue.all[0]))
        model_grant(m, &m->queue.all[0], asker);
}

static void model_tell(model *m, const person *asker)
{
    for (size_t i = 0; i < m->holders.count; i++) {
        const person *one = &m->holders.all[i];

        if (one != asker && one->tell && one->bell && !one->left && !one->fresh)
            world_note(m->notified, "?", one->owner, "");
    }
}

static bool model_other_kind(const model *m, uint32_t capacity)
{
    const list *l = m->holders.count ? &m->holders : &m->queue;

    return l->count && l->all[0].capacity != capacity;
}

static dibs_status model_join(model *m, const person *one, uint32_t flags)
{
    person *mine = list_find(&m->queue, one->owner);
    size_t at = m->queue.count;

    if (!mine) {
        while (at > 0 && m->queue.all[at - 1].priority < one->priority)
            at--;
        list_insert(&m->queue, at, one);
        mine = &m->queue.all[at];
    }
    mine->until_us = m->now_us + DIBS__PLACE_MS * INT64_C(1000);
    if ((flags & DIBS__ASK_BARGE) && model_fits(m, mine))
        model_grant(m, mine, one->owner);
    model_serve(m, one->owner);
    mine = list_find(&m->queue, one->owner);
    if (!mine)
        return DIBS_OK;
    if (!(flags & DIBS__ASK_QUEUE)) {
        list_remove(&m->queue, mine);
        model_serve(m, "");
    }
    model_tell(m, NULL);
    return DIBS_BUSY;
}

static dibs_status model_ask(model *m, const person *one, uint32_t flags)
{
    const person *mine = list_find(&m->holders, one->owner);
    dibs_status rc = DIBS_OK;

    if (list_find(&m->tombs, one->owner) || (mine && mine->left))
        rc = DIBS_LOST;
    else if (!mine && model_other_kind(m, one->capacity))
        rc = DIBS_MISMATCH;
    else if (!mine)
        return model_join(m, one, flags);
    mine = list_find(&m->queue, one->owner);
    if (rc == DIBS_MISMATCH && mine)
        list_remove(&m->queue, mine);
    model_serve(m, "");
    return rc;
}

static void model_extend(const model *m, person *mine, int64_t ttl_ms)
{
    mine->claim = false;
    if (m->now_us + ttl_ms * 1000 > mine->until_us)
        mine->until_us = m->now_us + ttl_ms * 1000;
}

static dibs_status model_renew(model *m, const dibs__renewal *item)
{
    person *mine = list_find(&m->holders, item->owner);
    bool held = mine && !mine->left && mine->fence == item->fence;

    if (held) {
        model_extend(m, mine, item->ttl_ms);
        mine->bell = true;
    }
    model_serve(m, "");
    return held ? DIBS_OK : DIBS_LOST;
}

static dibs_status model_release(model *m, const dibs__leave *leave)
{
    person *mine = list_find(&m->holders, leave->owner);
    const person *place = list_find(&m->queue, leave->owner);

    if (place)
        list_remove(&m->queue, place);
    if (mine && !mine->left && leave->keep_ms > 0) {
        mine->left = true;
        mine->claim = false;
        mine->until_us = m->now_us + leave->keep_ms * 1000;
    } else if (mine && !mine->left)
        list_remove(&m->holders, mine);
    if (mine && list_find(&m->holders, leave->owner))
        mine->tomb_follows = mine->tomb_follows || leave->unanswered;
    else if (leave->unanswered)
        model_bury(m, leave->owner, m->now_us);
    model_serve(m, "");
    return mine ? DIBS_OK : DIBS_LOST;
}

static dibs_status model_take(model *m, uint64_t fence)
{
    size_t held = m->holders.count;
    dibs_status rc = held ? DIBS_STALE : DIBS_NOTFOUND;

    while (held-- > 0) {
        const person *one = &m->holders.all[held];

        if (fence != 0 && one->fence != fence)
            continue;
        if (one->tomb_follows)
            model_bury(m, one->owner, m->now_us);
        if (!one->left)
            world_note(m->notified, "-", one->owner, "");
        list_remove(&m->holders, one);
        rc = DIBS_OK;
    }
    model_serve(m, "");
    return rc;
}

/* Whether the lease may become that of the new owner. */
static dibs_status model_heir(model *m, const char *owner)
{
    const person *heir = list_find(&m->holders, owner);

    if (list_find(&m->tombs, owner) || (heir && heir->left))
        return DIBS_LOST;
    return heir || list_find(&m->queue, owner) ? DIBS_INVALID : DIBS_OK;
}

static dibs_status model_convert_held(model *m, person *mine, bool stays)
{
    const dibs__conversion *turn = &m->turn;
    dibs_status rc = stays ? DIBS_OK : model_heir(m, turn->to_owner);
    size_t at = (size_t)(mine - m->holders.all);
    person one = *mine;

    if ((mine->mode == DIBS__PERMITS) != (turn->mode == DIBS__PERMITS))
        return DIBS_INVALID;
    if (rc != DIBS_OK)
        return rc;
    if (turn->mode == DIBS__EXCLUSIVE && m->holders.count > 1) {
        model_tell(m, mine);
        return DIBS_BUSY;
    }
    list_remove(&m->holders, mine);
    snprintf(one.owner, sizeof(one.owner), "%s", turn->to_owner);
    one.tell = one.tell && stays;
    one.bell = one.bell && stays;
    if (!stays || turn->mode < one.mode) {
        one.fence = model_fence(m);
        at = m->holders.count;
    }
    one.mode = turn->mode;
    model_extend(m, &one, turn->ttl_ms);
    list_insert(&m->holders, at, &one);
    return DIBS_OK;
}

static dibs_status model_convert(model *m)
{
    const dibs__conversion *turn = &m->turn;
    person *mine = list_find(&m->holders, turn->owner);
    bool held = mine && !mine->left && mine->fence == turn->fence;
    dibs_status rc = DIBS_OK;

    if (held)
        rc = model_convert_held(m, mine,
                                strcmp(turn->owner, turn->to_owner) == 0);
    if (rc >= DIBS_UNAVAIL)
        return rc;
    model_serve(m, "");
    if (held)
        return rc;
    mine = list_find(&m->holders, turn->to_owner);
    return mine && !mine->left && mine->mode == turn->mode &&
                   mine->fence > turn->fence
               ? DIBS_OK
               : DIBS_LOST;
}

static dibs_status model_yield(model *m, uint64_t fence, uint32_t *asked)
{
    dibs_status rc = m->holders.count ? DIBS_STALE : DIBS_NOTFOUND;

    *asked = 0;
    for (size_t i = 0; i < m->holders.count; i++) {
        const person *one = &m->holders.all[i];

        if (fence != 0 && one->fence != fence)
            continue;
        rc = DIBS_OK;
        if (!one->bell || one->left)
            continue;
        world_note(m->notified, "!", one->owner, "");
        (*asked)++;
    }
    return rc;
}

static const char *model_show(const model *m)
{
    static char shown[WORLD_TEXT];

    shown[0] = '\0';
    for (size_t i = 0; i < m->holders.count; i++) {
        const person *one = &m->holders.all[i];

        world_note(shown, "", one->owner,
                   one->claim  ? "*"
                   : one->left ? "~"
                               : "");
    }
    world_note(shown, "", "|", "");
    for (size_t i = 0; i < m->queue.count; i++)
        world_note(shown, "", m->queue.all[i].owner, "");
    return shown;
}

static person
random_person(dibsx_prng *prng, const char *owner, uint32_t capacity)
{
    person one = {.mode = DIBS__PERMITS, .permits = 1};
    uint64_t die = dibsx_prng_below(prng, 40);

    snprintf(one.owner, sizeof(one.owner), "%s", owner);
    one.priority = (int32_t)dibsx_prng_below(prng, 3) - 1;
    one.tell = dibsx_prng_below(prng, 3) == 0;
    one.bell = true;
    one.ttl_us = 1000 * (int64_t)(1 + dibsx_prng_below(prng, 6000));
    one.capacity = die == 0 ? 3 : capacity;
    if (one.capacity == 0)
        one.mode = die % 3 ? DIBS__SHARED : DIBS__EXCLUSIVE;
    if (one.capacity)
        one.permits = 1 + (uint32_t)dibsx_prng_below(prng, one.capacity);
    return one;
}

static bool random_ask(world *w, model *m, dibsx_prng *prng, const char *owner)
{
    person one = random_person(prng, owner, m->capacity);
    uint32_t flags = dibsx_prng_below(prng, 6) ? DIBS__ASK_QUEUE : 0;
    dibs__ask ask = {.name = "n",
                     .owner = owner,
                     .mode = one.mode,
                     .permits = one.permits,
                     .capacity = one.capacity,
                     .priority = one.priority,
                     .ttl_ms = one.ttl_us / 1000,
                     .who = "host:1"};
    const person *mine;
    dibs_status rc;

    if (dibsx_prng_below(prng, 12) == 0)
        flags |= DIBS__ASK_BARGE;
    if (one.tell)
        flags |= DIBS__ASK_TELL;
    ask.flags = flags;
    rc = dibs__grant_acquire(&w->roll, &ask, "bell", &w->ans, &w->err);
    if (rc != model_ask(m, &one, flags))
        return false;
    mine = list_find(&m->holders, owner);
    if (rc == DIBS_OK)
        return w->ans.fence == mine->fence && w->ans.claim == mine->claim &&
               w->ans.left_ms == (mine->until_us - m->now_us) / 1000;
    mine = list_find(&m->queue, owner);
    if (rc == DIBS_BUSY && mine)
        return w->ans.queued && w->ans.fence == m->watermark &&
               w->ans.ahead == (uint32_t)(mine - m->queue.all);
    return !w->ans.queued;
}

/* Mostly a new one, else the last once more. */
static void random_conversion(model *m, dibsx_prng *prng, const char *owner)
{
    const person *mine = list_find(&m->holders, owner);
    uint64_t fence = mine ? mine->fence : 1;

    if (m->turn.owner && dibsx_prng_below(prng, 4) == 0)
        return;
    snprintf(m->from, sizeof(m->from), "%s", owner);
    snprintf(m->to, sizeof(m->to), "o%u",
             (unsigned)dibsx_prng_below(prng, OWNERS) % 100);
    m->turn =
        (dibs__conversion){.name = "n",
                           .owner = m->from,
                           .fence = fence + (dibsx_prng_below(prng, 9) == 0),
                           .mode = m->capacity
                                       ? DIBS__PERMITS
                                       : (dibs__mode)dibsx_prng_below(prng, 2),
                           .to_owner =
                               dibsx_prng_below(prng, 2) ? m->from : m->to,
                           .ttl_ms = 1 + (int64_t)dibsx_prng_below(prng, 6000)};
    if (dibsx_prng_below(prng, 20) == 0)
        m->turn.mode = (dibs__mode)dibsx_prng_below(prng, 3);
}

/* A turn that fails is not written back, and neither does the model change. */
static bool
step_convert(world *w, model *m, dibsx_prng *prng, const char *owner)
{
    const person *mine;
    dibs_status rc;

    random_conversion(m, prng, owner);
    rc = dibs__grant_convert(&w->roll, &m->turn, &w->ans, &w->err);
    if (rc < DIBS_UNAVAIL)
        world_commit(w);
    else
        w->notified[0] = '\0';
    if (rc != model_convert(m))
        return false;
    mine = list_find(&m->holders, m->turn.to_owner);
    if (rc != DIBS_OK)
        return w->ans.fence == 0 && w->ans.left_ms == 0;
    return w->ans.fence == mine->fence && w->ans.claim == mine->claim &&
           w->ans.left_ms == (mine->until_us - m->now_us) / 1000;
}

static bool step_yield(world *w, model *m, uint64_t fence)
{
    uint32_t asked, wanted;

    return world_yield(w, fence, &asked) == model_yield(m, fence, &wanted) &&
           asked == wanted;
}

/* One step on both; false when their answers differ. */
static bool random_step(world *w, model *m, dibsx_prng *prng, const char *owner)
{
    const person *mine = list_find(&m->holders, owner);
    uint64_t fence = mine ? mine->fence : 1;
    dibs__renewal item = {.owner = owner,
                          .fence = fence + (dibsx_prng_below(prng, 9) == 0),
                          .ttl_ms = 1 + (int64_t)dibsx_prng_below(prng, 6000)};
    dibs__leave leave = {.name = "n",
                         .owner = owner,
                         .unanswered = dibsx_prng_below(prng, 9) == 0};
    uint32_t broken;
    bool same;

    switch (dibsx_prng_below(prng, 20)) {
    case 0:
        same = dibs__grant_revoke(&w->roll, fence, &broken, NULL) ==
               model_take(m, fence);
        break;
    case 1:
        if (dibsx_prng_below(prng, 4) == 0)
            leave.keep_ms = 1 + (int64_t)dibsx_prng_below(prng, 4000);
        /* fall through */
    case 2:
    case 3:
        same = dibs__grant_release(&w->roll, &leave, NULL) ==
               model_release(m, &leave);
        break;
    case 4:
    case 5:
    case 6:
        dibs__grant_renew(&w->roll, &item, "bell");
        same = item.rc == model_renew(m, &item);
        break;
    case 7:
        return step_yield(w, m, dibsx_prng_below(prng, 2) ? fence : 0);
    case 8:
    case 9:
    case 10:
        return step_convert(w, m, prng, owner);
    default:
        same = random_ask(w, m, prng, owner);
    }
    world_commit(w);
    return same;
}

/* Whether both have notified the same, in whatever order. */
static bool same_notices(const world *w, const model *m)
{
    const char *at = w->notified;
    char one[8];

    for (size_t len; *at; at += len) {
        len = strcspn(at, " ") + 1;
        snprintf(one, sizeof(one), "%.*s", (int)len, at);
        if (!strstr(m->notified, one))
            return false;
    }
    return strlen(w->notified) == strlen(m->notified);
}

static void random_time(world *w, model *m, dibsx_prng *prng)
{
    if (dibsx_prng_below(prng, 2))
        world_pass(w, (int64_t)dibsx_prng_below(prng, 800));
    if (dibsx_prng_below(prng, 50) == 0)
        w->wall_us -= 60000000;
    m->now_us = w->now_us;
    m->wall_us = w->wall_us;
}

static void test_model(void **state)
{
    (void)state;
    for (uint64_t seed = seed_of_many(); seed < seed_of_many() + SEEDS;
         seed++) {
        dibsx_prng prng = {.state = seed};
        model m = {.capacity = seed % 2 ? 0 : 4};
        world w;

        world_init(&w);
        for (int i = 0; i < STEPS; i++) {
            char owner[4];
            bool same;

            snprintf(owner, sizeof(owner), "o%u",
                     (unsigned)dibsx_prng_below(&prng, OWNERS) % 100);
            random_time(&w, &m, &prng);
            model_begin(&m);
            world_load(&w);
            same = random_step(&w, &m, &prng, owner);
            if (!same || w.watermark != m.watermark || !same_notices(&w, &m) ||
                strcmp(world_show(&w), model_show(&m)) != 0)
                fail_msg("seed %llu, step %d, %s: \"%s\" not \"%s\", notified "
                         "\"%s\" not \"%s\"",
                         (unsigned long long)seed, i, owner, w.shown,
                         model_show(&m), w.notified, m.notified);
        }
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
