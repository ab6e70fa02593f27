/* verb_members.c - members: who is in a group, once or as it changes, or which groups
 * there are.
 *
 * A store tells nobody of members that come and go, so that -l looks at intervals and
 * compares with the look before. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/list_verb.h"
#include "cli/poll_verb.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { SEEN_MAX = 1000000, MEMBER_SIZE = 64 };

typedef struct visit {
    dibs__shape shape;
    void *out;
} visit;

static void put_pairs(dibsx_json *js, const dibs_member_info *info)
{
    char since[40];

    dibs__wall_text(info->since_wall_us, since, sizeof since);
    dibsx_json_pair_text(js, "member", info->member);
    dibsx_json_pair_text(js, "host", info->host);
    dibsx_json_pair_int(js, "pid", info->pid);
    dibsx_json_pair_text(js, "label", info->label);
    dibsx_json_pair_text(js, "meta", info->meta);
    dibsx_json_pair_uint(js, "fence", info->fence);
    dibsx_json_pair_text(js, "since", since);
    dibsx_json_pair_int(js, "left_ms", info->left_ms);
    dibsx_json_pair_bool(js, "counts", info->counts);
}

static void put_row(dibs__table *table, const dibs_member_info *info)
{
    char since[40];

    dibs__wall_text(info->since_wall_us, since, sizeof since);
    dibs__table_cell(table, info->member);
    dibs__table_cell(table, info->label);
    dibs__table_cell(table, since);
    dibs__table_span(table, info->left_ms);
    dibs__table_cell(table, info->counts ? "yes" : "not yet");
}

static bool list_member(const dibs_member_info *info, void *arg)
{
    const visit *vt = arg;

    if (vt->shape == DIBS__AS_NAMES) {
        dibs__list_name(info->member);
    } else if (vt->shape == DIBS__AS_JSON) {
        dibsx_json_open(vt->out, '{');
        put_pairs(vt->out, info);
        dibsx_json_close(vt->out, '}');
    } else {
        put_row(vt->out, info);
    }
    return true;
}

/* The group has no members, which is an empty list in JSON. */
static bool is_empty;

static dibs_status list_members(const dibs__command *cmd, dibs_client *cl,
                                dibs__shape shape, void *out, dibs_error *err)
{
    visit vt = {shape, out};
    dibs_status rc =
        dibs_members_list(cl, dibs__operands(cmd)[0], list_member, &vt, err);

    is_empty = rc == DIBS_NOTFOUND;
    return is_empty && shape == DIBS__AS_JSON ? DIBS_OK : rc;
}

static bool list_group(const dibs_group_info *info, void *arg)
{
    const visit *vt = arg;

    if (vt->shape == DIBS__AS_NAMES) {
        dibs__list_name(info->group);
    } else if (vt->shape == DIBS__AS_JSON) {
        dibsx_json_open(vt->out, '{');
        dibsx_json_pair_text(vt->out, "name", info->group);
        dibsx_json_pair_uint(vt->out, "member_count", info->members);
        dibsx_json_pair_uint(vt->out, "counting", info->counting);
        dibsx_json_close(vt->out, '}');
    } else {
        dibs__table_cell(vt->out, info->group);
        dibs__table_cellf(vt->out, "%u", (unsigned)info->members);
        dibs__table_cellf(vt->out, "%u", (unsigned)info->counting);
    }
    return true;
}

static dibs_status list_groups(const dibs__command *cmd, dibs_client *cl,
                               dibs__shape shape, void *out, dibs_error *err)
{
    visit vt = {shape, out};

    return dibs_group_list(cl, dibs__operands(cmd)[0], list_group, &vt, err);
}

static int run_groups(const dibs__command *cmd)
{
    static const char *const heads[] = {"GROUP", "MEMBERS", "COUNTING"};
    static const dibs__listing groups = {.key = "groups",
                                         .heads = heads,
                                         .columns = 3,
                                         .list = list_groups};

    if (dibs__opt_flag(cmd, "follow")) {
        dibs__cli_say("members: -l follows one group: give its name");
        return DIBS__EXIT_USAGE;
    }
    return dibs__list(cmd, &groups);
}

/* A member as it was seen last. */
typedef struct seen {
    uint64_t fence;
    char member[MEMBER_SIZE];
} seen;

/* The looks of -l, in the order of fences: the last one, and the one under way. */
typedef struct looks {
    const dibs__command *cmd;
    seen *last, *now;
    size_t last_count, count, room;
    size_t at; /* in `last`: those before it were compared */
    bool away;
    int code; /* of a line that could not be printed */
} looks;

static void print_left(looks *lk, const seen *gone)
{
    dibs__report report;

    if (!dibs__opt_flag(lk->cmd, "json")) {
        dibs__out_text("left ");
        dibs__list_name(gone->member);
        lk->code = dibs__out_done();
        return;
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "event", "left");
    dibsx_json_pair_text(&report.js, "member", gone->member);
    dibsx_json_pair_uint(&report.js, "fence", gone->fence);
    lk->code = dibs__report_end(&report);
}

static void print_joined(looks *lk, const dibs_member_info *info)
{
    dibs__report report;

    if (!dibs__opt_flag(lk->cmd, "json")) {
        dibs__out_text("joined ");
        dibs__list_name(info->member);
        lk->code = dibs__out_done();
        return;
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "event", "joined");
    put_pairs(&report.js, info);
    lk->code = dibs__report_end(&report);
}

/* Members with a lower fence than the next one of this look are gone. */
static void pass_gone(looks *lk, uint64_t fence)
{
    while (!lk->code && lk->at < lk->last_count &&
           lk->last[lk->at].fence < fence)
        print_left(lk, &lk->last[lk->at++]);
}

static bool grow_looks(looks *lk)
{
    size_t room = lk->room ? lk->room * 2 : 64;
    seen *last, *now;

    if (lk->count < lk->room)
        return true;
    if (room > SEEN_MAX)
        return false;
    last = dibsx_realloc_n(lk->last, room, sizeof(seen));
    lk->last = last ? last : lk->last;
    now = dibsx_realloc_n(lk->now, room, sizeof(seen));
    lk->now = now ? now : lk->now;
    lk->room = last && now ? room : lk->room;
    return last && now;
}

static bool see_member(const dibs_member_info *info, void *arg)
{
    looks *lk = arg;
    seen *item;

    if (!grow_looks(lk)) {
        dibs__cli_say(
            "cannot follow the group: there is no memory for so many members");
        lk->code = DIBS__EXIT_INTERNAL;
        return false;
    }
    pass_gone(lk, info->fence);
    if (lk->at < lk->last_count && lk->last[lk->at].fence == info->fence)
        lk->at++;
    else if (!lk->code)
        print_joined(lk, info);
    item = &lk->now[lk->count++];
    item->fence = info->fence;
    (void)snprintf(item->member, sizeof item->member, "%s", info->member);
    return !lk->code;
}

/* One look. Says once that the store is out of reach. */
static int look_again(const dibs__command *cmd, dibs_client *cl, void *arg)
{
    looks *lk = arg;
    dibs_error err = {0};
    seen *last = lk->last;
    dibs_status rc;

    lk->at = lk->count = 0;
    rc = dibs_members_list(cl, dibs__operands(cmd)[0], see_member, lk, &err);
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND) {
        bool said = lk->away;

        lk->away = true;
        if (err.retriable && said)
            return 0;
        return dibs__poll_verb_failed(cmd, &err);
    }
    pass_gone(lk, UINT64_MAX);
    last = lk->last;
    lk->last = lk->now;
    lk->now = last;
    lk->last_count = lk->count;
    lk->away = false;
    return lk->code;
}

static int run_members(const dibs__command *cmd)
{
    static const char *const heads[] = {"MEMBER", "LABEL", "SINCE", "LEFT",
                                        "COUNTS"};
    static const dibs__listing members = {.key = "members",
                                          .heads = heads,
                                          .columns = 5,
                                          .list = list_members};
    looks lk = {.cmd = cmd};
    int code;

    if (dibs__operand_count(cmd) == 0 || dibs__opt_flag(cmd, "groups"))
        return run_groups(cmd);
    if (!dibs__opt_flag(cmd, "follow")) {
        code = dibs__list(cmd, &members);
        return code == 0 && is_empty ? 1 : code;
    }
    code = dibs__poll_verb(cmd, look_again, &lk);
    dibsx_free(lk.last);
    dibsx_free(lk.now);
    return code;
}

static const dibs__option options[] = {
    {.name = "groups",
     .help = "List groups; the operand is the beginning of their names."},
};

const dibs__option_rows dibs__options_members =
    DIBS__OPTION_ROWS("members", options);

const dibs__verb dibs__verb_members = {
    .name = "members",
    .operands = "[GROUP]",
    .summary = "list the members of a group, or the groups",
    .about =
        "One line per member: its name (host:pid if it gave none), its label, "
        "since when it is there, how much of its seat is left, and whether it "
        "counts for --min-nodes of an election with that name. A member that "
        "dies is listed until its seat ends.\n"
        "With -l a line for each member that is there, \"joined MEMBER\", and "
        "one for each that comes or goes, \"left MEMBER\", until it is "
        "interrupted. With --json each line is an object.\n"
        "Without a GROUP one line per group that has a member: its name, how "
        "many members it has, and how many of them count.\n",
    .examples = "The workers that are there:\n"
                "  dibs members workers\n"
                "How many:\n"
                "  dibs members --names workers | wc -l\n"
                "The groups whose names begin with pay-:\n"
                "  dibs members --groups pay-\n",
    .exits = "0 listed\n"
             "1 the group has no members\n"
             "128+N ended by signal N\n",
    .options = "json,names,interval",
    .min_operands = 0,
    .max_operands = 1,
    .run = run_members,
};
