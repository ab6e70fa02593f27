/* bench_quorum.c - locks on a quorum of Redis servers, beside the bare driver.
 *
 *     bench_quorum BLOCKS PORT...    one thread; three to nine ports
 *
 * bench/pairs.h has the form of the output. The servers should be idle, of this
 * machine, and vote: run.sh tells each that it never granted
 * a lock. */
/* SPDX-License-Identifier: MIT */
#include "bench/majority.h"
#include "bench/pairs.h"
#include "bench/samples.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long blocks = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    int count = argc - 2, ports[MAJORITY_MAX];
    dibs_client *client;
    dibs_lock *lock;
    majority *mj;
    char url[512];
    int len;

    if (blocks < 1 || count < 3 || count > MAJORITY_MAX || count % 2 == 0)
        give_up("usage", "bench_quorum BLOCKS PORT...");
    len = snprintf(url, sizeof(url), "redlock://");
    for (int i = 0; i < count; i++) {
        ports[i] = (int)strtol(argv[2 + i], NULL, 10);
        len += snprintf(url + len, sizeof(url) - (size_t)len, "%s127.0.0.1:%d",
                        i ? "," : "", ports[i]);
    }
    mj = majority_open(ports, count);
    client = client_open(url);
    lock = lock_new(client, 0, 0);
    measure_pairs(&(side){majority_pair, mj}, &(side){lock_pair, lock},
                  (size_t)blocks);
    dibs_lock_free(lock);
    dibs_close(client);
    majority_close(mj);
    return 0;
}
