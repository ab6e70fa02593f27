/* verb_leader.c - leader: who leads an election, once or as it changes; and asking the
 * leader to hand the lead to a candidate. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/changes.h"
#include "cli/heir.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "show/change_trail.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SPAN_MS = 500, LOOK_MS = 50 };

static int print_json(const char *name, const dibs_leader *leader)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", name);
    if (leader->term) {
        dibsx_json_pair_text(&report.js, "leader", leader->member);
        dibsx_json_pair_text(&report.js, "host", leader->host);
        dibsx_json_pair_int(&report.js, "pid", leader->pid);
        dibsx_json_pair_text(&report.js, "meta", leader->meta);
        dibsx_json_pair_int(&report.js, "age_ms", leader->age_ms);
        dibsx_json_pair_int(&report.js, "left_ms", leader->left_ms);
    } else {
        dibsx_json_key(&report.js, "leader");
        dibsx_json_null(&report.js);
    }
    dibsx_json_pair_uint(&report.js, "term", leader->term);
    dibsx_json_pair_uint(&report.js, "candidates", leader->candidates);
    dibsx_json_pair_uint(&report.js, "members", leader->members);
    return dibs__report_end(&report);
}

static int print_leader(const dibs__command *cmd, const dibs_leader *leader)
{
    if (dibs__opt_flag(cmd, "json"))
        return print_json(dibs__operands(cmd)[0], leader);
    if (leader->term)
        printf("%s term %" PRIu64 "\n", leader->member, leader->term);
    else
        printf("nobody\n");
    return dibs__out_done();
}

/* The reader of a pipe has gone: nobody sees the next line. */
static bool reader_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = 0};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* A line per change, without end. The library says once that the store is out of
 * reach. */
static int follow_leader(const dibs__command *cmd, dibs_client *cl)
{
    dibs_leader_watch *watch = NULL;
    dibs_error err = {0};
    int code = 0;

    if (dibs_leader_watch_new(cl, dibs__operands(cmd)[0], &watch, &err) !=
        DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    while (!code) {
        dibs_leader leader;
        dibs_status rc = dibs_leader_watch_next(watch, SPAN_MS, &leader, &err);
        bool away = rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;

        if (rc == DIBS_OK)
            code = print_leader(cmd, &leader);
        else if (rc != DIBS_TIMEOUT && !away)
            code = dibs__cli_fail(cmd, &err);
        else if (reader_gone())
            code = 128 + SIGPIPE;
    }
    dibs_leader_watch_free(watch);
    return code;
}

static int show_leader(const dibs__command *cmd, dibs_client *cl)
{
    dibs_leader leader;
    dibs_error err = {0};
    dibs_status rc = dibs_leader_get(cl, dibs__operands(cmd)[0], &leader, &err);
    int code;

    if (rc == DIBS_OK)
        return print_leader(cmd, &leader);
    code = rc == DIBS_NOTFOUND && dibs__opt_flag(cmd, "json")
               ? print_leader(cmd, &leader)
               : dibs__cli_fail(cmd, &err);
    return code ? code : 1;
}

/* A request to hand the lead to `heir`, of which there is one at a time. Others that want
 * the same heir wait with it, and ask themselves when it is over. */
typedef struct transfer {
    dibs_client *cl;
    const char *name;
    const char *heir;
    dibsx_nsec deadline;
    char key[DIBS__HEIR_KEY_SIZE];
    uint64_t version; /* of the value that names the heir; 0: it is not ours */
    bool asked;       /* it was ours for some time */
    dibs_leader leader;
} transfer;

static bool is_done(const transfer *tr)
{
    return strcmp(tr->leader.member, tr->heir) == 0;
}

/* Another process has asked for another heir. *there: some process has asked. A store that
 * has no values cannot do this at all. */
static dibs_status
check_others(const transfer *tr, bool *there, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc = dibs_state_get(tr->cl, tr->key, &value, err);

    *there = rc == DIBS_OK;
    if (rc == DIBS_OK && strcmp(value.data, tr->heir) != 0)
        rc = dibsx_fail(err, DIBS_BUSY,
                        "a transfer of %s to %.63s is under way; try again "
                        "when it is over",
                        tr->name, (const char *)value.data);
    dibs_value_free(&value);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* Names the heir, unless a process has done so. */
static dibs_status name_heir(transfer *tr, dibs_error *err)
{
    int64_t left_ms = dibsx_wait_ms(tr->deadline, dibsx_now());
    uint64_t version = 0; /* of another, if that was faster */
    dibs_status rc = DIBS_OK;
    bool there = tr->version != 0;

    if (!there)
        rc = check_others(tr, &there, err);
    if (rc != DIBS_OK || there || left_ms <= 0)
        return rc;
    rc = dibs_state_cas(tr->cl, tr->key, DIBS_VERSION_NONE, tr->heir,
                        strlen(tr->heir), left_ms, &version, err);
    if (rc == DIBS_OK)
        tr->version = version;
    tr->asked = tr->asked || dibs__change_may_be_done(rc);
    return rc == DIBS_STALE ? check_others(tr, &there, err) : rc;
}

static dibs_status check_candidate(const transfer *tr, dibs_error *err)
{
    size_t place;
    dibs_status rc = dibs__heir_place(tr->cl, tr->name, tr->heir, &place, err);

    if (rc == DIBS_OK && place == SIZE_MAX)
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "no candidate for %s is called %.63s; dibs show lists "
                        "them",
                        tr->name, tr->heir);
    return rc;
}

/* The store may be out of reach for a moment: the transfer goes on without us. */
static dibs_status await_heir(transfer *tr, dibs_error *err)
{
    for (;;) {
        dibs_status rc = dibs_leader_get(tr->cl, tr->name, &tr->leader, err);

        if (rc == DIBS_OK && is_done(tr))
            return rc;
        if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
            rc = name_heir(tr, err);
        if (rc != DIBS_OK && (rc == DIBS_BUSY || !err->retriable))
            return rc;
        if (dibsx_now() >= tr->deadline)
            return dibsx_fail(err, DIBS_TIMEOUT,
                              "%.63s did not come to lead %s in time; dibs "
                              "leader shows who leads, and -w waits longer",
                              tr->heir, tr->name);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static dibs_status ask_leader(transfer *tr, dibs_error *err)
{
    dibs_status rc = dibs_leader_get(tr->cl, tr->name, &tr->leader, err);
    bool there;

    if (rc != DIBS_OK || is_done(tr))
        return rc;
    rc = check_others(tr, &there, err);
    if (rc == DIBS_OK)
        rc = check_candidate(tr, err);
    if (rc == DIBS_OK)
        rc = name_heir(tr, err);
    if (rc == DIBS_OK)
        rc = await_heir(tr, err);
    if (tr->version)
        (void)!dibs_state_delete(tr->cl, tr->key, tr->version, NULL);
    return rc;
}

static int transfer_lead(const dibs__command *cmd, dibs_client *cl)
{
    transfer tr = {.cl = cl,
                   .name = dibs__operands(cmd)[0],
                   .heir = dibs__opt_text(cmd, "transfer"),
                   .deadline =
                       dibsx_after_ms(dibsx_now(), dibs__opt_ms(cmd, "wait"))};
    char reason[DIBS__HEIR_SIZE + 8];
    dibs_error err = {0};
    dibs_status rc;

    dibs__heir_key(tr.name, tr.key);
    snprintf(reason, sizeof(reason), "to %s", tr.heir);
    rc = ask_leader(&tr, &err);
    /* Also of one that did not come in time: the leader may have left for it. */
    if (tr.asked)
        dibs__cli_change_made(cmd, cl, "leader-transfer", tr.name, reason,
                              DIBS_OK);
    return rc == DIBS_OK ? print_leader(cmd, &tr.leader)
                         : dibs__cli_fail(cmd, &err);
}

static int choose_action(const dibs__command *cmd, dibs_client *cl)
{
    if (dibs__opt_given(cmd, "transfer"))
        return transfer_lead(cmd, cl);
    return dibs__opt_flag(cmd, "follow") ? follow_leader(cmd, cl)
                                         : show_leader(cmd, cl);
}

static int check_options(const dibs__command *cmd)
{
    const char *heir = dibs__opt_text(cmd, "transfer");

    if (!heir)
        return 0;
    if (dibs__opt_flag(cmd, "follow"))
        dibs__cli_say("--transfer does not go with -l; give one of them");
    else if (!*heir || strlen(heir) >= DIBS__HEIR_SIZE)
        dibs__cli_say("--transfer takes the name of a candidate, of 1 to %d "
                      "bytes",
                      DIBS__HEIR_SIZE - 1);
    else
        return 0;
    return DIBS__EXIT_USAGE;
}

static int run_leader(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    int code = check_options(cmd);

    if (!code)
        code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    code = choose_action(cmd, cl);
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("transfer", "CANDIDATE"),
     .help = "Ask the leader to hand the lead to this candidate, and wait "
             "until it leads."},
    {DIBS__ROW_SPAN("wait", 1, DIBS__DAYS(1)), .aliases = "timeout",
     .letter = 'w', .initial = "30s",
     .help = "With --transfer: wait at most this long. The leader's command "
             "has its --stop to end in."},
};

const dibs__option_rows dibs__options_leader =
    DIBS__OPTION_ROWS("leader", options);

const dibs__verb dibs__verb_leader = {
    .name = "leader",
    .operands = "NAME",
    .summary = "print who leads an election, or hand the lead on",
    .about =
        "The member and the term of the leader. With -l one line now and "
        "one per change, until it is interrupted; the line is \"nobody\" "
        "while there is none. The last leader always arrives; one that "
        "led for less than a second may be skipped.\n"
        "With --transfer the lead goes to a candidate that waits; dibs "
        "show lists them (member=). The leader leads until that candidate is "
        "the next in the queue. Then the command of dibs elect ends, with its "
        "whole "
        "process tree, before the candidate leads; a program's election calls "
        "on_lost. The leader "
        "campaigns again. A candidate that does not answer changes "
        "nothing.\n",
    .examples = "The leader of the scheduler:\n"
                "  dibs leader scheduler\n"
                "Follow it:\n"
                "  dibs leader -l scheduler\n"
                "Before work on this machine, let another lead:\n"
                "  dibs leader scheduler --transfer web2:4711\n",
    .exits = "0 the leader was printed; with --transfer, the candidate leads\n"
             "1 nobody leads, or there is no such candidate\n"
             "75 with --transfer: not in time, or another one is under way\n"
             "128+N ended by signal N\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = run_leader,
};
