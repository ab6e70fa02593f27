/* client_settings.h - one meaning of "no URL": a client that is opened without one
 * is configured as the command `dibs` is.
 *
 * Owns the texts of its settings, for the time of the call that opens. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_CLIENT_SETTINGS_H
#define DIBS_CORE_CLIENT_SETTINGS_H

#include "base/buf.h"
#include "config/option_value.h"
#include "config/settings.h"
#include <dibs/client.h>

typedef struct dibs__client_settings {
    dibs__option_value values[DIBS__SETTING_COUNT];
    dibsx_buf place; /* the URL of the default store */
    const char *url; /* the store to open; borrowed, or in one of the above */
} dibs__client_settings;

/* Without a URL, reads the configuration and fills in what `opts` leaves open;
 * opts (may be NULL) borrows texts until dibs__client_settings_fini(), which the
 * caller calls also after a failure. With a URL, reads nothing. */
DIBS_MUST_CHECK dibs_status
dibs__client_settings_read(dibs__client_settings *cs, const char *url,
                           dibs_client_opts *opts, dibs_error *err);
void dibs__client_settings_fini(dibs__client_settings *cs);

#endif
