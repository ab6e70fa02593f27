/* subscription.c - the ordinary channel of a doorbell, on a connection.
 *
 * Owns nothing. Runs on the thread that listens. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/subscription.h"
#include "store/redis/wire/error.h"
#include "store/redis/wire/reply.h"
#include <stdio.h>
#include <string.h>

static bool is_message(const redisReply *kind)
{
    return kind && kind->type == REDIS_REPLY_STRING &&
           (strcmp(kind->str, "message") == 0 ||
            strcmp(kind->str, "smessage") == 0);
}

bool dibs__subscription_is_bell(const char *channel)
{
    return strncmp(channel, DIBS__BELL_CHANNEL, strlen(DIBS__BELL_CHANNEL)) ==
           0;
}

/* Scripts publish "changed NUMBER" to a topic, and perhaps what is shown; its address is not in
 * the message. Nothing is shown of the other kinds. */
static bool is_of_topic(dibs__notice_kind kind)
{
    return kind == DIBS__NOTICE_CHANGED || kind == DIBS__NOTICE_OPENED ||
           kind == DIBS__NOTICE_BROKEN;
}

static bool
read_message(const char *channel, const char *text, dibs__notice *notice)
{
    char line[DIBS_OWNER_SIZE + 40 + DIBS__SHOWN_TEXT];
    char address[DIBS_OWNER_SIZE];
    char topic[DIBS__TOPIC_MAX], name[DIBS_NAME_MAX + 1];

    if (dibs__subscription_is_bell(channel))
        return dibs__notice_read(text, notice);
    if (strncmp(channel, DIBS__TOPIC_CHANNEL, strlen(DIBS__TOPIC_CHANNEL)) != 0)
        return false;
    if (dibs__key_roster_name(channel, name))
        dibs__topic_of_roster(name, topic);
    else
        snprintf(topic, sizeof(topic), "%s",
                 channel + strlen(DIBS__TOPIC_CHANNEL));
    dibs__topic_address(topic, address);
    snprintf(line, sizeof(line), "%s %.*s", address, 32 + DIBS__SHOWN_TEXT,
             text);
    return dibs__notice_read(line, notice) && is_of_topic(notice->kind);
}

/* Reads "said DATA"; the address is that of the topic. A message for which there is no
 * memory is read as the news that some were lost. */
static bool
read_said(const char *channel, const redisReply *text, dibs__notice *notice)
{
    static const char word[] = "said ";
    const size_t skip = sizeof(word) - 1;

    if (strncmp(channel, DIBS__TOPIC_CHANNEL, strlen(DIBS__TOPIC_CHANNEL)) !=
            0 ||
        text->len < skip || text->len - skip > DIBS__SAY_MAX ||
        memcmp(text->str, word, skip) != 0)
        return false;
    *notice = (dibs__notice){.kind = DIBS__NOTICE_SAID,
                             .said = dibs__said_new(text->len - skip)};
    if (!notice->said) {
        *notice = (dibs__notice){.kind = DIBS__NOTICE_MISSED};
        return true;
    }
    dibs__topic_address(channel + strlen(DIBS__TOPIC_CHANNEL), notice->owner);
    memcpy(notice->said->data, text->str + skip, notice->said->len);
    return true;
}

static bool is_text(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

void dibs__subscription_handle(dibs__doorbell *base, const redisReply *reply)
{
    const redisReply *channel = dibs__reply_item(reply, 1);
    const redisReply *text = dibs__reply_item(reply, 2);
    dibs__notice notice;

    if (is_message(dibs__reply_item(reply, 0)) && is_text(channel) &&
        is_text(text) &&
        (read_said(channel->str, text, &notice) ||
         read_message(channel->str, text->str, &notice)))
        dibs__doorbell_put(base, &notice);
}

typedef char channel_name[sizeof(DIBS__BELL_CHANNEL) + DIBS__DOORBELL_ADDRESS];

static void
begin_subscribe(const char *address, channel_name name, dibs__words *words)
{
    snprintf(name, sizeof(channel_name), DIBS__BELL_CHANNEL "%s", address);
    words->count = 0;
    dibs__words_puts(words, "SUBSCRIBE");
    dibs__words_puts(words, name);
}

dibs_status
dibs__subscription_ask(const char *address, dibs__conn *cn, dibs_error *err)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS);
    redisReply *reply = NULL;
    channel_name name;
    dibs__words words;
    dibs_status rc;

    begin_subscribe(address, name, &words);
    rc = dibs__conn_ask(cn, &words, deadline, &reply, err);
    if (rc == DIBS_OK && reply->type == REDIS_REPLY_ERROR)
        rc = dibs__redis_fail(reply->str, err);
    dibs__reply_free(reply);
    return rc;
}

dibs_status
dibs__subscription_tell(const char *address, dibs__conn *cn, dibs_error *err)
{
    channel_name name;
    dibs__words words;

    begin_subscribe(address, name, &words);
    return dibs__conn_tell(cn, &words,
                           dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS),
                           err);
}

dibs_status dibs__subscription_ping(dibs__conn *cn, dibs_error *err)
{
    dibs__words words = {.count = 0};

    dibs__words_puts(&words, "PING");
    return dibs__conn_tell(cn, &words,
                           dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS),
                           err);
}
