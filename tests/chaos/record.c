/* record.c - see record.h. */
/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

key_kind kind_of(uint32_t key)
{
    static const key_kind kinds[KEYS] = {KEY_MUTEX,      KEY_MUTEX,
                                         KEY_STICKY,     KEY_REENTRANT,
                                         KEY_READ_WRITE, KEY_READ_WRITE,
                                         KEY_SEMAPHORE,  KEY_SEMAPHORE};

    return kinds[key];
}

const char *kind_name(key_kind kind)
{
    static const char *const names[] = {"mutex", "sticky mutex",
                                        "reentrant mutex", "read-write lock",
                                        "semaphore"};

    return names[kind];
}

void key_name(uint32_t key, char out[NAME_ROOM])
{
    snprintf(out, NAME_ROOM, "chaos-%u", key);
}

static _Atomic(int64_t) *slept_us;

int64_t steady_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

int64_t now_ns(void)
{
    return steady_ns() + (slept_us ? atomic_load(slept_us) * 1000 : 0);
}

void share_sleep(const char *folder)
{
    slept_us = map_file(folder, "slept", sizeof(*slept_us));
}

void sleep_machine(int64_t span_us)
{
    atomic_fetch_add(slept_us, span_us);
}

int64_t sleep_us(int64_t ttl_ms, uint64_t dice)
{
    int64_t longest_ms = ttl_ms > CLAIM_MS ? ttl_ms : CLAIM_MS;

    return longest_ms * (int64_t)(1100 + dice % 400);
}

void *map_file(const char *folder, const char *name, size_t size)
{
    char path[PATH_MAX];
    void *mapped = MAP_FAILED;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0)
        mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(fd);
    return mapped;
}

void log_name(uint32_t worker, uint32_t life, char out[NAME_ROOM])
{
    snprintf(out, NAME_ROOM, "log-%u-%u", worker, life);
}
