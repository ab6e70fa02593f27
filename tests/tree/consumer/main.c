/* main.c - takes and gives back one lease through an installed dibs.
 *
 * Compiled by tests/tree/test_install.sh against what `make install` put in
 * place. */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

int main(void)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    uint64_t fence = 0;

    if (dibs_open("memory:", NULL, &client, &err) != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    DIBS_WITH_LOCK(client, "installed", .ttl_ms = 5000)
    {
        fence = dibs_lock_fence(dibs_held);
    }
    dibs_close(client);
    printf("dibs %s, fence %llu\n", dibs_version(), (unsigned long long)fence);
    return fence > 0 ? 0 : 1;
}
