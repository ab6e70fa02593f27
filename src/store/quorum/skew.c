/* skew.c - the clocks of the nodes of a quorum: see skew.h. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/skew.h"

/* Clocks that are slewed run up to this much faster or slower, in parts of a
 * million. */
enum { RATE_PPM = 1000 };

static dibsx_nsec find_middle(const dibs__skew_node *nd)
{
    return nd->least + (nd->most - nd->least) / 2;
}

/* The middle of all; with an even number, between the two. */
static bool find_median(const dibs__skew *sk, dibsx_nsec *out)
{
    dibsx_nsec sorted[DIBS__NODES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < sk->count; i++) {
        size_t at = count;

        if (!sk->nodes[i].known)
            continue;
        for (; at > 0 && sorted[at - 1] > find_middle(&sk->nodes[i]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = find_middle(&sk->nodes[i]);
        count++;
    }
    if (count == 0)
        return false;
    *out = sorted[(count - 1) / 2] +
           (sorted[count / 2] - sorted[(count - 1) / 2]) / 2;
    return true;
}

int64_t dibs__skew_seen(dibs__skew *sk, size_t node, int64_t wall_us,
                        dibsx_nsec sent_at, dibsx_nsec heard_at, int64_t ban_ms)
{
    dibs__skew_node *nd = &sk->nodes[node];
    dibsx_nsec least = wall_us * 1000 - heard_at;
    dibsx_nsec most = wall_us * 1000 - sent_at;
    dibsx_nsec slack = DIBS__SKEW_MS * DIBSX_MS;
    dibsx_nsec jump = 0;

    if (heard_at > nd->seen_at)
        slack += (heard_at - nd->seen_at) / 1000000 * RATE_PPM;
    if (nd->known && least > nd->most + slack)
        jump = least - nd->most;
    else if (nd->known && most < nd->least - slack)
        jump = most - nd->least;
    if (jump != 0)
        nd->ban_until = dibsx_after_ms(heard_at, ban_ms);
    nd->known = true;
    nd->least = least;
    nd->most = most;
    nd->seen_at = heard_at;
    return jump / DIBSX_MS;
}

bool dibs__skew_trusts(const dibs__skew *sk, size_t node, dibsx_nsec now)
{
    const dibs__skew_node *nd = &sk->nodes[node];
    dibsx_nsec slack = DIBS__SKEW_MS * DIBSX_MS;
    dibsx_nsec others;

    if (!nd->known || !find_median(sk, &others))
        return false;
    return now >= nd->ban_until && nd->least <= others + slack &&
           nd->most >= others - slack;
}

int64_t dibs__skew_off_ms(const dibs__skew *sk, size_t node)
{
    dibsx_nsec others;

    if (!sk->nodes[node].known || !find_median(sk, &others))
        return 0;
    return (find_middle(&sk->nodes[node]) - others) / DIBSX_MS;
}

int64_t dibs__skew_wall_us(const dibs__skew *sk, dibsx_nsec now)
{
    dibsx_nsec ahead;

    return find_median(sk, &ahead) ? (now + ahead) / 1000 : 0;
}
