/* origin.c - requests for this server, and those that web pages make.
 *
 * A browser sends what any page asks for to any server that it can reach, also to
 * one that listens for its own machine alone. It says whose page that was; and a
 * page whose host name was made to lead here says so in Host. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "http/origin.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 255 };

static const char scheme[] = "http://";

/* A copy of the host of "host:port" or "[v6]:port"; false when it is neither. Any
 * port number will do: a port that is forwarded has another number elsewhere. */
static bool copy_host(const char *text, size_t len, char out[HOST_MAX + 1])
{
    const char *end = text + len;
    const char *stop;

    if (len > 0 && *text == '[') {
        stop = memchr(text, ']', len);
        if (!stop)
            return false;
        text++;
        len = (size_t)(stop++ - text);
    } else {
        stop = len > 0 ? memchr(text, ':', len) : NULL;
        stop = stop ? stop : end;
        len = (size_t)(stop - text);
    }
    if (len == 0 || len > HOST_MAX ||
        (stop < end && (*stop != ':' || strspn(stop + 1, "0123456789") <
                                            (size_t)(end - stop) - 1)))
        return false;
    snprintf(out, HOST_MAX + 1, "%.*s", (int)len, text);
    return true;
}

/* A socket on [::] takes IPv4 as well, whose addresses are the last bytes of its own. */
static bool is_here(const char *host, const struct sockaddr *here)
{
    const struct in6_addr *own6 =
        &((const struct sockaddr_in6 *)here)->sin6_addr;
    const void *own4 = here->sa_family == AF_INET6
                           ? (const void *)&own6->s6_addr[12]
                           : &((const struct sockaddr_in *)here)->sin_addr;
    bool is6 = here->sa_family == AF_INET6;
    struct in6_addr v6;
    struct in_addr v4;

    if (here->sa_family == AF_INET || (is6 && IN6_IS_ADDR_V4MAPPED(own6)))
        return inet_pton(AF_INET, host, &v4) == 1 &&
               memcmp(&v4, own4, sizeof(v4)) == 0;
    return is6 && inet_pton(AF_INET6, host, &v6) == 1 &&
           memcmp(&v6, own6, sizeof(v6)) == 0;
}

/* Whole words of the list, whatever their case. */
static bool is_listed(const char *host, const char *hosts)
{
    const size_t len = strlen(host);

    while (hosts && *hosts) {
        hosts += strspn(hosts, ", ");
        if (strcspn(hosts, ", ") == len && strncasecmp(hosts, host, len) == 0)
            return true;
        hosts += strcspn(hosts, ", ");
    }
    return false;
}

/* The server that a request has come to. */
typedef struct place {
    const struct sockaddr *here;
    const char *hosts;
    bool sealed; /* with TLS */
} place;

static bool is_ours(const char *text, size_t len, const place *at)
{
    char host[HOST_MAX + 1];

    return copy_host(text, len, host) &&
           (strcasecmp(host, "localhost") == 0 || is_here(host, at->here) ||
            is_listed(host, at->hosts));
}

/* As proxies are asked, the target begins with a host of its own. */
static bool target_is_ours(const char *target, const place *at)
{
    const size_t skip = sizeof(scheme) - 1;

    if (strncasecmp(target, scheme, skip) != 0)
        return true;
    return is_ours(target + skip, strcspn(target + skip, "/?"), at);
}

/* A proxy with TLS may be before a server without, under a name of the list. */
static bool
is_same_origin(const char *origin, const char *host, const place *at)
{
    static const char secure[] = "https://";
    char name[HOST_MAX + 1];
    size_t skip = 0;

    if (!host || !copy_host(host, strlen(host), name))
        return false;
    if (!at->sealed && strncasecmp(origin, scheme, sizeof(scheme) - 1) == 0)
        skip = sizeof(scheme) - 1;
    else if ((at->sealed || is_listed(name, at->hosts)) &&
             strncasecmp(origin, secure, sizeof(secure) - 1) == 0)
        skip = sizeof(secure) - 1;
    return skip && strcasecmp(origin + skip, host) == 0;
}

/* A link on another page leads here. The answer goes to the browser's own window, which
 * that page cannot read; and no cookie of the visitor gives the request any right. */
static bool is_visit(const dibs__http_head *head)
{
    const char *mode = dibs__http_head_get(head, "Sec-Fetch-Mode");
    const char *dest = dibs__http_head_get(head, "Sec-Fetch-Dest");

    return strcmp(head->method, "GET") == 0 && mode &&
           strcasecmp(mode, "navigate") == 0 && dest &&
           strcasecmp(dest, "document") == 0;
}

static const char *why_no_host(const place *at)
{
    return at->hosts ? "This is not the host that the request is for; ask "
                       "\"localhost\" or the address that the server listens "
                       "on, or start the server with this host in --hosts."
                     : "This is not the host that the request is for; ask "
                       "\"localhost\" or the address that the server listens "
                       "on.";
}

/* The browser says that the page is of this server, and a proxy between them has put
 * another Host. */
static const char *why_no_page(const place *at, const char *site)
{
    return at->hosts && site && strcasecmp(site, "same-origin") == 0
               ? "The Origin of this request is not its Host; the proxy before "
                 "this server must pass Host on, and --hosts must name it."
               : "A web page of another origin asks for this, which is not "
                 "allowed; ask from a program, or from a page of this server.";
}

int dibs__http_origin_judge(const dibs__http_head *head,
                            const struct sockaddr *here, const char *hosts,
                            bool sealed, const char **why)
{
    const place at = {here, hosts, sealed};
    const char *host = dibs__http_head_get(head, "Host");
    const char *origin = dibs__http_head_get(head, "Origin");
    const char *site = dibs__http_head_get(head, "Sec-Fetch-Site");

    if ((host && !is_ours(host, strlen(host), &at)) ||
        !target_is_ours(head->target, &at)) {
        *why = why_no_host(&at);
        return 421;
    }
    if ((origin && !is_same_origin(origin, host, &at)) ||
        (site && strcasecmp(site, "same-origin") != 0 &&
         strcasecmp(site, "none") != 0 && !is_visit(head))) {
        *why = why_no_page(&at, site);
        return 403;
    }
    return 0;
}
