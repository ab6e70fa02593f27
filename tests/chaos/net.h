/* net.h - a network of our own, in which hosts can be cut off.
 *
 * Each host is an address on the loopback device of a network namespace that only
 * this process and its children see. A host that is cut off loses its address:
 * what is sent to it and by it vanishes, without a word to anybody, and its
 * connections live on. Two hosts can be parted in the same way, while others reach
 * both: servers speak from their own address, and who has none, as the workers,
 * from that of the server it speaks to. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_NET_H
#define DIBS_TESTS_CHAOS_NET_H

#include <stdbool.h>

enum { NET_HOST = 24 };

/* Before any thread is started. False when there is none: it takes root, and
 * ip(8). */
bool net_enter(void);

/* Whether it was entered: else all hosts are on loopback. */
bool net_is_ours(void);

/* Makes a host; the same number is the same host. */
bool net_host(int number, char out[NET_HOST]);

bool net_cut(int number);
bool net_mend(int number);

/* Nothing passes between the two any more; of a host and itself, between it and
 * those who have no address. Not to be done twice. */
bool net_part(int one, int other);

/* Undoes all of net_part(). */
bool net_join(void);

#endif
