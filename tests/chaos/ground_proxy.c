/* ground_proxy.c - see ground_proxy.h. */
/* SPDX-License-Identifier: MIT */
#include "ground_proxy.h"

proxy ground_px;

bool px_strike_delay(int lane, uint64_t dice)
{
    (void)lane;
    proxy_slow(&ground_px, (int)(dice % 50), 1 + (int)(dice / 64 % 100), 0);
    return true;
}

bool px_strike_rate(int lane, uint64_t dice)
{
    (void)lane;
    proxy_slow(&ground_px, 0, 0, 2000 + (long)(dice % 20000));
    return true;
}

bool px_heal_slow(int lane)
{
    (void)lane;
    proxy_slow(&ground_px, 0, 0, 0);
    return true;
}

bool px_strike_drop(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    proxy_set_mode(&ground_px, PROXY_DROP);
    return true;
}

bool px_strike_hole(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    proxy_set_mode(&ground_px, PROXY_HOLE);
    return true;
}

bool px_strike_half(int lane, uint64_t dice)
{
    (void)lane;
    (void)dice;
    proxy_set_mode(&ground_px, PROXY_HALF_OPEN);
    return true;
}

bool px_heal_mode(int lane)
{
    (void)lane;
    proxy_set_mode(&ground_px, PROXY_PASS);
    return true;
}

bool px_strike_reset(int lane, uint64_t dice)
{
    (void)lane;
    atomic_store(&ground_px.reset, dice / 1024 % 2 == 0);
    proxy_arm(&ground_px, (long)(dice % 1024));
    return true;
}
