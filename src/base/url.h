/* url.h - store URLs: "scheme:rest", "scheme://user:pw@host:port/path?k=v". Pure.
 *
 * Percent escapes are decoded in every part; an escaped NUL is refused. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_URL_H
#define DIBS_BASE_URL_H

#include <dibs/types.h>

enum { DIBSX_URL_MAX = 4096, DIBSX_URL_HOSTS = 16, DIBSX_URL_PARAMS = 32 };

typedef struct dibsx_url_host {
    char *name; /* an IPv6 address is without its brackets */
    int port;   /* 0 when none was given */
} dibsx_url_host;

typedef struct dibsx_url_param {
    char *key;
    char *value; /* "" when there was no "=" */
} dibsx_url_param;

typedef struct dibsx_url {
    char *scheme; /* lower case */
    char *user;   /* NULL when not given, as all below */
    char *password;
    dibsx_url_host hosts[DIBSX_URL_HOSTS];
    size_t host_count;
    char *path; /* what follows "scheme:" or the hosts, without "?..." */
    dibsx_url_param params[DIBSX_URL_PARAMS];
    size_t param_count;
} dibsx_url;

/* On failure `url` is empty and err says where and why, never showing a
 * password. Free with dibsx_url_fini(). */
DIBS_MUST_CHECK dibs_status dibsx_url_parse(const char *text, dibsx_url *url,
                                            dibs_error *err);
void dibsx_url_fini(dibsx_url *url);

/* The value of a parameter, or NULL. Borrowed from the URL. */
const char *dibsx_url_param_get(const dibsx_url *url, const char *key);

/* Copies `text` to out with the password (and any parameter whose name has
 * "pass", "pw", "secret", "token", "key" or the like in it) replaced by "***". Works on malformed
 * text too: a part that it cannot classify is hidden. */
void dibsx_url_redact(const char *text, char *out, size_t size);

#endif
