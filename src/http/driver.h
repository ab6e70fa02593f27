/* driver.h - libmicrohttpd, loaded when the first server is started.
 *
 * Nothing links to it: its functions are called through the table below,
 * `dibs__mhd.MHD_run(...)`. Only the loop thread of a server calls them, save for
 * reading the request while its connection is suspended. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_DRIVER_H
#define DIBS_HTTP_DRIVER_H

#include <dibs/types.h>
#include <microhttpd.h>

#define DIBS__MHD_CALLS(X)                                                     \
    X(MHD_add_response_header)                                                 \
    X(MHD_create_response_from_buffer)                                         \
    X(MHD_destroy_response)                                                    \
    X(MHD_get_connection_info)                                                 \
    X(MHD_get_connection_values)                                               \
    X(MHD_get_daemon_info)                                                     \
    X(MHD_get_timeout)                                                         \
    X(MHD_lookup_connection_value)                                             \
    X(MHD_queue_response)                                                      \
    X(MHD_quiesce_daemon)                                                      \
    X(MHD_resume_connection)                                                   \
    X(MHD_run)                                                                 \
    X(MHD_start_daemon)                                                        \
    X(MHD_stop_daemon)                                                         \
    X(MHD_suspend_connection)

#define DIBS__MHD_SLOT(call) __typeof__(call) *call;

typedef struct dibs__mhd_calls {
    DIBS__MHD_CALLS(DIBS__MHD_SLOT)
} dibs__mhd_calls;

/* Filled by dibs__mhd_load(), constant afterwards. */
extern dibs__mhd_calls dibs__mhd;

/* Any thread; the first success is for good. DIBS_UNAVAIL: not installed, and
 * err says what to install. */
DIBS_MUST_CHECK dibs_status dibs__mhd_load(dibs_error *err);

#endif
