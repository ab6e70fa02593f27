/* setup.h - settings of the daemon, checked before it starts. Main thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SETUP_H
#define DIBS_SERVE_SETUP_H

#include "serve/serve.h"

/* Refuses settings with which the daemon cannot do what they ask for: listeners, the store
 * of data, classes of metrics. */
DIBS_MUST_CHECK dibs_status
dibs__serve_setup_check(const dibs__serve_opts *opts, dibs_error *err);

/* The base path without the slash at its end; "" for none. */
DIBS_MUST_CHECK dibs_status dibs__serve_setup_base(const dibs__serve_opts *opts,
                                                   char *out, size_t size,
                                                   dibs_error *err);

/* The path of the token file. */
DIBS_MUST_CHECK dibs_status dibs__serve_setup_tokens(
    const dibs__serve_opts *opts, char *out, size_t size, dibs_error *err);

/* Reads the tokens into *out, which the caller frees with dibsx_free(). */
DIBS_MUST_CHECK dibs_status dibs__serve_setup_load(const char *path,
                                                   dibs__serve_tokens **out,
                                                   dibs_error *err);

/* DIBS_REFUSED: a token file that was named has to be there. */
dibs_status dibs__serve_setup_missing(const char *path, dibs_error *err);

/* Makes a token file with one admin token, which is written beside it, for the first
 * start. *made_path is where; `token` is for the caller to erase. */
DIBS_MUST_CHECK dibs_status
dibs__serve_setup_first(const char *path, char *made_path, size_t size,
                        char token[DIBS__SERVE_TOKEN_SIZE], dibs_error *err);

#endif
