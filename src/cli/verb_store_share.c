/* verb_store_share.c - store share: one embedded store for the users of a group. */
/* SPDX-License-Identifier: MIT */
#include "base/url.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/shared_file.h"
#include "cli/verbs.h"

#include <dibs/client.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char machine_store[] = "sqlite:/var/lib/dibs/dibs.db";

extern const dibs__verb dibs__verb_store_share;

static int say_usage(const char *why)
{
    dibs__cli_say("%s: %s", dibs__verb_store_share.name, why);
    return DIBS__EXIT_USAGE;
}

/* A name, or else a number. */
static bool find_group(const char *text, gid_t *gid)
{
    const struct group *found = getgrnam(text);
    char *end = NULL;
    unsigned long number;

    if (found) {
        *gid = found->gr_gid;
        return true;
    }
    errno = 0;
    number = strtoul(text, &end, 10);
    *gid = (gid_t)number;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 &&
           number < UINT32_MAX;
}

/* The first open makes the schema, or finds that this is no database of dibs. */
static dibs_status open_once(const char *url, dibs_error *err)
{
    dibs_client *cl = NULL;
    dibs_status rc = dibs_open(url, NULL, &cl, err);

    dibs_close(cl);
    return rc;
}

static dibs_status
share_store(const char *url, const char *path, gid_t gid, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    /* A foreign file is left as it is. */
    if (access(path, F_OK) == 0)
        rc = open_once(url, err);
    if (rc == DIBS_OK)
        rc = dibs__shared_file_make(path, gid, err);
    if (rc == DIBS_OK)
        rc = open_once(url, err);
    if (rc == DIBS_OK)
        rc = dibs__shared_file_fit(path, gid, err);
    return rc;
}

static int
report_share(const dibs__command *cmd, const char *url, const char *path)
{
    const char *group = dibs__opt_text(cmd, "group");

    if (dibs__opt_flag(cmd, "json")) {
        dibs__report report;

        dibs__report_begin(&report);
        dibsx_json_pair_text(&report.js, "url", url);
        dibsx_json_pair_text(&report.js, "file", path);
        dibsx_json_pair_text(&report.js, "group", group);
        return dibs__report_end(&report);
    }
    if (dibs__opt_flag(cmd, "quiet"))
        return 0;
    printf("The members of the group %s can use %s together.\n"
           "For all users of this machine, write this line to "
           "/etc/dibs/dibs.yaml:\n"
           "url: %s\n",
           group, path, url);
    return dibs__out_done();
}

static int share_file(const dibs__command *cmd)
{
    const char *group = dibs__opt_text(cmd, "group");
    const char *text = dibs__opt_text(cmd, "url");
    dibs_error err = {0};
    dibsx_url url;
    gid_t gid;
    int code;

    if (!group)
        return say_usage("--group is missing: the group whose members share "
                         "the store, such as --group users");
    if (!find_group(group, &gid))
        return say_usage("there is no such group; `getent group` lists them");
    if (!text)
        text = machine_store;
    if (dibsx_url_parse(text, &url, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (strcmp(url.scheme, "sqlite") != 0)
        code = say_usage("only a sqlite: store is a file; other stores are "
                         "shared by all that have their URL");
    else if (!url.path)
        code = say_usage("the URL names no file; write sqlite:/FOLDER/FILE");
    else if (share_store(text, url.path, gid, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = report_share(cmd, text, url.path);
    dibsx_url_fini(&url);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("group", "GROUP"),
     .help = "The group whose members share the store, by name or number."},
};

const dibs__option_rows dibs__options_store_share =
    DIBS__OPTION_ROWS("store share", options);

const dibs__verb dibs__verb_store_share = {
    .name = "store share",
    .summary = "make an embedded store that several users can use",
    .about =
        "Without a URL every user of a machine has a store of their own, and "
        "their locks do not exclude each other. This verb makes a store for "
        "the members of a group: the file of --url, or /var/lib/dibs/dibs.db. "
        "The file gets mode 0660, its folder mode 2770, and both the group; "
        "SQLite gives the mode to FILE-wal and FILE-shm, whatever the umask. "
        "The folder must be the store's own. Repeat it as you like; locks "
        "that are held stay held.\n"
        "Then every user needs the URL: as url in /etc/dibs/dibs.yaml, or in "
        "DIBS_URL. Every member can release and break locks of the others, "
        "and delete the store.\n",
    .examples =
        "Once, as root; then the cron jobs of root and of the group "
        "exclude each other:\n"
        "  dibs store share --group users\n"
        "  echo 'url: sqlite:/var/lib/dibs/dibs.db' | install -D -m 644 "
        "/dev/stdin /etc/dibs/dibs.yaml\n"
        "A store of one project, by one of its members:\n"
        "  dibs --url sqlite:/srv/project/locks/dibs.db store share "
        "--group project\n",
    .exits = "0 the group can use it\n"
             "77 this user may not make it\n"
             "78 the folder is unfit, or the file is no store of dibs\n",
    .options = "json",
    .run = share_file,
};
