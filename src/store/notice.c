/* notice.c - reads a notice for a doorbell, as servers pass it on. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/notice.h"
#include <stdlib.h>
#include <string.h>

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
    return *end == '\0';
}
