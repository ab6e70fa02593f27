/* test_endless.c - a server that sends without an end, or what it should not: every
 * step ends with its deadline, and what is received has a bound. */
/* SPDX-License-Identifier: MIT */
#include "fake.h"
#include "store/store.h"
#include "world.h"

#include <sys/resource.h>

enum { STEP_MS = 1000, CHUNK = 65536 };

/* How much the memory of this process may grow. Sanitizers keep what was freed. */
#ifdef DIBS_SANITIZED
enum { GROWTH_MAX_KB = 1 << 20 };
#else
enum { GROWTH_MAX_KB = 64 << 10 };
#endif

static const char owner[] = "0123456789abcdef0123456789abcdef";

static long peak_kb(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* The packet again and again. */
static void flood(fake *fk, int fd, const fake_packet *pk)
{
    static uint8_t chunk[CHUNK];
    size_t len = 0;

    for (; len + pk->len <= sizeof(chunk); len += pk->len)
        memcpy(chunk + len, pk->bytes, pk->len);
    while (fake_send(fk, fd, chunk, len))
        ;
}

static void send_notices(fake *fk, int fd)
{
    static const char notice[] = "SNOTICE\0C00000\0Mhello, client\0";
    fake_packet pk = {.len = 0};

    fake_put(&pk, 'N', notice, sizeof(notice));
    flood(fk, fd, &pk);
}

static void send_errors(fake *fk, int fd)
{
    static const char error[] = "SERROR\0VERROR\0C40001\0Mhello, client\0";
    fake_packet pk = {.len = 0};

    fake_put(&pk, 'E', error, sizeof(error));
    flood(fk, fd, &pk);
}

static void send_notifications(fake *fk, int fd)
{
    static const char notice[] = "\0\0\0\1c\0x";
    fake_packet pk = {.len = 0};

    fake_put(&pk, 'A', notice, sizeof(notice));
    flood(fk, fd, &pk);
}

/* Each setting is one that there was not before. */
static void send_settings(fake *fk, int fd)
{
    char body[32];

    for (unsigned number = 0;;) {
        fake_packet pk = {.len = 0};

        while (pk.len < sizeof(pk.bytes) / 2) {
            int len = snprintf(body, sizeof(body), "s%u", number++);

            body[len + 1] = '\0';
            fake_put(&pk, 'S', body, (size_t)len + 2);
        }
        if (!fake_send(fk, fd, pk.bytes, pk.len))
            return;
    }
}

static void send_rows(fake *fk, int fd)
{
    fake_packet head = {.len = 0}, pk = {.len = 0};

    fake_put(&head, 'T', "\0\1c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    fake_put(&pk, 'D', "\0\1\0\0\0\1x", 7);
    if (fake_send(fk, fd, head.bytes, head.len))
        flood(fk, fd, &pk);
}

/* One row that is as long as libpq takes them. */
static void send_long_row(fake *fk, int fd)
{
    static const uint8_t head[] = {'D', 0x3f, 0xff, 0xff, 0xf0, 0,
                                   1,   0x3f, 0xff, 0xff, 0xe0};
    static uint8_t zeros[CHUNK];
    fake_packet pk = {.len = 0};

    fake_put(&pk, 'T', "\0\1c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    if (!fake_send(fk, fd, pk.bytes, pk.len) ||
        !fake_send(fk, fd, head, sizeof(head)))
        return;
    while (fake_send(fk, fd, zeros, sizeof(zeros)))
        ;
}

/* Begins a copy, and feeds it. */
static void begin_copy(fake *fk, int fd, char type)
{
    fake_packet pk = {.len = 0}, data = {.len = 0};

    fake_put(&pk, type, "\0\0\0", 3);
    fake_put(&data, 'd', "row", 3);
    if (fake_send(fk, fd, pk.bytes, pk.len))
        flood(fk, fd, &data);
}

static void begin_copy_in(fake *fk, int fd)
{
    begin_copy(fk, fd, 'G');
}

static void begin_copy_out(fake *fk, int fd)
{
    begin_copy(fk, fd, 'H');
}

static void begin_copy_both(fake *fk, int fd)
{
    begin_copy(fk, fd, 'W');
}

/* Statements that were done, one after the other. */
static void send_done(fake *fk, int fd)
{
    fake_packet pk = {.len = 0};

    fake_put(&pk, 'C', "SELECT 0", 9);
    flood(fk, fd, &pk);
}

/* One byte at a time would be in time for ever. */
static void trickle(fake *fk, int fd)
{
    fake_packet pk = {.len = 0};

    fake_put(&pk, 'N', "SNOTICE\0Mhello, client\0", 24);
    while (fake_send(fk, fd, pk.bytes, pk.len))
        world_sleep_ms(10);
}

static dibs_status
acquire(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    dibs__ask ask = {.name = "k",
                     .owner = owner,
                     .permits = 1,
                     .ttl_ms = 1000,
                     .who = "host:1"};
    dibs__answer ans;

    return st->ops->lease->acquire(st, &ask, deadline, &ans, err);
}

static bool ignore_entries(const char *name, const dibs__entry *entries,
                           size_t count, void *arg)
{
    (void)name, (void)entries, (void)count, (void)arg;
    return true;
}

/* A look, for whose answer there is more room. */
static dibs_status list(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    return st->ops->lease->list(st, "", deadline, ignore_entries, NULL, err);
}

typedef dibs_status step(dibs__store *st, dibsx_nsec deadline, dibs_error *err);

/* One step on a server that does this: ends in time, with this status. */
static void face(void (*harm)(fake *fk, int fd), fake_point point, step *take,
                 dibs_status expected)
{
    int64_t step_ms = pace_ms(STEP_MS);
    fake fk = {.point = point, .harm = harm};
    dibs__store *st = NULL;
    char url[FAKE_URL];
    dibs_error why = {0};
    dibsx_nsec from_at;
    dibs_status rc;

    assert_true(fake_start(&fk));
    fake_url(&fk, url);
    from_at = dibsx_now();
    CHECK(DIBS_OK, dibs__store_make(url, DIBSX_NEVER, &st, err));
    rc = take(st, dibsx_after_ms(from_at, step_ms), &why);
    dibs__store_close(st);
    IN_TIME(world_ms_since(from_at) <= step_ms + pace_ms(WORLD_SLACK_MS));
    fake_stop(&fk);
    assert_true(atomic_load(&fk.harmed) >= 1);
    assert_status(rc, expected);
    assert_true(strlen(why.message) > 10);
}

typedef struct trial {
    const char *name;
    void (*harm)(fake *fk, int fd);
} trial;

static const trial trials[] = {
    {"notices", send_notices},
    {"settings", send_settings},
    {"notifications", send_notifications},
    {"errors", send_errors},
    {"rows", send_rows},
    {"a long row", send_long_row},
    {"statements done", send_done},
    {"COPY IN", begin_copy_in},
    {"COPY OUT", begin_copy_out},
    {"COPY BOTH", begin_copy_both},
    {"a trickle", trickle},
};

/* All of them, one after the other. */
static void face_all(fake_point point, step *take, dibs_status expected)
{
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        long before_kb = peak_kb();

        print_message("%s, peak %ld KB\n", trials[i].name, peak_kb());
        face(trials[i].harm, point, take, expected);
        assert_true(peak_kb() - before_kb < GROWTH_MAX_KB);
    }
}

static void a_hostile_answer_to_a_step_ends_with_it(void **state)
{
    (void)state;
    face_all(FAKE_AT_STEP, acquire, DIBS_UNKNOWN);
}

static void a_hostile_handshake_ends_with_the_step(void **state)
{
    (void)state;
    face_all(FAKE_AT_GREETING, acquire, DIBS_UNAVAIL);
}

static void a_hostile_login_ends_with_the_step(void **state)
{
    (void)state;
    face_all(FAKE_AT_LOGIN, acquire, DIBS_UNAVAIL);
}

static void a_hostile_answer_to_a_look_ends_with_it(void **state)
{
    long before_kb = peak_kb();

    (void)state;
    face(send_rows, FAKE_AT_STEP, list, DIBS_UNAVAIL);
    face(send_long_row, FAKE_AT_STEP, list, DIBS_UNAVAIL);
    face(begin_copy_out, FAKE_AT_STEP, list, DIBS_UNAVAIL);
    assert_true(peak_kb() - before_kb < 2 * GROWTH_MAX_KB);
}

/* Rings without an end fill the room that there is for them, and the listener can
 * be ended. */
static void a_doorbell_that_does_not_stop_can_be_closed(void **state)
{
    fake fk = {.point = FAKE_AT_LISTEN, .harm = send_notifications};
    long before_kb = peak_kb();
    dibsx_nsec from_at = dibsx_now();
    dibs__store *st = NULL;
    char url[FAKE_URL];
    dibs_status rc;
    int fd;

    (void)state;
    assert_true(fake_start(&fk));
    fake_url(&fk, url);
    CHECK(DIBS_OK, dibs__store_make(url, DIBSX_NEVER, &st, err));
    rc =
        st->ops->doorbell_open(st, dibsx_after_ms(from_at, STEP_MS), &fd, NULL);
    assert_status(rc, DIBS_UNAVAIL);
    while (atomic_load(&fk.harmed) < 2) {
        IN_TIME(world_ms_since(from_at) <= pace_ms(60000));
        world_sleep_ms(1);
    }
    from_at = dibsx_now();
    dibs__store_close(st);
    IN_TIME(world_ms_since(from_at) <= pace_ms(5000));
    fake_stop(&fk);
    assert_true(peak_kb() - before_kb < GROWTH_MAX_KB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hostile_answer_to_a_step_ends_with_it),
        cmocka_unit_test(a_hostile_handshake_ends_with_the_step),
        cmocka_unit_test(a_hostile_login_ends_with_the_step),
        cmocka_unit_test(a_hostile_answer_to_a_look_ends_with_it),
        cmocka_unit_test(a_doorbell_that_does_not_stop_can_be_closed),
    };

    return cmocka_run_group_tests_name("postgres endless", tests, NULL, NULL);
}
