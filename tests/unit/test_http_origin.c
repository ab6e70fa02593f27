/* test_http_origin.c - requests that web pages make a browser send: none of them
 * reaches a function. */
/* SPDX-License-Identifier: MIT */
#include "http_world.h"

#include "http/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What reached its function before and after a request on a fresh connection. */
static void try(http_world *wd, const char *line, const char *headers,
                const char *body, int status)
{
    int before = world_posts(wd);
    char request[2048];
    reply rp;

    snprintf(request, sizeof(request),
             "%s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", line, headers,
             strlen(body), body);
    ask(wd, request, &rp);
    if (rp.status != status)
        fail_msg("%s: %d %s", request, rp.status, rp.body);
    if (status == 403 || status == 421) {
        assert_int_equal(world_posts(wd), before);
        assert_non_null(strstr(rp.body, "\"message\":\""));
    }
}

static void hosts_of_others_are_refused(void **state)
{
    static const char *const ours[] = {"localhost",   "LocalHost",
                                       "localhost:1", "localhost:3001",
                                       "127.0.0.1",   "127.0.0.1:3001"};
    static const char *const others[] = {"rebound.example",
                                         "rebound.example:3001",
                                         "localhost.example",
                                         "xlocalhost",
                                         "127.0.0.2",
                                         "10.0.0.1",
                                         "0.0.0.0",
                                         "[::1]",
                                         "",
                                         "localhost@elsewhere",
                                         "localhost:3001x",
                                         "localhost:x",
                                         "elsewhere, localhost",
                                         "[localhost",
                                         "127.1"};
    char headers[256];
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        snprintf(headers, sizeof(headers), "Host: %s\r\n", ours[i]);
        try(&wd, "POST /json", headers, "", 200);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        snprintf(headers, sizeof(headers), "Host: %s\r\n", others[i]);
        try(&wd, "POST /json", headers, "", 421);
        try(&wd, "GET /quick", headers, "", 421);
    }
    try(&wd, "POST http://rebound.example/json", "Host: localhost\r\n", "",
        421);
    try(&wd, "POST http://localhost/json", "Host: rebound.example\r\n", "",
        421);
    try(&wd, "POST http://127.0.0.1:3001/json", "Host: localhost\r\n", "", 200);
    world_stop(&wd, 1000);
}

/* As a socket on [::] sees who comes to its IPv4 address. */
static void a_mapped_address_is_the_one_of_ipv4(void **state)
{
    static const struct {
        const char *host;
        bool here;
    } cases[] = {{"127.0.0.1", true},
                 {"127.0.0.1:3427", true},
                 {"127.0.0.2", false},
                 {"[::ffff:127.0.0.1]", false},
                 {"[::1]", false}};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};

    (void)state;
    assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr),
                     1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[128];
        dibs__http_head head;
        const char *why;
        int len = snprintf(text, sizeof(text),
                           "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", cases[i].host);

        assert_int_equal(dibs__http_head_read(text, (size_t)len, &head, &why),
                         0);
        assert_int_equal(
            dibs__http_origin_judge(&head, (const struct sockaddr *)&mapped,
                                    NULL, false, &why),
            cases[i].here ? 0 : 421);
    }
}

static void hosts_by_name_are_whole_words(void **state)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {{"dibs.example", 200},
                 {"DIBS.example:443", 200},
                 {"b.example", 200},
                 {"localhost", 200},
                 {"x.dibs.example", 421},
                 {"dibs.example.evil.com", 421},
                 {"dibs.exampl", 421},
                 {"example", 421},
                 {"dibs.example,b.example", 421}};
    char headers[256];
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.hosts = "dibs.example, b.example"});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(headers, sizeof(headers), "Host: %s\r\n", cases[i].host);
        try(&wd, "POST /json", headers, "", cases[i].status);
    }
    /* A proxy with TLS is before the server under such a name, and no other. */
    try(&wd, "POST /json",
        "Host: dibs.example\r\nOrigin: https://dibs.example\r\n", "", 200);
    try(&wd, "POST /json",
        "Host: dibs.example\r\nOrigin: https://b.example\r\n", "", 403);
    try(&wd, "POST /json", "Host: localhost\r\nOrigin: https://localhost\r\n",
        "", 403);
    world_stop(&wd, 1000);
}

static void pages_of_others_are_refused(void **state)
{
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
        {"", 200},
        {"Origin: http://localhost:3001\r\n", 200},
        {"Origin: http://LOCALHOST:3001\r\nSec-Fetch-Site: same-origin\r\n",
         200},
        {"Sec-Fetch-Site: none\r\n", 200},
        {"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
         "Sec-Fetch-Dest: iframe\r\n",
         403},
        {"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"
         "Sec-Fetch-Dest: document\r\n",
         403},
        {"Origin: null\r\nSec-Fetch-Site: cross-site\r\n"
         "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
         403},
        {"Origin: http://localhost\r\n", 403},
        {"Origin: http://localhost:3002\r\n", 403},
        {"Origin: https://localhost:3001\r\n", 403},
        {"Origin: http://127.0.0.1:3001\r\n", 403},
        {"Origin: http://elsewhere.example\r\n", 403},
        {"Origin: http://localhost:3001.elsewhere.example\r\n", 403},
        {"Origin: null\r\n", 403},
        {"Origin:\r\n", 403},
        {"Sec-Fetch-Site: cross-site\r\n", 403},
        {"Sec-Fetch-Site: Cross-Site\r\n", 403},
        {"Sec-Fetch-Site: same-site\r\n", 403},
        {"Sec-Fetch-Site: something\r\n", 403},
        {"Origin: http://localhost:3001\r\nSec-Fetch-Site: cross-site\r\n",
         403},
    };
    static const char visit[] =
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"
        "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    char headers[512];
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(headers, sizeof(headers), "Host: localhost:3001\r\n%s",
                 cases[i].headers);
        try(&wd, "POST /json", headers, "", cases[i].status);
        try(&wd, "GET /quick", headers, "", cases[i].status);
    }
    try(&wd, "POST /json",
        "Host: localhost\r\nOrigin: null\r\nOrigin: null\r\n", "", 400);
    /* A link on another page, which cannot read what it leads to; not a form. */
    try(&wd, "GET /quick", visit, "", 200);
    try(&wd, "POST /json", visit, "", 403);
    world_stop(&wd, 1000);
}

static void
say(const http_world *wd, const char *headers, int status, const char *words)
{
    char request[512];
    reply rp;

    snprintf(request, sizeof(request),
             "POST /json HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n", headers);
    ask(wd, request, &rp);
    assert_int_equal(rp.status, status);
    if (!strstr(rp.body, words))
        fail_msg("%s: %s", request, rp.body);
}

/* A proxy that puts its own Host makes a page of this server one of another. */
static void a_refusal_says_what_the_proxy_must_do(void **state)
{
    static const char proxied[] = "Host: 127.0.0.1:3427\r\n"
                                  "Origin: https://dibs.example\r\n"
                                  "Sec-Fetch-Site: same-origin\r\n";
    static const char other[] = "Host: 127.0.0.1:3427\r\n"
                                "Origin: https://evil.example\r\n"
                                "Sec-Fetch-Site: cross-site\r\n";
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.hosts = ""});
    say(&wd, proxied, 403, "must pass Host on, and --hosts must name it");
    say(&wd, other, 403, "A web page of another origin");
    say(&wd, "Host: dibs.example\r\n", 421, "with this host in --hosts");
    world_stop(&wd, 1000);
    world_start(&wd, (dibs__http_opts){.hosts = NULL});
    say(&wd, proxied, 403, "A web page of another origin");
    say(&wd, "Host: dibs.example\r\n", 421, "listens on.");
    world_stop(&wd, 1000);
}

/* A page may send these three types, or none, without being asked first. */
static void a_body_says_what_it_is(void **state)
{
    static const char *const simple[] = {
        "",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: text/plain\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\n",
        "Content-Type: application/jsonx\r\n",
        "Content-Type: text/plain; application/json\r\n",
        "Content-Type:\r\n"};
    char headers[256];
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(simple); i++) {
        snprintf(headers, sizeof(headers), "Host: localhost\r\n%s", simple[i]);
        try(&wd, "POST /json", headers, "{\"n\": 1}", 415);
        try(&wd, "POST /json", headers, "", 200);
    }
    try(&wd, "POST /json",
        "Host: localhost\r\nContent-Type: application/json\r\n", "{\"n\": 1}",
        200);
    /* As `curl -d` does, which is told what to do. */
    ask(&wd,
        "POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\n{}",
        &rp);
    assert_non_null(
        strstr(rp.body, "-H \\\"Content-Type: application/json\\\""));
    world_stop(&wd, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_others_are_refused),
        cmocka_unit_test(a_mapped_address_is_the_one_of_ipv4),
        cmocka_unit_test(hosts_by_name_are_whole_words),
        cmocka_unit_test(pages_of_others_are_refused),
        cmocka_unit_test(a_refusal_says_what_the_proxy_must_do),
        cmocka_unit_test(a_body_says_what_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
