/* no_tls.c - TLS in a build without the headers of OpenSSL: it is refused. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "http/tls.h"
#include <errno.h>

static dibs_status refuse_tls(dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNSUPPORTED,
                      "this dibs was built without TLS; build it where "
                      "libssl-dev is installed");
}

dibs_status dibs__http_tls_new(const dibs__http_tls_files *files,
                               dibs__http_tls **out, dibs_error *err)
{
    (void)files;
    *out = NULL;
    return refuse_tls(err);
}

void dibs__http_tls_free(dibs__http_tls *tls)
{
    (void)tls;
}

dibs_status
dibs__http_tls_reload(dibs__http_tls *tls, const dibs__http_tls_files *files,
                      dibs_error *err)
{
    (void)tls;
    (void)files;
    return refuse_tls(err);
}

dibs__http_seal *dibs__http_seal_new(dibs__http_tls *tls, int fd)
{
    (void)tls;
    (void)fd;
    return NULL;
}

void dibs__http_seal_free(dibs__http_seal *seal)
{
    (void)seal;
}

ssize_t
dibs__http_seal_read(dibs__http_seal *seal, void *out, size_t size, int *wants)
{
    (void)seal;
    (void)out;
    (void)size;
    (void)wants;
    errno = EPROTO;
    return -1;
}

ssize_t dibs__http_seal_write(dibs__http_seal *seal, const void *bytes,
                              size_t len, int *wants)
{
    (void)seal;
    (void)bytes;
    (void)len;
    (void)wants;
    errno = EPROTO;
    return -1;
}

void dibs__http_seal_end(dibs__http_seal *seal)
{
    (void)seal;
}

bool dibs__http_seal_pending(const dibs__http_seal *seal)
{
    (void)seal;
    return false;
}

bool dibs__http_seal_ready(const dibs__http_seal *seal)
{
    (void)seal;
    return true;
}

void dibs__http_seal_name(const dibs__http_seal *seal, char *out, size_t size)
{
    (void)seal;
    (void)size;
    *out = '\0';
}
