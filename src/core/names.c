/* names.c - names and other texts are checked once, here, at the public border, so
 * that every store answers alike. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/names.h"

#include "base/fail.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

dibs_status
dibs__text_check(const char *thing, const char *text, dibs_error *err)
{
    const char *flaw = dibsx_text_flaw(text, strlen(text));

    return flaw ? dibsx_fail(err, DIBS_INVALID, "%s %s", thing, flaw) : DIBS_OK;
}

dibs_status dibs__name_begins(const dibs_client *cl, const char *begins,
                              char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    dibs_status rc;
    int len;

    if (!begins)
        begins = "";
    rc = dibs__text_check("the name", begins, err);
    if (rc != DIBS_OK)
        return rc;
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

static void clean(char *text, bool controls)
{
    size_t left = strlen(text), len;

    for (; left > 0; text += len, left -= len) {
        const unsigned char *at = (const unsigned char *)text;

        len = dibsx_utf8_len(at, left);
        if (len == 0 || (controls && dibsx_is_control(at))) {
            len = len ? len : 1;
            memset(text, '?', len);
        }
    }
}

void dibs__text_clean(char *text)
{
    clean(text, true);
}

void dibs__utf8_clean(char *text)
{
    clean(text, false);
}
