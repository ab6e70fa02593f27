/* proxy.c - networks, and the client behind proxies that are trusted. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/proxy.h"
#include "base/fail.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TEXT_MAX = 64 };

/* An IPv4 address as ::ffff:a.b.c.d. *v4 says that it is one. */
static bool read_address(const char *text, unsigned char out[16], bool *v4)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    *v4 = inet_pton(AF_INET, text, out + 12) == 1;
    if (*v4)
        memcpy(out, mapped, sizeof(mapped));
    return *v4 || inet_pton(AF_INET6, text, out) == 1;
}

static bool read_net(const char *text, size_t len, dibs__serve_net *out)
{
    char copy[TEXT_MAX], *slash, *end;
    long bits = -1;
    bool v4;

    if (len == 0 || len >= sizeof(copy))
        return false;
    snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
    slash = strchr(copy, '/');
    if (slash) {
        *slash++ = '\0';
        if (*slash < '0' || *slash > '9')
            return false;
        bits = strtol(slash, &end, 10);
        if (*end)
            return false;
    }
    if (!read_address(copy, out->bytes, &v4))
        return false;
    if (bits < 0)
        bits = v4 ? 32 : 128;
    out->bits = (int)bits + (v4 ? 96 : 0);
    return bits <= (v4 ? 32 : 128);
}

dibs_status
dibs__serve_nets_read(const char *text, dibs__serve_nets *out, dibs_error *err)
{
    *out = (dibs__serve_nets){.count = 0};
    while (text && *(text += strspn(text, ", "))) {
        const size_t len = strcspn(text, ", ");

        if (out->count == DIBS__SERVE_NETS_MAX)
            return dibsx_fail(err, DIBS_REFUSED,
                              "there are more than %d trusted proxies",
                              DIBS__SERVE_NETS_MAX);
        if (!read_net(text, len, &out->items[out->count++]))
            return dibsx_fail(err, DIBS_REFUSED,
                              "'%.*s' is no network; write 10.0.0.0/8 or ::1",
                              len > 60 ? 60 : (int)len, text);
        text += len;
    }
    return DIBS_OK;
}

static bool
has_address(const dibs__serve_net *net, const unsigned char address[16])
{
    const int whole = net->bits / 8, rest = net->bits % 8;

    return memcmp(net->bytes, address, (size_t)whole) == 0 &&
           (rest == 0 ||
            (net->bytes[whole] ^ address[whole]) >> (8 - rest) == 0);
}

bool dibs__serve_nets_have(const dibs__serve_nets *nets, const char *address)
{
    unsigned char bytes[16];
    bool v4;

    if (!read_address(address, bytes, &v4))
        return false;
    for (size_t i = 0; i < nets->count; i++) {
        if (has_address(&nets->items[i], bytes))
            return true;
    }
    return false;
}

bool dibs__serve_is_loopback(const char *address)
{
    unsigned char bytes[16];
    bool v4;

    if (!read_address(address, bytes, &v4))
        return false;
    return v4 ? bytes[12] == 127
              : IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)bytes);
}

/* An address out of `1.2.3.4`, `1.2.3.4:80`, `"[::1]:80"`, `::1`. */
static bool copy_address(const char *text, size_t len, char *out, size_t size)
{
    unsigned char bytes[16];
    const char *colon;
    bool v4;

    while (len > 0 && strchr(" \t\"", *text)) {
        text++;
        len--;
    }
    while (len > 0 && strchr(" \t\"", text[len - 1]))
        len--;
    if (len > 0 && *text == '[') {
        const char *end = memchr(text, ']', len);

        text++;
        len = end ? (size_t)(end - text) : 0;
    } else if (len > 0 && (colon = memchr(text, ':', len)) &&
               !memchr(colon + 1, ':', len - (size_t)(colon + 1 - text))) {
        len = (size_t)(colon - text);
    }
    if (len == 0 || len >= size)
        return false;
    snprintf(out, size, "%.*s", (int)len, text);
    return read_address(out, bytes, &v4);
}

/* The value of `for=` in one element of Forwarded. */
static const char *find_for(const char *text, size_t len, size_t *value_len)
{
    const char *end = text + len;

    while (text < end) {
        const char *semicolon = memchr(text, ';', (size_t)(end - text));
        const char *stop = semicolon ? semicolon : end;

        text += strspn(text, " \t");
        if (stop - text > 4 && strncasecmp(text, "for=", 4) == 0) {
            *value_len = (size_t)(stop - text) - 4;
            return text + 4;
        }
        text = stop + 1;
    }
    return NULL;
}

/* The last element before `*end`, which moves to it; false: there is none. */
static bool
last_element(const char *text, size_t *end, const char **element, size_t *len)
{
    size_t at = *end;

    if (*end == 0)
        return false;
    while (at > 0 && text[at - 1] != ',')
        at--;
    *element = text + at;
    *len = *end - at;
    *end = at > 0 ? at - 1 : 0;
    return true;
}

/* The client as one of the headers names it; `has_keys`: as Forwarded does. */
static void follow_header(const dibs__serve_nets *trusted, const char *peer,
                          const char *text, bool has_keys, char out[TEXT_MAX])
{
    const char *element;
    size_t end = strlen(text), len;
    char next[TEXT_MAX];

    snprintf(out, TEXT_MAX, "%s", peer);
    while (dibs__serve_nets_have(trusted, out) &&
           last_element(text, &end, &element, &len)) {
        if (has_keys)
            element = find_for(element, len, &len);
        if (!element || !copy_address(element, len, next, sizeof(next)))
            return;
        snprintf(out, TEXT_MAX, "%s", next);
    }
}

void dibs__serve_client_address(const dibs__serve_nets *trusted,
                                const char *peer, const char *forwarded,
                                const char *forwarded_for, char *out,
                                size_t size)
{
    char one[TEXT_MAX], other[TEXT_MAX];

    follow_header(trusted, peer, forwarded ? forwarded : "", true, one);
    follow_header(trusted, peer, forwarded_for ? forwarded_for : "", false,
                  other);
    if (forwarded && forwarded_for && strcmp(one, other) != 0)
        snprintf(out, size, "%s", peer);
    else
        snprintf(out, size, "%s", forwarded ? one : other);
}
