/* board_name.c - see board_name.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_name.h"

#include "base/fail.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char MAIN[] = "main";

dibs_status
dibs__board_split(dibs_client *cl, const char *name, dibs__board *board,
                  const char **inner, dibs_error *err)
{
    const char *slash = name ? strchr(name, '/') : NULL;
    char own[DIBS__JOB_NAME_SIZE];
    size_t len = slash ? (size_t)(slash - name) : 0;

    if (!cl || !name || len >= sizeof(own))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no name: NAME or BOARD/NAME",
                          name ? name : "");
    *inner = slash ? slash + 1 : name;
    if (!(*inner)[0] || strlen(*inner) >= DIBS__RUN_ID_SIZE)
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.60s' is no name: it is empty or too long", name);
    (void)snprintf(own, sizeof(own), "%.*s", (int)len, name);
    return dibs__board_init(board, cl, slash ? own : MAIN, err);
}

void dibs__board_join(const dibs__board *board, const char *run,
                      char out[DIBS_RUN_SIZE])
{
    bool is_main = strcmp(board->name, MAIN) == 0;

    (void)snprintf(out, DIBS_RUN_SIZE, "%s%s%s", is_main ? "" : board->name,
                   is_main ? "" : "/", run);
}

void dibs__board_whoami(char *out, size_t size)
{
    char host[64] = "", room[4096];
    struct passwd entry, *found = NULL;

    (void)gethostname(host, sizeof(host) - 1);
    (void)getpwuid_r(geteuid(), &entry, room, sizeof(room), &found);
    if (found)
        (void)snprintf(out, size, "%s@%s", entry.pw_name, host);
    else
        (void)snprintf(out, size, "%u@%s", (unsigned)geteuid(), host);
}
