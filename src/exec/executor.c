/* executor.c - see executor.h: the side of the node.
 *
 *     NONE --first start--> UP --its socket ends--> FALLEN --nothing is left--> NONE
 *
 * While the executor is FALLEN its guards kill their trees; the pipe that they all
 * have ends when the last of them is gone. Only then the attempts end, as lost.
 *
 * Owns the socket, the pipe, the page, and one epoll descriptor for all of it and for
 * the output of all attempts. One mutex, held for moments. */
/* SPDX-License-Identifier: MIT */
#include "exec/executor.h"

#include "base/alloc.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/write_all.h"
#include "exec/belief.h"
#include "exec/executor_wire.h"
#include "exec/no_core_dump.h"
#include "exec/output.h"
#include "exec/spawn.h"
#include "exec/tree_means.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How often the executor is asked for a sign of life, and how often in vain. */
enum { ASK_SEC = 2, SILENT_MAX = 8 };
enum { EVENTS_MAX = 64, PATIENCE_MS = 5000 };
/* A pipe has its turn, then others have theirs. A dead tree has left at most what a
 * pipe may hold. */
enum { TURN_SIZE = 1024 * 1024, REST_SIZE = 2 * 1024 * 1024 };

typedef enum source_kind {
    SOURCE_SOCK,
    SOURCE_ALIVE,
    SOURCE_TIMER,
    SOURCE_OUTPUT
} source_kind;

/* A descriptor in epoll. */
typedef struct source {
    source_kind kind;
    int fd; /* -1: closed */
    dibs__attempt *at;
} source;

struct dibs__attempt {
    dibs__executor *ex;
    void *arg;
    uint32_t slot;
    bool ended;
    bool stop_waits; /* the executor has not been asked yet */
    dibs__ask stop;
    dibs__attempt_end end;
    dibs__output output;
    source pipes[2];
    char *name; /* of the command, for messages */
    char *dir;
    char *user;
    dibs__attempt *next; /* in the list of those that have ended */
};

struct dibs__executor {
    pthread_mutex_t mutex;
    char *program;
    int epoll_fd;
    int page_fd;
    dibs__belief *belief;
    pid_t pid; /* 0: NONE */
    source sock;
    source alive;
    source timer;
    uint32_t beats;
    int silent;
    bool look_waits;
    size_t slots;
    size_t running;
    dibs__attempt *attempts[DIBS__SLOTS_MAX];
    dibs__attempt *ended_first, *ended_last;
};

static dibs_status failed(dibs_error *err, const char *what)
{
    int number = errno;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number), "%s: %s",
                         what, strerror(number));
}

static bool watch_source(dibs__executor *ex, source *src, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = src};
    return epoll_ctl(ex->epoll_fd, EPOLL_CTL_ADD, src->fd, &event) == 0;
}

static void close_source(source *src)
{
    if (src->fd >= 0)
        close(src->fd);
    src->fd = -1;
}

/* While something waits for room on the socket it is polled for that too. */
static void poll_room(dibs__executor *ex, bool wanted)
{
    struct epoll_event event = {.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = &ex->sock};
    if (ex->sock.fd >= 0)
        (void)epoll_ctl(ex->epoll_fd, EPOLL_CTL_MOD, ex->sock.fd, &event);
}

/* False: there is no room now. With a dead executor there is nothing to be asked. */
static bool send_ask(dibs__executor *ex, const dibs__ask *ask, const int *fds)
{
    union {
        char bytes[CMSG_SPACE(DIBS__FD_COUNT * sizeof(int))];
        struct cmsghdr align;
    } room = {.bytes = {0}};
    struct iovec part = {(void *)(size_t)ask, sizeof *ask};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        msg.msg_control = room.bytes;
        msg.msg_controllen = sizeof room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(DIBS__FD_COUNT * sizeof(int));
        memcpy(CMSG_DATA(head), fds, DIBS__FD_COUNT * sizeof(int));
    }
    ssize_t put;
    do
        put = sendmsg(ex->sock.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (put < 0 && errno == EINTR);
    return put >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static void send_look(dibs__executor *ex)
{
    dibs__ask ask = {.kind = DIBS__ASK_LOOK};
    ex->look_waits = ex->sock.fd >= 0 && !send_ask(ex, &ask, NULL);
    if (ex->look_waits)
        poll_room(ex, true);
}

static void arm_timer(dibs__executor *ex, bool on)
{
    struct itimerspec spec = {.it_interval.tv_sec = on ? ASK_SEC : 0,
                              .it_value.tv_sec = on ? ASK_SEC : 0};
    (void)timerfd_settime(ex->timer.fd, 0, &spec, NULL);
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Why nothing was run, for people. */
static void explain_start(const dibs__attempt *at, const dibs__report *report,
                          char *out, size_t size)
{
    const char *why = strerror(report->number);
    switch ((dibs__spawn_stage)report->stage) {
    case DIBS__STAGE_FORK:
        if (report->number == ENOSYS)
            (void)snprintf(out, size,
                           "cannot start %s: its processes could not be found; "
                           "mount a /proc for this PID namespace, or let dibs "
                           "make a cgroup below its own",
                           at->name);
        else
            (void)snprintf(out, size, "cannot start %s: %s", at->name, why);
        break;
    case DIBS__STAGE_STDIO:
        (void)snprintf(out, size, "cannot set the descriptors of %s: %s",
                       at->name, why);
        break;
    case DIBS__STAGE_DIR:
        (void)snprintf(out, size, "cannot change to the folder %s: %s",
                       text_of(at->dir), why);
        break;
    case DIBS__STAGE_USER:
        (void)snprintf(out, size, "cannot run as user %s: %s",
                       text_of(at->user),
                       report->number == ENOENT ? "there is no such user"
                       : report->number == EPERM
                           ? "the node does not run as root"
                           : why);
        break;
    case DIBS__STAGE_EXEC:
        (void)snprintf(out, size, "cannot run %s: %s", at->name, why);
        break;
    }
}

/* The tree is dead: what it has written is in the pipes. Another process that has
 * them is not waited for. */
static void end_attempt(dibs__attempt *at, const dibs__report *report)
{
    dibs__executor *ex = at->ex;
    for (int i = 0; i < 2; i++) {
        if (at->pipes[i].fd >= 0)
            (void)dibs__output_drain(&at->output, at->pipes[i].fd, REST_SIZE);
        close_source(&at->pipes[i]);
    }
    at->end =
        (dibs__attempt_end){.reason = (dibs__attempt_reason)report->reason,
                            .exit_code = report->exit_code,
                            .exit_signal = report->exit_signal};
    if (at->end.reason == DIBS__ATTEMPT_NOT_STARTED)
        explain_start(at, report, at->end.message, sizeof at->end.message);
    else if (at->end.reason == DIBS__ATTEMPT_LOST)
        (void)snprintf(at->end.message, sizeof at->end.message, "%s",
                       report->guard_died
                           ? "the guard of the command died"
                           : "the node's lease ended before the command did");
    at->ended = true;
    at->next = NULL;
    if (ex->ended_last)
        ex->ended_last->next = at;
    else
        ex->ended_first = at;
    ex->ended_last = at;
    ex->attempts[at->slot] = NULL;
    if (--ex->running == 0)
        arm_timer(ex, false);
}

static void hear_reports(dibs__executor *ex)
{
    dibs__report report;
    for (;;) {
        ssize_t got = recv(ex->sock.fd, &report, sizeof report, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got < 0 && errno == ECONNRESET)
            continue;
        if (got != (ssize_t)sizeof report)
            break;
        dibs__attempt *at = ex->attempts[report.slot % DIBS__SLOTS_MAX];
        if (at)
            end_attempt(at, &report);
    }
    close_source(&ex->sock);
}

/* Nothing is left of the executor and of what was below it. */
static void bury_executor(dibs__executor *ex)
{
    while (ex->pid > 0 && waitpid(ex->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    ex->pid = 0;
    close_source(&ex->alive);
    close_source(&ex->sock);
    for (size_t i = 0; i < ex->slots; i++) {
        dibs__report report = {.reason = DIBS__ATTEMPT_LOST,
                               .exit_code = -1,
                               .guard_died = 1};
        if (ex->attempts[i])
            end_attempt(ex->attempts[i], &report);
    }
}

/* Its last reports come before the end of the pipe is looked at. */
static void hear_alive(dibs__executor *ex)
{
    char byte;
    ssize_t got = read(ex->alive.fd, &byte, 1);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (ex->sock.fd >= 0)
        hear_reports(ex);
    bury_executor(ex);
}

/* A stopped executor would not say that a command has ended. */
static void ask_executor(dibs__executor *ex)
{
    uint32_t beats = atomic_load(&ex->belief->beats);
    dibsx_event_clear(ex->timer.fd);
    if (ex->pid <= 0)
        return;
    ex->silent = beats != ex->beats ? 0 : ex->silent + 1;
    ex->beats = beats;
    if (ex->silent > SILENT_MAX)
        (void)kill(ex->pid, SIGKILL);
    else
        send_look(ex);
}

/* Sends again what found no room. */
static void send_waiting(dibs__executor *ex)
{
    bool waits = false;
    if (ex->look_waits)
        send_look(ex);
    for (size_t i = 0; i < ex->slots; i++) {
        dibs__attempt *at = ex->attempts[i];
        if (!at || !at->stop_waits || ex->sock.fd < 0)
            continue;
        at->stop_waits = !send_ask(ex, &at->stop, NULL);
        waits = waits || at->stop_waits;
    }
    if (!waits && !ex->look_waits)
        poll_room(ex, false);
}

static void hear_source(dibs__executor *ex, source *src, uint32_t events)
{
    if (src->fd < 0)
        return;
    switch (src->kind) {
    case SOURCE_SOCK:
        if (events & EPOLLOUT)
            send_waiting(ex);
        if (events & ~(uint32_t)EPOLLOUT)
            hear_reports(ex);
        break;
    case SOURCE_ALIVE:
        hear_alive(ex);
        break;
    case SOURCE_TIMER:
        ask_executor(ex);
        break;
    case SOURCE_OUTPUT:
        if (!dibs__output_drain(&src->at->output, src->fd, TURN_SIZE))
            close_source(src);
        break;
    }
}

void dibs__executor_process(dibs__executor *ex)
{
    struct epoll_event events[EVENTS_MAX];
    pthread_mutex_lock(&ex->mutex);
    int count = epoll_wait(ex->epoll_fd, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++)
        hear_source(ex, events[i].data.ptr, events[i].events);
    pthread_mutex_unlock(&ex->mutex);
}

/* All signals as they are by default, and none blocked but by itself: a node may
 * ignore some, which a command would inherit. */
static int spawn_program(dibs__executor *ex, int sock, int alive)
{
    char sock_text[16], page_text[16];
    char *const argv[] = {(char *)(size_t)DIBS__EXECUTOR_NAME, sock_text,
                          page_text, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    (void)snprintf(sock_text, sizeof sock_text, "%d", sock);
    (void)snprintf(page_text, sizeof page_text, "%d", ex->page_fd);
    int number = posix_spawn_file_actions_init(&files);
    if (number)
        return number;
    number = posix_spawnattr_init(&attr);
    if (!number) {
        (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF |
                                                  POSIX_SPAWN_SETSIGMASK);
        (void)posix_spawnattr_setsigdefault(&attr, &all);
        (void)posix_spawnattr_setsigmask(&attr, &none);
        number = posix_spawn_file_actions_adddup2(&files, alive, STDIN_FILENO);
        /* Onto itself: it stays open. */
        if (!number)
            number = posix_spawn_file_actions_adddup2(&files, sock, sock);
        if (!number)
            number = posix_spawn_file_actions_adddup2(&files, ex->page_fd,
                                                      ex->page_fd);
        /* The executor forbids it itself, and so knows the limit of commands. */
        dibs__core_dump_allow();
        if (!number)
            number = posix_spawn(&ex->pid, ex->program, &files, &attr, argv,
                                 environ);
        dibs__core_dump_forbid_again();
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return number;
}

static void close_pair(int *pair)
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

static dibs_status start_executor(dibs__executor *ex, dibs_error *err)
{
    int sock[2] = {-1, -1}, alive[2] = {-1, -1};
    dibs_status rc = DIBS_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) != 0 ||
        pipe2(alive, O_CLOEXEC | O_NONBLOCK) != 0) {
        rc = failed(err, "cannot make a socket to the executor");
        goto out;
    }
    ex->silent = 0;
    errno = spawn_program(ex, sock[1], alive[1]);
    if (errno != 0) {
        ex->pid = 0;
        rc = failed(err, "cannot start the executor");
        goto out;
    }
    ex->sock = (source){SOURCE_SOCK, sock[0], NULL};
    ex->alive = (source){SOURCE_ALIVE, alive[0], NULL};
    sock[0] = alive[0] = -1;
    if (!watch_source(ex, &ex->sock, EPOLLIN) ||
        !watch_source(ex, &ex->alive, EPOLLIN)) {
        rc = failed(err, "cannot poll the executor");
        (void)kill(ex->pid, SIGKILL);
        bury_executor(ex);
    }
out:
    close_pair(sock);
    close_pair(alive);
    return rc;
}

static bool make_page(dibs__executor *ex)
{
    ex->page_fd = memfd_create("dibs-belief", MFD_CLOEXEC);
    if (ex->page_fd < 0 || ftruncate(ex->page_fd, sizeof *ex->belief) != 0)
        return false;
    void *page = mmap(NULL, sizeof *ex->belief, PROT_READ | PROT_WRITE,
                      MAP_SHARED, ex->page_fd, 0);
    if (page == MAP_FAILED)
        return false;
    ex->belief = page;
    atomic_store(&ex->belief->kill_at, DIBSX_NEVER);
    atomic_store(&ex->belief->last_at, DIBSX_NEVER);
    return true;
}

dibs_status dibs__executor_open(size_t slots, const char *program,
                                dibs__executor **out, dibs_error *err)
{
    dibs__executor *ex = NULL;
    *out = NULL;
    if (slots == 0 || slots > DIBS__SLOTS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "%zu commands at a time cannot be: 1 to %d can",
                          slots, DIBS__SLOTS_MAX);
    ex = dibsx_zalloc(sizeof *ex);
    if (!ex)
        return dibsx_nomem(err, "the executor of commands");
    *ex = (dibs__executor){.slots = slots,
                           .page_fd = -1,
                           .epoll_fd = -1,
                           .sock = {SOURCE_SOCK, -1, NULL},
                           .alive = {SOURCE_ALIVE, -1, NULL},
                           .timer = {SOURCE_TIMER, -1, NULL}};
    pthread_mutex_init(&ex->mutex, NULL);
    ex->program = dibsx_strdup(program ? program : "/proc/self/exe");
    ex->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ex->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    dibs_status rc = DIBS_OK;
    if (!ex->program)
        rc = dibsx_nomem(err, "the executor of commands");
    else if (ex->epoll_fd < 0 || ex->timer.fd < 0 || !make_page(ex) ||
             !watch_source(ex, &ex->timer, EPOLLIN))
        rc = failed(err, "cannot make the descriptors of the executor");
    if (rc == DIBS_OK)
        *out = ex;
    else
        dibs__executor_close(ex);
    return rc;
}

static void free_attempt(dibs__attempt *at)
{
    close_source(&at->pipes[0]);
    close_source(&at->pipes[1]);
    dibs__output_fini(&at->output);
    dibsx_free(at->name);
    dibsx_free(at->dir);
    dibsx_free(at->user);
    dibsx_free(at);
}

/* The pipe ends when nothing is left. A stopped executor is killed, so that its guards
 * end. */
static void end_executor(dibs__executor *ex)
{
    close_source(&ex->sock);
    while (ex->pid > 0) {
        struct pollfd fd = {ex->alive.fd, POLLIN, 0};
        if (poll(&fd, 1, PATIENCE_MS) == 0)
            (void)kill(ex->pid, SIGKILL);
        else
            hear_alive(ex);
    }
}

void dibs__executor_close(dibs__executor *ex)
{
    if (!ex)
        return;
    end_executor(ex);
    for (dibs__attempt *at = ex->ended_first; at;) {
        dibs__attempt *next = at->next;
        free_attempt(at);
        at = next;
    }
    close_source(&ex->timer);
    if (ex->epoll_fd >= 0)
        close(ex->epoll_fd);
    if (ex->page_fd >= 0)
        close(ex->page_fd);
    if (ex->belief)
        munmap(ex->belief, sizeof *ex->belief);
    pthread_mutex_destroy(&ex->mutex);
    dibsx_free(ex->program);
    dibsx_free(ex);
}

int64_t dibs__executor_margin_ms(dibs__executor *ex, int64_t ttl_ms)
{
    return dibs__belief_margin_ms(ttl_ms, atomic_load(&ex->belief->late));
}

void dibs__executor_believe(dibs__executor *ex, dibsx_nsec valid_until,
                            int64_t ttl_ms)
{
    dibsx_nsec margin = dibs__executor_margin_ms(ex, ttl_ms) * DIBSX_MS;
    bool ends = valid_until != DIBSX_NEVER;
    dibsx_nsec kill_at = ends ? valid_until - margin : DIBSX_NEVER;
    atomic_store(&ex->belief->last_at,
                 ends ? valid_until - margin / 2 : DIBSX_NEVER);
    dibsx_nsec old = atomic_exchange(&ex->belief->kill_at, kill_at);
    /* A later moment the guards find when they wake at the old one. */
    if (kill_at >= old)
        return;
    pthread_mutex_lock(&ex->mutex);
    send_look(ex);
    pthread_mutex_unlock(&ex->mutex);
}

int dibs__executor_fd(const dibs__executor *ex)
{
    return ex->epoll_fd;
}

dibs__attempt *dibs__executor_ended(dibs__executor *ex)
{
    pthread_mutex_lock(&ex->mutex);
    dibs__attempt *at = ex->ended_first;
    if (at)
        ex->ended_first = at->next;
    if (!ex->ended_first)
        ex->ended_last = NULL;
    pthread_mutex_unlock(&ex->mutex);
    return at;
}

size_t dibs__executor_running(dibs__executor *ex)
{
    pthread_mutex_lock(&ex->mutex);
    size_t running = ex->running;
    pthread_mutex_unlock(&ex->mutex);
    return running;
}

static bool find_slot(const dibs__executor *ex, uint32_t *slot)
{
    for (uint32_t i = 0; i < ex->slots; i++)
        if (!ex->attempts[i]) {
            *slot = i;
            return true;
        }
    return false;
}

static int open_input(const dibs__attempt_spec *spec)
{
    if (!spec->input)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("dibs-input", MFD_CLOEXEC);
    if (fd >= 0 && !dibsx_write_all(fd, spec->input, spec->input_len)) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Only the node's end does not block. */
static bool open_pipes(dibs__attempt *at, int *fds)
{
    for (int i = 0; i < 2; i++) {
        int pair[2];
        if (pipe2(pair, O_CLOEXEC) != 0)
            return false;
        at->pipes[i] = (source){SOURCE_OUTPUT, pair[0], at};
        fds[DIBS__FD_STDOUT + i] = pair[1];
        if (fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0 ||
            !watch_source(at->ex, &at->pipes[i], EPOLLIN))
            return false;
    }
    return true;
}

static dibs__attempt *
new_attempt(dibs__executor *ex, const dibs__attempt_spec *spec, void *arg,
            dibs_error *err)
{
    const char *name = spec->shell  ? "/bin/sh"
                       : spec->argv ? *spec->argv
                                    : NULL;
    dibs__attempt *at = dibsx_zalloc(sizeof *at);
    if (!at) {
        (void)dibsx_nomem(err, "an attempt to run a command");
        return NULL;
    }
    at->ex = ex;
    at->arg = arg;
    at->pipes[0].fd = at->pipes[1].fd = -1;
    at->name = dibsx_strdup(text_of(name));
    at->dir = dibsx_strdup(text_of(spec->dir));
    at->user = dibsx_strdup(text_of(spec->user));
    if (!at->name || !at->dir || !at->user)
        (void)dibsx_nomem(err, "an attempt to run a command");
    else if (dibs__output_init(&at->output, spec->output_keep,
                               spec->output_head, err) == DIBS_OK)
        return at;
    free_attempt(at);
    return NULL;
}

/* Locks: ex->mutex. */
static dibs_status
ask_start(dibs__executor *ex, dibs__attempt *at, int *fds, dibs_error *err)
{
    if (!find_slot(ex, &at->slot))
        return dibsx_fail(err, DIBS_BUSY,
                          "all %zu slots for commands are taken", ex->slots);
    if (ex->pid > 0 && ex->sock.fd < 0)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the executor has died, and its commands are being "
                          "killed; try again when they have ended");
    if (ex->pid == 0 && start_executor(ex, err) != DIBS_OK)
        return DIBS_INTERNAL;
    if (!open_pipes(at, fds))
        return failed(err, "cannot make the pipes of a command");
    dibs__ask ask = {.kind = DIBS__ASK_START, .slot = at->slot};
    if (!send_ask(ex, &ask, fds))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the executor does not take commands: it is stopped "
                          "or starved; try again");
    ex->attempts[at->slot] = at;
    if (ex->running++ == 0)
        arm_timer(ex, true);
    return DIBS_OK;
}

dibs_status
dibs__attempt_start(dibs__executor *ex, const dibs__attempt_spec *spec,
                    void *arg, dibs__attempt **out, dibs_error *err)
{
    int fds[DIBS__FD_COUNT] = {-1, -1, -1, -1};
    dibs_status rc = DIBS_INTERNAL;
    *out = NULL;
    dibs__attempt *at = new_attempt(ex, spec, arg, err);
    if (!at)
        return err ? err->status : DIBS_NOMEM;
    fds[DIBS__FD_SPEC] = dibs__attempt_pack(spec, err);
    if (fds[DIBS__FD_SPEC] < 0)
        rc = err ? err->status : DIBS_INVALID;
    else if ((fds[DIBS__FD_STDIN] = open_input(spec)) < 0)
        rc = failed(err, "cannot make the standard input of a command");
    else {
        pthread_mutex_lock(&ex->mutex);
        rc = ask_start(ex, at, fds, err);
        pthread_mutex_unlock(&ex->mutex);
    }
    for (size_t i = 0; i < DIBS__FD_COUNT; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (rc == DIBS_OK)
        *out = at;
    else
        free_attempt(at);
    return rc;
}

void *dibs__attempt_arg(const dibs__attempt *at)
{
    return at->arg;
}

void dibs__attempt_stop(dibs__attempt *at, dibs__attempt_reason reason,
                        bool at_once)
{
    dibs__executor *ex = at->ex;
    pthread_mutex_lock(&ex->mutex);
    if (!at->ended && ex->sock.fd >= 0) {
        at->stop = (dibs__ask){.kind = DIBS__ASK_END,
                               .slot = at->slot,
                               .reason = (int32_t)reason,
                               .at_once = at_once};
        at->stop_waits = !send_ask(ex, &at->stop, NULL);
        if (at->stop_waits)
            poll_room(ex, true);
    }
    pthread_mutex_unlock(&ex->mutex);
}

dibs__attempt_end dibs__attempt_result(dibs__attempt *at)
{
    pthread_mutex_lock(&at->ex->mutex);
    dibs__attempt_end end = at->end;
    pthread_mutex_unlock(&at->ex->mutex);
    return end;
}

uint64_t
dibs__attempt_output(dibs__attempt *at, dibsx_buf *head, dibsx_buf *tail)
{
    pthread_mutex_lock(&at->ex->mutex);
    if (head)
        dibs__output_head(&at->output, head);
    if (tail)
        dibs__output_tail(&at->output, tail);
    uint64_t left_out = dibs__output_left_out(&at->output);
    pthread_mutex_unlock(&at->ex->mutex);
    return left_out;
}

void dibs__attempt_free(dibs__attempt *at)
{
    if (at)
        free_attempt(at);
}
