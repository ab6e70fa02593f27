/* dynlib.h - driver libraries, loaded when they are first needed.
 *
 * A program that never opens a store of some kind never loads its driver. The
 * table of functions is written once, as an X-macro, by the folder that owns
 * the driver. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_DYNLIB_H
#define DIBS_BASE_DYNLIB_H

#include <dibs/types.h>

typedef struct dibsx_dynlib_call {
    const char *symbol;
    void **slot; /* where its address goes */
} dibsx_dynlib_call;

/* Loads `soname` (never unloaded) and fills every slot. DIBS_UNAVAIL with what
 * to install (`package`) when the library or a symbol is missing; slots are
 * then undefined. */
DIBS_MUST_CHECK dibs_status dibsx_dynlib_load(const char *soname,
                                              const char *package,
                                              const dibsx_dynlib_call *calls,
                                              size_t count, dibs_error *err);

#endif
