/* worker_pulse.c - a thread that writes down when its process was not run: the machine had
 * others to run, or the process was stopped. What is late then is not the library's. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <poll.h>

enum { PULSE_MS = 20, PAUSE_MS = 50 };

static void *pulse(void *arg)
{
    worker *wk = arg;
    int64_t last_ns = now_ns();

    while (atomic_load(&wk->beats)) {
        int64_t at_ns;
        record *rec = NULL;

        poll(NULL, 0, PULSE_MS);
        at_ns = now_ns();
        if (at_ns - last_ns > PAUSE_MS * INT64_C(1000000))
            rec = worker_begin(wk, OP_PAUSE, 0);
        if (rec) {
            rec->invoked_ns = last_ns;
            rec->returned_ns = at_ns;
        }
        last_ns = at_ns;
    }
    return NULL;
}

void worker_pulse_begin(worker *wk)
{
    dibs_error err = {0};

    atomic_store(&wk->beats, true);
    if (pthread_create(&wk->pulse, NULL, pulse, wk) != 0)
        worker_must(DIBS_NOMEM, &err);
}

void worker_pulse_end(worker *wk)
{
    atomic_store(&wk->beats, false);
    pthread_join(wk->pulse, NULL);
}
