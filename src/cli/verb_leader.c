/* verb_leader.c - leader: who leads an election, once or as it changes. */
/* SPDX-License-Identifier: MIT */
#include "cli/print.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { SPAN_MS = 500 };

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

static int run_leader(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    code = dibs__opt_flag(cmd, "follow") ? follow_leader(cmd, cl)
                                         : show_leader(cmd, cl);
    dibs_close(cl);
    return code;
}

const dibs__verb dibs__verb_leader = {
    .name = "leader",
    .operands = "NAME",
    .summary = "print who leads an election",
    .about = "The member and the term of the leader. With -l one line now and "
             "one per change, until it is interrupted; the line is \"nobody\" "
             "while there is none. The last leader always arrives; one that "
             "led for less than a second may be skipped.\n",
    .examples = "The leader of the scheduler:\n"
                "  dibs leader scheduler\n"
                "Follow it:\n"
                "  dibs leader -l scheduler\n",
    .exits = "0 the leader was printed\n"
             "1 nobody leads\n"
             "128+N ended by signal N\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = run_leader,
};
