/* path_url.h - a path in place of a URL: a file of the embedded store. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_PATH_URL_H
#define DIBS_CONFIG_PATH_URL_H

#include "base/buf.h"

/* Whether the text is a path, by its beginning (/, ./ or ../), and no URL. */
bool dibs__store_is_path(const char *text);

/* Adds the URL of the embedded store in this file. */
void dibs__store_path_url(dibsx_buf *url, const char *path);

#endif
