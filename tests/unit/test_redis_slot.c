/* test_redis_slot.c - hash slots as the server has them, tags for each of them, and
 * commands fitted to a slot. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/rand.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/cluster/slot_keys.h"
#include "store/redis/keys.h"
#include <stdio.h>
#include <string.h>

static int slot_of(const char *key)
{
    return dibs__slot_of(key, strlen(key));
}

/* What CLUSTER KEYSLOT of a server answers. */
static void keys_have_the_slots_of_the_server(void **state)
{
    static const struct {
        const char *key;
        int slot;
    } all[] = {
        {"123456789", 12739},    {"", 0},
        {"foo", 12182},          {"bar", 5061},
        {"hello", 866},          {"somekey", 11058},
        {"foo{hash_tag}", 2515}, {"bar{hash_tag}", 2515},
        {"hash_tag", 2515},      {"{user1000}.following", 3443},
        {"user1000", 3443},      {"foo{}{bar}", 8363},
        {"foo{{bar}}zap", 4015}, {"{bar", 4015},
        {"foo{bar}{zap}", 5061}, {"foo{bar", 15278},
        {"foo}bar", 7223},       {"{}", 15257},
        {"\xc3\xa9", 10180},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (slot_of(all[i].key) != all[i].slot)
            fail_msg("%s has slot %d, not %d", all[i].key, slot_of(all[i].key),
                     all[i].slot);
    assert_int_equal(dibs__slot_of("a\0b", 3), 8383);
}

static void every_slot_has_a_tag_of_its_own(void **state)
{
    char tag[DIBS__SLOT_TAG], key[32];

    (void)state;
    for (int slot = 0; slot < DIBS__SLOTS; slot++) {
        dibs__slot_tag(slot, tag);
        assert_true(strlen(tag) > 0 &&
                    strspn(tag, "0123456789") == strlen(tag));
        assert_int_equal(slot_of(tag), slot);
        snprintf(key, sizeof(key), "dibs:fence:{%s}", tag);
        assert_int_equal(slot_of(key), slot);
    }
}

/* They are part of what is kept in a cluster, so they must never change. */
static void tags_are_the_smallest_numbers(void **state)
{
    char tag[DIBS__SLOT_TAG];

    (void)state;
    for (int number = 0; number < 1000; number++) {
        char digits[16];
        int smallest = 0;

        snprintf(digits, sizeof(digits), "%d", number);
        dibs__slot_tag(slot_of(digits), tag);
        for (; smallest < number; smallest++) {
            char other[16];

            snprintf(other, sizeof(other), "%d", smallest);
            if (slot_of(other) == slot_of(digits))
                break;
        }
        snprintf(digits, sizeof(digits), "%d", smallest);
        assert_string_equal(tag, digits);
    }
}

static void check_one_slot(const char *name)
{
    char value[DIBS__KEY_MAX];
    dibs__keys keys;
    int slot;

    dibs__keys_of(name, &keys);
    slot = dibs__slot_of(keys.key[0], keys.len[0]);
    for (size_t i = 1; i < DIBS__KEYS; i++)
        if (dibs__slot_of(keys.key[i], keys.len[i]) != slot)
            fail_msg("%s is in another slot than %s", keys.key[i], keys.key[0]);
    /* A value and a log have one key, and the fence of its slot. */
    slot = (int)dibs__key_value(name, value);
    assert_int_equal(slot, strlen(value));
    slot = (int)dibs__key_log(name, value);
    assert_int_equal(slot, strlen(value));
}

static void the_keys_of_a_name_are_in_one_slot(void **state)
{
    static const char *const names[] = {
        "plain",     "{",       "}",         "{}",   "{}{}",   "{a}",
        "a{b}c",     "a}b{c}",  "{a",        "a{",   "a}",     "}{",
        "{}a{b}",    "{{a}}",   "a{}b",      "{a}b", "{a}{b}", "dibs:x",
        "dibs:{a}b", "x~queue", "{a}~party",
    };
    dibsx_prng prng = {.state = 7};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        check_one_slot(names[i]);
    for (int i = 0; i < 20000; i++) {
        static const char letters[] = "{}{}ab~%:";
        char name[12] = {0};
        size_t len = 1 + dibsx_prng_below(&prng, sizeof(name) - 2);

        for (size_t k = 0; k < len; k++)
            name[k] = letters[dibsx_prng_below(&prng, sizeof(letters) - 1)];
        check_one_slot(name);
    }
}

static void begin(dibs__words *words, const char *key_count)
{
    words->count = 0;
    dibs__words_puts(words, "EVALSHA");
    dibs__words_puts(words, "sha");
    dibs__words_puts(words, key_count);
}

static void expect_word(const dibs__words *words, int i, const char *text)
{
    assert_true(i < words->count);
    assert_int_equal(words->len[i], strlen(text));
    assert_memory_equal(words->word[i], text, strlen(text));
}

static void a_command_gets_the_fence_of_its_slot(void **state)
{
    dibs__words words;
    dibs__slot_keys room;
    dibs_error err;
    int key_at;

    (void)state;
    begin(&words, "3");
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    dibs__words_puts(&words, "7{0}");
    dibs__words_puts(&words, "8{0}");
    dibs__words_puts(&words, "word");
    dibs__words_puts(&words, DIBS__KEY_FENCE); /* no key, so it stays */
    assert_int_equal(dibs__slot_keys_fit(&words, 3, &room, &key_at, &err),
                     DIBS_OK);
    assert_int_equal(words.count, 9);
    assert_true(key_at == 4 || key_at == 5);
    expect_word(&words, 2, "4");
    expect_word(&words, 3, "dibs:fence:{0}");
    expect_word(&words, 4, "7{0}");
    expect_word(&words, 5, "8{0}");
    expect_word(&words, 6, "dibs:none:{0}");
    expect_word(&words, 7, "word");
    expect_word(&words, 8, DIBS__KEY_FENCE);
    for (int i = 3; i < 7; i++)
        assert_int_equal(dibs__slot_of(words.word[i], words.len[i]),
                         slot_of("0"));
}

static void commands_with_one_key_or_none_stay(void **state)
{
    dibs__words words;
    dibs__slot_keys room;
    dibs_error err;
    int key_at;

    (void)state;
    begin(&words, "1");
    dibs__words_puts(&words, "a");
    dibs__words_puts(&words, "b");
    assert_int_equal(dibs__slot_keys_fit(&words, 3, &room, &key_at, &err),
                     DIBS_OK);
    assert_int_equal(words.count, 5);
    assert_int_equal(key_at, 3);
    expect_word(&words, 2, "1");
    begin(&words, "0");
    dibs__words_puts(&words, "b");
    assert_int_equal(dibs__slot_keys_fit(&words, 3, &room, &key_at, &err),
                     DIBS_OK);
    assert_int_equal(words.count, 4);
    assert_int_equal(key_at, 0);
}

static void keys_of_different_slots_do_not_go_together(void **state)
{
    dibs__words words;
    dibs__slot_keys room;
    dibs_error err;
    int key_at;

    (void)state;
    begin(&words, "3");
    dibs__words_puts(&words, DIBS__KEY_FENCE);
    dibs__words_puts(&words, "a");
    dibs__words_puts(&words, "b");
    assert_int_equal(dibs__slot_keys_fit(&words, 3, &room, &key_at, &err),
                     DIBS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "tag"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_slots_of_the_server),
        cmocka_unit_test(every_slot_has_a_tag_of_its_own),
        cmocka_unit_test(tags_are_the_smallest_numbers),
        cmocka_unit_test(the_keys_of_a_name_are_in_one_slot),
        cmocka_unit_test(a_command_gets_the_fence_of_its_slot),
        cmocka_unit_test(commands_with_one_key_or_none_stay),
        cmocka_unit_test(keys_of_different_slots_do_not_go_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
