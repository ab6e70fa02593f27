/* cluster_stage.c - see cluster_stage.h. */
/* SPDX-License-Identifier: MIT */
#include "cluster_stage.h"
#include "setuser.h"

#include "store/redis/cluster/slot.h"

cluster_world cw;
char cw_url[SERVER_URL_MAX];

int cluster_stage_begin(void **state)
{
    (void)state;
    IN_TIME(cluster_start(&cw));
    cluster_url(&cw, cw_url);
    return 0;
}

int cluster_stage_end(void **state)
{
    (void)state;
    cluster_stop(&cw);
    return 0;
}

int slot_of(const char *key)
{
    return dibs__slot_of(key, strlen(key));
}

const server *home_of(const char *key)
{
    int node = cluster_server_of(&cw, slot_of(key));

    assert_true(node >= 0);
    return &cw.sv[node];
}

dibs_client *client_of_user(const char *guide, const char *less)
{
    char text[SERVER_URL_MAX + 32];

    for (int i = 0; i < CLUSTER_NODES; i++) {
        const server *sv = &cw.sv[i];

        assert_true(setuser(sv, guide, "rights:"));
        assert_true(!less ||
                    server_tell(sv, "ACL", "SETUSER", "dibs", less, NULL));
    }
    snprintf(text, sizeof(text),
             "redis-cluster://dibs:%s@127.0.0.1:%d,127.0.0.1:%d",
             SETUSER_PASSWORD, cw.sv[0].port, cw.sv[1].port);
    return world_client(text, 5000);
}
