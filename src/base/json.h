/* json.h - a JSON writer onto a buffer. Commas and escapes are its business.
 *
 *     dibsx_json_open(&js, '{'); dibsx_json_key(&js, "name");
 *     dibsx_json_text(&js, name); dibsx_json_close(&js, '}');
 *
 * Bytes that are not UTF-8 become U+FFFD, so that the output always parses. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_JSON_H
#define DIBS_BASE_JSON_H

#include "base/buf.h"
#include <stdint.h>

typedef struct dibsx_json {
    dibsx_buf *out; /* borrowed */
    bool comma;     /* the next item needs one before it */
    bool shown;     /* escapes all that a screen may not show; false at first */
} dibsx_json;

void dibsx_json_init(dibsx_json *js, dibsx_buf *out);

void dibsx_json_open(dibsx_json *js, char bracket);  /* '{' or '[' */
void dibsx_json_close(dibsx_json *js, char bracket); /* '}' or ']' */
void dibsx_json_key(dibsx_json *js, const char *key);
void dibsx_json_key_bytes(dibsx_json *js, const char *key, size_t len);
void dibsx_json_text(dibsx_json *js, const char *text); /* NULL: null */
void dibsx_json_bytes(dibsx_json *js, const void *bytes, size_t len);
void dibsx_json_int(dibsx_json *js, int64_t number);
void dibsx_json_uint(dibsx_json *js, uint64_t number);
void dibsx_json_bool(dibsx_json *js, bool truth);
void dibsx_json_null(dibsx_json *js);

/* A key and its value in one call. */
void dibsx_json_pair_text(dibsx_json *js, const char *key, const char *text);
void dibsx_json_pair_int(dibsx_json *js, const char *key, int64_t number);
void dibsx_json_pair_uint(dibsx_json *js, const char *key, uint64_t number);
void dibsx_json_pair_bool(dibsx_json *js, const char *key, bool truth);

#endif
