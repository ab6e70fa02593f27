/* names.c - names are checked once, here, at the public border. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/names.h"

#include "base/fail.h"
#include <stdio.h>
#include <string.h>

bool dibs__has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

dibs_status dibs__name_begins(const dibs_client *cl, const char *begins,
                              char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    int len;

    if (!begins)
        begins = "";
    if (dibs__has_control(begins))
        return dibsx_fail(err, DIBS_INVALID,
                          "the name has a control character in it");
    len = snprintf(out, DIBS_NAME_MAX + 1, "%s%s", cl->prefix, begins);
    if (len < 0 || len > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the name is longer than %d bytes, its prefix "
                          "included",
                          DIBS_NAME_MAX);
    return DIBS_OK;
}

dibs_status dibs__name_full(const dibs_client *cl, const char *name,
                            char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    if (!name || !*name)
        return dibsx_fail(err, DIBS_INVALID, "the name is empty");
    return dibs__name_begins(cl, name, out, err);
}

const char *dibs__name_short(const dibs_client *cl, const char *full)
{
    size_t len = strlen(cl->prefix);

    return strncmp(full, cl->prefix, len) == 0 ? full + len : full;
}

void dibs__text_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}
