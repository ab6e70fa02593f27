/* slot_keys.c - fits the command of a script to a cluster. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/slot_keys.h"
#include "base/fail.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_fence(const dibs__words *words, int i)
{
    const char *fence = DIBS__KEY_FENCE;

    return words->len[i] == strlen(fence) &&
           memcmp(words->word[i], fence, strlen(fence)) == 0;
}

/* The slot of all keys but the fence; -1 when they differ. */
static int common_slot(const dibs__words *words, int at, int count, int *key_at)
{
    int slot = -1;

    *key_at = 0;
    for (int i = at; i < at + count; i++) {
        int own;

        if (is_fence(words, i))
            continue;
        own = dibs__slot_of(words->word[i], words->len[i]);
        if (*key_at != 0 && own != slot)
            return -1;
        slot = own;
        *key_at = i;
    }
    return slot;
}

/* Puts a word in before word `i`. */
static void insert_word(dibs__words *words, int i, const char *word)
{
    size_t after = (size_t)(words->count - i);

    assert(words->count < DIBS__WORDS_MAX);
    memmove(&words->word[i + 1], &words->word[i], after * sizeof(*words->word));
    memmove(&words->len[i + 1], &words->len[i], after * sizeof(*words->len));
    words->word[i] = word;
    words->len[i] = strlen(word);
    words->count++;
}

dibs_status
dibs__slot_keys_fit(dibs__words *words, int at, dibs__slot_keys *room,
                    int *key_at, dibs_error *err)
{
    int count = (int)strtol(words->word[at - 1], NULL, 10);
    int slot = common_slot(words, at, count, key_at);
    char tag[DIBS__SLOT_TAG];

    if (count == 0)
        return DIBS_OK;
    if (slot < 0)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "these names are in different slots of the cluster; "
                          "give them a common {tag}");
    dibs__slot_tag(slot, tag);
    snprintf(room->fence, sizeof(room->fence), DIBS__KEY_FENCE ":{%s}", tag);
    for (int i = at; i < at + count; i++)
        if (is_fence(words, i)) {
            words->word[i] = room->fence;
            words->len[i] = strlen(room->fence);
        }
    if (count == 1)
        return DIBS_OK;
    snprintf(room->none, sizeof(room->none), DIBS__KEY_NONE ":{%s}", tag);
    insert_word(words, at + count, room->none);
    snprintf(room->key_count, sizeof(room->key_count), "%d", count + 1);
    words->word[at - 1] = room->key_count;
    words->len[at - 1] = strlen(room->key_count);
    return DIBS_OK;
}
