/* contract_topic.c - topics: who listens hears every tell and message, in order, and
 * changes of values tell theirs. Heads of values, by which a listener looks for itself. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <poll.h>
#include <string.h>

/* A flood is more than a doorbell has room for. */
enum { MANY = 40, FEW = 5, FLOOD = 1600, FLOOD_REST_MS = 100 };

/* A topic that one handle listens to, as an actor whose owner is its address. */
static actor listener_of(contract *t, size_t handle, const char *topic)
{
    actor a = contract_actor(t, handle);

    dibs__topic_address(topic, a.owner);
    return a;
}

/* The topic of a value, so that a user of few privileges may use it. */
static const char *topic_of(const contract *t)
{
    static char topic[DIBS__TOPIC_MAX];

    dibs__topic_of_value(t->name, topic);
    return topic;
}

static dibs_status
change_ear(contract *t, size_t handle, const char *topic, bool on)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};
    dibs_status rc = st->ops->topic->ear(st, topic, on, contract_soon(), &err);

    if (rc != DIBS_OK)
        print_message("ear: %s\n", err.message);
    return rc;
}

static void tell(contract *t, size_t handle, const char *topic, uint64_t number)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};

    assert_status(st->ops->topic->tell(st, topic, number, contract_soon(),
                                       &err),
                  DIBS_OK);
}

static uint64_t put(contract *t, size_t handle, const char *key,
                    uint64_t expected, dibs_status wanted)
{
    dibs__store *st = t->st[handle];
    dibs__put what = {.key = key, .data = "x", .len = 1, .expected = expected};
    dibs_error err = {0};
    uint64_t version = 0;

    assert_status(st->ops->value->put(st, &what, contract_soon(), &version,
                                      &err),
                  wanted);
    return version;
}

static uint64_t next_number(actor *a)
{
    uint64_t number = UINT64_MAX;

    IN_TIME(actor_notified(a, DIBS__NOTICE_CHANGED, &number));
    return number;
}

static void every_tell_is_heard_in_order(void **state)
{
    contract *t = *state;
    actor a = listener_of(t, 1, topic_of(t));

    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    for (uint64_t i = 1; i <= MANY; i++)
        tell(t, 0, topic_of(t), i << 32);
    for (uint64_t i = 1; i <= MANY; i++)
        assert_int_equal(next_number(&a), i << 32);
}

static void all_that_listen_hear_it_and_nobody_else(void **state)
{
    contract *t = *state;
    actor a = listener_of(t, 0, topic_of(t));
    actor b = listener_of(t, 1, topic_of(t));
    actor c = listener_of(t, 2, topic_of(t));

    assert_status(change_ear(t, 0, topic_of(t), true), DIBS_OK);
    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    tell(t, 0, topic_of(t), 7);
    assert_int_equal(next_number(&a), 7);
    assert_int_equal(next_number(&b), 7);
    actor_expect_quiet(&c, DIBS__NOTICE_CHANGED);
}

/* A second topic of the same slot comes after what is not there. */
static void after_the_end_nothing_is_heard(void **state)
{
    contract *t = *state;
    char one[96], other[96];
    actor a, b;

    snprintf(one, sizeof(one), "value:%s{t}one", t->name);
    snprintf(other, sizeof(other), "value:%s{t}other", t->name);
    a = listener_of(t, 1, one);
    b = listener_of(t, 1, other);
    assert_status(change_ear(t, 1, one, true), DIBS_OK);
    assert_status(change_ear(t, 1, one, false), DIBS_OK);
    assert_status(change_ear(t, 1, other, true), DIBS_OK);
    tell(t, 0, one, 1);
    tell(t, 0, other, 2);
    assert_int_equal(next_number(&b), 2);
    assert_false(actor_hears(&a, DIBS__NOTICE_CHANGED));
    assert_status(change_ear(t, 1, one, true), DIBS_OK);
    tell(t, 0, one, 3);
    assert_int_equal(next_number(&a), 3);
}

static void an_end_without_a_beginning_is_none(void **state)
{
    contract *t = *state;

    assert_status(change_ear(t, 1, topic_of(t), false), DIBS_OK);
}

static void listening_twice_hears_once(void **state)
{
    contract *t = *state;
    actor a = listener_of(t, 1, topic_of(t));

    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    tell(t, 0, topic_of(t), 1);
    tell(t, 0, topic_of(t), 2);
    assert_int_equal(next_number(&a), 1);
    assert_int_equal(next_number(&a), 2);
}

/* Without a doorbell there is nowhere to tell it. */
static void a_handle_without_a_doorbell_does_not_listen(void **state)
{
    contract *t = *state;
    dibs__store *st = contract_open();
    dibs_error err = {0};
    dibs_status rc =
        st->ops->topic->ear(st, topic_of(t), true, contract_soon(), &err);

    dibs__store_close(st);
    assert_status(rc, DIBS_UNAVAIL);
}

static void
say(contract *t, size_t handle, const char *topic, const void *data, size_t len)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};

    assert_status(st->ops->topic->say(st, topic, data, len, contract_soon(),
                                      &err),
                  DIBS_OK);
}

/* The next notice of a topic, or that some were lost; its message is the caller's. */
static dibs__notice await_notice(contract *t, size_t handle, const char *topic)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs__store *st = t->st[handle];
    char address[DIBS_OWNER_SIZE];
    dibs__notice notice;

    dibs__topic_address(topic, address);
    for (;;) {
        if (st->ops->doorbell_read(st, &notice, 1) == 0) {
            IN_TIME(dibsx_now() < until);
            poll(&(struct pollfd){.fd = t->bell[handle], .events = POLLIN}, 1,
                 10);
        } else if (notice.kind == DIBS__NOTICE_MISSED ||
                   strcmp(notice.owner, address) == 0) {
            return notice;
        }
    }
}

static void expect_message(contract *t, size_t handle, const char *topic,
                           const void *data, size_t len)
{
    dibs__notice notice = await_notice(t, handle, topic);

    assert_int_equal(notice.kind, DIBS__NOTICE_SAID);
    assert_int_equal(notice.said->len, len);
    assert_memory_equal(notice.said->data, data, len);
    dibs__notice_drop(&notice);
}

/* Bytes of every value, in sizes around those of the blocks in a pipe. */
static void every_message_is_heard_as_it_was_sent(void **state)
{
    static const size_t lens[] = {0, 1, 47, 48, 49, 1535, 1536, DIBS__SAY_MAX};
    contract *t = *state;
    char data[DIBS__SAY_MAX];
    actor c = listener_of(t, 2, topic_of(t));

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7);
    assert_status(change_ear(t, 0, topic_of(t), true), DIBS_OK);
    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
        say(t, 0, topic_of(t), data, lens[i]);
    for (size_t handle = 0; handle < 2; handle++)
        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
            expect_message(t, handle, topic_of(t), data, lens[i]);
    actor_expect_quiet(&c, DIBS__NOTICE_SAID);
}

static void messages_and_tells_are_in_one_order(void **state)
{
    contract *t = *state;
    char data[DIBS__SAY_MAX] = "x";

    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    for (uint64_t i = 1; i <= FEW; i++) {
        tell(t, 0, topic_of(t), i);
        say(t, 0, topic_of(t), data, sizeof(data) / FEW * i);
    }
    for (uint64_t i = 1; i <= FEW; i++) {
        assert_int_equal(await_notice(t, 1, topic_of(t)).fence, i);
        expect_message(t, 1, topic_of(t), data, sizeof(data) / FEW * i);
    }
}

/* A server may hear of the end after it has passed on another message, or only after
 * the next beginning. */
static void one_who_listens_again_hears_what_comes(void **state)
{
    contract *t = *state;
    dibs__notice notice;

    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    assert_status(change_ear(t, 1, topic_of(t), false), DIBS_OK);
    say(t, 0, topic_of(t), "between", 7);
    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    say(t, 0, topic_of(t), "new", 3);
    notice = await_notice(t, 1, topic_of(t));
    if (notice.kind == DIBS__NOTICE_SAID && notice.said->len == 7) {
        dibs__notice_drop(&notice);
        notice = await_notice(t, 1, topic_of(t));
    }
    assert_int_equal(notice.kind, DIBS__NOTICE_SAID);
    assert_int_equal(notice.said->len, 3);
    assert_memory_equal(notice.said->data, "new", 3);
    dibs__notice_drop(&notice);
}

/* Short notices in between leave most of the room in a pipe unused. */
static void flood(contract *t, const char *topic)
{
    char data[DIBS__SAY_MAX] = "x";

    for (uint64_t i = 1; i <= FLOOD / 2; i++) {
        tell(t, 0, topic, i);
        say(t, 0, topic, data, sizeof(data));
    }
}

/* Reads what is there; whether it heard that some were lost. */
static bool hears_of_loss(contract *t, size_t handle)
{
    dibs__store *st = t->st[handle];
    dibs__notice notice;
    bool missed = false;

    while (st->ops->doorbell_read(st, &notice, 1) > 0) {
        missed = missed || notice.kind == DIBS__NOTICE_MISSED;
        dibs__notice_drop(&notice);
    }
    return missed;
}

/* A doorbell that is late has room again while it is read: then there is another flood. */
static void messages_that_find_no_room_are_reported(void **state)
{
    contract *t = *state;
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);

    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    do {
        IN_TIME(dibsx_now() < until);
        flood(t, topic_of(t));
        poll(NULL, 0, (int)pace_ms(FLOOD_REST_MS));
    } while (!hears_of_loss(t, 1));
}

static void a_change_tells_the_topic_of_its_value(void **state)
{
    contract *t = *state;
    char topic[DIBS__TOPIC_MAX];
    dibs__store *st = t->st[0];
    dibs_error err = {0};
    uint64_t version, added;
    int64_t sum;
    actor a;

    dibs__topic_of_value(t->name, topic);
    a = listener_of(t, 1, topic);
    assert_status(change_ear(t, 1, topic, true), DIBS_OK);
    assert_status(st->ops->value->add(st, t->name, 5, contract_soon(), &sum,
                                      &err),
                  DIBS_OK);
    added = next_number(&a);
    version = put(t, 0, t->name, added, DIBS_OK);
    assert_int_equal(next_number(&a), version);
    assert_status(st->ops->value->del(st, t->name, version, contract_soon(),
                                      &err),
                  DIBS_OK);
    assert_int_equal(next_number(&a), 0);
}

static uint64_t
put_shown(contract *t, const char *data, size_t len, int64_t ttl_ms)
{
    dibs__store *st = t->st[0];
    const dibs__put what = {.key = t->name,
                            .data = data,
                            .len = len,
                            .ttl_ms = ttl_ms,
                            .expected = DIBS_VERSION_ANY,
                            .shows = true};
    dibs_error err = {0};
    uint64_t version = 0;

    assert_status(st->ops->value->put(st, &what, contract_soon(), &version,
                                      &err),
                  DIBS_OK);
    return version;
}

/* NULL: nothing is shown. */
static void
expect_shown(contract *t, size_t handle, uint64_t version, const char *text)
{
    dibs__notice notice = await_notice(t, handle, topic_of(t));

    assert_int_equal(notice.kind, DIBS__NOTICE_CHANGED);
    assert_int_equal(notice.fence, version);
    assert_int_equal(notice.said != NULL, text != NULL);
    if (text) {
        assert_int_equal(notice.said->len, strlen(text));
        assert_memory_equal(notice.said->data, text, strlen(text));
    }
    dibs__notice_drop(&notice);
}

/* All that listen know the value without a question. */
static void a_put_shows_its_value(void **state)
{
    static const char longest[] = "~printable with 'quotes' and \\n";
    contract *t = *state;
    uint64_t versions[5];
    char text[64];

    assert_int_equal(sizeof(longest) - 1, DIBS__SHOWN_MAX);
    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    assert_status(change_ear(t, 2, topic_of(t), true), DIBS_OK);
    versions[0] = put_shown(t, "open", 4, 86430000);
    versions[1] = put_shown(t, longest, DIBS__SHOWN_MAX, 0);
    versions[2] = put_shown(t, "", 0, 600000);
    versions[3] = put(t, 0, t->name, versions[2], DIBS_OK);
    versions[4] = put_shown(t, "closed", 6, 1);
    snprintf(text, sizeof(text), "0 %s", longest);
    for (size_t handle = 1; handle < 3; handle++) {
        expect_shown(t, handle, versions[0], "86430000 open");
        expect_shown(t, handle, versions[1], text);
        expect_shown(t, handle, versions[2], "600000 ");
        expect_shown(t, handle, versions[3], NULL);
        expect_shown(t, handle, versions[4], "1 closed");
    }
}

static void what_is_long_or_no_text_is_not_shown(void **state)
{
    static const char data[DIBS__SHOWN_MAX + 1] = "x\n";
    contract *t = *state;
    uint64_t versions[4];
    dibs_value value;
    dibs_error err = {0};
    dibs__store *st = t->st[0];

    assert_status(change_ear(t, 1, topic_of(t), true), DIBS_OK);
    versions[0] = put_shown(t, data, 2, 0);
    versions[1] = put_shown(t, data, sizeof(data), 0);
    versions[2] = put_shown(t, "\xff", 1, 0);
    versions[3] = put_shown(t, "\xc3\xa4", 2, 0);
    for (size_t i = 0; i < 4; i++)
        expect_shown(t, 1, versions[i], NULL);
    assert_status(st->ops->value->get(st, t->name, contract_soon(), &value,
                                      &err),
                  DIBS_OK);
    assert_int_equal(value.len, 2);
    assert_memory_equal(value.data, "\xc3\xa4", 2);
    dibs_value_free(&value);
}

/* The put at the end is the first that is heard. */
static void what_changes_nothing_tells_nothing(void **state)
{
    contract *t = *state;
    char topic[DIBS__TOPIC_MAX];
    dibs__store *st = t->st[0];
    dibs_error err = {0};
    uint64_t version;
    int64_t sum;
    actor a;

    dibs__topic_of_value(t->name, topic);
    a = listener_of(t, 1, topic);
    assert_status(change_ear(t, 1, topic, true), DIBS_OK);
    (void)put(t, 0, t->name, 17, DIBS_STALE);
    assert_status(st->ops->value->del(st, t->name, DIBS_VERSION_ANY,
                                      contract_soon(), &err),
                  DIBS_NOTFOUND);
    version = put(t, 0, t->name, DIBS_VERSION_NONE, DIBS_OK);
    assert_status(st->ops->value->add(st, t->name, 1, contract_soon(), &sum,
                                      &err),
                  DIBS_INVALID);
    assert_status(st->ops->value->del(st, t->name, version - 1, contract_soon(),
                                      &err),
                  DIBS_STALE);
    assert_int_equal(next_number(&a), version);
    version = put(t, 0, t->name, version, DIBS_OK);
    assert_int_equal(next_number(&a), version);
}

/* The longest key, with bytes that mean something to servers. */
static void any_key_can_be_listened_to(void **state)
{
    contract *t = *state;
    char topic[DIBS__TOPIC_MAX], key[DIBS_NAME_MAX + 1];
    uint64_t version;
    size_t len;
    actor a;

    snprintf(key, sizeof(key), "%s'\"%%s}{\\\xc3\xa4\n", t->name);
    len = strlen(key);
    memset(key + len, '*', DIBS_NAME_MAX - len);
    key[DIBS_NAME_MAX] = '\0';
    dibs__topic_of_value(key, topic);
    a = listener_of(t, 1, topic);
    assert_status(change_ear(t, 1, topic, true), DIBS_OK);
    version = put(t, 0, key, DIBS_VERSION_ANY, DIBS_OK);
    assert_int_equal(next_number(&a), version);
}

static void heads_are_those_of_the_values(void **state)
{
    contract *t = *state;
    char keys[DIBS__HEADS_MAX][96];
    const char *list[DIBS__HEADS_MAX];
    uint64_t versions[DIBS__HEADS_MAX];
    dibs__value_head heads[DIBS__HEADS_MAX];
    dibs__store *st = t->st[1];
    dibs__put brief = {.key = keys[1], .data = "y", .len = 1, .ttl_ms = 600000};
    dibs_error err = {0};

    brief.expected = DIBS_VERSION_ANY;
    for (size_t i = 0; i < DIBS__HEADS_MAX; i++) {
        snprintf(keys[i], sizeof(keys[i]), "%s/%zu", t->name, 99 - i);
        list[i] = keys[i];
        versions[i] = i % 2 ? 0 : put(t, 0, keys[i], DIBS_VERSION_ANY, DIBS_OK);
        heads[i].rc = DIBS_UNKNOWN;
    }
    assert_status(st->ops->value->put(st, &brief, contract_soon(), &versions[1],
                                      &err),
                  DIBS_OK);
    assert_status(st->ops->value->heads(st, list, DIBS__HEADS_MAX,
                                        contract_soon(), heads, &err),
                  DIBS_OK);
    for (size_t i = 0; i < DIBS__HEADS_MAX; i++) {
        assert_status(heads[i].rc, DIBS_OK);
        assert_int_equal(heads[i].version, versions[i]);
        if (i != 1)
            assert_int_equal(heads[i].expires_ms, -1);
    }
    assert_in_range(heads[1].expires_ms, 1, 600000);
}

static void an_expired_value_has_no_head(void **state)
{
    contract *t = *state;
    const char *key = t->name;
    dibs__store *st = t->st[0];
    dibs__put brief = {.key = key, .data = "y", .len = 1, .ttl_ms = 30};
    dibs__value_head head = {.version = 1};
    dibs_error err = {0};
    uint64_t version;

    brief.expected = DIBS_VERSION_ANY;
    assert_status(st->ops->value->put(st, &brief, contract_soon(), &version,
                                      &err),
                  DIBS_OK);
    contract_sleep_until(dibsx_after_ms(dibsx_now(), 30 + CONTRACT_DRIFT_MS));
    assert_status(st->ops->value->heads(st, &key, 1, contract_soon(), &head,
                                        &err),
                  DIBS_OK);
    assert_int_equal(head.version, 0);
}

int contract_topic(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(every_tell_is_heard_in_order),
        CONTRACT_TEST(all_that_listen_hear_it_and_nobody_else),
        CONTRACT_TEST(after_the_end_nothing_is_heard),
        CONTRACT_TEST(an_end_without_a_beginning_is_none),
        CONTRACT_TEST(listening_twice_hears_once),
        CONTRACT_TEST(a_handle_without_a_doorbell_does_not_listen),
        CONTRACT_TEST(every_message_is_heard_as_it_was_sent),
        CONTRACT_TEST(messages_and_tells_are_in_one_order),
        CONTRACT_TEST(one_who_listens_again_hears_what_comes),
        CONTRACT_TEST(messages_that_find_no_room_are_reported),
        CONTRACT_TEST(a_change_tells_the_topic_of_its_value),
        CONTRACT_TEST(a_put_shows_its_value),
        CONTRACT_TEST(what_is_long_or_no_text_is_not_shown),
        CONTRACT_TEST(what_changes_nothing_tells_nothing),
        CONTRACT_TEST(any_key_can_be_listened_to),
        CONTRACT_TEST(heads_are_those_of_the_values),
        CONTRACT_TEST(an_expired_value_has_no_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
