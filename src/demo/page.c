/* page.c - the page of a worker for browsers.
 *
 * Owns nothing. Names of holders come from other programs: they are written as text,
 * here and by the script. Threads of the HTTP server. */
/* SPDX-License-Identifier: MIT */
#include "demo/page.h"
#include "demo/store_name.h"
#include "demo/watch.h"
#include <string.h>
#include <unistd.h>

enum { LOOK_MAX = 64 * 1024 };

const char dibs__demo_script[] =
    "'use strict';\n"
    "const list = document.getElementById('events');\n"
    "const source = new EventSource('events');\n"
    "\n"
    "function show(text) {\n"
    "  list.append(text + '\\n');\n"
    "  while (list.childNodes.length > 500) list.firstChild.remove();\n"
    "}\n"
    "\n"
    "source.onmessage = (message) => {\n"
    "  const event = JSON.parse(message.data);\n"
    "  show(event.time + ' ' + event.message);\n"
    "};\n"
    "source.addEventListener('gap', (message) => {\n"
    "  show('(' + JSON.parse(message.data).missed + ' events were missed)');\n"
    "});\n"
    "source.addEventListener('reset', () => list.replaceChildren());\n"
    "source.onerror = () => show('(the worker is away; trying again)');\n";

const size_t dibs__demo_script_len = sizeof(dibs__demo_script) - 1;

static void put_text(dibsx_buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            dibsx_buf_puts(out, "&amp;");
            break;
        case '<':
            dibsx_buf_puts(out, "&lt;");
            break;
        case '>':
            dibsx_buf_puts(out, "&gt;");
            break;
        default:
            dibsx_buf_putc(out, *text);
        }
    }
}

static void put_state(const dibs__demo_work *work, dibsx_buf *out)
{
    dibsx_buf look;

    dibsx_buf_init(&look, LOOK_MAX);
    dibs__demo_look(work->locks, work->opts->port + work->id, &look);
    dibsx_buf_puts(out, "<p id=\"state\">");
    put_text(out, dibsx_buf_ok(&look) ? dibsx_buf_text(&look)
                                      : "lock: more than fits here");
    dibsx_buf_puts(out, "</p>\n");
    dibsx_buf_fini(&look);
}

void dibs__demo_page_put(const dibs__demo_work *work, dibsx_buf *out)
{
    const int port = work->opts->port;

    dibsx_buf_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
        "<title>dibs demo: worker %d</title>\n"
        "<h1>dibs demo: worker %d of %d</h1>\n"
        "<p>The workers share one value, which only the holder of a lock may "
        "change. This one is process %ld; the store is %s. Worker N listens on "
        "port %d + N.</p>\n",
        work->id, work->id, work->opts->workers, (long)getpid(),
        dibs__demo_store_name(work->opts->url), port);
    put_state(work, out);
    dibsx_buf_printf(
        out,
        "<ul>\n"
        "<li><a href=\"status\">GET /status</a>: this worker\n"
        "<li><a href=\"ads\">GET /ads</a>: the value\n"
        "<li>POST /update: change the value under the lock\n"
        "<li><a href=\"health\">GET /health</a>: whether the store answers\n"
        "<li><a href=\"events\">GET /events</a>: the events of this worker, as "
        "they come\n"
        "</ul>\n"
        "<pre>curl -X POST http://localhost:%d/update</pre>\n"
        "<h2>Events</h2>\n"
        "<pre id=\"events\"></pre>\n"
        "<script src=\"events.js\"></script>\n",
        port + work->id);
}
