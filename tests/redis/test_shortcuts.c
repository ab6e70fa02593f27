/* test_shortcuts.c - the short ways of acquire.lua and release.lua do what the whole
 * rule does.
 *
 * Two names get the same random requests: one in the fewest words, so that the short
 * ways are taken, the other with all words, so that grant.lua does it. The answers and
 * the keys must be the same, but for fences and moments. In some epochs readers and
 * priorities are among them. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "base/rand.h"
#include "seed.h"
#include "store/redis/script.h"
#include <stdlib.h>

enum { OWNERS = 8, EPOCH = 50, STEPS = 36 * EPOCH, TEXT = 4096 };

/* The two sides do the same a moment apart: their times differ by no more, if the epoch is
 * not older than that. */
enum { APART_MS = 1000 };

/* All that is alive of a name: the holders; the parties, without the number and the time
 * of arrival; the queue; whether its keys outlive them. Then, on a line of their own, the
 * times to live of the four keys, without those of what nobody alive needs. */
static const char dump[] =
    "local time = redis.call('TIME') "
    "local now = time[1] * 1000000 + time[2] "
    "local alive, holders, parties, line, ms = {}, {}, {}, {}, {} "
    "local at, last, out = {}, 0, {} "
    "local found = redis.call('ZRANGEBYSCORE', KEYS[4], string.format('%.0f', "
    "now), '+inf', 'WITHSCORES') "
    "for i = 1, #found, 2 do "
    "alive[found[i]], last = true, math.max(last, tonumber(found[i + 1])) end "
    "local flat = redis.call('HGETALL', KEYS[1]) "
    "for i = 1, #flat, 2 do at[flat[i]] = flat[i + 1] end "
    "if at.owner then "
    "holders[1] = table.concat({at.owner, at.ttl or '30000', at.who, at.bell "
    "or '-', at.priority or '0', at.mode or 'exclusive'}, ' ') end "
    "for field, value in pairs(at) do if #field == 32 then "
    "holders[#holders + 1] = table.concat({field, at['who:' .. field], "
    "at.mode, (value:gsub('^%d+ %d+ ', ''))}, ' ') end end "
    "for owner in pairs(alive) do "
    "local record = redis.call('HGET', KEYS[2], owner) or 'missing' "
    "parties[#parties + 1] = owner .. '=' .. "
    "record:gsub('^w %d+ (%S+ %S+ %S+ %S+ %S+) %d+', 'w %1') end "
    "for _, member in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do "
    "if alive[member:sub(17)] then line[#line + 1] = member:sub(17) end end "
    "local needed = {#holders > 0, #parties > 0, #line > 0, #parties > 0} "
    "for i = 1, 4 do "
    "ms[i] = needed[i] and redis.call('PTTL', KEYS[i]) or -2 "
    "if ms[i] == -1 then out[4] = 'never expires' end "
    "if i > 1 and needed[i] and now + (ms[i] + 2) * 1000 < last then "
    "out[4] = 'expires early' end end "
    "table.sort(holders) "
    "table.sort(parties) "
    "return table.concat({table.concat(holders, ','), table.concat(parties, "
    "','), table.concat(line, ','), out[4] or ''}, '|') .. '\\n' .. "
    "table.concat(ms, ' ')";

/* Which of the times are compared. */
enum { LOCK_MS, PARTY_MS, QUEUE_MS, PLACE_MS, LEFT_MS, TIMES };

/* What one side answered, and what is kept of its name then. */
typedef struct look {
    char answer[TEXT];
    char kept[TEXT];
    long ms[TIMES];
} look;

typedef struct name_keys {
    const char *lock, *party, *queue, *place;
} name_keys;

static const name_keys names[] = {
    {"short", "{short}~party", "{short}~queue", "{short}~place"},
    {"whole", "{whole}~party", "{whole}~queue", "{whole}~place"},
};

typedef struct pair {
    stage *sg;
    char acquire[48], release[48]; /* the scripts */
    char holder[33];
    bool aged;           /* the keys, and nobody has joined the queue since */
    dibsx_nsec began_at; /* the epoch */
} pair;

typedef struct request {
    char owner[33];
    char who[16];
    const char *ttl, *bell, *flags;
    const char *mode, *priority; /* NULL: a plain ask */
} request;

/* One that is not plain has all words on both sides. */
static char *run_acquire(const pair *pr, size_t i, const request *rq)
{
    const name_keys *at = &names[i];
    const char *mode = rq->mode ? rq->mode : i == 0 ? NULL : "0";

    return server_ask(&pr->sg->w->sv, "EVALSHA", pr->acquire, "5", at->lock,
                      at->party, at->queue, at->place, "dibs:fence", rq->owner,
                      rq->ttl, rq->who, rq->bell, rq->flags, mode, "1", "0",
                      rq->priority ? rq->priority : "0", NULL);
}

static char *run_release(const pair *pr, size_t i, const request *rq)
{
    const name_keys *at = &names[i];
    const char *unanswered = i == 0 ? NULL : "0";

    return server_ask(&pr->sg->w->sv, "EVALSHA", pr->release, "5", at->lock,
                      at->party, at->queue, at->place, "dibs:fence", rq->owner,
                      unanswered, "0", NULL);
}

static char *run_tombstone(const pair *pr, size_t i, const request *rq)
{
    const name_keys *at = &names[i];

    return server_ask(&pr->sg->w->sv, "EVALSHA", pr->release, "5", at->lock,
                      at->party, at->queue, at->place, "dibs:fence", rq->owner,
                      "1", "0", NULL);
}

/* The place of the owner has run out, or the lease of the holder. */
static char *end_place(const pair *pr, size_t i, const request *rq)
{
    return server_ask(&pr->sg->w->sv, "ZADD", names[i].place, "XX", "1",
                      rq->owner, NULL);
}

static char *end_lease(const pair *pr, size_t i, const request *rq)
{
    (void)rq;
    return server_ask(&pr->sg->w->sv, "DEL", names[i].lock, NULL);
}

/* The keys of the parties are about to expire, before the places of those that have just
 * asked: as if each of them had asked long ago. */
static char *age_keys(const pair *pr, size_t i, const request *rq)
{
    static const char age[] = "for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], "
                              "'2000') end return 'aged'";

    (void)rq;
    return server_ask(&pr->sg->w->sv, "EVAL", age, "3", names[i].party,
                      names[i].queue, names[i].place, NULL);
}

/* Status, whether it is queued or a claim, how many are ahead, and the holder. A free
 * name that was granted in few words is answered with the fence alone. A refusal has the
 * time that is left. */
static void read_answer(char *reply, look *out)
{
    const char *lines[6] = {"", "", "", "0", "", ""};
    size_t count = 0;
    char *rest = reply;

    assert_non_null(reply);
    while (count < 6 && rest)
        lines[count++] = strsep(&rest, "\n");
    if (count == 1 && strlen(lines[0]) == 16)
        lines[0] = "0";
    snprintf(out->answer, TEXT, "%s %s %s %s", lines[0], lines[3], lines[4],
             lines[5]);
    out->ms[LEFT_MS] =
        strcmp(lines[0], "1") == 0 ? strtol(lines[2], NULL, 10) : 0;
    free(reply);
}

static void look_at(const pair *pr, size_t i, look *out)
{
    const name_keys *at = &names[i];
    char *reply = server_ask(&pr->sg->w->sv, "EVAL", dump, "4", at->lock,
                             at->party, at->queue, at->place, NULL);
    char *times;

    assert_non_null(reply);
    times = strchr(reply, '\n');
    assert_non_null(times);
    *times++ = '\0';
    for (size_t k = LOCK_MS; k <= PLACE_MS; k++)
        out->ms[k] = strtol(times, &times, 10);
    snprintf(out->kept, TEXT, "%s", reply);
    free(reply);
}

typedef char *deed(const pair *pr, size_t i, const request *rq);

/* In some epochs nothing ends suddenly. There the keys of parties last as long on both sides.
 * Elsewhere the whole rule drops dead parties sooner, and with the last of them the keys. */
static bool is_calm(int step)
{
    return step / EPOCH % 3 == 0;
}

/* One that differs in `looks`, or TIMES. */
static size_t find_apart(const look looks[2], int step)
{
    for (size_t k = 0; k < TIMES; k++)
        if (labs(looks[0].ms[k] - looks[1].ms[k]) > APART_MS &&
            (k == LOCK_MS || k == LEFT_MS || is_calm(step)))
            return k;
    return TIMES;
}

static void print_looks(const look looks[2], const request *rq, int step)
{
    static const char *const sides[] = {"short", "whole"};

    print_message("step %d, owner %s\n", step, rq->owner);
    for (size_t i = 0; i < 2; i++)
        print_message("  %s: %s\n         %s\n"
                      "         lock %ld, party %ld, queue %ld, place %ld, "
                      "left %ld ms\n",
                      sides[i], looks[i].answer, looks[i].kept,
                      looks[i].ms[LOCK_MS], looks[i].ms[PARTY_MS],
                      looks[i].ms[QUEUE_MS], looks[i].ms[PLACE_MS],
                      looks[i].ms[LEFT_MS]);
}

static void do_both(pair *pr, deed *what, const request *rq, int step)
{
    look looks[2];
    bool same;

    for (size_t i = 0; i < 2; i++) {
        read_answer(what(pr, i, rq), &looks[i]);
        look_at(pr, i, &looks[i]);
    }
    same = strcmp(looks[0].answer, looks[1].answer) == 0 &&
           strcmp(looks[0].kept, looks[1].kept) == 0 &&
           find_apart(looks, step) == TIMES;
    /* Places and claims last three seconds, on both sides a moment apart. */
    if (!same) {
        IN_TIME(world_ms_since(pr->began_at) < APART_MS);
        print_looks(looks, rq, step);
    }
    assert_string_equal(looks[0].answer, looks[1].answer);
    assert_string_equal(looks[0].kept, looks[1].kept);
    assert_int_equal(find_apart(looks, step), TIMES);
    pr->aged = what == age_keys ||
               (pr->aged && strncmp(looks[0].answer, "1 1", 3) != 0);
    if (!pr->aged)
        assert_null(strstr(looks[0].kept, "expires"));
    snprintf(pr->holder, sizeof(pr->holder), "%.32s", looks[0].kept);
}

static void name_script(dibs__script script, char out[48])
{
    dibs__words words;

    dibs__script_begin(&words, script, "5");
    snprintf(out, 48, "%.*s", (int)words.len[1], words.word[1]);
}

/* Brings the scripts to the server. */
static void load_scripts(stage *sg)
{
    dibs__store *st = sg->st[0];
    const dibs__ask ask = {.name = "other",
                           .owner = "ffffffffffffffffffffffffffffffff",
                           .mode = DIBS__EXCLUSIVE,
                           .ttl_ms = 20000,
                           .who = "host:1 label"};
    const dibs__leave leave = {.name = ask.name, .owner = ask.owner};
    dibs__answer ans;

    CHECK(DIBS_OK, st->ops->lease->acquire(st, &ask, stage_soon(), &ans, err));
    CHECK(DIBS_OK, st->ops->lease->release(st, &leave, stage_soon(), err));
}

/* Most requests queue and release, so that the queue is seldom empty; sudden ends and
 * tombstones are rare. */
static deed *choose_deed(dibsx_prng *prng, int step)
{
    uint64_t number = dibsx_prng_below(prng, is_calm(step) ? 19 : 24);

    if (number < 10)
        return run_acquire;
    if (number < 18)
        return run_release;
    if (is_calm(step))
        return age_keys;
    if (number < 22)
        return end_place;
    return number == 22 ? run_tombstone : end_lease;
}

/* Now and then it asks as a reader, or with a priority. */
static void choose_kind(dibsx_prng *prng, request *rq)
{
    static const char *const priorities[] = {"0", "7", "7", "-7"};

    if (dibsx_prng_below(prng, 5) > 1)
        return;
    rq->mode = dibsx_prng_below(prng, 3) ? "0" : "1";
    rq->priority = priorities[dibsx_prng_below(prng, 4)];
}

/* Half of the releases are the holder's. In every second epoch all bells occur, and an
 * owner may come with another one than before. */
static request
choose_request(const pair *pr, dibsx_prng *prng, int step, deed *what)
{
    static const char *const bells[] = {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb",
                                        "-", "cccccccccccccccc+"};
    static const char *const ttls[] = {"20000", "30000", "12000"};
    uint64_t who = dibsx_prng_below(prng, OWNERS);
    uint64_t other = dibsx_prng_below(prng, 16) ? 0 : 1;
    request rq = {.flags = dibsx_prng_below(prng, 8) ? "q" : "-",
                  .ttl = ttls[who % 3]};

    snprintf(rq.owner, sizeof(rq.owner), "%032llx", (unsigned long long)who);
    snprintf(rq.who, sizeof(rq.who), "host:%llu label",
             (unsigned long long)who);
    rq.bell = bells[step / EPOCH % 2 ? (who + other) % 4 : who % 2];
    if (step / EPOCH % 4 > 1)
        choose_kind(prng, &rq);
    if (what == run_release && pr->holder[0] && pr->holder[0] != '|' &&
        dibsx_prng_below(prng, 2))
        memcpy(rq.owner, pr->holder, sizeof(rq.owner));
    return rq;
}

/* Nothing is left of the epoch before, tombstones above all. */
static void begin_epoch(pair *pr)
{
    for (size_t i = 0; i < 2; i++)
        assert_true(server_tell(&pr->sg->w->sv, "DEL", names[i].lock,
                                names[i].party, names[i].queue, names[i].place,
                                NULL));
    pr->holder[0] = '\0';
    pr->aged = false;
    pr->began_at = dibsx_now();
}

static void find_scripts(pair *pr)
{
    load_scripts(pr->sg);
    name_script(DIBS__SCRIPT_acquire, pr->acquire);
    name_script(DIBS__SCRIPT_release, pr->release);
}

static void short_ways_do_what_the_rule_does(void **state)
{
    pair pr = {.sg = *state};
    dibsx_prng prng = {seed_of_run()};

    find_scripts(&pr);
    for (int step = 0; step < STEPS; step++) {
        deed *what = choose_deed(&prng, step);
        request rq;

        if (step % EPOCH == 0)
            begin_epoch(&pr);
        rq = choose_request(&pr, &prng, step, what);
        do_both(&pr, what, &rq, step);
    }
}

/* Owner `number` asks for the name of the short ways. Without a mode it is a plain ask. */
static request
ask_as(pair *pr, unsigned number, const char *mode, const char *priority)
{
    request rq = {.who = "host:1 label",
                  .ttl = "20000",
                  .bell = "aaaaaaaaaaaaaaaa",
                  .flags = "q",
                  .mode = mode,
                  .priority = priority};

    snprintf(rq.owner, sizeof(rq.owner), "%032x", number);
    free(run_acquire(pr, 0, &rq));
    return rq;
}

/* The watermark is ahead of the clock: the clock was set back. */
static void fences_rise_when_the_clock_was_set_back(void **state)
{
    stage *sg = *state;
    pair pr = {.sg = sg};
    request rq[3];

    find_scripts(&pr);
    assert_true(
        server_tell(&sg->w->sv, "SET", "dibs:fence", "8000000000000000", NULL));
    for (unsigned i = 0; i < 3; i++)
        rq[i] = ask_as(&pr, i, NULL, NULL);
    ASSERT_REPLY("8000000000000001", "HGET", "short", "fence");
    free(run_release(&pr, 0, &rq[0]));
    ASSERT_REPLY("8000000000000002", "HGET", "short", "fence");
    free(run_release(&pr, 0, &rq[1]));
    ASSERT_REPLY("8000000000000003", "HGET", "short", "fence");
    ASSERT_REPLY("8000000000000003", "GET", "dibs:fence");
    ASSERT_REPLY("00000000000000000000000000000002 claim", "HGET", "short",
                 "owner");
}

static void an_heir_has_a_priority_of_its_own(void **state)
{
    stage *sg = *state;
    pair pr = {.sg = sg};
    request holder;

    find_scripts(&pr);
    holder = ask_as(&pr, 0, "0", "7");
    ASSERT_REPLY("7", "HGET", "short", "priority");
    ask_as(&pr, 1, NULL, NULL);
    free(run_release(&pr, 0, &holder));
    ASSERT_REPLY("00000000000000000000000000000001 claim", "HGET", "short",
                 "owner");
    ASSERT_REPLY("0", "HEXISTS", "short", "priority");
}

static void a_reader_that_waits_is_served_as_one(void **state)
{
    stage *sg = *state;
    pair pr = {.sg = sg};
    request holder;

    find_scripts(&pr);
    holder = ask_as(&pr, 0, NULL, NULL);
    ask_as(&pr, 1, "1", "0");
    free(run_release(&pr, 0, &holder));
    ASSERT_REPLY("shared", "HGET", "short", "mode");
    ASSERT_REPLY("0", "HEXISTS", "short", "owner");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(short_ways_do_what_the_rule_does),
        STAGE_TEST(fences_rise_when_the_clock_was_set_back),
        STAGE_TEST(an_heir_has_a_priority_of_its_own),
        STAGE_TEST(a_reader_that_waits_is_served_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
