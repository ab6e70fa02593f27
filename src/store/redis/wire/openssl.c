/* openssl.c - the OpenSSL library, loaded for the first TLS connection.
 *
 * Owns the table of its functions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/openssl.h"
#include "base/dynlib.h"
#include "base/fail.h"
#include "base/once.h"

#define CALL(call) {#call, (void **)&dibs__ssl.call},

dibs__openssl_calls dibs__ssl;

static const dibsx_dynlib_call calls[] = {DIBS__OPENSSL_CALLS(CALL)};
static dibsx_once once = DIBSX_ONCE_INIT;

/* It must not clean up at exit: a thread may be speaking TLS even then. */
static dibs_status load_openssl(dibs_error *err)
{
    dibs_status rc = dibsx_dynlib_load("libssl.so.3", "libssl3", calls,
                                       sizeof(calls) / sizeof(calls[0]), err);

    if (rc == DIBS_OK &&
        dibs__ssl.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        rc = dibsx_fail(err, DIBS_UNAVAIL, "OpenSSL cannot be started");
    return rc;
}

dibs_status dibs__openssl_load(dibs_error *err)
{
    return dibsx_once_do(&once, load_openssl, err);
}
