/* verb_queue_run.c - `dibs queue run NAME [--] COMMAND...`: a command for each item.
 *
 * Each worker is a process with a client of its own. It reserves an item, runs the command
 * under the guard of run, and settles the item by the outcome when nothing of the
 * command's tree is left. If the item is about to be lost, the tree is dead before another
 * worker can have it. Main thread only, but for the signals while it waits. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/write_all.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/run/guarded.h"
#include "cli/run/pool.h"
#include "cli/verbs.h"
#include "exec/result_files.h"
#include <dibs/queue.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* The exit codes of a command that mean more than a failure: EX_DATAERR. */
enum { CODE_DEAD = 65 };

/* A delivery is valid for so long at first, whatever the ttl: margins are parts of it. */
enum { FIRST_VALID_MS = 3000 };

/* A folder that is being made is in nobody's use for a moment. A sweep leaves it alone for
 * STALE_S, so that it rarely has to be made again. */
enum { CANCEL_AGAIN_MS = 10, LABEL_SIZE = DIBS_NAME_MAX + 48, STALE_S = 2 };

typedef struct worker {
    dibs__guarded g;
    dibs_queue *queue;
    dibs_item *item;
    int lost_fd;
    int data_fd;              /* the command's standard input */
    dibs__result_files files; /* with the result, and the data of --in-file */
    char told[DIBS__RESULT_MAX + 1]; /* the result; "": none */
    char label[LABEL_SIZE];
    dibsx_nsec drain_at; /* 0: go on */
    sigset_t awaited;
    int code;
} worker;

static void note_lost(dibs_item *item, void *arg)
{
    const worker *w = arg;
    uint64_t one = 1;

    (void)item;
    (void)!write(w->lost_fd, &one, sizeof one);
}

/* ---- waiting for an item */

/* Takes the signals while the main thread waits; SIGRTMIN ends it. */
static void *serve_signals(void *arg)
{
    worker *w = arg;
    const struct timespec span = {0, CANCEL_AGAIN_MS * 1000000};

    for (;;) {
        int number = w->drain_at ? sigtimedwait(&w->awaited, NULL, &span)
                                 : sigwaitinfo(&w->awaited, NULL);

        if (number == SIGRTMIN)
            return NULL;
        if (number == SIGTSTP)
            (void)dibs__signal_stop(false);
        if (number > 0 && dibs__signal_ends(number) && w->drain_at == 0)
            w->drain_at = dibsx_now();
        if (w->drain_at)
            dibs_queue_cancel(w->queue);
    }
}

static dibs_status reserve_item(worker *w, dibs_error *err)
{
    const dibs__command *cmd = w->g.cmd;
    int64_t wait_ms =
        dibs__opt_given(cmd, "wait") ? dibs__opt_ms(cmd, "wait") : -1;
    pthread_t thread;
    dibs_status rc;
    int failed = pthread_create(&thread, NULL, serve_signals, w);

    if (failed)
        return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(failed),
                             "cannot start a thread: %s", strerror(failed));
    rc = dibs_queue_reserve(w->queue, wait_ms, &w->item, err);
    pthread_kill(thread, SIGRTMIN);
    pthread_join(thread, NULL);
    return rc;
}

/* ---- the command and what it finds */

static dibs_status fail_data(dibs_error *err, const char *what)
{
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                         "cannot %s the data of the item: %s", what,
                         strerror(errno));
}

static dibs_status write_data(const worker *w, int fd, dibs_error *err)
{
    size_t len;
    const void *data = dibs_item_data(w->item, &len);

    return dibsx_write_all(fd, data, len) ? DIBS_OK : fail_data(err, "write");
}

/* Where no file can be made the command has no $DIBS_ITEM_RESULT. */
static dibs_status make_folder(worker *w, dibs_error *err)
{
    char path[PATH_MAX + 8];
    dibs_status rc = dibs__result_files_make(&w->files, DIBS__FILES_ITEM, NULL,
                                             NULL, NULL, 0, err);

    (void)unsetenv("DIBS_ITEM_RESULT");
    if (rc != DIBS_OK)
        return rc;
    snprintf(path, sizeof path, "%s/" DIBS__RESULT_NAME, w->files.dir);
    (void)setenv("DIBS_ITEM_RESULT", path, 1);
    return DIBS_OK;
}

/* With --in-file the data is in a file of its own, and standard input is empty. */
static dibs_status put_file(worker *w, dibs_error *err)
{
    char path[PATH_MAX + 8];
    dibs_status rc;
    int fd;

    snprintf(path, sizeof path, "%s/data", w->files.dir);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_data(err, "make a file for");
    rc = write_data(w, fd, err);
    close(fd);
    w->data_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setenv("DIBS_ITEM_FILE", path, 1);
    return rc;
}

static dibs_status put_data(worker *w, dibs_error *err)
{
    dibs_status rc = make_folder(w, err);

    if (dibs__opt_flag(w->g.cmd, "in-file"))
        return rc == DIBS_OK ? put_file(w, err) : rc;
    if (rc != DIBS_OK && w->g.opts.verbose)
        dibs__cli_say("%s has no $DIBS_ITEM_RESULT: %s", w->label,
                      err->message);
    w->data_fd = memfd_create("dibs-item", MFD_CLOEXEC);
    if (w->data_fd < 0)
        return fail_data(err, "keep");
    rc = write_data(w, w->data_fd, err);
    if (rc == DIBS_OK && lseek(w->data_fd, 0, SEEK_SET) != 0)
        rc = fail_data(err, "rewind");
    return rc;
}

/* A result that cannot be read counts for nothing: the exit code decides. */
static void read_result(worker *w)
{
    dibs_error err = {0};

    w->told[0] = '\0';
    if (w->files.dir_fd >= 0 &&
        dibs__result_files_read_text(&w->files, w->told, &err) != DIBS_OK &&
        !w->g.opts.quiet)
        dibs__cli_say("%s: %s", w->label, err.message);
}

static void drop_data(worker *w)
{
    if (w->data_fd >= 0)
        close(w->data_fd);
    w->data_fd = -1;
    dibs__result_files_remove(&w->files);
}

static void set_number(const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    (void)setenv(name, text, 1);
}

/* DIBS_ITEM_TOKEN names this delivery: no other one, of any item, has it. It is none of
 * queue pop: this process keeps the delivery, and settles it. */
static void set_environment(const worker *w)
{
    const char *header;
    char token[72];
    dibsx_buf lines;

    snprintf(token, sizeof token, "%" PRIu64 "-%" PRIu64 "-%u",
             dibs_item_id(w->item), dibs_item_fence(w->item),
             (unsigned)dibs_item_attempt(w->item));
    (void)setenv("DIBS_ITEM_TOKEN", token, 1);
    (void)setenv("DIBS_QUEUE", dibs__operands(w->g.cmd)[0], 1);
    set_number("DIBS_ITEM_ID", dibs_item_id(w->item));
    set_number("DIBS_ITEM_FENCE", dibs_item_fence(w->item));
    set_number("DIBS_ITEM_ATTEMPT", dibs_item_attempt(w->item));
    set_number("DIBS_ITEM_LOST", dibs_item_losses(w->item));
    dibsx_buf_init(&lines, 2 * DIBS_ITEM_HEADERS_MAX);
    for (size_t i = 0; (header = dibs_item_header_at(w->item, i)) != NULL; i++)
        dibsx_buf_printf(&lines, "%s%s", i > 0 ? "\n" : "", header);
    (void)setenv("DIBS_ITEM_HEADERS", dibsx_buf_text(&lines), 1);
    dibsx_buf_fini(&lines);
}

static dibs_status run_command(worker *w, dibs_error *err)
{
    dibs__work work = {.item = w->item,
                       .lost_fd = w->lost_fd,
                       .drain_at = &w->drain_at};
    dibs__watched watched = {.work = &work};
    uint64_t rung;
    dibs_status rc;

    /* A ring that was about the item before. */
    (void)!read(w->lost_fd, &rung, sizeof rung);
    snprintf(w->label, sizeof w->label, "item %" PRIu64 " of %s",
             dibs_item_id(w->item), dibs__operands(w->g.cmd)[0]);
    set_environment(w);
    rc = put_data(w, err);
    work.stdin_fd = w->data_fd;
    if (rc == DIBS_OK)
        rc = dibs__guarded_run(&w->g, &watched, NULL, 0, err);
    read_result(w);
    drop_data(w);
    return rc;
}

/* ---- settling it */

static dibs_status nack_item(worker *w, const char *reason, dibs_error *err)
{
    const dibs__command *cmd = w->g.cmd;
    int64_t delay_ms =
        dibs__opt_given(cmd, "delay") ? dibs__opt_ms(cmd, "delay") : -1;

    if (w->g.opts.verbose)
        dibs__cli_say("%s comes back: %s", w->label, reason);
    return dibs_item_nack(w->item, delay_ms, reason, err);
}

static dibs_status settle_item(worker *w, dibs_error *err)
{
    const dibs__outcome *out = &w->g.out;
    char code[64];
    const char *reason = w->told[0] && !out->exit_signal ? w->told : code;

    if (out->exit_signal)
        snprintf(code, sizeof code, "killed by signal %d", out->exit_signal);
    else
        snprintf(code, sizeof code, "exit code %d", out->exit_status);
    if (out->timed_out)
        return nack_item(w, "it took longer than --limit", err);
    if (out->guard_died)
        return nack_item(w, "the guard of its command died", err);
    if (out->exit_signal || (out->exit_status && out->exit_status != CODE_DEAD))
        return nack_item(w, reason, err);
    if (out->exit_status == CODE_DEAD)
        return dibs_item_dead(w->item, reason, err);
    return dibs_item_ack_result(w->item, w->told[0] ? w->told : NULL, err);
}

/* The exit code of the item, and whether another one makes sense. */
static bool end_item(worker *w, dibs_status rc, dibs_error *err)
{
    const dibs__outcome *out = &w->g.out;

    if (rc != DIBS_OK && rc != DIBS_LOST) {
        (void)dibs__cli_fail(w->g.cmd, err);
        w->code = DIBS__EXIT_WRAPPER;
        return false;
    }
    if (rc == DIBS_LOST)
        (void)dibs__cli_fail(w->g.cmd, err);
    if (rc == DIBS_LOST || out->lost) {
        w->code = DIBS__EXIT_LOST;
        return true;
    }
    w->code = dibs__guarded_code(&w->g);
    /* Without a command no item would fare better: it comes back uncounted. */
    if (out->exec_errno)
        return false;
    /* So does one whose command was ended, whatever the command made of that. */
    if (out->stop_signal) {
        w->code = DIBS__EXIT_SIGNAL + out->stop_signal;
        return false;
    }
    rc = settle_item(w, err);
    if (rc != DIBS_OK) {
        int code = dibs__cli_fail(w->g.cmd, err);

        w->code = rc == DIBS_LOST ? DIBS__EXIT_LOST : code;
    }
    return true;
}

/* False: stop. */
static bool work_once(worker *w)
{
    const dibs__command *cmd = w->g.cmd;
    bool once = dibs__opt_flag(cmd, "once"), more = false;
    dibs_error err = {0};
    dibs_status rc = reserve_item(w, &err);

    w->code = 0;
    if (rc == DIBS_OK && !w->drain_at)
        more = end_item(w, run_command(w, &err), &err);
    else if ((rc == DIBS_BUSY || rc == DIBS_TIMEOUT) && !w->drain_at && once)
        w->code = (int)dibs__opt_int(cmd, "conflict-exit-code");
    else if (rc != DIBS_OK && rc != DIBS_BUSY && rc != DIBS_TIMEOUT &&
             rc != DIBS_CANCELLED)
        w->code = dibs__cli_fail(cmd, &err);
    dibs_item_free(w->item);
    w->item = NULL;
    if (!once && more)
        w->code = 0;
    return more && !once && !w->drain_at;
}

static int open_worker(worker *w)
{
    const dibs__command *cmd = w->g.cmd;
    dibs_queue_opts opts = {.size = sizeof opts,
                            .as = dibs__opt_text(cmd, "as"),
                            .ttl_ms = dibs__opt_ms(cmd, "ttl"),
                            .durability = dibs__opt_text(cmd, "durability"),
                            .on_lost = note_lost,
                            .arg = w};
    dibs_error err = {0};
    int code = dibs__guarded_open(&w->g, "before another has the item");

    if (code)
        return code;
    w->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->lost_fd < 0) {
        dibs__cli_say("cannot open an eventfd: %s", strerror(errno));
        return DIBS__EXIT_WRAPPER;
    }
    code = dibs__cli_open(cmd, &w->g.cl);
    if (!code && dibs_queue_new(w->g.cl, dibs__operands(cmd)[0], &opts,
                                &w->queue, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    return code;
}

static int run_worker(const dibs__command *cmd)
{
    worker w = {.lost_fd = -1, .data_fd = -1, .files = {.dir_fd = -1}};
    int die_of;

    dibs__guarded_init(&w.g, cmd);
    w.g.opts.name = w.label;
    if (w.g.opts.ttl_ms > FIRST_VALID_MS)
        w.g.opts.ttl_ms = FIRST_VALID_MS;
    if (dibs__opt_given(cmd, "limit"))
        w.g.opts.max_run_ms = dibs__opt_ms(cmd, "limit");
    w.awaited = w.g.signals.served;
    sigaddset(&w.awaited, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &w.awaited, NULL);
    /* A worker that is killed cannot remove the data of its item. */
    dibs__result_files_sweep(DIBS__FILES_ITEM, NULL, STALE_S);
    w.code = open_worker(&w);
    die_of = w.code ? dibs__signals_pending(&w.g.signals) : 0;
    while (!w.code && work_once(&w))
        ;
    dibs_queue_free(w.queue);
    dibs__guarded_fini(&w.g, die_of);
    if (w.lost_fd >= 0)
        close(w.lost_fd);
    return w.code;
}

static int run_queue(const dibs__command *cmd)
{
    size_t count = (size_t)dibs__opt_int(cmd, "jobs");

    if (count > 1 && dibs__opt_flag(cmd, "once")) {
        dibs__cli_say("queue run: --once is for one item: leave out -j");
        return DIBS__EXIT_USAGE;
    }
    return count == 1 ? run_worker(cmd)
                      : dibs__pool_run(cmd, count, run_worker);
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("jobs", "N", 1, DIBS__POOL_MAX), .letter = 'j',
     .initial = "1",
     .help = "Work on so many items at a time, each in a process of its own."},
    {DIBS__ROW_SPAN("limit", 1, DIBS__DAYS(1)), .otherwise = "none",
     .help = "End a command that takes longer than this, with all processes "
             "that it started; its item comes back."},
    {DIBS__ROW_SPAN("delay", 0, DIBS__YEAR),
     .otherwise = "2s, 4s, 8s .. 10m, by the attempt, with jitter",
     .help = "The item of a command that failed comes back after this long."},
    {DIBS__ROW_WAIT_LONG,
     .help = "Stop when no item has come for this long; 0 works on what is "
             "ready."},
    {.name = "once",
     .help = "Work on one item, and exit with the code of its command."},
    {DIBS__ROW_CONFLICT,
     .help = "With --once: the exit code when no item came within -w."},
    {.name = "in-file",
     .help = "Put the data into a file, whose path is in DIBS_ITEM_FILE; "
             "standard input is empty then. If the worker is killed, the next "
             "one that starts removes the file."},
};

const dibs__option_rows dibs__options_queue_run =
    DIBS__OPTION_ROWS("queue run", options);

const dibs__verb dibs__verb_queue_run = {
    .name = "queue run",
    .operands = "NAME [--] COMMAND [ARG...]",
    .summary = "run a command for each item of a queue",
    .about =
        "Takes items one after the other and runs COMMAND for each, with the "
        "data on standard input. Exit code 0 acks the item. 65 makes it a "
        "dead letter. 75 and all others bring it back after --delay, until "
        "its tries are used up.\n"
        "If this process dies, the item comes back after --ttl. If the store "
        "is away for longer, the whole process tree of the command is dead "
        "before another worker can have the item.\n"
        "TERM, INT or HUP let the command finish, and stop then; another "
        "signal, a second later or more, ends the command, and its item comes "
        "back uncounted.\n"
        "The command finds in its environment DIBS_QUEUE, DIBS_ITEM_ID, "
        "DIBS_ITEM_ATTEMPT (1 at first), DIBS_ITEM_LOST (attempts whose "
        "worker died), DIBS_ITEM_FENCE (higher for each later delivery of the "
        "item), DIBS_ITEM_TOKEN (the name of this delivery alone) and "
        "DIBS_ITEM_HEADERS (lines KEY=VALUE). The worker keeps and settles the "
        "item itself: queue ack, nack and extend take a token of queue pop, "
        "not DIBS_ITEM_TOKEN.\n"
        "DIBS_ITEM_RESULT is a file: with exit code 0, what the command writes "
        "there is the result, cut to 1,023 bytes, for the record of the item "
        "(--keep-done of queue set). With another code it is the reason, cut "
        "to 255 bytes.\n",
    .examples = "Four at a time, five minutes each at most:\n"
                "  dibs queue run mail -j 4 --limit 5m -- ./send\n"
                "All that is ready, then stop:\n"
                "  dibs queue run mail -w 0 -- ./send\n"
                "One item, under cron:\n"
                "  dibs queue run mail --once -w 0 -E 0 -- ./send\n",
    .exits = "0 stopped by a signal, or by -w\n"
             "N --once: the command ended with N\n"
             "75 --once: no item came within -w (-E)\n"
             "122 --once: the item was lost\n"
             "124 --once: --limit ended the command\n" DIBS__COMMAND_EXITS,
    .options = "ttl,durability",
    .min_operands = 2,
    .max_operands = -1,
    .kind = DIBS__QUEUES,
    .tail = true,
    .run = run_queue,
};
