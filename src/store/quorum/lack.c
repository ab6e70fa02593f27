/* lack.c - what a majority cannot do, in one table with the reasons.
 *
 * Nothing here speaks to a node. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/quorum/quorum_store.h"

static const char *const lacks[] = {
    [DIBS__CAN_QUEUE] =
        "the nodes of a quorum cannot keep one order of waiters: a waiter "
        "asks again, and priority has no effect",
    [DIBS__CAN_SHARE] =
        "readers are counted, and majorities cannot count: two of them may "
        "know different readers. Use an exclusive lock",
    [DIBS__CAN_COUNT] =
        "majorities cannot count: a name has slots with one holder each. Ask "
        "for one permit at a time",
    [DIBS__CAN_CONVERT] =
        "a lease of a quorum stays with its owner and its mode: part of the "
        "nodes might convert it and part not. Release it and acquire it anew",
    [DIBS__CAN_RING] =
        "a quorum has no doorbell: a lease cannot be sticky and its holder "
        "cannot be asked for it",
    [DIBS__CAN_SET] =
        "nodes might grant different parts of a set: its names are acquired "
        "one after the other",
    [DIBS__CAN_REPLICATE] =
        "the majority of a quorum is its durability: its nodes have no "
        "replicas to wait for. Ask for async",
    [DIBS__CAN_VALUE] =
        "values need one order of changes, which independent servers do not "
        "have. Keep them in a redis: or sqlite: store",
    [DIBS__CAN_LOG] =
        "a log is one order of entries, which independent servers do not "
        "have. Keep it in a redis: or sqlite: store",
    [DIBS__CAN_TOPIC] =
        "a change that a majority decides on has no one moment at which a node "
        "could tell a topic of it. Watch values in a redis: or sqlite: store",
    [DIBS__CAN_RATE] =
        "tokens of a rate are counted, and majorities cannot count: two of "
        "them may each hand out the last one. Keep limits in a redis:, "
        "postgres: or sqlite: store",
    [DIBS__CAN_MEET] =
        "whether a generation opens or breaks is one decision, and majorities "
        "of sets of seats do not agree on one. Keep groups, barriers and "
        "latches in a redis:, postgres: or sqlite: store",
    [DIBS__CAN_METER] =
        "calls are counted for a version of a value, and majorities have "
        "neither counts nor versions. A breaker decides for its client alone; "
        "to share it, use a redis:, postgres: or sqlite: store",
    [DIBS__CAN_ITEMS] =
        "an item of a queue is in one place and goes to one client, and "
        "majorities of sets of items do not agree on either. Keep queues in a "
        "redis:, postgres: or sqlite: store",
    [DIBS__CAN_COMMIT] =
        "a commit is one change of several values, and independent servers "
        "have no one order of changes. Keep them in a redis:, postgres: or "
        "sqlite: store",
};

const char *dibs__quorum_cannot(const dibs__store *st, dibs__ability what)
{
    (void)st;
    return lacks[what];
}

dibs_status dibs__quorum_unsupported(dibs__ability what, dibs_error *err)
{
    return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", lacks[what]);
}

dibs_status
dibs__quorum_convert(struct dibs__store *st, const dibs__conversion *conversion,
                     dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    (void)st;
    (void)conversion;
    (void)deadline;
    *ans = (dibs__answer){.fence = 0};
    return dibs__quorum_unsupported(DIBS__CAN_CONVERT, err);
}

dibs_status
dibs__quorum_yield(struct dibs__store *st, const char *name, uint64_t fence,
                   dibsx_nsec deadline, uint32_t *asked, dibs_error *err)
{
    (void)st;
    (void)name;
    (void)fence;
    (void)deadline;
    *asked = 0;
    return dibs__quorum_unsupported(DIBS__CAN_RING, err);
}

static dibs_status
refuse_get(struct dibs__store *st, const char *key, dibsx_nsec deadline,
           dibs_value *out, dibs_error *err)
{
    (void)st;
    (void)key;
    (void)deadline;
    *out = (dibs_value){0};
    return dibs__quorum_unsupported(DIBS__CAN_VALUE, err);
}

static dibs_status
refuse_heads(struct dibs__store *st, const char *const *keys, size_t count,
             dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    (void)st;
    (void)keys;
    (void)count;
    (void)deadline;
    (void)out;
    return dibs__quorum_unsupported(DIBS__CAN_VALUE, err);
}

static dibs_status
refuse_put(struct dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
           uint64_t *version, dibs_error *err)
{
    (void)st;
    (void)put;
    (void)deadline;
    *version = 0;
    return dibs__quorum_unsupported(DIBS__CAN_VALUE, err);
}

static dibs_status
refuse_add(struct dibs__store *st, const char *key, int64_t delta,
           dibsx_nsec deadline, int64_t *sum, dibs_error *err)
{
    (void)st;
    (void)key;
    (void)delta;
    (void)deadline;
    *sum = 0;
    return dibs__quorum_unsupported(DIBS__CAN_VALUE, err);
}

static dibs_status
refuse_del(struct dibs__store *st, const char *key, uint64_t expected,
           dibsx_nsec deadline, dibs_error *err)
{
    (void)st;
    (void)key;
    (void)expected;
    (void)deadline;
    return dibs__quorum_unsupported(DIBS__CAN_VALUE, err);
}

static dibs_status
refuse_list(struct dibs__store *st, const char *begins, dibsx_nsec deadline,
            dibs_state_fn *each, void *arg, dibs_error *err)
{
    (void)st;
    (void)begins;
    (void)deadline;
    (void)each;
    (void)arg;
    return dibs__quorum_unsupported(DIBS__CAN_VALUE, err);
}

static dibs_status
refuse_append(struct dibs__store *st, const dibs__append *what,
              dibsx_nsec deadline, uint64_t *position, dibs_error *err)
{
    (void)st;
    (void)what;
    (void)deadline;
    *position = 0;
    return dibs__quorum_unsupported(DIBS__CAN_LOG, err);
}

static dibs_status refuse_read(struct dibs__store *st, const char *topic,
                               uint64_t after, size_t max, dibsx_nsec deadline,
                               dibs__log_fn *each, void *arg, dibs_error *err)
{
    (void)st;
    (void)topic;
    (void)after;
    (void)max;
    (void)deadline;
    (void)each;
    (void)arg;
    return dibs__quorum_unsupported(DIBS__CAN_LOG, err);
}

static dibs_status
refuse_bounds(struct dibs__store *st, const char *topic, dibsx_nsec deadline,
              dibs__log_span *out, dibs_error *err)
{
    (void)st;
    (void)topic;
    (void)deadline;
    *out = (dibs__log_span){0};
    return dibs__quorum_unsupported(DIBS__CAN_LOG, err);
}

static dibs_status
refuse_trim(struct dibs__store *st, const char *topic, uint64_t through,
            dibsx_nsec deadline, uint64_t *gone, dibs_error *err)
{
    (void)st;
    (void)topic;
    (void)through;
    (void)deadline;
    *gone = 0;
    return dibs__quorum_unsupported(DIBS__CAN_LOG, err);
}

static dibs_status
refuse_logs(struct dibs__store *st, const dibs__log_query *query,
            dibsx_nsec deadline, dibs__log_row_fn *each, void *arg,
            dibs_error *err)
{
    (void)st;
    (void)query;
    (void)deadline;
    (void)each;
    (void)arg;
    return dibs__quorum_unsupported(DIBS__CAN_LOG, err);
}

static dibs_status refuse_ear(struct dibs__store *st, const char *topic,
                              bool on, dibsx_nsec deadline, dibs_error *err)
{
    (void)st;
    (void)topic;
    (void)on;
    (void)deadline;
    return dibs__quorum_unsupported(DIBS__CAN_TOPIC, err);
}

static dibs_status
refuse_tell(struct dibs__store *st, const char *topic, uint64_t number,
            dibsx_nsec deadline, dibs_error *err)
{
    (void)st;
    (void)topic;
    (void)number;
    (void)deadline;
    return dibs__quorum_unsupported(DIBS__CAN_TOPIC, err);
}

static dibs_status
refuse_say(struct dibs__store *st, const char *topic, const void *data,
           size_t len, dibsx_nsec deadline, dibs_error *err)
{
    (void)st;
    (void)topic;
    (void)data;
    (void)len;
    (void)deadline;
    return dibs__quorum_unsupported(DIBS__CAN_TOPIC, err);
}

static dibs_status
refuse_draw(struct dibs__store *st, const dibs__draw *draw, dibsx_nsec deadline,
            dibs__drawn *out, dibs_error *err)
{
    (void)st;
    (void)draw;
    (void)deadline;
    *out = (dibs__drawn){0};
    return dibs__quorum_unsupported(DIBS__CAN_RATE, err);
}

static dibs_status
refuse_rates(struct dibs__store *st, const dibs__rate_query *query,
             dibsx_nsec deadline, dibs__rate_fn *each, void *arg,
             dibs_error *err)
{
    (void)st;
    (void)query;
    (void)deadline;
    (void)each;
    (void)arg;
    return dibs__quorum_unsupported(DIBS__CAN_RATE, err);
}

static dibs_status
refuse_meter(struct dibs__store *st, const dibs__meter *report,
             dibsx_nsec deadline, dibs__sums *out, dibs_error *err)
{
    (void)st;
    (void)report;
    (void)deadline;
    *out = (dibs__sums){.expires_ms = -1};
    return dibs__quorum_unsupported(DIBS__CAN_METER, err);
}

static dibs_status
refuse_meet(struct dibs__store *st, dibs__meet *items, size_t count,
            dibsx_nsec deadline, dibs_error *err)
{
    (void)st;
    (void)deadline;
    dibs__meet_clear(items, count, DIBS_UNSUPPORTED);
    return dibs__quorum_unsupported(DIBS__CAN_MEET, err);
}

static dibs_status
refuse_roll_call(struct dibs__store *st, const char *name, dibsx_nsec deadline,
                 dibs__roster_head *out, dibs__seat_fn *each, void *arg,
                 dibs_error *err)
{
    (void)st;
    (void)name;
    (void)deadline;
    (void)each;
    (void)arg;
    *out = (dibs__roster_head){.gen = 0};
    return dibs__quorum_unsupported(DIBS__CAN_MEET, err);
}

static dibs_status
refuse_rosters(struct dibs__store *st, const dibs__roster_query *query,
               dibsx_nsec deadline, dibs__roster_fn *each, void *arg,
               dibs_error *err)
{
    (void)st;
    (void)query;
    (void)deadline;
    (void)each;
    (void)arg;
    return dibs__quorum_unsupported(DIBS__CAN_MEET, err);
}

const dibs__value_ops dibs__quorum_value_ops = {.get = refuse_get,
                                                .heads = refuse_heads,
                                                .put = refuse_put,
                                                .add = refuse_add,
                                                .del = refuse_del,
                                                .list = refuse_list};
const dibs__log_ops dibs__quorum_log_ops = {.append = refuse_append,
                                            .read = refuse_read,
                                            .bounds = refuse_bounds,
                                            .trim = refuse_trim,
                                            .logs = refuse_logs};
const dibs__topic_ops dibs__quorum_topic_ops = {.ear = refuse_ear,
                                                .tell = refuse_tell,
                                                .say = refuse_say};
const dibs__rate_ops dibs__quorum_rate_ops = {
    .draw = refuse_draw,
    .rates = refuse_rates,
};
const dibs__meter_ops dibs__quorum_meter_ops = {.meter = refuse_meter};
const dibs__roster_ops dibs__quorum_roster_ops = {.meet = refuse_meet,
                                                  .roll_call = refuse_roll_call,
                                                  .rosters = refuse_rosters};
