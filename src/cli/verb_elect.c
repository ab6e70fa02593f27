/* verb_elect.c - `dibs elect NAME [--] COMMAND...`: run a command while leader.
 *
 * An election is the lease of its name, so that the loop is that of a run: wait for the
 * lease, run the command under the guard, give the lease back when nothing of the
 * command's tree is left. After a loss or a transfer it campaigns again. Main thread
 * only; heir.c hears of transfers on a thread of its own. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/host.h"
#include "cli/command.h"
#include "cli/heir.h"
#include "cli/lock_acquire.h"
#include "cli/lock_or_set.h"
#include "cli/options.h"
#include "cli/run/env.h"
#include "cli/run/guarded.h"
#include "cli/verbs.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REST_MS = 20, AWAY_REST_MS = 250, TELL_AFTER_MS = 2000 };

/* A seat lives for three heartbeats, the last of which may be missing when the command
 * must begin to end; without --heartbeat for two thirds of the ttl. */
enum { SEAT_BEATS = 3, SEAT_PART = 3 };

typedef struct candidate {
    dibs__guarded g;                       /* with a member for --min-nodes */
    char member[DIBS__HEIR_SIZE];          /* --member, or host:pid */
    char member_meta[DIBS__HEIR_SIZE + 8]; /* "member=host:pid" */
    int32_t priority;
    int64_t seat_ms;    /* the ttl of the member's seat */
    uint64_t seat;      /* the member's fence when it asked for the lease */
    dibsx_nsec tell_at; /* when to say what it waits for before it asks */
    dibs__lock_or_set locks;
    dibs__heir_watch heirs;
    int die_of; /* the signal that ended the wait */
    int code;
} candidate;

/* 0, or DIBS__EXIT_USAGE after a message. */
static int read_member(candidate *c, const dibs__command *cmd)
{
    const char *given = dibs__opt_text(cmd, "member");
    char host[DIBSX_HOST_SIZE];

    dibsx_host_name(host);
    (void)snprintf(c->member, sizeof c->member, "%s:%ld", host, (long)getpid());
    if (given && (!*given || strlen(given) >= sizeof c->member)) {
        dibs__cli_say("--member takes 1 to %zu bytes; shorten it",
                      sizeof c->member - 1);
        return DIBS__EXIT_USAGE;
    }
    if (given)
        (void)snprintf(c->member, sizeof c->member, "%s", given);
    (void)snprintf(c->member_meta, sizeof c->member_meta, "member=%s",
                   c->member);
    return 0;
}

/* The member comes first. */
static int read_meta(dibs__lock_request *request, const dibs__command *cmd)
{
    const char *const *given = dibs__opt_all(cmd, "meta");

    for (size_t i = 0; given[i]; i++) {
        if (i == DIBS__META_TEXTS) {
            dibs__cli_say("elect: give at most %d texts of metadata",
                          DIBS__META_TEXTS);
            return DIBS__EXIT_USAGE;
        }
        request->meta[i + 1] = given[i];
    }
    return 0;
}

static int read_heartbeat(candidate *c, const dibs__command *cmd)
{
    bool given = dibs__opt_given(cmd, "heartbeat");

    c->seat_ms = given ? SEAT_BEATS * dibs__opt_ms(cmd, "heartbeat")
                       : 2 * c->g.opts.ttl_ms / SEAT_PART;
    if (!given || dibs__opt_given(cmd, "min-nodes"))
        return 0;
    dibs__cli_say("elect: --heartbeat goes with --min-nodes");
    return DIBS__EXIT_USAGE;
}

static int read_options(candidate *c, const dibs__command *cmd)
{
    dibs__lock_request *request = &c->g.opts.request;
    int code = read_member(c, cmd);

    c->priority = (int32_t)dibs__opt_int(cmd, "priority");
    c->g.opts.on_yield = DIBS__YIELD_EXIT;
    c->g.opts.yield_why = "the lead is handed on";
    request->names[0] = c->g.opts.name;
    request->count = 1;
    request->meta[0] = c->member_meta;
    request->lock =
        (dibs_lock_opts){.size = sizeof request->lock,
                         .ttl_ms = c->g.opts.ttl_ms,
                         .wait_ms = -1,
                         .priority = c->priority,
                         .label = dibs__opt_text(cmd, "owner"),
                         .meta = request->meta,
                         .durability = dibs__opt_text(cmd, "durability")};
    request->patient = true;
    request->quiet = c->g.opts.quiet;
    if (!code)
        code = read_meta(request, cmd);
    if (!code)
        code = dibs__lock_request_renewal(cmd, &request->lock);
    if (!code)
        code = read_heartbeat(c, cmd);
    return code;
}

/* Known before the campaign: nobody waits in vain. */
static int open_all(candidate *c)
{
    dibs__guarded *g = &c->g;
    dibs_error err;
    int code = dibs__guarded_open(g, "before another leads");

    if (!code)
        code = dibs__lock_request_open(g->cmd, &g->opts.request, &g->cl);
    if (!code &&
        (dibs__lock_or_set_init(&c->locks, g->cl, &g->opts.name, 1,
                                &g->opts.request.lock, &err) != DIBS_OK ||
         dibs__heir_watch_init(&c->heirs, g->cl, g->opts.name, c->member,
                               &c->locks, &g->inputs, &err) != DIBS_OK))
        code = dibs__cli_fail(g->cmd, &err);
    return code;
}

/* The command finds its term in DIBS_TERM. */
static dibs_status run_command(candidate *c, dibs_error *err)
{
    dibs__guarded *g = &c->g;
    dibs_lock *lock = dibs__lock_or_set_find(&c->locks, g->opts.name);
    dibs__held held = {.name = g->opts.name,
                       .fence = dibs_lock_fence(lock),
                       .ttl_ms = g->opts.ttl_ms};
    dibs__watched watched = {.locks = &c->locks,
                             .member = g->member,
                             .seat = c->seat,
                             .seat_ms = c->seat_ms};
    char term[24];
    dibs_status rc;

    dibs_lock_owner(lock, held.owner);
    (void)snprintf(term, sizeof term, "%" PRIu64, held.fence);
    (void)setenv("DIBS_TERM", term, 1);
    if (g->opts.verbose)
        dibs__cli_say("this process is the leader of %s under term %s",
                      g->opts.name, term);
    dibs__heir_watch_enter(&c->heirs, DIBS__HEIR_LEADS);
    rc = dibs__guarded_run(g, &watched, &held, 1, err);
    dibs__heir_watch_enter(&c->heirs, DIBS__HEIR_RESTS);
    return rc;
}

static void note_end(candidate *c, dibs_status rc, const dibs_error *err)
{
    dibs__outcome *out = &c->g.out;

    out->lost = out->lost || rc == DIBS_LOST;
    if (rc != DIBS_OK && rc != DIBS_LOST)
        c->code = dibs__cli_fail(c->g.cmd, err);
    else
        c->code = dibs__guarded_code(&c->g);
    if (out->lost || out->yielded)
        c->code = DIBS__EXIT_LOST;
}

/* True when a signal ended the wait. */
static bool is_called_off(candidate *c)
{
    if (!c->die_of)
        c->die_of = dibs__signals_pending(&c->g.signals);
    return c->die_of != 0;
}

static void tell_wait(candidate *c, const char *why)
{
    c->tell_at = DIBSX_NEVER;
    if (!c->g.opts.quiet)
        dibs__cli_say("waiting for members of %s: %s", c->g.opts.name, why);
}

/* The store says why they are not enough. */
static void tell_few(candidate *c)
{
    char few[DIBS_NAME_MAX + 80];
    dibs_error err;
    dibs_status rc = dibs_member_recount(c->g.member, &err);

    (void)snprintf(few, sizeof few,
                   "fewer than %" PRId64 " are counted yet (dibs members %s)",
                   dibs__opt_int(c->g.cmd, "min-nodes"), c->g.opts.name);
    if (rc != DIBS_OK)
        tell_wait(c, rc == DIBS_BUSY ? few : err.message);
}

/* With --min-nodes this process has a seat in the group of the election, and waits
 * until enough have one. */
static dibs_status await_members(candidate *c, dibs_error *err)
{
    dibs_member_opts opts = {.size = sizeof opts,
                             .minimum =
                                 (uint32_t)dibs__opt_int(c->g.cmd, "min-nodes"),
                             .ttl_ms = c->seat_ms,
                             .member = c->member,
                             .meta = dibs__opt_all(c->g.cmd, "meta"),
                             .label = c->g.opts.request.lock.label};

    if (!dibs__opt_given(c->g.cmd, "min-nodes"))
        return DIBS_OK;
    while (!c->g.member && !is_called_off(c)) {
        dibs_status rc =
            dibs_member_join(c->g.cl, c->g.opts.name, &opts, &c->g.member, err);

        if (rc != DIBS_OK && !err->retriable)
            return rc;
        if (rc != DIBS_OK && dibsx_now() >= c->tell_at)
            tell_wait(c, err->message);
        if (rc != DIBS_OK)
            (void)poll(NULL, 0, AWAY_REST_MS);
    }
    while (!is_called_off(c) && dibs_member_enough_ms(c->g.member) == 0) {
        (void)poll(NULL, 0, REST_MS);
        if (dibsx_now() >= c->tell_at)
            tell_few(c);
    }
    c->seat = c->die_of ? 0 : dibs_member_fence(c->g.member);
    return DIBS_OK;
}

/* The server that granted the lease counts its members. False: too few, or it is
 * another server than the one whose seat this process had when it asked. */
static bool recount_members(const candidate *c)
{
    return !c->g.member || (dibs_member_recount(c->g.member, NULL) == DIBS_OK &&
                            dibs_member_fence(c->g.member) == c->seat);
}

/* A lock asks with the priority that it was made with. Locks: none is held. */
static dibs_status set_priority(candidate *c, int32_t priority, dibs_error *err)
{
    dibs_lock_opts *opts = &c->g.opts.request.lock;

    if (opts->priority == priority)
        return DIBS_OK;
    opts->priority = priority;
    dibs__lock_or_set_fini(&c->locks);
    return dibs__lock_or_set_init(&c->locks, c->g.cl, &c->g.opts.name, 1, opts,
                                  err);
}

/* Waits for the lease: at the head of the queue if a transfer named this process.
 * DIBS_CANCELLED: a transfer did so meanwhile. */
static dibs_status ask_lease(candidate *c, dibs_error *err)
{
    int32_t priority =
        dibs__heir_watch_urged(&c->heirs) ? INT32_MAX : c->priority;
    dibs_status rc = set_priority(c, priority, err);

    if (rc != DIBS_OK)
        return rc;
    dibs__heir_watch_enter(&c->heirs, priority == INT32_MAX
                                          ? DIBS__HEIR_ASKS_FIRST
                                          : DIBS__HEIR_ASKS);
    rc = dibs__cli_acquire(c->g.cl, &c->locks, &c->g.opts.request,
                           &c->g.signals, &c->die_of, err);
    dibs__heir_watch_enter(&c->heirs, DIBS__HEIR_RESTS);
    return rc;
}

/* DIBS_OK: it leads, or was called off. */
static dibs_status await_lead(candidate *c, dibs_error *err)
{
    for (;;) {
        dibs_status rc = await_members(c, err);

        if (rc == DIBS_OK && !c->die_of)
            rc = ask_lease(c, err);
        if (is_called_off(c))
            return rc;
        if (rc == DIBS_CANCELLED)
            continue;
        if (rc != DIBS_OK || recount_members(c))
            return rc;
        (void)dibs__lock_or_set_release(&c->locks, NULL);
        (void)poll(NULL, 0, REST_MS);
    }
}

/* One term. True when it was lost or handed on, and another one is to be waited for. */
static bool lead_once(candidate *c)
{
    dibs_error err = {0};
    dibs_status rc;

    c->tell_at = dibsx_after_ms(dibsx_now(), TELL_AFTER_MS);
    rc = await_lead(c, &err);
    c->g.out = (dibs__outcome){.exit_status = -1};
    if (c->die_of)
        c->code = 128 + c->die_of;
    else if (rc != DIBS_OK)
        c->code = dibs__cli_fail(c->g.cmd, &err);
    else
        note_end(c, run_command(c, &err), &err);
    (void)dibs__lock_or_set_release(&c->locks, NULL);
    return (c->g.out.lost || c->g.out.yielded) && !c->g.out.asked_to_end &&
           !dibs__opt_flag(c->g.cmd, "once") &&
           !dibs__signals_pending(&c->g.signals);
}

static int run_elect(const dibs__command *cmd)
{
    candidate c = {.code = 0};

    dibs__guarded_init(&c.g, cmd);
    c.code = read_options(&c, cmd);
    if (!c.code)
        c.code = open_all(&c);
    if (c.code)
        (void)is_called_off(&c);
    while (!c.code && lead_once(&c)) {
        (void)poll(NULL, 0, REST_MS);
        c.code = 0;
    }
    dibs__heir_watch_fini(&c.heirs);
    dibs__lock_or_set_fini(&c.locks);
    dibs__guarded_fini(&c.g, c.die_of);
    return c.code;
}

static const dibs__option options[] = {
    {DIBS__ROW_SPAN("stop", 0, DIBS__DAYS(1)), .initial = "5s",
     .verbs = "elect,join,queue run,job resume",
     .help =
         "The time that the command has to end in after TERM, before it is "
         "killed; a quarter of the lease at most when the lead, the item or "
         "the lock is lost."},
    {DIBS__ROW_TEXT("member", "MEMBER"), .otherwise = "host:pid",
     .verbs = "elect,join",
     .help = "The name that others see in place of host:pid."},
    {DIBS__ROW_INT("min-nodes", "N", 1, 1000000), .aliases = "minimum-nodes",
     .otherwise = "members are not counted",
     .help = "Lead only while so many members live, this one among them; the "
             "same number for all candidates."},
    {DIBS__ROW_SPAN("heartbeat", 50, DIBS__DAYS(1) / 3),
     .otherwise = "two ninths of the ttl",
     .help = "With --min-nodes: keep the seat of this member so often. A seat "
             "lives for three heartbeats: so long a dead member counts, and "
             "about so long a new one does not count yet. After a loss the "
             "command has at most 45 % of a heartbeat to end in."},
    {.name = "once",
     .help =
         "Do not campaign again after a loss or a transfer: exit with 122."},
    {.name = "follow",
     .letter = 'l',
     .verbs = "leader,members",
     .help = "Go on: a line per change."},
};

const dibs__option_rows dibs__options_election =
    DIBS__OPTION_ROWS("elect", options);

const dibs__verb dibs__verb_elect = {
    .name = "elect",
    .operands = "NAME [--] COMMAND [ARG...]",
    .summary = "run a command while this process is the leader",
    .about =
        "Waits until it leads the election NAME, and runs COMMAND. The others "
        "wait. When the command ends by itself, it resigns and exits. When it "
        "loses the lead, by a store that stays away or a machine that slept, "
        "the whole process tree of the command is dead before another can "
        "lead; then it campaigns again, unless --once. It does the same when "
        "dibs leader --transfer hands the lead to another candidate, which "
        "waits until the command has ended.\n"
        "The command finds its term in DIBS_TERM: a fencing token, higher "
        "than that of every earlier leader. DIBS_LOCK_NAME and the like are "
        "as in run.\n"
        "With --min-nodes N it leads only while N members of the group NAME "
        "live: candidates, and processes under dibs join. If that is more "
        "than half of all, no two lead, even after a failover that lost "
        "writes. The first leader then comes about --ttl later, or five "
        "times --heartbeat.\n",
    .examples = "One scheduler, whichever machine it is on:\n"
                "  dibs elect scheduler -- ./scheduler\n"
                "Ten seconds to stop in, and a service manager to start it "
                "again:\n"
                "  dibs elect --once --stop 10s --ttl 1m scheduler -- "
                "./scheduler\n"
                "On three machines, of which two must live:\n"
                "  dibs elect --min-nodes 2 scheduler -- ./scheduler\n"
                "With an address that dibs leader --json shows:\n"
                "  dibs elect --meta addr=10.0.0.7:80 web -- ./serve\n",
    .exits = "N the command ended with N\n"
             "122 --once: the lead was lost or handed on\n" DIBS__COMMAND_EXITS,
    .options = "ttl,owner,priority,meta,durability",
    .min_operands = 2,
    DIBS__TAKES_COMMAND,
    .run = run_elect,
};
