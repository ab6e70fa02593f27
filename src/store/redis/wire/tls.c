/* tls.c - TLS over a connected socket, with OpenSSL.
 *
 * Owns the session and its settings, which are made anew for every connection,
 * so that certificates that were replaced on disk are seen. OpenSSL's own BIO
 * for sockets raises SIGPIPE, so the session uses another. One mutex is around
 * the session: OpenSSL lets one thread at a time use it. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/tls.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/wire/openssl.h"
#include "store/redis/wire/socket.h"
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

struct dibs__tls {
    int fd;
    pthread_mutex_t mutex;
    SSL_CTX *ctx;
    BIO_METHOD *method;
    SSL *ssl;
    int number; /* errno of the last call on the socket that failed */
    bool eof;
    bool empty; /* so is the socket, by the last look at it */
    bool dry;   /* what it has is not a whole record */
};

/* Both are called by OpenSSL inside of a read, a write or a handshake. */
static int bio_done(BIO *bio, dibs__tls *tls, ssize_t len, int retry)
{
    dibs__ssl.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (len >= 0)
        return (int)len;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        dibs__ssl.BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    else
        tls->number = errno;
    return -1;
}

static int bio_read(BIO *bio, char *out, int size)
{
    dibs__tls *tls = dibs__ssl.BIO_get_data(bio);
    ssize_t len = recv(tls->fd, out, (size_t)size, MSG_DONTWAIT);

    if (len == 0)
        tls->eof = true;
    tls->empty = len <= 0;
    return bio_done(bio, tls, len, BIO_FLAGS_READ);
}

static int bio_write(BIO *bio, const char *bytes, int size)
{
    dibs__tls *tls = dibs__ssl.BIO_get_data(bio);
    ssize_t len =
        send(tls->fd, bytes, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);

    return bio_done(bio, tls, len, BIO_FLAGS_WRITE);
}

static long bio_ctrl(BIO *bio, int what, long number, void *arg)
{
    dibs__tls *tls = dibs__ssl.BIO_get_data(bio);

    (void)number;
    (void)arg;
    if (what == BIO_CTRL_EOF)
        return tls->eof;
    return what == BIO_CTRL_FLUSH;
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

void dibs__tls_close(dibs__tls *tls)
{
    if (!tls)
        return;
    if (tls->ssl)
        dibs__ssl.SSL_free(tls->ssl);
    if (tls->ctx)
        dibs__ssl.SSL_CTX_free(tls->ctx);
    if (tls->method)
        dibs__ssl.BIO_meth_free(tls->method);
    pthread_mutex_destroy(&tls->mutex);
    dibsx_free(tls);
}

/* OpenSSL's reason for its last error. */
static const char *last_reason(void)
{
    const char *text =
        dibs__ssl.ERR_reason_error_string(dibs__ssl.ERR_peek_error());

    return text ? text : "no reason given";
}

static dibs_status
bad_file(const char *param, const char *path, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_INVALID, "OpenSSL",
                         "%s cannot be used: %.80s (%.100s)", param,
                         last_reason(), path);
}

static dibs_status
set_trust(dibs__tls *tls, const dibs__redis_conf *conf, dibs_error *err)
{
    struct stat at;
    int ok;

    if (conf->insecure) {
        dibs__ssl.SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_NONE, NULL);
        return DIBS_OK;
    }
    dibs__ssl.SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
    if (!conf->ca)
        ok = dibs__ssl.SSL_CTX_set_default_verify_paths(tls->ctx);
    else if (stat(conf->ca, &at) == 0 && S_ISDIR(at.st_mode))
        ok = dibs__ssl.SSL_CTX_load_verify_dir(tls->ctx, conf->ca);
    else
        ok = dibs__ssl.SSL_CTX_load_verify_file(tls->ctx, conf->ca);
    return ok == 1 ? DIBS_OK
                   : bad_file("ca", conf->ca ? conf->ca : "the system's", err);
}

static dibs_status
set_certificate(dibs__tls *tls, const dibs__redis_conf *conf, dibs_error *err)
{
    const char *key = conf->key ? conf->key : conf->cert;

    if (!conf->cert)
        return DIBS_OK;
    dibs__ssl.SSL_CTX_set_default_passwd_cb(tls->ctx, no_passphrase);
    if (dibs__ssl.SSL_CTX_use_certificate_chain_file(tls->ctx, conf->cert) != 1)
        return bad_file("cert", conf->cert, err);
    if (dibs__ssl.SSL_CTX_use_PrivateKey_file(tls->ctx, key,
                                              SSL_FILETYPE_PEM) != 1 ||
        dibs__ssl.SSL_CTX_check_private_key(tls->ctx) != 1)
        return bad_file("key", key, err);
    return DIBS_OK;
}

static dibs_status
make_ctx(dibs__tls *tls, const dibs__redis_conf *conf, dibs_error *err)
{
    dibs_status rc;

    dibs__ssl.ERR_clear_error();
    tls->ctx = dibs__ssl.SSL_CTX_new(dibs__ssl.TLS_client_method());
    if (!tls->ctx ||
        dibs__ssl.SSL_CTX_ctrl(tls->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
                               TLS1_2_VERSION, NULL) != 1)
        return dibsx_fail(err, DIBS_UNAVAIL, "OpenSSL cannot be set up: %s",
                          last_reason());
    dibs__ssl.SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION |
                                                SSL_OP_NO_COMPRESSION);
    dibs__ssl.SSL_CTX_ctrl(tls->ctx, SSL_CTRL_MODE,
                           SSL_MODE_ENABLE_PARTIAL_WRITE |
                               SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                           NULL);
    /* A read ends with every record, be there something for us in it or not: a
     * server that sends tickets without an end would keep it for ever. */
    dibs__ssl.SSL_CTX_ctrl(tls->ctx, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY,
                           NULL);
    dibs__ssl.SSL_CTX_ctrl(tls->ctx, SSL_CTRL_SET_READ_AHEAD, 1, NULL);
    rc = set_trust(tls, conf, err);
    return rc == DIBS_OK ? set_certificate(tls, conf, err) : rc;
}

static bool is_address(const char *name)
{
    unsigned char out[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, out) == 1 ||
           inet_pton(AF_INET6, name, out) == 1;
}

/* Asks for the name and has it verified, among those that the certificate is for:
 * its subject is a title, which authorities need not check. An address has no part
 * in SNI. */
static bool expect_name(SSL *ssl, const char *name)
{
    union {
        const char *in;
        void *out;
    } sni = {.in = name};

    dibs__ssl.SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (is_address(name))
        return dibs__ssl.X509_VERIFY_PARAM_set1_ip_asc(dibs__ssl.SSL_get0_param(
                                                           ssl),
                                                       name) == 1;
    return dibs__ssl.SSL_set1_host(ssl, name) == 1 &&
           dibs__ssl.SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                              TLSEXT_NAMETYPE_host_name, sni.out) == 1;
}

static BIO *make_bio(dibs__tls *tls)
{
    BIO *bio;

    tls->method = dibs__ssl.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "dibs");
    if (!tls->method)
        return NULL;
    dibs__ssl.BIO_meth_set_read(tls->method, bio_read);
    dibs__ssl.BIO_meth_set_write(tls->method, bio_write);
    dibs__ssl.BIO_meth_set_ctrl(tls->method, bio_ctrl);
    bio = dibs__ssl.BIO_new(tls->method);
    if (bio) {
        dibs__ssl.BIO_set_data(bio, tls);
        dibs__ssl.BIO_set_init(bio, 1);
    }
    return bio;
}

static dibs_status
make_session(dibs__tls *tls, const dibs__redis_conf *conf, dibs_error *err)
{
    BIO *bio;

    tls->ssl = dibs__ssl.SSL_new(tls->ctx);
    if (!tls->ssl || !expect_name(tls->ssl, conf->sni ? conf->sni : conf->host))
        return dibsx_fail(err, DIBS_UNAVAIL, "OpenSSL cannot be set up: %s",
                          last_reason());
    bio = make_bio(tls);
    if (!bio)
        return dibsx_nomem(err, "a TLS connection");
    dibs__ssl.SSL_set_bio(tls->ssl, bio, bio);
    return DIBS_OK;
}

/* The server's certificate was not accepted. */
static dibs_status not_verified(dibs__tls *tls, dibs_error *err)
{
    long result = dibs__ssl.SSL_get_verify_result(tls->ssl);
    const char *why;

    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        why = "it has expired";
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        why = "it is for another host, by its subjectAltName (sni=NAME if "
              "that is meant)";
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        why = "it is self-signed (ca=FILE to trust it)";
        break;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        why = "its authority is not trusted (ca=FILE to trust it)";
        break;
    default:
        why = dibs__ssl.X509_verify_cert_error_string(result);
    }
    return dibsx_fail_at(err, DIBS_DENIED, "X509",
                         "the server's certificate is not accepted: %.120s",
                         why);
}

/* Fails with OpenSSL's last error. */
static dibs_status protocol_failed(dibs__tls *tls, dibs_error *err)
{
    switch (ERR_GET_REASON(dibs__ssl.ERR_peek_error())) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return not_verified(tls, err);
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_RECORD_LENGTH_MISMATCH:
    case SSL_R_HTTP_REQUEST:
        return dibsx_fail_at(err, DIBS_REFUSED, "OpenSSL",
                             "the server does not speak TLS on this port "
                             "(redis: instead of rediss:?)");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return dibsx_fail_at(err, DIBS_REFUSED, "OpenSSL",
                             "the server does not speak TLS 1.2 or newer");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return dibsx_fail_at(err, DIBS_DENIED, "OpenSSL",
                             "the server does not accept our certificate: "
                             "%.80s (cert=FILE, key=FILE)",
                             last_reason());
    default:
        return dibsx_fail_at(err, DIBS_UNAVAIL, "OpenSSL",
                             "TLS with the server failed: %.120s",
                             last_reason());
    }
}

/* A call on the session did not do it: POLLIN or POLLOUT when it is to be tried
 * again after that, else 0 and err. Locks: tls->mutex. */
static short not_done(dibs__tls *tls, int result, dibs_error *err)
{
    switch (dibs__ssl.SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return POLLIN;
    case SSL_ERROR_WANT_WRITE:
        return POLLOUT;
    case SSL_ERROR_SSL:
        if (!tls->eof) {
            (void)protocol_failed(tls, err);
            return 0;
        }
        break;
    default:
        break;
    }
    if (tls->number)
        (void)dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(tls->number),
                            "speaking with the server failed (%s)",
                            dibsx_errno_name(tls->number));
    else
        (void)dibsx_fail_at(err, DIBS_UNAVAIL, "EOF",
                            "the server closed the connection");
    return 0;
}

static dibs_status
shake_hands(dibs__tls *tls, dibsx_nsec deadline, dibs_error *err)
{
    dibs_error why = {0};
    short events;

    for (;;) {
        int result;

        dibs__ssl.ERR_clear_error();
        result = dibs__ssl.SSL_connect(tls->ssl);
        if (result == 1)
            return DIBS_OK;
        events = not_done(tls, result, &why);
        if (!events)
            return dibsx_fail_at(err, why.status, why.origin, "%s",
                                 why.message);
        (void)dibs__socket_wait(tls->fd, events, -1, deadline);
        if (dibsx_now() >= deadline)
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the TLS handshake was not finished in time; "
                              "does the server speak TLS on this port?");
    }
}

dibs_status
dibs__tls_open(const dibs__redis_conf *conf, int fd, dibsx_nsec deadline,
               dibs__tls **out, dibs_error *err)
{
    dibs__tls *tls;
    dibs_status rc = dibs__openssl_load(err);

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    tls = dibsx_zalloc(sizeof(*tls));
    if (!tls)
        return dibsx_nomem(err, "a TLS connection");
    tls->fd = fd;
    pthread_mutex_init(&tls->mutex, NULL);
    rc = make_ctx(tls, conf, err);
    if (rc == DIBS_OK)
        rc = make_session(tls, conf, err);
    if (rc == DIBS_OK)
        rc = shake_hands(tls, deadline, err);
    if (rc == DIBS_OK)
        *out = tls;
    else
        dibs__tls_close(tls);
    return rc;
}

bool dibs__tls_pending(dibs__tls *tls)
{
    bool pending;

    pthread_mutex_lock(&tls->mutex);
    pending = !tls->dry && dibs__ssl.SSL_has_pending(tls->ssl);
    pthread_mutex_unlock(&tls->mutex);
    return pending;
}

static int bound_len(size_t len)
{
    return len > INT_MAX ? INT_MAX : (int)len;
}

ssize_t dibs__tls_read(dibs__tls *tls, void *out, size_t len, dibs_error *err)
{
    ssize_t got;

    pthread_mutex_lock(&tls->mutex);
    dibs__ssl.ERR_clear_error();
    tls->empty = false;
    got = dibs__ssl.SSL_read(tls->ssl, out, bound_len(len));
    tls->dry = got <= 0 && tls->empty;
    if (got <= 0)
        got = not_done(tls, (int)got, err) ? 0 : -1;
    pthread_mutex_unlock(&tls->mutex);
    return got;
}

ssize_t
dibs__tls_write(dibs__tls *tls, const void *bytes, size_t len, dibs_error *err)
{
    ssize_t sent;

    pthread_mutex_lock(&tls->mutex);
    dibs__ssl.ERR_clear_error();
    sent = dibs__ssl.SSL_write(tls->ssl, bytes, bound_len(len));
    if (sent <= 0)
        sent = not_done(tls, (int)sent, err) ? 0 : -1;
    pthread_mutex_unlock(&tls->mutex);
    return sent;
}
