/* no_core_dump.h - no core files of dibs itself. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_NO_CORE_DUMP_H
#define DIBS_EXEC_NO_CORE_DUMP_H

/* From here on this process leaves no core file: it could have a password in it.
 * To be not dumpable would do as well, but where others' processes are hidden in
 * /proc an outer `dibs run` would not find this one. */
void dibs__core_dump_forbid(void);

/* Before exec: what is run has the limit that dibs was given. Safe after vfork. */
void dibs__core_dump_allow(void);

/* After posix_spawn, which takes no limits, and before which it was allowed. */
void dibs__core_dump_forbid_again(void);

#endif
