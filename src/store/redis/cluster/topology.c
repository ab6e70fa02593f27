/* topology.c - which server of a cluster serves which slot.
 *
 * Owns nothing but the list of members. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/topology.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/wire/reply.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16, PORT_MAX = 65535 };

void dibs__topology_fini(dibs__topology *tp)
{
    dibsx_free(tp->members);
    *tp = (dibs__topology){0};
}

static bool make_room(dibs__topology *tp)
{
    size_t room = tp->room ? 2 * tp->room : ROOM_FIRST;
    dibs__server *members;

    if (tp->count < tp->room)
        return true;
    if (room > DIBS__MEMBERS_MAX)
        return false;
    members = dibsx_zalloc_n(room, sizeof(*members));
    tp->nomem = !members;
    if (!members)
        return false;
    if (tp->count > 0)
        memcpy(members, tp->members, tp->count * sizeof(*members));
    dibsx_free(tp->members);
    tp->members = members;
    tp->room = room;
    return true;
}

int dibs__topology_add(dibs__topology *tp, const dibs__endpoint *endpoint)
{
    for (size_t i = 0; i < tp->count; i++)
        if (dibs__endpoint_is(&tp->members[i].endpoint, endpoint))
            return (int)i;
    if (!make_room(tp))
        return -1;
    tp->members[tp->count] = (dibs__server){.endpoint = *endpoint};
    return (int)tp->count++;
}

static bool is_host(const char *text, size_t len)
{
    if (len == 0 || len > DIBS__HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

/* "?" stands for a server with an unknown endpoint: then *known is false. */
static bool read_endpoint(const redisReply *node, const dibs__endpoint *asked,
                          dibs__endpoint *out, bool *known)
{
    const redisReply *host = dibs__reply_item(node, 0);
    int64_t port;

    *known = true;
    if (!host || !dibs__reply_int(dibs__reply_item(node, 1), &port) ||
        port < 0 || port > PORT_MAX)
        return false;
    *out = (dibs__endpoint){.port = (int)port};
    if (host->type == REDIS_REPLY_NIL ||
        (host->type == REDIS_REPLY_STRING && host->len == 0)) {
        *out = *asked;
        out->port = (int)port;
    } else if (host->type == REDIS_REPLY_STRING &&
               is_host(host->str, (size_t)host->len)) {
        memcpy(out->host, host->str, (size_t)host->len);
    } else {
        return false;
    }
    *known = port > 0 && strcmp(out->host, "?") != 0;
    return true;
}

/* The master of a range and its replicas; the index of the master, plus 1. False
 * when it makes no sense or there is no room. */
static bool read_servers(const redisReply *range, const dibs__endpoint *asked,
                         dibs__topology *out, uint16_t *master)
{
    *master = 0;
    for (size_t i = 2; i < range->elements; i++) {
        dibs__endpoint endpoint;
        bool known;
        int at;

        if (!read_endpoint(range->element[i], asked, &endpoint, &known))
            return false;
        if (!known)
            continue;
        at = dibs__topology_add(out, &endpoint);
        if (at < 0)
            return false;
        if (i == 2) {
            *master = (uint16_t)(at + 1);
            out->members[at].master = true;
            out->members[at].replicas = (int)range->elements - 3;
        }
    }
    return true;
}

static bool read_range(const redisReply *range, const dibs__endpoint *asked,
                       dibs__topology *out)
{
    int64_t first, last;
    uint16_t master;

    if (!dibs__reply_int(dibs__reply_item(range, 0), &first) ||
        !dibs__reply_int(dibs__reply_item(range, 1), &last) || first < 0 ||
        first > last || last >= DIBS__SLOTS || range->elements < 3 ||
        !read_servers(range, asked, out, &master))
        return false;
    for (int64_t slot = first; slot <= last; slot++)
        out->server[slot] = master;
    return true;
}

dibs_status
dibs__topology_read(const redisReply *reply, const dibs__endpoint *asked,
                    dibs__topology *out, dibs_error *err)
{
    bool ok = reply && reply->type == REDIS_REPLY_ARRAY &&
              reply->elements <= DIBS__SLOTS;
    bool nomem;

    *out = (dibs__topology){0};
    for (size_t i = 0; ok && i < reply->elements; i++)
        ok = read_range(reply->element[i], asked, out);
    if (ok)
        return DIBS_OK;
    nomem = out->nomem;
    dibs__topology_fini(out);
    return nomem ? dibsx_nomem(err, "a map of the slots")
                 : dibsx_fail(err, DIBS_REFUSED,
                              "the server's map of the slots cannot be used");
}

int dibs__topology_covered(const dibs__topology *tp)
{
    int covered = 0;

    for (size_t slot = 0; slot < DIBS__SLOTS; slot++)
        covered += tp->server[slot] != 0;
    return covered;
}

bool dibs__redirect_read(const char *error, const dibs__endpoint *asked,
                         int *slot, dibs__endpoint *to)
{
    const char *at = strchr(error, ' ');
    const char *colon;
    char *end;
    long number;
    size_t len;

    if (!at || at[1] < '0' || at[1] > '9')
        return false;
    number = strtol(at + 1, &end, 10);
    colon = strrchr(end, ':');
    if (number >= DIBS__SLOTS || *end != ' ' || !colon)
        return false;
    *slot = (int)number;
    at = end + 1;
    len = (size_t)(colon - at);
    number = strtol(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || number < 1 ||
        number > PORT_MAX)
        return false;
    *to = (dibs__endpoint){.port = (int)number};
    if (len == 0)
        memcpy(to->host, asked->host, sizeof(to->host));
    else if (is_host(at, len))
        memcpy(to->host, at, len);
    return to->host[0] && strcmp(to->host, "?") != 0;
}
