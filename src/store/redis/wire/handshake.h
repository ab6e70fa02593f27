/* handshake.h - the first commands on a connection: password, database, name,
 * role. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_HANDSHAKE_H
#define DIBS_STORE_REDIS_WIRE_HANDSHAKE_H

#include "store/redis/wire/conn.h"

/* In one round trip. Statuses as those of dibs__conn_open(). */
DIBS_MUST_CHECK dibs_status dibs__handshake(dibs__conn *cn,
                                            const dibs__redis_conf *conf,
                                            dibsx_nsec deadline,
                                            dibs_error *err);

#endif
