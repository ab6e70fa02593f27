/* topic.c - the topic steps: ear, tell and say.
 *
 * A topic is a channel, and that of a value or a roster is called as its key is: so
 * it has the slot of that. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/subscription.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include "store/redis/wire/roster_keys.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void channel_of(const char *topic, char out[DIBS__CHANNEL_MAX])
{
    char keys[DIBS__ROSTER_KEYS][DIBS__KEY_MAX];

    snprintf(out, DIBS__CHANNEL_MAX, DIBS__TOPIC_CHANNEL "%s", topic);
    if (strncmp(out, DIBS__KEY_ROSTER, strlen(DIBS__KEY_ROSTER)) == 0) {
        dibs__keys_of_roster(out + strlen(DIBS__KEY_ROSTER), keys);
        snprintf(out, DIBS__CHANNEL_MAX, "%s", keys[0]);
    }
}

static dibs_status change_ear(struct dibs__store *st, const char *topic,
                              bool on, dibsx_nsec deadline, dibs_error *err)
{
    char channel[DIBS__CHANNEL_MAX];

    channel_of(topic, channel);
    return dibs__redis_doorbell_ear(&dibs__redis_of(st)->bell, channel, on,
                                    deadline, err);
}

/* By a script, which has the channel for its key. */
static dibs_status
tell_topic(struct dibs__store *st, const char *topic, uint64_t number,
           dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis *rd = dibs__redis_of(st);
    char channel[DIBS__CHANNEL_MAX], text[24];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;

    channel_of(topic, channel);
    snprintf(text, sizeof(text), "%" PRIu64, number);
    dibs__script_begin(&words, DIBS__SCRIPT_tell, "1");
    dibs__words_puts(&words, channel);
    dibs__words_puts(&words, dibs__redis_publish(rd));
    dibs__words_puts(&words, text);
    rc = dibs__script_run(rd->steps, DIBS__SCRIPT_tell, &words, deadline,
                          &reply, err);
    dibs__reply_free(reply);
    return rc;
}

/* As "said DATA", and by no script: while a slot moves, scripts are sent to the server
 * that it moves to, and those who listen are still at the one that it moves from. */
static dibs_status
say_topic(struct dibs__store *st, const char *topic, const void *data,
          size_t len, dibsx_nsec deadline, dibs_error *err)
{
    static const char head[] = {'s', 'a', 'i', 'd', ' '};
    dibs__redis *rd = dibs__redis_of(st);
    char channel[DIBS__CHANNEL_MAX], text[sizeof(head) + DIBS__SAY_MAX];
    redisReply *reply = NULL;
    dibs__words words;
    dibs_status rc;

    channel_of(topic, channel);
    memcpy(text, head, sizeof(head));
    memcpy(text + sizeof(head), data, len);
    words.count = 0;
    dibs__words_puts(&words, dibs__redis_publish(rd));
    dibs__words_puts(&words, channel);
    dibs__words_add(&words, text, sizeof(head) + len);
    rc = dibs__command_run(rd->steps, &words, 1, deadline, &reply, err);
    dibs__reply_free(reply);
    return rc;
}

const dibs__topic_ops dibs__redis_topic_ops = {
    .ear = change_ear,
    .tell = tell_topic,
    .say = say_topic,
};
