/* fleet.c - several real servers, as the nodes of a quorum.
 *
 * Runs on the thread of the test. */
/* SPDX-License-Identifier: MIT */
#include "fleet.h"

#include "hosting.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool make_clock(fleet_node *nd)
{
    void *at = MAP_FAILED;
    int fd;

    snprintf(nd->clock_path, sizeof(nd->clock_path), "%s/dibs-clock-XXXXXX",
             hosting_base());
    fd = mkstemp(nd->clock_path);
    if (fd >= 0 && ftruncate(fd, sizeof(*nd->ahead_us)) == 0)
        at = mmap(NULL, sizeof(*nd->ahead_us), PROT_READ | PROT_WRITE,
                  MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    nd->ahead_us = at == MAP_FAILED ? NULL : at;
    return nd->ahead_us != NULL;
}

bool fleet_vouch(fleet_node *nd)
{
    char *info = server_ask(&nd->sv, "INFO", "server", NULL);
    char *run = info ? strstr(info, "run_id:") : NULL;
    bool done = false;

    if (run) {
        run += strlen("run_id:");
        run[strcspn(run, "\r\n")] = '\0';
        done = server_tell(&nd->sv, "HSET", "dibs:node", "run", run, "durable",
                           "1", NULL);
    }
    free(info);
    return done;
}

static bool start_node(fleet_node *nd, const char *host, bool durable)
{
    return make_clock(nd) &&
           server_start_at(&nd->sv,
                           &(server_place){.host = host,
                                           .clock_path = nd->clock_path},
                           durable, NULL) &&
           fleet_vouch(nd);
}

bool fleet_start_at(fleet *fl, size_t count, bool durable,
                    const char *const *hosts)
{
    *fl = (fleet){.count = count};
    for (size_t i = 0; i < count; i++)
        if (!start_node(&fl->nodes[i], hosts ? hosts[i] : NULL, durable)) {
            fleet_stop(fl);
            return false;
        }
    return true;
}

bool fleet_start(fleet *fl, size_t count, bool durable)
{
    return fleet_start_at(fl, count, durable, NULL);
}

void fleet_stop(fleet *fl)
{
    for (size_t i = 0; i < fl->count; i++) {
        fleet_node *nd = &fl->nodes[i];

        server_stop(&nd->sv);
        if (nd->ahead_us)
            munmap((void *)nd->ahead_us, sizeof(*nd->ahead_us));
        if (nd->clock_path[0])
            unlink(nd->clock_path);
    }
    fl->count = 0;
}

bool fleet_restart(fleet_node *nd, bool empty)
{
    if (empty)
        server_forget(&nd->sv);
    return server_restart(&nd->sv);
}

void fleet_set_clock(fleet_node *nd, int64_t ahead_ms)
{
    atomic_store(nd->ahead_us, ahead_ms * 1000);
}

void fleet_url(const fleet *fl, const char *params, char out[FLEET_URL_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < fl->count; i++)
        len += (size_t)snprintf(out + len, FLEET_URL_MAX - len, "%s%s:%d",
                                i ? "," : "redlock://", fl->nodes[i].sv.host,
                                fl->nodes[i].sv.port);
    if (*params)
        snprintf(out + len, FLEET_URL_MAX - len, "?%s", params);
}
