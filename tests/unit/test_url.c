/* test_url.c - store URLs: their parts, what is refused, what is hidden. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/url.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

static void same(const char *got, const char *expected)
{
    if (expected)
        assert_string_equal(got ? got : "(null)", expected);
    else
        assert_null(got);
}

/* A URL without parameters and with at most one host. */
typedef struct simple {
    const char *text;
    const char *scheme, *user, *password, *host;
    int port;
    const char *path;
} simple;

static void check_simple(const simple *c)
{
    dibs_error err = {0};
    dibsx_url url;

    if (dibsx_url_parse(c->text, &url, &err) != DIBS_OK)
        fail_msg("%s: %s", c->text, err.message);
    same(url.scheme, c->scheme);
    same(url.user, c->user);
    same(url.password, c->password);
    assert_int_equal(url.host_count, c->host ? 1 : 0);
    same(url.hosts[0].name, c->host);
    assert_int_equal(url.hosts[0].port, c->port);
    same(url.path, c->path);
    assert_int_equal(url.param_count, 0);
    dibsx_url_fini(&url);
}

static void parts_are_told_apart(void **state)
{
    static const simple cases[] = {
        {"memory:", "memory", NULL, NULL, NULL, 0, NULL},
        {"memory:name", "memory", NULL, NULL, NULL, 0, "name"},
        {"fault+memory:x", "fault+memory", NULL, NULL, NULL, 0, "x"},
        {"sqlite:/p/f.db", "sqlite", NULL, NULL, NULL, 0, "/p/f.db"},
        {"sqlite:rel.db", "sqlite", NULL, NULL, NULL, 0, "rel.db"},
        {"sqlite:///abs", "sqlite", NULL, NULL, NULL, 0, "/abs"},
        {"sqlite:///a@b/c", "sqlite", NULL, NULL, NULL, 0, "/a@b/c"},
        {"sqlite:/a b.db", "sqlite", NULL, NULL, NULL, 0, "/a b.db"},
        {"SQLite:X", "sqlite", NULL, NULL, NULL, 0, "X"},
        {"redis://", "redis", NULL, NULL, NULL, 0, NULL},
        {"redis://h", "redis", NULL, NULL, "h", 0, NULL},
        {"redis://h/", "redis", NULL, NULL, "h", 0, "/"},
        {"redis://h?", "redis", NULL, NULL, "h", 0, NULL},
        {"redis://h:1/0", "redis", NULL, NULL, "h", 1, "/0"},
        {"redis://h:65535", "redis", NULL, NULL, "h", 65535, NULL},
        {"redis://u:pw@h:1/0", "redis", "u", "pw", "h", 1, "/0"},
        {"redis://u@h", "redis", "u", NULL, "h", 0, NULL},
        {"redis://:pw@h", "redis", NULL, "pw", "h", 0, NULL},
        {"redis://u:@h", "redis", "u", NULL, "h", 0, NULL},
        {"redis://u:p:q@h", "redis", "u", "p:q", "h", 0, NULL},
        {"redis://u:p@q@h", "redis", "u", "p@q", "h", 0, NULL},
        {"redis://u:pw@/0", "redis", "u", "pw", NULL, 0, "/0"},
        {"redis://[::1]", "redis", NULL, NULL, "::1", 0, NULL},
        {"redis://[::1]:3", "redis", NULL, NULL, "::1", 3, NULL},
        {"redis://[fe80::1%25lo]:3", "redis", NULL, NULL, "fe80::1%lo", 3,
         NULL},
        {"redis+unix:///path", "redis+unix", NULL, NULL, NULL, 0, "/path"},
        {"redis+unix://:pw@/p", "redis+unix", NULL, "pw", NULL, 0, "/p"},
        {"postgres://%2Fvar%2Frun/db", "postgres", NULL, NULL, "/var/run", 0,
         "/db"},
        {"x:%41%2f%3F%25", "x", NULL, NULL, NULL, 0, "A/?%"},
        {"r://%75:%70%40%3a@%68", "r", "u", "p@:", "h", 0, NULL},
        {"r://h\xC3\xA9", "r", NULL, NULL, "h\xC3\xA9", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_simple(&cases[i]);
}

static void many_hosts(void **state)
{
    dibsx_url url;

    (void)state;
    assert_int_equal(dibsx_url_parse("redis-cluster://u:p@h1:1,h2,[::1]:3/x",
                                     &url, NULL),
                     DIBS_OK);
    assert_int_equal(url.host_count, 3);
    same(url.hosts[0].name, "h1");
    assert_int_equal(url.hosts[0].port, 1);
    same(url.hosts[1].name, "h2");
    assert_int_equal(url.hosts[1].port, 0);
    same(url.hosts[2].name, "::1");
    assert_int_equal(url.hosts[2].port, 3);
    same(url.path, "/x");
    dibsx_url_fini(&url);
}

static void parameters(void **state)
{
    dibsx_url url;

    (void)state;
    assert_int_equal(dibsx_url_parse("redis://user:pw@h:1/0?x=y&&flag&e=&"
                                     "q=a=b?c&%6b=%26+&",
                                     &url, NULL),
                     DIBS_OK);
    assert_int_equal(url.param_count, 5);
    same(dibsx_url_param_get(&url, "x"), "y");
    same(dibsx_url_param_get(&url, "flag"), "");
    same(dibsx_url_param_get(&url, "e"), "");
    same(dibsx_url_param_get(&url, "q"), "a=b?c");
    same(dibsx_url_param_get(&url, "k"), "&+");
    same(dibsx_url_param_get(&url, "X"), NULL);
    same(dibsx_url_param_get(&url, ""), NULL);
    dibsx_url_fini(&url);
    same(dibsx_url_param_get(&url, "x"), NULL);
    dibsx_url_fini(&url); /* once more is a no-op */
}

/* A refusal says where and why, and leaves nothing behind. */
static void check_refused(const char *text, const char *says)
{
    static const dibsx_url empty;
    dibs_error err = {0};
    dibsx_url url;

    memset(&url, 'x', sizeof(url));
    if (dibsx_url_parse(text, &url, &err) != DIBS_INVALID)
        fail_msg("%s was not refused", text);
    assert_int_equal(err.status, DIBS_INVALID);
    if (!strstr(err.message, says))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, says);
    assert_memory_equal(&url.hosts, &empty.hosts, sizeof(url.hosts));
    assert_memory_equal(&url.params, &empty.params, sizeof(url.params));
    assert_null(url.scheme);
    assert_null(url.user);
    assert_null(url.password);
    assert_null(url.path);
    assert_int_equal(url.host_count + url.param_count, 0);
    dibsx_url_fini(&url);
}

static void malformed_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "column 1: it must begin with a scheme"},
        {":", "column 1: it must begin with a scheme"},
        {"sqlite", "column 1: it must begin with a scheme"},
        {"/path/file.db", "column 1: it must begin with a scheme"},
        {"1redis://h", "column 1: it must begin with a scheme"},
        {"+x://h", "column 1: it must begin with a scheme"},
        {"re dis://h", "column 1: it must begin with a scheme"},
        {" redis://h", "column 1: it must begin with a scheme"},
        {"x:a\nb", "column 4: a control character"},
        {"x:a\x7f", "column 4: a control character"},
        {"x:ab%", "column 5: \"%\" needs two"},
        {"x:%4", "column 3: \"%\" needs two"},
        {"x:%g0", "column 3: \"%\" needs two"},
        {"x:a%00b", "column 4: %00"},
        {"x://h?k=%00", "column 9: %00"},
        {"x://h:0", "column 6: a port"},
        {"x://h:", "column 6: a port"},
        {"x://h:65536", "column 6: a port"},
        {"x://h:000001", "column 6: a port"},
        {"x://h:99999999999999999999", "column 6: a port"},
        {"x://h:+1", "column 6: a port"},
        {"x://h:1a", "column 6: a port"},
        {"x://h: 1", "column 6: a port"},
        {"x://h:%31", "column 6: a port"},
        {"x://a,h:x,b", "column 8: a port"},
        {"x://:1", "column 5: a host is missing"},
        {"x://,", "column 5: a host is missing"},
        {"x://a,,b", "column 7: a host is missing"},
        {"x://a,", "column 7: a host is missing"},
        {"x://a b", "column 5: a host has a character"},
        {"x://a=b", "column 5: a host has a character"},
        {"x://a[b]", "column 5: a host has a character"},
        {"x://::1", "column 5: a host is missing"},
        {"x://1::1", "column 5: an IPv6 address must be in brackets"},
        {"x://[::1", "column 5: the bracket"},
        {"x://[]", "column 5: there is no IPv6"},
        {"x://[h]", "column 5: there is no IPv6"},
        {"x://[zz::]", "column 5: there is no IPv6"},
        {"x://[::1]3", "column 10: only a port"},
        {"x://[::1]:", "column 10: a port"},
        {"x://h?=v", "column 7: a parameter has no name"},
        {"x://h?a=1&=v", "column 11: a parameter has no name"},
        {"x:?a=1&b=2&a=3", "parameter 3 of the store URL was given before"},
        {"x:?a&%61", "parameter 2 of the store URL was given before"},
        {"r://u:1/pw@h", "column 11: \"@\" after the hosts"},
        {"r://h/p?q=a@b", "column 12: \"@\" after the hosts"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_refused(cases[i].text, cases[i].says);
}

/* "prefix" and then `count` times "item", with "separator" between. */
static const char *repeat(const char *prefix, const char *item,
                          const char *separator, size_t count)
{
    static char text[2 * DIBSX_URL_MAX];
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", prefix);

    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%zu",
                                i ? separator : "", item, i);
    assert_true(len < sizeof(text));
    return text;
}

static void counts_have_limits(void **state)
{
    dibsx_url url;

    (void)state;
    assert_int_equal(dibsx_url_parse(repeat("x://", "h", ",", DIBSX_URL_HOSTS),
                                     &url, NULL),
                     DIBS_OK);
    assert_int_equal(url.host_count, DIBSX_URL_HOSTS);
    dibsx_url_fini(&url);
    check_refused(repeat("x://", "h", ",", DIBSX_URL_HOSTS + 1),
                  "more than 16 hosts");
    assert_int_equal(dibsx_url_parse(repeat("x:?", "k", "&", DIBSX_URL_PARAMS),
                                     &url, NULL),
                     DIBS_OK);
    assert_int_equal(url.param_count, DIBSX_URL_PARAMS);
    dibsx_url_fini(&url);
    check_refused(repeat("x:?", "k", "&", DIBSX_URL_PARAMS + 1),
                  "more than 32 parameters");
}

static void length_has_a_limit(void **state)
{
    char text[DIBSX_URL_MAX + 2];
    char shown[sizeof(text)];
    dibsx_url url;

    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text, "x:", 2);
    text[DIBSX_URL_MAX] = '\0';
    assert_int_equal(dibsx_url_parse(text, &url, NULL), DIBS_OK);
    assert_int_equal(strlen(url.path), DIBSX_URL_MAX - 2);
    dibsx_url_fini(&url);
    dibsx_url_redact(text, shown, sizeof(shown));
    assert_string_equal(shown, text);
    text[DIBSX_URL_MAX] = 'a';
    text[DIBSX_URL_MAX + 1] = '\0';
    check_refused(text, "longer than 4096 bytes");
    dibsx_url_redact(text, shown, sizeof(shown));
    assert_string_equal(shown, "x:***");
}

static void memory_may_run_short_anywhere(void **state)
{
    static const char text[] = "r://u:p@h1:1,[::1]:2/path?a=b&c";
    dibs_status rc = DIBS_NOMEM;
    unsigned long n = 0;

    (void)state;
    while (rc == DIBS_NOMEM) {
        dibs_error err = {0};
        dibsx_url url;

        dibsx_alloc_fail_at(++n);
        rc = dibsx_url_parse(text, &url, &err);
        dibsx_alloc_fail_at(0);
        assert_int_equal(err.status, rc);
        if (rc == DIBS_NOMEM)
            assert_null(url.scheme);
        dibsx_url_fini(&url);
    }
    assert_int_equal(rc, DIBS_OK);
    assert_int_equal(n, 11); /* one for each of ten strings, then none */
}

static void secrets_are_hidden(void **state)
{
    static const struct {
        const char *text;
        const char *shown;
    } cases[] = {
        {"memory:", "memory:"},
        {"sqlite:/p/f.db", "sqlite:/p/f.db"},
        {"sqlite:/srv/me@corp/f.db", "sqlite:/srv/me@corp/f.db"},
        {"redis://h:1/0?x=y", "redis://h:1/0?x=y"},
        {"redis://user@h", "redis://user@h"},
        {"redis://user:pw@h:1/0?x=y", "redis://user:***@h:1/0?x=y"},
        {"redis://:pw@h1,h2:3", "redis://:***@h1,h2:3"},
        {"redis://u:p@q@h", "redis://u:***@h"},
        {"redis://u:@h", "redis://u:@h"},
        {"redis+unix://:pw@/p", "redis+unix://:***@/p"},
        {"x:?password=pw", "x:?password=***"},
        {"x:p?a=1&sslPassWord=pw&b=2", "x:p?a=1&sslPassWord=***&b=2"},
        {"x://h?client_secret=a,b=c", "x://h?client_secret=***"},
        {"x://h?pass=a&pwd=b&AUTH=c", "x://h?pass=***&pwd=***&AUTH=***"},
        {"x://h/p?authtoken=", "x://h/p?authtoken=***"},
        {"x:?p%61ssword=pw", "x:?p%61ssword=***"},
        {"x:?%50%57=pw", "x:?%50%57=***"},
        {"x:?pw=a&apikey=b&API-Key=c", "x:?pw=***&apikey=***&API-Key=***"},
        {"x:?jwt=a&signature=b&cred=c", "x:?jwt=***&signature=***&cred=***"},
        {"x:?key=/f&sslkey=/g&keepalives_idle=3",
         "x:?key=/f&sslkey=/g&keepalives_idle=3"},
        {"x:?password_file=/f&passfile=/g&sentinel_password_file=/h",
         "x:?password_file=/f&passfile=/g&sentinel_password_file=/h"},
        {"x:?password=a_file=pw", "x:?password=***"},
        {"x:?password%3Dafile=pw", "x:?password%3Dafile=***"},
        {"x://h/0,password=my,passfile=/f", "x://h/***"},
        {"x:?a=b?password=pw", "x:?a=***"},
        {"x:?token:pw", "x:?***"},
        {"x:?prefix=token", "x:?prefix=token"},
        {"x:?a&&b", "x:?a&&b"},
        {"x:p?", "x:p"},
        {"x:token.db", "x:token.db"},
        {"x://h/0,password=pw", "x://h/***"},
        {"x:/u:pw@h", "x:/***"},
        {"x:u:pw@h", "x:***"},
        {"h:1,password=pw,ssl=True", "h:***"},
        {"x://u:pw", "x:***"},
        {"pw@h", "***"},
        {"", "***"},
    };
    char shown[128];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibsx_url_redact(cases[i].text, shown, sizeof(shown));
        assert_string_equal(shown, cases[i].shown);
    }
}

/* The password is "hunter" wherever it is, however the rest is broken. */
static void broken_text_hides_too(void **state)
{
    static const char *const cases[] = {
        "redis://u:hunter",
        "redis://u:hunter@",
        "redis://u:hunter@h:x",
        "redis://u:hunter@h:0/0",
        "redis://u:hunter%@h",
        "redis://u:hunter%00@h",
        "redis://u:hunter/2@h",
        "redis://u:1/hunter@h",
        "redis://u:1?hunter@h",
        "redis://u:hunter?2@h",
        "redis://u:a@h/hunter@b",
        "redis://u:hunter\n@h",
        "redis:/u:hunter@h",
        "redis:///u:hunter@h",
        "redis:u:hunter@h",
        "redis:hunter@h",
        "u:hunter@h",
        "hunter@h",
        "//u:hunter@h",
        " redis://u:hunter@h",
        "redis://u:hunter@[h",
        "h:6379,password=hunter,ssl=True",
        "h:6379,ssl=True,password=hun&hunter",
        "10.0.0.1:6379,password=hunter",
        "redis://h:6379,password=hunter",
        "redis://h/0,password=hunter",
        "host=h password=hunter",
        "password=hunter",
        "x:?a=b;password=hunter",
        "x:?=&password=hunter",
        "x:?password=hunter&=",
        "x:?password=hun%&x=hunter",
        "x:%zz?token=hunter",
    };
    char shown[128];
    dibs_error err;
    dibsx_url url;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibsx_url_redact(cases[i], shown, sizeof(shown));
        if (strstr(shown, "hunter"))
            fail_msg("%s was shown as %s", cases[i], shown);
        err.message[0] = '\0';
        if (dibsx_url_parse(cases[i], &url, &err) == DIBS_OK)
            dibsx_url_fini(&url);
        if (strstr(err.message, "hunter"))
            fail_msg("%s was told as %s", cases[i], err.message);
    }
}

static void a_short_buffer_shows_less(void **state)
{
    static const char text[] = "redis://user:hunter@h/0?token=hunter&x=y";
    static const char full[] = "redis://user:***@h/0?token=***&x=y";
    char shown[64];

    (void)state;
    for (size_t size = 1; size < sizeof(shown); size++) {
        size_t len = size - 1 < strlen(full) ? size - 1 : strlen(full);

        memset(shown, 'x', sizeof(shown));
        dibsx_url_redact(text, shown, size);
        assert_int_equal(strlen(shown), len);
        assert_memory_equal(shown, full, len);
    }
    shown[0] = 'x';
    dibsx_url_redact(text, shown, 0);
    assert_int_equal(shown[0], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_apart),
        cmocka_unit_test(many_hosts),
        cmocka_unit_test(parameters),
        cmocka_unit_test(malformed_is_refused),
        cmocka_unit_test(counts_have_limits),
        cmocka_unit_test(length_has_a_limit),
        cmocka_unit_test(memory_may_run_short_anywhere),
        cmocka_unit_test(secrets_are_hidden),
        cmocka_unit_test(broken_text_hides_too),
        cmocka_unit_test(a_short_buffer_shows_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
