/* topic.c - the topic steps: ear, tell and say.
 *
 * The doorbells that listen to a topic are rows of the table ear, each rung by
 * NOTIFY. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/postgres/step.h"
#include <string.h>

/* Runs a function that answers nothing but its status. */
static dibs_status
call_topic(struct dibs__store *st, dibs__pg_query query,
           const dibs__pg_args *args, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_answer answer;
    int64_t status;
    dibs_status rc = dibs__pg_call(dibs__pg_of(st), query, args, deadline,
                                   &answer, &status, err);

    dibs__pg_answer_fini(&answer);
    return rc;
}

/* If the doorbell was lost meanwhile, the row is of no use; the handle has a notice
 * of that. */
static dibs_status change_ear(struct dibs__store *st, const char *topic,
                              bool on, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_doorbell *doorbell = &dibs__pg_of(st)->doorbell;
    const char *bell = dibs__pg_doorbell_address(doorbell);
    char address[DIBS_OWNER_SIZE];
    dibs__pg_args args = {.count = 0};

    if (!bell[0])
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the doorbell does not listen now, so nothing is "
                          "heard");
    dibs__topic_address(topic, address);
    dibs__pg_arg_text(&args, topic);
    dibs__pg_arg_text(&args, bell);
    dibs__pg_arg_text(&args, address);
    dibs__pg_arg_int(&args, on ? DIBS__EAR_MS : 0);
    return call_topic(st, DIBS__PG_TOPIC_EAR, &args, deadline, err);
}

static dibs_status
tell_topic(struct dibs__store *st, const char *topic, uint64_t number,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    dibs__pg_arg_text(&args, topic);
    dibs__pg_arg_int(&args, (int64_t)number);
    return call_topic(st, DIBS__PG_TOPIC_TELL, &args, deadline, err);
}

static dibs_status
say_topic(struct dibs__store *st, const char *topic, const void *data,
          size_t len, dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_args args = {.count = 0};

    dibs__pg_arg_text(&args, topic);
    dibs__pg_arg_bytes(&args, data, len);
    return call_topic(st, DIBS__PG_TOPIC_SAY, &args, deadline, err);
}

const dibs__topic_ops dibs__pg_topic_ops = {
    .ear = change_ear,
    .tell = tell_topic,
    .say = say_topic,
};
