/* data_json.h - headers and metadata as JSON, for every program that shows them. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SHOW_DATA_JSON_H
#define DIBS_SHOW_DATA_JSON_H

#include "base/json.h"

/* The pair of a header, "key=value". */
void dibs__json_header(dibsx_json *js, const char *header);

/* The pair "meta" of "key=value" texts with a tab between them. */
void dibs__json_meta(dibsx_json *js, const char *meta);

#endif
