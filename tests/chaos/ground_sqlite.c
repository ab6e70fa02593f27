/* ground_sqlite.c - the embedded store, on a disk that can be full.
 *
 * As root the database is on a small file system in memory that only this process
 * and its children see; else the run's folder holds it. */
/* SPDX-License-Identifier: MIT */
#include "ground.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TTL_MS = 200 };

static crew *workers;
static char disk[PATH_MAX];         /* where the database is */
static char ballast[PATH_MAX + 16]; /* what fills the disk */
static bool small;                  /* the disk is our own */

static bool mount_disk(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", disk, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m") == 0;
}

static bool begin(crew *cw, char url[URL_ROOM])
{
    workers = cw;
    snprintf(disk, sizeof(disk), "%s/disk", cw->folder);
    snprintf(ballast, sizeof(ballast), "%s/ballast", disk);
    if (mkdir(disk, 0700) != 0) {
        perror(disk);
        return false;
    }
    if (snprintf(url, URL_ROOM, "sqlite:%s/chaos.db", disk) >= URL_ROOM) {
        fprintf(stderr, "chaos: the path of the folder is too long\n");
        return false;
    }
    small = mount_disk();
    return true;
}

static void end(void)
{
    if (small)
        umount2(disk, MNT_DETACH);
}

/* Writes until there is no room, if the disk is our own. */
static bool strike_full(int lane, uint64_t dice)
{
    static const char block[65536];
    int fd = small ? open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

    (void)lane;
    (void)dice;
    while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
        continue;
    if (fd >= 0)
        close(fd);
    return true;
}

static bool heal_full(int lane)
{
    (void)lane;
    unlink(ballast);
    return true;
}

/* No worker can make a file longer than this. */
static bool strike_limit(int lane, uint64_t dice)
{
    (void)lane;
    crew_limit(workers, RLIMIT_FSIZE, (rlim_t)(dice % 8192));
    return true;
}

static bool heal_limit(int lane)
{
    (void)lane;
    crew_limit(workers, RLIMIT_FSIZE, RLIM_INFINITY);
    return true;
}

/* All of them sleep, with the store. */
static bool strike_suspend(int lane, uint64_t dice)
{
    (void)lane;
    sleep_machine(sleep_us(TTL_MS, dice));
    return true;
}

static const ground_fault faults[] = {
    {"full", "the disk is full", 50, 500, 1, FAULT_ROOT, strike_full,
     heal_full},
    {"limit", "no file may grow", 50, 500, 1, 0, strike_limit, heal_limit},
    {SUSPEND, "the machine sleeps for longer than the ttl", 0, 0, 1,
     FAULT_CLOCKS, strike_suspend, NULL},
    {0},
};

const ground ground_sqlite = {
    .name = "sqlite",
    .topology = "sqlite",
    .durability = "async",
    .ttl_ms = TTL_MS,
    .wait_ms = 2000,
    .timeout_ms = 2000,
    .gap_ms = 1500,
    .calm_ms = 6000, /* a lease that was waited for stands for CLAIM_MS */
    .lanes = 1,
    .local = true,
    .faults = faults,
    .begin = begin,
    .end = end,
};
