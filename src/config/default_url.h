/* default_url.h - the store of a client that no URL and no setting gives one: the
 * embedded store in its default file. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_DEFAULT_URL_H
#define DIBS_CONFIG_DEFAULT_URL_H

#include "base/buf.h"
#include <dibs/types.h>

/* The URL that asks for this store by name, whatever the settings say. */
#define DIBS__DEFAULT_URL "sqlite:"

/* Adds the path of its file. Creates nothing. */
DIBS_MUST_CHECK dibs_status dibs__store_default_path(dibsx_buf *path,
                                                     dibs_error *err);

/* Adds its URL, and makes the folders above the file. */
DIBS_MUST_CHECK dibs_status dibs__store_default_url(dibsx_buf *url,
                                                    dibs_error *err);

#endif
