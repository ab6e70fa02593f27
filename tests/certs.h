/* certs.h - certificates for tests, made by the openssl command. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_CERTS_H
#define DIBS_TESTS_REDIS_CERTS_H

#include <stdbool.h>

/* Makes in `dir`, each NAME as NAME.pem with NAME.key:
 *   ca, other_ca    two authorities; the second is trusted by nobody
 *   server          for localhost, 127.0.0.1 and ::1
 *   client          for a client
 *   expired         as server, but its time is over
 *   wrong_host      for another host
 *   localhost       for no host: "localhost" is its subject alone
 *   wrong_ca        as server, signed by other_ca
 *   self_signed     as server, signed by itself
 * False when a command failed; what it said is on stderr. */
bool certs_make(const char *dir);

#endif
