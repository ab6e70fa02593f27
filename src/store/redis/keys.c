/* keys.c - the names of keys. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/keys.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define RESERVED "dibs:"

enum { LOCK, PARTY, QUEUE, PLACE };

static const char *const suffixes[DIBS__KEYS] = {"", "~party", "~queue",
                                                 "~place"};

static bool begins_with(const char *text, const char *begins)
{
    return strncmp(text, begins, strlen(begins)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* Whether a part of the name decides on its slot: between the first "{" and the
 * first "}" after it, when that is not empty. */
static bool has_tag(const char *name)
{
    const char *open = strchr(name, '{');
    const char *close = open ? strchr(open, '}') : NULL;

    return close && close > open + 1;
}

static bool must_escape(const char *name)
{
    const char *close = strchr(name, '}');

    if (begins_with(name, RESERVED))
        return true;
    for (size_t i = PARTY; i < DIBS__KEYS && strchr(name, '~'); i++)
        if (ends_with(name, suffixes[i]))
            return true;
    if (!close)
        return false;
    /* In braces it would have another slot; and "{a}" would share its further
     * keys with "a". */
    return !has_tag(name) || (name[0] == '{' && close[1] == '\0');
}

static size_t
append_text(char *out, size_t len, const char *text, size_t text_len)
{
    memcpy(out + len, text, text_len);
    out[len + text_len] = '\0';
    return len + text_len;
}

void dibs__keys_of(const char *name, dibs__keys *out)
{
    size_t len = strlen(name);
    char *lock = out->key[LOCK];
    bool braces = true;

    assert(len <= DIBS_NAME_MAX);
    if (must_escape(name)) {
        size_t from = append_text(lock, 0, DIBS__KEY_ESCAPE,
                                  sizeof(DIBS__KEY_ESCAPE) - 1);

        len = from + dibs__key_escape(name, lock + from);
    } else {
        append_text(lock, 0, name, len);
        braces = !has_tag(name);
    }
    out->len[LOCK] = len;
    for (size_t i = PARTY; i < DIBS__KEYS; i++) {
        size_t at = append_text(out->key[i], 0, "{", braces);

        at = append_text(out->key[i], at, lock, len);
        at = append_text(out->key[i], at, "}", braces);
        out->len[i] =
            append_text(out->key[i], at, suffixes[i], strlen(suffixes[i]));
    }
}

void dibs__keys_add(const dibs__keys *keys, dibs__words *words)
{
    for (size_t i = 0; i < DIBS__KEYS; i++)
        dibs__words_add(words, keys->key[i], keys->len[i]);
}

/* The key of the lock from that of its queue: without the suffix, and without
 * braces that go around the whole of it. */
static void strip_suffix(char *key)
{
    size_t len = strlen(key) - strlen(suffixes[QUEUE]);
    char *close;

    key[len] = '\0';
    close = strchr(key, '}');
    if (key[0] == '{' && close && close[1] == '\0') {
        memmove(key, key + 1, len - 2);
        key[len - 2] = '\0';
    }
}

bool dibs__key_name(const char *key, size_t len, char out[DIBS_NAME_MAX + 1])
{
    char lock[DIBS__KEY_MAX];
    dibs__keys keys;
    bool queue;

    if (len >= sizeof(lock) || memchr(key, '\0', len))
        return false;
    append_text(lock, 0, key, len);
    queue = ends_with(lock, suffixes[QUEUE]);
    if (queue)
        strip_suffix(lock);
    if (begins_with(lock, DIBS__KEY_ESCAPE)) {
        if (!dibs__key_unescape(lock + strlen(DIBS__KEY_ESCAPE), out))
            return false;
    } else {
        if (strlen(lock) > DIBS_NAME_MAX)
            return false;
        append_text(out, 0, lock, strlen(lock));
    }
    if (!out[0])
        return false;
    dibs__keys_of(out, &keys);
    return strcmp(keys.key[queue ? QUEUE : LOCK], key) == 0;
}

void dibs__keys_begin(const char *begins,
                      char out[DIBS__KEY_BEGINS][DIBS__KEY_MAX])
{
    char escaped[3 * DIBS_NAME_MAX + 1];

    assert(strlen(begins) <= DIBS_NAME_MAX);
    dibs__key_escape(begins, escaped);
    snprintf(out[0], DIBS__KEY_MAX, "%s", begins);
    snprintf(out[1], DIBS__KEY_MAX, "{%s", begins);
    snprintf(out[2], DIBS__KEY_MAX, DIBS__KEY_ESCAPE "%s", escaped);
    snprintf(out[3], DIBS__KEY_MAX, "{" DIBS__KEY_ESCAPE "%s", escaped);
}

size_t dibs__key_value(const char *name, char out[DIBS__KEY_MAX])
{
    size_t len =
        append_text(out, 0, DIBS__KEY_VALUE, sizeof(DIBS__KEY_VALUE) - 1);

    return append_text(out, len, name, strlen(name));
}

size_t dibs__key_index(const char *name, char out[DIBS__KEY_MAX])
{
    size_t len =
        append_text(out, 0, DIBS__KEY_INDEX, sizeof(DIBS__KEY_INDEX) - 1);

    return append_text(out, len, name, strlen(name));
}

size_t dibs__key_log(const char *topic, char out[DIBS__KEY_MAX])
{
    size_t len = append_text(out, 0, DIBS__KEY_LOG, sizeof(DIBS__KEY_LOG) - 1);

    return append_text(out, len, topic, strlen(topic));
}

size_t dibs__key_rate(const char *name, char out[DIBS__KEY_MAX])
{
    size_t len =
        append_text(out, 0, DIBS__KEY_RATE, sizeof(DIBS__KEY_RATE) - 1);

    return append_text(out, len, name, strlen(name));
}

bool dibs__key_tail(const char *head, const char *key, size_t len,
                    char out[DIBS_NAME_MAX + 1])
{
    size_t from = strlen(head);

    if (len <= from || len - from > DIBS_NAME_MAX || memchr(key, '\0', len))
        return false;
    memcpy(out, key + from, len - from);
    out[len - from] = '\0';
    return true;
}

/* The tag of the slot is for names that decide it by a part that cannot be named
 * otherwise: they begin with a brace, or have one that closes nothing. The key still
 * begins with the name, so that an ACL for a prefix has it. */
static size_t key_beside(const char *head, const char *name, const char *key,
                         size_t len, char out[DIBS__KEY_MAX])
{
    char tag[DIBS__SLOT_TAG];
    char escaped[3 * DIBS_NAME_MAX + 1];

    if (has_tag(name) && name[0] != '{')
        return (size_t)snprintf(out, DIBS__KEY_MAX, "%s%s", head, name);
    if (!strpbrk(name, "{}"))
        return (size_t)snprintf(out, DIBS__KEY_MAX, "%s{%s}", head, key);
    dibs__slot_tag(dibs__slot_of(key, len), tag);
    dibs__key_escape(name, escaped);
    return (size_t)snprintf(out, DIBS__KEY_MAX, "%s%s~{%s}", head, escaped,
                            tag);
}

size_t dibs__key_meter(const char *name, char out[DIBS__KEY_MAX])
{
    char key[DIBS__KEY_MAX];
    size_t len = dibs__key_value(name, key);

    return key_beside(DIBS__KEY_METER, name, key, len, out);
}

void dibs__keys_writers(const char *topic, char from[DIBS__KEY_MAX],
                        char was[DIBS__KEY_MAX])
{
    char key[DIBS__KEY_MAX];
    size_t len = dibs__key_log(topic, key);

    len = key_beside(DIBS__KEY_FROM, topic, key, len, from);
    len = append_text(was, 0, from, len);
    append_text(was, len, "~was", 4);
}
