/* once.c - at most one start, or one success, per slot, over all who share the store.
 *
 * One value per lock name, "once:NAME", holds the last slot that was used. A
 * slot of time follows this machine's clock; a clock that is behind finds a
 * later slot there and starts nothing. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/once.h"

#include "base/fail.h"
#include "base/suggest.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A slot of time is the moment's text, cut: it sorts as time does. */
static const struct {
    const char *name;
    int len;
} spans[] = {{"minute", 16}, {"hour", 13}, {"day", 10}};

/* Before a text of the user's own that one would take for a slot of time. */
static const char text_mark[] = "text:";

static bool time_slot(const char *slot, int64_t wall_us, char *out, size_t size)
{
    char moment[sizeof "2026-11-15T02:47" + 16];
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (strcmp(slot, spans[i].name) == 0 && gmtime_r(&seconds, &utc) &&
            strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M", &utc) > 0)
            return snprintf(out, size, "%s %.*sZ", slot, spans[i].len, moment) >
                   0;
    return false;
}

/* Whether a word names a span: a text of that kind would be used once, ever. */
static bool names_span(const char *word)
{
    static const char *const nouns[] = {"second", "night",   "week",
                                        "month",  "quarter", "year"};
    size_t digits = strspn(word, "0123456789");
    if (digits > 0)
        return strlen(word) == digits + 1 && strchr("smhdw", word[digits]);
    for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++) {
        size_t len = strlen(nouns[i]);
        const char *end = word + len;
        if (strncmp(word, nouns[i], len) == 0 &&
            (!*end || strcmp(end, "s") == 0 || strcmp(end, "ly") == 0))
            return true;
    }
    return false;
}

/* The slot of time that a word seems to mean; NULL: it is a text like any other. */
static const char *find_meant(const char *slot)
{
    char word[16];
    dibsx_suggest sg = {.typed = word};
    const char *any = "minute, hour or day";
    size_t len = 0;
    bool is_at = *slot == '@';
    for (slot += is_at; slot[len] && len + 1 < sizeof word; len++)
        word[len] = (char)tolower((unsigned char)slot[len]);
    word[len] = '\0';
    if (slot[len])
        return is_at ? any : NULL;
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (strspn(word, "abcdefghijklmnopqrstuvwxyz") == len)
            dibsx_suggest_offer(&sg, spans[i].name);
    if (sg.best)
        return sg.best;
    return is_at || names_span(word) ? any : NULL;
}

dibs_status dibs__run_once_check(const char *slot, dibs_error *err)
{
    if (!*slot || strcmp(slot, text_mark) == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "--once needs a slot: minute, hour, day or a text");
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (strcmp(slot, spans[i].name) == 0)
            return DIBS_OK;
    const char *meant = find_meant(slot);
    if (!meant)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "--once has no slot '%s'; did you mean %s? For a text of "
                      "that name write %s%s",
                      slot, meant, text_mark, slot);
}

dibs_status
dibs__run_once_init(dibs__run_once *once, const char *name, const char *slot,
                    int64_t wall_us, dibs_error *err)
{
    *once = (dibs__run_once){.version = DIBS_VERSION_NONE};
    int len = snprintf(once->key, sizeof once->key, "once:%s", name);
    if (len < 0 || (size_t)len >= sizeof once->key)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name is too long for --once: at most %d bytes",
                          DIBS_NAME_MAX - 5);
    if (time_slot(slot, wall_us, once->slot, sizeof once->slot))
        return DIBS_OK;
    if (strncmp(slot, text_mark, strlen(text_mark)) == 0)
        slot += strlen(text_mark);
    len = snprintf(once->slot, sizeof once->slot, "text %s", slot);
    if (len < 0 || (size_t)len >= sizeof once->slot)
        return dibsx_fail(err, DIBS_INVALID,
                          "the slot of --once is too long: at most %d bytes",
                          DIBS__SLOT_SIZE - 6);
    return DIBS_OK;
}

/* The same slot, or a later one of the same kind of time. */
static bool covers(const char *found, const char *slot)
{
    if (strcmp(found, slot) == 0)
        return true;
    size_t kind = strcspn(slot, " ") + 1;
    return strncmp(slot, "text ", 5) != 0 && strncmp(found, slot, kind) == 0 &&
           strcmp(found, slot) > 0;
}

dibs_status dibs__run_once_look(dibs__run_once *once, dibs_client *cl,
                                bool *taken, dibs_error *err)
{
    dibs_value value = {0};
    *taken = false;
    once->version = DIBS_VERSION_NONE;
    once->before[0] = '\0';
    dibs_status rc = dibs_state_get(cl, once->key, &value, err);
    if (rc == DIBS_NOTFOUND)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    once->version = value.version;
    (void)snprintf(once->before, sizeof once->before, "%s",
                   (const char *)value.data);
    *taken = covers(value.data, once->slot);
    dibs_value_free(&value);
    return DIBS_OK;
}

dibs_status dibs__run_once_take(dibs__run_once *once, dibs_client *cl,
                                bool *taken, dibs_error *err)
{
    dibs_status rc = dibs__run_once_look(once, cl, taken, err);
    if (rc != DIBS_OK || *taken)
        return rc;
    rc = dibs_state_cas(cl, once->key, once->version, once->slot,
                        strlen(once->slot), 0, &once->version, err);
    /* Another got in between: only who lost the lock can meet this. */
    if (rc == DIBS_STALE) {
        *taken = true;
        return DIBS_OK;
    }
    return rc;
}

dibs_status
dibs__run_once_undo(dibs__run_once *once, dibs_client *cl, dibs_error *err)
{
    return once->before[0]
               ? dibs_state_cas(cl, once->key, once->version, once->before,
                                strlen(once->before), 0, &once->version, err)
               : dibs_state_delete(cl, once->key, once->version, err);
}
