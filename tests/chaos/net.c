/* net.c - see net.h. */
/* SPDX-License-Identifier: MIT */
#include "net.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What is to vanish is looked up in the table LOST, before anything else is. */
#define FIRST "10"
#define LOST  "77"

static bool entered;

static bool run_shell(const char *line)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0 && status == 0;
}

/* What has no other way goes out through a pair of devices of which nobody
 * listens to the far end. */
bool net_enter(void)
{
    if (geteuid() != 0 || !run_shell("command -v ip >/dev/null 2>&1") ||
        unshare(CLONE_NEWNET) != 0)
        return false;
    entered =
        run_shell("ip link set lo up && "
                  "ip link add void0 type veth peer name void1 2>/dev/null && "
                  "ip link set void0 arp off && ip link set void0 up && "
                  "ip link set void1 up && ip addr add 10.77.255.254/16 dev "
                  "void0 && ip route add default dev void0 table " LOST " && "
                  "ip rule add pref 100 lookup local && ip rule del pref 0");
    if (!entered) /* Without that, at least what is on this machine. */
        (void)run_shell("ip link set lo up");
    return entered;
}

bool net_is_ours(void)
{
    return entered;
}

static bool set_host(int number, const char *verb)
{
    char line[96];

    snprintf(line, sizeof(line), "ip addr %s 10.77.0.%d/32 dev lo", verb,
             number + 1);
    return run_shell(line);
}

bool net_host(int number, char out[NET_HOST])
{
    snprintf(out, NET_HOST, "%s%d", entered ? "10.77.0." : "127.0.0.",
             number + 1);
    return !entered || set_host(number, "add");
}

bool net_cut(int number)
{
    return set_host(number, "del");
}

bool net_mend(int number)
{
    return set_host(number, "add");
}

static bool lose(int from, int to)
{
    char line[128];

    snprintf(line, sizeof(line),
             "ip rule add pref " FIRST " from 10.77.0.%d to 10.77.0.%d "
             "lookup " LOST,
             from + 1, to + 1);
    return run_shell(line);
}

bool net_part(int one, int other)
{
    return lose(one, other) && (one == other || lose(other, one));
}

bool net_join(void)
{
    return run_shell("while ip rule del pref " FIRST
                     " 2>/dev/null; do :; done");
}
