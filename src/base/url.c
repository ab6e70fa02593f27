/* url.c - store URLs: taken apart, checked, and shown without their secrets.
 *
 * First the text is split into spans, which allocates nothing and finds every
 * fault; then the spans are decoded into copies. Redaction uses the same split,
 * so that what it hides is what the parser would read as a secret. No message
 * quotes the text. Owns nothing; callable from any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/url.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include <assert.h>
#include <string.h>

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

typedef struct span {
    const char *at; /* NULL when the part is not there */
    size_t len;
} span;

typedef struct parts {
    span scheme;
    span user;
    span password;
    span hosts;
    span path;
    span query;
} parts;

static dibs_status
bad(const char *text, const char *at, const char *why, dibs_error *err)
{
    return dibsx_fail(err, DIBS_INVALID,
                      "the store URL is malformed at column %zu: %s",
                      (size_t)(at - text) + 1, why);
}

static span span_of(const char *at, const char *end)
{
    return (span){.at = at, .len = (size_t)(end - at)};
}

/* A part that is there but empty counts as not given. */
static span given(const char *at, const char *end)
{
    return at < end ? span_of(at, end) : (span){0};
}

static const char *find_char(span in, char c)
{
    return in.len ? memchr(in.at, c, in.len) : NULL;
}

/* Takes the next piece of a list off its front; false at the end. */
static bool next_piece(span *list, char separator, span *piece)
{
    const char *end, *stop;

    if (!list->at)
        return false;
    end = list->at + list->len;
    stop = find_char(*list, separator);
    *piece = span_of(list->at, stop ? stop : end);
    *list = stop ? span_of(stop + 1, end) : (span){0};
    return true;
}

/* Looks at every byte: controls and broken escapes are refused wherever they
 * are. */
static dibs_status check_bytes(const char *text, dibs_error *err)
{
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            return bad(text, c, "a control character must be escaped", err);
        if (*c != '%')
            continue;
        if (dibsx_hex_value(c[1]) < 0 || dibsx_hex_value(c[2]) < 0)
            return bad(text, c,
                       "\"%\" needs two hexadecimal digits after it; itself "
                       "it is written %25",
                       err);
        if (c[1] == '0' && c[2] == '0')
            return bad(text, c, "%00 is not allowed", err);
    }
    return DIBS_OK;
}

/* The length of the scheme before its colon, 0 when there is none. */
static size_t scheme_len(const char *text)
{
    size_t len = strspn(text, LOWER UPPER DIGITS "+-.");

    return text[len] == ':' && strspn(text, LOWER UPPER) > 0 ? len : 0;
}

/* Reads a port that is the rest of a host; 0 when it is none. */
static int read_port(span digits)
{
    int port = 0;

    if (digits.len < 1 || digits.len > 5)
        return 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9')
            return 0;
        port = port * 10 + (digits.at[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

static bool is_all(span s, const char *allowed)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.at[i] < 0x80 && !strchr(allowed, s.at[i]))
            return false;
    }
    return s.len > 0;
}

/* An address and perhaps a zone, as in "fe80::1%25eth0". */
static bool is_ipv6(span name)
{
    const char *zone = find_char(name, '%');
    span address = zone ? span_of(name.at, zone) : name;

    return find_char(address, ':') &&
           is_all(address, DIGITS "abcdefABCDEF:.") &&
           is_all(name, LOWER UPPER DIGITS ":.%-_");
}

/* Finds the end of the name in "name", "name:port", "[v6]" or "[v6]:port".
 * Returns what is wrong with it, or NULL. */
static const char *split_name(span piece, span *name, const char **rest)
{
    const char *end = piece.at + piece.len;
    const char *stop;

    if (piece.len && *piece.at == '[') {
        stop = find_char(piece, ']');
        if (!stop)
            return "the bracket of an IPv6 address is not closed";
        *name = span_of(piece.at + 1, stop);
        *rest = stop + 1;
        return is_ipv6(*name) ? NULL
                              : "there is no IPv6 address in the brackets";
    }
    stop = find_char(piece, ':');
    *name = span_of(piece.at, stop ? stop : end);
    *rest = stop ? stop : end;
    if (name->len == 0)
        return "a host is missing";
    if (!is_all(*name, LOWER UPPER DIGITS "-._~%"))
        return "a host has a character that must be escaped";
    if (stop && find_char(span_of(stop + 1, end), ':'))
        return "an IPv6 address must be in brackets";
    return NULL;
}

/* Takes one host apart; *at is then where the fault is. */
static const char *
split_host(span piece, span *name, int *port, const char **at)
{
    const char *end = piece.at + piece.len;
    const char *rest = NULL;
    const char *why;

    *port = 0;
    *at = piece.at;
    why = split_name(piece, name, &rest);
    if (why || rest == end)
        return why;
    *at = rest;
    if (*rest != ':')
        return "only a port may follow the bracket";
    *port = read_port(span_of(rest + 1, end));
    return *port ? NULL : "a port is a number from 1 to 65535";
}

static dibs_status check_hosts(const char *text, span hosts, dibs_error *err)
{
    span piece, name;
    size_t count = 0;
    int port;

    while (next_piece(&hosts, ',', &piece)) {
        const char *at;
        const char *why = split_host(piece, &name, &port, &at);

        if (why)
            return bad(text, at, why, err);
        if (++count > DIBSX_URL_HOSTS)
            return bad(text, piece.at, "there are more than 16 hosts", err);
    }
    return DIBS_OK;
}
_Static_assert(DIBSX_URL_HOSTS == 16, "the message says so");

static span param_key(span piece)
{
    const char *equals = find_char(piece, '=');

    return equals ? span_of(piece.at, equals) : piece;
}

static dibs_status check_query(const char *text, span query, dibs_error *err)
{
    size_t count = 0;
    span piece;

    while (next_piece(&query, '&', &piece)) {
        if (piece.len == 0)
            continue;
        if (param_key(piece).len == 0)
            return bad(text, piece.at, "a parameter has no name", err);
        if (++count > DIBSX_URL_PARAMS)
            return bad(text, piece.at, "there are more than 32 parameters",
                       err);
    }
    return DIBS_OK;
}
_Static_assert(DIBSX_URL_PARAMS == 32, "the message says so");

/* "user:password@h1:1,h2", any of it left out. The last "@" counts, so that a
 * password may hold one. */
static dibs_status
split_authority(const char *text, span whole, parts *p, dibs_error *err)
{
    const char *end = whole.at + whole.len;
    const char *at = whole.len ? memrchr(whole.at, '@', whole.len) : NULL;
    const char *colon;

    p->hosts = given(at ? at + 1 : whole.at, end);
    if (at) {
        colon = find_char(span_of(whole.at, at), ':');
        p->user = given(whole.at, colon ? colon : at);
        if (colon)
            p->password = given(colon + 1, at);
    }
    return check_hosts(text, p->hosts, err);
}

/* With hosts before it, an "@" in what follows is most likely the end of a
 * password that holds a "/" or "?": it would be sent to the wrong host. */
static dibs_status
check_tail(const char *text, const char *tail, dibs_error *err)
{
    const char *at = strchr(tail, '@');

    if (!at)
        return DIBS_OK;
    return bad(text, at,
               "\"@\" after the hosts is written %40; in a password \"/\" is "
               "written %2F and \"?\" %3F",
               err);
}

static dibs_status split(const char *text, parts *p, dibs_error *err)
{
    const char *rest, *query;
    dibs_status rc;
    span whole;

    *p = (parts){0};
    if (strnlen(text, DIBSX_URL_MAX + 1) > DIBSX_URL_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "the store URL is longer than %d bytes",
                          DIBSX_URL_MAX);
    rc = check_bytes(text, err);
    if (rc != DIBS_OK)
        return rc;
    p->scheme = (span){.at = text, .len = scheme_len(text)};
    if (p->scheme.len == 0)
        return bad(text, text,
                   "it must begin with a scheme: redis://HOST for a server, "
                   "sqlite:PATH for a file, or be a path such as ./locks.db",
                   err);
    rest = text + p->scheme.len + 1;
    if (strncmp(rest, "//", 2) == 0) {
        whole = (span){.at = rest + 2, .len = strcspn(rest + 2, "/?")};
        rest = whole.at + whole.len;
        rc = whole.len ? check_tail(text, rest, err) : DIBS_OK;
        if (rc == DIBS_OK)
            rc = split_authority(text, whole, p, err);
        if (rc != DIBS_OK)
            return rc;
    }
    query = strchrnul(rest, '?');
    p->path = given(rest, query);
    if (*query)
        p->query = given(query + 1, query + strlen(query));
    return check_query(text, p->query, err);
}

/* Undoes the escapes, which were checked before. `out` has room for s.len + 1
 * bytes. */
static void decode(span s, char *out)
{
    const char *end = s.at + s.len;

    for (const char *c = s.at; c < end; c++) {
        if (*c == '%') {
            *out++ = (char)(dibsx_hex_value(c[1]) * 16 + dibsx_hex_value(c[2]));
            c += 2;
        } else {
            *out++ = *c;
        }
    }
    *out = '\0';
}

/* A decoded copy; NULL for a part that is not there. False when memory is
 * short. */
static bool copy(span s, char **out)
{
    *out = NULL;
    if (!s.at)
        return true;
    *out = dibsx_zalloc(s.len + 1);
    if (*out)
        decode(s, *out);
    return *out != NULL;
}

static void make_lower(char *text)
{
    for (; *text; text++) {
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
    }
}

static bool copy_hosts(span hosts, dibsx_url *url)
{
    span piece, name = {0};
    const char *at;

    while (next_piece(&hosts, ',', &piece)) {
        dibsx_url_host *host = &url->hosts[url->host_count++];

        (void)split_host(piece, &name, &host->port, &at);
        if (!copy(name, &host->name))
            return false;
    }
    return true;
}

static bool copy_params(span query, dibsx_url *url)
{
    span piece, key, value;

    while (next_piece(&query, '&', &piece)) {
        dibsx_url_param *param = &url->params[url->param_count];
        const char *end = piece.at + piece.len;

        if (piece.len == 0)
            continue;
        url->param_count++;
        key = param_key(piece);
        value = span_of(key.at + key.len, end);
        if (value.len)
            value = span_of(value.at + 1, end);
        if (!copy(key, &param->key) || !copy(value, &param->value))
            return false;
    }
    return true;
}

/* Which of two would count is anybody's guess. */
static dibs_status check_twice(const dibsx_url *url, dibs_error *err)
{
    for (size_t i = 0; i < url->param_count; i++) {
        if (dibsx_url_param_get(url, url->params[i].key) !=
            url->params[i].value)
            return dibsx_fail(err, DIBS_INVALID,
                              "parameter %zu of the store URL was given before",
                              i + 1);
    }
    return DIBS_OK;
}

dibs_status dibsx_url_parse(const char *text, dibsx_url *url, dibs_error *err)
{
    dibs_status rc;
    parts p;

    assert(text);
    *url = (dibsx_url){0};
    rc = split(text, &p, err);
    if (rc != DIBS_OK)
        return rc;
    if (!copy(p.scheme, &url->scheme) || !copy(p.user, &url->user) ||
        !copy(p.password, &url->password) || !copy_hosts(p.hosts, url) ||
        !copy(p.path, &url->path) || !copy_params(p.query, url)) {
        rc = dibsx_nomem(err, "the store URL");
        goto out;
    }
    make_lower(url->scheme);
    rc = check_twice(url, err);
out:
    if (rc != DIBS_OK)
        dibsx_url_fini(url);
    return rc;
}

/* Secrets may be in any part, so none is left behind in freed memory. */
static void wipe_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    dibsx_free(text);
}

void dibsx_url_fini(dibsx_url *url)
{
    wipe_free(url->scheme);
    wipe_free(url->user);
    wipe_free(url->password);
    for (size_t i = 0; i < url->host_count; i++)
        wipe_free(url->hosts[i].name);
    wipe_free(url->path);
    for (size_t i = 0; i < url->param_count; i++) {
        wipe_free(url->params[i].key);
        wipe_free(url->params[i].value);
    }
    *url = (dibsx_url){0};
}

const char *dibsx_url_param_get(const dibsx_url *url, const char *key)
{
    for (size_t i = 0; i < url->param_count; i++) {
        if (strcmp(url->params[i].key, key) == 0)
            return url->params[i].value;
    }
    return NULL;
}

/* Where redacted text goes: cut at the end, always closed. */
typedef struct sink {
    char *out;
    size_t left; /* with the NUL */
} sink;

static void put_bytes(sink *to, const char *at, size_t len)
{
    if (len >= to->left)
        len = to->left - 1;
    memcpy(to->out, at, len);
    to->out += len;
    to->left -= len;
    *to->out = '\0';
}

static void put_hidden(sink *to)
{
    put_bytes(to, "***", 3);
}

/* Names with "key" in them that are about something else: files, and settings of
 * TCP. */
static bool names_no_key(const char *name)
{
    static const char *const plain[] = {"key", "sslkey"};
    static const char keepalive[] = "keepalive";

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (strcmp(name, plain[i]) == 0)
            return true;
    }
    return strncmp(name, keepalive, sizeof(keepalive) - 1) == 0;
}

/* "password_file", "passfile": the value is the path of a file. Not so where the
 * name has a value in it, which may end like this. */
static bool names_file(const char *name)
{
    static const char ending[] = "file";
    size_t len = strlen(name), end = sizeof(ending) - 1;

    return len > end && strcmp(name + len - end, ending) == 0 &&
           !strpbrk(name, "=:,; ");
}

/* Whether a name in the span, with its escapes undone, sounds like a secret. */
static bool names_secret(span s)
{
    static const char *const words[] = {"pass", "pw",     "secret", "token",
                                        "auth", "cred",   "jwt",    "bearer",
                                        "sign", "private"};
    char name[DIBSX_URL_MAX + 1];
    bool found;

    decode(s, name);
    make_lower(name);
    found = strstr(name, "key") && !names_no_key(name);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        found |= strstr(name, words[i]) != NULL;
    found &= !names_file(name);
    explicit_bzero(name, s.len);
    return found;
}

/* A path may hold a secret when it is not a path at all: "user:pw@host" with
 * slashes forgotten, or a connection string of "name=value" pairs. */
static bool path_is_doubtful(span path)
{
    const char *at = path.len ? memrchr(path.at, '@', path.len) : NULL;
    const char *equals = path.len ? memrchr(path.at, '=', path.len) : NULL;

    if (at && (*path.at != '/' || find_char(span_of(path.at, at), ':')))
        return true;
    return equals && names_secret(span_of(path.at, equals));
}

static void put_path(sink *to, span path)
{
    if (path_is_doubtful(path)) {
        /* The slash shows where the hosts end. */
        put_bytes(to, path.at, *path.at == '/');
        put_hidden(to);
    } else {
        put_bytes(to, path.at, path.len);
    }
}

static void put_param(sink *to, span piece)
{
    const char *last = piece.len ? memrchr(piece.at, '=', piece.len) : NULL;
    span names = last ? span_of(piece.at, last) : piece;

    if (piece.len == 0)
        return;
    if (!names_secret(names)) {
        put_bytes(to, piece.at, piece.len);
        return;
    }
    if (last)
        put_bytes(to, piece.at, param_key(piece).len + 1);
    put_hidden(to);
}

static void put_query(sink *to, span query)
{
    const char *separator = "?";
    span piece;

    while (next_piece(&query, '&', &piece)) {
        put_bytes(to, separator, 1);
        put_param(to, piece);
        separator = "&";
    }
}

void dibsx_url_redact(const char *text, char *out, size_t size)
{
    sink to = {.out = out, .left = size};
    const char *from = text;
    parts p;

    if (size == 0)
        return;
    *out = '\0';
    if (split(text, &p, NULL) != DIBS_OK) {
        size_t len = scheme_len(text);

        put_bytes(&to, text, len ? len + 1 : 0);
        put_hidden(&to);
        return;
    }
    if (p.password.at) {
        put_bytes(&to, text, (size_t)(p.password.at - text));
        put_hidden(&to);
        from = p.password.at + p.password.len;
    }
    if (p.path.at) {
        put_bytes(&to, from, (size_t)(p.path.at - from));
        put_path(&to, p.path);
        from = p.path.at + p.path.len;
    }
    put_bytes(&to, from, strcspn(from, "?"));
    put_query(&to, p.query);
}
