/* verb_work.c - `dibs work [FILE...]`: a node that ticks, and executes jobs. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/job_board.h"
#include "cli/job_files.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "jobs/board_name.h"
#include "jobs/board_set.h"
#include "node/node.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { AGAIN_MS = 1000 };

static void say_line(void *arg, const char *line)
{
    if (!dibs__opt_flag(arg, "quiet"))
        dibs__cli_say("%s", line);
}

/* ---- files */

/* A node serves one board: that of --board, or that of its files. */
static int choose_board(const dibs__command *cmd, const dibs__read_jobs *files,
                        size_t count, const char **out)
{
    *out = dibs__opt_text(cmd, "board");
    if (!dibs__opt_given(cmd, "board") && count > 0)
        *out = files[0].file.board;
    for (size_t i = 0; i < count; i++)
        if (strcmp(files[i].file.board, *out) != 0) {
            dibs__cli_say("%s is for the board %s, and this node for %s; start "
                          "a node for each board",
                          files[i].path, files[i].file.board, *out);
            return DIBS__EXIT_CONFIG;
        }
    return 0;
}

/* ---- a store that is away */

/* A node is a daemon: it waits for its store, and says so once for each cause. */
typedef struct patience {
    const dibs__command *cmd;
    int stop_fd;
    char said[256];
    bool stopped; /* by a signal, while it waited */
} patience;

/* Whether to try again: not if the failure is final, nor with --once, nor after a
 * signal. */
static bool try_again(patience *pt, dibs_status rc, const dibs_error *err)
{
    struct pollfd stop = {.fd = pt->stop_fd, .events = POLLIN};

    if ((!dibsx_is_away(rc) && rc != DIBS_STALE) ||
        dibs__opt_flag(pt->cmd, "once"))
        return false;
    if (strcmp(pt->said, err->message) != 0 &&
        !dibs__opt_flag(pt->cmd, "quiet"))
        dibs__cli_say("cannot join the board yet: %s; this node tries again "
                      "until a signal stops it",
                      err->message);
    (void)snprintf(pt->said, sizeof(pt->said), "%s", err->message);
    pt->stopped = poll(&stop, 1, AGAIN_MS) > 0;
    return !pt->stopped;
}

/* The same rule as job load; with an older file the node serves what the store has of
 * it. */
static int
load_file(patience *pt, const dibs__board *board, const dibs__read_jobs *read)
{
    const dibs__command *cmd = pt->cmd;
    char origin[PATH_MAX + 80], who[DIBS__RUN_NOTE_SIZE];
    dibs__load_opts opts = {.origin = origin, .by = who};
    dibs__load_sum sum = {.verdict = DIBS__SET_SAME};
    dibs_error err = {0};
    dibsx_buf why;
    dibs_status rc = DIBS_OK;
    int code = 0;

    dibs__jobs_origin(read->path, origin, sizeof(origin));
    dibs__board_whoami(who, sizeof(who));
    dibsx_buf_init(&why, 4096);
    do {
        dibsx_buf_reset(&why);
        rc = dibs__board_load(board, &read->file, &opts, NULL, NULL, &sum, &why,
                              &err);
    } while (rc != DIBS_OK && try_again(pt, rc, &err));
    if (rc != DIBS_OK && !pt->stopped) {
        code = dibs__cli_fail(cmd, &err);
        if (rc == DIBS_INVALID)
            code = DIBS__EXIT_CONFIG;
    } else if (sum.verdict == DIBS__SET_REFUSED ||
               sum.verdict == DIBS__SET_OLDER) {
        if (!dibs__opt_flag(cmd, "quiet"))
            dibs__cli_say("%s: %s", read->path, dibsx_buf_text(&why));
        code = sum.verdict == DIBS__SET_REFUSED ? DIBS__EXIT_CONFIG : 0;
    }
    dibsx_buf_fini(&why);
    return code;
}

/* ---- the node */

/* The signals that stop it; before any thread is made. */
static int open_stop(void)
{
    sigset_t stops;

    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &stops, NULL);
    return signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int check_labels(const char *const *labels)
{
    size_t count = 0;

    for (; labels && labels[count]; count++)
        if (!dibs__job_name_ok(labels[count])) {
            dibs__cli_say("'%.60s' is no label: letters, digits, '.', '_' and "
                          "'-', up to %d",
                          labels[count], DIBS__JOB_NAME_MAX);
            return DIBS__EXIT_USAGE;
        }
    if (count > DIBS__NODE_LABELS_MAX) {
        dibs__cli_say("a node has at most %d labels", DIBS__NODE_LABELS_MAX);
        return DIBS__EXIT_USAGE;
    }
    return 0;
}

static int run_node(patience *pt, const dibs__board *board,
                    const dibs__read_jobs *files, size_t count)
{
    const dibs__command *cmd = pt->cmd;
    const dibs__job_file **list = dibsx_zalloc_n(count + 1, sizeof(*list));
    dibs_error err = {0};
    dibs__node_opts opts = {
        .board = board,
        .files = list,
        .file_count = count,
        .labels = dibs__opt_all(cmd, "label"),
        .slots = (size_t)dibs__opt_int(cmd, "slots"),
        .ttl_ms = dibs__opt_ms(cmd, "ttl"),
        .look_ms = dibs__opt_ms(cmd, "look-every"),
        .drain_ms = dibs__opt_ms(cmd, "drain-within"),
        .sweep_prefix = dibs__opt_text(cmd, "sweep-prefix"),
        .sweep_ms = {[DIBS__SWEEP_RETRY] = dibs__opt_ms(cmd, "retry-every"),
                     [DIBS__SWEEP_TIMEOUT] = dibs__opt_ms(cmd, "timeout-every"),
                     [DIBS__SWEEP_RESUME] = dibs__opt_ms(cmd, "resume-every"),
                     [DIBS__SWEEP_CLEANUP] =
                         dibs__opt_ms(cmd, "cleanup-every")},
        .once = dibs__opt_flag(cmd, "once"),
        .stop_fd = pt->stop_fd,
        .say = say_line,
        .arg = (void *)(size_t)cmd};
    dibs_status rc = DIBS_OK;
    int code = 0;

    if (!list)
        return dibs__cli_nomem("the list of files");
    for (size_t i = 0; i < count; i++)
        list[i] = &files[i].file;
    do
        rc = dibs__node_run(&opts, &err);
    while (rc != DIBS_OK && try_again(pt, rc, &err));
    if (rc != DIBS_OK && !pt->stopped)
        code = dibs__cli_fail(cmd, &err);
    dibsx_free(list);
    return code;
}

static int serve_files(const dibs__command *cmd, const dibs__read_jobs *files,
                       size_t count, int stop_fd)
{
    patience pt = {.cmd = cmd, .stop_fd = stop_fd};
    const char *name = NULL;
    dibs__board board;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = choose_board(cmd, files, count, &name);

    if (!code)
        code = dibs__opt_flag(cmd, "once") ? dibs__cli_open(cmd, &cl)
                                           : dibs__cli_open_lazy(cmd, &cl);
    if (!code && dibs__board_init(&board, cl, name, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    for (size_t i = 0; i < count && !code && !pt.stopped; i++)
        code = load_file(&pt, &board, &files[i]);
    if (!code && !pt.stopped)
        code = run_node(&pt, &board, files, count);
    dibs_close(cl);
    return code;
}

static int work_jobs(const dibs__command *cmd)
{
    dibs__read_jobs *files = NULL;
    size_t count = 0;
    int stop_fd = -1, code = check_labels(dibs__opt_all(cmd, "label"));

    if (code)
        return code;
    code = dibs__jobs_open(cmd, &files, &count);
    if (code == 0 || code == DIBS__EXIT_CONFIG)
        dibs__jobs_say(cmd, files, count);
    if (!code) {
        stop_fd = open_stop();
        if (stop_fd < 0) {
            dibs__cli_say("cannot open a signalfd: %s", strerror(errno));
            code = DIBS__EXIT_INTERNAL;
        }
    }
    if (!code)
        code = serve_files(cmd, files, count, stop_fd);
    if (stop_fd >= 0)
        close(stop_fd);
    dibs__jobs_close(files, count);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("label", "LABEL"), .many = true, .otherwise = "none",
     .help = "Execute also what asks for this label (runs_on). Repeat it for "
             "more."},
    {DIBS__ROW_INT("slots", "N", 1, DIBS__NODE_SLOTS_MAX), .letter = 'j',
     .initial = "4", .help = "Run so many commands at a time."},
    {DIBS__ROW_SPAN("drain-within", 0, DIBS__DAYS(1)), .initial = "30s",
     .help = "How long commands may go on after the first TERM or INT."},
    {DIBS__ROW_SPAN("look-every", 10, DIBS__DAYS(1)), .initial = "10s",
     .help = "Look at the store at least this often, should a wake-up be lost. "
             "The node sleeps until something is due, or until a commit of "
             "another program wakes it. If the store cannot wake it, it looks "
             "once a second."},
    {DIBS__SETTING_SWEEP_PREFIX, .metavar = "TEXT", .verbs = "work,serve",
     .help = "The beginning of the names of the four locks of sweeps: "
             "retry-scheduler, timeout-scheduler, resume-scheduler and "
             "cleanup-scheduler."},
    {DIBS__SETTING_RETRY_EVERY, .metavar = "DUR", .verbs = "work,serve",
     .help = "The least time between two looks for retries that are due."},
    {DIBS__SETTING_TIMEOUT_EVERY, .metavar = "DUR", .verbs = "work,serve",
     .help = "The same for limits that are passed, and runs of nodes that are "
             "gone."},
    {DIBS__SETTING_RESUME_EVERY, .metavar = "DUR", .verbs = "work,serve",
     .help = "The same for sleeps that are over, children and followers."},
    {DIBS__SETTING_CLEANUP_EVERY, .metavar = "DUR", .verbs = "work,serve",
     .help = "The same for history that is too long."},
    {.name = "once",
     .help = "Stop when nothing is due, ready or running any more."},
};

const dibs__option_rows dibs__options_work = DIBS__OPTION_ROWS("work", options);

const dibs__verb dibs__verb_work = {
    .name = "work",
    .operands = "[FILE...]",
    .summary = "execute jobs: a node that ticks and runs commands",
    .about =
        "Loads the jobs files by the rule of dibs job load, and executes their "
        "jobs until TERM or INT. Any number of nodes may serve one board: a "
        "tick makes one run, and one node executes it.\n"
        "A node runs only commands that are in its own files. Runs of other "
        "definitions are left to other nodes. Without files it only ticks and "
        "sweeps.\n"
        "If a node dies, its commands die with it, and after --ttl another "
        "node takes over: the run is lost, and is tried again if its retry.on "
        "has lost. If the store is away for longer, all process trees of the "
        "commands are dead before another node can take over.\n"
        "If the store is away when the node starts, the node waits for it; "
        "with --once it fails.\n"
        "TERM or INT drain the node: it takes nothing new, and stops when its "
        "commands have ended, or have been ended after --drain-within. A "
        "second signal kills them.\n"
        "Commands find DIBS_JOB, DIBS_RUN, DIBS_STEP, DIBS_ATTEMPT, "
        "DIBS_RUN_TOKEN, DIBS_TICK, "
        "DIBS_PARAM_NAME, DIBS_RESULT and DIBS_NEEDS in their environment; "
        "docs/jobs.md has all.\n",
    .examples = "A node with two files:\n"
                "  dibs work billing.yaml reports.yaml\n"
                "Eight commands at a time, and those for eu:\n"
                "  dibs work -j 8 --label eu jobs/*.yaml\n",
    .exits = "0 stopped by a signal, or by --once\n"
             "1 there is no such file\n"
             "78 a file has mistakes, or its version does not win\n",
    .options = "ttl",
    .max_operands = -1,
    .kind = DIBS__FILES,
    .run = work_jobs,
};
