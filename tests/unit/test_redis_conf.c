/* test_redis_conf.c - where a Redis server is: URLs, connection strings, the
 * environment, and what is refused. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "store/redis/wire/conf.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int clear_environment(void **state)
{
    (void)state;
    unsetenv("REDIS_URL");
    unsetenv("REDIS_HOST");
    unsetenv("REDIS_PORT");
    unsetenv("REDISCLI_AUTH");
    unsetenv("DIBS_REDIS_PASSWORD");
    unsetenv("DIBS_REDIS_SENTINEL_PASSWORD");
    return 0;
}

static dibs_status
read_text(const char *text, dibs__redis_conf *conf, dibs_error *err)
{
    char *translated = NULL;
    dibsx_url url = {0};
    dibs_status rc = DIBS_OK;

    *conf = (dibs__redis_conf){0};
    if (dibs__redis_is_stackexchange(text))
        rc = dibs__redis_stackexchange_url(text, &translated, err);
    if (rc == DIBS_OK)
        rc = dibsx_url_parse(translated ? translated : text, &url, err);
    if (rc == DIBS_OK)
        rc = dibs__redis_conf_read(&url, conf, err);
    dibsx_url_fini(&url);
    dibsx_free(translated);
    return rc;
}

static void read_good(const char *text, dibs__redis_conf *conf)
{
    dibs_error err = {0};

    if (read_text(text, conf, &err) != DIBS_OK)
        fail_msg("%s: %s", text, err.message);
}

static void same(const char *text, const char *got, const char *expected)
{
    if (!expected ? got != NULL : !got || strcmp(got, expected) != 0)
        fail_msg("%s: \"%s\" and not \"%s\"", text, got ? got : "(null)",
                 expected ? expected : "(null)");
}

typedef struct good {
    const char *text;
    const char *host;
    int port;
    const char *user, *password;
    int db;
    bool tls;
} good;

static void check_good(const good *c)
{
    dibs__redis_conf conf;

    read_good(c->text, &conf);
    same(c->text, conf.host, c->host);
    same(c->text, conf.user, c->user);
    same(c->text, conf.password, c->password);
    same(c->text, conf.client_name, "dibs");
    assert_int_equal(conf.port, c->port);
    assert_int_equal(conf.db, c->db);
    assert_int_equal(conf.tls, c->tls);
    assert_null(conf.path);
    assert_false(conf.insecure || conf.strict);
    dibs__redis_conf_fini(&conf);
    assert_null(conf.host);
    assert_null(conf.password);
}

static void urls_are_read(void **state)
{
    static const good cases[] = {
        {"redis:", "localhost", 6379, NULL, NULL, 0, false},
        {"redis://", "localhost", 6379, NULL, NULL, 0, false},
        {"redis:///", "localhost", 6379, NULL, NULL, 0, false},
        {"redis:///7", "localhost", 6379, NULL, NULL, 7, false},
        {"rediss:", "localhost", 6379, NULL, NULL, 0, true},
        {"redis://h", "h", 6379, NULL, NULL, 0, false},
        {"redis://h/", "h", 6379, NULL, NULL, 0, false},
        {"redis://h:1/2", "h", 1, NULL, NULL, 2, false},
        {"redis://h?db=3", "h", 6379, NULL, NULL, 3, false},
        {"rediss://u:p@h:6380/1", "h", 6380, "u", "p", 1, true},
        {"redis://:p%40%3a@h", "h", 6379, NULL, "p@:", 0, false},
        {"redis://u@h", "h", 6379, "u", NULL, 0, false},
        {"redis://:p@h?user=u", "h", 6379, "u", "p", 0, false},
        {"redis://[::1]:7", "::1", 7, NULL, NULL, 0, false},
        {"REDIS://H", "H", 6379, NULL, NULL, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_good(&cases[i]);
}

static void a_cluster_has_several_hosts(void **state)
{
    dibs__redis_conf conf;

    (void)state;
    read_good("rediss-cluster://u:p@a:7000,b,[::1]:7002?ca=/c", &conf);
    assert_int_equal(conf.seed_count, 3);
    assert_string_equal(conf.seeds[0].name, "a");
    assert_int_equal(conf.seeds[0].port, 7000);
    assert_string_equal(conf.seeds[1].name, "b");
    assert_int_equal(conf.seeds[1].port, 6379);
    assert_string_equal(conf.seeds[2].name, "::1");
    assert_int_equal(conf.seeds[2].port, 7002);
    assert_string_equal(conf.password, "p");
    assert_true(conf.tls && conf.unbatched);
    assert_true(conf.connect_timeout_ms > 0);
    dibs__redis_conf_fini(&conf);
    assert_int_equal(conf.seed_count, 0);
    read_good("redis://h", &conf);
    assert_int_equal(conf.seed_count, 0);
    assert_false(conf.unbatched);
    dibs__redis_conf_fini(&conf);
    read_good("redis-cluster:", &conf);
    assert_int_equal(conf.seed_count, 1);
    assert_string_equal(conf.seeds[0].name, "localhost");
    dibs__redis_conf_fini(&conf);
    setenv("REDIS_URL", "redis-cluster://x:1,y:2", 1);
    read_good("redis:", &conf);
    assert_int_equal(conf.seed_count, 2);
    assert_string_equal(conf.seeds[1].name, "y");
    dibs__redis_conf_fini(&conf);
    unsetenv("REDIS_URL");
}

static void parameters_are_read(void **state)
{
    dibs__redis_conf conf;

    (void)state;
    read_good("rediss://h?ca=/c&cert=/d&key=/e&sni=f&insecure=1&strict=true&"
              "client_name=me&connect_timeout=1.5s",
              &conf);
    assert_string_equal(conf.ca, "/c");
    assert_string_equal(conf.cert, "/d");
    assert_string_equal(conf.key, "/e");
    assert_string_equal(conf.sni, "f");
    assert_string_equal(conf.client_name, "me");
    assert_true(conf.insecure && conf.strict && conf.tls);
    assert_int_equal(conf.connect_timeout_ms, 1500);
    dibs__redis_conf_fini(&conf);
    read_good("redis+unix://u:p@/run/redis.sock?db=4", &conf);
    assert_string_equal(conf.path, "/run/redis.sock");
    assert_null(conf.host);
    assert_string_equal(conf.user, "u");
    assert_string_equal(conf.password, "p");
    assert_int_equal(conf.db, 4);
    dibs__redis_conf_fini(&conf);
}

static void bad_urls_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"redis://a,b", "one host"},
        {"redis-cluster://a/1", "no database but 0"},
        {"redis-cluster://a?db=2", "no database but 0"},
        {"redis-cluster://a?ca=/x", "for TLS"},
        {"redis://h/x", "database"},
        {"redis://h/1/2", "database"},
        {"redis://h/-1", "database"},
        {"redis://h/9999999999", "database"},
        {"redis://h/1?db=2", "database twice"},
        {"redis://u@h?user=v", "user twice"},
        {"redis://:p@h?password_file=/f", "password twice"},
        {"redis:6379", "redis://host:port/db"},
        {"redis://h?colour=red", "\"colour\""},
        {"redis://h?strict=maybe", "strict is 0 or 1"},
        {"redis://h?connect_timeout=soon", "duration"},
        {"redis://h?connect_timeout=-1s", "duration"},
        {"redis://h?connect_timeout=2000", "33m20s, more than 5m"},
        {"redis://h?connect_timeout=301s", "for milliseconds write"},
        {"redis://h?client_name=a%20b", "client_name"},
        {"redis://h?client_name=", "client_name is empty"},
        {"redis://h?password_file=/nonexistent/f", "ENOENT"},
        {"redis://h?password_file=/dev/null", "one line"},
        {"redis://h?ca=/c", "rediss:"},
        {"redis://h?insecure=1", "rediss:"},
        {"rediss://h?key=/k", "without cert"},
        {"redis+unix:", "redis+unix:///path"},
        {"redis+unix:///", "redis+unix:///path"},
        {"redis+unix://h/p", "redis+unix:///path"},
        {"memory:", "begins with redis:"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__redis_conf conf;
        dibs_error err = {0};

        if (read_text(cases[i][0], &conf, &err) != DIBS_INVALID)
            fail_msg("%s was not refused", cases[i][0]);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.message);
        assert_null(conf.host);
    }
}

static void connection_strings_are_read(void **state)
{
    static const good cases[] = {
        {"redis-host:6379,password=YOUR_PASSWORD,ssl=False,abortConnect=False,"
         "connectTimeout=5000",
         "redis-host", 6379, NULL, "YOUR_PASSWORD", 0, false},
        {"localhost:6379", "localhost", 6379, NULL, NULL, 0, false},
        {"10.0.0.1:7", "10.0.0.1", 7, NULL, NULL, 0, false},
        {"[::1]:7", "::1", 7, NULL, NULL, 0, false},
        {"h,ssl=true", "h", 6380, NULL, NULL, 0, true},
        {"h:1,SSL=True,sslHost=x", "h", 1, NULL, NULL, 0, true},
        {" h:1 , user = u , password = p=q ", "h", 1, "u", "p=q", 0, false},
        {"h,password=a@b:c/d?e&f#g%h", "h", 6379, NULL, "a@b:c/d?e&f#g%h", 0,
         false},
        {"h,defaultDatabase=3,", "h", 6379, NULL, NULL, 3, false},
        {"h,password=", "h", 6379, NULL, NULL, 0, false},
    };
    dibs__redis_conf conf;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_good(&cases[i]);
    read_good("h:1,name=me,connectTimeout=5000", &conf);
    assert_string_equal(conf.client_name, "me");
    assert_int_equal(conf.connect_timeout_ms, 5000);
    assert_false(conf.lazy);
    dibs__redis_conf_fini(&conf);
    read_good("h:1,abortConnect=False,ssl=True", &conf);
    assert_true(conf.lazy);
    dibs__redis_conf_fini(&conf);
    read_good("h:1,abortConnect=true", &conf);
    assert_false(conf.lazy);
    dibs__redis_conf_fini(&conf);
    read_good("redis-sentinel://h/m?lazy=1", &conf);
    assert_true(conf.lazy);
    dibs__redis_conf_fini(&conf);
}

static void bad_connection_strings_are_refused(void **state)
{
    static const char *const cases[][2] = {
        {"h:1,colour=red", "\"colour\""},
        {"h:1,ssl=perhaps", "ssl in a connection string is True or False"},
        {"h:1,abortConnect=0", "abortConnect in a connection string is"},
        {"h:1,connectTimeout=5s", "connectTimeout"},
        {"h:1,defaultDatabase=-1", "defaultDatabase"},
        {"h:1,/etc,password=x", "neither"},
        {"h:0,ssl=False", "port"},
        {"a,b,ssl=False", "one host"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__redis_conf conf;
        dibs_error err = {0};

        if (read_text(cases[i][0], &conf, &err) != DIBS_INVALID)
            fail_msg("%s was not refused", cases[i][0]);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.message);
    }
}

static void urls_are_no_connection_strings(void **state)
{
    static const char *const cases[] = {
        "",
        "memory:",
        "memory:name",
        "memory:6379",
        "sqlite:/a,b=c",
        "sqlite:rel.db",
        "redis:",
        "redis://h:1,i:2/0?db=1",
        "redis://:p@h,i?x=y",
        "postgres://h/db?a=b",
        "fault+memory:x?rate=1",
        "h",
        "a b,c=d",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (dibs__redis_is_stackexchange(cases[i]))
            fail_msg("%s is taken for a connection string", cases[i]);
}

static void sentinels_become_their_url(void **state)
{
    char *url = NULL;

    (void)state;
    assert_int_equal(dibs__redis_stackexchange_url(
                         "a:1,b:2,serviceName=main,password=p w", &url, NULL),
                     DIBS_OK);
    assert_string_equal(url, "redis-sentinel://:p%20w@a:1,b:2/main");
    dibsx_free(url);
}

static void sentinels_are_read(void **state)
{
    dibs__redis_conf conf;

    (void)state;
    read_good("redis-sentinel://app:one@h1,[::1]:7000,h3:26380/mymaster/3"
              "?sentinel_user=guard&sentinel_password=two&tls=1&sentinel_tls=0",
              &conf);
    same("primary", conf.primary, "mymaster");
    same("host", conf.host, NULL);
    same("user", conf.user, "app");
    same("password", conf.password, "one");
    same("sentinel_user", conf.sentinel_user, "guard");
    same("sentinel_password", conf.sentinel_password, "two");
    assert_int_equal(conf.seed_count, 3);
    same("first", conf.seeds[0].name, "h1");
    assert_int_equal(conf.seeds[0].port, 26379);
    same("second", conf.seeds[1].name, "::1");
    assert_int_equal(conf.seeds[1].port, 7000);
    assert_int_equal(conf.seeds[2].port, 26380);
    assert_int_equal(conf.db, 3);
    assert_true(conf.tls);
    assert_false(conf.sentinel_tls);
    dibs__redis_conf_fini(&conf);
    read_good("rediss-sentinel://h1/mymaster?ca=/x", &conf);
    assert_true(conf.tls && conf.sentinel_tls);
    dibs__redis_conf_fini(&conf);
    setenv("DIBS_REDIS_SENTINEL_PASSWORD", "three", 1);
    read_good("redis-sentinel://h1/mymaster", &conf);
    same("sentinel_password", conf.sentinel_password, "three");
    same("password", conf.password, NULL);
    assert_int_equal(conf.db, 0);
    dibs__redis_conf_fini(&conf);
}

static void bad_sentinels_are_refused(void **state)
{
    static const char *const bad[] = {
        "redis-sentinel://h1,h2",
        "redis-sentinel://h1,h2/",
        "redis-sentinel:///mymaster",
        "redis-sentinel://h1/mymaster/x",
        "redis-sentinel://h1/mymaster/1?db=2",
        "redis-sentinel://h1/mymaster?ca=/x",
        "redis-sentinel://h1/mymaster?sentinel_user=guard",
        "redis-sentinel://h1/m?sentinel_password=a&sentinel_password_file=/b",
        "redis://h1?sentinel_user=guard",
        "redis://h1?tls=1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dibs_error err = {0};
        dibs__redis_conf conf;

        if (read_text(bad[i], &conf, &err) != DIBS_INVALID)
            fail_msg("%s is taken", bad[i]);
    }
}

/* What follows a password may be the rest of it. */
static void no_message_has_a_part_of_a_password(void **state)
{
    dibs_error err = {0};
    char *url = NULL;

    (void)state;
    assert_int_equal(dibs__redis_stackexchange_url("a:1,password=x,hunter=y",
                                                   &url, &err),
                     DIBS_INVALID);
    assert_null(url);
    assert_null(strstr(err.message, "hunter"));
    assert_int_equal(dibs__redis_stackexchange_url("a:1,hunter=y", &url, &err),
                     DIBS_INVALID);
    assert_non_null(strstr(err.message, "hunter"));
}

static void the_environment_helps_when_no_host_is_given(void **state)
{
    dibs__redis_conf conf;

    (void)state;
    setenv("REDIS_HOST", "there", 1);
    setenv("REDIS_PORT", "7000", 1);
    check_good(&(good){"redis:", "there", 7000, NULL, NULL, 0, false});
    check_good(&(good){"redis://here", "here", 6379, NULL, NULL, 0, false});
    read_good("redis+unix:///p", &conf);
    assert_null(conf.host);
    dibs__redis_conf_fini(&conf);
    setenv("REDIS_PORT", "tcp://10.0.0.9:7001", 1);
    check_good(&(good){"redis:", "there", 7001, NULL, NULL, 0, false});
    unsetenv("REDIS_HOST");
    check_good(&(good){"redis:", "10.0.0.9", 7001, NULL, NULL, 0, false});
    setenv("REDIS_URL", "rediss://u:p@else:7002/3", 1);
    check_good(&(good){"redis:", "else", 7002, "u", "p", 3, true});
    check_good(&(good){"redis:///4", "else", 7002, "u", "p", 4, true});
    check_good(&(good){"redis://v:q@/4", "else", 7002, "v", "q", 4, true});
    check_good(&(good){"redis://here", "here", 6379, NULL, NULL, 0, false});
    setenv("REDIS_URL", "else:7003,password=p", 1);
    check_good(&(good){"redis:", "else", 7003, NULL, "p", 0, false});
    setenv("REDIS_URL", "redis+unix:///run/s", 1);
    read_good("redis:", &conf);
    assert_string_equal(conf.path, "/run/s");
    assert_null(conf.host);
    dibs__redis_conf_fini(&conf);
}

static void a_bad_environment_is_named(void **state)
{
    dibs__redis_conf conf;
    dibs_error err = {0};

    (void)state;
    setenv("REDIS_PORT", "many", 1);
    assert_int_equal(read_text("redis:", &conf, &err), DIBS_INVALID);
    assert_non_null(strstr(err.message, "REDIS_PORT"));
    setenv("REDIS_URL", "redis+unix:///p", 1);
    assert_int_equal(read_text("rediss:", &conf, &err), DIBS_INVALID);
    assert_non_null(strstr(err.message, "unix socket"));
    setenv("REDIS_URL", "http://:hunter2@h", 1);
    assert_int_equal(read_text("redis:", &conf, &err), DIBS_INVALID);
    assert_non_null(strstr(err.message, "REDIS_URL"));
    assert_null(strstr(err.message, "hunter2"));
}

static void passwords_come_from_where_they_are_safe(void **state)
{
    char path[] = "/tmp/dibs-conf-XXXXXX";
    char url[100];
    dibs__redis_conf conf;
    dibs_error err = {0};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "from file\n", 10), 10);
    snprintf(url, sizeof(url), "redis://h?password_file=%s", path);
    setenv("REDISCLI_AUTH", "from cli", 1);
    check_good(&(good){"redis://h", "h", 6379, NULL, "from cli", 0, false});
    setenv("DIBS_REDIS_PASSWORD", "ours", 1);
    check_good(&(good){"redis://h", "h", 6379, NULL, "ours", 0, false});
    check_good(&(good){url, "h", 6379, NULL, "from file", 0, false});
    check_good(&(good){"redis://:own@h", "h", 6379, NULL, "own", 0, false});
    assert_int_equal(write(fd, "second", 6), 6);
    assert_int_equal(read_text(url, &conf, &err), DIBS_INVALID);
    assert_null(strstr(err.message, "from file"));
    assert_int_equal(ftruncate(fd, 5000), 0);
    assert_int_equal(read_text(url, &conf, &err), DIBS_INVALID);
    close(fd);
    unlink(path);
}

static void short_memory_is_told(void **state)
{
    (void)state;
    for (unsigned long n = 1;; n++) {
        dibs__redis_conf conf;
        unsigned long made;
        dibs_status rc;

        dibsx_alloc_fail_at(n);
        rc = read_text("h:1,password=p,user=u,name=n,ssl=True,sslHost=s", &conf,
                       NULL);
        made = dibsx_alloc_count();
        dibsx_alloc_fail_at(0);
        if (made < n) {
            assert_int_equal(rc, DIBS_OK);
            dibs__redis_conf_fini(&conf);
            break;
        }
        assert_int_not_equal(rc, DIBS_OK);
        assert_null(conf.password);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(urls_are_read),
        TEST(a_cluster_has_several_hosts),
        TEST(parameters_are_read),
        TEST(bad_urls_are_refused),
        TEST(connection_strings_are_read),
        TEST(bad_connection_strings_are_refused),
        TEST(urls_are_no_connection_strings),
        TEST(sentinels_become_their_url),
        TEST(sentinels_are_read),
        TEST(bad_sentinels_are_refused),
        TEST(no_message_has_a_part_of_a_password),
        TEST(the_environment_helps_when_no_host_is_given),
        TEST(a_bad_environment_is_named),
        TEST(passwords_come_from_where_they_are_safe),
        TEST(short_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
