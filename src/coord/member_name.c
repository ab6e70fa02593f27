/* member_name.c - the name that a member gives itself; see member_name.h. */
/* SPDX-License-Identifier: MIT */
#include "coord/member_name.h"
#include "core/names.h"
#include <stdio.h>
#include <string.h>

#define KEY "member="

dibs_status dibs__member_check_name(const char *member, dibs_error *err)
{
    if (!*member || strlen(member) >= DIBS__MEMBER_SIZE)
        return dibsx_fail(err, DIBS_INVALID,
                          "a member has 1 to %d bytes, and not %zu",
                          DIBS__MEMBER_SIZE - 1, strlen(member));
    return dibs__text_check("the member", member, err);
}

void dibs__member_write_name(const char *member, char out[DIBS__MEMBER_META])
{
    snprintf(out, DIBS__MEMBER_META, KEY "%s", member);
}

bool dibs__member_read_name(const char **meta, char *out, size_t size)
{
    const char *at = *meta;
    size_t len;

    out[0] = '\0';
    if (strncmp(at, KEY, sizeof(KEY) - 1) != 0)
        return false;
    at += sizeof(KEY) - 1;
    len = strcspn(at, "\t");
    snprintf(out, size, "%.*s", (int)len, at);
    *meta = at + len + (at[len] == '\t' ? 1 : 0);
    return true;
}
