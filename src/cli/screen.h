/* screen.h - a terminal that a verb draws on again and again.
 *
 * The verb enters the second screen of the terminal, reads single keys, and leaves
 * everything as it was: at its end, when it is stopped, and before a signal ends it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_SCREEN_H
#define DIBS_CLI_SCREEN_H

#include "exec/signals.h"
#include <stddef.h>
#include <stdint.h>
#include <termios.h>

typedef struct dibs__screen {
    struct termios before; /* valid if `keys` */
    bool keys;             /* stdin is a terminal, and not at its end */
    bool entered;
    int signals; /* signalfd; -1 until the first rest */
} dibs__screen;

/* True when stdout is a terminal that can be drawn on. */
bool dibs__screen_fit(void);

/* End with dibs__screen_fini(), which also leaves. Entering and leaving may be
 * repeated. */
void dibs__screen_init(dibs__screen *screen);
void dibs__screen_fini(dibs__screen *screen);
void dibs__screen_enter(dibs__screen *screen);
void dibs__screen_leave(dibs__screen *screen);

/* As large as it is now. */
void dibs__screen_size(size_t *rows, size_t *columns);

/* Shows these lines in place of those before. False when that failed: the terminal is
 * gone, or there is no memory. */
bool dibs__screen_draw(dibs__screen *screen, const char *lines);

typedef enum dibs__screen_event {
    DIBS__SCREEN_TIME,   /* the time is over */
    DIBS__SCREEN_KEY,    /* `value` is the key */
    DIBS__SCREEN_DRAW,   /* the screen has another size, or was another's */
    DIBS__SCREEN_SIGNAL, /* `value` is a signal that ends the process; the screen
                          * has been left */
} dibs__screen_event;

/* Waits for one of these, so long at most. */
dibs__screen_event
dibs__screen_rest(dibs__screen *screen, const dibs__signals *sig,
                  int64_t span_ms, int *value);

#endif
