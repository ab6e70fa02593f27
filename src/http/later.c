/* later.c - answers that are to come later, while the connection waits.
 *
 *     function returns --> asked --> answered: SENDING
 *                           ^  +---> not yet: WAITING --+
 *                           +--- woken, or time is over -+
 *
 * Owns nothing: what an answer waits for is its function's until `gone`. Loop
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "http/later.h"
#include "http/inside.h"
#include "http/request.h"

void dibs__http_later_end(dibs__http_exchange *ex)
{
    const dibs__http_later later = ex->later;

    ex->later.ask = NULL;
    if (later.ask)
        later.gone(later.arg);
}

void dibs__http_later_ask(dibs__http_exchange *ex, bool over)
{
    if (!ex->later.ask(ex, ex->later.arg, over) && !over)
        return;
    dibs__http_later_end(ex);
    dibs__http_answer_now(ex);
}

bool dibs__http_later_begin(dibs__http_exchange *ex)
{
    if (!ex->later.ask)
        return false;
    /* An answer that was begun as well counts. */
    if (ex->status) {
        dibs__http_later_end(ex);
        return false;
    }
    dibs__http_engage(ex, DIBS__HTTP_WAITING, ex->later.wait_ms);
    dibs__http_later_ask(ex, ex->server->stopping);
    return true;
}

void dibs__http_laters_ask(dibs__http_server *server, bool over)
{
    dibs__http_link *link, *next;

    for (link = server->links; link; link = next) {
        next = link->next;
        if (link->phase != DIBS__HTTP_WAITING)
            continue;
        dibs__http_later_ask(link->ex, over);
        if (link->phase != DIBS__HTTP_WAITING)
            dibs__http_link_go_on(link);
    }
}
