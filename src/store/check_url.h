/* check_url.h - whether a URL names a store, without opening it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_CHECK_URL_H
#define DIBS_STORE_CHECK_URL_H

#include <dibs/types.h>

/* DIBS_INVALID: it is no URL, or no store has its scheme. Nothing is opened. */
DIBS_MUST_CHECK dibs_status dibs__store_check_url(const char *text,
                                                  dibs_error *err);

#endif
