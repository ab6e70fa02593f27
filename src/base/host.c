/* host.c - host names that fit. */
/* SPDX-License-Identifier: MIT */
#include "base/host.h"
#include "base/sha1.h"
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { HASH_DIGITS = 6, KEPT = DIBSX_HOST_SIZE - 1 - HASH_DIGITS - 1 };

void dibsx_host_shorten(const char *name, char out[DIBSX_HOST_SIZE])
{
    size_t len = strlen(name);
    char sum[DIBSX_SHA1_TEXT];

    if (len < DIBSX_HOST_SIZE) {
        memcpy(out, name, len + 1);
        return;
    }
    dibsx_sha1(name, len, sum);
    (void)snprintf(out, DIBSX_HOST_SIZE, "%.*s~%.*s", (int)KEPT, name,
                   (int)HASH_DIGITS, sum);
}

void dibsx_host_name(char out[DIBSX_HOST_SIZE])
{
    struct utsname at;

    dibsx_host_shorten(uname(&at) == 0 && at.nodename[0] ? at.nodename
                                                         : DIBSX_HOST_UNKNOWN,
                       out);
}
