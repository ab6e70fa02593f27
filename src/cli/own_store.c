/* own_store.c - the word that a store is of one user alone.
 *
 * A file beside the database, `FILE.told`, remembers that it was said: cron mails
 * every word, so that once must be enough. */
/* SPDX-License-Identifier: MIT */
#include "cli/own_store.h"

#include "base/url.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char machine_store[] = "/var/lib/dibs/dibs.db";

static bool is_shared(const char *path)
{
    struct stat at;

    return stat(path, &at) != 0 || (at.st_mode & (S_IWGRP | S_IWOTH));
}

/* The first to make the file has the word. */
static bool tell_once(const char *path)
{
    char told[PATH_MAX + 8];
    int fd;

    snprintf(told, sizeof(told), "%s.told", path);
    fd = open(told, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Root's folder is closed to others, who can tell that much. */
static bool has_another(const char *path)
{
    struct stat at;

    return strcmp(path, machine_store) != 0 &&
           (stat(machine_store, &at) == 0 || errno == EACCES);
}

void dibs__own_store_note(const dibs__command *cmd, const dibs_client *cl)
{
    dibsx_url url;

    if (dibs__opt_flag(cmd, "quiet") || dibs__opt_text(cmd, "url") ||
        dibsx_url_parse(dibs_url(cl), &url, NULL) != DIBS_OK)
        return;
    if (url.path && !is_shared(url.path) && tell_once(url.path))
        dibs__cli_say("no store is configured, so this user has one of its "
                      "own, %s; locks of other users%s do not count here; "
                      "`dibs help store share` says how to share a store "
                      "(this is said once)",
                      url.path,
                      has_another(url.path)
                          ? ", such as root's in /var/lib/dibs,"
                          : "");
    dibsx_url_fini(&url);
}
