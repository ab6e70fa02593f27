/* page.h - answers with a part of a catalog, in the form of all lists. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_PAGE_H
#define DIBS_SERVE_PAGE_H

#include "http/exchange.h"
#include "serve/catalog.h"

/* Answers a request for the list of a kind. `states` are the words that ?state= may
 * have, or "" for none. Waits for the catalog: not on the loop. */
void dibs__serve_answer_catalog(dibs__http_exchange *ex,
                                dibs__catalog_kind kind, const char *states);

/* Answers with a part of rows that the caller has made, in the order of names. */
void dibs__serve_answer_page(dibs__http_exchange *ex,
                             const dibs__catalog_page *page,
                             const char *states);

/* An ETag of a text that says what the thing is now. True: the client knows it, and
 * that was answered. */
DIBS_MUST_CHECK bool
dibs__serve_known_etag(dibs__http_exchange *ex, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
