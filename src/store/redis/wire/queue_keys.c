/* queue_keys.c - the names of the keys of queues. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/queue_keys.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const suffixes[DIBS__QUEUE_KEYS] = {
    [DIBS__QUEUE_LIST] = "",        [DIBS__QUEUE_META] = "~meta",
    [DIBS__QUEUE_OUT] = "~out",     [DIBS__QUEUE_WAIT] = "~wait",
    [DIBS__QUEUE_KEPT] = "~kept",   [DIBS__QUEUE_NEXT] = "~next",
    [DIBS__QUEUE_LATER] = "~later", [DIBS__QUEUE_DEAD] = "~dead",
    [DIBS__QUEUE_IDS] = "~ids",     [DIBS__QUEUE_IDEND] = "~idend",
    [DIBS__QUEUE_OWN] = "~own",     [DIBS__QUEUE_LOAD] = "~load",
    [DIBS__QUEUE_LIMIT] = "~limit", [DIBS__QUEUE_FROM] = "~from",
    [DIBS__QUEUE_WAS] = "~was",     [DIBS__QUEUE_DONE] = "~done",
};

/* Whether its tag can be that of its keys, and these are of no other name. */
static bool has_own_tag(const char *name)
{
    const char *open = strchr(name, '{');
    const char *close = open ? strchr(open, '}') : NULL;
    size_t len = strlen(name);

    for (size_t i = DIBS__QUEUE_META; i < DIBS__QUEUE_KEYS; i++) {
        size_t end = strlen(suffixes[i]);

        if (len >= end && strcmp(name + len - end, suffixes[i]) == 0)
            return false;
    }
    return close && close > open + 1 && open > name;
}

void dibs__keys_of_queue(const char *name, dibs__queue_names *out)
{
    char escaped[3 * DIBS_NAME_MAX + 1];
    bool plain = !strpbrk(name, "{}");
    bool tagged = has_own_tag(name);
    char *base = out->key[DIBS__QUEUE_LIST];
    size_t len;

    assert(strlen(name) <= DIBS_NAME_MAX);
    if (!plain && !tagged)
        dibs__key_escape(name, escaped);
    snprintf(base, DIBS__KEY_MAX,
             tagged  ? DIBS__KEY_QUEUE "%s"
             : plain ? DIBS__KEY_QUEUE "{%s}"
                     : DIBS__KEY_QUEUE "{%s}%%",
             plain || tagged ? name : escaped);
    len = strlen(base);
    for (size_t i = DIBS__QUEUE_META; i < DIBS__QUEUE_KEYS; i++) {
        memcpy(out->key[i], base, len);
        memcpy(out->key[i] + len, suffixes[i], strlen(suffixes[i]) + 1);
    }
}

/* The name from what stands between the beginning and the suffix of a key. */
static bool read_base(char *base, char out[DIBS_NAME_MAX + 1])
{
    size_t len = strlen(base);
    bool escaped = len > 2 && base[0] == '{' && base[len - 1] == '%';

    if (escaped)
        base[--len] = '\0';
    if (len > 2 && base[0] == '{' && base[len - 1] == '}') {
        base[--len] = '\0';
        base++;
        len--;
    }
    if (escaped)
        return dibs__key_unescape(base, out);
    if (len == 0 || len > DIBS_NAME_MAX)
        return false;
    memcpy(out, base, len + 1);
    return true;
}

bool dibs__queue_key_name(const char *key, size_t len,
                          char out[DIBS_NAME_MAX + 1])
{
    size_t begin = strlen(DIBS__KEY_QUEUE);
    size_t end = strlen(suffixes[DIBS__QUEUE_META]);
    char base[DIBS__KEY_MAX];
    dibs__queue_names names;

    if (len <= begin + end || len >= sizeof(base) || memchr(key, '\0', len) ||
        memcmp(key, DIBS__KEY_QUEUE, begin) != 0)
        return false;
    len -= begin + end;
    memcpy(base, key + begin, len);
    base[len] = '\0';
    if (!read_base(base, out))
        return false;
    dibs__keys_of_queue(out, &names);
    return strncmp(names.key[DIBS__QUEUE_META], key, begin + len + end) == 0 &&
           names.key[DIBS__QUEUE_META][begin + len + end] == '\0';
}

void dibs__queue_keys_begin(const char *begins,
                            char out[DIBS__QUEUE_KEY_BEGINS][DIBS__KEY_MAX])
{
    char escaped[3 * DIBS_NAME_MAX + 1];

    assert(strlen(begins) <= DIBS_NAME_MAX);
    dibs__key_escape(begins, escaped);
    snprintf(out[0], DIBS__KEY_MAX, DIBS__KEY_QUEUE "%s", begins);
    snprintf(out[1], DIBS__KEY_MAX, DIBS__KEY_QUEUE "{%s", begins);
    snprintf(out[2], DIBS__KEY_MAX, DIBS__KEY_QUEUE "{%s", escaped);
}
