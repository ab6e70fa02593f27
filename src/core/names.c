/* names.c - names are checked once, here, at the public border. */
/* SPDX-License-Identifier: MIT */
#include "core/names.h"

#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_control(const char *text)
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
    if (has_control(begins))
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

void dibs__who_text(const dibs_client *cl, const char *label,
                    char who[DIBS__WHO_MAX])
{
    const char *shown = label ? label : cl->label;
    int len = snprintf(who, DIBS__WHO_MAX, "%s:%ld%s%s", cl->host,
                       (long)getpid(), *shown ? " " : "", shown);

    /* A label that was cut inside a character loses that character. */
    if (len >= DIBS__WHO_MAX) {
        size_t end = DIBS__WHO_MAX - 1;
        while (end > 0 && ((unsigned char)who[end - 1] & 0xc0) == 0x80)
            end--;
        if (end > 0 && (unsigned char)who[end - 1] >= 0xc0)
            who[end - 1] = '\0';
    }
}

void dibs__who_read(const char *text, dibs__who *out)
{
    size_t host = strcspn(text, ":");
    char *end = NULL;

    *out = (dibs__who){.label = ""};
    if (host >= sizeof(out->host))
        host = sizeof(out->host) - 1;
    memcpy(out->host, text, host);
    if (text[host] != ':')
        return;
    out->pid = strtoimax(text + host + 1, &end, 10);
    if (*end == ' ')
        out->label = text + (end + 1 - text);
}
