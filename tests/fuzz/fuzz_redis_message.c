/* fuzz_redis_message.c - what comes on a channel that anyone may write to: whatever it is,
 * a doorbell hears a notice that is whole, or nothing. The input is a reply of a server,
 * and up to its first NUL a notice as PostgreSQL passes it on. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_reply.h"
#include "store/redis/bell/subscription.h"

static void check_notice(const dibs__notice *notice)
{
    REQUIRE(notice->kind <= DIBS__NOTICE_MISSED);
    REQUIRE(memchr(notice->owner, '\0', sizeof(notice->owner)));
    if (notice->kind == DIBS__NOTICE_CHANGED && notice->said)
        REQUIRE(notice->said->len < DIBS__SHOWN_TEXT);
    else
        REQUIRE((notice->kind == DIBS__NOTICE_SAID) == (notice->said != NULL));
    if (notice->said)
        REQUIRE(notice->said->len <= DIBS__SAY_MAX);
    if (notice->kind != DIBS__NOTICE_MISSED)
        REQUIRE(strlen(notice->owner) == DIBS_OWNER_SIZE - 1);
}

/* That was all that it called for: the doorbell does not keep it. */
static bool tap_notice(void *arg, const dibs__notice *notice)
{
    dibs__notice mine = *notice;

    (void)arg;
    check_notice(notice);
    dibs__notice_drop(&mine);
    return true;
}

static void hear_reply(const redisReply *reply)
{
    dibs__doorbell bell;

    dibs__doorbell_init(&bell);
    dibs__doorbell_tap(&bell, tap_notice, NULL);
    dibs__subscription_handle(&bell, reply);
    dibs__doorbell_fini(&bell);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    dibs__notice notice = {.kind = DIBS__NOTICE_MISSED};

    if (dibs__notice_read(text, &notice))
        check_notice(&notice);
    dibs__notice_drop(&notice);
    free(text);
    fuzz_reply(data, size, hear_reply);
    return 0;
}
