/* topic.c - the names of topics and their addresses. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/topic.h"
#include "base/sha1.h"
#include <stdio.h>
#include <string.h>

void dibs__topic_of_value(const char *key, char out[DIBS__TOPIC_MAX])
{
    snprintf(out, DIBS__TOPIC_MAX, "value:%s", key);
}

void dibs__topic_of_roster(const char *name, char out[DIBS__TOPIC_MAX])
{
    snprintf(out, DIBS__TOPIC_MAX, "roster:%s", name);
}

void dibs__topic_of_log(const char *topic, char out[DIBS__TOPIC_MAX])
{
    snprintf(out, DIBS__TOPIC_MAX, "log:%s", topic);
}

void dibs__topic_of_messages(const char *topic, char out[DIBS__TOPIC_MAX])
{
    snprintf(out, DIBS__TOPIC_MAX, "say:%s", topic);
}

void dibs__topic_address(const char *topic, char out[DIBS_OWNER_SIZE])
{
    char sha1[DIBSX_SHA1_TEXT];

    dibsx_sha1(topic, strlen(topic), sha1);
    memcpy(out, sha1, DIBS_OWNER_SIZE - 1);
    out[DIBS_OWNER_SIZE - 1] = '\0';
}
