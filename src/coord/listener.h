/* listener.h - what a viewer needs of its listener and programs do not.
 *
 * Any thread. Locks: none held. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_LISTENER_H
#define DIBS_COORD_LISTENER_H

#include <dibs/events.h>

/* A call begins that uses the client as well, and ends: the client is not closed
 * between. */
void dibs__listener_begin(dibs_listener *listener);
void dibs__listener_end(dibs_listener *listener);

#endif
