/* forget.h - what is left of a secret after it was used. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_FORGET_H
#define DIBS_BASE_FORGET_H

/* Wipes what the functions that were called before have left on the stack of this
 * thread, and in its vector registers: these are where memcpy() has bytes on their
 * way, and the dynamic linker or a signal writes them to the stack. To be called
 * by who has called them, on return from a secret's use. */
void dibsx_forget(void);

#endif
