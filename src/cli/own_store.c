/* own_store.c - the word that a store is of one user alone.
 *
 * A file beside the database, `FILE.told`, remembers that it was said: cron mails
 * every word, so that once must be enough. A variable that names a store in vain is
 * spoken of each time. */
/* SPDX-License-Identifier: MIT */
#include "cli/own_store.h"

#include "base/url.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Variables that people set to name a store: without a word, a lock would be taken
 * where no other holder looks. */
static const char *mistaken_variable(void)
{
    static const char *const names[] = {
        "DIBS_STORE",    "DIBS_STORE_URL",    "DIBS_URI",   "DIBS_SERVER",
        "DIBS_HOST",     "DIBS_BACKEND",      "DIBS_REDIS", "DIBS_REDIS_URL",
        "DIBS_POSTGRES", "DIBS_POSTGRES_URL", "DIBS_DB",    "DIBS_DATABASE_URL",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]))
            return names[i];
    return NULL;
}

void dibs__own_store_note(const dibs__command *cmd, const dibs_client *cl)
{
    const char *mistaken = mistaken_variable();
    dibsx_url url;

    if (dibs__opt_flag(cmd, "quiet") || dibs__opt_text(cmd, "url") ||
        dibsx_url_parse(dibs_url(cl), &url, NULL) != DIBS_OK)
        return;
    if (mistaken)
        dibs__cli_say("%s is set, which dibs does not read, so that %s is the "
                      "store; name the store you mean in DIBS_URL",
                      mistaken, url.path ? url.path : dibs_url(cl));
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
