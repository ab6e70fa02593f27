/* tls.c - TLS for the connections of a server, with OpenSSL.
 *
 * Owns the settings, which are replaced as a whole: a connection keeps those that it
 * began with. OpenSSL writes with a plain write(); the loop's thread has SIGPIPE
 * blocked. */
/* SPDX-License-Identifier: MIT */
#include "http/tls.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "http/openssl.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct dibs__http_tls {
    pthread_mutex_t mutex; /* for ctx */
    SSL_CTX *ctx;
};

struct dibs__http_seal {
    SSL *ssl;
};

static const char *last_reason(void)
{
    const char *text =
        dibs__http_ssl.ERR_reason_error_string(dibs__http_ssl.ERR_peek_error());

    return text ? text : "no reason given";
}

static dibs_status bad_file(const char *what, const char *path, dibs_error *err)
{
    int number = access(path, R_OK) != 0 ? errno : 0;

    /* OpenSSL has no words for what the kernel says. */
    if (number)
        return dibsx_fail_at(err, DIBS_REFUSED, dibsx_errno_name(number),
                             "cannot read the %s %.200s: %s", what, path,
                             strerror(number));
    return dibsx_fail_at(err, DIBS_REFUSED, "OpenSSL",
                         "cannot use the %s %.200s: %.80s", what, path,
                         last_reason());
}

/* A key with a passphrase is not asked for on the terminal. */
static int no_passphrase(char *out, int size, int writing, void *arg)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)arg;
    return -1;
}

static dibs_status
set_certificate(SSL_CTX *ctx, const dibs__http_tls_files *files,
                dibs_error *err)
{
    const char *key = files->key ? files->key : files->cert;

    dibs__http_ssl.SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    if (dibs__http_ssl.SSL_CTX_use_certificate_chain_file(ctx, files->cert) !=
        1)
        return bad_file("certificate", files->cert, err);
    if (dibs__http_ssl.SSL_CTX_use_PrivateKey_file(ctx, key,
                                                   SSL_FILETYPE_PEM) != 1 ||
        dibs__http_ssl.SSL_CTX_check_private_key(ctx) != 1)
        return bad_file("key", key, err);
    return DIBS_OK;
}

static dibs_status set_clients(SSL_CTX *ctx, const char *ca, dibs_error *err)
{
    STACK_OF(X509_NAME) * names;

    if (!ca)
        return DIBS_OK;
    /* The names come last, since only the settings free them. */
    if (dibs__http_ssl.SSL_CTX_load_verify_file(ctx, ca) != 1)
        return bad_file("authority of clients", ca, err);
    names = dibs__http_ssl.SSL_load_client_CA_file(ca);
    if (!names)
        return bad_file("authority of clients", ca, err);
    dibs__http_ssl.SSL_CTX_set_client_CA_list(ctx, names);
    dibs__http_ssl.SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return DIBS_OK;
}

/* Without sessions to resume: these would be memory that clients fill. */
static bool set_rules(SSL_CTX *ctx)
{
    dibs__http_ssl.SSL_CTX_set_options(ctx,
                                       SSL_OP_NO_RENEGOTIATION |
                                           SSL_OP_NO_COMPRESSION |
                                           SSL_OP_NO_TICKET |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE);
    dibs__http_ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE,
                                SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                    SSL_MODE_RELEASE_BUFFERS,
                                NULL);
    dibs__http_ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE,
                                SSL_SESS_CACHE_OFF, NULL);
    return dibs__http_ssl.SSL_CTX_set_num_tickets(ctx, 0) == 1 &&
           dibs__http_ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
                                       TLS1_2_VERSION, NULL) == 1;
}

static dibs_status
make_ctx(const dibs__http_tls_files *files, SSL_CTX **out, dibs_error *err)
{
    SSL_CTX *ctx;
    dibs_status rc;

    dibs__http_ssl.ERR_clear_error();
    ctx = dibs__http_ssl.SSL_CTX_new(dibs__http_ssl.TLS_server_method());
    if (!ctx)
        return dibsx_nomem(err, "TLS");
    if (set_rules(ctx))
        rc = set_certificate(ctx, files, err);
    else
        rc = dibsx_fail(err, DIBS_UNAVAIL, "OpenSSL cannot be set up: %s",
                        last_reason());
    if (rc == DIBS_OK)
        rc = set_clients(ctx, files->client_ca, err);
    if (rc == DIBS_OK)
        *out = ctx;
    else
        dibs__http_ssl.SSL_CTX_free(ctx);
    return rc;
}

dibs_status dibs__http_tls_new(const dibs__http_tls_files *files,
                               dibs__http_tls **out, dibs_error *err)
{
    dibs__http_tls *tls = NULL;
    dibs_status rc = dibs__http_openssl_load(err);

    *out = NULL;
    if (rc == DIBS_OK) {
        tls = dibsx_zalloc(sizeof(*tls));
        rc = tls ? make_ctx(files, &tls->ctx, err) : dibsx_nomem(err, "TLS");
    }
    if (rc != DIBS_OK) {
        dibsx_free(tls);
        return rc;
    }
    pthread_mutex_init(&tls->mutex, NULL);
    *out = tls;
    return DIBS_OK;
}

void dibs__http_tls_free(dibs__http_tls *tls)
{
    if (!tls)
        return;
    dibs__http_ssl.SSL_CTX_free(tls->ctx);
    pthread_mutex_destroy(&tls->mutex);
    dibsx_free(tls);
}

dibs_status
dibs__http_tls_reload(dibs__http_tls *tls, const dibs__http_tls_files *files,
                      dibs_error *err)
{
    SSL_CTX *ctx, *old;
    dibs_status rc = make_ctx(files, &ctx, err);

    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&tls->mutex);
    old = tls->ctx;
    tls->ctx = ctx;
    pthread_mutex_unlock(&tls->mutex);
    /* Each connection counts as a user of its own settings. */
    dibs__http_ssl.SSL_CTX_free(old);
    return DIBS_OK;
}

/* -- One connection. */

dibs__http_seal *dibs__http_seal_new(dibs__http_tls *tls, int fd)
{
    dibs__http_seal *seal = dibsx_zalloc(sizeof(*seal));

    if (!seal)
        return NULL;
    pthread_mutex_lock(&tls->mutex);
    seal->ssl = dibs__http_ssl.SSL_new(tls->ctx);
    pthread_mutex_unlock(&tls->mutex);
    if (!seal->ssl || dibs__http_ssl.SSL_set_fd(seal->ssl, fd) != 1) {
        dibs__http_seal_free(seal);
        return NULL;
    }
    dibs__http_ssl.SSL_set_accept_state(seal->ssl);
    return seal;
}

void dibs__http_seal_free(dibs__http_seal *seal)
{
    if (!seal)
        return;
    if (seal->ssl)
        dibs__http_ssl.SSL_free(seal->ssl);
    dibsx_free(seal);
}

/* A call did not do it: as recv() says it. */
static ssize_t not_done(const dibs__http_seal *seal, int result, int *wants)
{
    switch (dibs__http_ssl.SSL_get_error(seal->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        *wants = POLLIN;
        break;
    case SSL_ERROR_WANT_WRITE:
        *wants = POLLOUT;
        break;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        errno = EPROTO;
        return -1;
    }
    errno = EAGAIN;
    return -1;
}

static int at_most(size_t len)
{
    return len > INT_MAX ? INT_MAX : (int)len;
}

ssize_t
dibs__http_seal_read(dibs__http_seal *seal, void *out, size_t size, int *wants)
{
    int result;

    if (size == 0)
        return 0;
    dibs__http_ssl.ERR_clear_error();
    result = dibs__http_ssl.SSL_read(seal->ssl, out, at_most(size));
    return result > 0 ? result : not_done(seal, result, wants);
}

ssize_t dibs__http_seal_write(dibs__http_seal *seal, const void *bytes,
                              size_t len, int *wants)
{
    int result;

    if (len == 0)
        return 0;
    dibs__http_ssl.ERR_clear_error();
    result = dibs__http_ssl.SSL_write(seal->ssl, bytes, at_most(len));
    if (result > 0)
        return result;
    /* There is no such thing as an end of what can be written. */
    if (not_done(seal, result, wants) == 0)
        errno = EPROTO;
    return -1;
}

void dibs__http_seal_end(dibs__http_seal *seal)
{
    if (!dibs__http_seal_ready(seal))
        return;
    dibs__http_ssl.ERR_clear_error();
    (void)dibs__http_ssl.SSL_shutdown(seal->ssl);
}

bool dibs__http_seal_pending(const dibs__http_seal *seal)
{
    return dibs__http_ssl.SSL_has_pending(seal->ssl) != 0;
}

bool dibs__http_seal_ready(const dibs__http_seal *seal)
{
    return dibs__http_ssl.SSL_is_init_finished(seal->ssl) != 0;
}

void dibs__http_seal_name(const dibs__http_seal *seal, char *out, size_t size)
{
    X509 *cert = dibs__http_ssl.SSL_get1_peer_certificate(seal->ssl);
    int len = -1;

    *out = '\0';
    if (!cert)
        return;
    if (dibs__http_ssl.SSL_get_verify_result(seal->ssl) == X509_V_OK)
        len = dibs__http_ssl.X509_NAME_get_text_by_NID(
            dibs__http_ssl.X509_get_subject_name(cert), NID_commonName, out,
            at_most(size));
    dibs__http_ssl.X509_free(cert);
    /* A name with a NUL in it, or one that did not fit, is no name. */
    if (len < 0 || (size_t)len >= size - 1 || strlen(out) != (size_t)len)
        *out = '\0';
}
