/* quorum_world.c - see quorum_world.h. */
/* SPDX-License-Identifier: MIT */
#include "quorum_world.h"

static void listen_in(dibs_log_level level, const char *event,
                      const char *message, void *arg)
{
    quorum *q = arg;

    (void)level;
    if (strcmp(event, "alarm") != 0)
        return;
    print_message("alarm: %s\n", message);
    atomic_fetch_add(&q->alarms, 1);
}

static dibs_client *client(quorum *q)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK,
          dibs_open(q->url,
                    DIBS_CLIENT_OPTS(.timeout_ms = 2000, .log = listen_in,
                                     .log_arg = q, .log_level = DIBS_LOG_WARN),
                    &cl, err));
    return cl;
}

static int settle_in(void **state, bool durable)
{
    quorum *q = calloc(1, sizeof(*q));

    *state = q;
    if (!q || !fleet_start(&q->fl, QUORUM_NODES, durable))
        return -1;
    fleet_url(&q->fl, quorum_params, q->url);
    q->one = client(q);
    q->other = client(q);
    return 0;
}

int quorum_setup(void **state)
{
    return settle_in(state, true);
}

int quorum_setup_forgetful(void **state)
{
    return settle_in(state, false);
}

int quorum_teardown(void **state)
{
    quorum *q = *state;

    if (!q)
        return -1;
    dibs_close(q->one);
    dibs_close(q->other);
    fleet_stop(&q->fl);
    free(q);
    return 0;
}

char *quorum_field(quorum *q, size_t node, const char *name, const char *field)
{
    return server_ask(&q->fl.nodes[node].sv, "HGET", name, field, NULL);
}

size_t quorum_holding(quorum *q, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < q->fl.count; i++) {
        char *owner =
            q->fl.nodes[i].sv.pid ? quorum_field(q, i, name, "owner") : NULL;

        count += owner && strlen(owner) == DIBS_OWNER_SIZE - 1;
        free(owner);
    }
    return count;
}

void quorum_await_holding(quorum *q, const char *name, size_t count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);

    while (quorum_holding(q, name) != count) {
        if (dibsx_now() >= end)
            MISSED("%zu nodes have %s, not %zu", quorum_holding(q, name), name,
                   count);
        world_sleep_ms(5);
    }
}

void quorum_restart_noted(quorum *q, size_t node)
{
    static const char *const fields[] = {"run", "from", "longest", "durable",
                                         "seen"};
    enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
    fleet_node *nd = &q->fl.nodes[node];
    char *noted[FIELDS];

    for (size_t i = 0; i < FIELDS; i++) {
        noted[i] = server_ask(&nd->sv, "HGET", "dibs:node", fields[i], NULL);
        assert_non_null(noted[i]);
    }
    server_kill(&nd->sv);
    assert_true(fleet_restart(nd, true));
    for (size_t i = 0; i < FIELDS; i++) {
        assert_true(server_tell(&nd->sv, "HSET", "dibs:node", fields[i],
                                noted[i], NULL));
        free(noted[i]);
    }
}

void quorum_await_ready(dibs_client *cl)
{
    dibs_lock *lock = world_lock(cl, "ready", DIBS_LOCK_OPTS(.ttl_ms = 1000));

    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}
