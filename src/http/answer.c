/* answer.c - the head of an answer. Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "http/inside.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { HEAD_LEN = 384 }; /* of most heads, without what routes set */

static const char *phrase_of(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } known[] = {{200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {304, "Not Modified"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {406, "Not Acceptable"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {412, "Precondition Failed"},
                 {413, "Content Too Large"},
                 {415, "Unsupported Media Type"},
                 {417, "Expectation Failed"},
                 {421, "Misdirected Request"},
                 {428, "Precondition Required"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {502, "Bad Gateway"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].status == status)
            return known[i].phrase;
    }
    return "Answer";
}

/* In English, whatever the locale is; written once a second. */
static void add_date(dibsx_buf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static _Thread_local time_t written_at;
    static _Thread_local char line[96];
    time_t now = time(NULL);
    struct tm at;

    if (now != written_at && gmtime_r(&now, &at)) {
        snprintf(line, sizeof(line),
                 "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n",
                 days + (ptrdiff_t)3 * at.tm_wday, at.tm_mday,
                 months + (ptrdiff_t)3 * at.tm_mon, at.tm_year + 1900,
                 at.tm_hour, at.tm_min, at.tm_sec);
        written_at = now;
    }
    dibsx_buf_puts(out, line);
}

/* The type of the bytes after the head, and how their end is found. A stream of
 * HTTP/1.0 ends with its connection. */
static void add_form(dibsx_buf *out, const dibs__http_exchange *ex)
{
    if (ex->status == 304 || ex->status == 204)
        return;
    if (ex->type) { /* A redirection has no bytes. */
        dibsx_buf_puts(out, "Content-Type: ");
        dibsx_buf_puts(out, ex->type);
        dibsx_buf_puts(out, "\r\n");
    }
    if (!ex->stream.pull) {
        dibsx_buf_puts(out, "Content-Length: ");
        dibsx_buf_put_uint(out, ex->byte_count);
        dibsx_buf_puts(out, "\r\n");
    } else if (!ex->head.old)
        dibsx_buf_puts(out, "Transfer-Encoding: chunked\r\n");
}

static bool has_header(const dibs__http_exchange *ex, const char *name)
{
    const char *at = dibsx_buf_text((dibsx_buf *)&ex->headers);
    const size_t len = strlen(name);

    for (; *at; at = strstr(at, "\r\n") + 2) {
        if (strncasecmp(at, name, len) == 0 && at[len] == ':')
            return true;
    }
    return false;
}

/* Proxies are asked to pass a stream on as it comes. */
static void add_caching(dibsx_buf *out, const dibs__http_exchange *ex)
{
    if (ex->stream.pull)
        dibsx_buf_puts(out, "Cache-Control: no-store, no-transform\r\n"
                            "X-Accel-Buffering: no\r\n");
    else if (!has_header(ex, "Cache-Control"))
        dibsx_buf_puts(out, "Cache-Control: no-store\r\n");
}

void dibs__http_answer_head(dibs__http_exchange *ex)
{
    dibsx_buf *out = &ex->out;

    dibsx_buf_expect(out, HEAD_LEN + ex->headers.len);
    dibsx_buf_puts(out, "HTTP/1.1 ");
    dibsx_buf_put_uint(out, (unsigned)ex->status);
    dibsx_buf_putc(out, ' ');
    dibsx_buf_puts(out, phrase_of(ex->status));
    dibsx_buf_puts(out, "\r\n");
    add_date(out);
    add_form(out, ex);
    add_caching(out, ex);
    dibsx_buf_puts(out, "X-Content-Type-Options: nosniff\r\n"
                        "Referrer-Policy: no-referrer\r\n");
    dibsx_buf_add(out, dibsx_buf_text(&ex->headers), ex->headers.len);
    dibsx_buf_puts(out, ex->last ? "Connection: close\r\n\r\n" : "\r\n");
}
