/* class.h - the class of a lock's name, for labels of metrics: parts that only tell
 * one of many apart become "*". Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_CLASS_H
#define DIBS_SERVE_CLASS_H

#include <dibs/types.h>

enum { DIBS__SERVE_CLASS_MAX = DIBS_NAME_MAX + 1 };

/* "workflow:42:bookmark:7" becomes "workflow:*:bookmark:*". Numbers, UUIDs, ULIDs, and
 * 8 hexadecimal digits or more with a decimal one among them are such parts. */
void dibs__serve_class(const char *name, char out[DIBS__SERVE_CLASS_MAX]);

#endif
