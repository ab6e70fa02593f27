/* seat.c - see seat.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/seat.h"
#include <stdio.h>

enum { FACT_MAX = 128 };

void dibs__seat_seen(void *arg, const dibs__serve_picture *before,
                     const dibs__serve_picture *now)
{
    dibs__serve_seat *seat = arg;
    char version[FACT_MAX], epoch[FACT_MAX], board[FACT_MAX];
    const char *const facts[] = {version, epoch, board,
                                 seat->engine ? "engine=on" : "engine=off",
                                 NULL};
    dibs_status rc;

    (void)before;
    if (seat->member || seat->refused || now->rc != DIBS_OK)
        return;
    (void)snprintf(version, sizeof(version), "version=%s", dibs_version());
    (void)snprintf(epoch, sizeof(epoch), "epoch=%s", seat->epoch);
    (void)snprintf(board, sizeof(board), "board=%s", seat->board);
    rc = dibs_member_join(seat->cl, DIBS__SERVE_NODES,
                          DIBS_MEMBER_OPTS(.ttl_ms = seat->ttl_ms,
                                           .meta = facts),
                          &seat->member, NULL);
    /* After any other failure the next look tries again. */
    seat->refused = rc == DIBS_UNSUPPORTED;
}

void dibs__seat_fini(dibs__serve_seat *seat)
{
    dibs_member_leave(seat->member);
    seat->member = NULL;
}
