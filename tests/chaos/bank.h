/* bank.h - what the locks protect: a process that remembers the highest fence of
 * each key and refuses what comes with an older one.
 *
 * An account is read under a fence and written under it, as one more than what
 * was read. When every fence is given out once and rises, no such step is ever
 * lost, whatever becomes of the locks. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_BANK_H
#define DIBS_TESTS_CHAOS_BANK_H

#include "record.h"

/* Serves on the socket `bank.socket` of the folder until it is ended; the exit
 * status. */
int bank_main(const char *folder);

/* Connects; -1 when there is no bank. */
int bank_connect(const char *folder);

/* Puts one request and takes the answer into accepted and, of a read, value.
 * False when the bank is gone. */
bool bank_ask(int fd, bank_entry *entry);

#endif
