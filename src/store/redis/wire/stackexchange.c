/* stackexchange.c - StackExchange.Redis connection strings, written as URLs.
 *
 *     host:6380,password=secret,ssl=True,abortConnect=False
 *     rediss://:secret@host:6380?lazy=1
 *
 * Owns nothing. Any thread. An option of that client without a meaning here is
 * accepted, so that programs may share a string; an unknown option is
 * refused. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "store/redis/wire/conf.h"
#include <string.h>
#include <strings.h>

enum { TLS_PORT = 6380, NUMBER_DIGITS = 9 };

#define DIGITS "0123456789"
#define LETTERS                                                                \
    "abcdefghijklmnopqrstuvwxyz"                                               \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

typedef struct span {
    const char *at;
    size_t len;
} span;

typedef enum option {
    ABORT_CONNECT,
    CONNECT_TIMEOUT,
    DATABASE,
    NAME,
    PASSWORD,
    SERVICE,
    SSL,
    SSL_HOST,
    USER,
    OPTIONS,
    IGNORED
} option;

static const struct {
    const char *name;
    option option;
} options[] = {
    {"abortConnect", ABORT_CONNECT},
    {"connectTimeout", CONNECT_TIMEOUT},
    {"defaultDatabase", DATABASE},
    {"name", NAME},
    {"password", PASSWORD},
    {"serviceName", SERVICE},
    {"ssl", SSL},
    {"sslHost", SSL_HOST},
    {"user", USER},
    {"allowAdmin", IGNORED},
    {"asyncTimeout", IGNORED},
    {"channelPrefix", IGNORED},
    {"checkCertificateRevocation", IGNORED},
    {"configChannel", IGNORED},
    {"configCheckSeconds", IGNORED},
    {"connectRetry", IGNORED},
    {"heartbeatInterval", IGNORED},
    {"heartbeatConsistencyChecks", IGNORED},
    {"highIntegrity", IGNORED},
    {"keepAlive", IGNORED},
    {"protocol", IGNORED},
    {"resolveDns", IGNORED},
    {"responseTimeout", IGNORED},
    {"setlib", IGNORED},
    {"sslProtocols", IGNORED},
    {"syncTimeout", IGNORED},
    {"tieBreaker", IGNORED},
    {"version", IGNORED},
    {"writeBuffer", IGNORED},
};

/* The string taken apart. */
typedef struct exchange {
    span hosts[DIBSX_URL_HOSTS];
    size_t host_count;
    span values[OPTIONS]; /* `at` is NULL when not given */
    bool ssl;
    bool abort_connect; /* fail when the server is away at the start */
} exchange;

static span trim_span(span s)
{
    while (s.len > 0 && (*s.at == ' ' || *s.at == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Takes the next item off the front of the text; false at its end. */
static bool next_item(const char **text, span *item)
{
    size_t len;

    if (!*text)
        return false;
    len = strcspn(*text, ",");
    *item = trim_span((span){.at = *text, .len = len});
    *text = (*text)[len] ? *text + len + 1 : NULL;
    return true;
}

static bool is_made_of(span s, const char *allowed)
{
    for (size_t i = 0; i < s.len; i++)
        if (!strchr(allowed, s.at[i]))
            return false;
    return s.len > 0;
}

/* Splits "host", "host:port", "[v6]" or "[v6]:port". Without a port, `port` is
 * empty. False when it is none of these. */
static bool split_host(span item, span *name, span *port)
{
    const char *allowed = LETTERS DIGITS "-._";
    const char *end = item.at + item.len;
    const char *stop;

    if (item.len > 0 && *item.at == '[') {
        allowed = DIGITS "abcdefABCDEF:.";
        stop = memchr(item.at, ']', item.len);
        if (!stop)
            return false;
        *name = (span){item.at + 1, (size_t)(stop++ - item.at) - 1};
    } else {
        stop = memchr(item.at, ':', item.len);
        stop = stop ? stop : end;
        *name = (span){item.at, (size_t)(stop - item.at)};
    }
    *port = (span){end, 0};
    if (stop < end && *stop == ':')
        *port = (span){stop + 1, (size_t)(end - stop) - 1};
    else if (stop < end)
        return false;
    return is_made_of(*name, allowed) &&
           (stop == end || (is_made_of(*port, DIGITS) && port->len <= 5));
}

/* Nothing that names a store looks like this: it has a dot, or is in brackets. */
static bool is_plainly_host(span name)
{
    return memchr(name.at, '.', name.len) || memchr(name.at, ':', name.len) ||
           (name.len == 9 && strncasecmp(name.at, "localhost", 9) == 0);
}

bool dibs__redis_is_stackexchange(const char *text)
{
    span item, name, port;

    (void)next_item(&text, &item);
    if (!split_host(item, &name, &port))
        return false;
    if (!text && port.len > 0)
        return is_plainly_host(name);
    while (next_item(&text, &item))
        if (memchr(item.at, '=', item.len))
            return true;
    return false;
}

static dibs_status
read_bool(span value, const char *name, bool *out, dibs_error *err)
{
    if (value.len == 4 && strncasecmp(value.at, "true", 4) == 0)
        *out = true;
    else if (value.len == 5 && strncasecmp(value.at, "false", 5) == 0)
        *out = false;
    else
        return dibsx_fail(err, DIBS_INVALID,
                          "%s in a connection string is True or False", name);
    return DIBS_OK;
}

static dibs_status check_number(span value, const char *name, dibs_error *err)
{
    if (is_made_of(value, DIGITS) && value.len <= NUMBER_DIGITS)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "%s in a connection string is a number", name);
}

static dibs_status
read_option(exchange *ex, size_t at, span value, dibs_error *err)
{
    option opt = options[at].option;

    if (opt == IGNORED)
        return DIBS_OK;
    if (value.len == 0) /* That client takes it as not given. */
        return DIBS_OK;
    ex->values[opt] = value;
    if (opt == SSL)
        return read_bool(value, "ssl", &ex->ssl, err);
    if (opt == ABORT_CONNECT)
        return read_bool(value, "abortConnect", &ex->abort_connect, err);
    if (opt == DATABASE || opt == CONNECT_TIMEOUT)
        return check_number(value, options[at].name, err);
    return DIBS_OK;
}

static dibs_status read_item(exchange *ex, span item, dibs_error *err)
{
    const char *equals = memchr(item.at, '=', item.len);
    const size_t count = sizeof(options) / sizeof(options[0]);
    span key, value, name, port;
    size_t at = 0;

    if (!equals) {
        if (!split_host(item, &name, &port))
            return dibsx_fail(err, DIBS_INVALID,
                              "a connection string has a part that is neither "
                              "host:port nor option=value");
        if (ex->host_count == DIBSX_URL_HOSTS)
            return dibsx_fail(err, DIBS_INVALID,
                              "a connection string has more than %d hosts",
                              DIBSX_URL_HOSTS);
        ex->hosts[ex->host_count++] = item;
        return DIBS_OK;
    }
    key = trim_span((span){item.at, (size_t)(equals - item.at)});
    value = trim_span(
        (span){equals + 1, (size_t)(item.at + item.len - equals) - 1});
    while (at < count && (strlen(options[at].name) != key.len ||
                          strncasecmp(options[at].name, key.at, key.len) != 0))
        at++;
    /* After a password this may be a part of it, cut off at a comma. */
    if (at == count && ex->values[PASSWORD].at)
        return dibsx_fail(err, DIBS_INVALID,
                          "a connection string has an unknown option after its "
                          "password");
    if (at == count)
        return dibsx_fail(err, DIBS_INVALID,
                          "a connection string has no option \"%.*s\"",
                          (int)(key.len < 40 ? key.len : 40), key.at);
    return read_option(ex, at, value, err);
}

static void put_escaped(dibsx_buf *buf, span s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (strchr(LETTERS DIGITS "-._~", s.at[i]))
            dibsx_buf_putc(buf, s.at[i]);
        else
            dibsx_buf_printf(buf, "%%%02X", (unsigned char)s.at[i]);
    }
}

static void put_credentials(dibsx_buf *buf, const exchange *ex)
{
    if (!ex->values[USER].at && !ex->values[PASSWORD].at)
        return;
    put_escaped(buf, ex->values[USER]);
    if (ex->values[PASSWORD].at) {
        dibsx_buf_putc(buf, ':');
        put_escaped(buf, ex->values[PASSWORD]);
    }
    dibsx_buf_putc(buf, '@');
}

static void put_hosts(dibsx_buf *buf, const exchange *ex)
{
    for (size_t i = 0; i < ex->host_count; i++) {
        span name, port;

        (void)split_host(ex->hosts[i], &name, &port);
        if (i > 0)
            dibsx_buf_putc(buf, ',');
        dibsx_buf_add(buf, ex->hosts[i].at, ex->hosts[i].len);
        if (port.len == 0 && ex->ssl && !ex->values[SERVICE].at)
            dibsx_buf_printf(buf, ":%d", TLS_PORT);
    }
}

/* A parameter, if it was given. */
static void put_param(dibsx_buf *buf, char *separator, const char *key,
                      span value, const char *unit)
{
    if (!value.at)
        return;
    dibsx_buf_printf(buf, "%c%s=", *separator, key);
    put_escaped(buf, value);
    dibsx_buf_puts(buf, unit);
    *separator = '&';
}

static void put_url(dibsx_buf *buf, const exchange *ex)
{
    char separator = '?';

    dibsx_buf_puts(buf, ex->values[SERVICE].at ? "redis-sentinel"
                        : ex->ssl              ? "rediss"
                                               : "redis");
    dibsx_buf_puts(buf, "://");
    put_credentials(buf, ex);
    put_hosts(buf, ex);
    if (ex->values[SERVICE].at) {
        dibsx_buf_putc(buf, '/');
        put_escaped(buf, ex->values[SERVICE]);
    }
    put_param(buf, &separator, "db", ex->values[DATABASE], "");
    put_param(buf, &separator, "client_name", ex->values[NAME], "");
    put_param(buf, &separator, "connect_timeout", ex->values[CONNECT_TIMEOUT],
              "ms");
    if (!ex->abort_connect)
        put_param(buf, &separator, "lazy", (span){"1", 1}, "");
    if (ex->ssl)
        put_param(buf, &separator, "sni", ex->values[SSL_HOST], "");
    if (ex->ssl && ex->values[SERVICE].at)
        put_param(buf, &separator, "tls", (span){"1", 1}, "");
}

dibs_status
dibs__redis_stackexchange_url(const char *text, char **out, dibs_error *err)
{
    exchange ex = {.abort_connect = true};
    span item;
    dibsx_buf buf;
    dibs_status rc = DIBS_OK;

    *out = NULL;
    while (rc == DIBS_OK && next_item(&text, &item))
        if (item.len > 0)
            rc = read_item(&ex, item, err);
    if (rc != DIBS_OK)
        return rc;
    if (ex.host_count == 0)
        return dibsx_fail(err, DIBS_INVALID, "a connection string has no host");
    dibsx_buf_init(&buf, DIBSX_URL_MAX);
    put_url(&buf, &ex);
    if (!dibsx_buf_ok(&buf))
        rc = dibsx_fail(err, DIBS_INVALID, "a connection string is too long");
    else
        *out = dibsx_buf_take(&buf);
    dibsx_buf_fini(&buf);
    return rc;
}
