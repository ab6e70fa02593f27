/* pg_clock.h - a clock for servers that can be set while they run: that of the
 * machine, ahead by as much as is said (tests/chaos/clock_shim.c). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_POSTGRES_PG_CLOCK_H
#define DIBS_TESTS_POSTGRES_PG_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Makes it; all servers that are started from then on go by it, until it is
 * removed. False when it cannot be made; why is on stderr. */
bool pg_clock_make(void);
void pg_clock_remove(void);

/* Sets it forward, or back. */
void pg_clock_step(int64_t by_us);

/* What a server needs in its environment, words up to a NULL; none without a
 * clock. */
const char *const *pg_clock_env(void);

#endif
