/* conf_values.c - reads the values of a configuration: texts, numbers, flags and
 * secrets.
 *
 * Owns nothing. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/conf_values.h"
#include "base/alloc.h"
#include "base/fail.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    DB_DIGITS = 9,
    SECRET_MAX = 4096 /* bytes in a file with a password */
};

void dibs__conf_wipe(char **text)
{
    dibsx_secret_free(*text);
    *text = NULL;
}

dibs_status dibs__conf_set_text(char **field, const char *text, dibs_error *err)
{
    char *copy = dibsx_secret_dup(text);

    if (!copy)
        return dibsx_nomem(err, "the configuration of a server");
    dibs__conf_wipe(field);
    *field = copy;
    return DIBS_OK;
}

int dibs__conf_read_number(const char *text, size_t digits)
{
    size_t len = strspn(text, "0123456789");
    int number = 0;

    if (len == 0 || len > digits || text[len])
        return -1;
    for (size_t i = 0; i < len; i++)
        number = number * 10 + (text[i] - '0');
    return number;
}

dibs_status dibs__conf_read_db(const char *text, int *db, dibs_error *err)
{
    int number = dibs__conf_read_number(text, DB_DIGITS);

    if (number < 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "a database of Redis is a number: "
                          "redis://host:6379/0");
    *db = number;
    return DIBS_OK;
}

dibs_status dibs__conf_read_flag(const char *name, const char *text, bool *flag,
                                 dibs_error *err)
{
    static const char *const words[] = {"0",  "1",   "false", "true",
                                        "no", "yes", "off",   "on"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(text, words[i]) == 0) {
            *flag = i % 2;
            return DIBS_OK;
        }
    return dibsx_fail(err, DIBS_INVALID, "%s is 0 or 1", name);
}

/* Reads the whole file; returns its length, or -1 with errno. */
static ssize_t read_whole(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = 0;
    ssize_t got;
    int number;

    if (fd < 0)
        return -1;
    do {
        got = read(fd, out + len, size - len);
        if (got > 0)
            len += (size_t)got;
    } while ((got > 0 && len < size) || (got < 0 && errno == EINTR));
    number = errno;
    close(fd);
    errno = number;
    return got < 0 ? -1 : (ssize_t)len;
}

dibs_status dibs__conf_read_secret(const char *param, const char *path,
                                   char **password, dibs_error *err)
{
    char text[SECRET_MAX + 1];
    ssize_t got = read_whole(path, text, SECRET_MAX);
    size_t len = got > 0 ? (size_t)got : 0;
    dibs_status rc;

    if (got < 0)
        return dibsx_fail_at(err, errno == EACCES ? DIBS_DENIED : DIBS_INVALID,
                             dibsx_errno_name(errno),
                             "%s cannot be read (%.100s, %s)", param, path,
                             dibsx_errno_name(errno));
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    text[len] = '\0';
    if (len == 0 || len == SECRET_MAX || strlen(text) != len ||
        strchr(text, '\n'))
        rc = dibsx_fail(err, DIBS_INVALID,
                        "%s must hold one line, the password (%.100s)", param,
                        path);
    else
        rc = dibs__conf_set_text(password, text, err);
    explicit_bzero(text, sizeof(text));
    return rc;
}
