/* raw.h - the bare driver, to measure against: one connection, no library.
 *
 * A failure ends the program. One thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_RAW_H
#define DIBS_BENCH_RAW_H

#include <stddef.h>

typedef struct raw raw;

/* Connects to a server of this machine. Close with raw_close(). */
raw *raw_open(int port);

/* Connects to its unix socket, whose path goes to `path`. */
raw *raw_open_unix(raw *r, char *path, size_t room);
void raw_close(raw *r);

/* The least that a lock can cost: SET NX PX, then a script that deletes the key
 * if its value is still the one that was set. */
void raw_pair(raw *r);

/* Does that for `names` names at once, up to 256, `flying` of them on the way
 * together: all are set, then all are deleted. */
void raw_pairs(raw *r, int names, int flying);

/* The least that a count can cost: INCR. And the least that a limit can: INCR and
 * EXPIRE, sent together. */
void raw_count(raw *r);
void raw_limit(raw *r);

/* Does that so many times, with `flying` of them on the way. */
void raw_limit_flying(raw *r, int flying, int times);

/* Tells all who listen; listens from now on; waits until told. One that listens can do
 * nothing else. */
void raw_tell(raw *r);
void raw_listen(raw *r);
void raw_hear(raw *r);

/* The two halves of raw_tell(): sends it; waits for the answer. */
void raw_tell_begin(raw *r);
void raw_tell_end(raw *r);

/* Readable when one that listens has heard something. */
int raw_fd(const raw *r);

/* The server answers no client for so long. */
void raw_pause(raw *r, int span_ms);

/* Pushes to a list; waits for an entry and moves it to another list: the least that a
 * hand-over can cost. */
void raw_push(raw *r, const char *list, const char *text);
void raw_pop(raw *r, const char *list);

/* A number of what INFO says, "used_memory" say. */
long long raw_info(raw *r, const char *name);

/* Processor time of the server since it started. */
double raw_cpu_us(raw *r);

/* Calls of a command, "evalsha" say. */
long long raw_calls(raw *r, const char *command);

/* Sets so many keys with a time to live; deletes them. */
void raw_hold(raw *r, size_t count);
void raw_drop(raw *r, size_t count);

/* The least that their renewal can cost: a script for each `part` of them (100 at most)
 * compares and extends; the scripts are pipelined. */
void raw_renew(raw *r, size_t count, size_t part);

/* Reads all hashes of the database, in steps of SCAN: the least that a list of leases can
 * cost. Answers how many they are. */
size_t raw_list(raw *r);

/* MEMORY USAGE of all keys of the database together, and how many they are. */
long long raw_usage(raw *r, size_t *keys);

#endif
