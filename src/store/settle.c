/* settle.c - see settle.h. */
/* SPDX-License-Identifier: MIT */
#include "store/settle.h"

#include "store/queue_admin.h"

#include <string.h>

size_t dibs__settle_text(const dibs__settlement *settle)
{
    size_t most =
        settle->verb == DIBS__ITEM_ACK ? DIBS__RESULT_MAX : DIBS__REASON_MAX;
    const char *text = settle->reason;
    size_t len = text ? strnlen(text, most - 1) : 0;

    while (len > 0 && text[len] && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

char dibs__settle_mark(const dibs__settlement *settle)
{
    static const char done[] = "andue", lost[] = "ANDUE";

    return (settle->rc == DIBS_OK ? done : lost)[settle->verb];
}

/* Reads one. False: it is of another verb. */
static bool read_mark(dibs__settlement *settle, char mark)
{
    settle->rc = DIBS_OK;
    if (mark == dibs__settle_mark(settle))
        return true;
    settle->rc = DIBS_LOST;
    return mark == dibs__settle_mark(settle);
}

bool dibs__settle_read(dibs__settlement *settle, size_t count,
                       const char *marks)
{
    if (strlen(marks) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!read_mark(&settle[i], marks[i]))
            return false;
    return true;
}
