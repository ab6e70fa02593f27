/* test_pipeline.c - a command in, its reply out: alone, by many threads at once, over
 * every kind of address, with passwords, and when there is nobody there. */
/* SPDX-License-Identifier: MIT */
#include "hosting.h"
#include "pipeline_world.h"

#include "base/alloc.h"
#include "store/redis/wire/resolve.h"
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

/* A resolver that never comes back, for one name; the system's for the rest. */
static pthread_mutex_t hang = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
static atomic_int hanging;

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict out)
{
    int (*real)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    int code;

    memcpy(&real, &symbol, sizeof(real));
    if (strcmp(name, "hang.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST)) {
        atomic_fetch_add(&hanging, 1);
        pthread_mutex_lock(&hang);
        pthread_mutex_unlock(&hang);
        atomic_fetch_sub(&hanging, 1);
        name = "localhost";
    }
    /* The thread sanitizer does not see that the system's is safe. */
    pthread_mutex_lock(&one_by_one);
    code = real(name, service, hints, out);
    pthread_mutex_unlock(&one_by_one);
    return code;
}

static int setup(void **state)
{
    static const char *const args[] = {"--bind", "127.0.0.1", "-::1", NULL};
    static server sv;

    *state = &sv;
    return server_start_forgetful(&sv, args) ? 0 : -1;
}

static int teardown(void **state)
{
    server_stop(*state);
    return 0;
}

static void a_command_gets_its_reply(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "PING", "PONG");
    expect(&pd, "SET k v NX PX 10000", "OK");
    expect(&pd, "SET k w NX PX 10000", "(nil)");
    expect(&pd, "GET k", "v");
    expect(&pd, "INCR n", "1");
    expect(&pd, "MGET k none n", "v (nil) 1");
    expect(&pd, "NOSUCH",
           "-ERR unknown command 'NOSUCH', with args beginning "
           "with: ");
    expect(&pd, "ECHO", "-ERR wrong number of arguments for 'echo' command");
    expect(&pd, "DEL k n", "2");
    pipe_close(&pd);
}

/* Of sizes that do not fit on a stack, in a packet, in a socket. */
static void bytes_come_back_as_they_went(void **state)
{
    static const size_t sizes[] = {0, 1, 1000, 1024, 70000, 8 << 20};
    piped pd;

    pipe_open_server(&pd, *state);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        dibs__words words = {.count = 0};
        char *bytes = malloc(sizes[i] + 1);
        redisReply *reply = NULL;

        assert_non_null(bytes);
        for (size_t at = 0; at < sizes[i]; at++)
            bytes[at] = (char)(at * 7);
        dibs__words_puts(&words, "ECHO");
        dibs__words_add(&words, bytes, sizes[i]);
        assert_status(dibs__pipeline_call(pd.pl, &words,
                                          dibsx_after_ms(dibsx_now(), 10000),
                                          &reply, &pd.err),
                      DIBS_OK);
        assert_int_equal(reply->len, sizes[i]);
        assert_memory_equal(reply->str, bytes, sizes[i]);
        dibs__reply_free(reply);
        free(bytes);
    }
    pipe_close(&pd);
}

/* A reply that is larger than is believed ends the connection, not the client. */
static void a_huge_reply_is_not_taken(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "SETRANGE huge 70000000 x", "70000001");
    expect_status(&pd, 10000, "GET huge", DIBS_UNKNOWN);
    assert_non_null(strstr(pd.err.message, "too large"));
    expect(&pd, "DEL huge", "1");
    pipe_close(&pd);
}

/* Several commands as one piece, among those of other threads: each piece has its
 * own replies in order. */
typedef struct piece {
    dibs__pipeline *pl;
    int number;
    atomic_int *wrong;
    pthread_t thread;
} piece;

static void *send_pieces(void *arg)
{
    piece *pc = arg;

    for (int i = 0; i < 300; i++) {
        redisReply *replies[3] = {NULL};
        char bytes[128], text[16];
        dibs_error err;
        dibs_status rc;
        int len = snprintf(bytes, sizeof(bytes),
                           "*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$8\r\n"
                           "%08d\r\n*1\r\n$6\r\nNOSUCH\r\n",
                           pc->number * 1000 + i);

        snprintf(text, sizeof(text), "%08d", pc->number * 1000 + i);
        rc = dibs__pipeline_unit(pc->pl, bytes, (size_t)len, 3,
                                 dibsx_after_ms(dibsx_now(), 10000), replies,
                                 &err);
        IN_TIME(!pace_explains(rc));
        if (rc != DIBS_OK || strcmp(replies[0]->str, "PONG") != 0 ||
            strcmp(replies[1]->str, text) != 0 ||
            replies[2]->type != REDIS_REPLY_ERROR)
            atomic_fetch_add(pc->wrong, 1);
        for (int k = 0; k < 3; k++)
            dibs__reply_free(replies[k]);
    }
    return NULL;
}

static void pieces_have_their_replies_in_order(void **state)
{
    atomic_int wrong = 0;
    piece pieces[6];
    piped pd;

    pipe_open_server(&pd, *state);
    for (int i = 0; i < 6; i++) {
        pieces[i] = (piece){.pl = pd.pl, .number = i + 1, .wrong = &wrong};
        assert_int_equal(pthread_create(&pieces[i].thread, NULL, send_pieces,
                                        &pieces[i]),
                         0);
    }
    for (int i = 0; i < 300; i++)
        expect(&pd, "PING", "PONG");
    for (int i = 0; i < 6; i++)
        pthread_join(pieces[i].thread, NULL);
    assert_int_equal(wrong, 0);
    pipe_close(&pd);
}

/* It ends as a whole when the server does not answer all of it. */
static void a_piece_without_all_replies_is_unknown(void **state)
{
    static const char bytes[] = "*1\r\n$4\r\nPING\r\n"
                                "*3\r\n$5\r\nBLPOP\r\n$4\r\nnone\r\n"
                                "$1\r\n0\r\n";
    redisReply *replies[2];
    piped pd;

    pipe_open_server(&pd, *state);
    assert_status(dibs__pipeline_unit(pd.pl, bytes, sizeof(bytes) - 1, 2,
                                      dibsx_after_ms(dibsx_now(), 300), replies,
                                      &pd.err),
                  DIBS_UNKNOWN);
    assert_null(replies[0]);
    assert_null(replies[1]);
    expect_soon(&pd, "PING", "PONG");
    pipe_close(&pd);
}

static void many_threads_share_one_connection(void **state)
{
    long long before =
        server_info(*state, "stats", "total_connections_received");
    piped pd;

    pipe_open_server(&pd, *state);
    expect_crowd(&pd, 64, 300);
    /* That of the pipeline, and that by which the count is asked for. */
    assert_int_equal(server_info(*state, "stats", "total_connections_received"),
                     before + 2);
    pipe_close(&pd);
}

static void the_handshake_sets_database_and_name(void **state)
{
    char url[SERVER_URL_MAX];
    char *clients;
    piped pd, other;

    server_url(*state, url);
    strncat(url, "/5?client_name=greeter", sizeof(url) - strlen(url) - 1);
    pipe_open(&pd, url);
    pipe_open_server(&other, *state);
    expect(&pd, "SET in five", "OK");
    expect(&other, "EXISTS in", "0");
    expect(&other, "SELECT 5", "OK");
    expect(&other, "GET in", "five");
    clients = server_ask(*state, "CLIENT", "LIST", NULL);
    assert_non_null(clients);
    assert_non_null(strstr(clients, "name=greeter "));
    assert_non_null(strstr(clients, "name=dibs "));
    free(clients);
    pipe_close(&other);
    pipe_close(&pd);
}

static void a_database_that_is_not_there_is_named(void **state)
{
    char url[SERVER_URL_MAX];
    piped pd;

    server_url(*state, url);
    strncat(url, "/99999", sizeof(url) - strlen(url) - 1);
    pipe_open(&pd, url);
    expect_status(&pd, 5000, "PING", DIBS_INVALID);
    assert_non_null(strstr(pd.err.message, "99999"));
    pipe_close(&pd);
}

static void try_password(const server *sv, const char *login,
                         dibs_status status, const char *said)
{
    char url[SERVER_URL_MAX];
    piped pd;

    snprintf(url, sizeof(url), "redis://%s127.0.0.1:%d", login, sv->port);
    pipe_open(&pd, url);
    if (status == DIBS_OK) {
        expect(&pd, "ECHO in", "in");
    } else {
        expect_status(&pd, 5000, "PING", status);
        assert_non_null(strstr(pd.err.message, said));
        assert_null(strstr(pd.err.message, "wrong-one"));
        expect_status(&pd, 5000, "PING", status);
    }
    pipe_close(&pd);
}

static void a_password_opens_or_not(void **state)
{
    static const char *const args[] = {
        "--requirepass", "right-one", "--user", "ann", "on",
        ">secret",       "~*",        "+@all",  NULL};
    server sv;

    (void)state;
    assert_true(server_start_forgetful(&sv, args));
    try_password(&sv, ":right-one@", DIBS_OK, NULL);
    try_password(&sv, "default:right-one@", DIBS_OK, NULL);
    try_password(&sv, "ann:secret@", DIBS_OK, NULL);
    try_password(&sv, ":wrong-one@", DIBS_DENIED, "default (WRONGPASS)");
    try_password(&sv, "ann:wrong-one@", DIBS_DENIED, "ann (WRONGPASS)");
    try_password(&sv, "bob:wrong-one@", DIBS_DENIED, "bob (WRONGPASS)");
    try_password(&sv, "", DIBS_DENIED, "wants a password");
    server_stop(&sv);
}

static void a_server_without_a_password_says_so(void **state)
{
    try_password(*state, ":wrong-one@", DIBS_DENIED, "it has none; set");
}

static void a_server_without_room_is_away(void **state)
{
    piped pd, late;

    pipe_open_server(&pd, *state);
    expect(&pd, "CONFIG SET maxclients 1", "OK");
    pipe_open_server(&late, *state);
    expect_status(&late, 5000, "PING", DIBS_UNAVAIL);
    assert_non_null(strstr(late.err.message, "max number of clients"));
    assert_true(late.err.retriable);
    expect(&pd, "CONFIG SET maxclients 1000", "OK");
    expect_soon(&late, "PING", "PONG");
    pipe_close(&late);
    pipe_close(&pd);
}

static void every_kind_of_address_leads_there(void **state)
{
    const server *sv = *state;
    char urls[4][SERVER_URL_MAX];

    server_unix_url(sv, urls[0]);
    snprintf(urls[1], sizeof(urls[1]), "redis://localhost:%d", sv->port);
    snprintf(urls[2], sizeof(urls[2]), "redis://127.0.0.1:%d", sv->port);
    snprintf(urls[3], sizeof(urls[3]), "redis://[::1]:%d", sv->port);
    for (int i = 0; i < 4; i++) {
        piped pd;

        pipe_open(&pd, urls[i]);
        expect(&pd, "PING", "PONG");
        pipe_close(&pd);
    }
}

static void nobody_there_is_told_at_once(void **state)
{
    char url[SERVER_URL_MAX];
    piped pd;

    pipe_open_port(&pd, hosting_free_port());
    expect_status(&pd, 60000, "PING", DIBS_UNAVAIL);
    assert_string_equal(pd.err.origin, "ECONNREFUSED");
    pipe_close(&pd);
    server_unix_url(*state, url);
    strncat(url, "-not", sizeof(url) - strlen(url) - 1);
    pipe_open(&pd, url);
    expect_status(&pd, 60000, "PING", DIBS_UNAVAIL);
    assert_string_equal(pd.err.origin, "ENOENT");
    pipe_close(&pd);
    pipe_open(&pd, "redis://no-such-host.invalid");
    expect_status(&pd, 60000, "PING", DIBS_UNAVAIL);
    assert_non_null(strstr(pd.err.message, "no-such-host.invalid"));
    pipe_close(&pd);
}

/* A server of ours that says one thing to all who come. */
typedef struct parrot {
    int fd;
    int port;
    const char *says;
    pthread_t thread;
} parrot;

static void *squawk(void *arg)
{
    parrot *pt = arg;
    char heard[512];
    int fd;

    while ((fd = accept4(pt->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        while (recv(fd, heard, sizeof(heard), 0) > 0)
            if (send(fd, pt->says, strlen(pt->says), MSG_NOSIGNAL) < 0)
                break;
        close(fd);
    }
    return NULL;
}

static void parrot_start(parrot *pt, const char *says)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    pt->says = says;
    pt->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(pt->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(pt->fd, 8), 0);
    getsockname(pt->fd, (struct sockaddr *)&at, &len);
    pt->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&pt->thread, NULL, squawk, pt), 0);
}

static void parrot_stop(parrot *pt)
{
    shutdown(pt->fd, SHUT_RDWR);
    pthread_join(pt->thread, NULL);
    close(pt->fd);
}

static void what_is_no_redis_is_refused(void **state)
{
    static const struct {
        const char *says;
        const char *why;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol"},
        {"\x15\x03\x01\x02\x02\x16", "rediss:"},
        {"*999999999\r\n", "too many items"},
        {"*2\r\n*999999\r\n*999999\r\n", "too many items"},
        {"$999999999\r\n", "too large"},
        {"$99999999999999999999\r\n", "length"},
        {"*-7\r\n", "negative"},
        {"+a\n$50\r\n*999999999\r\n", "broken"},
        {"-DENIED Redis is running in protected mode\r\n", "protected mode"},
        {"-LOADING Redis is loading the dataset\r\n", "LOADING"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TEXT_MAX];
        parrot pt;
        dibs_status rc;
        piped pd;

        parrot_start(&pt, cases[i].says);
        pipe_open_port(&pd, pt.port);
        rc = put(&pd, 5000, "PING", text);
        if (i == 8)
            CHECK(DIBS_DENIED, rc);
        else if (i == 9)
            CHECK(DIBS_UNAVAIL, rc);
        else
            CHECK(DIBS_REFUSED, rc);
        if (!strstr(pd.err.message, cases[i].why))
            fail_msg("%s: %s", cases[i].says, pd.err.message);
        pipe_close(&pd);
        parrot_stop(&pt);
    }
}

static void a_resolver_that_hangs_holds_up_nobody(void **state)
{
    const server *sv = *state;
    dibsx_nsec before = dibsx_now();
    dibs__address found[DIBS__ADDRESS_MAX];
    dibs__resolver *rs = dibs__resolver_new("hang.test", sv->port);
    char url[SERVER_URL_MAX];
    size_t count = 0;
    piped pd;

    assert_non_null(rs);
    pthread_mutex_lock(&hang);
    snprintf(url, sizeof(url), "redis://hang.test:%d", sv->port);
    pipe_open(&pd, url);
    expect_status(&pd, 50, "PING", DIBS_UNAVAIL);
    assert_non_null(strstr(pd.err.message, "not resolved in time"));
    /* The second waits for the same question and does not ask another. */
    expect_status(&pd, 300, "PING", DIBS_UNAVAIL);
    assert_int_equal(atomic_load(&hanging), 1);
    IN_TIME(dibsx_now() - before < 20 * DIBSX_SEC);
    pipe_close(&pd);

    pthread_mutex_unlock(&hang);
    CHECK(DIBS_OK,
          dibs__resolve(rs, before + 60 * DIBSX_SEC, found, &count, err));
    /* What was good once is used when there is no answer. */
    pthread_mutex_lock(&hang);
    count = 0;
    CHECK(DIBS_OK,
          dibs__resolve(rs, dibsx_now() + 50 * DIBSX_MS, found, &count, err));
    assert_true(count > 0);
    dibs__resolver_free(rs);
    pthread_mutex_unlock(&hang);
    while (atomic_load(&hanging) > 0)
        sched_yield();
}

/* Every allocation fails once; then the same call does it. */
static void short_memory_is_survived(void **state)
{
    for (unsigned long n = 1;; n++) {
        dibs__pipeline *pl = NULL;
        unsigned long made;
        char text[TEXT_MAX];
        dibs_status rc;
        piped pd;

        pipe_open_server(&pd, *state);
        dibsx_alloc_fail_at(n);
        rc = dibs__pipeline_new(&pd.conf, &pl, NULL);
        if (rc == DIBS_OK)
            rc = put_quietly(pl, 5000, "PING", text, NULL);
        made = dibsx_alloc_count();
        dibsx_alloc_fail_at(0);
        assert_true(rc == DIBS_OK || rc == DIBS_NOMEM);
        if (pl && rc != DIBS_OK)
            assert_status(put_quietly(pl, 5000, "PING", text, NULL), DIBS_OK);
        dibs__pipeline_free(pl);
        pipe_close(&pd);
        if (made < n) {
            assert_true(n > 4);
            break;
        }
    }
}

static void nothing_is_left_open(void **state)
{
    int before = open_fds();
    piped pd;

    for (int i = 0; i < 20; i++) {
        pipe_open_server(&pd, *state);
        expect(&pd, "PING", "PONG");
        pipe_close(&pd);
        pipe_open_port(&pd, hosting_free_port());
        expect_status(&pd, 5000, "PING", DIBS_UNAVAIL);
        pipe_close(&pd);
    }
    assert_int_equal(open_fds(), before);
}

static void a_deadline_that_has_passed_sends_nothing(void **state)
{
    piped pd;

    pipe_open_server(&pd, *state);
    expect(&pd, "DEL late", "0");
    expect_status(&pd, 0, "SET late x", DIBS_UNAVAIL);
    expect(&pd, "EXISTS late", "0");
    pipe_close(&pd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_gets_its_reply),
        cmocka_unit_test(bytes_come_back_as_they_went),
        cmocka_unit_test(a_huge_reply_is_not_taken),
        cmocka_unit_test(pieces_have_their_replies_in_order),
        cmocka_unit_test(a_piece_without_all_replies_is_unknown),
        cmocka_unit_test(many_threads_share_one_connection),
        cmocka_unit_test(the_handshake_sets_database_and_name),
        cmocka_unit_test(a_database_that_is_not_there_is_named),
        cmocka_unit_test(a_server_without_room_is_away),
        cmocka_unit_test(every_kind_of_address_leads_there),
        cmocka_unit_test(nobody_there_is_told_at_once),
        cmocka_unit_test(what_is_no_redis_is_refused),
        cmocka_unit_test(a_resolver_that_hangs_holds_up_nobody),
        cmocka_unit_test(short_memory_is_survived),
        cmocka_unit_test(nothing_is_left_open),
        cmocka_unit_test(a_deadline_that_has_passed_sends_nothing),
        cmocka_unit_test(a_password_opens_or_not),
        cmocka_unit_test(a_server_without_a_password_says_so),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
