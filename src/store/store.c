/* store.c - finds the store of a URL and opens it.
 *
 * Owns the table of schemes and knows the default place of the embedded store.
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/store.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/fault.h"
#include "store/sqlite/sqlite.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const dibs__store_ops *const stores[] = {
    &dibs__sqlite_ops,
    &dibs__memory_ops,
};

static const dibs__store_ops *find(const char *scheme)
{
    if (strncmp(scheme, DIBS__FAULT_PREFIX, strlen(DIBS__FAULT_PREFIX)) == 0)
        return &dibs__fault_ops;
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++)
        if (strcmp(stores[i]->scheme, scheme) == 0)
            return stores[i];
    return NULL;
}

static dibs_status unheard_of(const char *scheme, dibs_error *err)
{
    char known[80];
    dibsx_buf buf;

    dibsx_buf_init(&buf, sizeof(known) - 1);
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++)
        dibsx_buf_printf(&buf, "%s%s:", i ? ", " : "", stores[i]->scheme);
    memcpy(known, dibsx_buf_text(&buf), buf.len + 1);
    dibsx_buf_fini(&buf);
    return dibsx_fail(err, DIBS_INVALID,
                      "no store is called \"%.40s:\"; there are %s", scheme,
                      known);
}

/* An empty variable counts as unset, and so does a relative path: the standard
 * has it so. */
static const char *folder_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && value[0] == '/' ? value : NULL;
}

static dibs_status default_path(dibsx_buf *path, dibs_error *err)
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
                          "HOME is not set; name the store by its URL");
    if (!dibsx_buf_ok(path))
        return dibsx_fail(err, DIBS_INVALID,
                          "the default place has too long a path");
    return DIBS_OK;
}

/* Makes every folder above the file, for the user alone. Those that are there
 * stay as they are. */
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

static dibs_status
open_default(dibsx_nsec deadline, dibs__store **out, dibs_error *err)
{
    dibsx_url url = {0};
    dibsx_buf path;
    dibs_status rc;

    dibsx_buf_init(&path, PATH_MAX - 1);
    rc = default_path(&path, err);
    if (rc == DIBS_OK)
        rc = make_folders(path.data, err);
    if (rc == DIBS_OK) {
        url.path = path.data;
        rc = dibs__sqlite_ops.open(&url, deadline, out, err);
    }
    dibsx_buf_fini(&path);
    return rc;
}

dibs_status dibs__store_open_url(const dibsx_url *url, dibsx_nsec deadline,
                                 dibs__store **out, dibs_error *err)
{
    const dibs__store_ops *ops = find(url->scheme);

    *out = NULL;
    return ops ? ops->open(url, deadline, out, err)
               : unheard_of(url->scheme, err);
}

dibs_status dibs__store_open(const char *text, dibsx_nsec deadline,
                             dibs__store **out, dibs_error *err)
{
    dibsx_url url;
    dibs_status rc;

    *out = NULL;
    if (!text || !*text)
        return open_default(deadline, out, err);
    rc = dibsx_url_parse(text, &url, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__store_open_url(&url, deadline, out, err);
    dibsx_url_fini(&url);
    return rc;
}

void dibs__store_close(dibs__store *st)
{
    if (st)
        st->ops->close(st);
}
