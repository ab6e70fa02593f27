/* driver.c - libmicrohttpd, loaded when the first server is started.
 *
 * Owns the table of its functions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "http/driver.h"
#include "base/dynlib.h"
#include "base/once.h"

#define CALL(call) {#call, (void **)&dibs__mhd.call},

dibs__mhd_calls dibs__mhd;

static const dibsx_dynlib_call calls[] = {DIBS__MHD_CALLS(CALL)};
static dibsx_once once = DIBSX_ONCE_INIT;

static dibs_status load(dibs_error *err)
{
    return dibsx_dynlib_load("libmicrohttpd.so.12", "libmicrohttpd12", calls,
                             sizeof(calls) / sizeof(calls[0]), err);
}

dibs_status dibs__mhd_load(dibs_error *err)
{
    return dibsx_once_do(&once, load, err);
}
