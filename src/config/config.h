/* config.h - settings from the environment and from configuration files. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_CONFIG_H
#define DIBS_CONFIG_CONFIG_H

#include "config/option_value.h"

#define DIBS__CONFIG_SYSTEM "/etc/dibs/dibs.yaml"
#define DIBS__CONFIG_USER   "dibs/config.yaml" /* under $XDG_CONFIG_HOME */

/* Adds DIBS_* variables and the files to what the flags said, if
 * there were any. Every setting is
 * checked, also those that the caller has no use for. On failure the message
 * names the variable, or file, line and column. */
DIBS_MUST_CHECK dibs_status dibs__config_load(const dibs__option_set *set,
                                              dibs_error *err);

/* The part of it that reads one file's text; `file` is for messages. */
DIBS_MUST_CHECK dibs_status dibs__config_text(const dibs__option_set *set,
                                              const char *text, size_t len,
                                              const char *file,
                                              dibs_error *err);

/* Where the user's file would be; false when there is no home. */
bool dibs__config_user_path(char *out, size_t size);

#endif
