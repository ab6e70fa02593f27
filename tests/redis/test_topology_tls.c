/* test_topology_tls.c - TLS to everybody: sentinels and the servers they name, and
 * the servers of a cluster. */
/* SPDX-License-Identifier: MIT */
#include "hosting.h"
#include "redis_world.h"

/* Certificates, in the folder of a server that is not used otherwise. */
static server store;

static int make_certs(void **state)
{
    (void)state;
    return server_start_tls(&store, "server") ? 0 : -1;
}

static int drop_certs(void **state)
{
    (void)state;
    server_stop(&store);
    return 0;
}

/* The words of a server that speaks TLS to all, as pointers into itself. */
typedef struct words {
    const char *list[SERVER_ARGS_MAX + 1];
    size_t count;
    char port[16], cert[96], key[96], ca[96];
} words;

static void add(words *wd, const char *option, const char *value)
{
    wd->list[wd->count++] = option;
    wd->list[wd->count++] = value;
    wd->list[wd->count] = NULL;
}

/* Returns the port for TLS. */
static int begin(words *wd)
{
    int port = hosting_free_port();

    wd->count = 0;
    snprintf(wd->port, sizeof(wd->port), "%d", port);
    snprintf(wd->cert, sizeof(wd->cert), "%s/server.pem", store.dir);
    snprintf(wd->key, sizeof(wd->key), "%s/server.key", store.dir);
    snprintf(wd->ca, sizeof(wd->ca), "%s/ca.pem", store.dir);
    add(wd, "--tls-port", wd->port);
    add(wd, "--tls-cert-file", wd->cert);
    add(wd, "--tls-key-file", wd->key);
    add(wd, "--tls-ca-cert-file", wd->ca);
    add(wd, "--tls-replication", "yes");
    add(wd, "--repl-diskless-sync-delay", "0");
    return port;
}

/* Starts a server, or a replica of the one at this port, with a port for TLS that
 * nobody else has taken meanwhile; that port, or 0. */
static int start_tls(server *sv, words *wd, const char *primary_port)
{
    for (int i = 0; i < 5; i++) {
        int port = begin(wd);

        if (primary_port) {
            add(wd, "--replicaof", "127.0.0.1");
            wd->list[wd->count++] = primary_port;
            wd->list[wd->count] = NULL;
        }
        if (server_start_forgetful(sv, wd->list))
            return port;
    }
    return 0;
}

/* What a URL needs for a certificate authority of this name. */
static void add_params(char *url, const char *ca)
{
    size_t len = strlen(url);

    snprintf(url + len, SERVER_URL_MAX - len,
             "ca=%s/%s.pem&cert=%s/client.pem&key=%s/client.key", store.dir, ca,
             store.dir, store.dir);
}

static void expect_denied(const char *url)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_DENIED, dibs_open(url, NULL, &cl, err));
    assert_null(cl);
}

/* Asks until the text is in the answer. */
static void await_text(const server *sv, const char *one, const char *two,
                       const char *three, const char *text)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 3 * WORLD_BOUND_MS);
    bool found = false;

    while (!found && dibsx_now() < end) {
        char *reply = server_ask(sv, one, two, three, NULL);

        found = reply && strstr(reply, text);
        free(reply);
        world_sleep_ms(10);
    }
    IN_TIME(found);
}

static bool start_sentinel(server *sv, int primary_port, int *tls_port)
{
    char lines[900];

    *tls_port = hosting_free_port();
    snprintf(lines, sizeof(lines),
             "tls-port %d\ntls-cert-file %s/server.pem\n"
             "tls-key-file %s/server.key\ntls-ca-cert-file %s/ca.pem\n"
             "tls-replication yes\n"
             "sentinel monitor tls 127.0.0.1 %d 1\n"
             "sentinel down-after-milliseconds tls 800\n"
             "sentinel failover-timeout tls 2000\n",
             *tls_port, store.dir, store.dir, store.dir, primary_port);
    return server_start_sentinel(sv, NULL, lines);
}

static void sentinels_and_the_primary_are_followed(void **state)
{
    server primary, replica, sentinel;
    words one, two;
    int primary_port, sentinel_port;
    char url[SERVER_URL_MAX], plain[SERVER_URL_MAX], wrong[SERVER_URL_MAX];
    char port[16];
    dibs_client *cl;
    dibs_lock *lock;

    (void)state;
    primary_port = start_tls(&primary, &one, NULL);
    assert_true(primary_port > 0);
    snprintf(port, sizeof(port), "%d", primary_port);
    assert_true(start_tls(&replica, &two, port) > 0);
    assert_true(start_sentinel(&sentinel, primary_port, &sentinel_port));
    await_text(&replica, "INFO", "replication", NULL, "master_link_status:up");
    await_text(&sentinel, "SENTINEL", "MASTER", "tls", "num-slaves\n1");
    snprintf(url, sizeof(url), "rediss-sentinel://127.0.0.1:%d/tls?",
             sentinel_port);
    memcpy(wrong, url, sizeof(wrong));
    add_params(url, "ca");
    add_params(wrong, "other_ca");
    snprintf(plain, sizeof(plain),
             "redis-sentinel://127.0.0.1:%d/tls?tls=1&sentinel_tls=0&",
             sentinel.port);
    add_params(plain, "ca");
    expect_denied(wrong);
    dibs_close(world_client(plain, 5000));
    cl = world_client(url, 10000);
    lock = world_lock(cl, "a", NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    server_kill(&primary);
    CHECK(DIBS_OK, world_try_until(lock, 3 * WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
    server_stop(&sentinel);
    server_stop(&replica);
    server_stop(&primary);
}

/* A server with half of the slots. */
static void start_master(server *sv, words *wd, const char *bus, int half)
{
    char first[16], last[16];

    add(wd, "--cluster-enabled", "yes");
    add(wd, "--cluster-port", bus);
    add(wd, "--tls-cluster", "yes");
    assert_true(server_start_forgetful(sv, wd->list));
    snprintf(first, sizeof(first), "%d", half * 8192);
    snprintf(last, sizeof(last), "%d", half * 8192 + 8191);
    assert_true(server_tell(sv, "CLUSTER", "ADDSLOTSRANGE", first, last, NULL));
}

static void a_cluster_is_known_by_its_tls_ports(void **state)
{
    server sv[2];
    words wd[2];
    char bus[2][16], url[SERVER_URL_MAX], wrong[SERVER_URL_MAX];
    int port[2];
    dibs_client *cl;

    (void)state;
    for (int i = 0; i < 2; i++) {
        port[i] = begin(&wd[i]);
        snprintf(bus[i], sizeof(bus[i]), "%d", hosting_free_port());
        start_master(&sv[i], &wd[i], bus[i], i);
    }
    assert_true(server_tell(&sv[1], "CLUSTER", "MEET", "127.0.0.1", wd[0].port,
                            bus[0], NULL));
    for (int i = 0; i < 2; i++)
        await_text(&sv[i], "CLUSTER", "INFO", NULL, "cluster_state:ok");
    snprintf(url, sizeof(url), "rediss-cluster://127.0.0.1:%d?", port[0]);
    memcpy(wrong, url, sizeof(wrong));
    add_params(url, "ca");
    add_params(wrong, "other_ca");
    expect_denied(wrong);
    cl = world_client(url, 5000);
    for (int i = 0; i < 20; i++) {
        char name[16];
        dibs_lock *lock;

        snprintf(name, sizeof(name), "name-%d", i);
        lock = world_lock(cl, name, NULL);
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        dibs_lock_free(lock);
    }
    for (int i = 0; i < 2; i++)
        assert_true(server_info(&sv[i], "commandstats", "cmdstat_evalsha") > 0);
    dibs_close(cl);
    for (int i = 0; i < 2; i++)
        server_stop(&sv[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentinels_and_the_primary_are_followed),
        cmocka_unit_test(a_cluster_is_known_by_its_tls_ports),
    };

    return cmocka_run_group_tests(tests, make_certs, drop_certs);
}
