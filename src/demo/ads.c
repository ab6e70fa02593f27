/* ads.c - the value that the workers share: read, written, shown.
 *
 * Owns nothing; callable from any thread. */
/* SPDX-License-Identifier: MIT */
#include "demo/ads.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json_read.h"
#include "demo/demo.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_MAX = 4096 };

void dibs__demo_ad_fill(dibs__demo_ad *ad, int id, const char *format, ...)
{
    va_list args;

    snprintf(ad->id, sizeof(ad->id), "worker-%d", id);
    va_start(args, format);
    vsnprintf(ad->name, sizeof(ad->name), format, args);
    va_end(args);
    dibsx_wall_text(dibsx_wall_us(), ad->time, sizeof(ad->time));
}

static bool
take_text(const dibsx_json_node *map, const char *key, char *out, size_t size)
{
    const dibsx_json_node *node = dibsx_json_get(map, key);

    if (!node || node->kind != DIBSX_JSON_TEXT || node->len >= size)
        return false;
    memcpy(out, node->text, node->len + 1);
    return true;
}

static dibs_status
parse(const dibs_value *value, dibs__demo_ad *ad, dibs_error *err)
{
    dibsx_json_doc doc = {NULL, NULL};
    dibs_status rc = value->len > VALUE_MAX ? DIBS_INVALID : DIBS_OK;

    if (rc == DIBS_OK)
        rc = dibsx_json_read(value->data, value->len, &doc, err);
    if (rc == DIBS_OK &&
        !(take_text(doc.root, "id", ad->id, sizeof(ad->id)) &&
          take_text(doc.root, "name", ad->name, sizeof(ad->name)) &&
          take_text(doc.root, "time", ad->time, sizeof(ad->time))))
        rc = DIBS_INVALID;
    if (rc == DIBS_INVALID)
        dibsx_fail(err, rc,
                   "what is under " DIBS__DEMO_VALUE
                   " was not written by this program");
    dibsx_json_doc_fini(&doc);
    return rc;
}

dibs_status dibs__demo_ad_get(dibs_client *data, dibs__demo_ad *ad,
                              uint64_t *version, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc = dibs_state_get(data, DIBS__DEMO_VALUE, &value, err);

    *version = DIBS_VERSION_NONE;
    if (rc == DIBS_OK) {
        *version = value.version;
        rc = parse(&value, ad, err);
    }
    dibs_value_free(&value);
    return rc;
}

dibs_status dibs__demo_ad_put(dibs_client *data, const dibs__demo_ad *ad,
                              uint64_t version, dibs_error *err)
{
    dibs_status rc;
    dibsx_json js;
    dibsx_buf text;

    dibsx_buf_init(&text, VALUE_MAX);
    dibsx_json_init(&js, &text);
    dibs__demo_ad_json(&js, ad);
    if (dibsx_buf_ok(&text))
        rc = dibs_state_cas(data, DIBS__DEMO_VALUE, version, text.data,
                            text.len, 0, NULL, err);
    else
        rc = dibsx_nomem(err, "the value");
    dibsx_buf_fini(&text);
    return rc;
}

void dibs__demo_ad_json(dibsx_json *js, const dibs__demo_ad *ad)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "id", ad->id);
    dibsx_json_pair_text(js, "name", ad->name);
    dibsx_json_pair_text(js, "time", ad->time);
    dibsx_json_close(js, '}');
}

void dibs__demo_ad_text(const dibs__demo_ad *ad, char *out, size_t size)
{
    snprintf(out, size, "{ id: '%s', name: '%s', time: '%s' }", ad->id,
             ad->name, ad->time);
}
