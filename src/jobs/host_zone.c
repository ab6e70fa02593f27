/* host_zone.c - the time zone of this machine, by its name. */
/* SPDX-License-Identifier: MIT */
#include "jobs/crontab.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes a name if there is such a zone. */
static bool take_name(const char *name, char out[DIBS__ZONE_NAME_MAX + 1])
{
    dibs__zone *zone = NULL;

    if (dibs__zone_open(name, &zone, NULL) != DIBS_OK)
        return false;
    (void)snprintf(out, DIBS__ZONE_NAME_MAX + 1, "%s", name);
    dibs__zone_free(zone);
    return true;
}

static bool take_link(const char *etc, char out[DIBS__ZONE_NAME_MAX + 1])
{
    static const char folder[] = "zoneinfo/";
    char path[PATH_MAX], target[PATH_MAX];
    const char *name;
    ssize_t len;

    (void)snprintf(path, sizeof(path), "%s/localtime", etc);
    len = readlink(path, target, sizeof(target) - 1);
    if (len < 0)
        return false;
    target[len] = '\0';
    name = strstr(target, folder);
    return name && take_name(name + sizeof(folder) - 1, out);
}

static bool take_file(const char *etc, char out[DIBS__ZONE_NAME_MAX + 1])
{
    char path[PATH_MAX], line[128] = "";
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/timezone", etc);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    (void)fclose(file);
    line[strcspn(line, " \t\r\n")] = '\0';
    return take_name(line, out);
}

bool dibs__host_zone(const char *etc, char out[DIBS__ZONE_NAME_MAX + 1])
{
    const char *tz = getenv("TZ");

    return take_link(etc, out) || take_file(etc, out) ||
           (tz && tz[0] && take_name(tz + (tz[0] == ':'), out));
}
