/* token.c - tokens as text and as files. Runs on the main thread. */
/* SPDX-License-Identifier: MIT */
#include "cli/token.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("token", "TOKEN"),
     .help = "The token that acquire printed, OWNER:FENCE, or the one of "
             "dibs_lock_transfer(3). For check a fence is enough."},
    {DIBS__ROW_TEXT("token-file", "FILE"),
     .verbs = "acquire,release,renew,check",
     .help = "The file for the token: acquire writes it, readable for its "
             "owner only; the others read it."},
};

const dibs__option_rows dibs__options_token =
    DIBS__OPTION_ROWS("release,renew,check", options);

/* A line for each of as many names as can be taken at once. */
enum {
    FILE_MAX_BYTES = DIBS_MULTI_MAX * (DIBS__TOKEN_SIZE + DIBS_NAME_MAX + 2)
};

void dibs__token_of(const dibs_lock *lock, dibs__token *token)
{
    dibs_lock_owner(lock, token->owner);
    token->fence = dibs_lock_fence(lock);
}

void dibs__token_text(const dibs__token *token, char out[DIBS__TOKEN_SIZE])
{
    snprintf(out, DIBS__TOKEN_SIZE, "%s:%llu", token->owner,
             (unsigned long long)token->fence);
}

void dibs__token_json(dibsx_json *js, const char *name, const dibs_lock *lock)
{
    char text[DIBS__TOKEN_SIZE];
    dibs__token token;

    dibs__token_of(lock, &token);
    dibs__token_text(&token, text);
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_pair_text(js, "token", text);
    dibsx_json_pair_text(js, "owner", token.owner);
    dibsx_json_pair_uint(js, "fence", token.fence);
    dibsx_json_pair_int(js, "valid_ms", dibs_lock_valid_ms(lock));
}

/* Whether nothing but what belongs to such a token follows the fence: the mode,
 * if it was transferred. */
static bool is_end(const char *end, char separator)
{
    if (separator != '.')
        return *end == '\0';
    return end[0] == '.' && end[1] && strchr("xsp", end[1]) && !end[2];
}

/* The text of the token is a capability, so that messages do not show it. */
dibs_status
dibs__token_parse(const char *text, dibs__token *token, dibs_error *err)
{
    size_t digits = strspn(text, "0123456789abcdef");
    char separator = text[digits];
    bool owned =
        digits == DIBS_OWNER_SIZE - 1 && (separator == ':' || separator == '.');
    const char *number = owned ? text + digits + 1 : text;
    char *end = NULL;

    *token = (dibs__token){.fence = 0};
    errno = 0;
    if (*number >= '1' && *number <= '9')
        token->fence = strtoull(number, &end, 10);
    if (!end || errno || !is_end(end, owned ? separator : '\0'))
        return dibsx_fail(err, DIBS_INVALID,
                          "not a token: 32 hexadecimal digits, a colon and a "
                          "number are expected, as acquire prints them");
    if (owned)
        memcpy(token->owner, text, digits);
    return DIBS_OK;
}

/* The token of the line that is for the name, as one without a name is; NULL when
 * there is none. Cuts `text` there. */
static const char *find_line(char *text, const char *name)
{
    while (*text) {
        size_t len = strcspn(text, "\n"), token = strcspn(text, " \r\n");
        char *next = text + len + (text[len] == '\n');
        const char *of = text[token] == ' ' ? text + token + 1 : "";

        text[len] = '\0';
        if (*of == '\0' || strcmp(of, name) == 0) {
            text[token] = '\0';
            return text;
        }
        text = next;
    }
    return NULL;
}

static dibs_status read_file(const char *path, const char *name,
                             dibs__token *token, dibs_error *err)
{
    const char *line;
    char *text = NULL;
    size_t len = 0;
    dibs_status rc = dibs__read_file(path, FILE_MAX_BYTES, &text, &len, err);

    if (rc != DIBS_OK) {
        /* Not "there is no such lock". */
        if (err)
            err->status = DIBS_INVALID;
        return DIBS_INVALID;
    }
    line = find_line(text, name);
    rc = line || !*text
             ? dibs__token_parse(line ? line : "", token, err)
             : dibsx_fail(err, DIBS_INVALID, "there is no token of %s in %s",
                          name, path);
    dibsx_free(text);
    return rc;
}

dibs_status dibs__token_read(const dibs__command *cmd, dibs__token *token,
                             bool *given, dibs_error *err)
{
    const char *text = dibs__opt_text(cmd, "token");
    const char *path = dibs__opt_text(cmd, "token-file");

    *given = text || path;
    if (text && path)
        return dibsx_fail(err, DIBS_INVALID,
                          "give --token or --token-file, not both");
    if (text)
        return dibs__token_parse(text, token, err);
    return path ? read_file(path, dibs__operands(cmd)[0], token, err) : DIBS_OK;
}

static dibs_status fail_file(dibs_error *err, const char *path)
{
    int number = errno;

    return dibsx_fail_at(err,
                         number == EACCES || number == EROFS ? DIBS_DENIED
                                                             : DIBS_INVALID,
                         dibsx_errno_name(number), "cannot write %s: %s", path,
                         strerror(number));
}

/* Where the file will be: the rename would replace a link, or a device. */
static dibs_status find_target(dibs__token_file *file, dibs_error *err)
{
    struct stat there;
    int len;

    if (stat(file->path, &there) != 0) {
        len = snprintf(file->target, sizeof(file->target), "%s", file->path);
        if (len < 0 || (size_t)len >= sizeof(file->target))
            errno = ENAMETOOLONG;
        return errno == ENOENT ? DIBS_OK : fail_file(err, file->path);
    }
    if (S_ISDIR(there.st_mode)) {
        errno = EISDIR;
        return fail_file(err, file->path);
    }
    if (!S_ISREG(there.st_mode))
        return dibsx_fail(err, DIBS_INVALID,
                          "%s is a device, a pipe or a socket, and a token is "
                          "written to a file; name one",
                          file->path);
    return realpath(file->path, file->target) ? DIBS_OK
                                              : fail_file(err, file->path);
}

dibs_status
dibs__token_file_open(dibs__token_file *file, const char *path, dibs_error *err)
{
    dibs_status rc;
    int len;

    file->path = path;
    file->fd = -1;
    file->draft[0] = '\0';
    rc = find_target(file, err);
    if (rc != DIBS_OK)
        return rc;
    len = snprintf(file->draft, sizeof(file->draft), "%s.XXXXXX", file->target);
    if (len < 0 || (size_t)len >= sizeof(file->draft)) {
        file->draft[0] = '\0';
        errno = ENAMETOOLONG;
        return fail_file(err, path);
    }
    /* Its mode is 0600 from the start. */
    file->fd = mkostemp(file->draft, O_CLOEXEC);
    if (file->fd < 0) {
        file->draft[0] = '\0';
        return fail_file(err, path);
    }
    return DIBS_OK;
}

dibs_status
dibs__token_file_put(dibs__token_file *file, const char *lines, dibs_error *err)
{
    int fd = file->fd;

    file->fd = -1;
    if (dprintf(fd, "%s", lines) < 0) {
        dibs_status rc = fail_file(err, file->path);

        close(fd);
        return rc;
    }
    if (close(fd) != 0 || rename(file->draft, file->target) != 0)
        return fail_file(err, file->path);
    file->draft[0] = '\0';
    return DIBS_OK;
}

void dibs__token_file_close(dibs__token_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->draft[0])
        unlink(file->draft);
}
