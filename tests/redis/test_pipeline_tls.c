/* test_pipeline_tls.c - pipelines over TLS: good certificates, and every kind of bad one
 * with a message that says which. */
/* SPDX-License-Identifier: MIT */
#include "certs.h"
#include "pipeline_world.h"
#include "proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

static int setup(void **state)
{
    static server sv;

    *state = &sv;
    return server_start_tls(&sv, "server") ? 0 : -1;
}

static int teardown(void **state)
{
    server_stop(*state);
    return 0;
}

static void good_certificates_are_taken(void **state)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1"};
    char url[SERVER_URL_MAX];
    piped pd;

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        server_tls_url(*state, hosts[i], url);
        pipe_open(&pd, url);
        expect(&pd, "SET tls yes", "OK");
        expect(&pd, "GET tls", "yes");
        pipe_close(&pd);
    }
}

/* Over many records in both directions. */
static void large_values_pass(void **state)
{
    enum { SIZE = 6 << 20 };
    dibs__words words = {.count = 0};
    char url[SERVER_URL_MAX];
    char *bytes = malloc(SIZE);
    redisReply *reply = NULL;
    piped pd;

    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 13);
    server_tls_url(*state, "localhost", url);
    pipe_open(&pd, url);
    dibs__words_puts(&words, "ECHO");
    dibs__words_add(&words, bytes, SIZE);
    assert_status(dibs__pipeline_call(pd.pl, &words,
                                      dibsx_after_ms(dibsx_now(), 20000),
                                      &reply, &pd.err),
                  DIBS_OK);
    assert_int_equal(reply->len, SIZE);
    assert_memory_equal(reply->str, bytes, SIZE);
    dibs__reply_free(reply);
    pipe_close(&pd);
    free(bytes);
}

static void many_threads_share_one_session(void **state)
{
    char url[SERVER_URL_MAX];
    piped pd;

    server_tls_url(*state, "localhost", url);
    pipe_open(&pd, url);
    expect_crowd(&pd, 32, 200);
    pipe_close(&pd);
}

static void
expect_refusal(const char *url, dibs_status status, const char *said)
{
    int before = open_fds();
    piped pd;

    pipe_open(&pd, url);
    expect_status(&pd, 5000, "PING", status);
    if (!strstr(pd.err.message, said))
        fail_msg("%s: %s", url, pd.err.message);
    pipe_close(&pd);
    assert_int_equal(open_fds(), before);
}

static void bad_certificates_are_named(void **state)
{
    static const struct {
        const char *cert;
        const char *said;
    } cases[] = {
        {"expired", "it has expired"},
        {"wrong_host", "it is for another host"},
        {"localhost", "it is for another host"},
        {"wrong_ca", "its authority is not trusted"},
        {"self_signed", "it is self-signed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char url[SERVER_URL_MAX];
        server sv;
        piped pd;

        assert_true(server_start_tls(&sv, cases[i].cert));
        server_tls_url(&sv, "localhost", url);
        expect_refusal(url, DIBS_DENIED, cases[i].said);
        strncat(url, "&insecure=1", sizeof(url) - strlen(url) - 1);
        pipe_open(&pd, url);
        expect(&pd, "PING", "PONG");
        pipe_close(&pd);
        if (strcmp(cases[i].cert, "wrong_host") == 0) {
            server_tls_url(&sv, "127.0.0.1", url);
            expect_refusal(url, DIBS_DENIED, cases[i].said);
            server_tls_url(&sv, "localhost", url);
            strncat(url, "&sni=elsewhere.example",
                    sizeof(url) - strlen(url) - 1);
            pipe_open(&pd, url);
            expect(&pd, "PING", "PONG");
            pipe_close(&pd);
        }
        server_stop(&sv);
    }
}

/* A certificate for an address is for that one, and not for a name like it. */
static void an_address_is_looked_for_in_the_certificate(void **state)
{
    static const char *const others[] = {"127.0.0.2", "::2"};
    char url[SERVER_URL_MAX];

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        server_tls_url(*state, "localhost", url);
        strncat(url, "&sni=", sizeof(url) - strlen(url) - 1);
        strncat(url, others[i], sizeof(url) - strlen(url) - 1);
        expect_refusal(url, DIBS_DENIED, "it is for another host");
    }
}

static void the_systems_authorities_do_not_vouch_for_it(void **state)
{
    const server *sv = *state;
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "rediss://localhost:%d", sv->tls_port);
    expect_refusal(url, DIBS_DENIED, "its authority is not trusted");
}

static void a_server_may_want_our_certificate(void **state)
{
    const server *sv = *state;
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "rediss://localhost:%d?ca=%s/ca.pem",
             sv->tls_port, sv->dir);
    expect_refusal(url, DIBS_DENIED, "does not accept our certificate");
    snprintf(url, sizeof(url),
             "rediss://localhost:%d?ca=%s/ca.pem&cert=%s/self_signed.pem&"
             "key=%s/self_signed.key",
             sv->tls_port, sv->dir, sv->dir, sv->dir);
    expect_refusal(url, DIBS_DENIED, "does not accept our certificate");
}

static void files_that_cannot_be_used_are_named(void **state)
{
    static const char *const cases[][2] = {
        {"ca=/nonexistent/ca.pem", "ca cannot be used"},
        {"ca=/dev/null", "ca cannot be used"},
        {"cert=/nonexistent/client.pem", "cert cannot be used"},
        {"cert=%s/client.pem&key=%s/ca.key", "key cannot be used"},
        {"cert=%s/client.pem", "key cannot be used"},
    };
    const server *sv = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char url[SERVER_URL_MAX];
        size_t len = (size_t)snprintf(url, sizeof(url),
                                      "rediss://localhost:%d?", sv->tls_port);

        for (const char *c = cases[i][0]; *c; c++) {
            if (strncmp(c, "%s", 2) == 0) {
                len += (size_t)snprintf(url + len, sizeof(url) - len, "%s",
                                        sv->dir);
                c++;
            } else {
                url[len++] = *c;
            }
        }
        url[len] = '\0';
        expect_refusal(url, DIBS_INVALID, cases[i][1]);
    }
}

/* Where the one side speaks TLS and the other does not. */
static void plaintext_is_recognised(void **state)
{
    const server *sv = *state;
    char url[SERVER_URL_MAX], text[TEXT_MAX];
    dibs_status rc;
    piped pd;

    snprintf(url, sizeof(url), "redis://localhost:%d", sv->tls_port);
    pipe_open(&pd, url);
    rc = put(&pd, 5000, "PING", text);
    IN_TIME(rc != DIBS_UNKNOWN);
    assert_true(rc == DIBS_REFUSED || rc == DIBS_UNAVAIL);
    IN_TIME(strstr(pd.err.message, "rediss:") != NULL);
    pipe_close(&pd);

    /* The server takes the first bytes of TLS for a command that has no end. */
    snprintf(url, sizeof(url), "rediss://localhost:%d?connect_timeout=300ms",
             sv->port);
    pipe_open(&pd, url);
    rc = put(&pd, 5000, "PING", text);
    IN_TIME(rc != DIBS_UNKNOWN);
    assert_true(rc == DIBS_REFUSED || rc == DIBS_UNAVAIL);
    IN_TIME(strstr(pd.err.message, "TLS") != NULL);
    pipe_close(&pd);
}

static void a_server_that_stalls_keeps_nobody(void **state)
{
    char url[SERVER_URL_MAX];
    dibsx_nsec start = dibsx_now();
    piped pd;

    server_tls_url(*state, "localhost", url);
    pipe_open(&pd, url);
    server_pause(*state);
    expect_status(&pd, 200, "PING", DIBS_UNAVAIL);
    IN_TIME(strstr(pd.err.message, "handshake") != NULL);
    server_resume(*state);
    expect_soon(&pd, "PING", "PONG");
    server_pause(*state);
    expect_status(&pd, 200, "PING", DIBS_UNKNOWN);
    server_resume(*state);
    expect_soon(&pd, "PING", "PONG");
    IN_TIME(dibsx_now() < start + 20 * DIBSX_SEC);
    pipe_close(&pd);
}

/* A server that is never done with its first record. */
typedef struct trickler {
    int listener;
    int port;
    atomic_bool over;
    pthread_t thread;
} trickler;

static void *trickle(void *arg)
{
    static const char head[] = {0x16, 3, 3, 0x40, 0};
    trickler *tr = arg;
    int fd = accept(tr->listener, NULL, NULL);
    bool there = send(fd, head, sizeof(head), MSG_NOSIGNAL) > 0;

    while (there && !atomic_load(&tr->over)) {
        there = send(fd, "", 1, MSG_NOSIGNAL) == 1;
        poll(NULL, 0, 5);
    }
    close(fd);
    return NULL;
}

static void trickler_start(trickler *tr)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    atomic_init(&tr->over, false);
    tr->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(tr->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(tr->listener, 8), 0);
    getsockname(tr->listener, (struct sockaddr *)&at, &len);
    tr->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&tr->thread, NULL, trickle, tr), 0);
}

/* There is always something to read, so the clock alone can end it. */
static void a_handshake_without_an_end_keeps_nobody(void **state)
{
    int64_t step_ms = pace_ms(300);
    char url[SERVER_URL_MAX];
    dibsx_nsec from_at;
    trickler tr;
    piped pd;

    (void)state;
    trickler_start(&tr);
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", tr.port);
    pipe_open(&pd, url);
    from_at = dibsx_now();
    expect_status(&pd, step_ms, "PING", DIBS_UNAVAIL);
    IN_TIME(dibsx_now() < dibsx_after_ms(from_at, step_ms + pace_ms(1000)));
    IN_TIME(strstr(pd.err.message, "handshake") != NULL);
    pipe_close(&pd);
    atomic_store(&tr.over, true);
    pthread_join(tr.thread, NULL);
    close(tr.listener);
}

/* Through handshake, greeting and reply; the lengths of TLS vary, so the end is
 * where a call first goes through. */
static void a_session_is_cut_at_many_places(void **state)
{
    const server *sv = *state;
    server behind = *sv;
    char url[SERVER_URL_MAX], text[TEXT_MAX];
    dibs_status rc = DIBS_UNAVAIL;
    int unknown = 0;
    static proxy px;

    assert_true(proxy_start(&px, sv->tls_port));
    behind.tls_port = px.port;
    server_tls_url(&behind, "localhost", url);
    for (long at = 0; at < 20000 && rc != DIBS_OK; at += 1 + at / 100) {
        piped pd;

        proxy_arm(&px, at);
        pipe_open(&pd, url);
        rc = put(&pd, 5000, "PING", text);
        if (rc != DIBS_OK)
            assert_true(rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
        unknown += rc == DIBS_UNKNOWN;
        proxy_arm(&px, -1);
        expect_soon(&pd, "PING", "PONG");
        pipe_close(&pd);
    }
    CHECK(DIBS_OK, rc);
    assert_true(unknown > 0);
    proxy_stop(&px);
}

static void an_idle_session_outlives_a_restart(void **state)
{
    char url[SERVER_URL_MAX];
    piped pd;

    server_tls_url(*state, "localhost", url);
    pipe_open(&pd, url);
    expect(&pd, "PING", "PONG");
    assert_true(server_tell(*state, "CLIENT", "KILL", "TYPE", "normal", NULL));
    poll(NULL, 0, 150); /* Only then does it count as idle. */
    expect(&pd, "PING", "PONG");
    pipe_close(&pd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_certificates_are_taken),
        cmocka_unit_test(large_values_pass),
        cmocka_unit_test(many_threads_share_one_session),
        cmocka_unit_test(bad_certificates_are_named),
        cmocka_unit_test(an_address_is_looked_for_in_the_certificate),
        cmocka_unit_test(the_systems_authorities_do_not_vouch_for_it),
        cmocka_unit_test(a_server_may_want_our_certificate),
        cmocka_unit_test(files_that_cannot_be_used_are_named),
        cmocka_unit_test(plaintext_is_recognised),
        cmocka_unit_test(a_server_that_stalls_keeps_nobody),
        cmocka_unit_test(a_handshake_without_an_end_keeps_nobody),
        cmocka_unit_test(a_session_is_cut_at_many_places),
        cmocka_unit_test(an_idle_session_outlives_a_restart),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
