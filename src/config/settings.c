/* settings.c - the table of settings, as the library reads it. */
/* SPDX-License-Identifier: MIT */
#include "config/settings.h"

const dibs__option dibs__settings[DIBS__SETTING_COUNT] = {
    [DIBS__URL] = {DIBS__SETTING_URL},
    [DIBS__PREFIX] = {DIBS__SETTING_PREFIX},
    [DIBS__STORE_TIMEOUT] = {DIBS__SETTING_STORE_TIMEOUT},
    [DIBS__CONFIG] = {DIBS__SETTING_CONFIG},
    [DIBS__COLOR] = {DIBS__SETTING_COLOR},
    [DIBS__LOG_LEVEL] = {DIBS__SETTING_LOG_LEVEL},
    [DIBS__ENABLED] = {DIBS__SETTING_ENABLED},
    [DIBS__WAIT] = {DIBS__SETTING_WAIT},
    [DIBS__TTL] = {DIBS__SETTING_TTL},
    [DIBS__RENEW_EVERY] = {DIBS__SETTING_RENEW_EVERY},
    [DIBS__RETRIES] = {DIBS__SETTING_RETRIES},
    [DIBS__RETRY_DELAY] = {DIBS__SETTING_RETRY_DELAY},
    [DIBS__ON_UNAVAILABLE] = {DIBS__SETTING_ON_UNAVAILABLE},
    [DIBS__DURABILITY] = {DIBS__SETTING_DURABILITY},
    [DIBS__OWNER] = {DIBS__SETTING_OWNER},
    [DIBS__SHARE_STATS] = {DIBS__SETTING_SHARE_STATS},
    [DIBS__KILL_AFTER] = {DIBS__SETTING_KILL_AFTER},
    [DIBS__DATA_URL] = {DIBS__SETTING_DATA_URL},
};

const dibs__option *dibs__setting_at(size_t i)
{
    return &dibs__settings[i];
}
