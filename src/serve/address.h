/* address.h - "address:port", where the daemon listens. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ADDRESS_H
#define DIBS_SERVE_ADDRESS_H

#include <dibs/types.h>

typedef struct dibs__serve_address {
    char host[64]; /* in digits */
    int port;
    bool loopback;
} dibs__serve_address;

/* Reads "127.0.0.1:3427", "[::1]:3427" or "localhost:3427". */
DIBS_MUST_CHECK dibs_status dibs__serve_address_read(const char *text,
                                                     dibs__serve_address *out,
                                                     dibs_error *err);

#endif
