/* fuzz_redis_conf.c - Redis URLs and connection strings: what is read is whole,
 * what is refused leaves nothing, and no message shows a password. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "fuzz.h"
#include "store/redis/wire/conf.h"

static void check_conf(const dibs__redis_conf *conf)
{
    /* One place, or sentinels that know it. */
    REQUIRE(!!conf->host + !!conf->path + !!conf->primary == 1);
    REQUIRE(!conf->primary || (*conf->primary && conf->seed_count > 0));
    REQUIRE(conf->port >= 1 && conf->port <= 65535);
    REQUIRE(conf->db >= 0);
    REQUIRE(conf->client_name && *conf->client_name);
    REQUIRE(conf->connect_timeout_ms >= 0);
    REQUIRE(conf->tls || (!conf->ca && !conf->cert && !conf->insecure));
    REQUIRE(!conf->tls || !conf->path);
    REQUIRE(!conf->sentinel_user || conf->sentinel_password);
    REQUIRE(!conf->key || conf->cert);
    REQUIRE(conf->seed_count <= DIBSX_URL_HOSTS);
    REQUIRE(conf->seed_count == 0 || conf->primary ||
            (conf->db == 0 && conf->unbatched));
    for (size_t i = 0; i < conf->seed_count; i++)
        REQUIRE(conf->seeds[i].name && conf->seeds[i].port >= 1);
}

static void check_empty(const dibs__redis_conf *conf)
{
    REQUIRE(!conf->host && !conf->path && !conf->user && !conf->password);
    REQUIRE(!conf->client_name && !conf->ca && !conf->cert && !conf->key);
    REQUIRE(!conf->primary && !conf->sentinel_user && !conf->sentinel_password);
}

/* Passwords of letters that the messages themselves never use would show. */
static void check_message(const dibs_error *err)
{
    REQUIRE(*err->message && strlen(err->message) < sizeof(err->message));
    REQUIRE(strchr(err->message, '\n') == NULL);
}

static void read_url(const char *text)
{
    dibs_error err = {0};
    dibs__redis_conf conf;
    dibsx_url url;

    if (dibsx_url_parse(text, &url, &err) != DIBS_OK)
        return;
    /* No file of this machine is read. */
    if (!dibsx_url_param_get(&url, "password_file") &&
        !dibsx_url_param_get(&url, "sentinel_password_file")) {
        if (dibs__redis_conf_read(&url, &conf, &err) == DIBS_OK) {
            check_conf(&conf);
        } else {
            check_empty(&conf);
            check_message(&err);
            if (url.password && strlen(url.password) > 4 &&
                strpbrk(url.password, "#$^&*{}|~<>!`"))
                REQUIRE(strstr(err.message, url.password) == NULL);
        }
        dibs__redis_conf_fini(&conf);
        check_empty(&conf);
    }
    dibsx_url_fini(&url);
}

/* A translation is a URL, unless a host in it is none. */
static void read_exchange(const char *text)
{
    dibs_error err = {0};
    char *url = NULL;

    if (dibs__redis_stackexchange_url(text, &url, &err) == DIBS_OK) {
        REQUIRE(url && strncmp(url, "redis", 5) == 0);
        REQUIRE(!dibs__redis_is_stackexchange(url));
        read_url(url);
        dibsx_free(url);
    } else {
        REQUIRE(!url);
        check_message(&err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const variables[] = {"REDIS_URL", "REDIS_HOST",
                                            "REDIS_PORT", "REDISCLI_AUTH",
                                            "DIBS_REDIS_PASSWORD"};
    char *text = fuzz_text(data, size);

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        (void)unsetenv(variables[i]);
    if (dibs__redis_is_stackexchange(text))
        REQUIRE(strchr(text, '/') == NULL || strchr(text, ','));
    read_exchange(text);
    read_url(text);
    free(text);
    return 0;
}
