/* notice.c - notices for a doorbell: reads those that servers pass on, and owns the data of
 * messages. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/notice.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

dibs__said *dibs__said_new(size_t len)
{
    dibs__said *said =
        len <= DIBS__SAY_MAX ? dibsx_zalloc(sizeof(*said) + len) : NULL;

    if (said)
        said->len = len;
    return said;
}

void dibs__notice_drop(dibs__notice *notice)
{
    dibsx_free(notice->said);
    notice->said = NULL;
}

/* Reads the text behind the version of a change. Without memory for it the notice is as one
 * that shows nothing. */
static bool read_shown(const char *text, dibs__notice *notice)
{
    size_t len;

    if (*text == '\0')
        return true;
    len = strlen(text) - 1;
    if (*text != ' ' || notice->kind != DIBS__NOTICE_CHANGED ||
        len >= DIBS__SHOWN_TEXT)
        return false;
    notice->said = dibs__said_new(len);
    if (notice->said)
        memcpy(notice->said->data, text + 1, len);
    return true;
}

bool dibs__notice_read(const char *text, dibs__notice *notice)
{
    enum { OWNER = DIBS_OWNER_SIZE - 1 };
    static const char *const words[] = {
        [DIBS__NOTICE_GRANTED] = " granted ",
        [DIBS__NOTICE_BROKEN] = " broken ",
        [DIBS__NOTICE_WANTED] = " wanted ",
        [DIBS__NOTICE_YIELD] = " yield ",
        [DIBS__NOTICE_CHANGED] = " changed ",
        [DIBS__NOTICE_OPENED] = " opened ",
        [DIBS__NOTICE_ITEMS] = " items ",
    };
    const char *fence = NULL;
    char *end;

    if (strspn(text, "0123456789abcdef") != OWNER)
        return false;
    memcpy(notice->owner, text, OWNER);
    notice->owner[OWNER] = '\0';
    text += OWNER;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0) {
            notice->kind = (dibs__notice_kind)i;
            fence = text + strlen(words[i]);
        }
    if (!fence || *fence < '0' || *fence > '9')
        return false;
    notice->fence = strtoull(fence, &end, 10);
    notice->said = NULL;
    return read_shown(end, notice);
}
