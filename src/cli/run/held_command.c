/* held_command.c - see held_command.h. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/held_command.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/run/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct dibs__held_command {
    dibs__guarded g;
    dibs__lock_or_set locks;
    bool has_locks;
    bool was_run;
    int die_of; /* the signal that came before the command; 0: none */
    int code;
};

/* The output of the command: as much as there is room for, and the number of all bytes. It
 * is always taken in, so that the command never waits for a reader. */
typedef struct intake {
    int fd, stop_fd;
    char *data;
    size_t room;
    uint64_t count;
} intake;

/* ---- the output */

/* False: all who could write have gone. */
static bool take_some(intake *in)
{
    char bytes[4096];
    ssize_t got = read(in->fd, bytes, sizeof(bytes));
    size_t fits = in->count < in->room ? in->room - (size_t)in->count : 0;

    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (fits > (size_t)got)
        fits = (size_t)got;
    if (fits > 0)
        memcpy(in->data + in->count, bytes, fits);
    in->count += (uint64_t)got;
    return got > 0;
}

/* The end of the tree ends it too, should somebody outside have the descriptor. */
static void *take_output(void *arg)
{
    intake *in = arg;
    struct pollfd fds[] = {{.fd = in->fd, .events = POLLIN},
                           {.fd = in->stop_fd, .events = POLLIN}};

    for (;;) {
        (void)poll(fds, 2, -1);
        if (fds[0].revents ? !take_some(in) : fds[1].revents != 0)
            return NULL;
    }
}

static dibs_status fail_os(dibs_error *err, const char *what, int number)
{
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number),
                         "cannot %s: %s", what, strerror(number));
}

static dibs_status open_intake(intake *in, int *write_fd, dibs_error *err)
{
    int fds[2] = {-1, -1};

    in->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (in->stop_fd < 0)
        return fail_os(err, "open an eventfd", errno);
    if (pipe2(fds, O_CLOEXEC) != 0)
        return fail_os(err, "open a pipe for the output", errno);
    in->fd = fds[0];
    *write_fd = fds[1];
    if (fcntl(in->fd, F_SETFL, O_NONBLOCK) != 0)
        return fail_os(err, "prepare the pipe for the output", errno);
    return DIBS_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* ---- the command */

int dibs__held_command_new(const dibs__command *cmd, char *const *argv,
                           dibs__held_command **out)
{
    dibs__held_command *hc = dibsx_zalloc(sizeof(*hc));

    *out = hc;
    if (!hc)
        return dibs__cli_nomem("the command");
    dibs__guarded_init(&hc->g, cmd);
    hc->g.opts.argv = argv;
    return dibs__guarded_open(&hc->g, "before another has the lock");
}

dibs_status dibs__held_command_lock(dibs__held_command *hc, dibs_client *cl,
                                    const char *name, dibs_error *err)
{
    dibs_lock_opts opts = *DIBS_LOCK_OPTS(.ttl_ms = hc->g.opts.ttl_ms);
    dibs_status rc =
        dibs__lock_or_set_init(&hc->locks, cl, &name, 1, &opts, err);

    hc->has_locks = rc == DIBS_OK;
    hc->g.opts.name = name;
    return rc == DIBS_OK ? dibs__lock_or_set_try(&hc->locks, err) : rc;
}

static dibs_status supervise_command(dibs__held_command *hc, dibs_error *err)
{
    const char *name = hc->g.opts.name;
    dibs_lock *lock = dibs__lock_or_set_find(&hc->locks, name);
    dibs__watched watched = {.locks = &hc->locks};
    dibs__held held = {.name = name,
                       .fence = dibs_lock_fence(lock),
                       .ttl_ms = hc->g.opts.ttl_ms};

    dibs_lock_owner(lock, held.owner);
    hc->die_of = dibs__signals_pending(&hc->g.signals);
    if (hc->die_of)
        return dibsx_fail(err, DIBS_CANCELLED, "a signal came first");
    return dibs__guarded_run(&hc->g, &watched, &held, 1, err);
}

/* Runs it with its output to `in`. */
static dibs_status
run_taken(dibs__held_command *hc, intake *in, dibs_error *err)
{
    uint64_t one = 1;
    pthread_t taker;
    int write_fd = -1, failed = 0;
    dibs_status rc = open_intake(in, &write_fd, err);

    if (rc == DIBS_OK)
        failed = pthread_create(&taker, NULL, take_output, in);
    if (failed)
        rc = fail_os(err, "start a thread", failed);
    if (rc == DIBS_OK) {
        hc->g.opts.output_fd = write_fd;
        rc = supervise_command(hc, err);
        close(write_fd);
        write_fd = -1;
        (void)!write(in->stop_fd, &one, sizeof(one));
        (void)pthread_join(taker, NULL);
    }
    close_fd(write_fd);
    close_fd(in->fd);
    close_fd(in->stop_fd);
    return rc;
}

/* The command did not end well: `code`. */
static dibs_status fail_command(const dibs__held_command *hc, dibs_error *err)
{
    const char *name = hc->g.opts.argv[0];

    if (hc->g.out.lost)
        return dibsx_fail(err, DIBS_CANCELLED,
                          "the lock %s was lost, so %s was ended",
                          hc->g.opts.name, name);
    if (hc->g.out.exit_signal)
        return dibsx_fail(err, DIBS_CANCELLED, "%s was ended by signal %d",
                          name, hc->g.out.exit_signal);
    return dibsx_fail(err, DIBS_CANCELLED, "the command %s has exited with %d",
                      name, hc->code);
}

dibs_status dibs__held_command_run(dibs__held_command *hc, char *data,
                                   size_t *len, dibs_error *err)
{
    intake in = {.fd = -1, .stop_fd = -1, .data = data, .room = *len};
    dibs_status rc = run_taken(hc, &in, err);

    hc->was_run = true;
    hc->code = rc == DIBS_OK     ? dibs__guarded_code(&hc->g)
               : rc == DIBS_LOST ? DIBS__EXIT_LOST
                                 : DIBS__EXIT_WRAPPER;
    if (rc != DIBS_OK) {
        err->status = DIBS_CANCELLED;
        return DIBS_CANCELLED;
    }
    if (hc->code)
        return fail_command(hc, err);
    if (in.count > in.room) {
        hc->code = DIBS__EXIT_WRAPPER;
        return dibsx_fail(err, DIBS_CANCELLED,
                          "%s wrote more than %zu bytes; let it write where "
                          "the data is",
                          hc->g.opts.argv[0], in.room);
    }
    *len = (size_t)in.count;
    return DIBS_OK;
}

bool dibs__held_command_held(const dibs__held_command *hc)
{
    return hc->has_locks && dibs__lock_or_set_valid_ms(&hc->locks) > 0;
}

int dibs__held_command_code(const dibs__held_command *hc)
{
    return hc->code;
}

void dibs__held_command_free(dibs__held_command *hc)
{
    int die_of = hc ? hc->die_of : 0;

    if (!hc)
        return;
    /* The store failed while a signal waited. */
    if (!hc->was_run)
        die_of = dibs__signals_pending(&hc->g.signals);
    if (hc->has_locks)
        dibs__lock_or_set_fini(&hc->locks);
    dibs__guarded_fini(&hc->g, die_of);
    dibsx_free(hc);
}
