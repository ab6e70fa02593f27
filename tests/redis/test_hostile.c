/* test_hostile.c - a server that answers what no server of ours does: spans without
 * end, fences that are none. Nothing of it is believed, and its connection is given
 * up.
 *
 * A thread plays the server: it greets as one does and answers each command with the
 * same bytes. What a real server can be brought to say, by keys that were changed by
 * hand, it is asked itself. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWNER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

enum { TTL_MS = 20000 };

typedef struct liar {
    int listener;
    const char *reply;
    pthread_t thread;
    bool hung_up; /* the client did, after it was answered */
} liar;

static bool hear(int fd)
{
    char bytes[16384];

    return recv(fd, bytes, sizeof(bytes), 0) > 0;
}

static bool say(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* One connection, until the client has had enough. */
static void *liar_main(void *arg)
{
    liar *lr = arg;
    int fd = accept(lr->listener, NULL, NULL);
    bool answered = false;

    if (fd >= 0 && hear(fd) && say(fd, "+OK\r\n"))
        while (hear(fd) && say(fd, lr->reply))
            answered = true;
    lr->hung_up = answered;
    close(fd);
    return NULL;
}

static void liar_start(liar *lr, const char *reply, char url[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *lr = (liar){.reply = reply,
                 .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(lr->listener >= 0);
    assert_int_equal(bind(lr->listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(lr->listener, 4), 0);
    assert_int_equal(getsockname(lr->listener, (struct sockaddr *)&at, &len),
                     0);
    snprintf(url, 64, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&lr->thread, NULL, liar_main, lr), 0);
}

static dibs_status acquire(dibs__store *st, dibs_error *err)
{
    const dibs__ask ask = {.name = "k",
                           .owner = OWNER,
                           .permits = 1,
                           .flags = DIBS__ASK_QUEUE,
                           .ttl_ms = TTL_MS,
                           .most_ms = TTL_MS,
                           .who = "host:1"};
    dibs__answer ans;

    return st->ops->lease->acquire(st, &ask, stage_soon(), &ans, err);
}

static dibs_status acquire_all(dibs__store *st, dibs_error *err)
{
    const dibs__ask ask = {.name = "k",
                           .owner = OWNER,
                           .permits = 1,
                           .ttl_ms = TTL_MS,
                           .most_ms = TTL_MS,
                           .who = "host:1"};
    dibs__answer ans;
    size_t blocked;

    return st->ops->lease->acquire_all(st, &ask, 1, stage_soon(), &ans,
                                       &blocked, err);
}

static dibs_status renew(dibs__store *st, dibs_error *err)
{
    dibs__renewal item = {.name = "k",
                          .owner = OWNER,
                          .fence = 5,
                          .ttl_ms = TTL_MS};
    dibs_status rc = st->ops->lease->renew(st, &item, 1, stage_soon(), err);

    return rc == DIBS_OK ? item.rc : rc;
}

static dibs_status turn(dibs__store *st, dibs_error *err)
{
    const dibs__conversion how = {.name = "k",
                                  .owner = OWNER,
                                  .fence = 5,
                                  .to_owner = OWNER,
                                  .ttl_ms = TTL_MS};
    dibs__answer ans;

    return st->ops->lease->convert(st, &how, stage_soon(), &ans, err);
}

static dibs_status take(dibs__store *st, dibs_error *err)
{
    uint32_t broken;

    return st->ops->lease->revoke(st, "k", 5, stage_soon(), &broken, err);
}

static const dibs__voter voter = {.run_id = "0123", .longest_ms = TTL_MS};

static dibs_status vote(dibs__store *st, dibs_error *err)
{
    const dibs__ask ask = {.name = "k",
                           .owner = OWNER,
                           .permits = 1,
                           .ttl_ms = TTL_MS,
                           .most_ms = TTL_MS,
                           .who = "host:1"};
    dibs__node_word word;
    dibs__answer ans;

    return st->ops->vote->grant(st, &voter, &ask, 5, false, stage_soon(), &ans,
                                &word, err);
}

static dibs_status vote_again(dibs__store *st, dibs_error *err)
{
    dibs__renewal item = {.name = "k",
                          .owner = OWNER,
                          .fence = 5,
                          .ttl_ms = TTL_MS};
    dibs__node_word word;
    dibs_status rc =
        st->ops->vote->renew(st, &voter, &item, 1, stage_soon(), &word, err);

    return rc == DIBS_OK ? item.rc : rc;
}

static dibs_status get(dibs__store *st, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc = st->ops->value->get(st, "v", stage_soon(), &value, err);

    dibs_value_free(&value);
    return rc;
}

static dibs_status now(dibs__store *st, dibs_error *err)
{
    int64_t wall_us;

    return st->ops->now(st, stage_soon(), &wall_us, err);
}

typedef struct lie {
    const char *what;
    dibs_status (*step)(dibs__store *st, dibs_error *err);
    const char *reply;
} lie;

static const lie lies[] = {
    {"nothing left", acquire, "*4\r\n:0\r\n:7\r\n:0\r\n:0\r\n"},
    {"less than nothing", acquire, "*4\r\n:0\r\n:7\r\n:-5\r\n:0\r\n"},
    {"more than asked for", acquire, "*4\r\n:0\r\n:7\r\n:20001\r\n:0\r\n"},
    {"without end", acquire,
     "*4\r\n:0\r\n:7\r\n:9223372036854775807\r\n:0\r\n"},
    {"a long claim", acquire, "*4\r\n:0\r\n:7\r\n:3001\r\n:1\r\n"},
    {"no fence", acquire, "*4\r\n:0\r\n:0\r\n:1000\r\n:0\r\n"},
    {"a fence below 0", acquire, "*4\r\n:0\r\n:-7\r\n:1000\r\n:0\r\n"},
    {"a fence too high", acquire,
     "*4\r\n:0\r\n$19\r\n9223372036854775808\r\n:1000\r\n:0\r\n"},
    {"a free name, no fence", acquire, "$1\r\n0\r\n"},
    {"a free name, below 0", acquire, "$2\r\n-7\r\n"},
    {"held, below 0", acquire,
     "*6\r\n:1\r\n:7\r\n:-5\r\n:1\r\n:0\r\n$1\r\nx\r\n"},
    {"held, without end", acquire,
     "*6\r\n:1\r\n:7\r\n:9223372036854775807\r\n:1\r\n:0\r\n$1\r\nx\r\n"},
    {"behind fewer than none", acquire,
     "*6\r\n:1\r\n:7\r\n:5\r\n:1\r\n:-1\r\n$1\r\nx\r\n"},
    {"behind too many", acquire,
     "*6\r\n:1\r\n:7\r\n:5\r\n:1\r\n:4294967296\r\n$1\r\nx\r\n"},
    {"all, nothing left", acquire_all, "*4\r\n:0\r\n:7\r\n:0\r\n:0\r\n"},
    {"all, without end", acquire_all,
     "*4\r\n:0\r\n:7\r\n:9223372036854775807\r\n:0\r\n"},
    {"all, no fence", acquire_all, "*4\r\n:0\r\n:0\r\n:1000\r\n:0\r\n"},
    {"renewed, nothing left", renew, "*1\r\n:0\r\n"},
    {"renewed, below 0", renew, "*1\r\n:-5\r\n"},
    {"renewed, without end", renew, "*1\r\n:9223372036854775807\r\n"},
    {"turned, below 0", turn, "*3\r\n:0\r\n:7\r\n:-5\r\n"},
    {"turned, without end", turn, "*3\r\n:0\r\n:7\r\n:9223372036854775807\r\n"},
    {"turned back", turn, "*3\r\n:0\r\n:4\r\n:1000\r\n"},
    {"broken, fewer than none", take, "*2\r\n:0\r\n:-1\r\n"},
    {"broken, too many", take, "*2\r\n:0\r\n:4294967296\r\n"},
    {"a vote, below 0", vote, "*6\r\n:0\r\n:99\r\n:0\r\n:7\r\n:-5\r\n:0\r\n"},
    {"a vote, more than asked for", vote,
     "*6\r\n:0\r\n:99\r\n:0\r\n:7\r\n:20001\r\n:0\r\n"},
    {"a vote without a fence", vote,
     "*6\r\n:0\r\n:99\r\n:0\r\n:0\r\n:1000\r\n:0\r\n"},
    {"a vote without a time", vote,
     "*6\r\n:0\r\n:-99\r\n:0\r\n:7\r\n:1000\r\n:0\r\n"},
    {"a vote that sits out below 0", vote,
     "*6\r\n:0\r\n:99\r\n:-1\r\n:7\r\n:1000\r\n:0\r\n"},
    {"votes again, below 0", vote_again, "*4\r\n:0\r\n:99\r\n:0\r\n:-5\r\n"},
    {"votes again, without end", vote_again,
     "*4\r\n:0\r\n:99\r\n:0\r\n:9223372036854775807\r\n"},
};

/* About what no lease hangs on: it is refused, and that is all. */
static const lie small_lies[] = {
    {"a value that ended", get, "*3\r\n:7\r\n:-5\r\n$1\r\nx\r\n"},
    {"a version below 0", get, "*3\r\n:-7\r\n:5\r\n$1\r\nx\r\n"},
    {"a time without end", now,
     "*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n"},
    {"a time below 0", now, "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n"},
    {"a second of many parts", now, "*2\r\n$1\r\n5\r\n$7\r\n1000000\r\n"},
};

static void tell_lies(const lie *all, size_t count, bool hangs_up)
{
    for (size_t i = 0; i < count; i++) {
        dibs__store *st = NULL;
        dibs_error why = {0};
        dibs_status rc;
        char url[64];
        liar lr;

        liar_start(&lr, all[i].reply, url);
        CHECK(DIBS_OK, dibs__store_make(url, stage_soon(), &st, err));
        rc = all[i].step(st, &why);
        print_message("%s: %s: %s\n", all[i].what, dibs_status_name(rc),
                      why.message);
        assert_status(rc, DIBS_UNKNOWN);
        if (!hangs_up)
            dibs__store_close(st);
        /* Else the handle is open, and yet the connection ends. */
        pthread_join(lr.thread, NULL);
        assert_true(lr.hung_up);
        if (hangs_up)
            dibs__store_close(st);
        close(lr.listener);
    }
}

static void a_lie_is_not_believed(void **state)
{
    (void)state;
    tell_lies(lies, sizeof(lies) / sizeof(lies[0]), true);
}

static void a_small_lie_is_not_believed(void **state)
{
    (void)state;
    tell_lies(small_lies, sizeof(small_lies) / sizeof(small_lies[0]), false);
}

/* A key that was given a long life by hand. */
static void a_life_by_hand_is_not_believed(void **state)
{
    stage *sg = *state;
    dibs__store *st = sg->st[0];

    CHECK(DIBS_OK, acquire(st, err));
    assert_true(
        server_tell(&sg->w->sv, "PEXPIRE", "k", "10000000000000", NULL));
    assert_status(acquire(st, NULL), DIBS_UNKNOWN);
    assert_true(server_tell(&sg->w->sv, "HSET", "k", "fence", "5", NULL));
    assert_status(renew(st, NULL), DIBS_UNKNOWN);
    /* It is the answer that was refused, not the server. */
    assert_true(server_tell(&sg->w->sv, "PEXPIRE", "k", "5000", NULL));
    CHECK(DIBS_OK, renew(st, err));
    CHECK(DIBS_OK, acquire(st, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lie_is_not_believed),
        cmocka_unit_test(a_small_lie_is_not_believed),
        STAGE_TEST(a_life_by_hand_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
