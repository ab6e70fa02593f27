/* answer.c - the head of an answer. Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "http/inside.h"
#include <string.h>
#include <time.h>

static const char *phrase_of(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } known[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {413, "Content Too Large"},
                 {415, "Unsupported Media Type"},
                 {417, "Expectation Failed"},
                 {421, "Misdirected Request"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {503, "Service Unavailable"},
                 {505, "HTTP Version Not Supported"}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].status == status)
            return known[i].phrase;
    }
    return "Answer";
}

/* In English, whatever the locale is. */
static void add_date(dibsx_buf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm at;

    if (gmtime_r(&now, &at))
        dibsx_buf_printf(out, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n",
                         days + (ptrdiff_t)3 * at.tm_wday, at.tm_mday,
                         months + (ptrdiff_t)3 * at.tm_mon, at.tm_year + 1900,
                         at.tm_hour, at.tm_min, at.tm_sec);
}

void dibs__http_answer_head(dibs__http_exchange *ex)
{
    dibsx_buf *out = &ex->out;

    dibsx_buf_printf(out, "HTTP/1.1 %d %s\r\n", ex->status,
                     phrase_of(ex->status));
    add_date(out);
    dibsx_buf_printf(out,
                     "Content-Type: application/json\r\n"
                     "Content-Length: %zu\r\n"
                     "Cache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\n",
                     ex->answer.len);
    for (size_t i = 0; i < ex->header_count; i++)
        dibsx_buf_printf(out, "%s: %s\r\n", ex->headers[i].name,
                         ex->headers[i].value);
    dibsx_buf_puts(out, ex->last ? "Connection: close\r\n\r\n" : "\r\n");
    /* Who asks for the head alone is told how long the rest would be. */
    if (strcmp(ex->head.method, "HEAD") == 0)
        dibsx_buf_reset(&ex->answer);
}
