/* event_ground.h - what the processes of the event ground share: a file that is mapped
 * into memory. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_EVENT_GROUND_H
#define DIBS_TESTS_CHAOS_EVENT_GROUND_H

#include "ground.h"
#include "record.h"

enum { GROUPS = 2 };

#define EVENT_CONTROL "control"
#define EVENT_TOPIC   "chaos-events"

typedef struct event_control {
    char url[URL_ROOM];
    int64_t ttl_ms;
    _Atomic uint64_t next_seq; /* the last event that somebody publishes */
    _Atomic uint64_t told; /* a position that was answered, not the newest */
    atomic_bool published; /* nothing more is to be published */
    atomic_bool over;
} event_control;

/* Processes: they take part until they are told to end, and return the exit code. */
int event_publisher(const char *folder, uint64_t who);
int event_consumer(const char *folder, uint64_t group, uint64_t who);
int event_trimmer(const char *folder);

#endif
