/* openssl.c - the OpenSSL library, loaded for the first server with TLS.
 *
 * Owns the table of its functions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "http/openssl.h"
#include "base/dynlib.h"
#include "base/fail.h"
#include "base/once.h"

#define CALL(call) {#call, (void **)&dibs__http_ssl.call},

dibs__http_openssl dibs__http_ssl;

static const dibsx_dynlib_call calls[] = {DIBS__HTTP_OPENSSL_CALLS(CALL)};
static dibsx_once once = DIBSX_ONCE_INIT;

/* It must not clean up at exit: a thread may be speaking TLS even then. */
static dibs_status load_openssl(dibs_error *err)
{
    dibs_status rc = dibsx_dynlib_load("libssl.so.3", "libssl3", calls,
                                       sizeof(calls) / sizeof(calls[0]), err);

    if (rc == DIBS_OK &&
        dibs__http_ssl.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        rc = dibsx_fail(err, DIBS_UNAVAIL, "OpenSSL cannot be started");
    return rc;
}

dibs_status dibs__http_openssl_load(dibs_error *err)
{
    return dibsx_once_do(&once, load_openssl, err);
}
