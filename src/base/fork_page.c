/* fork_page.c - memory that the kernel clears in the child of a fork. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fork_page.h"
#include <sys/mman.h>

void *dibsx_fork_page_map(size_t size)
{
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, size, MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, size);
    return NULL;
}
