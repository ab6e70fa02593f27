/* test_shapes.c - what Redis holds after the steps that change a lease in place or
 * take several: the layout of the keys, and what is left of them. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <poll.h>

#define READER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEIR   "cccccccccccccccccccccccccccccccc"
#define WHO    "host:1 label"

static dibs__ask ask_for(const char *name, const char *owner, dibs__mode mode)
{
    return (dibs__ask){.name = name,
                       .owner = owner,
                       .mode = mode,
                       .permits = 1,
                       .capacity = mode == DIBS__PERMITS ? 5 : 0,
                       .ttl_ms = 20000,
                       .who = WHO};
}

/* Asks on a handle; the answer's fence. */
static uint64_t ask(stage *sg, size_t i, const dibs__ask *what, dibs_status rc)
{
    dibs__store *st = sg->st[i];
    dibs__answer ans;

    CHECK(rc, st->ops->lease->acquire(st, what, stage_soon(), &ans, err));
    return ans.fence;
}

static uint64_t hold(stage *sg, const char *owner, dibs__mode mode)
{
    dibs__ask what = ask_for("k", owner, mode);

    return ask(sg, 0, &what, DIBS_OK);
}

/* Without a version to give, nothing is added. */
static void an_addition_that_fails_changes_nothing(void **state)
{
    stage *sg = *state;
    dibs__store *st = sg->st[0];
    dibs__put put = {.key = "n", .data = "5", .len = 1};
    uint64_t version, after;
    dibs_value value = {0};
    int64_t sum;

    CHECK(DIBS_OK, st->ops->value->put(st, &put, stage_soon(), &version, err));
    assert_true(
        server_tell(&sg->w->sv, "SET", "dibs:fence", "9007199254740991", NULL));
    CHECK(DIBS_INTERNAL,
          st->ops->value->add(st, "n", 1, stage_soon(), &sum, err));
    CHECK(DIBS_OK, st->ops->value->get(st, "n", stage_soon(), &value, err));
    after = value.version;
    assert_int_equal(after, version);
    assert_memory_equal(value.data, "5", 1);
    dibs_value_free(&value);
    CHECK(DIBS_INTERNAL,
          st->ops->value->add(st, "absent", 1, stage_soon(), &sum, err));
    ASSERT_REPLY("0", "EXISTS", "dibs:value:absent");
}

/* Newer servers wait for replicas only on behalf of who has written. */
static void what_is_answered_again_is_written_again(void **state)
{
    stage *sg = *state;
    uint64_t fence = hold(sg, READER, DIBS__EXCLUSIVE);
    long long before =
        server_info(&sg->w->sv, "persistence", "rdb_changes_since_last_save");

    assert_int_equal(hold(sg, READER, DIBS__EXCLUSIVE), fence);
    assert_true(server_info(&sg->w->sv, "persistence",
                            "rdb_changes_since_last_save") > before);
}

static void leave(stage *sg, const char *owner, dibs_status rc)
{
    const dibs__leave gone = {.name = "k", .owner = owner};

    CHECK(rc,
          sg->st[0]->ops->lease->release(sg->st[0], &gone, stage_soon(), err));
}

static dibs_status renew(stage *sg, size_t i, const char *owner, uint64_t fence)
{
    dibs__renewal item = {.name = "k",
                          .owner = owner,
                          .fence = fence,
                          .ttl_ms = 20000};

    CHECK(DIBS_OK,
          sg->st[i]->ops->lease->renew(sg->st[i], &item, 1, stage_soon(), err));
    return item.rc;
}

static uint64_t turn(stage *sg, const char *owner, uint64_t fence,
                     dibs__mode mode, const char *to_owner, dibs_status rc)
{
    const dibs__conversion how = {.name = "k",
                                  .owner = owner,
                                  .fence = fence,
                                  .mode = mode,
                                  .to_owner = to_owner,
                                  .ttl_ms = 30000};
    dibs__answer ans;

    CHECK(rc, sg->st[0]->ops->lease->convert(sg->st[0], &how, stage_soon(),
                                             &ans, err));
    if (rc == DIBS_OK)
        assert_in_range(ans.left_ms, 25000, 30000);
    return ans.fence;
}

/* Whether an owner gets such a notice within a bound. */
static bool
notified(stage *sg, size_t i, const char *owner, dibs__notice_kind kind)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    struct pollfd bell = {.fd = sg->bell[i], .events = POLLIN};
    dibs__notice notice;

    while (poll(&bell, 1, (int)dibsx_wait_ms(end, dibsx_now())) == 1)
        if (sg->st[i]->ops->doorbell_read(sg->st[i], &notice, 1) == 1 &&
            notice.kind == kind && strcmp(notice.owner, owner) == 0)
            return true;
    return false;
}

static void assert_nothing_left(stage *sg)
{
    ASSERT_REPLY("dibs:fence", "KEYS", "*");
}

static void assert_number(stage *sg, uint64_t expected, const char *field)
{
    char number[32];

    snprintf(number, sizeof(number), "%llu", (unsigned long long)expected);
    ASSERT_REPLY(number, "HGET", "k", field);
}

static void a_reader_that_rises_is_the_whole_hash(void **state)
{
    stage *sg = *state;
    uint64_t before = hold(sg, READER, DIBS__SHARED);
    uint64_t after, other;

    ASSERT_REPLY("3", "HLEN", "k");
    other = hold(sg, OTHER, DIBS__SHARED);
    turn(sg, READER, before, DIBS__EXCLUSIVE, READER, DIBS_BUSY);
    assert_status(renew(sg, 0, READER, before), DIBS_OK);
    assert_status(renew(sg, 0, OTHER, other), DIBS_OK);
    leave(sg, OTHER, DIBS_OK);
    after = turn(sg, READER, before, DIBS__EXCLUSIVE, READER, DIBS_OK);
    assert_true(after > other);
    assert_int_equal(turn(sg, READER, before, DIBS__EXCLUSIVE, READER, DIBS_OK),
                     after);
    ASSERT_REPLY("owner fence ttl who bell", "HKEYS", "k");
    ASSERT_REPLY(READER, "HGET", "k", "owner");
    assert_number(sg, after, "fence");
    assert_status(renew(sg, 0, READER, before), DIBS_LOST);
    assert_status(renew(sg, 0, READER, after), DIBS_OK);
    leave(sg, READER, DIBS_OK);
    assert_nothing_left(sg);
}

/* Those who share may come in, up to the first who does not. */
static void a_writer_that_sinks_lets_readers_in(void **state)
{
    stage *sg = *state;
    uint64_t fence = hold(sg, READER, DIBS__EXCLUSIVE);
    dibs__ask what = ask_for("k", OTHER, DIBS__SHARED);
    char text[512], begins[64];

    what.flags = DIBS__ASK_QUEUE;
    ask(sg, 1, &what, DIBS_BUSY);
    ASSERT_REPLY(READER " wanted", "HGET", "k", "owner");
    assert_int_equal(turn(sg, READER, fence, DIBS__SHARED, READER, DIBS_OK),
                     fence);
    IN_TIME(notified(sg, 1, OTHER, DIBS__NOTICE_GRANTED));
    ASSERT_REPLY("5", "HLEN", "k");
    ASSERT_REPLY("shared", "HGET", "k", "mode");
    stage_reply(server_ask(&sg->w->sv, "HGET", "k", READER, NULL), text);
    snprintf(begins, sizeof(begins), "%llu ", (unsigned long long)fence);
    assert_memory_equal(text, begins, strlen(begins));
    assert_int_equal(turn(sg, READER, fence, DIBS__SHARED, READER, DIBS_OK),
                     fence);
    leave(sg, READER, DIBS_OK);
    leave(sg, OTHER, DIBS_OK);
    assert_nothing_left(sg);
}

/* It has no bell until its new owner renews it. */
static void a_lease_that_was_handed_on_is_marked_until_renewed(void **state)
{
    stage *sg = *state;
    uint64_t before = hold(sg, READER, DIBS__EXCLUSIVE);
    uint64_t after;
    uint32_t asked = 9;

    ASSERT_REPLY("owner fence ttl who bell", "HKEYS", "k");
    after = turn(sg, READER, before, DIBS__EXCLUSIVE, HEIR, DIBS_OK);
    assert_true(after > before);
    assert_int_equal(turn(sg, READER, before, DIBS__EXCLUSIVE, HEIR, DIBS_OK),
                     after);
    ASSERT_REPLY(HEIR " handed", "HGET", "k", "owner");
    ASSERT_REPLY("owner fence ttl who", "HKEYS", "k");
    assert_status(renew(sg, 0, READER, before), DIBS_LOST);
    leave(sg, READER, DIBS_LOST);
    CHECK(DIBS_OK, sg->st[2]->ops->lease->yield(sg->st[2], "k", after,
                                                stage_soon(), &asked, err));
    assert_int_equal(asked, 0);
    /* One without a doorbell leaves the mark for later. */
    assert_status(renew(sg, 2, HEIR, after), DIBS_OK);
    ASSERT_REPLY(HEIR " handed", "HGET", "k", "owner");
    assert_status(renew(sg, 1, HEIR, after), DIBS_OK);
    ASSERT_REPLY(HEIR, "HGET", "k", "owner");
    CHECK(DIBS_OK, sg->st[2]->ops->lease->yield(sg->st[2], "k", after,
                                                stage_soon(), &asked, err));
    assert_int_equal(asked, 1);
    IN_TIME(notified(sg, 1, HEIR, DIBS__NOTICE_YIELD));
    leave(sg, HEIR, DIBS_OK);
    assert_nothing_left(sg);
}

static void permits_are_handed_on_as_they_are(void **state)
{
    stage *sg = *state;
    dibs__ask what = ask_for("k", OTHER, DIBS__PERMITS);
    uint64_t before = hold(sg, READER, DIBS__PERMITS);
    uint64_t after;
    uint32_t asked = 0;

    what.permits = 3;
    ask(sg, 1, &what, DIBS_OK);
    turn(sg, READER, before, DIBS__SHARED, HEIR, DIBS_INVALID);
    turn(sg, READER, before, DIBS__EXCLUSIVE, READER, DIBS_INVALID);
    turn(sg, READER, before, DIBS__PERMITS, OTHER, DIBS_INVALID);
    after = turn(sg, READER, before, DIBS__PERMITS, HEIR, DIBS_OK);
    assert_true(after > before);
    ASSERT_REPLY("6", "HLEN", "k");
    ASSERT_REPLY("5", "HGET", "k", "capacity");
    ASSERT_REPLY("0", "HEXISTS", "k", READER);
    ASSERT_REPLY("0", "HEXISTS", "k", "who:" READER);
    assert_status(renew(sg, 0, HEIR, after), DIBS_OK);
    CHECK(DIBS_OK, sg->st[2]->ops->lease->yield(sg->st[2], "k", 0, stage_soon(),
                                                &asked, err));
    assert_int_equal(asked, 2);
    IN_TIME(notified(sg, 0, HEIR, DIBS__NOTICE_YIELD));
    IN_TIME(notified(sg, 1, OTHER, DIBS__NOTICE_YIELD));
    leave(sg, OTHER, DIBS_OK);
    leave(sg, HEIR, DIBS_OK);
    assert_nothing_left(sg);
}

/* What is over, or never was, cannot be turned; nor over to who has left. */
static void a_lease_that_is_not_held_is_not_converted(void **state)
{
    stage *sg = *state;
    const dibs__leave tomb = {.name = "k", .owner = HEIR, .unanswered = true};
    const dibs__leave ghost = {.name = "k", .owner = READER, .keep_ms = 5000};
    uint64_t fence = hold(sg, READER, DIBS__EXCLUSIVE);
    uint32_t asked = 9;

    turn(sg, READER, fence + 1, DIBS__SHARED, READER, DIBS_LOST);
    turn(sg, OTHER, fence, DIBS__SHARED, OTHER, DIBS_LOST);
    CHECK(DIBS_LOST,
          sg->st[0]->ops->lease->release(sg->st[0], &tomb, stage_soon(), err));
    turn(sg, READER, fence, DIBS__EXCLUSIVE, HEIR, DIBS_LOST);
    assert_status(renew(sg, 0, READER, fence), DIBS_OK);
    CHECK(DIBS_OK,
          sg->st[0]->ops->lease->release(sg->st[0], &ghost, stage_soon(), err));
    turn(sg, READER, fence, DIBS__SHARED, READER, DIBS_LOST);
    CHECK(DIBS_OK, sg->st[2]->ops->lease->yield(sg->st[2], "k", 0, stage_soon(),
                                                &asked, err));
    assert_int_equal(asked, 0);
    CHECK(DIBS_STALE, sg->st[2]->ops->lease->yield(sg->st[2], "k", fence + 1,
                                                   stage_soon(), &asked, err));
    CHECK(DIBS_NOTFOUND,
          sg->st[2]->ops->lease->yield(sg->st[2], "none", 0, stage_soon(),
                                       &asked, err));
}

static void the_store_keeps_the_wish_for_notices_with_the_doorbell(void **state)
{
    stage *sg = *state;
    dibs__ask told = ask_for("k", READER, DIBS__EXCLUSIVE);
    dibs__ask other = ask_for("k", OTHER, DIBS__EXCLUSIVE);
    dibs__ask next = ask_for("k", HEIR, DIBS__EXCLUSIVE);
    char text[512];

    told.flags = DIBS__ASK_TELL;
    other.flags = DIBS__ASK_TELL | DIBS__ASK_QUEUE;
    ask(sg, 0, &told, DIBS_OK);
    ASSERT_REPLY("owner fence ttl who bell", "HKEYS", "k");
    stage_reply(server_ask(&sg->w->sv, "HGET", "k", "bell", NULL), text);
    assert_int_equal(strlen(text), 17);
    assert_int_equal(text[16], '+');
    ask(sg, 1, &other, DIBS_BUSY);
    IN_TIME(notified(sg, 0, READER, DIBS__NOTICE_WANTED));
    leave(sg, READER, DIBS_OK);
    IN_TIME(notified(sg, 1, OTHER, DIBS__NOTICE_GRANTED));
    ask(sg, 2, &next, DIBS_BUSY);
    IN_TIME(notified(sg, 1, OTHER, DIBS__NOTICE_WANTED));
    leave(sg, OTHER, DIBS_OK);
    /* Without the wish the layout is as ever. */
    ask(sg, 2, &next, DIBS_OK);
    ASSERT_REPLY("owner fence ttl who", "HKEYS", "k");
    leave(sg, HEIR, DIBS_OK);
    assert_nothing_left(sg);
}

static void sharers_that_want_to_be_told_are_told(void **state)
{
    stage *sg = *state;
    dibs__ask told = ask_for("k", READER, DIBS__SHARED);
    dibs__ask other = ask_for("k", OTHER, DIBS__SHARED);
    dibs__ask writer = ask_for("k", HEIR, DIBS__EXCLUSIVE);
    dibs__notice notice;
    uint64_t fence;

    told.flags = DIBS__ASK_TELL;
    ask(sg, 0, &told, DIBS_OK);
    fence = ask(sg, 1, &other, DIBS_OK);
    ask(sg, 2, &writer, DIBS_BUSY);
    IN_TIME(notified(sg, 0, READER, DIBS__NOTICE_WANTED));
    turn(sg, OTHER, fence, DIBS__EXCLUSIVE, OTHER, DIBS_BUSY);
    IN_TIME(notified(sg, 0, READER, DIBS__NOTICE_WANTED));
    leave(sg, OTHER, DIBS_OK);
    leave(sg, READER, DIBS_OK);
    assert_int_equal(sg->st[1]->ops->doorbell_read(sg->st[1], &notice, 1), 0);
    assert_nothing_left(sg);
}

/* A name that always has somebody has no more fields than for those. */
static void expect_no_trace(stage *sg, dibs__mode mode, const char *fields)
{
    dibs__ask stays = ask_for("k", READER, mode);
    dibs__ask next = ask_for("k", OTHER, mode);

    stays.capacity = next.capacity = mode == DIBS__PERMITS ? 100 : 0;
    ask(sg, 0, &stays, DIBS_OK);
    for (unsigned i = 0; i < 20; i++) {
        char name[DIBS_OWNER_SIZE];
        dibs__ask dies = stays;

        snprintf(name, sizeof(name), "%032x", i + 1);
        dies.owner = name;
        dies.ttl_ms = 20;
        ask(sg, 1, &dies, DIBS_OK);
    }
    world_sleep_ms(50);
    ask(sg, 1, &next, DIBS_OK);
    ASSERT_REPLY(fields, "HLEN", "k");
    leave(sg, OTHER, DIBS_OK);
    ask(sg, 1, &next, DIBS_OK);
    leave(sg, READER, DIBS_OK);
    ask(sg, 0, &stays, DIBS_OK);
    ASSERT_REPLY(fields, "HLEN", "k");
    ASSERT_REPLY("0", "EXISTS", "{k}~party", "{k}~queue", "{k}~place");
    leave(sg, READER, DIBS_OK);
    leave(sg, OTHER, DIBS_OK);
    assert_nothing_left(sg);
}

static void readers_that_died_leave_no_trace(void **state)
{
    expect_no_trace(*state, DIBS__SHARED, "5");
}

static void holders_of_permits_that_died_leave_no_trace(void **state)
{
    expect_no_trace(*state, DIBS__PERMITS, "6");
}

/* Nor do those who waited for a name that is always held. */
static void waiters_that_died_leave_no_trace(void **state)
{
    stage *sg = *state;
    dibs__ask what = ask_for("k", OTHER, DIBS__EXCLUSIVE);

    hold(sg, READER, DIBS__EXCLUSIVE);
    what.flags = DIBS__ASK_QUEUE;
    for (unsigned i = 0; i < 20; i++) {
        char name[DIBS_OWNER_SIZE];
        dibs__ask dies = what;

        snprintf(name, sizeof(name), "%032x", i + 1);
        dies.owner = name;
        dies.priority = (int32_t)(i % 3);
        ask(sg, 1, &dies, DIBS_BUSY);
    }
    world_sleep_ms(DIBS__PLACE_MS + 50);
    ask(sg, 1, &what, DIBS_BUSY);
    ASSERT_REPLY("2", "HLEN", "{k}~party"); /* and the last number */
    ASSERT_REPLY("1", "ZCARD", "{k}~queue");
    ASSERT_REPLY("1", "ZCARD", "{k}~place");
    leave(sg, OTHER, DIBS_LOST);
    leave(sg, READER, DIBS_OK);
    assert_nothing_left(sg);
}

enum { SET = DIBS__ALL_MAX };

/* A set of names and owners of their own. */
typedef struct set {
    dibs__ask asks[SET];
    dibs__answer answers[SET];
    char names[SET][16];
    char owners[SET][DIBS_OWNER_SIZE];
} set;

static void set_init(set *all)
{
    for (size_t i = 0; i < SET; i++) {
        snprintf(all->names[i], sizeof(all->names[i]), "set:%02zu", i);
        snprintf(all->owners[i], sizeof(all->owners[i]), "%032zx", i + 1);
        all->asks[i] = ask_for(all->names[i], all->owners[i], DIBS__EXCLUSIVE);
    }
}

static size_t take_all(stage *sg, set *all, dibs_status rc)
{
    size_t blocked = SET;

    CHECK(rc, sg->st[2]->ops->lease->acquire_all(sg->st[2], all->asks, SET,
                                                 stage_soon(), all->answers,
                                                 &blocked, err));
    return blocked;
}

static void a_set_has_fences_in_a_row(void **state)
{
    stage *sg = *state;
    set all, again;
    char number[32];

    set_init(&all);
    all.asks[3].priority = 7;
    take_all(sg, &all, DIBS_OK);
    for (size_t i = 0; i < SET; i++) {
        assert_int_equal(all.answers[i].fence, all.answers[0].fence + i);
        assert_in_range(all.answers[i].left_ms, 15000, 20000);
        assert_false(all.answers[i].claim);
    }
    snprintf(number, sizeof(number), "%llu",
             (unsigned long long)all.answers[SET - 1].fence);
    ASSERT_REPLY(number, "GET", "dibs:fence");
    ASSERT_REPLY("65", "DBSIZE");
    ASSERT_REPLY("owner fence ttl who", "HKEYS", "set:63");
    ASSERT_REPLY("7", "HGET", "set:03", "priority");
    again = all;
    take_all(sg, &again, DIBS_OK);
    for (size_t i = 0; i < SET; i++)
        assert_int_equal(again.answers[i].fence, all.answers[i].fence);
    ASSERT_REPLY(number, "GET", "dibs:fence");
    /* One that ended meanwhile is taken anew, the others stay. */
    assert_true(server_tell(&sg->w->sv, "DEL", "set:09", NULL));
    take_all(sg, &again, DIBS_OK);
    assert_true(again.answers[9].fence > all.answers[SET - 1].fence);
    assert_int_equal(again.answers[10].fence, all.answers[10].fence);
}

static void a_set_that_is_refused_leaves_nothing(void **state)
{
    stage *sg = *state;
    dibs__ask told = ask_for("set:40", OTHER, DIBS__EXCLUSIVE);
    dibs__ask permits = ask_for("set:50", OTHER, DIBS__PERMITS);
    dibs__leave gone = {.name = "set:40", .owner = OTHER, .unanswered = true};
    dibs__leave late = {.name = "set:60", .unanswered = true};
    set all;

    set_init(&all);
    told.flags = DIBS__ASK_TELL;
    told.who = WHO "\tsecret=1";
    ask(sg, 0, &told, DIBS_OK);
    assert_int_equal(take_all(sg, &all, DIBS_BUSY), 40);
    assert_in_range(all.answers[40].left_ms, 15000, 20000);
    IN_TIME(notified(sg, 0, OTHER, DIBS__NOTICE_WANTED));
    ASSERT_REPLY("2", "DBSIZE");
    /* A tombstone of another is not in the way, the own is. */
    CHECK(DIBS_OK,
          sg->st[0]->ops->lease->release(sg->st[0], &gone, stage_soon(), err));
    ask(sg, 0, &permits, DIBS_OK);
    assert_int_equal(take_all(sg, &all, DIBS_MISMATCH), 50);
    gone = (dibs__leave){.name = "set:50", .owner = OTHER};
    CHECK(DIBS_OK,
          sg->st[0]->ops->lease->release(sg->st[0], &gone, stage_soon(), err));
    late.owner = all.owners[60];
    CHECK(DIBS_LOST,
          sg->st[0]->ops->lease->release(sg->st[0], &late, stage_soon(), err));
    assert_int_equal(take_all(sg, &all, DIBS_LOST), 60);
    all.asks[60].owner = HEIR;
    take_all(sg, &all, DIBS_OK);
}

/* Who waits goes first, unless of less priority; then it is remembered. */
static void a_set_does_not_pass_who_waits(void **state)
{
    stage *sg = *state;
    dibs__ask waiter = ask_for("set:07", OTHER, DIBS__EXCLUSIVE);
    dibs__ask first = ask_for("set:07", READER, DIBS__EXCLUSIVE);
    dibs__leave gone = {.name = "set:07", .owner = OTHER};
    set all;

    set_init(&all);
    waiter.flags = DIBS__ASK_QUEUE;
    ask(sg, 0, &first, DIBS_OK);
    ask(sg, 1, &waiter, DIBS_BUSY);
    assert_true(server_tell(&sg->w->sv, "DEL", "set:07", NULL));
    assert_int_equal(take_all(sg, &all, DIBS_BUSY), 7);
    IN_TIME(notified(sg, 1, OTHER, DIBS__NOTICE_GRANTED));
    CHECK(DIBS_OK,
          sg->st[0]->ops->lease->release(sg->st[0], &gone, stage_soon(), err));
    take_all(sg, &all, DIBS_OK);
    ASSERT_REPLY("65", "DBSIZE");
}

/* What needs a new fence is refused before it begins; what gives up a right is
 * done. */
static void without_memory_nothing_is_done_by_half(void **state)
{
    stage *sg = *state;
    dibs__store *st = sg->st[0];
    uint64_t fence = hold(sg, READER, DIBS__EXCLUSIVE);
    uint64_t position = 9;
    size_t blocked;
    set all;

    set_init(&all);
    assert_true(
        server_tell(&sg->w->sv, "CONFIG", "SET", "maxmemory", "1", NULL));
    turn(sg, READER, fence, DIBS__EXCLUSIVE, HEIR, DIBS_UNAVAIL);
    ASSERT_REPLY(READER, "HGET", "k", "owner");
    assert_number(sg, fence, "fence");
    CHECK(DIBS_UNAVAIL,
          st->ops->log->append(
              st,
              &(dibs__append){.topic = "t", .data = "x", .len = 1, .keep = 10},
              stage_soon(), &position, err));
    CHECK(DIBS_UNAVAIL,
          st->ops->lease->acquire_all(st, all.asks, SET, stage_soon(),
                                      all.answers, &blocked, err));
    ASSERT_REPLY("2", "DBSIZE");
    assert_int_equal(turn(sg, READER, fence, DIBS__SHARED, READER, DIBS_OK),
                     fence);
    leave(sg, READER, DIBS_OK);
    assert_nothing_left(sg);
}

static bool
note_who(const char *name, const dibs__entry *list, size_t count, void *arg)
{
    (void)name;
    assert_int_equal(count, 2);
    assert_string_equal(list[0].who, arg);
    assert_string_equal(list[1].who, arg);
    return true;
}

/* Metadata are kept to the byte, and not shown to who is refused. */
static void metadata_are_kept_and_not_told(void **state)
{
    stage *sg = *state;
    dibs__ask what = ask_for("k", READER, DIBS__EXCLUSIVE);
    dibs__ask waiter = ask_for("k", OTHER, DIBS__EXCLUSIVE);
    char who[DIBS__WHO_MAX];
    dibs__answer ans;
    dibs_error why = {0};

    memset(who, 'm', sizeof(who));
    memcpy(who, WHO "\tkey=a  b\tmore=", sizeof(WHO "\tkey=a  b\tmore=") - 1);
    who[sizeof(who) - 1] = '\0';
    what.who = waiter.who = who;
    waiter.flags = DIBS__ASK_QUEUE;
    ask(sg, 0, &what, DIBS_OK);
    assert_status(sg->st[1]->ops->lease->acquire(sg->st[1], &waiter,
                                                 stage_soon(), &ans, &why),
                  DIBS_BUSY);
    assert_string_equal(why.message, "`k` is held by " WHO);
    CHECK(DIBS_OK, sg->st[2]->ops->lease->inspect(sg->st[2], "k", stage_soon(),
                                                  note_who, who, err));
    leave(sg, READER, DIBS_OK);
    IN_TIME(notified(sg, 1, OTHER, DIBS__NOTICE_GRANTED));
    ASSERT_REPLY(who, "HGET", "k", "who");
}

/* A notice that was sent while no thread listened is lost. The listener learns so. */
static void a_channel_that_was_lost_is_told(void **state)
{
    stage *sg = *state;
    struct pollfd bell = {.fd = sg->bell[0], .events = POLLIN};
    dibs__notice notice = {.kind = DIBS__NOTICE_GRANTED};

    assert_int_equal(sg->st[0]->ops->doorbell_read(sg->st[0], &notice, 1), 0);
    ASSERT_REPLY("2", "CLIENT", "KILL", "TYPE", "pubsub");
    assert_int_equal(poll(&bell, 1, WORLD_BOUND_MS), 1);
    assert_int_equal(sg->st[0]->ops->doorbell_read(sg->st[0], &notice, 1), 1);
    assert_int_equal(notice.kind, DIBS__NOTICE_MISSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(what_is_answered_again_is_written_again),
        STAGE_TEST(an_addition_that_fails_changes_nothing),
        STAGE_TEST(a_reader_that_rises_is_the_whole_hash),
        STAGE_TEST(a_writer_that_sinks_lets_readers_in),
        STAGE_TEST(a_lease_that_was_handed_on_is_marked_until_renewed),
        STAGE_TEST(permits_are_handed_on_as_they_are),
        STAGE_TEST(a_lease_that_is_not_held_is_not_converted),
        STAGE_TEST(the_store_keeps_the_wish_for_notices_with_the_doorbell),
        STAGE_TEST(sharers_that_want_to_be_told_are_told),
        STAGE_TEST(readers_that_died_leave_no_trace),
        STAGE_TEST(holders_of_permits_that_died_leave_no_trace),
        STAGE_TEST(waiters_that_died_leave_no_trace),
        STAGE_TEST(a_set_has_fences_in_a_row),
        STAGE_TEST(a_set_that_is_refused_leaves_nothing),
        STAGE_TEST(a_set_does_not_pass_who_waits),
        STAGE_TEST(without_memory_nothing_is_done_by_half),
        STAGE_TEST(metadata_are_kept_and_not_told),
        STAGE_TEST(a_channel_that_was_lost_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
