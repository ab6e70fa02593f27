/* address.c - "address:port", where the daemon listens. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/address.h"
#include "base/fail.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_loopback(const char *host)
{
    struct in6_addr v6;
    struct in_addr v4;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_address(const char *host)
{
    struct in6_addr any;

    return inet_pton(AF_INET, host, &any) == 1 ||
           inet_pton(AF_INET6, host, &any) == 1;
}

/* Splits at the last colon; brackets around the host go. */
static bool split(const char *text, dibs__serve_address *out)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    char *end;
    long port;

    if (len > 2 && *text == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return false;
    }
    if (len == 0 || len >= sizeof(out->host) || !colon[1] ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    port = strtol(colon + 1, &end, 10);
    snprintf(out->host, sizeof(out->host), "%.*s", (int)len, text);
    out->port = (int)port;
    return port <= 65535;
}

dibs_status dibs__serve_address_read(const char *text, dibs__serve_address *out,
                                     dibs_error *err)
{
    bool fits = split(text, out);

    if (fits && strcmp(out->host, "localhost") == 0)
        snprintf(out->host, sizeof(out->host), "127.0.0.1");
    if (!fits || !is_address(out->host))
        return dibsx_fail(err, DIBS_REFUSED,
                          "cannot listen on '%.80s': it is not an address and "
                          "a port; write 127.0.0.1:3427 or [::1]:3427",
                          text);
    out->loopback = is_loopback(out->host);
    return DIBS_OK;
}
