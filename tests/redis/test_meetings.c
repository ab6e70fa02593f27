/* test_meetings.c - meet_plain.lua does what the whole of meet.lua does.
 *
 * Two names get the same random items: those of one alone, so that the short way is
 * taken, those of the other beside a look at nothing, so that it is not. The answers and
 * the keys must be the same, but for numbers and moments. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "base/rand.h"
#include "seed.h"
#include <stdlib.h>

enum { OWNERS = 4, NEED = 3, EPOCH = 60, STEPS = 36 * EPOCH, TEXT = 2048 };

/* The two sides do the same a moment apart. */
enum { APART_MS = 1000 };

/* What is kept of a name, with the ranks of the numbers in it; then, each on a line, the
 * times that the keys and the seats have left, in ms. */
static const char dump[] =
    "local time = redis.call('TIME') "
    "local now = time[1] * 1000000 + time[2] "
    "local flat = redis.call('HGETALL', KEYS[1]) "
    "local fields, numbers, rank, out, ms = {}, {}, {}, {}, {} "
    "for i = 1, #flat, 2 do fields[#fields + 1] = flat[i] .. ' ' .. flat[i + "
    "1] "
    "for number in flat[i + 1]:gmatch('%d+') do if #number > 12 and not "
    "rank[number] then rank[number] = '' numbers[#numbers + 1] = number end "
    "end "
    "end "
    "table.sort(fields) table.sort(numbers) "
    "for i, number in ipairs(numbers) do rank[number] = '#' .. i end "
    "for i, text in ipairs(fields) do out[i] = text:gsub(' %d+', "
    "function(word) "
    "local found = rank[word:sub(2)] return found and ' ' .. found end) end "
    "for i, id in ipairs(redis.call('ZRANGEBYLEX', KEYS[3], '-', '+')) do "
    "out[#out + 1] = 'new ' .. id end "
    "for i = 1, 3 do ms[i] = redis.call('PTTL', KEYS[i]) end "
    "for i = 0, 3 do local ends = redis.call('ZSCORE', KEYS[2], "
    "('%032x'):format(i)) "
    "ms[#ms + 1] = ends and math.floor((ends - now) / 1000) or -9999 end "
    "return table.concat(out, '|') .. '\\n' .. table.concat(ms, ' ')";

enum { KEY_TIMES = 3, TIMES = KEY_TIMES + OWNERS, NUMBERS_MAX = 4 * EPOCH };

/* What each side knows of its seats, and the numbers that it has seen. */
typedef struct side {
    const char *name;
    const char *keys[3];
    uint64_t fence[OWNERS], after[OWNERS], gen;
    uint64_t numbers[NUMBERS_MAX];
    size_t count;
} side;

typedef struct look {
    dibs__meet item;
    size_t number; /* when it was seen first */
    char kept[TEXT];
    long ms[TIMES];
} look;

typedef struct deed {
    enum { MEET, END_SEAT, AGE_KEYS } kind;
    dibs__meet_verb verb;
    unsigned who;
    uint32_t flags, need;
    int64_t ttl_ms;
    bool
        older; /* an arrival after another number, a count of another generation */
} deed;

static size_t find_number(side *sd, uint64_t number)
{
    for (size_t i = 0; i < sd->count; i++)
        if (sd->numbers[i] == number)
            return i;
    assert_true(sd->count < NUMBERS_MAX);
    sd->numbers[sd->count] = number;
    return sd->count++;
}

static void note_answer(side *sd, const deed *what, const dibs__meet *item)
{
    bool over = item->rc == DIBS_OK || item->rc == DIBS_STALE ||
                item->rc == DIBS_TIMEOUT;

    if (item->verb == DIBS__SIT && item->rc == DIBS_OK &&
        sd->fence[what->who] != item->number)
        sd->fence[what->who] = sd->after[what->who] = item->number;
    else if ((item->verb == DIBS__ARRIVE || item->verb == DIBS__WITHDRAW) &&
             over)
        sd->after[what->who] = item->number;
    else if (item->verb == DIBS__COUNT || item->verb == DIBS__RESET)
        sd->gen = item->number;
}

static uint64_t choose_after(const side *sd, const deed *what)
{
    if (what->verb == DIBS__COUNT)
        return what->older ? sd->gen + 1 : what->flags ? sd->gen : 0;
    return sd->after[what->who] + what->older;
}

/* Beside a look at a name without a roster no item is alone. */
static void
run_item(const stage *sg, side *sd, const deed *what, bool alone, look *out)
{
    dibs__store *st = sg->st[2];
    char id[33];
    dibs__meet items[2] = {
        {.name = sd->name,
         .id = id,
         .verb = what->verb,
         .flags = what->verb == DIBS__COUNT ? 0 : what->flags,
         .fence = sd->fence[what->who],
         .after = choose_after(sd, what),
         .need = what->need,
         .ttl_ms = what->ttl_ms,
         .who = "host:1 label"},
        {.name = "nothing", .id = "", .verb = DIBS__LOOK, .ttl_ms = 20000},
    };

    snprintf(id, sizeof(id), "%032x", what->who);
    CHECK(DIBS_OK,
          st->ops->roster->meet(st, items, alone ? 1 : 2, stage_soon(), err));
    out->item = items[0];
    out->number = find_number(sd, items[0].number);
    note_answer(sd, what, &items[0]);
}

static void run_deed(stage *sg, side *sd, const deed *what, look *out)
{
    static const char age[] = "for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], "
                              "'30000') end return 'aged'";
    const server *sv = &sg->w->sv;
    char id[33];

    snprintf(id, sizeof(id), "%032x", what->who);
    if (what->kind == END_SEAT)
        assert_true(server_tell(sv, "ZADD", sd->keys[1], "XX", "1", id, NULL));
    else if (what->kind == AGE_KEYS)
        free(server_ask(sv, "EVAL", age, "3", sd->keys[0], sd->keys[1],
                        sd->keys[2], NULL));
    else
        run_item(sg, sd, what, strcmp(sd->name, "short") == 0, out);
}

static void look_at(stage *sg, const side *sd, look *out)
{
    char *reply = server_ask(&sg->w->sv, "EVAL", dump, "3", sd->keys[0],
                             sd->keys[1], sd->keys[2], NULL);
    char *times;

    assert_non_null(reply);
    times = strchr(reply, '\n');
    assert_non_null(times);
    *times++ = '\0';
    for (size_t i = 0; i < TIMES; i++)
        out->ms[i] = strtol(times, &times, 10);
    snprintf(out->kept, TEXT, "%s", reply);
    free(reply);
}

static bool are_same(const look looks[2])
{
    const dibs__meet *a = &looks[0].item, *b = &looks[1].item;
    bool same = a->rc == b->rc && a->here == b->here && a->live == b->live &&
                a->parties == b->parties &&
                looks[0].number == looks[1].number &&
                llabs(a->left_ms - b->left_ms) <= APART_MS &&
                strcmp(looks[0].kept, looks[1].kept) == 0;

    for (size_t i = 0; i < TIMES; i++)
        same = same && labs(looks[0].ms[i] - looks[1].ms[i]) <= APART_MS;
    return same;
}

static void print_look(const look *lk, const deed *what, int step)
{
    const dibs__meet *item = &lk->item;

    print_message(
        "step %d, deed %d, verb %d of %u: rc %d, number %zu, here %u, "
        "live %u, parties %u, left %lld ms\n  %s\n ",
        step, what->kind, what->verb, what->who, item->rc, lk->number,
        item->here, item->live, item->parties, (long long)item->left_ms,
        lk->kept);
    for (size_t i = 0; i < TIMES; i++)
        print_message(" %ld", lk->ms[i]);
    print_message("\n");
}

static void do_both(stage *sg, side sides[2], const deed *what, int step)
{
    dibsx_nsec began_at = dibsx_now();
    look looks[2] = {0};
    bool same;

    for (size_t i = 0; i < 2; i++) {
        run_deed(sg, &sides[i], what, &looks[i]);
        look_at(sg, &sides[i], &looks[i]);
        assert_true(looks[i].item.live == 0 || looks[i].kept[0] != '\0');
    }
    same = are_same(looks);
    if (!same) {
        print_look(&looks[0], what, step);
        print_look(&looks[1], what, step);
        IN_TIME(world_ms_since(began_at) < APART_MS / 2);
    }
    assert_true(same);
}

static dibs__meet_verb choose_verb(dibsx_prng *prng, bool latch)
{
    static const dibs__meet_verb common[] = {DIBS__SIT, DIBS__KEEP,
                                             DIBS__WITHDRAW, DIBS__LEAVE};
    uint64_t number = dibsx_prng_below(prng, 24);

    if (latch)
        return number < 20   ? DIBS__COUNT
               : number < 23 ? DIBS__LOOK
                             : DIBS__RESET;
    if (number < 15)
        return DIBS__ARRIVE;
    return number < 20 ? DIBS__SIT : common[number - 20];
}

/* The ttl of a party is mostly its own. Every third epoch is that of a latch. */
static deed choose_deed(dibsx_prng *prng, int step)
{
    bool latch = step / EPOCH % 3 == 2;
    uint64_t rare = dibsx_prng_below(prng, 40);
    deed what = {.who = (unsigned)dibsx_prng_below(prng, OWNERS),
                 .need = rare == 2 ? NEED + 1 : NEED,
                 .older = dibsx_prng_below(prng, 12) == 0};

    what.kind = rare > 35 ? END_SEAT : rare == 1 ? AGE_KEYS : MEET;
    what.verb = choose_verb(prng, latch);
    what.ttl_ms = what.who == 3 || rare == 3 ? 600000 : 500000;
    what.flags = latch ? (uint32_t)dibsx_prng_below(prng, 2) : DIBS__MEET_FIXED;
    if (what.verb == DIBS__WITHDRAW && dibsx_prng_below(prng, 2))
        what.flags |= DIBS__MEET_BREAK;
    if (what.verb == DIBS__ARRIVE && rare == 4)
        what.flags |= DIBS__MEET_STRICT;
    return what;
}

static void begin_epoch(const stage *sg, side sides[2])
{
    static const side fresh[2] = {
        {.name = "short",
         .keys = {"dibs:roster:{short}", "dibs:roster:{short}~till",
                  "dibs:roster:{short}~new"}},
        {.name = "whole",
         .keys = {"dibs:roster:{whole}", "dibs:roster:{whole}~till",
                  "dibs:roster:{whole}~new"}}};

    for (size_t i = 0; i < 2; i++) {
        sides[i] = fresh[i];
        assert_true(server_tell(&sg->w->sv, "DEL", sides[i].keys[0],
                                sides[i].keys[1], sides[i].keys[2], NULL));
    }
}

static long long count_calls(const stage *sg, const char *command)
{
    return server_info(&sg->w->sv, "commandstats", command);
}

static void the_short_way_does_what_the_rule_does(void **state)
{
    stage *sg = *state;
    dibsx_prng prng = {seed_of_run()};
    side sides[2];

    for (int step = 0; step < STEPS; step++) {
        deed what = choose_deed(&prng, step);

        if (step % EPOCH == 0)
            begin_epoch(sg, sides);
        do_both(sg, sides, &what, step);
    }
    /* No other way than the short one counts seats that end later. */
    assert_true(count_calls(sg, "cmdstat_zcount") > STEPS / 50);
}

/* Of all that the whole rule calls for a count, the short way leaves out a look at the
 * seats that end. */
static void a_count_takes_the_short_way(void **state)
{
    stage *sg = *state;
    const deed count = {.verb = DIBS__COUNT, .need = NEED, .ttl_ms = 600000};
    deed next = count;
    side sides[2];
    long long before;
    look found;

    begin_epoch(sg, sides);
    run_item(sg, &sides[0], &count, true, &found);
    assert_status(found.item.rc, DIBS_BUSY);
    before = count_calls(sg, "cmdstat_zrangebyscore");
    next.who = 1;
    run_item(sg, &sides[0], &next, true, &found);
    assert_status(found.item.rc, DIBS_BUSY);
    assert_int_equal(found.item.here, 2);
    assert_int_equal(count_calls(sg, "cmdstat_zrangebyscore"), before);
    next.who = 2;
    run_item(sg, &sides[0], &next, true, &found);
    assert_status(found.item.rc, DIBS_OK);
    assert_int_equal(count_calls(sg, "cmdstat_zrangebyscore"), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(the_short_way_does_what_the_rule_does),
        STAGE_TEST(a_count_takes_the_short_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
