/* client_settings.c - the settings of a client that is opened without a URL. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "core/client_settings.h"

#include "base/url.h"
#include "config/config.h"
#include "config/default_url.h"
#include <string.h>

static dibs__option_set set_of(dibs__client_settings *cs)
{
    return (dibs__option_set){dibs__setting_at, DIBS__SETTING_COUNT,
                              cs->values};
}

/* The value of a setting, or NULL when it has its default. */
static const dibs__option_value *
given(const dibs__client_settings *cs, dibs__setting which)
{
    const dibs__option_value *value = &cs->values[which];

    return value->source > DIBS__FROM_DEFAULT ? value : NULL;
}

static void fill_text(const dibs__client_settings *cs, dibs__setting which,
                      const char **out)
{
    if (!*out && given(cs, which))
        *out = given(cs, which)->text;
}

static void
fill_ms(const dibs__client_settings *cs, dibs__setting which, int64_t *out)
{
    if (*out == 0 && given(cs, which))
        *out = given(cs, which)->number;
}

/* on_unavailable is not among them: a program must know when its lock may exclude
 * nobody. */
static void fill_opts(const dibs__client_settings *cs, dibs_client_opts *opts)
{
    fill_text(cs, DIBS__PREFIX, &opts->prefix);
    fill_text(cs, DIBS__OWNER, &opts->label);
    fill_text(cs, DIBS__DURABILITY, &opts->durability);
    fill_ms(cs, DIBS__TTL, &opts->ttl_ms);
    fill_ms(cs, DIBS__RENEW_EVERY, &opts->renew_every_ms);
    fill_ms(cs, DIBS__STORE_TIMEOUT, &opts->timeout_ms);
    if (given(cs, DIBS__SHARE_STATS) &&
        given(cs, DIBS__SHARE_STATS)->number > 0)
        opts->share_stats = true;
    if (given(cs, DIBS__SHARE_EVENTS) &&
        given(cs, DIBS__SHARE_EVENTS)->number > 0)
        opts->share_events = true;
}

dibs_status
dibs__client_settings_read(dibs__client_settings *cs, const char *url,
                           dibs_client_opts *opts, dibs_error *err)
{
    dibs__option_set set = set_of(cs);
    dibs_status rc = DIBS_OK;

    dibs__values_init(&set);
    dibsx_buf_init(&cs->place, DIBSX_URL_MAX);
    if (!url || !*url) {
        rc = dibs__config_load(&set, err);
        url = cs->values[DIBS__URL].text;
        if (rc == DIBS_OK && opts)
            fill_opts(cs, opts);
    }
    if (rc == DIBS_OK && (!url || strcmp(url, DIBS__DEFAULT_URL) == 0)) {
        rc = dibs__store_default_url(&cs->place, err);
        url = dibsx_buf_text(&cs->place);
    }
    cs->url = url;
    return rc;
}

void dibs__client_settings_fini(dibs__client_settings *cs)
{
    dibs__option_set set = set_of(cs);

    dibs__values_fini(&set);
    dibsx_buf_fini(&cs->place);
}
