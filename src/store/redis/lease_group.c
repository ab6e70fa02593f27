/* lease_group.c - acquires and releases of several names, on their way together.
 *
 * Each step is one command, and a second one if the short script was not enough or
 * the server lacks the script. The commands of all steps go out together, the second
 * ones too; the pipeline makes batches of them. Owns the commands of a group. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/lease_command.h"
#include <string.h>

enum { COMMAND_ROOM = 512 };

typedef struct member {
    dibs__lease_step *step;
    dibs__script script;
    bool whole; /* with its text, which the server lacks */
    bool over;
    redisReply *reply;
    char *large; /* for a command without room in `small` */
    char small[COMMAND_ROOM];
} member;

typedef struct group {
    dibs__redis *rd;
    size_t count;
    member *members;
    dibs__pending *commands;
    member *sent[DIBS__STEPS_MAX]; /* those of `commands` */
} group;

static void end_member(member *mb, dibs_status rc)
{
    mb->step->rc = rc;
    mb->over = true;
}

static void begin_member(member *mb, dibs__lease_step *step)
{
    dibs_status rc = DIBS_OK;

    mb->step = step;
    step->ans = (dibs__answer){.fence = 0};
    if (step->leaves) {
        mb->script = dibs__leave_is_short(&step->leave)
                         ? DIBS__SCRIPT_release_unqueued
                         : DIBS__SCRIPT_release;
    } else {
        rc = dibs__refuse_ask(&step->ask, step->err);
        mb->script = dibs__ask_is_short(&step->ask) ? DIBS__SCRIPT_acquire_free
                                                    : DIBS__SCRIPT_acquire;
    }
    if (rc != DIBS_OK)
        end_member(mb, rc);
}

/* Writes the next command of a member; false when memory was short. */
static bool write_command(dibs__redis *rd, member *mb, dibs__lease_command *cm,
                          dibs__pending *pd)
{
    dibs__lease_step *step = mb->step;
    char *bytes = mb->small;
    bool joins = true;
    size_t room;

    if (step->leaves) {
        dibs__leave_write(mb->script, &step->leave, cm);
    } else {
        dibs__ask_write(rd, mb->script, &step->ask, cm);
        joins = dibs__ask_is_plain(&step->ask);
    }
    room = dibs__script_room(mb->script, &cm->words, mb->whole);
    if (room > sizeof(mb->small)) {
        dibsx_free(mb->large);
        bytes = mb->large = dibsx_zalloc(room);
    }
    if (!bytes)
        return false;
    *pd = (dibs__pending){.replies = &mb->reply,
                          .deadline = step->deadline,
                          .err = step->err};
    dibs__script_pend(mb->script, &cm->words, mb->whole, joins, bytes, pd);
    return true;
}

/* Writes the commands of all members that are not over; returns how many. */
static size_t write_commands(group *gr, dibs__lease_command *cm)
{
    dibsx_nsec now = dibsx_now();
    size_t count = 0;

    for (size_t i = 0; i < gr->count; i++) {
        member *mb = &gr->members[i];

        if (mb->over)
            continue;
        if (now >= mb->step->deadline) {
            end_member(mb,
                       dibsx_fail_at(mb->step->err, DIBS_UNAVAIL, "ETIMEDOUT",
                                     "the deadline has passed"));
            continue;
        }
        if (!write_command(gr->rd, mb, cm, &gr->commands[count])) {
            end_member(mb, dibsx_nomem(mb->step->err, "a command"));
            continue;
        }
        gr->sent[count++] = mb;
    }
    return count;
}

/* The long script must do it. */
static void go_on(member *mb, dibs__script script)
{
    mb->script = script;
    mb->whole = false;
}

static void judge_ask(dibs__redis *rd, member *mb)
{
    dibs__lease_step *step = mb->step;
    dibs_status rc;

    if (mb->script == DIBS__SCRIPT_acquire_free) {
        if (dibs__ask_granted(&step->ask, mb->reply, &step->ans))
            end_member(mb, DIBS_OK);
        else
            go_on(mb, DIBS__SCRIPT_acquire);
        return;
    }
    rc = dibs__ask_judge(&step->ask, mb->reply, &step->ans, step->err);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->steps, step->ask.name, NULL);
    end_member(mb, rc);
}

static void judge_leave(dibs__redis *rd, member *mb)
{
    dibs__lease_step *step = mb->step;
    dibs_status rc;

    if (mb->script == DIBS__SCRIPT_release_unqueued) {
        if (dibs__reply_status(mb->reply) == DIBS_OK)
            end_member(mb, DIBS_OK);
        else
            go_on(mb, DIBS__SCRIPT_release);
        return;
    }
    rc = dibs__leave_judge(&step->leave, mb->reply, step->err);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->steps, step->leave.name, NULL);
    end_member(mb, rc);
}

static void judge_member(dibs__redis *rd, member *mb, const dibs__pending *pd)
{
    dibs_status rc;

    if (pd->rc != DIBS_OK) {
        end_member(mb, pd->rc);
    } else if (dibs__script_is_lacking(mb->reply, &rc, mb->step->err) &&
               !mb->whole) {
        mb->whole = true;
    } else if (mb->reply->type == REDIS_REPLY_ERROR) {
        end_member(mb, rc != DIBS_OK ? rc : dibs__reply_odd(mb->step->err));
    } else if (mb->step->leaves) {
        judge_leave(rd, mb);
    } else {
        judge_ask(rd, mb);
    }
    dibs__reply_free(mb->reply);
    mb->reply = NULL;
}

/* Without memory for a group: a release that is not sent keeps its name locked. */
static void
do_each_alone(struct dibs__store *st, dibs__lease_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dibs__lease_step *step = &steps[i];

        step->rc = step->leaves
                       ? st->ops->lease->release(st, &step->leave,
                                                 step->deadline, step->err)
                       : st->ops->lease->acquire(st, &step->ask, step->deadline,
                                                 &step->ans, step->err);
    }
}

void dibs__redis_lease_group(struct dibs__store *st, dibs__lease_step *steps,
                             size_t count)
{
    group gr = {.rd = dibs__redis_of(st), .count = count};
    dibs__lease_command cm;
    size_t sent;

    gr.members = dibsx_zalloc(count * sizeof(*gr.members));
    gr.commands = dibsx_zalloc(count * sizeof(*gr.commands));
    if (!gr.members || !gr.commands) {
        do_each_alone(st, steps, count);
        goto out;
    }
    for (size_t i = 0; i < count; i++)
        begin_member(&gr.members[i], &steps[i]);
    while ((sent = write_commands(&gr, &cm)) > 0) {
        dibs__route_calls(gr.rd->steps, gr.commands, sent);
        for (size_t i = 0; i < sent; i++)
            judge_member(gr.rd, gr.sent[i], &gr.commands[i]);
    }
    for (size_t i = 0; i < count; i++)
        dibsx_free(gr.members[i].large);
out:
    dibsx_free(gr.commands);
    dibsx_free(gr.members);
}
