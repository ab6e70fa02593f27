/* log.h - lines for the log sink of a client.
 *
 * Owns nothing. The sink is the program's and may be slow, so it is called on the
 * thread that has something to say, without the client's mutex. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOG_H
#define DIBS_CORE_LOG_H

#include "core/client.h"

/* One line to the client's sink, if it wants that level. Locks: none held. */
void dibs__log(const dibs_client *cl, dibs_log_level level, const char *event,
               const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Logs the alarm of the store, if it has one, as a warning. Locks: none
 * held. */
void dibs__log_alarm(const dibs_client *cl, dibs__store *st);

#endif
