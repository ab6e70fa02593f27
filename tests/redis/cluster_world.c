/* cluster_world.c - see cluster_world.h. */
/* SPDX-License-Identifier: MIT */
#include "cluster_world.h"
#include "hosting.h"
#include "pace.h"

#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a healthy cluster does in a second or two. */
#define BOUND_MS pace_ms(30000)
enum { LOOK_MS = 5, SLOTS = 16384 };

/* Short enough for a test, and long enough that a busy machine is not taken for a
 * dead one: that would be a failover which loses what was answered. */
#define NODE_TIMEOUT_MS "1500"

static void pause_for(int span_ms)
{
    if (span_ms > 0)
        poll(NULL, 0, span_ms);
}

/* Asks until the reply has the text in it; false when that takes too long. */
static bool
await_text(const server *sv, const char *one, const char *two, const char *text)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    for (;;) {
        char *reply = server_ask(sv, one, two, NULL);
        bool found = reply && strstr(reply, text);

        free(reply);
        if (found)
            return true;
        if (dibsx_now() > end) {
            fprintf(stderr, "%s %s of port %d never said %s\n", one, two,
                    sv->port, text);
            return false;
        }
        pause_for(LOOK_MS);
    }
}

/* Says it until it is accepted. */
static bool
insist(const server *sv, const char *one, const char *two, const char *three)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (!server_tell(sv, one, two, three, NULL)) {
        if (dibsx_now() > end) {
            fprintf(stderr, "port %d refuses %s %s\n", sv->port, one, two);
            return false;
        }
        pause_for(LOOK_MS);
    }
    return true;
}

/* Says it once; what is refused is shown. */
static bool say(const server *sv, const char *const words[7])
{
    char *reply = server_ask(sv, words[0], words[1], words[2], words[3],
                             words[4], words[5], words[6], NULL);
    bool ok = reply && reply[0] != '-';

    if (!ok)
        fprintf(stderr, "port %d to %s %s %s: %s\n", sv->port, words[0],
                words[1], words[2], reply ? reply : "nothing");
    free(reply);
    return ok;
}

static bool
set_slot(const server *sv, int slot, const char *how, const char *id)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", slot);
    return say(sv, (const char *[7]){"CLUSTER", "SETSLOT", number, how, id});
}

static bool start_node(cluster_world *cw, int i, const char *host)
{
    server_place at = {.host = host};
    const char *const args[] = {"--cluster-enabled",
                                "yes",
                                "--cluster-config-file",
                                "nodes.conf",
                                "--cluster-node-timeout",
                                NODE_TIMEOUT_MS,
                                "--cluster-port",
                                cw->bus[i],
                                "--cluster-allow-replica-migration",
                                "no",
                                "--repl-diskless-sync-delay",
                                "0",
                                NULL};
    char *id;

    snprintf(cw->bus[i], sizeof(cw->bus[i]), "%d", hosting_free_port());
    if (!server_start_at(&cw->sv[i], &at, false, args))
        return false;
    id = server_ask(&cw->sv[i], "CLUSTER", "MYID", NULL);
    snprintf(cw->id[i], sizeof(cw->id[i]), "%s", id ? id : "");
    free(id);
    return cw->id[i][0] != '\0';
}

/* The masters share the slots. */
static bool give_slots(cluster_world *cw)
{
    bool ok = true;

    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        char first[16], last[16];

        snprintf(first, sizeof(first), "%d", i * SLOTS / CLUSTER_MASTERS);
        snprintf(last, sizeof(last), "%d",
                 (i + 1) * SLOTS / CLUSTER_MASTERS - 1);
        ok = ok && server_tell(&cw->sv[i], "CLUSTER", "ADDSLOTSRANGE", first,
                               last, NULL);
    }
    return ok;
}

static bool meet(cluster_world *cw)
{
    bool ok = true;

    for (int i = 0; i < CLUSTER_NODES; i++) {
        char epoch[16], port[16];

        snprintf(epoch, sizeof(epoch), "%d", i + 1);
        snprintf(port, sizeof(port), "%d", cw->sv[0].port);
        ok = ok && server_tell(&cw->sv[i], "CLUSTER", "SET-CONFIG-EPOCH", epoch,
                               NULL);
        if (i > 0)
            ok = ok && server_tell(&cw->sv[i], "CLUSTER", "MEET",
                                   cw->sv[0].host, port, cw->bus[0], NULL);
    }
    for (int i = 0; ok && i < CLUSTER_NODES; i++)
        ok = await_text(&cw->sv[i], "CLUSTER", "INFO",
                        "cluster_known_nodes:6") &&
             await_text(&cw->sv[i], "CLUSTER", "INFO", "cluster_state:ok");
    return ok;
}

static bool follow(cluster_world *cw)
{
    bool ok = true;

    for (int i = CLUSTER_MASTERS; ok && i < CLUSTER_NODES; i++)
        ok = insist(&cw->sv[i], "CLUSTER", "REPLICATE",
                    cw->id[i - CLUSTER_MASTERS]) &&
             await_text(&cw->sv[i], "INFO", "replication",
                        "master_link_status:up");
    return ok;
}

/* Until every node has heard of every replica. */
static bool await_heard(const server *sv)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    for (;;) {
        char *nodes = server_ask(sv, "CLUSTER", "NODES", NULL);
        int replicas = 0;

        for (const char *at = nodes; at && (at = strstr(at, "slave")); at++)
            replicas++;
        free(nodes);
        if (replicas == CLUSTER_NODES - CLUSTER_MASTERS)
            return true;
        if (dibsx_now() > end)
            return false;
        pause_for(LOOK_MS);
    }
}

bool cluster_start_at(cluster_world *cw, const char *const hosts[CLUSTER_NODES])
{
    bool ok = true;

    *cw = (cluster_world){.sv = {{.pid = 0}}};
    for (int i = 0; ok && i < CLUSTER_NODES; i++)
        ok = start_node(cw, i, hosts ? hosts[i] : NULL);
    ok = ok && give_slots(cw) && meet(cw) && follow(cw);
    for (int i = 0; ok && i < CLUSTER_NODES; i++)
        ok = await_heard(&cw->sv[i]);
    if (!ok) {
        fprintf(stderr, "the cluster did not come up\n");
        cluster_stop(cw);
    }
    return ok;
}

bool cluster_start(cluster_world *cw)
{
    return cluster_start_at(cw, NULL);
}

void cluster_stop(cluster_world *cw)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        server_stop(&cw->sv[i]);
}

void cluster_url(const cluster_world *cw, char out[SERVER_URL_MAX])
{
    snprintf(out, SERVER_URL_MAX, "redis-cluster://%s:%d,%s:%d,%s:%d",
             cw->sv[0].host, cw->sv[0].port, cw->sv[1].host, cw->sv[1].port,
             cw->sv[2].host, cw->sv[2].port);
}

/* Whether a line of CLUSTER NODES has the slot in one of its ranges, which come
 * after eight other words. */
static bool line_has(const char *text, int slot)
{
    for (int word = 0; word < 8; word++) {
        text += strcspn(text, " \n");
        if (*text != ' ')
            return false;
        text++;
    }
    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

        if (slot >= first && slot <= last)
            return true;
        text = *end == ' ' ? end + 1 : end;
    }
    return false;
}

static bool serves(const server *sv, int slot)
{
    bool there = sv->pid && !sv->paused;
    char *nodes = there ? server_ask(sv, "CLUSTER", "NODES", NULL) : NULL;
    const char *line = nodes;
    bool found = false;

    while (line && *line && !found) {
        size_t len = strcspn(line, "\n");
        const char *mine = strstr(line, "myself,master");

        found = mine && mine < line + len && line_has(line, slot);
        line += len + (line[len] == '\n');
    }
    free(nodes);
    return found;
}

int cluster_server_of(const cluster_world *cw, int slot)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (serves(&cw->sv[i], slot))
            return i;
    return -1;
}

static int slot_of(const server *sv)
{
    for (int slot = 0; slot < SLOTS; slot += SLOTS / 64)
        if (serves(sv, slot))
            return slot;
    return -1;
}

/* Whether all who follow it have what it has done. */
static bool is_drained(const server *sv)
{
    char *text = server_ask(sv, "INFO", "replication", NULL);
    const char *at = text ? strstr(text, "master_repl_offset:") : NULL;
    const char *of = text ? strstr(text, ",offset=") : NULL;
    bool same = at && of &&
                strtoll(at + strlen("master_repl_offset:"), NULL, 10) ==
                    strtoll(of + strlen(",offset="), NULL, 10);

    free(text);
    return same;
}

static bool await_drained(const server *sv)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (!is_drained(sv)) {
        if (dibsx_now() > end)
            return false;
        pause_for(LOOK_MS);
    }
    return true;
}

bool cluster_kill(cluster_world *cw, int node, int64_t *failover_ms)
{
    server *sv = &cw->sv[node];
    int slot = slot_of(sv);
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);
    dibsx_nsec killed_at;
    bool ok = true;

    if (slot < 0)
        return false;
    server_kill(sv);
    killed_at = dibsx_now();
    while (cluster_server_of(cw, slot) < 0) {
        if (dibsx_now() > end)
            return false;
        pause_for(LOOK_MS);
    }
    *failover_ms = (dibsx_now() - killed_at) / DIBSX_MS;
    for (int i = 0; ok && i < CLUSTER_NODES; i++)
        if (i != node)
            ok = await_text(&cw->sv[i], "CLUSTER", "INFO", "cluster_state:ok");
    return ok && server_restart(sv) &&
           await_text(sv, "INFO", "replication", "master_link_status:up") &&
           await_text(sv, "CLUSTER", "INFO", "cluster_state:ok");
}

bool cluster_await_other(const cluster_world *cw, int slot, int node)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), BOUND_MS);

    while (dibsx_now() < end) {
        for (int i = 0; i < CLUSTER_NODES; i++)
            if (i != node && serves(&cw->sv[i], slot))
                return true;
        pause_for(LOOK_MS);
    }
    fprintf(stderr, "nobody took over from port %d\n", cw->sv[node].port);
    return false;
}

bool cluster_await_follower(const cluster_world *cw, int node)
{
    const server *sv = &cw->sv[node];

    return await_text(sv, "INFO", "replication", "role:slave") &&
           await_text(sv, "INFO", "replication", "master_link_status:up") &&
           await_text(sv, "CLUSTER", "INFO", "cluster_state:ok");
}

bool cluster_await_well(const cluster_world *cw)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (!await_text(&cw->sv[i], "CLUSTER", "INFO", "cluster_state:ok"))
            return false;
    return true;
}

bool cluster_stall(cluster_world *cw, int node)
{
    int slot = slot_of(&cw->sv[node]);
    bool replaced;

    if (slot < 0)
        return false;
    server_pause(&cw->sv[node]);
    replaced = cluster_await_other(cw, slot, node);
    server_resume(&cw->sv[node]);
    return replaced && cluster_await_follower(cw, node);
}

bool cluster_crash(cluster_world *cw, int node, int64_t *failover_ms)
{
    server *sv = &cw->sv[node];

    /* From here on it answers no write, so nothing that was answered is lost. */
    return server_tell(sv, "CLIENT", "PAUSE", "20000", "WRITE", NULL) &&
           await_drained(sv) && cluster_kill(cw, node, failover_ms);
}

bool cluster_move_begin(cluster_world *cw, int slot, int from, int to)
{
    return set_slot(&cw->sv[to], slot, "IMPORTING", cw->id[from]) &&
           set_slot(&cw->sv[from], slot, "MIGRATING", cw->id[to]);
}

/* A starved node may take the cluster for down, for a moment: it is asked again. */
static bool migrate_key(const cluster_world *cw, int from, int to, char *key)
{
    char port[16];

    snprintf(port, sizeof(port), "%d", cw->sv[to].port);
    for (int tries = 0; tries < 3; tries++)
        if (await_text(&cw->sv[to], "CLUSTER", "INFO", "cluster_state:ok") &&
            say(&cw->sv[from], (const char *[7]){"MIGRATE", cw->sv[to].host,
                                                 port, key, "0", "5000"}))
            return true;
    return false;
}

bool cluster_move_keys(cluster_world *cw, int slot, int from, int to,
                       int pause_ms)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", slot);
    for (;;) {
        char *key = server_ask(&cw->sv[from], "CLUSTER", "GETKEYSINSLOT",
                               number, "1", NULL);
        bool ok = key != NULL, last = !key || !key[0];

        if (key)
            key[strcspn(key, "\n")] = '\0';
        pause_for(pause_ms);
        if (!last)
            ok = migrate_key(cw, from, to, key);
        free(key);
        if (last || !ok)
            return ok;
    }
}

bool cluster_move_end(cluster_world *cw, int slot, int from, int to)
{
    return set_slot(&cw->sv[to], slot, "NODE", cw->id[to]) &&
           set_slot(&cw->sv[from], slot, "NODE", cw->id[to]);
}

bool cluster_move(cluster_world *cw, int slot, int to, int pause_ms)
{
    int from = cluster_server_of(cw, slot);

    if (from < 0)
        return false;
    return from == to || (cluster_move_begin(cw, slot, from, to) &&
                          cluster_move_keys(cw, slot, from, to, pause_ms) &&
                          cluster_move_end(cw, slot, from, to));
}
