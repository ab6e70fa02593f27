/* ask.c - see ask.h. */
/* SPDX-License-Identifier: MIT */
#include "ask.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool asker_open(asker *as, const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    *as = (asker){.fd = -1};
    if (snprintf(at.sun_path, sizeof(at.sun_path), "%s", path) >=
        (int)sizeof(at.sun_path))
        return false;
    as->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (as->fd < 0)
        return false;
    if (connect(as->fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        as->in = fdopen(as->fd, "r");
    if (!as->in)
        asker_close(as);
    return as->in != NULL;
}

void asker_close(asker *as)
{
    if (as->in)
        fclose(as->in);
    else if (as->fd >= 0)
        close(as->fd);
    *as = (asker){.fd = -1};
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

bool asker_send(const asker *as, const char *const *words)
{
    char *text = NULL;
    size_t len = 0, count = 0;
    FILE *out = open_memstream(&text, &len);
    bool sent;

    if (!out)
        return false;
    while (words[count])
        count++;
    fprintf(out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    fclose(out);
    sent = text && send_all(as->fd, text, len);
    free(text);
    return sent;
}

static bool read_bytes(const asker *as, FILE *out, long len)
{
    int c = 0;

    for (; len > 0 && (c = getc(as->in)) != EOF; len--)
        putc(c, out);
    return len <= 0 && getc(as->in) == '\r' && getc(as->in) == '\n';
}

/* One reply, with a newline at its end unless it is an empty list. */
static bool read_reply(const asker *as, FILE *out)
{
    char head[512];
    long number;

    if (!fgets(head, sizeof(head), as->in))
        return false;
    head[strcspn(head, "\r\n")] = '\0';
    number = strtol(head + 1, NULL, 10);
    switch (head[0]) {
    case '-':
        fprintf(out, "%s\n", head);
        return true;
    case '+':
    case ':':
        fprintf(out, "%s\n", head + 1);
        return true;
    case '$':
        if (number >= 0 && !read_bytes(as, out, number))
            return false;
        putc('\n', out);
        return true;
    case '*':
        while (number-- > 0)
            if (!read_reply(as, out))
                return false;
        return true;
    default:
        return false;
    }
}

char *asker_read(const asker *as)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    bool whole;

    if (!out)
        return NULL;
    whole = read_reply(as, out);
    fclose(out);
    if (whole && text) {
        if (len > 0 && text[len - 1] == '\n')
            text[len - 1] = '\0';
        return text;
    }
    free(text);
    return NULL;
}
