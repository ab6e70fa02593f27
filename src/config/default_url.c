/* default_url.c - URLs of the embedded store, for clients that give none, or a path.
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "config/default_url.h"
#include "base/fail.h"
#include "config/path_url.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An empty variable counts as unset, and so does a relative path: the standard
 * has it so. */
static const char *folder_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && value[0] == '/' ? value : NULL;
}

dibs_status dibs__store_default_path(dibsx_buf *path, dibs_error *err)
{
    const char *state = folder_variable("XDG_STATE_HOME");
    const char *home = folder_variable("HOME");

    if (state)
        dibsx_buf_printf(path, "%s/dibs/dibs.db", state);
    else if (geteuid() == 0)
        dibsx_buf_puts(path, "/var/lib/dibs/dibs.db");
    else if (home)
        dibsx_buf_printf(path, "%s/.local/state/dibs/dibs.db", home);
    else
        return dibsx_fail(err, DIBS_INVALID,
                          "HOME is not set to a whole path; set it, or name "
                          "the store by its URL");
    if (!dibsx_buf_ok(path))
        return dibsx_fail(err, DIBS_INVALID,
                          "the path of the default store is too long");
    return DIBS_OK;
}

/* Makes every missing folder above the file, for the user alone. Existing folders
 * keep their mode. */
static dibs_status make_folders(char *path, dibs_error *err)
{
    for (char *slash = strchr(path + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        int number = 0;

        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            number = errno;
        *slash = '/';
        if (number != 0)
            return dibsx_fail_at(
                err,
                number == EACCES || number == EROFS ? DIBS_DENIED
                                                    : DIBS_REFUSED,
                dibsx_errno_name(number),
                "the folder of the default store cannot be made; name a store "
                "by its URL (%s, %s)",
                path, dibsx_errno_name(number));
    }
    return DIBS_OK;
}

/* Escapes the characters that have a meaning in a URL. */
static void add_escaped(dibsx_buf *url, const char *path)
{
    for (; *path; path++)
        if (*path == '%' || *path == '?' || *path == '#')
            dibsx_buf_printf(url, "%%%02X", (unsigned)(unsigned char)*path);
        else
            dibsx_buf_putc(url, *path);
}

bool dibs__store_is_path(const char *text)
{
    return text[0] == '/' || strncmp(text, "./", 2) == 0 ||
           strncmp(text, "../", 3) == 0;
}

void dibs__store_path_url(dibsx_buf *url, const char *path)
{
    /* Two slashes would begin the name of a host. */
    while (path[0] == '/' && path[1] == '/')
        path++;
    dibsx_buf_puts(url, "sqlite:");
    add_escaped(url, path);
}

dibs_status dibs__store_default_url(dibsx_buf *url, dibs_error *err)
{
    dibsx_buf path;
    dibs_status rc;

    dibsx_buf_init(&path, PATH_MAX - 1);
    rc = dibs__store_default_path(&path, err);
    if (rc == DIBS_OK)
        rc = make_folders(path.data, err);
    if (rc == DIBS_OK) {
        dibs__store_path_url(url, path.data);
        if (!dibsx_buf_ok(url))
            rc = dibsx_fail(err, DIBS_INVALID,
                            "the path of the default store is too long");
    }
    dibsx_buf_fini(&path);
    return rc;
}
