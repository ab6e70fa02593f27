/* test_serve.c - the pure parts of the daemon: tokens, addresses, failures. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "serve/address.h"
#include "serve/attention.h"
#include "serve/audit.h"
#include "serve/class.h"
#include "serve/gate.h"
#include "serve/list.h"
#include "serve/problem.h"
#include "serve/proxy.h"
#include "serve/routes.h"
#include "serve/row.h"
#include "serve/token.h"
#include "serve/tree.h"
#include "serve/wrong_tokens.h"
#include "unit.h"

#include "base/alloc.h"
#include "base/json_read.h"
#include "base/text.h"
#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* SHA-256 of "abc". */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static dibs_status
parse(dibs__serve_tokens *tokens, const char *text, dibs_error *err)
{
    char copy[1024];

    snprintf(copy, sizeof(copy), "%s", text);
    return dibs__serve_tokens_parse(tokens, copy, "file", err);
}

static void tokens_are_recognised(void **state)
{
    const int64_t now_wall_us = INT64_C(1800000000) * 1000000; /* 2027-01-15 */
    const dibs__serve_token *found;
    dibs__serve_tokens tokens;

    (void)state;
    assert_int_equal(parse(&tokens,
                           "# comment\n\n"
                           "old read sha256:" ABC
                           " expires=2027-01-14T00:00:00Z\r\n"
                           "new\toperate  sha256:" ABC
                           " expires=2027-01-16T00:00:00Z",
                           NULL),
                     DIBS_OK);
    assert_int_equal(tokens.count, 2);
    found = dibs__serve_tokens_find(&tokens, "abc", now_wall_us);
    assert_non_null(found);
    assert_string_equal(found->name, "new");
    assert_int_equal(found->role, DIBS__SERVE_OPERATE);
    assert_null(dibs__serve_tokens_find(&tokens, "abcd", now_wall_us));
    assert_null(dibs__serve_tokens_find(&tokens, "", now_wall_us));
    /* Both are over. */
    assert_null(
        dibs__serve_tokens_find(&tokens, "abc",
                                now_wall_us + INT64_C(172800) * 1000000));
}

/* A restriction that is not understood must not be passed over. */
static void bad_lines_are_refused(void **state)
{
    static const char *const cases[] = {
        "name admin",
        "name root sha256:" ABC,
        "name none sha256:" ABC,
        "na/me admin sha256:" ABC,
        "name admin " ABC,
        "name admin sha256:" ABC "0",
        "name admin sha256:" ABC " names=jobs:",
        "name admin sha256:" ABC " expires=tomorrow",
        "name admin sha256:" ABC " expires=2027-01-14T00:00:00+01:00",
        "12345678901234567890123456789012345678901234567890123456789012345"
        " admin sha256:" ABC};
    dibs__serve_tokens tokens;
    char text[1024];
    dibs_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(text, sizeof(text), "good read sha256:%s\n%s\n", ABC,
                 cases[i]);
        if (parse(&tokens, text, &err) != DIBS_REFUSED)
            fail_msg("%s was taken", cases[i]);
        assert_memory_equal(err.message, "file:2: ", 8);
    }
}

static void addresses(void **state)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        int port;
        bool loopback;
    } cases[] = {{"127.0.0.1:3427", "127.0.0.1", 3427, true},
                 {"127.9.9.9:1", "127.9.9.9", 1, true},
                 {"[::1]:0", "::1", 0, true},
                 {"localhost:80", "127.0.0.1", 80, true},
                 {"0.0.0.0:80", "0.0.0.0", 80, false},
                 {"[::]:80", "::", 80, false},
                 {"10.0.0.1:80", "10.0.0.1", 80, false},
                 {"::1:80", NULL, 0, false},
                 {"127.0.0.1", NULL, 0, false},
                 {"127.0.0.1:", NULL, 0, false},
                 {":80", NULL, 0, false},
                 {"127.0.0.1:65536", NULL, 0, false},
                 {"127.0.0.1:8x", NULL, 0, false},
                 {"localhost.example:80", NULL, 0, false}};
    dibs__serve_address at;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs_status rc = dibs__serve_address_read(cases[i].text, &at, NULL);

        if ((rc == DIBS_OK) != (cases[i].host != NULL))
            fail_msg("%s: %d", cases[i].text, rc);
        if (rc != DIBS_OK)
            continue;
        assert_string_equal(at.host, cases[i].host);
        assert_int_equal(at.port, cases[i].port);
        assert_int_equal(at.loopback, cases[i].loopback);
    }
}

static void failures_are_counted_by_address(void **state)
{
    static dibs__serve_failures all[DIBS__SERVE_PEERS_MAX];
    const dibsx_nsec now = 1000 * DIBSX_SEC;
    char peer[DIBS__HTTP_PEER_MAX];

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_false(dibs__serve_failures_over(all, "10.0.0.1", now));
        /* The first of a minute is written down. */
        assert_int_equal(dibs__serve_failures_add(all, "10.0.0.1", now),
                         i == 0);
    }
    assert_true(dibs__serve_failures_over(all, "10.0.0.1", now));
    assert_false(dibs__serve_failures_over(all, "10.0.0.2", now));
    assert_true(
        dibs__serve_failures_over(all, "10.0.0.1", now + 59 * DIBSX_SEC));
    assert_false(
        dibs__serve_failures_over(all, "10.0.0.1", now + 60 * DIBSX_SEC));
    /* Later addresses do not push it out before its time. */
    for (int i = 0; i < 200; i++) {
        snprintf(peer, sizeof(peer), "10.1.0.%d", i);
        assert_true(dibs__serve_failures_add(all, peer, now + DIBSX_SEC));
    }
    assert_true(
        dibs__serve_failures_over(all, "10.0.0.1", now + 2 * DIBSX_SEC));
}

typedef struct refused {
    size_t count;
    bool last; /* that of GET /v1/last is among them */
} refused;

static bool count_entry(const dibs_trail_entry *entry, void *arg)
{
    refused *rf = arg;

    assert_string_equal(entry->action, "token-refused");
    assert_non_null(strstr(entry->reason, "from=10.0.0.1 request=7 "));
    rf->count++;
    rf->last |= strcmp(entry->name, "/v1/last") == 0;
    return true;
}

static refused read_refused(dibs_client *cl)
{
    refused rf = {0};
    dibs_error err = {0};

    assert_int_equal(dibs_trail_read(cl, 0, count_entry, &rf, &err), DIBS_OK);
    return rf;
}

/* Ten in an hour, however many come. */
static void wrong_tokens_are_bounded(void **state)
{
    const dibs__wrong_token item = {"10.0.0.1", "7", "/v1/locks"};
    const dibs__wrong_token last = {"10.0.0.1", "7", "/v1/last"};
    const dibsx_nsec now = 1000 * DIBSX_SEC;
    dibs__wrong_tokens wrong = {.cl = NULL};
    dibs_client *cl = NULL;
    dibs__serve_log log;
    dibs_error err = {0};

    (void)state;
    dibs__serve_log_init(&log, false);
    assert_int_equal(dibs_open("memory:", NULL, &cl, &err), DIBS_OK);
    assert_int_equal(dibs__wrong_tokens_init(&wrong, cl, &log, &err), DIBS_OK);
    for (int i = 0; i < 10; i++)
        dibs__wrong_tokens_note(&wrong, &item, now);
    while (read_refused(cl).count < 10)
        poll(NULL, 0, 1);
    for (int i = 0; i < 3; i++)
        dibs__wrong_tokens_note(&wrong, &item, now + 3599 * DIBSX_SEC);
    dibs__wrong_tokens_note(&wrong, &last, now + 3600 * DIBSX_SEC);
    while (!read_refused(cl).last)
        poll(NULL, 0, 1);
    assert_int_equal(read_refused(cl).count, 11);
    dibs__wrong_tokens_fini(&wrong);
    dibs_close(cl);
    dibs__serve_log_fini(&log);
}

static void every_status_has_a_problem(void **state)
{
    (void)state;
    for (int rc = DIBS_BUSY; rc <= DIBS_FORKED; rc++) {
        if (rc > DIBS_FULL && rc < DIBS_UNAVAIL)
            continue;
        assert_true(dibs__serve_problem_status((dibs_status)rc) >= 400);
    }
    assert_int_equal(dibs__serve_problem_status(DIBS_BUSY), 409);
    assert_int_equal(dibs__serve_problem_status(DIBS_LOST), 410);
    assert_int_equal(dibs__serve_problem_status(DIBS_UNAVAIL), 503);
    assert_int_equal(dibs__serve_problem_status(DIBS_UNKNOWN), 504);
    assert_int_equal(dibs__serve_problem_status(DIBS_DENIED), 502);
}

static void rows_are_whole_copies(void **state)
{
    dibs_party holder = {.owner = "0123456789abcdef0123456789abcdef",
                         .host = "h",
                         .label = "",
                         .mode = "exclusive",
                         .identity = "main",
                         .meta = "a=1\tb=x=y\tc",
                         .stale = NULL,
                         .fence = 7,
                         .left_ms = 500};
    dibs_lease_info info = {.name = "name",
                            .holders = &holder,
                            .holder_count = 1};
    dibs_lease_info *copy = dibs__serve_row_copy(&info);
    char etag[DIBS__SERVE_ETAG_MAX];
    dibsx_json js;
    dibsx_buf out;

    (void)state;
    assert_non_null(copy);
    memset(&holder, 0, sizeof(holder));
    dibsx_buf_init(&out, 4096);
    dibsx_json_init(&js, &out);
    dibsx_json_open(&js, '{');
    dibs__serve_row_json(&js, copy, 600, 0);
    dibsx_json_close(&js, '}');
    assert_non_null(strstr(dibsx_buf_text(&out),
                           "\"meta\":{\"a\":\"1\",\"b\":\"x=y\",\"c\":\"\"}"));
    assert_non_null(strstr(dibsx_buf_text(&out), "\"owner8\":\"01234567\""));
    assert_null(strstr(dibsx_buf_text(&out), "012345678"));
    assert_non_null(strstr(dibsx_buf_text(&out), "\"left_ms\":0,"));
    dibs__serve_row_etag(copy, etag);
    assert_memory_equal(etag, "\"7-0-1-", strlen("\"7-0-1-"));
    dibsx_buf_fini(&out);
    dibsx_free(copy);
}

/* Whether the ETag of the row is another one than `was`, which becomes it. */
static bool
has_new_etag(const dibs_lease_info *info, char was[DIBS__SERVE_ETAG_MAX])
{
    char etag[DIBS__SERVE_ETAG_MAX];
    bool is_new;

    dibs__serve_row_etag(info, etag);
    is_new = strcmp(etag, was) != 0;
    memcpy(was, etag, sizeof(etag));
    return is_new;
}

/* What a row shows changes its ETag, but for times and the order of parties. */
static void an_etag_sees_what_a_row_shows(void **state)
{
    dibs_party holders[2] = {
        {.owner = "0123456789", .mode = "shared", .permits = 1, .fence = 7},
        {.owner = "abcdef0123", .mode = "shared", .permits = 1, .fence = 6}};
    dibs_party waiter = {.owner = "feedfeed00", .mode = "exclusive"};
    const dibs_party first = holders[0];
    dibs_lease_info info = {.name = "name",
                            .holders = holders,
                            .holder_count = 2,
                            .waiters = &waiter,
                            .waiter_count = 1};
    char etag[DIBS__SERVE_ETAG_MAX] = "";

    (void)state;
    assert_true(has_new_etag(&info, etag));
    holders[0].left_ms = waiter.age_ms = 5;
    assert_false(has_new_etag(&info, etag));
    holders[0] = holders[1];
    holders[1] = first;
    assert_false(has_new_etag(&info, etag));
    holders[1].mode = "exclusive";
    assert_true(has_new_etag(&info, etag));
    holders[0].stale = "it is gone";
    assert_true(has_new_etag(&info, etag));
    holders[0].left = true;
    assert_true(has_new_etag(&info, etag));
    holders[0].claim = true;
    assert_true(has_new_etag(&info, etag));
    holders[0].permits = 2;
    assert_true(has_new_etag(&info, etag));
    waiter.owner = "0badcafe00";
    assert_true(has_new_etag(&info, etag));
    info.waiters = holders;
    info.holders = &waiter;
    info.waiter_count = 2;
    info.holder_count = 1;
    assert_true(has_new_etag(&info, etag));
}

enum { NEEDY = 120 };

/* A picture of names of which the last is stale and the others wait the longer, the later
 * they come. */
typedef struct needy {
    dibs_party holder, waiters[NEEDY];
    dibs_lease_info infos[NEEDY], *rows[NEEDY];
    dibs__serve_picture picture;
} needy;

static void make_needy(needy *nd)
{
    *nd = (needy){.holder = {.owner = "1", .stale = "it is gone"}};
    for (size_t i = 0; i < NEEDY; i++) {
        nd->waiters[i].age_ms = DIBS__LONG_WAIT_MS - 10 + (int64_t)i;
        nd->infos[i] = (dibs_lease_info){.name = "n",
                                         .waiters = &nd->waiters[i],
                                         .waiter_count = 1};
        nd->rows[i] = &nd->infos[i];
    }
    nd->infos[NEEDY - 1].holders = &nd->holder;
    nd->infos[NEEDY - 1].holder_count = 1;
    nd->picture = (dibs__serve_picture){.rows = nd->rows, .count = NEEDY};
}

/* However many wait for long, they hide neither who is gone nor who waits longest. */
static void what_needs_a_look_most_comes_first(void **state)
{
    dibs__attention at;
    needy nd;

    (void)state;
    make_needy(&nd);
    dibs__attention_find(&at, &nd.picture);
    /* The first ten have not waited for so long. */
    assert_int_equal(at.total, 1 + NEEDY - 10);
    assert_int_equal(at.count, DIBS__ATTENTION_MAX);
    assert_string_equal(at.notices[0].stale, "it is gone");
    for (size_t i = 1; i < at.count; i++) {
        assert_null(at.notices[i].stale);
        assert_ptr_equal(at.notices[i].row, &nd.infos[NEEDY - i]);
    }
    nd.picture.count = 10;
    dibs__attention_find(&at, &nd.picture);
    assert_int_equal(at.count + at.total, 0);
}

static void classes_of_names(void **state)
{
    static const char *const cases[][2] = {
        {"workflow:42:bookmark:7", "workflow:*:bookmark:*"},
        {"workflow:retry-scheduler", "workflow:retry-scheduler"},
        {"job-17", "job-*"},
        {"user/123e4567-e89b-12d3-a456-426614174000/x", "user/*/x"},
        {"run.01ARZ3NDEKTSV4RRFFQ69G5FAV", "run.*"},
        {"commit:deadbeef", "commit:deadbeef"},
        {"commit:deadbee1", "commit:*"},
        {"v2", "v2"},
        {"2024-11-16", "*-*-*"},
        {"\xC3\xA9t\xC3\xA9:5", "\xC3\xA9t\xC3\xA9:*"},
        {"a--b", "a--b"},
        {"7", "*"},
        {"::", "::"}};
    char out[DIBS__SERVE_CLASS_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__serve_class(NULL, cases[i][0], out);
        assert_string_equal(out, cases[i][1]);
    }
}

static void classes_by_rules(void **state)
{
    static const char rules[] = "tenant:*:sync, tenant:*,*.lock,a*b*c";
    static const char *const cases[][2] = {{"tenant:acme:sync",
                                            "tenant:*:sync"},
                                           {"tenant:acme:eu:sync",
                                            "tenant:*:sync"},
                                           {"tenant:acme:syncs", "tenant:*"},
                                           {"tenant:", "tenant:*"},
                                           {"tenant", "tenant"},
                                           {"x.lock", "*.lock"},
                                           {"x.lock.lock", "*.lock"},
                                           {"abc", "a*b*c"},
                                           {"a-b-b-c", "a*b*c"},
                                           {"abcd", "abcd"},
                                           {"job-17", "job-*"}};
    char out[DIBS__SERVE_CLASS_MAX], longest[DIBS__SERVE_CLASS_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__serve_class(rules, cases[i][0], out);
        assert_string_equal(out, cases[i][1]);
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(dibs__serve_class_check(longest, NULL), DIBS_REFUSED);
    assert_int_equal(dibs__serve_class_check(longest + 1, NULL), DIBS_OK);
    assert_int_equal(dibs__serve_class_check(NULL, NULL), DIBS_OK);
}

static void causes_are_split(void **state)
{
    static const struct {
        const char *text, *reason, *who, *from, *request;
    } cases[] = {{"gone [who=ann from=::1 request=7]", "gone", "ann", "::1",
                  "7"},
                 {"[who=ann from=::1 request=7]", "", "ann", "::1", "7"},
                 {"a [who=x] b [who=ann from=::1 request=7]", "a [who=x] b",
                  "ann", "::1", "7"},
                 {"why [who=ann@web1]", "why", "ann@web1", "", ""},
                 {"plain", "plain", "", "", ""},
                 {"", "", "", "", ""},
                 {"[who=ann", "[who=ann", "", "", ""}};
    dibs__change_cause cause;
    char text[128];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(text, sizeof(text), "%s", cases[i].text);
        dibs__change_read(text, &cause);
        assert_string_equal(cause.reason, cases[i].reason);
        assert_string_equal(cause.who, cases[i].who);
        assert_string_equal(cause.from, cases[i].from);
        assert_string_equal(cause.request, cases[i].request);
    }
}

/* However long the reason is, the rest is found again. */
static void causes_are_whole(void **state)
{
    char who[65], reason[300], text[DIBS__CHANGE_CAUSE_MAX];
    const dibs__change_cause cause = {
        reason,
        who,
        "2001:db8:1111:2222:3333:4444:5555:6666",
        who,
        "admin",
        "/v1/sessions/{session}/leases/{id}/of/a/longer/path",
        "UNAVAIL"};
    dibs__change_cause found;

    (void)state;
    memset(who, 'w', sizeof(who) - 1);
    who[sizeof(who) - 1] = '\0';
    for (size_t len = 0; len + 3 <= sizeof(reason); len += 2) {
        memcpy(&reason[len], "\xc3\xa9", 3);
        dibs__change_write(&cause, text);
        dibs__change_read(text, &found);
        assert_string_equal(found.who, who);
        assert_string_equal(found.from, cause.from);
        assert_string_equal(found.request, who);
        assert_string_equal(found.role, "admin");
        assert_string_equal(found.route, cause.route);
        assert_string_equal(found.result, "UNAVAIL");
        assert_int_equal(strlen(found.reason) % 2, 0);
        assert_memory_equal(found.reason, reason, strlen(found.reason));
        assert_true(strlen(found.reason) == len + 2 ||
                    strlen(found.reason) > 200);
    }
}

/* Rows that come between two pages neither hide nor repeat others. */
static void lists_go_on_after_a_row(void **state)
{
    dibs_party waiters[3] = {{.host = "h", .label = ""},
                             {.host = "h", .label = ""},
                             {.host = "h", .label = ""}};
    dibs_lease_info a = {.name = "a", .waiters = waiters, .waiter_count = 1};
    dibs_lease_info b = {.name = "b", .waiters = waiters, .waiter_count = 3};
    dibs_lease_info c = {.name = "c", .waiters = waiters, .waiter_count = 1};
    dibs_lease_info d = {.name = "d"}, ab = {.name = "ab"};
    dibs_lease_info *before[] = {&a, &b, &c, &d};
    dibs_lease_info *after[] = {&a, &ab, &b, &c, &d};
    dibs__serve_list list = {.limit = 2, .prefix = "", .q = "", .state = ""};
    char cursor[DIBS__SERVE_CURSOR_MAX];
    dibs__serve_pick pick;

    (void)state;
    assert_true(dibs__serve_list_order(&list, "-waiting"));
    assert_int_equal(dibs__serve_list_pick(&list, before, 4, &pick, NULL),
                     DIBS_OK);
    assert_ptr_equal(pick.rows[0], &b);
    assert_ptr_equal(pick.rows[1], &a);
    dibs__serve_list_cursor(&list, pick.rows[1], cursor);
    dibs__serve_pick_fini(&pick);
    assert_true(dibs__serve_list_after(&list, cursor));
    assert_int_equal(dibs__serve_list_pick(&list, after, 5, &pick, NULL),
                     DIBS_OK);
    assert_int_equal(pick.total, 5);
    assert_int_equal(pick.first, 2);
    assert_ptr_equal(pick.rows[2], &c);
    assert_ptr_equal(pick.rows[3], &ab);
    assert_ptr_equal(pick.rows[4], &d);
    dibs__serve_pick_fini(&pick);
    assert_false(dibs__serve_list_after(&list, "1"));
    assert_false(dibs__serve_list_after(&list, "1."));
    assert_false(dibs__serve_list_after(&list, "1.6"));
    assert_false(dibs__serve_list_after(&list, "1.00"));
    assert_false(dibs__serve_list_after(&list, "x.61"));
}

/* A holder or waiter is found as logs and pages name it. */
static void lists_find_who_holds(void **state)
{
    static const struct {
        const char *q;
        bool found;
    } cases[] = {{"web1:4711", true}, {"4711", true},   {"WEB1", true},
                 {"nightly", true},   {"main", true},   {"name", true},
                 {"web2", false},     {":47111", false}};
    dibs_party holder = {.host = "web1", .pid = 4711, .label = "nightly"},
               waiter = {.host = "h", .label = "", .identity = "main"};
    dibs_lease_info row = {.name = "the-name",
                           .holders = &holder,
                           .holder_count = 1,
                           .waiters = &waiter,
                           .waiter_count = 1};
    dibs_lease_info *rows[] = {&row};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__serve_list list = {.limit = 2,
                                 .prefix = "",
                                 .q = cases[i].q,
                                 .state = ""};
        dibs__serve_pick pick;

        assert_int_equal(dibs__serve_list_pick(&list, rows, 1, &pick, NULL),
                         DIBS_OK);
        assert_int_equal(pick.total, cases[i].found ? 1 : 0);
        dibs__serve_pick_fini(&pick);
    }
}

/* A store in which nobody holds anything has no rows at all. */
static void lists_may_be_empty(void **state)
{
    dibs__serve_list list = {.limit = 2, .prefix = "", .q = "", .state = ""};
    dibs__serve_pick pick;

    (void)state;
    assert_int_equal(dibs__serve_list_pick(&list, NULL, 0, &pick, NULL),
                     DIBS_OK);
    assert_int_equal(pick.total, 0);
    dibs__serve_pick_fini(&pick);
}

/* The names of a page, and the cursor behind it. */
static const char *
read_page(dibs__serve_list *list, dibs_lease_info *const *rows, size_t count)
{
    static char names[16];
    char cursor[DIBS__SERVE_CURSOR_MAX];
    dibs__serve_pick pick;
    size_t shown = 0;

    assert_int_equal(dibs__serve_list_pick(list, rows, count, &pick, NULL),
                     DIBS_OK);
    for (size_t i = pick.first; i < pick.total && shown < list->limit; i++)
        names[shown++] = pick.rows[i]->name[strlen(list->prefix)];
    names[shown] = '\0';
    if (shown > 0) {
        dibs__serve_list_cursor(list, pick.rows[pick.first + shown - 1],
                                cursor);
        assert_true(dibs__serve_list_after(list, cursor));
    }
    dibs__serve_pick_fini(&pick);
    return names;
}

/* In the order of names the picture's rows serve, and those with one prefix are together. */
static void lists_by_name_go_on(void **state)
{
    static const struct {
        const char *prefix, *sort, *first, *second, *third;
    } cases[] = {
        {"", "name", "ab", "jj", "jk"}, {"j", "name", "ab", "c", ""},
        {"j", "-name", "cb", "a", ""},  {"", "-name", "kj", "jj", "ba"},
        {"x", "name", "", "", ""},      {"0", "name", "", "", ""},
        {"jab", "name", "", "", ""},    {"k", "name", "", "", ""}};
    static const char *const names[] = {"a", "b", "ja", "jb", "jc", "k"};
    dibs_lease_info rows[COUNT_OF(names)], *all[COUNT_OF(names)];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        rows[i] = (dibs_lease_info){.name = names[i]};
        all[i] = &rows[i];
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs__serve_list list = {.limit = 2,
                                 .prefix = cases[i].prefix,
                                 .q = "",
                                 .state = ""};

        assert_true(dibs__serve_list_order(&list, cases[i].sort));
        assert_string_equal(read_page(&list, all, COUNT_OF(all)),
                            cases[i].first);
        assert_string_equal(read_page(&list, all, COUNT_OF(all)),
                            cases[i].second);
        assert_string_equal(read_page(&list, all, COUNT_OF(all)),
                            cases[i].third);
    }
}

/* A row that has gone is no place to begin anew. */
static void lists_go_on_behind_a_row_that_has_gone(void **state)
{
    dibs_lease_info a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c"};
    dibs_lease_info *before[] = {&a, &b, &c}, *after[] = {&a, &c};
    dibs__serve_list list = {.limit = 2, .prefix = "", .q = "", .state = ""};

    (void)state;
    assert_string_equal(read_page(&list, before, 3), "ab");
    assert_string_equal(read_page(&list, after, 2), "c");
}

/* Ages and spans move while a client reads: no row is shown twice, or passed over. */
static void lists_by_time_go_on(void **state)
{
    static const struct {
        const char *sort, *first, *second, *third;
    } cases[] = {{"age", "dc", "ba", ""},
                 {"-age", "ab", "cd", ""},
                 {"left", "ab", "cd", ""},
                 {"-left", "dc", "ba", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dibs_party held[4];
        dibs_lease_info rows[4];
        dibs_lease_info *list_of[4];
        dibs__serve_list list = {
            .limit = 2, .prefix = "", .q = "", .state = "", .seen_ms = 1000000};

        for (int k = 0; k < 4; k++) {
            held[k] = (dibs_party){.host = "h",
                                   .label = "",
                                   .age_ms = 400 - 100 * k,
                                   .left_ms = 9000 + 100 * k};
            rows[k] = (dibs_lease_info){.name = (const char *[]){"a", "b", "c",
                                                                 "d"}[k],
                                        .holders = &held[k],
                                        .holder_count = 1};
            list_of[k] = &rows[k];
        }
        assert_true(dibs__serve_list_order(&list, cases[i].sort));
        assert_string_equal(read_page(&list, list_of, 4), cases[i].first);
        list.seen_ms += 1503; /* a look that was 3 ms late */
        for (int k = 0; k < 4; k++) {
            held[k].age_ms += 1500;
            held[k].left_ms -= 1500;
        }
        assert_string_equal(read_page(&list, list_of, 4), cases[i].second);
        assert_string_equal(read_page(&list, list_of, 4), cases[i].third);
    }
}

/* What a walk of a tree tells, as one line. */
static void tell_branch(void *arg, const dibs__serve_branch *branch)
{
    dibsx_buf_printf(arg, "%.*s%c%zu,%zu,%zu ", (int)branch->prefix_len,
                     branch->prefix, branch->open ? '>' : '=', branch->names,
                     branch->held, branch->waiters);
}

static void tell_row(void *arg, const dibs_lease_info *row)
{
    dibsx_buf_printf(arg, "%s ", row->name);
}

static void names_are_a_tree(void **state)
{
    static const dibs_lease_info all[] = {
        {.name = "a:"},
        {.name = "a:b/1", .holder_count = 1},
        {.name = "a:b/2", .holder_count = 1, .waiter_count = 3},
        {.name = "ab"},
        {.name = "c:alone:1"},
        {.name = "d"},
        {.name = "d:x:1"},
        {.name = "d:x:2"},
        {.name = "d:x:3"},
    };
    const dibs_lease_info *rows[COUNT_OF(all)];
    dibsx_buf told;
    dibs__serve_tree tree = {.open_max = 3,
                             .branch = tell_branch,
                             .row = tell_row,
                             .arg = &told};

    (void)state;
    dibsx_buf_init(&told, 512);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        rows[i] = &all[i];
    assert_int_equal(dibs__serve_tree_walk(&tree, rows, COUNT_OF(all), 0, 100),
                     9);
    assert_string_equal(dibsx_buf_text(&told),
                        "a:>3,2,3 a: a:b/>2,2,3 a:b/1 a:b/2 ab "
                        "c:alone:1 d d:>3,0,0 d:x:>3,0,0 d:x:1 d:x:2 "
                        "d:x:3 ");
    /* Large branches are closed, and a limit is between branches. */
    dibsx_buf_reset(&told);
    tree.open_max = 1;
    assert_int_equal(dibs__serve_tree_walk(&tree, rows, COUNT_OF(all), 0, 2),
                     4);
    assert_string_equal(dibsx_buf_text(&told), "a:=3,2,3 ab ");
    dibsx_buf_reset(&told);
    assert_int_equal(dibs__serve_tree_walk(&tree, rows + 6, 3, 2, 100), 3);
    assert_string_equal(dibsx_buf_text(&told), "d:x:=3,0,0 ");
    dibsx_buf_fini(&told);
}

extern const char dibs__serve_openapi[];

/* The operation of a route in the document. */
static const dibsx_json_node *
find_operation(const dibsx_json_node *paths, const dibs__http_route *route)
{
    const dibsx_json_node *path = dibsx_json_get(paths, route->path);
    char method[16] = "";

    for (size_t i = 0; route->method[i]; i++)
        method[i] = (char)tolower((unsigned char)route->method[i]);
    return path ? dibsx_json_get(path, method) : NULL;
}

/* A parameter, which may stand among those that operations share. */
static const dibsx_json_node *
find_parameter(const dibsx_json_node *root, const dibsx_json_node *node)
{
    const dibsx_json_node *ref = dibsx_json_get(node, "$ref");

    if (!ref)
        return node;
    root = dibsx_json_get(root, "components");
    return dibsx_json_get(dibsx_json_get(root, "parameters"),
                          strrchr(ref->text, '/') + 1);
}

/* The keys of its query are those that the route reads, and no others. */
static void
check_query(const dibsx_json_node *root, const dibsx_json_node *operation,
            const dibs__http_route *route)
{
    const dibsx_json_node *all = dibsx_json_get(operation, "parameters");
    const char *reads = route->query ? route->query : "";
    size_t words = *reads ? 1 : 0, count = 0;

    for (const char *at = reads; *at; at++)
        words += *at == ' ';
    for (const dibsx_json_node *node = all ? all->child : NULL; node;
         node = node->next) {
        const dibsx_json_node *one = find_parameter(root, node);
        const char *name = dibsx_json_get(one, "name")->text;

        if (strcmp(dibsx_json_get(one, "in")->text, "query") != 0)
            continue;
        if (!dibsx_has_word(reads, name, strlen(name)))
            fail_msg("%s %s does not read ?%s=", route->method, route->path,
                     name);
        count++;
    }
    if (count != words)
        fail_msg("%s %s reads \"%s\"; openapi.json has %zu of them",
                 route->method, route->path, reads, count);
}

static void the_document_has_the_routes(void **state)
{
    const dibsx_json_node *paths;
    dibsx_json_doc doc;
    size_t count = 0;
    dibs_error err;

    (void)state;
    if (dibsx_json_read(dibs__serve_openapi, strlen(dibs__serve_openapi), &doc,
                        &err) != DIBS_OK)
        fail_msg("openapi.json: %s", err.message);
    paths = dibsx_json_get(doc.root, "paths");
    for (size_t i = 0; i < dibs__serve_route_count; i++) {
        const dibs__http_route *route = &dibs__serve_routes[i];
        const dibsx_json_node *operation = find_operation(paths, route);

        if (!operation)
            fail_msg("%s %s is not in openapi.json", route->method,
                     route->path);
        assert_string_equal(dibsx_json_get(operation, "x-role")->text,
                            dibs__serve_role_text(
                                (dibs__serve_role)route->need));
        check_query(doc.root, operation, route);
    }
    for (const dibsx_json_node *path = paths->child; path; path = path->next) {
        for (const dibsx_json_node *node = path->child; node; node = node->next)
            count++;
    }
    assert_int_equal(count, dibs__serve_route_count);
    dibsx_json_doc_fini(&doc);
}

static void test_networks(void **state)
{
    static const char *const wrong[] = {"10.0.0.0/33", "::/129",    "10.0.0",
                                        "x",           "10.0.0.0/", "10/8",
                                        "1.2.3.4/x"};
    dibs__serve_nets nets;

    (void)state;
    assert_int_equal(dibs__serve_nets_read(NULL, &nets, NULL), DIBS_OK);
    assert_false(dibs__serve_nets_have(&nets, "127.0.0.1"));
    assert_int_equal(
        dibs__serve_nets_read("10.0.0.0/8, 192.168.1.128/25,2001:db8::/33",
                              &nets, NULL),
        DIBS_OK);
    assert_true(dibs__serve_nets_have(&nets, "10.255.0.1"));
    assert_true(dibs__serve_nets_have(&nets, "::ffff:10.255.0.1"));
    assert_false(dibs__serve_nets_have(&nets, "11.0.0.1"));
    assert_true(dibs__serve_nets_have(&nets, "192.168.1.129"));
    assert_false(dibs__serve_nets_have(&nets, "192.168.1.127"));
    assert_true(dibs__serve_nets_have(&nets, "2001:db8:7fff::1"));
    assert_false(dibs__serve_nets_have(&nets, "2001:db8:8000::1"));
    assert_false(dibs__serve_nets_have(&nets, "unix:0"));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(dibs__serve_nets_read(wrong[i], &nets, NULL),
                         DIBS_REFUSED);
}

static const char *client_of(const char *peer, const char *forwarded_for)
{
    static char out[64];
    dibs__serve_nets nets;

    assert_int_equal(dibs__serve_nets_read("10.0.0.0/8", &nets, NULL), DIBS_OK);
    dibs__serve_client_address(&nets, peer, NULL, forwarded_for, out,
                               sizeof(out));
    return out;
}

static void test_only_trusted_proxies_name_their_clients(void **state)
{
    (void)state;
    assert_string_equal(client_of("10.0.0.1", NULL), "10.0.0.1");
    assert_string_equal(client_of("10.0.0.1", "1.2.3.4"), "1.2.3.4");
    assert_string_equal(client_of("9.9.9.9", "1.2.3.4"), "9.9.9.9");
    assert_string_equal(client_of("10.0.0.1", "6.6.6.6, 1.2.3.4,10.0.0.2"),
                        "1.2.3.4");
    assert_string_equal(client_of("10.0.0.1", "1.2.3.4:80, x"), "10.0.0.1");
    assert_string_equal(client_of("10.0.0.1", "[2001:db8::1]:80"),
                        "2001:db8::1");
    assert_string_equal(client_of("10.0.0.1", ""), "10.0.0.1");
    assert_string_equal(client_of("unix:0", "1.2.3.4"), "unix:0");
}

static const char *client_of_both(const char *forwarded, const char *other)
{
    static char out[64];
    dibs__serve_nets nets;

    assert_int_equal(dibs__serve_nets_read("10.0.0.0/8", &nets, NULL), DIBS_OK);
    dibs__serve_client_address(&nets, "10.0.0.1", forwarded, other, out,
                               sizeof(out));
    return out;
}

static void test_headers_that_differ_name_the_proxy(void **state)
{
    (void)state;
    assert_string_equal(client_of_both("for=1.2.3.4", NULL), "1.2.3.4");
    assert_string_equal(client_of_both("for=1.2.3.4", "1.2.3.4"), "1.2.3.4");
    assert_string_equal(client_of_both("for=6.6.6.6", "1.2.3.4"), "10.0.0.1");
    assert_string_equal(client_of_both("by=1.2.3.4", "1.2.3.4"), "10.0.0.1");
    assert_string_equal(client_of_both("for=1.2.3.4", ""), "10.0.0.1");
}

static void test_quota(void **state)
{
    static dibsx_quota quotas[DIBSX_QUOTAS];
    dibsx_nsec now = 1000 * DIBSX_SEC;
    char name[16];
    int done = 0;

    (void)state;
    while (dibsx_quota_take(quotas, "a", 2, now))
        done++;
    assert_int_equal(done, 10);
    assert_true(dibsx_quota_take(quotas, "b", 2, now));
    now += DIBSX_SEC;
    assert_true(dibsx_quota_take(quotas, "a", 2, now));
    assert_true(dibsx_quota_take(quotas, "a", 2, now));
    assert_false(dibsx_quota_take(quotas, "a", 2, now));
    /* More names than there are records: the one that was used longest ago goes. */
    for (int i = 0; i < DIBS__SERVE_PEERS_MAX; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_true(dibsx_quota_take(quotas, name, 2, ++now));
    }
}

static void read_log(bool json, const char *text, char *out, size_t size)
{
    dibs__serve_log log;
    int ends[2];
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    dibs__serve_log_init(&log, json);
    log.fd = ends[1];
    dibs__serve_say(&log, DIBS_LOG_INFO, "audit",
                    DIBS__SERVE_FACTS({"target", text, 0}), "%s", text);
    got = read(ends[0], out, size - 1);
    assert_true(got > 0);
    out[got] = '\0';
    dibs__serve_log_fini(&log);
    close(ends[0]);
    close(ends[1]);
}

/* C0, DEL, C1, an override of the direction and the end of a line; the rest as it is. */
static void no_text_drives_a_terminal_from_the_log(void **state)
{
    static const char text[] = "\033\x7F\xC2\x9B\xE2\x80\xAE\xE2\x80\xA8"
                               "\xC3\xA9";
    static const char shown[] = "\"\\u001b\\u007f\\u009b\\u202e\\u2028\xC3"
                                "\xA9\"";
    char line[1024], expected[128];

    (void)state;
    read_log(false, text, line, sizeof(line));
    snprintf(expected, sizeof(expected), " target=%s message=%s\n", shown,
             shown);
    assert_non_null(strstr(line, expected));
    read_log(true, text, line, sizeof(line));
    snprintf(expected, sizeof(expected), ",\"target\":%s,\"message\":%s}\n",
             shown, shown);
    assert_non_null(strstr(line, expected));
    read_log(false, "plain", line, sizeof(line));
    assert_non_null(strstr(line, " target=plain message=plain\n"));
    read_log(false, "a=\"b\"", line, sizeof(line));
    assert_non_null(strstr(line, " target=\"a=\\\"b\\\"\" "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_find_who_holds),
        cmocka_unit_test(lists_may_be_empty),
        cmocka_unit_test(no_text_drives_a_terminal_from_the_log),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_only_trusted_proxies_name_their_clients),
        cmocka_unit_test(test_headers_that_differ_name_the_proxy),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(tokens_are_recognised),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(addresses),
        cmocka_unit_test(failures_are_counted_by_address),
        cmocka_unit_test(every_status_has_a_problem),
        cmocka_unit_test(rows_are_whole_copies),
        cmocka_unit_test(an_etag_sees_what_a_row_shows),
        cmocka_unit_test(what_needs_a_look_most_comes_first),
        cmocka_unit_test(classes_of_names),
        cmocka_unit_test(classes_by_rules),
        cmocka_unit_test(causes_are_split),
        cmocka_unit_test(causes_are_whole),
        cmocka_unit_test(wrong_tokens_are_bounded),
        cmocka_unit_test(lists_go_on_after_a_row),
        cmocka_unit_test(lists_by_name_go_on),
        cmocka_unit_test(lists_go_on_behind_a_row_that_has_gone),
        cmocka_unit_test(lists_by_time_go_on),
        cmocka_unit_test(names_are_a_tree),
        cmocka_unit_test(the_document_has_the_routes),
    };

    return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
