/* conf.c - the configuration of a Redis server, from its URL.
 *
 * Owns the strings of a configuration. All are wiped like secrets: some of them
 * are, and a new field needs no further thought. Any thread. Applies the
 * environment first, where it may, then the URL, then the defaults. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/conf.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "store/redis/wire/conf_values.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_PORT = 6379,
    CLUSTER_CONNECT_MS = 1000, /* another server soon replaces a lost one */
    SENTINEL_PORT = 26379,
    CLIENT_NAME_MAX = 64
};

typedef enum kind { TEXT, FLAG, DURATION, DATABASE, SECRET_FILE } kind;

/* No connection is worth more time than this. */
enum { DURATION_MAX_MS = 5 * 60 * 1000 };

static const struct param {
    const char *name;
    kind kind;
    size_t offset; /* in a dibs__redis_conf */
} params[] = {
    {"ca", TEXT, offsetof(dibs__redis_conf, ca)},
    {"cert", TEXT, offsetof(dibs__redis_conf, cert)},
    {"client_name", TEXT, offsetof(dibs__redis_conf, client_name)},
    {"connect_timeout", DURATION,
     offsetof(dibs__redis_conf, connect_timeout_ms)},
    {"db", DATABASE, offsetof(dibs__redis_conf, db)},
    {"insecure", FLAG, offsetof(dibs__redis_conf, insecure)},
    {"key", TEXT, offsetof(dibs__redis_conf, key)},
    {"lazy", FLAG, offsetof(dibs__redis_conf, lazy)},
    {"password_file", SECRET_FILE, offsetof(dibs__redis_conf, password)},
    {"sentinel_password", TEXT, offsetof(dibs__redis_conf, sentinel_password)},
    {"sentinel_password_file", SECRET_FILE,
     offsetof(dibs__redis_conf, sentinel_password)},
    {"sentinel_tls", FLAG, offsetof(dibs__redis_conf, sentinel_tls)},
    {"sentinel_user", TEXT, offsetof(dibs__redis_conf, sentinel_user)},
    {"sni", TEXT, offsetof(dibs__redis_conf, sni)},
    {"strict", FLAG, offsetof(dibs__redis_conf, strict)},
    {"tls", FLAG, offsetof(dibs__redis_conf, tls)},
    {"user", TEXT, offsetof(dibs__redis_conf, user)},
};

void dibs__redis_conf_fini(dibs__redis_conf *conf)
{
    for (size_t i = 0; i < conf->seed_count; i++)
        dibs__conf_wipe(&conf->seeds[i].name);
    dibs__conf_wipe(&conf->host);
    dibs__conf_wipe(&conf->path);
    dibs__conf_wipe(&conf->user);
    dibs__conf_wipe(&conf->password);
    dibs__conf_wipe(&conf->client_name);
    dibs__conf_wipe(&conf->ca);
    dibs__conf_wipe(&conf->cert);
    dibs__conf_wipe(&conf->key);
    dibs__conf_wipe(&conf->sni);
    dibs__conf_wipe(&conf->primary);
    dibs__conf_wipe(&conf->sentinel_user);
    dibs__conf_wipe(&conf->sentinel_password);
    *conf = (dibs__redis_conf){0};
}

/* A bare number is seconds, and easily meant as milliseconds. */
static dibs_status
read_duration(const char *name, const char *text, int64_t *out, dibs_error *err)
{
    char shown[32], most[32];

    if (!dibsx_duration_parse(text, out))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s is a duration, such as 500ms or 5s", name);
    if (*out <= DURATION_MAX_MS)
        return DIBS_OK;
    dibsx_duration_text(*out, shown, sizeof(shown));
    dibsx_duration_text(DURATION_MAX_MS, most, sizeof(most));
    return dibsx_fail(err, DIBS_INVALID,
                      "%s is %s, more than %s; a number without a unit is "
                      "seconds, for milliseconds write such as 500ms",
                      name, shown, most);
}

static dibs_status
apply_param(const dibsx_url_param *given, dibs__redis_conf *conf,
            const struct param *param, dibs_error *err)
{
    char *field = (char *)conf + param->offset;

    switch (param->kind) {
    case FLAG:
        return dibs__conf_read_flag(param->name, given->value,
                                    (bool *)(void *)field, err);
    case DATABASE:
        return dibs__conf_read_db(given->value, (int *)(void *)field, err);
    case SECRET_FILE:
        return dibs__conf_read_secret(param->name, given->value,
                                      (char **)(void *)field, err);
    case DURATION:
        return read_duration(param->name, given->value,
                             (int64_t *)(void *)field, err);
    case TEXT:
        break;
    }
    if (!*given->value)
        return dibsx_fail(err, DIBS_INVALID, "%s is empty", param->name);
    return dibs__conf_set_text((char **)(void *)field, given->value, err);
}

static bool is_sentinel(const dibsx_url *url)
{
    return strcmp(url->scheme, "redis-sentinel") == 0 ||
           strcmp(url->scheme, "rediss-sentinel") == 0;
}

/* Parameters that only one kind of URL has. */
static bool is_known(const dibsx_url *url, const char *param)
{
    bool about = strncmp(param, "sentinel_", 9) == 0 || !strcmp(param, "tls");

    return !about || is_sentinel(url);
}

static dibs_status
apply_params(const dibsx_url *url, dibs__redis_conf *conf, dibs_error *err)
{
    const size_t count = sizeof(params) / sizeof(params[0]);
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < url->param_count && rc == DIBS_OK; i++) {
        size_t at = 0;

        while (at < count && strcmp(params[at].name, url->params[i].key) != 0)
            at++;
        if (at == count || !is_known(url, params[at].name))
            return dibsx_fail(err, DIBS_INVALID,
                              "a %s URL has no parameter \"%.40s\"",
                              url->scheme, url->params[i].key);
        rc = apply_param(&url->params[i], conf, &params[at], err);
    }
    return rc;
}

static bool is_unix(const dibsx_url *url)
{
    return strcmp(url->scheme, "redis+unix") == 0;
}

static bool is_cluster(const dibsx_url *url)
{
    return strcmp(url->scheme, "redis-cluster") == 0 ||
           strcmp(url->scheme, "rediss-cluster") == 0;
}

/* Adds an endpoint to ask for the map of a cluster, or for the primary. */
static dibs_status
add_seed(dibs__redis_conf *conf, const char *host, int port, dibs_error *err)
{
    dibsx_url_host *seed = &conf->seeds[conf->seed_count];
    dibs_status rc = dibs__conf_set_text(&seed->name, host, err);

    seed->port = port;
    if (rc == DIBS_OK)
        conf->seed_count++;
    return rc;
}

/* "/name" or "/name/db". */
static dibs_status
apply_primary(const char *path, dibs__redis_conf *conf, dibs_error *err)
{
    const char *name = *path == '/' ? path + 1 : "";
    size_t len = strcspn(name, "/");
    dibs_status rc = DIBS_OK;

    if (len == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "write redis-sentinel://host1,host2,host3/NAME: the "
                          "name that the sentinels have for the servers");
    if (name[len] && name[len + 1])
        rc = dibs__conf_read_db(name + len + 1, &conf->db, err);
    if (rc == DIBS_OK)
        rc = dibs__conf_set_text(&conf->primary, name, err);
    if (rc == DIBS_OK)
        conf->primary[len] = '\0';
    return rc;
}

static dibs_status
apply_sentinels(const dibsx_url *url, dibs__redis_conf *conf, dibs_error *err)
{
    dibs_status rc = apply_primary(url->path ? url->path : "", conf, err);

    if (rc == DIBS_OK && url->host_count == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a redis-sentinel URL names the sentinels: "
                          "redis-sentinel://host1,host2,host3/%.60s",
                          conf->primary);
    conf->sentinel_tls = true;
    for (size_t i = 0; i < url->host_count && rc == DIBS_OK; i++) {
        int port = url->hosts[i].port;

        rc = add_seed(conf, url->hosts[i].name, port ? port : SENTINEL_PORT,
                      err);
    }
    return rc;
}

static dibs_status
apply_endpoint(const dibsx_url *url, dibs__redis_conf *conf, dibs_error *err)
{
    const char *path = url->path ? url->path : "";
    dibs_status rc = DIBS_OK;

    if (url->host_count > 1 && !is_cluster(url))
        return dibsx_fail(err, DIBS_INVALID,
                          "a %s URL has one host; this one has %zu (that of a "
                          "cluster begins with redis-cluster:)",
                          url->scheme, url->host_count);
    if (is_unix(url)) {
        if (url->host_count > 0 || *path != '/' || !path[1])
            return dibsx_fail(err, DIBS_INVALID,
                              "write redis+unix:///path/to/socket");
        return dibs__conf_set_text(&conf->path, path, err);
    }
    if (url->host_count > 0) {
        rc = dibs__conf_set_text(&conf->host, url->hosts[0].name, err);
        conf->port = url->hosts[0].port;
    }
    for (size_t i = 0; i < url->host_count && rc == DIBS_OK && is_cluster(url);
         i++)
        rc = add_seed(conf, url->hosts[i].name,
                      url->hosts[i].port ? url->hosts[i].port : DEFAULT_PORT,
                      err);
    if (rc == DIBS_OK && *path && *path != '/')
        return dibsx_fail(err, DIBS_INVALID, "write %s://host:port/db",
                          url->scheme);
    if (rc == DIBS_OK && *path && path[1])
        rc = dibs__conf_read_db(path + 1, &conf->db, err);
    return rc;
}

/* Whether the path gives a database. */
static bool has_db(const dibsx_url *url, const char *path)
{
    if (is_sentinel(url) && *path)
        path = strchr(path + 1, '/');
    return path && *path && path[1];
}

/* The part that both the URL proper and a parameter give; NULL: none. */
static const char *said_twice(const dibsx_url *url)
{
    const char *path = url->path ? url->path : "";

    if (url->user && dibsx_url_param_get(url, "user"))
        return "user";
    if (url->password && dibsx_url_param_get(url, "password_file"))
        return "password";
    if (dibsx_url_param_get(url, "sentinel_password") &&
        dibsx_url_param_get(url, "sentinel_password_file"))
        return "password of the sentinels";
    if (!is_unix(url) && has_db(url, path) && dibsx_url_param_get(url, "db"))
        return "database";
    return NULL;
}

/* Applies a URL, over what is set already. */
static dibs_status
apply_url(const dibsx_url *url, dibs__redis_conf *conf, dibs_error *err)
{
    dibs_status rc;

    if (strcmp(url->scheme, "redis") != 0 &&
        strcmp(url->scheme, "rediss") != 0 && !is_unix(url) &&
        !is_sentinel(url) && !is_cluster(url))
        return dibsx_fail(
            err, DIBS_INVALID,
            "a URL of a Redis server begins with redis:, rediss:, redis+unix:, "
            "redis-sentinel: or redis-cluster: (over TLS rediss-...)");
    if (said_twice(url))
        return dibsx_fail(err, DIBS_INVALID, "the URL gives the %s twice",
                          said_twice(url));
    if (strncmp(url->scheme, "rediss", 6) == 0)
        conf->tls = true;
    rc = is_sentinel(url) ? apply_sentinels(url, conf, err)
                          : apply_endpoint(url, conf, err);
    if (rc == DIBS_OK && url->user)
        rc = dibs__conf_set_text(&conf->user, url->user, err);
    if (rc == DIBS_OK && url->password)
        rc = dibs__conf_set_text(&conf->password, url->password, err);
    if (rc == DIBS_OK)
        rc = apply_params(url, conf, err);
    return rc;
}

/* An empty variable counts as unset. */
static const char *read_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

static dibs_status
apply_redis_url(const char *text, dibs__redis_conf *conf, dibs_error *err)
{
    dibs_error why = {0};
    char *translated = NULL;
    dibsx_url url = {0};
    dibs_status rc = DIBS_OK;

    if (dibs__redis_is_stackexchange(text))
        rc = dibs__redis_stackexchange_url(text, &translated, &why);
    if (rc == DIBS_OK)
        rc = dibsx_url_parse(translated ? translated : text, &url, &why);
    if (rc == DIBS_OK)
        rc = apply_url(&url, conf, &why);
    dibsx_url_fini(&url);
    if (translated)
        explicit_bzero(translated, strlen(translated));
    dibsx_free(translated);
    if (rc != DIBS_OK)
        return dibsx_fail_at(err, rc, why.origin,
                             "REDIS_URL cannot be used: %.190s", why.message);
    return rc;
}

/* Some tools that link containers set the port to "tcp://10.0.0.1:6379". */
static dibs_status
apply_redis_port(const char *text, dibs__redis_conf *conf, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    dibsx_url url = {0};
    int port = dibs__conf_read_number(text, 5);

    if (port < 0 && dibsx_url_parse(text, &url, NULL) == DIBS_OK &&
        strcmp(url.scheme, "tcp") == 0 && url.host_count == 1) {
        port = url.hosts[0].port;
        if (!conf->host)
            rc = dibs__conf_set_text(&conf->host, url.hosts[0].name, err);
    }
    dibsx_url_fini(&url);
    if (port < 1 || port > 65535)
        return dibsx_fail(err, DIBS_INVALID,
                          "REDIS_PORT is a number from 1 to 65535");
    conf->port = port;
    return rc;
}

static dibs_status apply_environment(dibs__redis_conf *conf, dibs_error *err)
{
    const char *url = read_variable("REDIS_URL");
    const char *host = read_variable("REDIS_HOST");
    const char *port = read_variable("REDIS_PORT");
    dibs_status rc = DIBS_OK;

    if (url)
        return apply_redis_url(url, conf, err);
    if (host)
        rc = dibs__conf_set_text(&conf->host, host, err);
    if (rc == DIBS_OK && port)
        rc = apply_redis_port(port, conf, err);
    return rc;
}

static dibs_status apply_defaults(dibs__redis_conf *conf, dibs_error *err)
{
    const char *secret = read_variable("DIBS_REDIS_PASSWORD");
    const char *other = read_variable("DIBS_REDIS_SENTINEL_PASSWORD");
    dibs_status rc = DIBS_OK;

    if (!secret)
        secret = read_variable("REDISCLI_AUTH");
    if (!conf->password && secret)
        rc = dibs__conf_set_text(&conf->password, secret, err);
    if (rc == DIBS_OK && conf->primary && !conf->sentinel_password && other)
        rc = dibs__conf_set_text(&conf->sentinel_password, other, err);
    if (rc == DIBS_OK && !conf->path && !conf->host && !conf->primary)
        rc = dibs__conf_set_text(&conf->host, "localhost", err);
    if (rc == DIBS_OK && !conf->client_name)
        rc = dibs__conf_set_text(&conf->client_name, "dibs", err);
    if (conf->port == 0)
        conf->port = DEFAULT_PORT;
    return rc;
}

/* Whether the server accepts the name. */
static bool is_client_name(const char *text)
{
    if (strlen(text) > CLIENT_NAME_MAX)
        return false;
    for (; *text; text++)
        if (*text < '!' || *text > '~')
            return false;
    return true;
}

/* A cluster has one database, and keys of different slots cannot share a
 * batch. */
static dibs_status
settle_cluster(const dibsx_url *url, dibs__redis_conf *conf, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (is_cluster(url) && conf->seed_count == 0)
        rc = add_seed(conf, conf->host, conf->port, err);
    if (rc != DIBS_OK || conf->seed_count == 0 || conf->primary)
        return rc;
    if (conf->db != 0)
        return dibsx_fail(err, DIBS_INVALID, "a cluster has no database but 0");
    conf->unbatched = true;
    if (conf->connect_timeout_ms == 0)
        conf->connect_timeout_ms = CLUSTER_CONNECT_MS;
    return rc;
}

static dibs_status check_conf(const dibs__redis_conf *conf, dibs_error *err)
{
    if (!conf->tls &&
        (conf->ca || conf->cert || conf->key || conf->sni || conf->insecure))
        return dibsx_fail(err, DIBS_INVALID,
                          "ca, cert, key, sni and insecure are for TLS: write "
                          "%s",
                          conf->primary ? "tls=1 as well"
                                        : "rediss: instead of redis:");
    if (conf->sentinel_user && !conf->sentinel_password)
        return dibsx_fail(err, DIBS_INVALID,
                          "sentinel_user is given without a password");
    if (conf->tls && conf->path)
        return dibsx_fail(err, DIBS_INVALID,
                          "there is no TLS over a unix socket");
    if (conf->key && !conf->cert)
        return dibsx_fail(err, DIBS_INVALID, "key is given without cert");
    if (!is_client_name(conf->client_name))
        return dibsx_fail(err, DIBS_INVALID,
                          "client_name has up to %d printable characters and "
                          "no spaces",
                          CLIENT_NAME_MAX);
    return DIBS_OK;
}

dibs_status dibs__redis_conf_read(const dibsx_url *url, dibs__redis_conf *conf,
                                  dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    *conf = (dibs__redis_conf){0};
    if (url->host_count == 0 && !is_unix(url) && !is_sentinel(url))
        rc = apply_environment(conf, err);
    if (rc == DIBS_OK)
        rc = apply_url(url, conf, err);
    if (rc == DIBS_OK)
        rc = apply_defaults(conf, err);
    if (rc == DIBS_OK)
        rc = settle_cluster(url, conf, err);
    if (rc == DIBS_OK)
        rc = check_conf(conf, err);
    if (rc != DIBS_OK)
        dibs__redis_conf_fini(conf);
    return rc;
}
