/* ground_proxy.h - a proxy before a server, and what it can do to both sides. The
 * faults are for a lane of their own. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_GROUND_PROXY_H
#define DIBS_TESTS_CHAOS_GROUND_PROXY_H

#include "ground.h"
#include "proxy.h"

/* Started and stopped by the ground. */
extern proxy ground_px;

bool px_strike_delay(int lane, uint64_t dice);
bool px_strike_rate(int lane, uint64_t dice);
bool px_heal_slow(int lane);
bool px_strike_drop(int lane, uint64_t dice);
bool px_strike_hole(int lane, uint64_t dice);
bool px_strike_half(int lane, uint64_t dice);
bool px_heal_mode(int lane);
bool px_strike_reset(int lane, uint64_t dice);

#endif
