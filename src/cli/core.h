/* core.h - no core files of dibs itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_CORE_H
#define DIBS_CLI_CORE_H

/* From here on this process leaves no core file: it could have a password in it.
 * To be not dumpable would do as well, but where others' processes are hidden in
 * /proc an outer `dibs run` would not find this one. */
void dibs__core_forbid(void);

/* Before exec: what is run has the limit that dibs was given. Safe after vfork. */
void dibs__core_allow(void);

#endif
