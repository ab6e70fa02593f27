/* event.h - eventfds: one thread wakes another that polls. A timerfd is cleared
 * the same way. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_EVENT_H
#define DIBS_BASE_EVENT_H

/* Makes it readable, until it is cleared. Neither blocks, and a signal does not keep
 * them from it: who waits for a thread that was not told to end waits for ever. */
void dibsx_event_set(int fd);
void dibsx_event_clear(int fd);

#endif
