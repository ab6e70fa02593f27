/* fuzz_url.c - store URLs: bounds, nothing left behind, secrets hidden. */
/* SPDX-License-Identifier: MIT */
#include "base/url.h"
#include "fuzz.h"

/* How often `part` occurs. */
static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part))) {
        count++;
        text++;
    }
    return count;
}

static void check_parsed(const dibsx_url *url)
{
    REQUIRE(url->scheme && *url->scheme);
    for (const char *c = url->scheme; *c; c++)
        REQUIRE(*c < 'A' || *c > 'Z');
    REQUIRE(url->host_count <= DIBSX_URL_HOSTS);
    for (size_t i = 0; i < url->host_count; i++) {
        REQUIRE(url->hosts[i].name && *url->hosts[i].name);
        REQUIRE(url->hosts[i].port >= 0 && url->hosts[i].port <= 65535);
    }
    REQUIRE(url->param_count <= DIBSX_URL_PARAMS);
    for (size_t i = 0; i < url->param_count; i++) {
        const dibsx_url_param *param = &url->params[i];

        REQUIRE(*param->key);
        REQUIRE(dibsx_url_param_get(url, param->key) == param->value);
    }
}

static void check_empty(const dibsx_url *url)
{
    REQUIRE(!url->scheme && !url->user && !url->password && !url->path);
    REQUIRE(url->host_count == 0 && url->param_count == 0);
}

/* A message is one line and says nothing that was in the text: letters that the
 * messages themselves never use would show. */
static void check_message(const dibs_error *err)
{
    REQUIRE(err->status == DIBS_INVALID);
    REQUIRE(*err->message && strlen(err->message) < sizeof(err->message));
    REQUIRE(strpbrk(err->message, "\n#$^&*_{}|~<>!`+") == NULL);
}

static int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int same_or_hidden(const char *hidden, const char *plain)
{
    return same(hidden, plain) || same(hidden, "***") || same(hidden, "/***");
}

/* The value of "passwordfile" is a path, which may be shown. */
static int names_path(const char *key)
{
    size_t len = strlen(key);

    return len > 4 && strcasecmp(key + len - 4, "file") == 0 &&
           !strpbrk(key, "=:,; ");
}

static int is_secret(const char *key)
{
    return !names_path(key) &&
           (strcasestr(key, "password") || strcasestr(key, "secret") ||
            strcasestr(key, "token"));
}

/* The redacted text reads as the same URL but for what was hidden. */
static void check_still_same(const char *shown, const dibsx_url *url)
{
    dibsx_url again;

    if (dibsx_url_parse(shown, &again, NULL) != DIBS_OK) {
        /* Names that were hidden may have become equal. */
        REQUIRE(strstr(shown, "?***") || strstr(shown, "&***"));
        return;
    }
    REQUIRE(same(again.scheme, url->scheme) && same(again.user, url->user));
    REQUIRE(same(again.password, url->password ? "***" : NULL));
    REQUIRE(again.host_count == url->host_count);
    for (size_t i = 0; i < url->host_count; i++) {
        REQUIRE(same(again.hosts[i].name, url->hosts[i].name));
        REQUIRE(again.hosts[i].port == url->hosts[i].port);
    }
    REQUIRE(same_or_hidden(again.path, url->path));
    REQUIRE(again.param_count == url->param_count);
    for (size_t i = 0; i < url->param_count; i++) {
        REQUIRE(same_or_hidden(again.params[i].key, url->params[i].key));
        REQUIRE(same_or_hidden(again.params[i].value, url->params[i].value));
        if (*url->params[i].value && is_secret(url->params[i].key))
            REQUIRE(same(again.params[i].value, "***"));
    }
    dibsx_url_fini(&again);
}

/* Hiding cannot bring a secret in; and where the secret stands in the text as
 * it is, one of its places must be gone. */
static void
check_hidden(const char *text, const char *shown, const char *secret)
{
    size_t before;

    if (!*secret || strchr(secret, '*'))
        return;
    before = count_of(text, secret);
    REQUIRE(count_of(shown, secret) <= before);
    if (before && !strchr(text, '%'))
        REQUIRE(count_of(shown, secret) < before);
}

static void check_redacted(const char *text, const dibsx_url *url)
{
    size_t room = 2 * strlen(text) + 16;
    char *shown = malloc(room);
    char *again = malloc(room);

    REQUIRE(shown && again);
    dibsx_url_redact(text, shown, room);
    REQUIRE(strlen(shown) + 1 < room);
    if (strlen(shown) <= DIBSX_URL_MAX) {
        dibsx_url_redact(shown, again, room);
        REQUIRE(strcmp(shown, again) == 0);
        if (url->scheme)
            check_still_same(shown, url);
    }
    if (url->password)
        check_hidden(text, shown, url->password);
    for (size_t i = 0; i < url->param_count; i++) {
        if (is_secret(url->params[i].key))
            check_hidden(text, shown, url->params[i].value);
    }
    dibsx_url_redact(text, again, strlen(text) / 2 + 1);
    REQUIRE(strncmp(shown, again, strlen(again)) == 0);
    free(shown);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs_error err = {0};
    dibsx_url url;

    if (dibsx_url_parse(text, &url, &err) == DIBS_OK) {
        check_parsed(&url);
    } else {
        check_empty(&url);
        check_message(&err);
    }
    check_redacted(text, &url);
    dibsx_url_fini(&url);
    check_empty(&url);
    free(text);
    return 0;
}
