/* test_faults_tls.c - TLS that is as it should be, and TLS that is not: bad
 * certificates on either side, or none where there should be one. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "redis_world.h"

enum { TIMEOUT_MS = 2000 };

static int start(void **state)
{
    world *w = calloc(1, sizeof(*w));

    *state = w;
    return w && server_start_tls(&w->sv, "server") ? 0 : -1;
}

static int stop(void **state)
{
    world *w = *state;

    server_stop(&w->sv);
    free(w);
    return 0;
}

static void a_good_certificate_is_accepted(void **state)
{
    world *w = *state;
    dibs_error why = {0};
    char url[SERVER_URL_MAX];

    server_tls_url(&w->sv, "localhost", url);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_OK);
    server_tls_url(&w->sv, "127.0.0.1", url);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_OK);
}

/* The server shows another certificate from now on. */
static void show(world *w, const char *cert)
{
    server_await_written(&w->sv);
    server_kill(&w->sv);
    snprintf(w->sv.cert, sizeof(w->sv.cert), "%s", cert);
    assert_true(server_restart(&w->sv));
}

static void bad_certificates_are_denied(void **state)
{
    static const char *const bad[] = {"expired", "wrong_host", "wrong_ca",
                                      "self_signed"};
    world *w = *state;
    char url[SERVER_URL_MAX], insecure[SERVER_URL_MAX + 16];

    server_tls_url(&w->sv, "localhost", url);
    snprintf(insecure, sizeof(insecure), "%s&insecure=1", url);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dibs_error why = {0};

        show(w, bad[i]);
        assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_DENIED);
        assert_non_null(strstr(why.message, "certificate"));
        assert_status(world_try_url(insecure, TIMEOUT_MS, &why), DIBS_OK);
    }
}

/* The name that is asked for and verified can be another than the host's. */
static void a_name_can_be_given(void **state)
{
    world *w = *state;
    dibs_error why = {0};
    char url[SERVER_URL_MAX], named[SERVER_URL_MAX + 32];

    show(w, "wrong_host");
    server_tls_url(&w->sv, "localhost", url);
    snprintf(named, sizeof(named), "%s&sni=elsewhere.example", url);
    assert_status(world_try_url(named, TIMEOUT_MS, &why), DIBS_OK);
}

/* To a plain server a handshake is the beginning of a line, so it may wait for
 * the rest or call it nonsense. */
static void a_plain_server_is_refused(void **state)
{
    world *w = *state;
    server plain = w->sv;
    dibs_error why = {0};
    dibs_status rc;
    char url[SERVER_URL_MAX];

    plain.tls_port = w->sv.port;
    server_tls_url(&plain, "localhost", url);
    rc = world_try_url(url, TIMEOUT_MS, &why);
    assert_true(rc == DIBS_REFUSED || rc == DIBS_UNAVAIL);
    assert_non_null(strstr(why.message, "TLS"));
}

static void a_tls_server_is_told_apart_from_a_plain_one(void **state)
{
    world *w = *state;
    dibs_error why = {0};
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", w->sv.tls_port);
    assert_int_not_equal(world_try_url(url, TIMEOUT_MS, &why), DIBS_OK);
    assert_non_null(strstr(why.message, "TLS"));
}

/* Authorities of our own are none of the system's. */
static void an_unknown_authority_is_denied(void **state)
{
    world *w = *state;
    dibs_error why = {0};
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url),
             "rediss://localhost:%d?cert=%s/client.pem&"
             "key=%s/client.key",
             w->sv.tls_port, w->sv.dir, w->sv.dir);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_DENIED);
}

static void the_server_wants_a_certificate_too(void **state)
{
    world *w = *state;
    dibs_error why = {0};
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "rediss://localhost:%d?ca=%s/ca.pem",
             w->sv.tls_port, w->sv.dir);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_DENIED);
    snprintf(url, sizeof(url),
             "rediss://localhost:%d?ca=%s/ca.pem&cert=%s/wrong_ca.pem&"
             "key=%s/wrong_ca.key",
             w->sv.tls_port, w->sv.dir, w->sv.dir, w->sv.dir);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_DENIED);
}

static void files_that_cannot_be_used_are_invalid(void **state)
{
    world *w = *state;
    dibs_error why = {0};
    char url[SERVER_URL_MAX];

    snprintf(url, sizeof(url), "rediss://localhost:%d?ca=%s/none.pem",
             w->sv.tls_port, w->sv.dir);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_INVALID);
    snprintf(url, sizeof(url),
             "rediss://localhost:%d?ca=%s/ca.pem&cert=%s/client.pem&"
             "key=%s/server.key",
             w->sv.tls_port, w->sv.dir, w->sv.dir, w->sv.dir);
    assert_status(world_try_url(url, TIMEOUT_MS, &why), DIBS_INVALID);
}

/* A record that is cut is no answer, whatever it would have said. */
static void a_record_cut_at_any_byte_is_unknown(void **state)
{
    world *w = *state;
    server behind = w->sv;
    dibs_client *cl;
    dibs_lock *lock;
    char url[SERVER_URL_MAX];
    static proxy px;

    assert_true(proxy_start(&px, w->sv.tls_port));
    behind.tls_port = px.port;
    server_tls_url(&behind, "localhost", url);
    cl = world_client(url, TIMEOUT_MS);
    lock = world_lock(cl, "k", DIBS_LOCK_OPTS(.ttl_ms = 1000));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    for (long n = 0; n < 40; n += 3) {
        CHECK(DIBS_OK, dibs_ping(cl, NULL, err));
        proxy_arm(&px, n);
        CHECK(DIBS_UNKNOWN, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, world_try_until(lock, 1500));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    }
    dibs_lock_free(lock);
    dibs_close(cl);
    proxy_stop(&px);
}

#define TLS_TEST(fn) cmocka_unit_test_setup_teardown(fn, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_good_certificate_is_accepted),
        TLS_TEST(bad_certificates_are_denied),
        TLS_TEST(a_name_can_be_given),
        TLS_TEST(a_plain_server_is_refused),
        TLS_TEST(a_tls_server_is_told_apart_from_a_plain_one),
        TLS_TEST(an_unknown_authority_is_denied),
        TLS_TEST(the_server_wants_a_certificate_too),
        TLS_TEST(files_that_cannot_be_used_are_invalid),
        TLS_TEST(a_record_cut_at_any_byte_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
