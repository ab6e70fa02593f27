/* host.h - what this machine is called where a client says who it is. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBSX_HOST_H
#define DIBSX_HOST_H

enum { DIBSX_HOST_SIZE = 32 };

/* No name of a machine. It says nothing about which one. */
#define DIBSX_HOST_UNKNOWN "unknown"

/* The host name, shortened; or DIBSX_HOST_UNKNOWN. */
void dibsx_host_name(char out[DIBSX_HOST_SIZE]);

/* A name that does not fit becomes its beginning, `~` and the first six digits of the
 * SHA-1 of all of it, so that two machines do not share one. Pure. */
void dibsx_host_shorten(const char *name, char out[DIBSX_HOST_SIZE]);

#endif
