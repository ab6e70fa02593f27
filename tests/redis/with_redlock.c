/* with_redlock.c - runs a command on a quorum of redis-servers of its own.
 *
 *     with_redlock NODES PARAMETERS -- COMMAND [ARGUMENT...]
 *
 * Starts the servers, runs the command with the URL of the quorum as its last
 * argument, ends the servers, and returns what the command returned. PARAMETERS
 * go after the "?" of the URL; "" for none. */
/* SPDX-License-Identifier: MIT */
#include "fleet.h"
#include "run_on.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static fleet fl;
    char url[FLEET_URL_MAX];
    int code;

    if (argc < 5 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: with_redlock NODES PARAMETERS -- COMMAND "
                        "[ARGUMENT...]\n");
        return 2;
    }
    if (!fleet_start(&fl, strtoul(argv[1], NULL, 10), true))
        return 125;
    fleet_url(&fl, argv[2], url);
    code = run_on(url, argv + 4);
    fleet_stop(&fl);
    return code;
}
