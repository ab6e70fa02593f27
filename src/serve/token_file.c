/* token_file.c - the file of access tokens: reading it, adding to it, removing.
 *
 * A change writes a new file beside the old one and renames it, under a lock of the
 * folder, so that a daemon never reads half of it. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/write_all.h"
#include "config/default_url.h"
#include "config/option_value.h"
#include "serve/token.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 256 * 1024 };

static dibs_status
cannot(const char *what, const char *path, int number, dibs_error *err)
{
    return dibsx_fail_at(err, number == EACCES ? DIBS_DENIED : DIBS_REFUSED,
                         dibsx_errno_name(number), "cannot %s %s: %s", what,
                         path, strerror(number));
}

dibs_status dibs__serve_tokens_path(char *out, size_t size, dibs_error *err)
{
    static const char name[] = "serve.tokens";
    dibsx_buf path;
    dibs_status rc;
    int len = -1;

    dibsx_buf_init(&path, PATH_MAX - 1);
    rc = dibs__store_default_path(&path, err);
    if (rc == DIBS_OK) {
        const char *text = dibsx_buf_text(&path);

        len = snprintf(out, size, "%.*s%s",
                       (int)(strrchr(text, '/') + 1 - text), text, name);
    }
    dibsx_buf_fini(&path);
    if (rc == DIBS_OK && (len < 0 || (size_t)len >= size))
        rc = dibsx_fail(err, DIBS_INVALID, "the path of %s is too long", name);
    return rc;
}

static dibs_status check_mode(const char *path, dibs_error *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno == ENOENT ? dibsx_fail(err, DIBS_NOTFOUND,
                                            "there is no token file %s", path)
                               : cannot("read", path, errno, err);
    if (!S_ISREG(st.st_mode) || (st.st_mode & (S_IRWXG | S_IRWXO)))
        return dibsx_fail(err, DIBS_REFUSED,
                          "%s: others may read or change it; run: chmod 600 %s",
                          path, path);
    return DIBS_OK;
}

/* The caller frees *text. */
static dibs_status read_text(const char *path, char **text, dibs_error *err)
{
    size_t len;
    dibs_status rc = check_mode(path, err);

    *text = NULL;
    if (rc == DIBS_OK)
        rc = dibs__read_file(path, FILE_SIZE_MAX, text, &len, err);
    if (rc == DIBS_OK && strlen(*text) != len) {
        dibsx_free(*text);
        *text = NULL;
        rc = dibsx_fail(err, DIBS_REFUSED, "%s: it has a NUL in it", path);
    }
    return rc;
}

dibs_status dibs__serve_tokens_load(dibs__serve_tokens *tokens,
                                    const char *path, dibs_error *err)
{
    char *text;
    dibs_status rc = read_text(path, &text, err);

    if (rc == DIBS_OK)
        rc = dibs__serve_tokens_parse(tokens, text, path, err);
    dibsx_free(text);
    return rc;
}

/* Root may change the file of a daemon that is another user, who must be able to read
 * it afterwards. */
static bool keep_owner(int fd, const char *path)
{
    struct stat st;

    return geteuid() != 0 || stat(path, &st) != 0 ||
           fchown(fd, st.st_uid, st.st_gid) == 0;
}

/* The folder may be another user's: a file that is there already could be a link to one
 * of root's. */
static dibs_status write_file(const char *path, const char *before,
                              const dibsx_buf *text, dibs_error *err)
{
    int fd = unlink(path) == 0 || errno == ENOENT
                 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        S_IRUSR | S_IWUSR)
                 : -1;
    bool done = fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
                keep_owner(fd, before) &&
                dibsx_write_all(fd, text->data, text->len) && fsync(fd) == 0;
    int number = errno;

    if (fd >= 0)
        close(fd);
    return done ? DIBS_OK : cannot("write", path, number, err);
}

static dibs_status
replace(const char *path, const dibsx_buf *text, dibs_error *err)
{
    char fresh[PATH_MAX];
    dibs_status rc;

    if (!dibsx_buf_ok(text) ||
        snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
        return dibsx_fail(err, DIBS_REFUSED, "%s: it is too long", path);
    rc = write_file(fresh, path, text, err);
    if (rc == DIBS_OK && rename(fresh, path) != 0)
        rc = cannot("write", path, errno, err);
    return rc;
}

/* Makes the folders that are missing, for the user alone. */
static void make_folders(char *folder)
{
    for (char *slash = strchr(folder + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, S_IRWXU);
        *slash = '/';
    }
}

/* Locks the folder of the file. */
static dibs_status lock_folder(const char *path, int *fd, dibs_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%.*s",
             slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    make_folders(folder);
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0 && flock(*fd, LOCK_EX) == 0)
        return DIBS_OK;
    return cannot("open", folder, errno, err);
}

/* 256 random bits in base64url, without padding. */
static bool draw_token(char token[DIBS__SERVE_TOKEN_SIZE])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr"
                                 "stuvwxyz0123456789-_";
    unsigned char bytes[33] = {0};
    char *out = token + 5;

    if (!dibsx_random(bytes, 32))
        return false;
    memcpy(token, "dibs_", 5);
    for (size_t bit = 0; bit < 256; bit += 6) {
        unsigned word = (unsigned)bytes[bit / 8] << 8 | bytes[bit / 8 + 1];

        *out++ = digits[word >> (10 - bit % 8) & 63];
    }
    *out = '\0';
    explicit_bzero(bytes, sizeof(bytes));
    return true;
}

/* The old text, then the new line. */
static void add_line(dibsx_buf *out, const char *name, dibs__serve_role role,
                     const char *expires, const char *token)
{
    unsigned char hash[DIBSX_SHA256_SIZE];
    char text[DIBSX_SHA256_TEXT];

    dibsx_sha256_bytes(token, strlen(token), hash);
    dibsx_hex(hash, sizeof(hash), text);
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        dibsx_buf_putc(out, '\n');
    dibsx_buf_printf(out, "%s %s sha256:%s", name, dibs__serve_role_text(role),
                     text);
    if (expires)
        dibsx_buf_printf(out, " expires=%s", expires);
    dibsx_buf_putc(out, '\n');
}

/* The new text must be readable; parsing changes its copy. */
static dibs_status
check_text(const dibsx_buf *text, const char *path, dibs_error *err)
{
    dibs__serve_tokens *tokens = dibsx_zalloc(sizeof(*tokens));
    char *copy = dibsx_strdup(dibsx_buf_text(text));
    dibs_status rc = tokens && copy
                         ? dibs__serve_tokens_parse(tokens, copy, path, err)
                         : dibsx_nomem(err, "the tokens");

    dibsx_free(copy);
    dibsx_free(tokens);
    return rc;
}

dibs_status
dibs__serve_token_add(const char *path, const char *name, dibs__serve_role role,
                      const char *expires, char token[DIBS__SERVE_TOKEN_SIZE],
                      dibs_error *err)
{
    char *before = NULL;
    dibsx_buf text;
    int fd = -1;
    dibs_status rc =
        dibs__serve_token_check(name, expires, dibsx_wall_us(), err);

    dibsx_buf_init(&text, FILE_SIZE_MAX);
    if (rc == DIBS_OK)
        rc = lock_folder(path, &fd, err);
    if (rc == DIBS_OK)
        rc = read_text(path, &before, err);
    if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    if (rc == DIBS_OK && !draw_token(token))
        rc = dibsx_fail(err, DIBS_INTERNAL, "the kernel gives no randomness");
    if (rc == DIBS_OK) {
        dibsx_buf_puts(&text, before ? before : "");
        add_line(&text, name, role, expires, token);
        rc = check_text(&text, path, err);
    }
    if (rc == DIBS_OK)
        rc = replace(path, &text, err);
    dibsx_buf_fini(&text);
    dibsx_free(before);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Appends all lines but those of a name; returns how many they were. */
static size_t keep_others(dibsx_buf *out, const char *text, const char *name)
{
    const size_t len = strlen(name);
    size_t removed = 0;

    while (*text) {
        const size_t line = strcspn(text, "\n") + (strchr(text, '\n') != NULL);
        const char *word = text + strspn(text, " \t");

        if (strncmp(word, name, len) == 0 && strchr(" \t", word[len]))
            removed++;
        else
            dibsx_buf_add(out, text, line);
        text += line;
    }
    return removed;
}

dibs_status
dibs__serve_token_remove(const char *path, const char *name, dibs_error *err)
{
    char *before = NULL;
    dibsx_buf text;
    int fd = -1;
    dibs_status rc = lock_folder(path, &fd, err);

    dibsx_buf_init(&text, FILE_SIZE_MAX);
    if (rc == DIBS_OK)
        rc = read_text(path, &before, err);
    if (rc == DIBS_OK && keep_others(&text, before, name) == 0)
        rc = dibsx_fail(err, DIBS_NOTFOUND, "%s: there is no token of %s", path,
                        name);
    if (rc == DIBS_OK)
        rc = replace(path, &text, err);
    dibsx_buf_fini(&text);
    dibsx_free(before);
    if (fd >= 0)
        close(fd);
    return rc;
}
