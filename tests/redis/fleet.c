/* fleet.c - several real servers, as the nodes of a quorum.
 *
 * Runs on the thread of the test. A server finds its clock through the
 * environment, which is set while it is started. */
/* SPDX-License-Identifier: MIT */
#include "fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static bool make_clock(fleet_node *nd)
{
    void *at = MAP_FAILED;
    int fd;

    snprintf(nd->clock_path, sizeof(nd->clock_path), "/tmp/dibs-clock-XXXXXX");
    fd = mkstemp(nd->clock_path);
    if (fd >= 0 && ftruncate(fd, sizeof(*nd->ahead_us)) == 0)
        at = mmap(NULL, sizeof(*nd->ahead_us), PROT_READ | PROT_WRITE,
                  MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    nd->ahead_us = at == MAP_FAILED ? NULL : at;
    return nd->ahead_us != NULL;
}

static void enter_clock(const fleet_node *nd)
{
    setenv("CLOCK_SHIM", nd->clock_path, 1);
    setenv("LD_PRELOAD", CLOCK_SHIM_LIBRARY, 1);
}

static void leave_clock(void)
{
    unsetenv("LD_PRELOAD");
    unsetenv("CLOCK_SHIM");
}

bool fleet_vouch(fleet_node *nd)
{
    return server_tell(&nd->sv, "HSET", "dibs:node", "run", "-", "durable", "1",
                       NULL);
}

static bool start_node(fleet_node *nd, bool durable)
{
    bool up;

    if (!make_clock(nd))
        return false;
    enter_clock(nd);
    up = durable ? server_start(&nd->sv, NULL)
                 : server_start_forgetful(&nd->sv, NULL);
    leave_clock();
    return up && fleet_vouch(nd);
}

bool fleet_start(fleet *fl, size_t count, bool durable)
{
    *fl = (fleet){.count = count};
    for (size_t i = 0; i < count; i++)
        if (!start_node(&fl->nodes[i], durable)) {
            fleet_stop(fl);
            return false;
        }
    return true;
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

/* What it wrote down. */
static void forget(const server *sv)
{
    char path[sizeof(sv->dir) + 32];
    pid_t pid = fork();

    if (pid == 0) {
        snprintf(path, sizeof(path), "%s/appendonlydir", sv->dir);
        execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

bool fleet_restart(fleet_node *nd, bool empty)
{
    bool up;

    if (empty)
        forget(&nd->sv);
    enter_clock(nd);
    up = server_restart(&nd->sv);
    leave_clock();
    return up;
}

void fleet_set_clock(fleet_node *nd, int64_t ahead_ms)
{
    atomic_store(nd->ahead_us, ahead_ms * 1000);
}

void fleet_url(const fleet *fl, const char *params, char out[FLEET_URL_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < fl->count; i++)
        len +=
            (size_t)snprintf(out + len, FLEET_URL_MAX - len, "%s127.0.0.1:%d",
                             i ? "," : "redlock://", fl->nodes[i].sv.port);
    if (*params)
        snprintf(out + len, FLEET_URL_MAX - len, "?%s", params);
}
