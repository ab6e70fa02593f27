/* test_redis_topology.c - the map of a cluster as servers tell it, and what is
 * refused; where a referral sends. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/alloc.h"
#include "store/redis/cluster/topology.h"
#include "store/redis/wire/driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const dibs__endpoint asked = {.host = "seed", .port = 7000};

/* The reply that these bytes are. */
static redisReply *read_reply(const char *bytes, size_t len)
{
    redisReader *reader;
    void *reply = NULL;
    dibs_error err;

    assert_int_equal(dibs__hiredis_load(&err), DIBS_OK);
    reader = dibs__hi.redisReaderCreate();
    assert_non_null(reader);
    assert_int_equal(dibs__hi.redisReaderFeed(reader, bytes, len), REDIS_OK);
    assert_int_equal(dibs__hi.redisReaderGetReply(reader, &reply), REDIS_OK);
    dibs__hi.redisReaderFree(reader);
    assert_non_null(reply);
    return reply;
}

static dibs_status read_map(const char *bytes, dibs__topology *out)
{
    redisReply *reply = read_reply(bytes, strlen(bytes));
    dibs_error err = {0};
    dibs_status rc = dibs__topology_read(reply, &asked, out, &err);

    dibs__reply_free(reply);
    assert_true(rc == DIBS_OK || err.message[0]);
    return rc;
}

#define NODE(host, port)   "*2\r\n$1\r\n" host "\r\n:" port "\r\n"
#define RANGE3(first, end) "*3\r\n:" first "\r\n:" end "\r\n"
#define RANGE4(first, end) "*4\r\n:" first "\r\n:" end "\r\n"

static void a_map_is_read(void **state)
{
    dibs__topology map;

    (void)state;
    assert_int_equal(read_map("*3\r\n" RANGE4("0", "99") NODE("a", "1")
                                  NODE("b", "2") RANGE3("200", "16383")
                                      NODE("c", "3") RANGE4("100", "100")
                                          NODE("a", "1") NODE("b", "2"),
                              &map),
                     DIBS_OK);
    assert_int_equal(map.count, 3);
    assert_string_equal(map.members[map.server[0] - 1].endpoint.host, "a");
    assert_int_equal(map.members[map.server[100] - 1].endpoint.port, 1);
    assert_string_equal(map.members[map.server[16383] - 1].endpoint.host, "c");
    assert_int_equal(map.server[101], 0);
    assert_int_equal(dibs__topology_covered(&map), 101 + 16184);
    for (size_t i = 0; i < map.count; i++) {
        const dibs__server *sv = &map.members[i];

        assert_int_equal(sv->master, sv->endpoint.host[0] != 'b');
        assert_int_equal(sv->replicas, sv->endpoint.host[0] == 'a');
    }
    dibs__topology_fini(&map);
}

/* Nil, or nothing: the host by which the server was asked. "?": it is not known. */
static void hosts_may_be_left_out(void **state)
{
    dibs__topology map;

    (void)state;
    assert_int_equal(
        read_map("*3\r\n" RANGE3("0", "1") "*2\r\n$-1\r\n:7\r\n" RANGE3(
                     "2", "3") "*2\r\n$0\r\n\r\n:8\r\n" RANGE3("4", "5")
                     NODE("?", "9"),
                 &map),
        DIBS_OK);
    assert_int_equal(map.count, 2);
    assert_string_equal(map.members[map.server[1] - 1].endpoint.host, "seed");
    assert_int_equal(map.members[map.server[1] - 1].endpoint.port, 7);
    assert_int_equal(map.members[map.server[2] - 1].endpoint.port, 8);
    assert_int_equal(map.server[4], 0);
    dibs__topology_fini(&map);
}

static void what_makes_no_sense_is_refused(void **state)
{
    static const char *const all[] = {
        ":1\r\n",
        "$-1\r\n",
        "+OK\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*0\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n" RANGE3("0", "16384") NODE("a", "1"),
        "*1\r\n" RANGE3("-1", "5") NODE("a", "1"),
        "*1\r\n" RANGE3("5", "4") NODE("a", "1"),
        "*1\r\n*3\r\n$1\r\nx\r\n:4\r\n" NODE("a", "1"),
        "*1\r\n" RANGE3("0", "5") ":3\r\n",
        "*1\r\n" RANGE3("0", "5") "*1\r\n$1\r\na\r\n",
        "*1\r\n" RANGE3("0", "5") NODE("a", "65536"),
        "*1\r\n" RANGE3("0", "5") NODE("a", "-1"),
        "*1\r\n" RANGE3("0", "5") NODE(" ", "1"),
        "*1\r\n" RANGE3("0", "5") NODE("\n", "1"),
        "*1\r\n" RANGE3("0", "5") "*2\r\n:5\r\n:6\r\n",
        "*1\r\n" RANGE4("0", "5") NODE("a", "1") "+x\r\n",
        "*2\r\n" RANGE3("0", "5") NODE("a", "1") "$1\r\nx\r\n",
    };
    dibs__topology map;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (read_map(all[i], &map) != DIBS_REFUSED)
            fail_msg("this was read: %s", all[i]);
        assert_null(map.members);
        assert_int_equal(map.count, 0);
    }
    assert_int_equal(read_map("*0\r\n", &map), DIBS_OK);
    assert_int_equal(dibs__topology_covered(&map), 0);
    dibs__topology_fini(&map);
}

/* A host of 256 bytes, and more servers than there may be. */
static void counts_are_bounded(void **state)
{
    enum { MANY = DIBS__MEMBERS_MAX + 1, SIZE = 64 * MANY + 512 };
    char *text = malloc(SIZE);
    dibs__topology map;
    char host[257];
    int len;

    (void)state;
    assert_non_null(text);
    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    snprintf(text, SIZE, "*1\r\n" RANGE3("0", "5") "*2\r\n$256\r\n%s\r\n:1\r\n",
             host);
    assert_int_equal(read_map(text, &map), DIBS_REFUSED);
    len = snprintf(text, SIZE, "*1\r\n*%d\r\n:0\r\n:5\r\n", MANY + 2);
    for (int i = 0; i < MANY; i++)
        len +=
            snprintf(text + len, (size_t)(SIZE - len), NODE("a", "%d"), i + 1);
    assert_int_equal(read_map(text, &map), DIBS_REFUSED);
    free(text);
}

/* Which is no fault of the server's. */
static void short_memory_is_told(void **state)
{
    dibs__topology map;
    dibs_status rc;

    (void)state;
    dibsx_alloc_fail_at(1);
    rc = read_map("*1\r\n" RANGE3("0", "99") NODE("a", "1"), &map);
    dibsx_alloc_fail_at(0);
    assert_int_equal(rc, DIBS_NOMEM);
    assert_int_equal(map.count, 0);
}

static void referrals_say_where(void **state)
{
    static const struct {
        const char *text;
        int slot; /* -1: nowhere */
        const char *host;
        int port;
    } all[] = {
        {"MOVED 3999 127.0.0.1:6381", 3999, "127.0.0.1", 6381},
        {"ASK 0 redis-1.example.com:1", 0, "redis-1.example.com", 1},
        {"MOVED 16383 ::1:6381", 16383, "::1", 6381},
        {"MOVED 1 :6381", 1, "seed", 6381},
        {"MOVED 1 ?:6381", -1, NULL, 0},
        {"MOVED 16384 a:1", -1, NULL, 0},
        {"MOVED -1 a:1", -1, NULL, 0},
        {"MOVED 1", -1, NULL, 0},
        {"MOVED", -1, NULL, 0},
        {"MOVED 1 a", -1, NULL, 0},
        {"MOVED 1 a:", -1, NULL, 0},
        {"MOVED 1 a:0", -1, NULL, 0},
        {"MOVED 1 a:65536", -1, NULL, 0},
        {"MOVED 1 a:1x", -1, NULL, 0},
        {"MOVED 1 a b:1", -1, NULL, 0},
        {"MOVED 99999999999999999999 a:1", -1, NULL, 0},
        {"MOVED x a:1", -1, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        dibs__endpoint to;
        int slot = -1;
        bool read = dibs__redirect_read(all[i].text, &asked, &slot, &to);

        if (read != (all[i].slot >= 0))
            fail_msg("%s was %s", all[i].text, read ? "read" : "refused");
        if (!read)
            continue;
        assert_int_equal(slot, all[i].slot);
        assert_string_equal(to.host, all[i].host);
        assert_int_equal(to.port, all[i].port);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_is_read),
        cmocka_unit_test(hosts_may_be_left_out),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(counts_are_bounded),
        cmocka_unit_test(short_memory_is_told),
        cmocka_unit_test(referrals_say_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
