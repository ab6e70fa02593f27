/* hosting.h - what the servers that tests start have in common, whichever they are:
 * a free port, a folder, their log, their end. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_HOSTING_H
#define DIBS_TESTS_HOSTING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A port of 127.0.0.1 on which nobody listens just now, and which no other test is
 * given while this process lasts; -1 when none was found. It
 * is none of those that the kernel picks for connections: a client that calls a port
 * where nobody listens could otherwise be given that very port and speak to
 * itself. */
int hosting_free_port(void);

/* Where temporary files go: TMPDIR, or /tmp when that is too long for addresses of
 * sockets. */
const char *hosting_base(void);

/* Makes a folder there for a server of that kind; "" and false when it cannot.
 * Remove it with hosting_remove(). */
bool hosting_folder(const char *kind, char *out, size_t size);
void hosting_remove(const char *path); /* with all that is in it */

/* A name of the library that LD_PRELOAD takes, which splits at blanks and colons: its
 * path, or that of a link to it. */
const char *hosting_preload(const char *library);

/* Shows a file of the folder on stderr, as the reason for not coming up. */
void hosting_show_log(const char *folder, const char *name);

/* Waits until a child has ended; its status. */
int hosting_await_end(pid_t pid);

/* Whether it has ended by now; *pid is 0 then. */
bool hosting_has_ended(pid_t *pid);

#endif
