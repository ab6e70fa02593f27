/* notify.h - telling the service manager how the daemon is: sd_notify(3), without
 * its library. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_NOTIFY_H
#define DIBS_SERVE_NOTIFY_H

/* Sends lines such as "READY=1\nSTATUS=..." to the socket of NOTIFY_SOCKET. A no-op
 * without one. Any thread. */
void dibs__serve_notify(const char *lines);

/* RELOADING=1, which needs the time on the manager's clock. */
void dibs__serve_notify_reloading(void);

/* How often WATCHDOG=1 is to be sent; 0: never. */
long dibs__serve_watchdog_ms(void);

#endif
