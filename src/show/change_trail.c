/* change_trail.c - the entries of the trail about changes that operators make. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "show/change_trail.h"
#include <dibs/monitor.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* In the order of the texts; a reader looks for the last one first. */
static const char *const keys[] = {" from=", " request=", " role=", " route=",
                                   " result="};
enum { KEY_COUNT = sizeof(keys) / sizeof(keys[0]), TAIL_MAX = 440 };

/* A text that does not fit is cut, but not inside a character. */
static size_t fit_length(const char *text, size_t max)
{
    size_t len = strnlen(text, max);

    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

void dibs__change_write(const dibs__change_cause *cause,
                        char out[DIBS__CHANGE_CAUSE_MAX])
{
    const char *const values[] = {cause->from, cause->request, cause->role,
                                  cause->route, cause->result};
    const char *reason = text_of(cause->reason);
    char tail[TAIL_MAX];
    int len = snprintf(tail, sizeof(tail), "[who=%s", text_of(cause->who));
    int room;

    for (size_t i = 0; i < KEY_COUNT && len < (int)sizeof(tail); i++)
        if (*text_of(values[i]))
            len += snprintf(tail + len, sizeof(tail) - (size_t)len, "%s%s",
                            keys[i], values[i]);
    /* The reason gives way, so that a reader finds all of the rest. */
    room = DIBS__CHANGE_CAUSE_MAX - 3 - (int)strlen(tail);
    if (room > DIBS__CHANGE_REASON_MAX)
        room = DIBS__CHANGE_REASON_MAX;
    room = (int)fit_length(reason, (size_t)room);
    snprintf(out, DIBS__CHANGE_CAUSE_MAX, "%.*s%s%s]", room, reason,
             room ? " " : "", tail);
}

/* Cuts " key=" off the end of the text; what is after it, or "". */
static const char *cut_last(char *text, const char *key)
{
    char *at = strstr(text, key);

    if (!at)
        return "";
    *at = '\0';
    return at + strlen(key);
}

void dibs__change_read(char *text, dibs__change_cause *out)
{
    const size_t len = strlen(text);
    const char **const values[] = {&out->from, &out->request, &out->role,
                                   &out->route, &out->result};
    char *open = NULL;

    *out = (dibs__change_cause){text, "", "", "", "", "", ""};
    /* A reason may have brackets too: the last ones are those of the cause. */
    for (char *at = strstr(text, "[who="); at; at = strstr(at + 1, "[who="))
        open = at;
    if (!open || text[len - 1] != ']')
        return;
    text[len - 1] = '\0';
    for (size_t i = KEY_COUNT; i-- > 0;)
        *values[i] = cut_last(open, keys[i]);
    out->who = open + 5;
    *open = '\0';
    if (open > text && open[-1] == ' ')
        open[-1] = '\0';
}

bool dibs__change_may_be_done(dibs_status rc)
{
    return rc == DIBS_OK || rc == DIBS_UNKNOWN;
}

dibs_status
dibs__change_add(dibs_client *cl, const dibs__change *change, dibs_error *err)
{
    char cause[DIBS__CHANGE_CAUSE_MAX];
    dibs_status rc;

    dibs__change_write(&change->cause, cause);
    rc = dibs_trail_add(cl, change->action, change->target, change->fence,
                        cause, err);
    return rc == DIBS_UNSUPPORTED || rc == DIBS_INVALID ? DIBS_OK : rc;
}

dibs_status
dibs__change_add_failed(dibs_client *cl, const dibs__change *change,
                        dibs_status failure, uint64_t done, dibs_error *err)
{
    dibs__change failed = *change;
    char action[32], reason[64];

    snprintf(action, sizeof(action), "%s-%s", change->action,
             done > 0 ? "partly" : "failed");
    snprintf(reason, sizeof(reason), "%s after %llu item%s",
             dibs_status_name(failure), (unsigned long long)done,
             done == 1 ? "" : "s");
    failed.action = action;
    failed.cause.reason = done > 0 ? reason : dibs_status_name(failure);
    return dibs__change_add(cl, &failed, err);
}
