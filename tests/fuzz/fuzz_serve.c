/* fuzz_serve.c - texts that come to the daemon: token files, cursors, addresses, headers
 * of proxies, causes in the trail, names. The first byte says which. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "serve/address.h"
#include "serve/audit.h"
#include "serve/class.h"
#include "serve/list.h"
#include "serve/proxy.h"
#include "serve/token.h"

static void try_tokens(char *text)
{
    static dibs__serve_tokens tokens;
    dibs_error err = {0};
    dibs_status rc = dibs__serve_tokens_parse(&tokens, text, "f", &err);

    REQUIRE(rc == DIBS_OK || rc == DIBS_REFUSED);
    if (rc == DIBS_REFUSED)
        REQUIRE(strncmp(err.message, "f:", 2) == 0);
    REQUIRE(tokens.count <= DIBS__SERVE_TOKENS_MAX);
    for (size_t i = 0; i < tokens.count; i++) {
        REQUIRE(strlen(tokens.items[i].name) > 0);
        REQUIRE(tokens.items[i].role >= DIBS__SERVE_READ &&
                tokens.items[i].role <= DIBS__SERVE_ADMIN);
        REQUIRE(tokens.items[i].expires_wall_us >= 0);
    }
}

/* A cursor that is taken comes out again as it was meant. */
static void try_cursor(const char *text)
{
    dibs__serve_list list = {.limit = 1, .prefix = "", .q = "", .state = ""};
    dibs__serve_list again = list;
    char cursor[DIBS__SERVE_CURSOR_MAX];

    if (!dibs__serve_list_after(&list, text))
        return;
    REQUIRE(strlen(list.after_name) <= DIBS_NAME_MAX);
    dibs__serve_list_cursor(&list, &(dibs_lease_info){.name = list.after_name},
                            cursor);
    REQUIRE(dibs__serve_list_after(&again, cursor));
    REQUIRE(strcmp(again.after_name, list.after_name) == 0);
}

static void try_address(const char *text)
{
    dibs__serve_address at;

    if (dibs__serve_address_read(text, &at, NULL) == DIBS_OK)
        REQUIRE(at.port >= 0 && at.port <= 65535 && strlen(at.host) > 0);
}

/* The client's address is one that the header has, or the proxy's. */
static void try_proxy(const char *text)
{
    dibs__serve_nets nets, given;
    char out[64];

    if (dibs__serve_nets_read(text, &given, NULL) == DIBS_OK)
        REQUIRE(given.count <= DIBS__SERVE_NETS_MAX);
    REQUIRE(dibs__serve_nets_read("10.0.0.0/8,::1", &nets, NULL) == DIBS_OK);
    dibs__serve_client_address(&nets, "10.0.0.1", text, NULL, out, sizeof(out));
    REQUIRE(strcmp(out, "10.0.0.1") == 0 || strstr(text, out));
    dibs__serve_client_address(&nets, "10.0.0.1", NULL, text, out, sizeof(out));
    REQUIRE(strcmp(out, "10.0.0.1") == 0 || strstr(text, out));
    dibs__serve_client_address(&nets, "11.0.0.1", text, text, out, sizeof(out));
    REQUIRE(strcmp(out, "11.0.0.1") == 0);
}

static void try_class(const char *text)
{
    char out[DIBS__SERVE_CLASS_MAX], again[DIBS__SERVE_CLASS_MAX];

    dibs__serve_class(NULL, text, out);
    dibs__serve_class(NULL, out, again);
    REQUIRE(strlen(out) <= strlen(text));
    REQUIRE(strcmp(out, again) == 0);
    dibs__serve_class(text, "some/name-7", out);
    REQUIRE(strcmp(out, "some/name-*") == 0 || strstr(text, out));
    dibs__serve_class("*", text, out);
    REQUIRE(strcmp(out, "*") == 0);
}

static void try_cause(char *text)
{
    const size_t len = strlen(text);
    dibs__change_cause cause;

    dibs__change_read(text, &cause);
    REQUIRE(strlen(cause.reason) + strlen(cause.who) + strlen(cause.from) +
                strlen(cause.request) <=
            len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size == 0)
        return 0;
    text = fuzz_text(data + 1, size - 1);
    switch (data[0]) {
    case 't':
        try_tokens(text);
        break;
    case 'c':
        try_cursor(text);
        break;
    case 'a':
        try_address(text);
        break;
    case 'p':
        try_proxy(text);
        break;
    case 'n':
        try_class(text);
        break;
    case 'r':
        try_cause(text);
        break;
    default:
        break;
    }
    free(text);
    return 0;
}
