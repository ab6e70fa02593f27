/* script_part.h - what the parts of the script that coordinate share: names and waits.
 * See script.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_LOOPS_SCRIPT_PART_H
#define DIBS_LOOPS_SCRIPT_PART_H

#include "script.h"

/* A wait that the faults hinder ends soon. */
#define BRIEF_MS pace_ms(200)

/* For the peer, which no fault hinders. */
#define LONG_MS pace_ms(3000)

typedef char coord_name[48];

/* The thing of this run that a noun names. */
void name_thing(const script *sc, const char *noun, coord_name out);

/* The answer to a wait. */
void told_wait(script *sc, const char *step, dibs_status rc,
               const dibs_error *err);

/* One primitive once, on an open client. */
typedef void primitive(script *sc, dibs_client *cl);

/* The queue (script_queue.c): pushed, acked and looked at; nacked; dead and redriven;
 * detached. */
primitive use_queue, push_batch, nack_item, bury_item, detach_item;

#endif
