/* setup.c - settings of the daemon, checked before it starts. Main thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/setup.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "serve/daemon.h"
#include "serve/engine.h"
#include "serve/listeners.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

dibs_status dibs__serve_setup_base(const dibs__serve_opts *opts, char *out,
                                   size_t size, dibs_error *err)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789._~/-";
    const char *text = opts->base_path ? opts->base_path : "";
    size_t len = strlen(text);

    while (len > 0 && text[len - 1] == '/')
        len--;
    if (len >= size || (len > 0 && *text != '/') || strspn(text, safe) < len ||
        strstr(text, "//"))
        return dibsx_fail(err, DIBS_REFUSED,
                          "the base path '%.80s' is not valid; write /dibs",
                          text);
    snprintf(out, size, "%.*s", (int)len, text);
    return DIBS_OK;
}

/* A quorum keeps no values. */
static dibs_status check_data(const dibs__serve_opts *opts, dibs_error *err)
{
    static const char quorum[] = "redlock:";

    if (!opts->data_url ||
        strncmp(opts->data_url, quorum, sizeof(quorum) - 1) != 0)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_REFUSED,
                      "the data URL names a quorum, which keeps no values; "
                      "name a single store, such as one server of the quorum");
}

dibs_status
dibs__serve_setup_check(const dibs__serve_opts *opts, dibs_error *err)
{
    dibs_status rc = dibs__serve_listeners_check(opts, err);

    if (rc == DIBS_OK)
        rc = check_data(opts, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_class_check(opts->metrics_classes, err);
    return rc;
}

dibs_status dibs__serve_setup_tokens(const dibs__serve_opts *opts, char *out,
                                     size_t size, dibs_error *err)
{
    if (!opts->tokens)
        return dibs__serve_tokens_path(out, size, err);
    if (snprintf(out, size, "%s", opts->tokens) >= (int)size)
        return dibsx_fail(err, DIBS_REFUSED,
                          "the path of the token file is too long");
    return DIBS_OK;
}

dibs_status dibs__serve_setup_load(const char *path, dibs__serve_tokens **out,
                                   dibs_error *err)
{
    dibs_status rc;

    *out = dibsx_zalloc(sizeof(**out));
    if (!*out)
        return dibsx_nomem(err, "the tokens");
    rc = dibs__serve_tokens_load(*out, path, err);
    if (rc == DIBS_OK && (*out)->count == 0)
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "%s has no token, so nobody could use the daemon; run: "
                        "dibs access add NAME --role admin",
                        path);
    if (rc != DIBS_OK) {
        dibsx_free(*out);
        *out = NULL;
    }
    return rc;
}

dibs_status dibs__serve_setup_missing(const char *path, dibs_error *err)
{
    return dibsx_fail(err, DIBS_REFUSED,
                      "there is no token file %s; run: dibs access add NAME "
                      "--role admin --tokens %s",
                      path, path);
}

static dibs_status
write_token(const char *path, const char *token, dibs_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
    bool done = fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
                dprintf(fd, "%s\n", token) > 0;
    int number = errno;

    if (fd >= 0)
        close(fd);
    return done ? DIBS_OK
                : dibsx_fail_at(err, DIBS_REFUSED, dibsx_errno_name(number),
                                "cannot write %s: %s", path, strerror(number));
}

dibs_status
dibs__serve_setup_first(const char *path, char *made_path, size_t size,
                        char token[DIBS__SERVE_TOKEN_SIZE], dibs_error *err)
{
    size_t len = strlen(path);
    dibs_status rc;

    /* "serve.tokens" has hashes, "serve.token" the one token. */
    snprintf(made_path, size, "%.*s", (int)len - 1, path);
    rc = dibs__serve_token_add(path, "admin", DIBS__SERVE_ADMIN, NULL, token,
                               err);
    if (rc == DIBS_OK)
        rc = write_token(made_path, token, err);
    return rc;
}

dibs_status dibs__serve_check(const dibs__serve_opts *opts, dibs_error *err)
{
    char base[DIBS__SERVE_BASE_MAX], path[4096];
    dibs__serve_tokens *tokens = NULL;
    dibs_status rc = dibs__serve_setup_base(opts, base, sizeof(base), err);

    if (rc == DIBS_OK)
        rc = dibs__serve_setup_check(opts, err);
    if (rc == DIBS_OK)
        rc = dibs__engine_check(opts, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_setup_tokens(opts, path, sizeof(path), err);
    if (rc == DIBS_OK)
        rc = dibs__serve_setup_load(path, &tokens, err);
    /* The first start makes the default file. */
    if (rc == DIBS_NOTFOUND)
        rc = opts->tokens ? dibs__serve_setup_missing(path, err) : DIBS_OK;
    dibsx_free(tokens);
    return rc;
}
