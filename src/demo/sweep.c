/* sweep.c - taking back what workers that were killed still hold.
 *
 * Owns nothing. Primary's main thread, after its last worker has ended. */
/* SPDX-License-Identifier: MIT */
#include "demo/sweep.h"
#include "base/host.h"
#include "demo/demo.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct sweep {
    dibs_client *cl;
    const dibs__demo_log *log;
    char host[DIBSX_HOST_SIZE];
    char primary[32]; /* what workers of this primary have in their metadata */
} sweep;

/* "a=1\tprimary=7\tb=2" has "primary=7". */
static bool has(const char *meta, const char *pair)
{
    size_t len = strlen(pair);

    while (*meta) {
        size_t item = strcspn(meta, "\t");

        if (item == len && memcmp(meta, pair, len) == 0)
            return true;
        meta += item + (meta[item] != '\0');
    }
    return false;
}

static void take_back(const sweep *sw, const dibs_party *holder)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lease_break(sw->cl, DIBS__DEMO_LOCK, holder->fence,
                                      "its worker has ended", NULL, &err);

    if (rc == DIBS_OK)
        dibs__demo_say(sw->log, DIBS__DEMO_PLAIN, "lock_swept",
                       DIBS__DEMO_FACTS({"was_pid", NULL, holder->pid}),
                       "Took back the lock that %s (PID: %lld) left behind",
                       holder->label, (long long)holder->pid);
    else if (rc != DIBS_NOTFOUND && rc != DIBS_STALE)
        dibs__demo_say(sw->log, DIBS__DEMO_BAD, "lock_left", NULL,
                       "%s (PID: %lld) left the lock behind: %s", holder->label,
                       (long long)holder->pid, err.message);
}

static bool each(const dibs_lease_info *info, void *arg)
{
    const sweep *sw = arg;

    for (size_t i = 0; i < info->holder_count; i++) {
        const dibs_party *holder = &info->holders[i];

        if (!holder->left && strcmp(holder->host, sw->host) == 0 &&
            has(holder->meta, sw->primary))
            take_back(sw, holder);
    }
    return true;
}

void dibs__demo_sweep(dibs_client *cl, const dibs__demo_log *log)
{
    sweep sw = {.cl = cl, .log = log};
    dibs_error err = {0};
    dibs_status rc;

    dibsx_host_name(sw.host);
    snprintf(sw.primary, sizeof(sw.primary), "primary=%ld", (long)getpid());
    rc = dibs_lease_show(cl, DIBS__DEMO_LOCK, each, &sw, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        dibs__demo_say(log, DIBS__DEMO_BAD, "lock_left", NULL,
                       "Cannot see whether a lock was left behind: %s",
                       err.message);
}
