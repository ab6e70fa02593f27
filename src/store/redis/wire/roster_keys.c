/* roster_keys.c - the names of the keys of rosters. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/roster_keys.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* Whether its tag can be that of its keys, and these are of no other name. */
static bool has_own_tag(const char *name)
{
    const char *open = strchr(name, '{');
    const char *close = open ? strchr(open, '}') : NULL;

    return close && close > open + 1 && open > name &&
           !ends_with(name, "~till") && !ends_with(name, "~new");
}

static const char *const roster_suffixes[DIBS__ROSTER_KEYS] = {"", "~till",
                                                               "~new"};

void dibs__keys_of_roster(const char *name,
                          char out[DIBS__ROSTER_KEYS][DIBS__KEY_MAX])
{
    char escaped[3 * DIBS_NAME_MAX + 1];
    bool plain = !strpbrk(name, "{}");
    bool tagged = has_own_tag(name);

    assert(strlen(name) <= DIBS_NAME_MAX);
    if (!plain && !tagged)
        dibs__key_escape(name, escaped);
    for (size_t i = 0; i < DIBS__ROSTER_KEYS; i++)
        if (tagged)
            snprintf(out[i], DIBS__KEY_MAX, DIBS__KEY_ROSTER "%s%s", name,
                     roster_suffixes[i]);
        else
            snprintf(out[i], DIBS__KEY_MAX, DIBS__KEY_ROSTER "{%s}%s%s",
                     plain ? name : escaped, plain ? "" : "%",
                     roster_suffixes[i]);
}

bool dibs__key_roster_name(const char *key, char out[DIBS_NAME_MAX + 1])
{
    char keys[DIBS__ROSTER_KEYS][DIBS__KEY_MAX];
    char text[DIBS__KEY_MAX];
    size_t len;

    if (strncmp(key, DIBS__KEY_ROSTER, strlen(DIBS__KEY_ROSTER)) != 0)
        return false;
    key += strlen(DIBS__KEY_ROSTER);
    snprintf(text, sizeof(text), "%s", key);
    len = strlen(text);
    if (ends_with(text, "}%") && text[0] == '{') {
        text[len - 2] = '\0';
        if (!dibs__key_unescape(text + 1, out))
            return false;
    } else {
        bool braces = text[0] == '{' && text[len - 1] == '}';

        text[len - braces] = '\0';
        len -= 2 * (size_t)braces;
        if (len > DIBS_NAME_MAX)
            return false;
        memcpy(out, text + braces, len);
        out[len] = '\0';
    }
    if (!out[0])
        return false;
    dibs__keys_of_roster(out, keys);
    return strcmp(keys[0] + strlen(DIBS__KEY_ROSTER), key) == 0;
}

void dibs__roster_keys_begin(const char *begins,
                             char out[DIBS__ROSTER_KEY_BEGINS][DIBS__KEY_MAX])
{
    char escaped[3 * DIBS_NAME_MAX + 1];

    assert(strlen(begins) <= DIBS_NAME_MAX);
    dibs__key_escape(begins, escaped);
    snprintf(out[0], DIBS__KEY_MAX, DIBS__KEY_ROSTER "%s", begins);
    snprintf(out[1], DIBS__KEY_MAX, DIBS__KEY_ROSTER "{%s", begins);
    snprintf(out[2], DIBS__KEY_MAX, DIBS__KEY_ROSTER "{%s", escaped);
}
