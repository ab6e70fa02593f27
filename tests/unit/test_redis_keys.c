/* test_redis_keys.c - the names of keys: found by people, in one hash slot, of
 * one lock only, and read back. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/rand.h"
#include "base/sha1.h"
#include "store/redis/keys.h"
#include "store/redis/wire/queue_keys.h"
#include "store/redis/wire/roster_keys.h"
#include <stdlib.h>
#include <string.h>

enum { LOCK, PARTY, QUEUE, PLACE };

/* The part of a key that decides on its slot, as Redis Cluster has it. */
static void hashed_part(const char *key, char out[DIBS__KEY_MAX])
{
    const char *open = strchr(key, '{');
    const char *close = open ? strchr(open, '}') : NULL;
    size_t len = strlen(key);

    if (close && close > open + 1) {
        key = open + 1;
        len = (size_t)(close - key);
    }
    memcpy(out, key, len);
    out[len] = '\0';
}

static void check_name(const char *name)
{
    char slot[DIBS__KEY_MAX], other[DIBS__KEY_MAX], back[DIBS_NAME_MAX + 1];
    dibs__keys keys;

    dibs__keys_of(name, &keys);
    hashed_part(keys.key[LOCK], slot);
    for (size_t i = 0; i < DIBS__KEYS; i++) {
        assert_int_equal(strlen(keys.key[i]), keys.len[i]);
        hashed_part(keys.key[i], other);
        assert_string_equal(other, slot);
    }
    assert_true(dibs__key_name(keys.key[LOCK], keys.len[LOCK], back));
    assert_string_equal(back, name);
    assert_true(dibs__key_name(keys.key[QUEUE], keys.len[QUEUE], back));
    assert_string_equal(back, name);
    assert_false(dibs__key_name(keys.key[PARTY], keys.len[PARTY], back));
    assert_false(dibs__key_name(keys.key[PLACE], keys.len[PLACE], back));
}

typedef struct layout {
    const char *name;
    const char *lock;
    const char *queue;
} layout;

static void names_have_these_keys(void **state)
{
    static const layout all[] = {
        {"workflow:retry-scheduler", "workflow:retry-scheduler",
         "{workflow:retry-scheduler}~queue"},
        {"workflow:{run}:bookmark", "workflow:{run}:bookmark",
         "workflow:{run}:bookmark~queue"},
        {"a{b", "a{b", "{a{b}~queue"},
        {"a}b", "dibs:lock:a%7Db", "{dibs:lock:a%7Db}~queue"},
        {"{}x", "dibs:lock:%7B%7Dx", "{dibs:lock:%7B%7Dx}~queue"},
        {"{x}", "dibs:lock:%7Bx%7D", "{dibs:lock:%7Bx%7D}~queue"},
        {"dibs:fence", "dibs:lock:dibs:fence", "{dibs:lock:dibs:fence}~queue"},
        {"a~queue", "dibs:lock:a%7Equeue", "{dibs:lock:a%7Equeue}~queue"},
        {"100%", "100%", "{100%}~queue"},
    };
    dibs__keys keys;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        dibs__keys_of(all[i].name, &keys);
        assert_string_equal(keys.key[LOCK], all[i].lock);
        assert_string_equal(keys.key[QUEUE], all[i].queue);
        check_name(all[i].name);
    }
}

/* A name of `len` bytes from a few that matter. */
static void draw(dibsx_prng *prng, char *out, size_t len)
{
    static const char *const bits[] = {"{",      "}",     "a",   "%",
                                       "~",      ":",     "b",   "~queue",
                                       "~party", "dibs:", "{a}", "dibs:lock:"};

    out[0] = '\0';
    while (strlen(out) < len) {
        const char *bit = bits[dibsx_prng_below(prng, COUNT_OF(bits))];

        if (strlen(out) + strlen(bit) > DIBS_NAME_MAX)
            return;
        memcpy(out + strlen(out), bit, strlen(bit) + 1);
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum { NAMES = 3000 };

typedef struct crowd {
    char names[NAMES][DIBS_NAME_MAX + 1];
    const char *name[NAMES];
    dibs__keys keys[NAMES];
    const char *key[NAMES * DIBS__KEYS];
} crowd;

/* No two names share any key, whatever they look like. */
static void no_two_names_share_a_key(void **state)
{
    dibsx_prng prng = {7};
    crowd *all = calloc(1, sizeof(*all));
    size_t count = 0;

    (void)state;
    assert_non_null(all);
    for (size_t i = 0; i < NAMES; i++) {
        draw(&prng, all->names[i], 1 + dibsx_prng_below(&prng, 12));
        all->name[i] = all->names[i];
    }
    qsort(all->name, NAMES, sizeof(all->name[0]), compare);
    for (size_t i = 0; i < NAMES; i++) {
        if (i > 0 && strcmp(all->name[i], all->name[i - 1]) == 0)
            continue;
        check_name(all->name[i]);
        dibs__keys_of(all->name[i], &all->keys[i]);
        for (size_t k = 0; k < DIBS__KEYS; k++)
            all->key[count++] = all->keys[i].key[k];
    }
    assert_true(count > NAMES);
    qsort(all->key, count, sizeof(all->key[0]), compare);
    for (size_t i = 1; i < count; i++)
        assert_string_not_equal(all->key[i - 1], all->key[i]);
    free(all);
}

static void the_longest_names_fit(void **state)
{
    static const char fill[] = {'n', '}', '%', '{', '~'};
    char name[DIBS_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fill); i++) {
        memset(name, fill[i], DIBS_NAME_MAX);
        name[DIBS_NAME_MAX] = '\0';
        check_name(name);
        name[0] = '}';
        check_name(name);
    }
}

static void other_keys_are_no_locks(void **state)
{
    static const char *const keys[] = {"",
                                       "dibs:fence",
                                       "dibs:value:x",
                                       "dibs:lock:x",
                                       "dibs:lock:%7",
                                       "dibs:lock:%zz",
                                       "dibs:lock:",
                                       "~queue",
                                       "{}~queue",
                                       "x~queue",
                                       "x~party",
                                       "{x}~place"};
    char name[DIBS_NAME_MAX + 1], longest[DIBS__KEY_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_false(dibs__key_name(keys[i], strlen(keys[i]), name));
    memset(longest, 'x', sizeof(longest));
    for (size_t len = DIBS_NAME_MAX + 1; len <= sizeof(longest); len++)
        assert_false(dibs__key_name(longest, len, name));
    assert_false(dibs__key_name("a\0b", 3, name));
}

/* Every key of a name begins as one of the four texts say. */
static void beginnings_cover_the_keys(void **state)
{
    static const char *const names[] = {"app:x", "app:}x", "app:{t}x",
                                        "app:x~queue"};
    char texts[DIBS__KEY_BEGINS][DIBS__KEY_MAX];
    dibs__keys keys;

    (void)state;
    dibs__keys_begin("app:", texts);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        dibs__keys_of(names[i], &keys);
        for (size_t k = 0; k < DIBS__KEYS; k++) {
            bool covered = false;

            for (size_t t = 0; t < DIBS__KEY_BEGINS; t++)
                covered |=
                    strncmp(keys.key[k], texts[t], strlen(texts[t])) == 0;
            assert_true(covered);
        }
    }
}

static void values_have_keys_of_their_own(void **state)
{
    char key[DIBS__KEY_MAX];

    (void)state;
    assert_int_equal(dibs__key_value("x", key), strlen("dibs:value:x"));
    assert_string_equal(key, "dibs:value:x");
}

/* The examples of FIPS 180, and lengths around a block. */
/* Each has keys of its own, in one slot, and is read back from the first. */
static void rosters_have_keys_of_their_own(void **state)
{
    static const char *const names[] = {
        "a",        "{a}",    "a}",       "{a",        "a{b}", "a{b}~till",
        "a{b}~new", "a~till", "{a}~till", "{a}%~till", "a%7D", "a%",
        "{a}%",     "a{}",    "a{b}%",    "{a%7D}%",   "%7Ba", "{dibs:x}",
    };
    enum { ROSTERS = sizeof(names) / sizeof(names[0]) };
    static char keys[ROSTERS][DIBS__ROSTER_KEYS][DIBS__KEY_MAX];
    char slot[DIBS__KEY_MAX], other[DIBS__KEY_MAX], back[DIBS_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ROSTERS; i++) {
        dibs__keys_of_roster(names[i], keys[i]);
        assert_true(dibs__key_roster_name(keys[i][0], back));
        assert_string_equal(back, names[i]);
        hashed_part(keys[i][0], slot);
        for (size_t k = 0; k < DIBS__ROSTER_KEYS; k++) {
            hashed_part(keys[i][k], other);
            assert_string_equal(other, slot);
            for (size_t j = 0; j < i * DIBS__ROSTER_KEYS; j++)
                assert_string_not_equal(
                    keys[i][k],
                    keys[j / DIBS__ROSTER_KEYS][j % DIBS__ROSTER_KEYS]);
        }
    }
    assert_string_equal(keys[0][0], "dibs:roster:{a}");
    assert_string_equal(keys[0][1], "dibs:roster:{a}~till");
    assert_string_equal(keys[4][2], "dibs:roster:a{b}~new");
    assert_false(dibs__key_roster_name("dibs:roster:a", back));
    assert_false(dibs__key_roster_name("dibs:roster:", back));
    assert_false(dibs__key_roster_name("dibs:roster:{", back));
    assert_false(dibs__key_roster_name("dibs:value:{a}", back));
}

/* A meter is in the slot of its value. */
static void meters_are_with_their_values(void **state)
{
    static const char *const names[] = {"a",  "a{b}c", "{a}", "{a}b",
                                        "a}", "a{}b",  "{",   "{dibs:value:a}"};
    enum { METERS = sizeof(names) / sizeof(names[0]) };
    char keys[METERS][DIBS__KEY_MAX], value[DIBS__KEY_MAX];

    (void)state;
    for (size_t i = 0; i < METERS; i++) {
        size_t len = dibs__key_meter(names[i], keys[i]);
        size_t value_len = dibs__key_value(names[i], value);

        assert_int_equal(len, strlen(keys[i]));
        assert_int_equal(dibs__slot_of(keys[i], len),
                         dibs__slot_of(value, value_len));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(keys[i], keys[k]);
    }
    assert_string_equal(keys[0], "dibs:meter:{dibs:value:a}");
    assert_string_equal(keys[1], "dibs:meter:a{b}c");
}

static void sha1_of_known_texts(void **state)
{
    char sum[DIBSX_SHA1_TEXT], text[64];

    (void)state;
    dibsx_sha1("", 0, sum);
    assert_string_equal(sum, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    dibsx_sha1("abc", 3, sum);
    assert_string_equal(sum, "a9993e364706816aba3e25717850c26c9cd0d89d");
    dibsx_sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
               sum);
    assert_string_equal(sum, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    memset(text, 'a', sizeof(text));
    dibsx_sha1(text, 55, sum);
    assert_string_equal(sum, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
    dibsx_sha1(text, 64, sum);
    assert_string_equal(sum, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
}

/* All keys of a queue are in one slot, and of no other queue. */
static void queues_have_keys_of_their_own(void **state)
{
    static const char *const names[] = {"a",     "a{b}",      "{a}",
                                        "{a}b",  "a}b{c}",    "{}x",
                                        "a}",    "a{",        "a{b",
                                        "a~out", "{a}~out",   "x{a}~out",
                                        "a%7B",  "x{a}~meta", "{a}%"};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    static dibs__queue_names keys[COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        int slot;

        dibs__keys_of_queue(names[i], &keys[i]);
        slot = dibs__slot_of(keys[i].key[0], strlen(keys[i].key[0]));
        for (size_t k = 0; k < DIBS__QUEUE_KEYS; k++) {
            assert_int_equal(dibs__slot_of(keys[i].key[k],
                                           strlen(keys[i].key[k])),
                             slot);
            for (size_t j = 0; j < i; j++)
                for (size_t m = 0; m < DIBS__QUEUE_KEYS; m++)
                    assert_string_not_equal(keys[i].key[k], keys[j].key[m]);
        }
    }
    assert_string_equal(keys[0].key[DIBS__QUEUE_LIST], "dibs:queue:{a}");
    assert_string_equal(keys[0].key[DIBS__QUEUE_META], "dibs:queue:{a}~meta");
    assert_string_equal(keys[1].key[DIBS__QUEUE_WAS], "dibs:queue:a{b}~was");
    assert_string_equal(keys[2].key[DIBS__QUEUE_OUT],
                        "dibs:queue:{%7Ba%7D}%~out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_these_keys),
        cmocka_unit_test(no_two_names_share_a_key),
        cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(other_keys_are_no_locks),
        cmocka_unit_test(beginnings_cover_the_keys),
        cmocka_unit_test(values_have_keys_of_their_own),
        cmocka_unit_test(rosters_have_keys_of_their_own),
        cmocka_unit_test(queues_have_keys_of_their_own),
        cmocka_unit_test(meters_are_with_their_values),
        cmocka_unit_test(sha1_of_known_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
