/* pg_clock.c - see pg_clock.h. The folder has a copy of the shim beside the clock,
 * so that a server of another user can read both. */
/* SPDX-License-Identifier: MIT */
#include "pg_clock.h"

#include "hosting.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_LEN = 64 };

static char folder[PATH_LEN], shim[PATH_LEN], ahead[PATH_LEN];
static char preload[PATH_LEN + 16], path[PATH_LEN + 16];
static const char *words[3];
static _Atomic(int64_t) *ahead_us;

static bool copy(const char *from, const char *to)
{
    char block[16384];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    bool ok = in && out;
    size_t len;

    while (ok && (len = fread(block, 1, sizeof(block), in)) > 0)
        ok = fwrite(block, 1, len, out) == len;
    ok = ok && !ferror(in);
    if (in)
        fclose(in);
    if (out && fclose(out) != 0)
        ok = false;
    return ok && chmod(to, 0755) == 0;
}

static bool map_clock(void)
{
    int fd = open(ahead, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(*ahead_us)) == 0 &&
        fchmod(fd, 0644) == 0)
        at = mmap(NULL, sizeof(*ahead_us), PROT_READ | PROT_WRITE, MAP_SHARED,
                  fd, 0);
    if (fd >= 0)
        close(fd);
    ahead_us = at == MAP_FAILED ? NULL : at;
    return ahead_us != NULL;
}

bool pg_clock_make(void)
{
    if (!hosting_folder("clock", folder, sizeof(folder)))
        return false;
    snprintf(shim, sizeof(shim), "%.48s/shim.so", folder);
    snprintf(ahead, sizeof(ahead), "%.48s/ahead", folder);
    if (chmod(folder, 0755) != 0 || !copy(CLOCK_SHIM_LIBRARY, shim) ||
        !map_clock()) {
        perror(folder);
        pg_clock_remove();
        return false;
    }
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", shim);
    snprintf(path, sizeof(path), "CLOCK_SHIM=%s", ahead);
    words[0] = preload;
    words[1] = path;
    return true;
}

void pg_clock_remove(void)
{
    words[0] = NULL;
    if (ahead_us)
        munmap((void *)ahead_us, sizeof(*ahead_us));
    ahead_us = NULL;
    if (!folder[0])
        return;
    unlink(shim);
    unlink(ahead);
    rmdir(folder);
    folder[0] = '\0';
}

void pg_clock_step(int64_t by_us)
{
    atomic_fetch_add(ahead_us, by_us);
}

const char *const *pg_clock_env(void)
{
    return words;
}
