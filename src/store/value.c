/* value.c - what a put shows to all that listen. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/value.h"
#include "store/notice.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool dibs__put_shows(const dibs__put *put)
{
    const char *data = put->data;

    if (!put->shows || put->len > DIBS__SHOWN_MAX)
        return false;
    for (size_t i = 0; i < put->len; i++)
        if (data[i] < ' ' || data[i] > '~')
            return false;
    return true;
}

dibs__said *dibs__put_shown(const dibs__put *put)
{
    char text[DIBS__SHOWN_TEXT];
    dibs__said *said;
    size_t len;

    if (!dibs__put_shows(put))
        return NULL;
    len = (size_t)snprintf(text, sizeof(text), "%" PRId64 " %.*s", put->ttl_ms,
                           (int)put->len, (const char *)put->data);
    said = dibs__said_new(len);
    if (said)
        memcpy(said->data, text, len);
    return said;
}
