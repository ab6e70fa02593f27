/* test_clear.c - a server that asks for passwords, in each way, over each kind of
 * connection: in clear text it gets none that others could read. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include "store/store.h"

#include <dirent.h>

#define SECRET "s3cret-word"

/* Each role is asked in the way of its name. */
#define RULES                                                                  \
    "local all dibs trust\n"                                                   \
    "local all all password\n"                                                 \
    "host all clear all password\n"                                            \
    "host all hashed all md5\n"                                                \
    "host all scram all scram-sha-256\n"

#define ROLES                                                                  \
    "CREATE ROLE clear SUPERUSER LOGIN PASSWORD '" SECRET "'; "                \
    "CREATE ROLE scram SUPERUSER LOGIN PASSWORD '" SECRET "'; "                \
    "SET password_encryption = 'md5'; "                                        \
    "CREATE ROLE hashed SUPERUSER LOGIN PASSWORD '" SECRET "'"

static bool write_rules(void)
{
    char path[sizeof(world_sv.dir) + 32];
    FILE *file;
    bool ok;

    snprintf(path, sizeof(path), "%s/data/pg_hba.conf", world_sv.dir);
    file = fopen(path, "w");
    ok = file && fputs(RULES, file) >= 0;
    return file && fclose(file) == 0 && ok;
}

static int begin(void **state)
{
    (void)state;
    if (!pg_start_tls(&world_sv, "server") || !pg_tell(&world_sv, ROLES) ||
        !write_rules())
        return -1;
    pg_kill(&world_sv);
    return pg_restart(&world_sv) ? 0 : -1;
}

static dibs_status
log_in(const char *role, const char *word, const char *params, dibs_error *why)
{
    char url[PG_URL_MAX];

    *why = (dibs_error){0};
    snprintf(url, sizeof(url), "postgres://%s:%s@127.0.0.1:%d/postgres?%s",
             role, word, world_sv.port, params);
    return world_try_url(url, WORLD_STEP_MS, why);
}

/* With TLS, verified. */
static dibs_status log_in_tls(const char *role, dibs_error *why)
{
    char params[PG_URL_MAX / 2];

    snprintf(params, sizeof(params),
             "sslmode=verify-full&sslrootcert=%s/ca.pem", world_sv.dir);
    return log_in(role, SECRET, params, why);
}

static void no_clear_text_without_tls(void **state)
{
    dibs_error why;

    (void)state;
    assert_status(log_in("clear", SECRET, "sslmode=disable", &why),
                  DIBS_DENIED);
    assert_non_null(strstr(why.message, "in clear text"));
    assert_non_null(strstr(why.message, "sslmode=verify-full"));
    assert_non_null(strstr(why.message, "scram-sha-256"));
    assert_null(strstr(why.message, SECRET));
}

static void clear_text_over_tls(void **state)
{
    dibs_error why;

    (void)state;
    assert_status(log_in_tls("clear", &why), DIBS_OK);
    assert_status(log_in("clear", SECRET, "", &why), DIBS_OK);
}

static void clear_text_over_a_unix_socket(void **state)
{
    dibs_error why = {0};
    char url[PG_URL_MAX];

    (void)state;
    snprintf(url, sizeof(url),
             "postgres://clear:" SECRET "@/postgres?host=%s&port=%d",
             world_sv.dir, world_sv.port);
    assert_status(world_try_url(url, WORLD_STEP_MS, &why), DIBS_OK);
}

static void clear_text_where_it_is_allowed(void **state)
{
    dibs_error why;

    (void)state;
    assert_status(log_in("clear", SECRET, "sslmode=disable&cleartext=1", &why),
                  DIBS_OK);
}

static void other_ways_need_no_tls(void **state)
{
    static const char *const roles[] = {"scram", "hashed"};
    dibs_error why;

    (void)state;
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        print_message("%s\n", roles[i]);
        assert_status(log_in(roles[i], SECRET, "sslmode=disable", &why),
                      DIBS_OK);
        assert_status(log_in_tls(roles[i], &why), DIBS_OK);
        assert_status(log_in(roles[i], "wrong", "sslmode=disable", &why),
                      DIBS_DENIED);
        assert_null(strstr(why.message, "in clear text"));
    }
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* By how many descriptors there are more while a handle is open. */
static int descriptors_of(const char *url)
{
    int before = count_descriptors();
    dibs__store *st = NULL;
    int during;

    CHECK(DIBS_OK,
          dibs__store_open(url, dibsx_after_ms(dibsx_now(), PG_BOUND_MS), &st,
                           err));
    during = count_descriptors();
    dibs__store_close(st);
    assert_int_equal(count_descriptors(), before);
    return during - before;
}

/* What reads along during a login costs nothing later: a connection is one
 * descriptor, as over a unix socket, where nothing does. */
static void nothing_stays_in_between(void **state)
{
    char url[PG_URL_MAX];
    int plain;

    (void)state;
    pg_unix_url(&world_sv, url);
    (void)descriptors_of(url); /* what libraries open once */
    plain = descriptors_of(url);
    snprintf(url, sizeof(url),
             "postgres://scram:" SECRET
             "@127.0.0.1:%d/postgres?sslmode=disable",
             world_sv.port);
    assert_int_equal(descriptors_of(url), plain);
    snprintf(url, sizeof(url),
             "postgres://scram:" SECRET
             "@127.0.0.1:%d/postgres?sslmode=require",
             world_sv.port);
    (void)descriptors_of(url);
    assert_int_equal(descriptors_of(url), plain);
}

/* The default would take TLS, which the server does not have any more. */
static void a_server_without_tls_gets_none(void **state)
{
    dibs_error why;

    (void)state;
    /* A kill forgets the releases of the last moments. */
    assert_true(pg_tell(&world_sv, "CHECKPOINT"));
    pg_kill(&world_sv);
    world_sv.cert[0] = '\0';
    assert_true(pg_restart(&world_sv));
    assert_status(log_in("clear", SECRET, "", &why), DIBS_DENIED);
    assert_non_null(strstr(why.message, "in clear text"));
    assert_status(log_in("scram", SECRET, "", &why), DIBS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_clear_text_without_tls),
        cmocka_unit_test(clear_text_over_tls),
        cmocka_unit_test(clear_text_over_a_unix_socket),
        cmocka_unit_test(clear_text_where_it_is_allowed),
        cmocka_unit_test(other_ways_need_no_tls),
        cmocka_unit_test(nothing_stays_in_between),
        cmocka_unit_test(a_server_without_tls_gets_none),
    };

    return cmocka_run_group_tests_name("postgres clear text", tests, begin,
                                       world_end);
}
