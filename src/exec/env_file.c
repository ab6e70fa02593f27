/* env_file.c - see env_file.h. Owns the text while it reads. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "exec/env_file.h"

#include "base/buf.h"
#include "base/fail.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static dibs_status read_all(const char *path, dibsx_buf *text, dibs_error *err)
{
    char part[4096];
    ssize_t got = 0;
    struct stat info;
    /* A named pipe would be waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) {
        int number = fd < 0 || !S_ISDIR(info.st_mode) ? errno : EISDIR;
        if (fd >= 0)
            close(fd);
        return dibsx_fail_at(err, DIBS_INVALID, dibsx_errno_name(number),
                             "cannot read env_file %s: %s", path,
                             strerror(number));
    }
    do {
        got = read(fd, part, sizeof part);
        if (got > 0)
            dibsx_buf_add(text, part, (size_t)got);
    } while ((got > 0 && dibsx_buf_ok(text)) || (got < 0 && errno == EINTR));
    int number = errno;
    close(fd);
    if (got < 0)
        return dibsx_fail_at(err, DIBS_INVALID, dibsx_errno_name(number),
                             "cannot read env_file %s: %s", path,
                             strerror(number));
    return dibsx_buf_ok(text) && !memchr(dibsx_buf_text(text), '\0', text->len)
               ? DIBS_OK
               : dibsx_fail(err, DIBS_INVALID,
                            "env_file %s is longer than %zu bytes, or no text",
                            path, DIBS__ENV_FILE_MAX);
}

static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return len > 0 && !isdigit((unsigned char)name[0]);
}

/* Takes quotes off the value, in place. False when the line is no variable. */
static bool trim_line(char **line)
{
    char *at = *line;
    at += strspn(at, " \t");
    if (strncmp(at, "export ", 7) == 0)
        at += 7 + strspn(at + 7, " \t");
    *line = at;
    size_t len = strlen(at);
    while (len > 0 &&
           (at[len - 1] == ' ' || at[len - 1] == '\t' || at[len - 1] == '\r'))
        at[--len] = '\0';
    char *value = strchr(at, '=');
    if (!value || !is_name(at, (size_t)(value - at)))
        return false;
    value++;
    len = strlen(value);
    if (len >= 2 && (value[0] == '"' || value[0] == '\'') &&
        value[len - 1] == value[0]) {
        memmove(value, value + 1, len - 2);
        value[len - 2] = '\0';
    }
    return true;
}

static bool is_blank(const char *line)
{
    line += strspn(line, " \t\r");
    return *line == '\0' || *line == '#';
}

dibs_status dibs__env_file_read(const char *path, dibs__env_fn *each, void *arg,
                                dibs_error *err)
{
    dibsx_buf text;
    dibsx_buf_init(&text, DIBS__ENV_FILE_MAX);
    dibs_status rc = read_all(path, &text, err);
    char *next = text.data;
    for (int number = 1; rc == DIBS_OK && next; number++) {
        char *line = next;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (is_blank(line))
            continue;
        if (!trim_line(&line))
            rc = dibsx_fail(err, DIBS_INVALID,
                            "%s:%d: this line is no NAME=value", path, number);
        else if (!each(arg, line))
            break;
    }
    dibsx_buf_fini(&text);
    return rc;
}
