/* openssl.h - the OpenSSL library, loaded for the first server with TLS.
 *
 * Nothing links to libssl: its functions are called through the table below. For a
 * macro of the headers the table has the function behind it. Not for users of the
 * server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_OPENSSL_H
#define DIBS_HTTP_OPENSSL_H

#include <dibs/types.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#define DIBS__HTTP_OPENSSL_CALLS(X)                                            \
    X(ERR_clear_error)                                                         \
    X(ERR_peek_error)                                                          \
    X(ERR_reason_error_string)                                                 \
    X(OPENSSL_init_ssl)                                                        \
    X(SSL_CTX_check_private_key)                                               \
    X(SSL_CTX_ctrl)                                                            \
    X(SSL_CTX_free)                                                            \
    X(SSL_CTX_load_verify_file)                                                \
    X(SSL_CTX_new)                                                             \
    X(SSL_CTX_set_client_CA_list)                                              \
    X(SSL_CTX_set_default_passwd_cb)                                           \
    X(SSL_CTX_set_num_tickets)                                                 \
    X(SSL_CTX_set_options)                                                     \
    X(SSL_CTX_set_verify)                                                      \
    X(SSL_CTX_use_PrivateKey_file)                                             \
    X(SSL_CTX_use_certificate_chain_file)                                      \
    X(SSL_free)                                                                \
    X(SSL_get1_peer_certificate)                                               \
    X(SSL_get_error)                                                           \
    X(SSL_get_verify_result)                                                   \
    X(SSL_has_pending)                                                         \
    X(SSL_is_init_finished)                                                    \
    X(SSL_load_client_CA_file)                                                 \
    X(SSL_new)                                                                 \
    X(SSL_read)                                                                \
    X(SSL_set_accept_state)                                                    \
    X(SSL_set_fd)                                                              \
    X(SSL_shutdown)                                                            \
    X(SSL_write)                                                               \
    X(TLS_server_method)                                                       \
    X(X509_NAME_get_text_by_NID)                                               \
    X(X509_free)                                                               \
    X(X509_get_subject_name)

#define DIBS__HTTP_OPENSSL_SLOT(call) __typeof__(call) *call;

typedef struct dibs__http_openssl {
    DIBS__HTTP_OPENSSL_CALLS(DIBS__HTTP_OPENSSL_SLOT)
} dibs__http_openssl;

/* Filled by dibs__http_openssl_load(), constant afterwards. */
extern dibs__http_openssl dibs__http_ssl;

/* Any thread; the first success is for good. DIBS_UNAVAIL: not installed, and err says
 * what to install. */
DIBS_MUST_CHECK dibs_status dibs__http_openssl_load(dibs_error *err);

#endif
