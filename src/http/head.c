/* head.c - the head of a request, read strictly. Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "http/head.h"
#include <string.h>
#include <strings.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"
#define TOKEN   LETTERS DIGITS "!#$%&'*+-.^_`|~"

/* The server checks every byte before it knows the end: a client that ends lines in
 * another way gets an answer, and does not wait for an end that never comes. */
ssize_t dibs__http_head_end(const char *bytes, size_t len, size_t *seen)
{
    for (; *seen < len; ++*seen) {
        const char *at = bytes + *seen;
        bool after_cr = *seen > 0 && at[-1] == '\r';

        if (*at == '\0' || (*at == '\n') != after_cr)
            return -1;
        if (*at == '\n' && *seen >= 3 && memcmp(at - 3, "\r\n\r\n", 4) == 0)
            return (ssize_t)*seen + 1;
    }
    return 0;
}

/* Cuts the text at the first `c` and returns what is behind it, or NULL. */
static char *cut(char *text, char c)
{
    char *at = strchr(text, c);

    if (!at)
        return NULL;
    *at = '\0';
    return at + 1;
}

static bool is_all(const char *text, const char *allowed)
{
    return *text && text[strspn(text, allowed)] == '\0';
}

static bool is_target(const char *text)
{
    for (const char *at = text; *at; at++) {
        if (*at <= ' ' || *at > '~' || *at == '#')
            return false;
    }
    return *text != '\0';
}

static int read_version(const char *text, bool *old, const char **why)
{
    *old = strcmp(text, "HTTP/1.0") == 0;
    if (*old || strcmp(text, "HTTP/1.1") == 0)
        return 0;
    if (strncmp(text, "HTTP/", 5) == 0 && strspn(text + 5, DIGITS) == 1 &&
        text[6] == '.' && strspn(text + 7, DIGITS) == 1 && !text[8]) {
        *why = "it is not of HTTP/1.1";
        return 505;
    }
    *why = "its first line does not end in a version of HTTP";
    return 400;
}

static int read_line(char *line, dibs__http_head *head, const char **why)
{
    char *target = cut(line, ' ');
    char *version = target ? cut(target, ' ') : NULL;

    *why = "its first line is not a method, a target and a version";
    if (!version || !is_all(line, TOKEN) || !is_target(target))
        return 400;
    head->method = line;
    head->target = target;
    return read_version(version, &head->old, why);
}

/* Cuts the space around a value off; NULL when it has a control character. */
static char *read_value(char *text)
{
    char *end;

    text += strspn(text, " \t");
    end = text + strlen(text);
    while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    for (const char *at = text; *at; at++) {
        if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7F)
            return NULL;
    }
    return text;
}

static int read_field(char *line, dibs__http_head *head, const char **why)
{
    char *value = cut(line, ':');
    dibs__http_field *field = &head->fields[head->field_count];

    *why = "a header is not a name, a colon and a value";
    if (!value || !is_all(line, TOKEN))
        return 400;
    value = read_value(value);
    *why = "a header has a control character in it";
    if (!value)
        return 400;
    *why = "it has more than a hundred headers";
    if (head->field_count == DIBS__HTTP_FIELDS_MAX)
        return 431;
    *field = (dibs__http_field){line, value};
    head->field_count++;
    return 0;
}

/* Headers that would say two things if they came twice. */
static bool comes_twice(const dibs__http_head *head)
{
    static const char *const single[] = {
        "Host",   "Content-Length", "Transfer-Encoding", "Content-Type",
        "Expect", "Origin",         "Sec-Fetch-Site"};

    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        size_t count = 0;

        for (size_t k = 0; k < head->field_count; k++)
            count += strcasecmp(head->fields[k].name, single[i]) == 0;
        if (count > 1)
            return true;
    }
    return false;
}

static bool read_length(const char *text, uint64_t *length)
{
    *length = 0;
    if (!is_all(text, DIGITS))
        return false;
    for (; *text; text++) {
        if (__builtin_mul_overflow(*length, 10, length) ||
            __builtin_add_overflow(*length, (uint64_t)(*text - '0'), length))
            return false;
    }
    return true;
}

/* Where the body ends. */
static int read_framing(dibs__http_head *head, const char **why)
{
    const char *length = dibs__http_head_get(head, "Content-Length");
    const char *coding = dibs__http_head_get(head, "Transfer-Encoding");

    head->measured = length != NULL;
    head->chunked = coding != NULL;
    *why = "it has a length and a coding, and so two ends";
    if (length && coding)
        return 400;
    *why = "its Content-Length is not a number";
    if (length && !read_length(length, &head->length))
        return 400;
    *why = "its Transfer-Encoding is not \"chunked\" in HTTP/1.1";
    if (coding && (head->old || strcasecmp(coding, "chunked") != 0))
        return 400;
    return 0;
}

/* Whether the header Connection, which may come several times, has the word. */
static bool connection_says(const dibs__http_head *head, const char *word)
{
    size_t len = strlen(word);

    for (size_t i = 0; i < head->field_count; i++) {
        const char *at = head->fields[i].value;

        if (strcasecmp(head->fields[i].name, "Connection") != 0)
            continue;
        for (at += strspn(at, " \t,"); *at; at += strspn(at, " \t,")) {
            size_t here = strcspn(at, " \t,");

            if (here == len && strncasecmp(at, word, len) == 0)
                return true;
            at += here;
        }
    }
    return false;
}

static int read_rest(dibs__http_head *head, const char **why)
{
    const char *expect = dibs__http_head_get(head, "Expect");
    int status;

    *why = "a header that must be given once was given twice";
    if (comes_twice(head))
        return 400;
    *why = "it has no Host";
    if (!head->old && !dibs__http_head_get(head, "Host"))
        return 400;
    status = read_framing(head, why);
    if (status)
        return status;
    *why = "it expects something that is not known here";
    if (expect && strcasecmp(expect, "100-continue") != 0)
        return 417;
    head->expects = expect && !head->old;
    head->last = head->old || connection_says(head, "close");
    return 0;
}

int dibs__http_head_read(char *text, size_t len, dibs__http_head *head,
                         const char **why)
{
    char *line = text;
    int status = 0;
    bool first = true;

    *head = (dibs__http_head){.method = ""};
    /* The empty line at the end is left out. */
    text[len - 2] = '\0';
    while (*line && !status) {
        char *next = strchr(line, '\n') + 1;

        next[-2] = '\0';
        status =
            first ? read_line(line, head, why) : read_field(line, head, why);
        first = false;
        line = next;
    }
    return status ? status : read_rest(head, why);
}

const char *dibs__http_head_get(const dibs__http_head *head, const char *name)
{
    for (size_t i = 0; i < head->field_count; i++) {
        if (strcasecmp(head->fields[i].name, name) == 0)
            return head->fields[i].value;
    }
    return NULL;
}
