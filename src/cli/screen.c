/* screen.c - a terminal that a verb draws on again and again. Main thread; signals are
 * blocked and read from a descriptor, together with the keys. */
/* SPDX-License-Identifier: MIT */
#include "cli/screen.h"

#include "base/buf.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The second screen, without a cursor, where long lines end at the edge; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define HOME  "\033[H"
#define BELOW                                                                  \
    "\033[K\033[J" /* clears the rest of this line, and what is below */
#define NEXT "\033[K\n"

enum { USUAL_ROWS = 24, USUAL_COLUMNS = 80, DRAWING_MAX = 16 * 1024 * 1024 };

bool dibs__screen_fit(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* False when the terminal does not take it. */
static bool put(const char *text, size_t len)
{
    struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};

    while (len > 0) {
        ssize_t done = write(STDOUT_FILENO, text, len);

        if (done < 0 && (errno != EAGAIN || poll(&ready, 1, -1) < 0))
            return false;
        if (done > 0) {
            text += done;
            len -= (size_t)done;
        }
    }
    return true;
}

void dibs__screen_init(dibs__screen *screen)
{
    *screen = (dibs__screen){.signals = -1};
    screen->keys = tcgetattr(STDIN_FILENO, &screen->before) == 0;
}

void dibs__screen_fini(dibs__screen *screen)
{
    dibs__screen_leave(screen);
    if (screen->signals >= 0)
        close(screen->signals);
    screen->signals = -1;
}

void dibs__screen_enter(dibs__screen *screen)
{
    struct termios now = screen->before;

    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    if (screen->keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    (void)put(ENTER, strlen(ENTER));
    screen->entered = true;
}

void dibs__screen_leave(dibs__screen *screen)
{
    if (!screen->entered)
        return;
    screen->entered = false;
    (void)put(LEAVE, strlen(LEAVE));
    if (screen->keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
}

void dibs__screen_size(size_t *rows, size_t *columns)
{
    struct winsize size = {.ws_row = 0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *rows = size.ws_row > 0 ? size.ws_row : USUAL_ROWS;
    *columns = size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
}

bool dibs__screen_draw(dibs__screen *screen, const char *lines)
{
    dibsx_buf out;
    bool done;

    dibsx_buf_init(&out, DRAWING_MAX);
    dibsx_buf_puts(&out, HOME);
    for (;;) {
        size_t len = strcspn(lines, "\n");

        dibsx_buf_add(&out, lines, len);
        lines += len;
        if (!lines[0] || !lines[1])
            break;
        dibsx_buf_puts(&out, NEXT);
        lines++;
    }
    dibsx_buf_puts(&out, BELOW);
    if (!screen->entered)
        dibs__screen_enter(screen);
    done = dibsx_buf_ok(&out) && put(out.data, out.len);
    dibsx_buf_fini(&out);
    return done;
}

/* Stopped by the terminal or from elsewhere: a shell may have used it meanwhile. */
static dibs__screen_event take_signal(dibs__screen *screen, int *value)
{
    struct signalfd_siginfo info;

    if (read(screen->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return DIBS__SCREEN_DRAW;
    *value = (int)info.ssi_signo;
    if (dibs__signal_fatal(*value)) {
        dibs__screen_leave(screen);
        return DIBS__SCREEN_SIGNAL;
    }
    if (*value == SIGTSTP) {
        dibs__screen_leave(screen);
        (void)dibs__signal_stop(false);
    }
    if (*value == SIGTSTP || *value == SIGCONT)
        dibs__screen_enter(screen);
    return DIBS__SCREEN_DRAW;
}

static dibs__screen_event take_key(dibs__screen *screen, int *value)
{
    unsigned char key;

    if (read(STDIN_FILENO, &key, 1) != 1) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
        screen->keys = false;
        return DIBS__SCREEN_DRAW;
    }
    *value = key;
    return DIBS__SCREEN_KEY;
}

/* The time is over. Without a descriptor, signals are looked for now. */
static dibs__screen_event
take_time(dibs__screen *screen, const dibs__signals *sig, int *value)
{
    *value = screen->signals < 0 ? dibs__signals_pending(sig) : 0;
    if (*value == 0)
        return DIBS__SCREEN_TIME;
    dibs__screen_leave(screen);
    return DIBS__SCREEN_SIGNAL;
}

dibs__screen_event
dibs__screen_rest(dibs__screen *screen, const dibs__signals *sig,
                  int64_t span_ms, int *value)
{
    struct pollfd ready[2];

    if (screen->signals < 0)
        screen->signals =
            signalfd(-1, &sig->served, SFD_CLOEXEC | SFD_NONBLOCK);
    ready[0] = (struct pollfd){.fd = screen->signals, .events = POLLIN};
    ready[1] = (struct pollfd){.fd = screen->keys ? STDIN_FILENO : -1,
                               .events = POLLIN};
    if (poll(ready, 2, (int)span_ms) <= 0)
        return take_time(screen, sig, value);
    return ready[0].revents ? take_signal(screen, value)
                            : take_key(screen, value);
}
