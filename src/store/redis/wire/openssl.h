/* openssl.h - the OpenSSL library, loaded for the first TLS connection.
 *
 * Nothing links to libssl: its functions are called through the table below,
 * `dibs__ssl.SSL_read(...)`. For a macro of the headers the table has the
 * function behind it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_OPENSSL_H
#define DIBS_STORE_REDIS_WIRE_OPENSSL_H

#include <dibs/types.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define DIBS__OPENSSL_CALLS(X)                                                 \
    X(BIO_clear_flags)                                                         \
    X(BIO_get_data)                                                            \
    X(BIO_meth_free)                                                           \
    X(BIO_meth_new)                                                            \
    X(BIO_meth_set_ctrl)                                                       \
    X(BIO_meth_set_read)                                                       \
    X(BIO_meth_set_write)                                                      \
    X(BIO_new)                                                                 \
    X(BIO_set_data)                                                            \
    X(BIO_set_flags)                                                           \
    X(BIO_set_init)                                                            \
    X(ERR_clear_error)                                                         \
    X(ERR_peek_error)                                                          \
    X(ERR_reason_error_string)                                                 \
    X(OPENSSL_init_ssl)                                                        \
    X(SSL_CTX_check_private_key)                                               \
    X(SSL_CTX_ctrl)                                                            \
    X(SSL_CTX_free)                                                            \
    X(SSL_CTX_load_verify_dir)                                                 \
    X(SSL_CTX_load_verify_file)                                                \
    X(SSL_CTX_new)                                                             \
    X(SSL_CTX_set_default_passwd_cb)                                           \
    X(SSL_CTX_set_default_verify_paths)                                        \
    X(SSL_CTX_set_options)                                                     \
    X(SSL_CTX_set_verify)                                                      \
    X(SSL_CTX_use_PrivateKey_file)                                             \
    X(SSL_CTX_use_certificate_chain_file)                                      \
    X(SSL_connect)                                                             \
    X(SSL_ctrl)                                                                \
    X(SSL_free)                                                                \
    X(SSL_get0_param)                                                          \
    X(SSL_get_error)                                                           \
    X(SSL_get_verify_result)                                                   \
    X(SSL_has_pending)                                                         \
    X(SSL_new)                                                                 \
    X(SSL_read)                                                                \
    X(SSL_set1_host)                                                           \
    X(SSL_set_bio)                                                             \
    X(SSL_set_hostflags)                                                       \
    X(SSL_write)                                                               \
    X(TLS_client_method)                                                       \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                           \
    X(X509_verify_cert_error_string)

#define DIBS__OPENSSL_SLOT(call) __typeof__(call) *call;

typedef struct dibs__openssl_calls {
    DIBS__OPENSSL_CALLS(DIBS__OPENSSL_SLOT)
} dibs__openssl_calls;

/* Filled by dibs__openssl_load(), constant afterwards. */
extern dibs__openssl_calls dibs__ssl;

/* Any thread; the first success is for good. DIBS_UNAVAIL: not installed, and
 * err says what to install. */
DIBS_MUST_CHECK dibs_status dibs__openssl_load(dibs_error *err);

#endif
