/* test_faults_away.c - a server that is not there, or is but does not answer;
 * and many clients that find it again without running it over. */
/* SPDX-License-Identifier: MIT */
#include "hosting.h"
#include "redis_world.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMEOUT_MS = 600, SLACK_MS = 2000 };

/* Opening fails within the deadline, and says why. */
static void assert_away(const char *url)
{
    dibsx_nsec from_at = dibsx_now();
    dibs_client *cl = NULL;
    dibs_error why = {0};
    dibs_status rc =
        dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = TIMEOUT_MS), &cl, &why);

    print_message("%s in %lld ms: %s\n", dibs_status_name(rc),
                  (long long)world_ms_since(from_at), why.message);
    CHECK(DIBS_UNAVAIL, rc);
    assert_null(cl);
    assert_true(why.retriable);
    assert_true(strlen(why.message) > 10);
    IN_TIME(world_ms_since(from_at) <= pace_ms(TIMEOUT_MS + SLACK_MS));
}

static void nobody_listens(void **state)
{
    char url[SERVER_URL_MAX];

    (void)state;
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", hosting_free_port());
    assert_away(url);
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", hosting_free_port());
    assert_away(url);
    assert_away("redis+unix:///nowhere/redis.sock");
    assert_away("redis://no-such-host.invalid:6379");
}

/* A socket that takes connections, as the kernel does by itself, and never says
 * a word. */
static int open_hole(int backlog, int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void nobody_answers(void **state)
{
    char url[SERVER_URL_MAX];
    int port = 0;
    int hole = open_hole(64, &port);

    (void)state;
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    assert_away(url);
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", port);
    assert_away(url);
    close(hole);
}

/* Calls that are on their way when the queue of the socket is full get no reply
 * from the kernel either. */
static void nobody_picks_up(void **state)
{
    enum { CALLERS = 8 };
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int callers[CALLERS];
    char url[SERVER_URL_MAX];
    int port = 0;
    int hole = open_hole(0, &port);

    (void)state;
    at.sin_port = htons((uint16_t)port);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] =
            socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(callers[i] >= 0);
        (void)connect(callers[i], (struct sockaddr *)&at, sizeof(at));
    }
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    assert_away(url);
    for (int i = 0; i < CALLERS; i++)
        close(callers[i]);
    close(hole);
}

/* Steps on a server that has gone. */
static void a_client_whose_server_is_gone_is_told_in_time(void **state)
{
    world *w = *state;
    dibs_client *cl = world_client(w->url, TIMEOUT_MS);
    dibs_lock *lock =
        world_lock(cl, "k", DIBS_LOCK_OPTS(.wait_ms = pace_ms(300)));
    dibs_error why = {0};
    dibsx_nsec from_at;

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    server_await_written(&w->sv);
    server_kill(&w->sv);
    for (int i = 0; i < 20; i++) {
        from_at = dibsx_now();
        assert_int_not_equal(dibs_lock_try(lock, &why), DIBS_OK);
        IN_TIME(world_ms_since(from_at) <= pace_ms(TIMEOUT_MS + SLACK_MS));
    }
    from_at = dibsx_now();
    assert_int_not_equal(dibs_lock_acquire(lock, &why), DIBS_OK);
    assert_true(world_ms_since(from_at) >= 250);
    IN_TIME(world_ms_since(from_at) <= pace_ms(300 + TIMEOUT_MS + SLACK_MS));
    assert_true(server_restart(&w->sv));
    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    dibs_lock_free(lock);
    dibs_close(cl);
}

enum { CROWD = 200, BUCKET_MS = 100, BUCKETS = 60 };

typedef struct crowd {
    dibs_client *clients[CROWD];
    dibs_lock *locks[CROWD];
    loss lost;
} crowd;

static void gather(crowd *all, const char *url)
{
    for (int i = 0; i < CROWD; i++) {
        char name[32];

        snprintf(name, sizeof(name), "crowd-%d", i);
        all->clients[i] = world_client(url, 1000);
        all->locks[i] =
            world_lock_told(all->clients[i], name, 24000, &all->lost);
        CHECK(DIBS_OK, dibs_lock_acquire(all->locks[i], err));
    }
}

static void disperse(crowd *all)
{
    for (int i = 0; i < CROWD; i++) {
        dibs_lock_free(all->locks[i]);
        dibs_close(all->clients[i]);
    }
}

/* Counts the connections of each span until all are back; returns the most. */
static long long watch_return(const server *sv, long long *total)
{
    long long seen = 0, most = 0;

    for (int i = 0; i < BUCKETS && *total < CROWD; i++) {
        long long now, fresh;

        world_sleep_ms(BUCKET_MS);
        now = server_info(sv, "stats", "total_connections_received");
        assert_true(now >= 0);
        fresh = now - seen - 1; /* one is ours */
        seen = now;
        *total += fresh;
        most = fresh > most ? fresh : most;
    }
    return most;
}

/* All renew, so all want to be back as soon as they can. Were they to come back
 * together, it would be in one span. */
static void a_crowd_comes_back_bit_by_bit(void **state)
{
    world *w = *state;
    crowd *all = calloc(1, sizeof(*all));
    long long total = 0, most;

    assert_non_null(all);
    gather(all, w->url);
    server_await_written(&w->sv);
    server_kill(&w->sv);
    world_sleep_ms(10500); /* renewals are due and fail, again and again */
    assert_true(server_restart(&w->sv));
    most = watch_return(&w->sv, &total);
    print_message("%lld of %lld connections in the fullest %d ms\n", most,
                  total, BUCKET_MS);
    IN_TIME(total >= CROWD);
    IN_TIME(most <= CROWD * 2 / 5);
    for (int i = 0; i < CROWD; i++)
        world_await(all->locks[i], DIBS_LOCK_HELD, 4000);
    IN_TIME(atomic_load(&all->lost.count) == 0);
    disperse(all);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(nobody_answers),
        cmocka_unit_test(nobody_picks_up),
        WORLD_TEST(a_client_whose_server_is_gone_is_told_in_time),
        WORLD_TEST(a_crowd_comes_back_bit_by_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
