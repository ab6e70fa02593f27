/* forget.c - what is left of a secret after it was used.
 *
 * Owns nothing. Any thread: it is about the stack and the registers of the one that
 * calls. */
/* SPDX-License-Identifier: MIT */
#include "base/forget.h"
#include <string.h>

/* The deepest calls under which a secret is handled need less. */
enum { DEPTH = 16 * 1024 };

#if defined(__x86_64__)

/* By hand: nothing that the compiler knows of reaches registers that it was not
 * told to use, and the C library picks its own. */
static void wipe_registers(void)
{
    if (__builtin_cpu_supports("avx512f"))
        __asm__ volatile("vpxorq %%zmm16, %%zmm16, %%zmm16\n\t"
                         "vpxorq %%zmm17, %%zmm17, %%zmm17\n\t"
                         "vpxorq %%zmm18, %%zmm18, %%zmm18\n\t"
                         "vpxorq %%zmm19, %%zmm19, %%zmm19\n\t"
                         "vpxorq %%zmm20, %%zmm20, %%zmm20\n\t"
                         "vpxorq %%zmm21, %%zmm21, %%zmm21\n\t"
                         "vpxorq %%zmm22, %%zmm22, %%zmm22\n\t"
                         "vpxorq %%zmm23, %%zmm23, %%zmm23\n\t"
                         "vpxorq %%zmm24, %%zmm24, %%zmm24\n\t"
                         "vpxorq %%zmm25, %%zmm25, %%zmm25\n\t"
                         "vpxorq %%zmm26, %%zmm26, %%zmm26\n\t"
                         "vpxorq %%zmm27, %%zmm27, %%zmm27\n\t"
                         "vpxorq %%zmm28, %%zmm28, %%zmm28\n\t"
                         "vpxorq %%zmm29, %%zmm29, %%zmm29\n\t"
                         "vpxorq %%zmm30, %%zmm30, %%zmm30\n\t"
                         "vpxorq %%zmm31, %%zmm31, %%zmm31" ::
                             : "memory");
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroall" ::
                             : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                               "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                               "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

#else

/* Elsewhere the next copy of something else does it. */
static void wipe_registers(void)
{
}

#endif

__attribute__((noinline)) static void wipe_stack(void)
{
    char room[DEPTH];

    explicit_bzero(room, sizeof(room));
}

void dibsx_forget(void)
{
    wipe_registers();
    wipe_stack();
}
