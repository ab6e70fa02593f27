/* proxy.h - networks, and the client behind proxies that are trusted. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_PROXY_H
#define DIBS_SERVE_PROXY_H

#include <dibs/types.h>

enum { DIBS__SERVE_NETS_MAX = 32 };

/* "10.0.0.0/8"; an IPv4 network is kept as the IPv6 network that has it. */
typedef struct dibs__serve_net {
    unsigned char bytes[16];
    int bits;
} dibs__serve_net;

typedef struct dibs__serve_nets {
    dibs__serve_net items[DIBS__SERVE_NETS_MAX];
    size_t count;
} dibs__serve_nets;

/* Reads "10.0.0.0/8,::1"; NULL or "": none. */
DIBS_MUST_CHECK dibs_status dibs__serve_nets_read(const char *text,
                                                  dibs__serve_nets *out,
                                                  dibs_error *err);

/* Whether an address, in digits, is in one of them. */
bool dibs__serve_nets_have(const dibs__serve_nets *nets, const char *address);

bool dibs__serve_is_loopback(const char *address);

/* The client of a request that came from `peer`: as the headers name it, from right to
 * left, as far as trusted proxies wrote them. Without a name that can be read it is the
 * last proxy that can. If both headers are there and name different clients it is `peer`:
 * a proxy that writes one of them passes the other on as the client sent it. */
void dibs__serve_client_address(const dibs__serve_nets *trusted,
                                const char *peer, const char *forwarded,
                                const char *forwarded_for, char *out,
                                size_t size);

#endif
