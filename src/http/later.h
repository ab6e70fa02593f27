/* later.h - the turns of an answer that is to come later. Loop thread. Not for users of
 * the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_LATER_H
#define DIBS_HTTP_LATER_H

#include "http/server.h"

/* The function of the route has returned: true when its answer is to come later, and
 * the connection waits for it. */
bool dibs__http_later_begin(dibs__http_exchange *ex);

/* Asks one, or all that wait. */
void dibs__http_later_ask(dibs__http_exchange *ex, bool over);
void dibs__http_laters_ask(dibs__http_server *server, bool over);

/* Lets go of what it waits for. A no-op if the answer is not to come later. */
void dibs__http_later_end(dibs__http_exchange *ex);

#endif
