/* attempt_world.c - see attempt_world.h. */
/* SPDX-License-Identifier: MIT */
#include "attempt_world.h"

#include "base/clock.h"
#include "child.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Only a hang reaches it. */
enum { PATIENCE_MS = 20000 };

int world_make(void **state)
{
    world *w = calloc(1, sizeof *w);
    w->fds = open_fds();
    CHECK(DIBS_OK, dibs__executor_open(WORLD_SLOTS, NULL, &w->ex, err));
    *state = w;
    return 0;
}

int world_drop(void **state)
{
    world *w = *state;
    dibs__executor_close(w->ex);
    assert_int_equal(open_fds(), w->fds);
    free(w);
    return 0;
}

dibs__attempt_spec world_spec(const char *shell)
{
    static char *const env[] = {(char *)(size_t) "PATH=/usr/bin:/bin", NULL};
    return (dibs__attempt_spec){.shell = shell,
                                .env = env,
                                .kill_after_ms = 100,
                                .output_keep = 64 * 1024,
                                .output_head = 16 * 1024};
}

dibs__attempt *world_start(world *w, const dibs__attempt_spec *spec)
{
    dibs__attempt *at = NULL;
    CHECK(DIBS_OK, dibs__attempt_start(w->ex, spec, w, &at, err));
    assert_ptr_equal(dibs__attempt_arg(at), w);
    return at;
}

dibs__attempt *world_shell(world *w, const char *shell)
{
    dibs__attempt_spec spec = world_spec(shell);
    return world_start(w, &spec);
}

static void serve_once(world *w, dibsx_nsec give_up_at)
{
    struct pollfd fd = {dibs__executor_fd(w->ex), POLLIN, 0};
    (void)poll(&fd, 1, 1000);
    dibs__executor_process(w->ex);
    IN_TIME(dibsx_now() < give_up_at);
}

dibs__attempt_end world_await(world *w, dibs__attempt *at)
{
    dibsx_nsec give_up_at = dibsx_after_ms(dibsx_now(), pace_ms(PATIENCE_MS));
    while (dibs__attempt_result(at).reason == DIBS__ATTEMPT_RUNNING)
        serve_once(w, give_up_at);
    while (dibs__executor_ended(w->ex))
        ;
    return dibs__attempt_result(at);
}

const char *world_text(world *w, dibs__attempt *at)
{
    dibsx_buf text;
    dibsx_buf_init(&text, WORLD_TEXT - 1);
    (void)dibs__attempt_output(at, &text, &text);
    assert_true(dibsx_buf_ok(&text));
    memcpy(w->text, dibsx_buf_text(&text), text.len + 1);
    dibsx_buf_fini(&text);
    return w->text;
}

pid_t world_number(world *w, dibs__attempt *at, const char *word)
{
    dibsx_nsec give_up_at = dibsx_after_ms(dibsx_now(), pace_ms(PATIENCE_MS));
    for (;;) {
        const char *found = strstr(world_text(w, at), word);
        if (found && strchr(found, '\n'))
            return (pid_t)strtol(found + strlen(word), NULL, 10);
        IN_TIME(dibs__attempt_result(at).reason != DIBS__ATTEMPT_TIMEOUT);
        if (dibs__attempt_result(at).reason != DIBS__ATTEMPT_RUNNING)
            fail_msg("no \"%s\": %s %s", word, w->text,
                     dibs__attempt_result(at).message);
        serve_once(w, give_up_at);
    }
}

/* "pid (name) state ppid". */
static bool
read_stat(pid_t pid, char *state, pid_t *parent, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t got = fread(text, 1, size - 1, file);
    (void)fclose(file);
    text[got] = '\0';
    char *at = strrchr(text, ')');
    if (!at || strlen(at) < 5)
        return false;
    *state = at[2];
    *parent = (pid_t)strtol(at + 4, NULL, 10);
    return true;
}

bool is_alive(pid_t pid)
{
    char text[512], state = 0;
    pid_t parent = 0;
    return read_stat(pid, &state, &parent, text, sizeof text) && state != 'Z' &&
           state != 'X';
}

void await_death(pid_t pid)
{
    dibsx_nsec give_up_at = dibsx_after_ms(dibsx_now(), pace_ms(PATIENCE_MS));
    while (is_alive(pid)) {
        IN_TIME(dibsx_now() < give_up_at);
        (void)poll(NULL, 0, 1);
    }
}

pid_t parent_of(pid_t pid)
{
    char text[512], state = 0;
    pid_t parent = 0;
    return read_stat(pid, &state, &parent, text, sizeof text) ? parent : -1;
}

pid_t executor_pid(void)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    pid_t found = -1;
    assert_non_null(dir);
    while (found < 0 && (entry = readdir(dir))) {
        char text[512], state = 0;
        pid_t parent = 0, pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && read_stat(pid, &state, &parent, text, sizeof text) &&
            parent == getpid() && strstr(text, "(dibs-executor)"))
            found = pid;
    }
    closedir(dir);
    return found;
}
