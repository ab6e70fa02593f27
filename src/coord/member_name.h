/* member_name.h - the name that a member or a candidate gives itself: "member=NAME", the
 * first of its metadata. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_MEMBER_NAME_H
#define DIBS_COORD_MEMBER_NAME_H

#include "base/fail.h"

enum { DIBS__MEMBER_SIZE = 64, DIBS__MEMBER_META = DIBS__MEMBER_SIZE + 8 };

DIBS_MUST_CHECK dibs_status dibs__member_check_name(const char *member,
                                                    dibs_error *err);

/* Writes the metadata of a name that was checked. */
void dibs__member_write_name(const char *member, char out[DIBS__MEMBER_META]);

/* Reads the name from metadata, and moves *meta behind it. False, and "": there is none.
 * A name that does not fit is cut. */
bool dibs__member_read_name(const char **meta, char *out, size_t size);

#endif
