/* contract_roster_twin.c - rosters: the rule has three renderings, and each does what the
 * embedded store does, whose steps are those of store/meet.c. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include "base/rand.h"

enum { TWIN_NUMBERS = 1024 };

/* A store beside the one under test that does the same, and which number of one is
 * which of the other. */
typedef struct twin {
    dibs__store *st[2];
    uint64_t numbers[2][TWIN_NUMBERS];
    size_t count;
} twin;

static size_t number_at(twin *tw, const uint64_t pair[2])
{
    for (size_t i = 0; i < tw->count; i++)
        if (tw->numbers[0][i] == pair[0] || tw->numbers[1][i] == pair[1]) {
            assert_int_equal(tw->numbers[0][i], pair[0]);
            assert_int_equal(tw->numbers[1][i], pair[1]);
            return i;
        }
    assert_true(tw->count < TWIN_NUMBERS);
    tw->numbers[0][tw->count] = pair[0];
    tw->numbers[1][tw->count] = pair[1];
    return tw->count++;
}

/* A number that both have answered, or none. */
static size_t any_number(const twin *tw, dibsx_prng *prng)
{
    size_t latest = tw->count < 8 ? tw->count : 8;

    return tw->count - latest + dibsx_prng_below(prng, latest);
}

static void do_as_twin(twin *tw, dibsx_prng *prng, const char *name,
                       char ids[3][DIBS_OWNER_SIZE], size_t mine[3])
{
    static const dibs__meet_verb verbs[] = {DIBS__SIT,      DIBS__SIT,
                                            DIBS__ARRIVE,   DIBS__ARRIVE,
                                            DIBS__ARRIVE,   DIBS__KEEP,
                                            DIBS__LEAVE,    DIBS__WITHDRAW,
                                            DIBS__WITHDRAW, DIBS__COUNT,
                                            DIBS__LOOK,     DIBS__RESET};
    size_t who = dibsx_prng_below(prng, 3);
    dibs__meet item = {.name = name, .id = ids[who]}, items[2];
    size_t after = any_number(tw, prng), fence = mine[who];
    bool strange = dibsx_prng_below(prng, 16) == 0;

    item.verb = verbs[dibsx_prng_below(prng, sizeof(verbs) / sizeof(*verbs))];
    item.flags = (uint32_t)dibsx_prng_below(prng, 2) ? DIBS__MEET_BREAK : 0;
    item.flags |= (uint32_t)dibsx_prng_below(prng, 2) ? DIBS__MEET_QUIET : 0;
    item.flags |= strange ? 0 : DIBS__MEET_FIXED;
    item.need = strange ? 3 : 2;
    item.ttl_ms = 600000;
    for (size_t i = 0; i < 2; i++) {
        dibs_error err = {0};

        items[i] = item;
        items[i].fence = tw->numbers[i][fence];
        items[i].after = tw->numbers[i][after];
        assert_status(tw->st[i]->ops->roster->meet(tw->st[i], &items[i], 1,
                                                   contract_soon(), &err),
                      DIBS_OK);
    }
    if (items[0].rc != items[1].rc)
        fail_msg("verb %d: %s here, %s there", (int)item.verb,
                 dibs_status_name(items[0].rc), dibs_status_name(items[1].rc));
    assert_int_equal(items[0].here, items[1].here);
    assert_int_equal(items[0].live, items[1].live);
    assert_int_equal(items[0].parties, items[1].parties);
    after = number_at(tw, (uint64_t[]){items[0].number, items[1].number});
    if (item.verb == DIBS__SIT && items[0].rc == DIBS_OK)
        mine[who] = after;
}

/* The rule has three renderings. */
static void every_store_has_the_same_rule(void **state)
{
    contract *t = *state;
    dibsx_prng prng = {.state = (uint64_t)dibsx_now()};
    char ids[3][DIBS_OWNER_SIZE];
    size_t mine[3] = {0};
    twin tw = {.count = 1};
    dibs_error err = {0};

    print_message("seed %llu\n", (unsigned long long)prng.state);
    for (size_t i = 0; i < 3; i++)
        contract_owner(ids[i]);
    tw.st[0] = t->st[0];
    assert_status(dibs__store_open("memory:", contract_soon(), &tw.st[1], &err),
                  DIBS_OK);
    for (size_t i = 0; i < 300; i++)
        do_as_twin(&tw, &prng, t->name, ids, mine);
    dibs__store_close(tw.st[1]);
}

int contract_roster_twin(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(every_store_has_the_same_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
