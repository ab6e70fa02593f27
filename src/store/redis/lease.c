/* lease.c - the lease steps, each a script: acquire, release.
 *
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/lease_command.h"
#include <string.h>

/* The two numbers that both OK and BUSY begin with. */
static bool
read_answer(const redisReply *reply, dibs__answer *ans, int64_t more[2])
{
    int64_t fence;

    more[0] = more[1] = 0;
    if (!dibs__reply_int(dibs__reply_item(reply, 1), &fence) || fence < 0 ||
        !dibs__reply_int(dibs__reply_item(reply, 2), &ans->left_ms) ||
        !dibs__reply_int(dibs__reply_item(reply, 3), &more[0]))
        return false;
    ans->fence = (uint64_t)fence;
    return reply->elements < 5 ||
           dibs__reply_int(dibs__reply_item(reply, 4), &more[1]);
}

/* A free name was granted: the answer is the fence alone. */
bool dibs__ask_granted(const dibs__ask *ask, const redisReply *reply,
                       dibs__answer *ans)
{
    int64_t fence;

    if (reply->type != REDIS_REPLY_STRING || !dibs__reply_int(reply, &fence) ||
        fence <= 0)
        return false;
    ans->fence = (uint64_t)fence;
    ans->left_ms = dibs__step_span(ask->ttl_ms);
    return true;
}

dibs_status dibs__ask_judge(const dibs__ask *ask, const redisReply *reply,
                            dibs__answer *ans, dibs_error *err)
{
    int status = dibs__reply_status(reply);
    int64_t more[2];
    dibs_status rc;

    if (dibs__ask_granted(ask, reply, ans))
        return DIBS_OK;
    if (status == DIBS_LOST)
        return dibs__refuse_left(ask->name, err);
    if (status == DIBS_MISMATCH)
        return dibs__step_kind(ask, dibs__reply_item(reply, 1), err);
    if ((status != DIBS_OK && status != DIBS_BUSY) ||
        !read_answer(reply, ans, more))
        return dibs__reply_odd(err);
    if (status == DIBS_OK) {
        ans->claim = more[0] == 1;
        return dibs__answer_grant(ask, ans, err);
    }
    if (more[1] < 0 || more[1] > UINT32_MAX)
        return dibs__reply_odd(err);
    ans->queued = more[0] == 1;
    ans->ahead = (uint32_t)more[1];
    rc = dibs__answer_busy(ans, err);
    return rc == DIBS_OK ? dibs__step_held(ask, dibs__reply_item(reply, 5), err)
                         : rc;
}

/* A plain try for a plain lock needs no further words. */
static void add_details(dibs__words *words, const dibs__ask *ask,
                        const char *bell, char numbers[4][DIBS__NUMBER_MAX])
{
    static const char *const flags[] = {"-", "q", "b", "qb"};
    bool permits = ask->mode == DIBS__PERMITS;

    if (dibs__ask_is_plain(ask) && ask->flags == 0 && strcmp(bell, "-") == 0)
        return;
    dibs__words_puts(words, bell);
    dibs__words_puts(words, flags[ask->flags & 3]);
    if (dibs__ask_is_plain(ask))
        return;
    dibs__words_number(words, ask->mode, numbers[0]);
    dibs__words_number(words, permits ? ask->permits : 1, numbers[1]);
    dibs__words_number(words, permits ? ask->capacity : 0, numbers[2]);
    dibs__words_number(words, ask->priority, numbers[3]);
}

void dibs__leave_write(dibs__script script, const dibs__leave *leave,
                       dibs__lease_command *cm)
{
    dibs__words *words = &cm->words;

    if (script == DIBS__SCRIPT_release_unqueued) {
        dibs__keys_of(leave->name, &cm->keys);
        dibs__script_begin(words, script, "1");
        dibs__words_add(words, cm->keys.key[0], cm->keys.len[0]);
    } else {
        dibs__step_begin(words, script, leave->name, &cm->keys);
    }
    dibs__words_puts(words, leave->owner);
    if (leave->unanswered || leave->keep_ms > 0) {
        dibs__words_puts(words, leave->unanswered ? "1" : "0");
        dibs__words_number(words, dibs__step_span(leave->keep_ms),
                           cm->numbers[0]);
    }
}

dibs_status dibs__leave_judge(const dibs__leave *leave, const redisReply *reply,
                              dibs_error *err)
{
    int status = dibs__reply_status(reply);

    if (status == DIBS_OK)
        return DIBS_OK;
    return status == DIBS_LOST ? dibs__refuse_absent(leave->name, err)
                               : dibs__reply_odd(err);
}

/* The short script: one key, and no waiter to serve. DIBS_BUSY: use the
 * other. */
static dibs_status release_alone(dibs__redis *rd, const dibs__leave *leave,
                                 dibsx_nsec deadline, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs__lease_command cm;
    dibs_status rc;

    dibs__leave_write(DIBS__SCRIPT_release_unqueued, leave, &cm);
    rc = dibs__script_join(rd->steps, DIBS__SCRIPT_release_unqueued, &cm.words,
                           deadline, &reply, err);
    if (rc == DIBS_OK)
        rc = dibs__reply_status(reply) == DIBS_OK ? DIBS_OK : DIBS_BUSY;
    dibs__reply_free(reply);
    return rc;
}

dibs_status
dibs__redis_release(struct dibs__store *st, const dibs__leave *leave,
                    dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    redisReply *reply = NULL;
    dibs__lease_command cm;
    dibs_status rc;

    if (dibs__leave_is_short(leave)) {
        rc = release_alone(rd, leave, deadline, err);
        if (rc != DIBS_BUSY)
            return rc;
    }
    dibs__leave_write(DIBS__SCRIPT_release, leave, &cm);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_release, &cm.words, deadline,
                          &reply, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__leave_judge(leave, reply, err);
    dibs__reply_free(reply);
    if (rc == DIBS_UNKNOWN)
        dibs__step_distrust(rd->steps, leave->name, NULL);
    return rc;
}

/* Gives back a grant that too few replicas acknowledged: a failover could lose
 * it. */
static dibs_status
give_back(dibs__redis *rd, const dibs__ask *ask, dibsx_nsec deadline,
          dibs__answer *ans, dibs_error *err)
{
    const dibs__leave leave = {.name = ask->name, .owner = ask->owner};
    uint32_t acked = ans->acked;
    dibs_status rc = dibs__redis_release(&rd->base, &leave, deadline, NULL);

    *ans = (dibs__answer){.under_replicated = true};
    return dibsx_fail(err,
                      rc == DIBS_OK || rc == DIBS_LOST ? DIBS_UNAVAIL
                                                       : DIBS_UNKNOWN,
                      "`" DIBS__NAME_SHOWN
                      "` was acknowledged by %u of %u replicas",
                      ask->name, (unsigned)acked, (unsigned)ask->replicas);
}

/* A grant counts once the replicas have acknowledged it. */
static dibs_status
confirm_replicas(dibs__redis *rd, dibs__loan *loan, const dibs__ask *ask,
                 dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    int64_t limit_ms = dibs__replica_wait_patience_ms(ask->ttl_ms, deadline);
    dibs_status rc = dibs__replica_wait_wait(loan, ask->replicas, limit_ms,
                                             deadline, &ans->acked, err);
    dibs_error why;

    if (rc == DIBS_UNKNOWN || (rc == DIBS_OK && ans->acked >= ask->replicas))
        return rc;
    if (rc == DIBS_OK)
        return give_back(rd, ask, deadline, ans, err);
    return give_back(rd, ask, deadline, ans, &why) == DIBS_UNAVAIL
               ? rc
               : DIBS_UNKNOWN;
}

/* The keys of the short script, for a name that is thought to be free. */
static void begin_free(dibs__words *words, const char *name, dibs__keys *keys)
{
    dibs__keys_of(name, keys);
    dibs__script_begin(words, DIBS__SCRIPT_acquire_free, "3");
    dibs__words_add(words, keys->key[0], keys->len[0]);
    dibs__words_add(words, keys->key[1], keys->len[1]);
    dibs__words_puts(words, DIBS__KEY_FENCE);
}

void dibs__ask_write(dibs__redis *rd, dibs__script script, const dibs__ask *ask,
                     dibs__lease_command *cm)
{
    dibs__words *words = &cm->words;

    if (script == DIBS__SCRIPT_acquire_free)
        begin_free(words, ask->name, &cm->keys);
    else
        dibs__step_begin(words, script, ask->name, &cm->keys);
    dibs__step_attend(rd, ask, &cm->keys);
    dibs__words_puts(words, ask->owner);
    dibs__words_number(words, dibs__step_span(ask->ttl_ms), cm->numbers[4]);
    dibs__words_add(words, ask->who, strnlen(ask->who, DIBS__WHO_MAX - 1));
    add_details(words, ask, dibs__step_bell(rd, ask, cm->bell), cm->numbers);
}

static dibs_status
ask_for(dibs__redis *rd, dibs__script script, const dibs__ask *ask,
        dibsx_nsec deadline, dibs__loan *loan, redisReply **reply,
        dibs_error *err)
{
    dibs__lease_command cm;

    dibs__ask_write(rd, script, ask, &cm);
    if (ask->replicas > 0)
        return dibs__replica_wait_run(&rd->replica_wait, script, &cm.words,
                                      deadline, loan, reply, err);
    if (dibs__ask_is_plain(ask))
        return dibs__script_join(rd->steps, script, &cm.words, deadline, reply,
                                 err);
    return dibs__script_run(rd->steps, script, &cm.words, deadline, reply, err);
}

/* DIBS_BUSY: the name is not free, or this ask needs the other script. */
static dibs_status
acquire_free(dibs__redis *rd, const dibs__ask *ask, dibsx_nsec deadline,
             dibs__answer *ans, dibs_error *err)
{
    redisReply *reply = NULL;
    dibs_status rc;

    if (!dibs__ask_is_short(ask))
        return DIBS_BUSY;
    rc = ask_for(rd, DIBS__SCRIPT_acquire_free, ask, deadline, NULL, &reply,
                 err);
    if (rc == DIBS_OK && !dibs__ask_granted(ask, reply, ans))
        rc = DIBS_BUSY;
    dibs__reply_free(reply);
    return rc;
}

dibs_status
dibs__redis_acquire(struct dibs__store *st, const dibs__ask *ask,
                    dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    dibs__loan loan = {.cn = NULL};
    redisReply *reply = NULL;
    dibs_status rc = dibs__refuse_ask(ask, err);

    memset(ans, 0, sizeof(*ans));
    if (rc == DIBS_OK)
        rc = acquire_free(rd, ask, deadline, ans, err);
    if (rc != DIBS_BUSY)
        return rc;
    rc = ask_for(rd, DIBS__SCRIPT_acquire, ask, deadline, &loan, &reply, err);
    if (rc == DIBS_OK) {
        rc = dibs__ask_judge(ask, reply, ans, err);
        if (rc == DIBS_UNKNOWN)
            dibs__step_distrust(rd->steps, ask->name, &loan);
    }
    dibs__reply_free(reply);
    if (rc == DIBS_OK && ask->replicas > 0)
        rc = confirm_replicas(rd, &loan, ask, deadline, ans, err);
    dibs__replica_wait_done(&loan);
    return rc;
}

#define ENTRY(step, STEP) .step = dibs__redis_##step,

const dibs__lease_ops dibs__redis_lease_ops = {DIBS__LEASE_STEPS(ENTRY)};
