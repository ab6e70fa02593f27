/* driver.c - the hiredis library, loaded when the first server is spoken to.
 *
 * Owns the table of its functions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/driver.h"
#include "base/dynlib.h"
#include "base/once.h"

/* Layouts differ between releases, so the library must be the one whose header
 * this was compiled with. Debian names the package after it. */
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#ifndef DIBS_HIREDIS_SONAME
#define DIBS_HIREDIS_SONAME "libhiredis.so." TEXT(HIREDIS_SONAME)
#endif
#ifndef DIBS_HIREDIS_PACKAGE
#define DIBS_HIREDIS_PACKAGE "libhiredis" TEXT(HIREDIS_SONAME)
#endif

#define CALL(call) {#call, (void **)&dibs__hi.call},

dibs__hiredis_calls dibs__hi;

static const dibsx_dynlib_call calls[] = {DIBS__HIREDIS_CALLS(CALL)};
static dibsx_once once = DIBSX_ONCE_INIT;

static dibs_status load_hiredis(dibs_error *err)
{
    return dibsx_dynlib_load(DIBS_HIREDIS_SONAME, DIBS_HIREDIS_PACKAGE, calls,
                             sizeof(calls) / sizeof(calls[0]), err);
}

dibs_status dibs__hiredis_load(dibs_error *err)
{
    return dibsx_once_do(&once, load_hiredis, err);
}

void dibs__reply_free(redisReply *reply)
{
    if (reply)
        dibs__hi.freeReplyObject(reply);
}
