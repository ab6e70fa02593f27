/* fleet.c - several real servers, as the nodes of a quorum. */
/* SPDX-License-Identifier: MIT */
#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fleet_vouch(const server *sv)
{
    return server_tell(sv, "HSET", "dibs:node", "run", "-", "durable", "1",
                       NULL);
}

bool fleet_start(fleet *fl, size_t count, bool durable)
{
    bool up = true;

    *fl = (fleet){.count = count};
    for (size_t i = 0; i < count && up; i++)
        up = (durable ? server_start(&fl->nodes[i], NULL)
                      : server_start_forgetful(&fl->nodes[i], NULL)) &&
             fleet_vouch(&fl->nodes[i]);
    if (!up)
        fleet_stop(fl);
    return up;
}

void fleet_stop(fleet *fl)
{
    for (size_t i = 0; i < fl->count; i++)
        server_stop(&fl->nodes[i]);
    fl->count = 0;
}

bool fleet_restart_empty(server *sv)
{
    sv->aof = false;
    return server_restart(sv);
}

void fleet_url(const fleet *fl, const char *params, char out[FLEET_URL_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < fl->count; i++)
        len +=
            (size_t)snprintf(out + len, FLEET_URL_MAX - len, "%s127.0.0.1:%d",
                             i ? "," : "redlock://", fl->nodes[i].port);
    if (*params)
        snprintf(out + len, FLEET_URL_MAX - len, "?%s", params);
}
