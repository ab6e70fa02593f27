/* park.c - a place on which one thread sleeps, made of a futex. */
/* SPDX-License-Identifier: MIT */
#include "base/park.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ASLEEP = -1 };

/* The kernel's timer stands still while the machine is suspended, so the clock
 * is looked at this often. */
#define NAP_MAX DIBSX_SEC

void dibsx_park_clear(dibsx_park *park)
{
    atomic_store(&park->word, 0);
}

int dibsx_park_look(dibsx_park *park)
{
    int word = atomic_load_explicit(&park->word, memory_order_acquire);

    return word > 0 ? word : 0;
}

static void nap(dibsx_park *park, dibsx_nsec span)
{
    struct timespec ts = {.tv_sec = (time_t)(span / DIBSX_SEC),
                          .tv_nsec = (long)(span % DIBSX_SEC)};

    (void)syscall(SYS_futex, &park->word, FUTEX_WAIT_PRIVATE, ASLEEP, &ts, NULL,
                  0);
}

int dibsx_park_wait(dibsx_park *park, dibsx_nsec until)
{
    int none = 0;

    if (!atomic_compare_exchange_strong(&park->word, &none, ASLEEP) && none > 0)
        return none;
    for (;;) {
        dibsx_nsec left = until - dibsx_now();
        int word;

        if (left > 0)
            nap(park, left < NAP_MAX ? left : NAP_MAX);
        word = dibsx_park_look(park);
        if (word || left <= 0)
            return word;
    }
}

bool dibsx_park_post(dibsx_park *park, int what)
{
    return atomic_exchange(&park->word, what) == ASLEEP;
}

void dibsx_park_wake(dibsx_park *park)
{
    (void)syscall(SYS_futex, &park->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
