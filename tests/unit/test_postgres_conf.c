/* test_postgres_conf.c - what a postgres:// URL says to libpq and to us. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/conf.h"
#include "unit.h"

#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

static dibs_status read_conf(const char *text, dibs__pg_conf *conf)
{
    dibs_error err = {0};
    dibsx_url url;
    dibs_status rc = dibsx_url_parse(text, &url, &err);

    assert_int_equal(rc, DIBS_OK);
    rc = dibs__pg_conf_read(&url, conf, &err);
    dibsx_url_fini(&url);
    assert_true(rc == DIBS_OK || err.message[0]);
    assert_null(strstr(err.message, "s3cret"));
    return rc;
}

/* What libpq is told; NULL when nothing. */
static const char *word(const dibs__pg_words *words, const char *name)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->names[i], name) == 0)
            return words->values[i];
    return NULL;
}

static void every_part_goes_to_libpq(void **state)
{
    dibs__pg_conf conf;

    (void)state;
    assert_int_equal(
        read_conf("postgres://me:s3cret@db.example:6543/app"
                  "?sslmode=verify-full&passfile=%2Fetc%2Fpw&keepalives_idle=3",
                  &conf),
        DIBS_OK);
    assert_string_equal(word(&conf.steps, "host"), "db.example");
    assert_string_equal(word(&conf.steps, "port"), "6543");
    assert_string_equal(word(&conf.steps, "user"), "me");
    assert_string_equal(word(&conf.steps, "password"), "s3cret");
    assert_string_equal(word(&conf.steps, "dbname"), "app");
    assert_string_equal(word(&conf.steps, "sslmode"), "verify-full");
    assert_string_equal(word(&conf.steps, "passfile"), "/etc/pw");
    assert_string_equal(word(&conf.steps, "keepalives_idle"), "3");
    assert_string_equal(word(&conf.steps, "tcp_user_timeout"), "10000");
    assert_string_equal(word(&conf.steps, "client_encoding"), "UTF8");
    assert_null(conf.steps.names[conf.steps.count]);
    assert_null(word(&conf.steps, "target_session_attrs"));
    dibs__pg_conf_fini(&conf);
}

static void what_is_not_said_is_left_to_libpq(void **state)
{
    static const char *const quiet[] = {"host", "port", "user", "dbname",
                                        "password"};
    dibs__pg_conf conf;

    (void)state;
    assert_int_equal(read_conf("postgresql:///?service=locks", &conf), DIBS_OK);
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
        assert_null(word(&conf.steps, quiet[i]));
    assert_string_equal(word(&conf.steps, "service"), "locks");
    dibs__pg_conf_fini(&conf);
}

static void several_hosts_are_a_list(void **state)
{
    dibs__pg_conf conf;

    (void)state;
    assert_int_equal(read_conf("postgres://a,b:5433,[::1]/app", &conf),
                     DIBS_OK);
    assert_string_equal(word(&conf.steps, "host"), "a,b,::1");
    assert_string_equal(word(&conf.steps, "port"), ",5433,");
    assert_string_equal(word(&conf.steps, "target_session_attrs"),
                        "read-write");
    dibs__pg_conf_fini(&conf);
    assert_int_equal(read_conf("postgres://%2Frun%2Fpg/app", &conf), DIBS_OK);
    assert_string_equal(word(&conf.steps, "host"), "/run/pg");
    dibs__pg_conf_fini(&conf);
    assert_int_equal(read_conf("postgres://h/app?ssl=true", &conf), DIBS_OK);
    assert_string_equal(word(&conf.steps, "sslmode"), "require");
    assert_null(word(&conf.steps, "ssl"));
    dibs__pg_conf_fini(&conf);
}

static void
expect_session(const char *url, const char *steps, const char *listen)
{
    dibs__pg_conf conf;
    const char *got;

    assert_int_equal(read_conf(url, &conf), DIBS_OK);
    got = word(&conf.steps, "target_session_attrs");
    assert_string_equal(got ? got : "none", steps);
    got = word(&conf.listen, "target_session_attrs");
    assert_string_equal(got ? got : "none", listen);
    dibs__pg_conf_fini(&conf);
}

/* libpq looks for the primary, wherever the hosts are named. */
static void one_of_several_hosts_must_take_writes(void **state)
{
    static const char rw[] = "read-write";

    (void)state;
    expect_session("postgres:///app?host=a,b", rw, rw);
    expect_session("postgres:///app?host=a", "none", "none");
    expect_session("postgres:///app?hostaddr=10.0.0.1,10.0.0.2", rw, rw);
    expect_session("postgres://a/app?listen_host=b,c", "none", rw);
    expect_session("postgres:///app?host=a,b&target_session_attrs=primary",
                   "primary", "primary");
    expect_session("postgres://a,b/app?target_session_attrs=any", "any", "any");
    setenv("PGHOST", "a,b", 1);
    expect_session("postgres:///app", rw, rw);
    expect_session("postgres://a/app", "none", "none");
    setenv("PGHOST", "a", 1);
    expect_session("postgres:///app", "none", "none");
    setenv("PGHOSTADDR", "10.0.0.1,10.0.0.2", 1);
    expect_session("postgres:///app", rw, rw);
    unsetenv("PGHOST");
    unsetenv("PGHOSTADDR");
    expect_session("postgres:///app", "none", "none");
}

static void our_own_are_taken_out(void **state)
{
    static const char *const own[] = {"schema",    "strict",      "pool",
                                      "pooler",    "listen_host", "listen_port",
                                      "cleartext", "lazy"};
    dibs__pg_conf conf;

    (void)state;
    assert_int_equal(
        read_conf(
            "postgres://pooler:6432/app?schema=a%22b&strict=1&pool=3&"
            "pooler=transaction&listen_host=db&listen_port=5432&cleartext=1&"
            "lazy=1",
            &conf),
        DIBS_OK);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        assert_null(word(&conf.steps, own[i]));
    assert_string_equal(conf.schema, "\"a\"\"b\"");
    assert_true(conf.strict);
    assert_true(conf.listens_apart);
    assert_true(conf.cleartext);
    assert_true(conf.lazy);
    assert_int_equal(conf.pool, 3);
    assert_int_equal(conf.pooler, DIBS__PG_POOLER_TRANSACTION);
    assert_string_equal(word(&conf.steps, "host"), "pooler");
    assert_string_equal(word(&conf.listen, "host"), "db");
    assert_string_equal(word(&conf.listen, "port"), "5432");
    dibs__pg_conf_fini(&conf);
}

static void bad_ones_are_refused(void **state)
{
    static const char *const bad[] = {
        "postgres://h/d?schema=",          "postgres://h/d?schema=a%27b",
        "postgres://h/d?pool=0",           "postgres://h/d?pool=many",
        "postgres://h/d?strict=yes",       "postgres://h/d?pooler=session",
        "postgres://h/d?pool=3&strict=no", "postgres://h/d?cleartext=yes",
    };
    dibs__pg_conf conf;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_conf(bad[i], &conf), DIBS_INVALID);
        dibs__pg_conf_fini(&conf);
    }
}

static void the_schema_is_put_in_wherever_it_belongs(void **state)
{
    dibs__pg_conf conf;
    char *text;

    (void)state;
    assert_int_equal(read_conf("postgres://h/d?schema=s", &conf), DIBS_OK);
    text = dibs__pg_with_schema(&conf, "@schema@.a, b@schema@");
    assert_string_equal(text, "\"s\".a, b\"s\"");
    dibsx_free(text);
    dibs__pg_conf_fini(&conf);
}

/* Every allocation may fail; nothing leaks and nothing is half done. */
static void memory_may_run_short(void **state)
{
    dibs_error err = {0};
    dibs__pg_conf conf;
    dibs_status rc;
    dibsx_url url;

    (void)state;
    assert_int_equal(dibsx_url_parse("postgres://u:s3cret@a,b/d?schema=x&"
                                     "listen_host=c&sslmode=require",
                                     &url, &err),
                     DIBS_OK);
    for (unsigned long n = 1;; n++) {
        dibsx_alloc_fail_at(n);
        rc = dibs__pg_conf_read(&url, &conf, &err);
        dibsx_alloc_fail_at(0);
        dibs__pg_conf_fini(&conf);
        if (rc == DIBS_OK)
            break;
        assert_int_equal(rc, DIBS_NOMEM);
        assert_true(n < 1000);
    }
    dibsx_url_fini(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_goes_to_libpq),
        cmocka_unit_test(what_is_not_said_is_left_to_libpq),
        cmocka_unit_test(several_hosts_are_a_list),
        cmocka_unit_test(one_of_several_hosts_must_take_writes),
        cmocka_unit_test(our_own_are_taken_out),
        cmocka_unit_test(bad_ones_are_refused),
        cmocka_unit_test(the_schema_is_put_in_wherever_it_belongs),
        cmocka_unit_test(memory_may_run_short),
    };

    return cmocka_run_group_tests_name("postgres conf", tests, NULL, NULL);
}
