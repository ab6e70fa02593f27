/* coord.h - the parts of bench_coord.c, which says what each of them measures. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BENCH_COORD_H
#define DIBS_BENCH_COORD_H

#include "bench/work.h"

/* Breakers. */
void measure_enter(const ground *on, size_t blocks);
void measure_enter4(const ground *on, size_t blocks);
void measure_call(const ground *on, size_t blocks);
void measure_call4(const ground *on, size_t blocks);
void measure_refused(const ground *on, size_t blocks);
void measure_refused4(const ground *on, size_t blocks);
void measure_trip(const ground *on, size_t rounds);
void measure_trips(const ground *on, size_t rounds);

/* Elections. measure_lead() leads until the process ends. */
void measure_leader(const ground *on, size_t rounds);
void measure_kill(const ground *on, size_t rounds);
void measure_loss(const ground *on, size_t rounds);
void measure_lead(const ground *on, size_t unused);

#endif
