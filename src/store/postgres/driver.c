/* driver.c - the libpq library, loaded when the first server is spoken to.
 *
 * Owns the table of its functions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/driver.h"
#include "base/dynlib.h"
#include "base/once.h"

#define CALL(call) {#call, (void **)&dibs__pq.call},

dibs__pq_calls dibs__pq;

static const dibsx_dynlib_call calls[] = {DIBS__PQ_CALLS(CALL)};
static dibsx_once once = DIBSX_ONCE_INIT;

static dibs_status load_libpq(dibs_error *err)
{
    return dibsx_dynlib_load("libpq.so.5", "libpq5", calls,
                             sizeof(calls) / sizeof(calls[0]), err);
}

dibs_status dibs__pq_load(dibs_error *err)
{
    return dibsx_once_do(&once, load_libpq, err);
}
