/* class.h - the class of a lock's name, for labels of metrics: the first rule of the
 * settings that it matches, else the name, in which parts that only tell one of many apart
 * become "*". Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_CLASS_H
#define DIBS_SERVE_CLASS_H

#include <dibs/types.h>

enum { DIBS__SERVE_CLASS_MAX = DIBS_NAME_MAX + 1 };

/* "workflow:42:bookmark:7" becomes "workflow:*:bookmark:*". Numbers, UUIDs, ULIDs, and
 * 8 hexadecimal digits or more with a decimal one among them are such parts. `rules`
 * ("tenant:*:sync,user-*", may be NULL) come first. */
void dibs__serve_class(const char *rules, const char *name,
                       char out[DIBS__SERVE_CLASS_MAX]);

/* Refuses rules of which one is longer than a name. */
DIBS_MUST_CHECK dibs_status dibs__serve_class_check(const char *rules,
                                                    dibs_error *err);

#endif
