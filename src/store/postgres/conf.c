/* conf.c - reads a postgres:// URL. Pure.
 *
 * Our own parameters are taken out; all others go to libpq as they are, which
 * refuses what it does not know. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/conf.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_DEFAULT = 8, POOL_MAX = 64, SQL_MAX = 256 << 10 };

#define MARK "@schema@"

/* So that a partitioned client, or a server that vanished, is noticed. */
static const char *const defaults[][2] = {{"application_name", "dibs"},
                                          {"keepalives_idle", "10"},
                                          {"keepalives_interval", "5"},
                                          {"keepalives_count", "3"},
                                          {"tcp_user_timeout", "10000"}};

static const char *const own[] = {"schema",   "strict",      "pool",
                                  "pooler",   "listen_host", "listen_port",
                                  "advisory", "cleartext",   "lazy"};

static dibs_status fail_nomem(dibs_error *err)
{
    return dibsx_nomem(err, "the store URL");
}

/* A secret may be among them, so that none is left behind in freed memory. */
static void wipe_text(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    dibsx_free(text);
}

/* False when memory is short. Replaces an earlier value. */
static bool set_word(dibs__pg_words *words, const char *name, const char *value)
{
    char *copy = dibsx_strdup(value);
    size_t i = 0;

    if (!copy)
        return false;
    while (i < words->count && strcmp(words->names[i], name) != 0)
        i++;
    if (i == words->count) {
        words->names[i] = i < DIBS__PG_WORDS ? dibsx_strdup(name) : NULL;
        if (!words->names[i]) {
            dibsx_free(copy);
            return false;
        }
        words->count++;
    }
    wipe_text(words->values[i]);
    words->values[i] = copy;
    return true;
}

/* The hosts, or with `ports` their ports, as the list that libpq takes. */
static bool set_hosts(dibs__pg_words *words, const dibsx_url *url, bool ports)
{
    bool any = false;
    dibsx_buf buf;
    bool ok = true;

    dibsx_buf_init(&buf, DIBSX_URL_MAX);
    for (size_t i = 0; i < url->host_count; i++) {
        const dibsx_url_host *host = &url->hosts[i];

        if (i > 0)
            dibsx_buf_putc(&buf, ',');
        if (!ports)
            dibsx_buf_puts(&buf, host->name);
        else if (host->port)
            dibsx_buf_printf(&buf, "%d", host->port);
        any = any || !ports || host->port;
    }
    if (any)
        ok = dibsx_buf_ok(&buf) &&
             set_word(words, ports ? "port" : "host", dibsx_buf_text(&buf));
    dibsx_buf_fini(&buf);
    return ok;
}

static bool is_own(const char *key)
{
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (strcmp(own[i], key) == 0)
            return true;
    return false;
}

static bool set_param(dibs__pg_words *words, const dibsx_url_param *param)
{
    if (is_own(param->key))
        return true;
    if (strcmp(param->key, "ssl") == 0 && strcmp(param->value, "true") == 0)
        return set_word(words, "sslmode", "require");
    return set_word(words, param->key, param->value);
}

/* The value that libpq will use: what is not said it takes from the variable. */
static const char *
find_word(const dibs__pg_words *words, const char *name, const char *variable)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->names[i], name) == 0)
            return words->values[i];
    return variable ? getenv(variable) : NULL;
}

/* If there are several hosts, libpq looks for the one that can be written to. Users may
 * choose otherwise in the URL. */
static bool choose_writable(dibs__pg_words *words)
{
    const char *hosts = find_word(words, "host", "PGHOST");
    const char *addresses = find_word(words, "hostaddr", "PGHOSTADDR");
    bool several =
        (hosts && strchr(hosts, ',')) || (addresses && strchr(addresses, ','));

    if (!several || find_word(words, "target_session_attrs", NULL))
        return true;
    return set_word(words, "target_session_attrs", "read-write");
}

static bool set_words(dibs__pg_words *words, const dibsx_url *url)
{
    const char *path = url->path ? url->path : "";
    bool ok = true;

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        ok = ok && set_word(words, defaults[i][0], defaults[i][1]);
    /* To look for a ticket takes longer than all the rest; users ask for it. */
    if (!getenv("PGGSSENCMODE"))
        ok = ok && set_word(words, "gssencmode", "disable");
    path += *path == '/';
    ok = ok && set_hosts(words, url, false) && set_hosts(words, url, true);
    if (url->user)
        ok = ok && set_word(words, "user", url->user);
    if (url->password)
        ok = ok && set_word(words, "password", url->password);
    if (*path)
        ok = ok && set_word(words, "dbname", path);
    for (size_t i = 0; i < url->param_count; i++)
        ok = ok && set_param(words, &url->params[i]);
    return ok && choose_writable(words) &&
           set_word(words, "client_encoding", "UTF8");
}

/* A name in double quotes, as SQL has it. */
static dibs_status quote_schema(const char *name, char **out, dibs_error *err)
{
    dibsx_buf buf;

    if (!*name || strlen(name) > DIBS__PG_SCHEMA_MAX || strpbrk(name, "'\\@"))
        return dibsx_fail(err, DIBS_INVALID,
                          "schema= takes a name of 1 to %d bytes, without "
                          "quotes, \"\\\" and \"@\"",
                          DIBS__PG_SCHEMA_MAX);
    dibsx_buf_init(&buf, 2 * DIBS__PG_SCHEMA_MAX + 2);
    dibsx_buf_putc(&buf, '"');
    for (; *name; name++) {
        if (*name == '"')
            dibsx_buf_putc(&buf, '"');
        dibsx_buf_putc(&buf, *name);
    }
    dibsx_buf_putc(&buf, '"');
    *out = dibsx_buf_take(&buf);
    dibsx_buf_fini(&buf);
    return *out ? DIBS_OK : fail_nomem(err);
}

static dibs_status
read_pooler(const dibsx_url *url, dibs__pg_conf *conf, dibs_error *err)
{
    static const char *const words[] = {[DIBS__PG_POOLER_AUTO] = "auto",
                                        [DIBS__PG_POOLER_NONE] = "none",
                                        [DIBS__PG_POOLER_TRANSACTION] =
                                            "transaction"};
    const char *text = dibsx_url_param_get(url, "pooler");

    if (!text)
        return DIBS_OK;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], text) == 0) {
            conf->pooler = (dibs__pg_pooler)i;
            return DIBS_OK;
        }
    return dibsx_fail(err, DIBS_INVALID,
                      "pooler= takes auto, none or transaction");
}

static dibs_status
read_flag(const dibsx_url *url, const char *key, bool *out, dibs_error *err)
{
    const char *text = dibsx_url_param_get(url, key);

    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return dibsx_fail(err, DIBS_INVALID, "%s= takes 0 or 1", key);
    *out = text && *text == '1';
    return DIBS_OK;
}

static dibs_status
read_own(const dibsx_url *url, dibs__pg_conf *conf, dibs_error *err)
{
    const char *schema = dibsx_url_param_get(url, "schema");
    const char *pool = dibsx_url_param_get(url, "pool");
    dibs_status rc;
    char *end;

    rc = read_flag(url, "strict", &conf->strict, err);
    if (rc == DIBS_OK)
        rc = read_flag(url, "advisory", &conf->advisory, err);
    if (rc == DIBS_OK)
        rc = read_flag(url, "cleartext", &conf->cleartext, err);
    if (rc == DIBS_OK)
        rc = read_flag(url, "lazy", &conf->lazy, err);
    if (rc != DIBS_OK)
        return rc;
    conf->pool = POOL_DEFAULT;
    if (pool) {
        long count = strtol(pool, &end, 10);

        if (*end || count < 1 || count > POOL_MAX)
            return dibsx_fail(err, DIBS_INVALID,
                              "pool= takes a number from 1 to %d", POOL_MAX);
        conf->pool = (int)count;
    }
    rc = read_pooler(url, conf, err);
    if (rc != DIBS_OK)
        return rc;
    return quote_schema(schema ? schema : "dibs", &conf->schema, err);
}

dibs_status
dibs__pg_conf_read(const dibsx_url *url, dibs__pg_conf *conf, dibs_error *err)
{
    const char *host = dibsx_url_param_get(url, "listen_host");
    const char *port = dibsx_url_param_get(url, "listen_port");
    dibs_status rc;

    memset(conf, 0, sizeof(*conf));
    rc = read_own(url, conf, err);
    if (rc != DIBS_OK)
        return rc;
    conf->listens_apart = host || port;
    if (!set_words(&conf->steps, url) || !set_words(&conf->listen, url))
        return fail_nomem(err);
    if ((host && !set_word(&conf->listen, "host", host)) ||
        (port && !set_word(&conf->listen, "port", port)) ||
        !choose_writable(&conf->listen))
        return fail_nomem(err);
    return DIBS_OK;
}

static void words_fini(dibs__pg_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        wipe_text(words->values[i]);
        dibsx_free(words->names[i]);
    }
    memset(words, 0, sizeof(*words));
}

void dibs__pg_conf_fini(dibs__pg_conf *conf)
{
    words_fini(&conf->steps);
    words_fini(&conf->listen);
    dibsx_free(conf->schema);
    conf->schema = NULL;
}

char *dibs__pg_with_schema(const dibs__pg_conf *conf, const char *sql)
{
    dibsx_buf buf;
    const char *mark;
    char *text;

    dibsx_buf_init(&buf, SQL_MAX);
    for (; (mark = strstr(sql, MARK)) != NULL; sql = mark + strlen(MARK)) {
        dibsx_buf_add(&buf, sql, (size_t)(mark - sql));
        dibsx_buf_puts(&buf, conf->schema);
    }
    dibsx_buf_puts(&buf, sql);
    text = dibsx_buf_take(&buf);
    dibsx_buf_fini(&buf);
    return text;
}
