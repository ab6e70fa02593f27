/* members.c - groups and their members through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include "core/client.h"
#include "store/roster.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A look at a group. */
typedef struct roll {
    uint32_t count, counting;
    uint64_t last_fence;
    bool in_order;
    char members[256]; /* "NAME label meta;" of each */
} roll;

static bool note_member(const dibs_member_info *info, void *arg)
{
    roll *r = arg;
    size_t len = strlen(r->members);

    r->count++;
    r->counting += info->counts;
    r->in_order = r->in_order && info->fence > r->last_fence;
    r->last_fence = info->fence;
    assert_true(info->left_ms >= 0 && info->pid > 0 && *info->host);
    snprintf(r->members + len, sizeof(r->members) - len, "%s %s %s;",
             info->member, info->label, info->meta);
    return true;
}

static roll call_roll(dibs_client *cl, const char *group)
{
    roll r = {.in_order = true};
    dibs_error err = {0};
    dibs_status rc = dibs_members_list(cl, group, note_member, &r, &err);

    assert_status(rc, r.count > 0 ? DIBS_OK : DIBS_NOTFOUND);
    assert_true(r.in_order);
    return r;
}

static bool has_enough(void *arg)
{
    return dibs_member_enough_ms(arg) > 0;
}

static dibs_member *
join(dibs_client *cl, const char *group, const dibs_member_opts *opts)
{
    dibs_member *member = NULL;

    CHECK(DIBS_OK, dibs_member_join(cl, group, opts, &member, err));
    return member;
}

static void members_are_listed_while_they_are_there(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *group = core_name();
    const char *const meta[] = {"addr=10.0.0.7", NULL};
    dibs_member *a, *b;
    roll r;

    (void)state;
    assert_int_equal(call_roll(cl, group).count, 0);
    a = join(cl, group,
             DIBS_MEMBER_OPTS(.member = "a", .label = "first", .meta = meta));
    assert_status(dibs_member_check(a), DIBS_OK);
    b = join(other, group, DIBS_MEMBER_OPTS(.member = "b"));
    r = call_roll(cl, group);
    assert_string_equal(r.members, "a first addr=10.0.0.7;b  ;");
    dibs_member_leave(a);
    assert_string_equal(call_roll(other, group).members, "b  ;");
    dibs_close(other); /* gives the seat up */
    assert_int_equal(call_roll(cl, group).count, 0);
    dibs_member_leave(b);
    dibs_close(cl);
}

/* The client keeps the seat, and a member that is not kept is gone after its ttl. */
static void a_seat_is_kept(void **state)
{
    dibs_client *cl = core_open();
    const char *group = core_name();
    dibs_member *a = join(cl, group, DIBS_MEMBER_OPTS(.ttl_ms = pace_ms(150)));
    uint64_t fence = call_roll(cl, group).last_fence;
    int64_t end = now_ms() + pace_ms(300);

    (void)state;
    while (now_ms() < end) {
        IN_TIME(dibs_member_check(a) == DIBS_OK);
        poll(NULL, 0, 5);
    }
    IN_TIME(call_roll(cl, group).last_fence == fence);
    dibs_member_leave(a);
    dibs_close(cl);
}

static void enough_members_count(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *group = core_name();
    dibs_member *a = join(cl, group,
                          DIBS_MEMBER_OPTS(.minimum = 2, .ttl_ms = pace_ms(150),
                                           .flags = DIBS_MEMBER_QUICK));
    dibs_member *b;

    (void)state;
    assert_true(dibs_member_enough_ms(a) == 0);
    b = join(other, group,
             DIBS_MEMBER_OPTS(.ttl_ms = pace_ms(30000),
                              .flags = DIBS_MEMBER_QUICK));
    core_until(has_enough, a);
    CHECK(DIBS_OK, dibs_member_recount(a, err));
    IN_TIME(dibs_member_enough_ms(a) > 0 && dibs_member_fence(a) > 0);
    dibs_member_leave(b);
    CHECK(DIBS_BUSY, dibs_member_recount(a, err));
    assert_true(dibs_member_enough_ms(a) == 0);
    dibs_member_leave(a);
    dibs_close(cl);
    dibs_close(other);
}

/* A seat of its former self may live elsewhere: a new member does not count yet. */
static void a_new_member_counts_a_ttl_later(void **state)
{
    dibs_client *cl = core_open();
    const char *group = core_name();
    int64_t ttl_ms = pace_ms(150), began = now_ms();
    dibs_member *a = join(cl, group, DIBS_MEMBER_OPTS(.ttl_ms = ttl_ms));

    (void)state;
    core_until(has_enough, a);
    assert_true(now_ms() - began >= ttl_ms);
    IN_TIME(call_roll(cl, group).counting == 1);
    dibs_member_leave(a);
    dibs_close(cl);
}

static void mistakes_are_refused(void **state)
{
    dibs_client *cl = core_open();
    const char *group = core_name();
    const char *const meta[] = {"no equals sign", NULL};
    dibs_member *member = NULL;
    char long_name[65];

    (void)state;
    memset(long_name, 'x', sizeof(long_name));
    long_name[64] = '\0';
    CHECK(DIBS_INVALID,
          dibs_member_join(cl, group, DIBS_MEMBER_OPTS(.ttl_ms = 1), &member,
                           err));
    CHECK(DIBS_INVALID,
          dibs_member_join(cl, group,
                           DIBS_MEMBER_OPTS(.ttl_ms = 24 * 3600 * 1000 + 1),
                           &member, err));
    CHECK(DIBS_INVALID,
          dibs_member_join(cl, group, DIBS_MEMBER_OPTS(.flags = 8), &member,
                           err));
    CHECK(DIBS_INVALID,
          dibs_member_join(cl, group, DIBS_MEMBER_OPTS(.meta = meta), &member,
                           err));
    CHECK(DIBS_INVALID,
          dibs_member_join(cl, group, DIBS_MEMBER_OPTS(.member = long_name),
                           &member, err));
    CHECK(DIBS_OK, dibs_latch_count_down(cl, group, 2, "a", NULL, err));
    CHECK(DIBS_MISMATCH, dibs_member_join(cl, group, NULL, &member, err));
    CHECK(DIBS_MISMATCH, dibs_members_list(cl, group, note_member,
                                           &(roll){.in_order = true}, err));
    assert_null(member);
    dibs_close(cl);
}

static bool note_seat(const dibs__seat_entry *seat, void *arg)
{
    *(dibs__seat_entry *)arg = *seat;
    return false;
}

/* The store ends the only seat behind the back of its member. */
static void end_seat(dibs_client *cl, const char *group)
{
    dibsx_nsec soon = dibsx_after_ms(dibsx_now(), pace_ms(30000));
    dibs__roster_head head;
    dibs__seat_entry seat = {.fence = 0};
    dibs__meet item = {.name = group, .id = seat.id, .verb = DIBS__LEAVE};

    CHECK(DIBS_OK, cl->st->ops->roster->roll_call(cl->st, group, soon, &head,
                                                  note_seat, &seat, err));
    item.fence = seat.fence;
    CHECK(DIBS_OK, cl->st->ops->roster->meet(cl->st, &item, 1, soon, err));
    CHECK(DIBS_OK, item.rc);
}

static bool is_refused(void *arg)
{
    return dibs_member_recount(arg, NULL) == DIBS_MISMATCH;
}

/* The name went to a latch meanwhile. */
static void a_member_that_finds_no_group_is_told(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *group = core_name();
    dibs_member *member =
        join(cl, group, DIBS_MEMBER_OPTS(.ttl_ms = pace_ms(60000)));

    (void)state;
    end_seat(other, group);
    CHECK(DIBS_OK, dibs_latch_count_down(other, group, 2, "a", NULL, err));
    core_until(is_refused, member);
    dibs_member_leave(member);
    dibs_close(cl);
    dibs_close(other);
}

static bool note_group(const dibs_group_info *info, void *arg)
{
    char *text = arg;
    size_t len = strlen(text);

    snprintf(text + len, 256 - len, "%s %u %u;", strrchr(info->group, '-'),
             (unsigned)info->members, (unsigned)info->counting);
    return true;
}

static void groups_are_listed(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    char names[2][80], text[256] = "";
    dibs_member *a, *b, *c;

    (void)state;
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof(names[i]), "%s-%d", name, i);
    a = join(cl, names[1], DIBS_MEMBER_OPTS(.ttl_ms = 60000));
    b = join(cl, names[0], DIBS_MEMBER_OPTS(.ttl_ms = 60000));
    c = join(cl, names[0],
             DIBS_MEMBER_OPTS(.ttl_ms = 60000, .flags = DIBS_MEMBER_QUICK));
    CHECK(DIBS_OK, dibs_group_list(cl, name, note_group, text, err));
    assert_string_equal(text, "-0 2 1;-1 1 0;");
    text[0] = '\0';
    dibs_member_leave(a);
    CHECK(DIBS_OK, dibs_group_list(cl, name, note_group, text, err));
    assert_string_equal(text, "-0 2 1;");
    dibs_member_leave(b);
    dibs_member_leave(c);
    dibs_close(cl);
}

int core_members_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_listed_while_they_are_there),
        cmocka_unit_test(a_seat_is_kept),
        cmocka_unit_test(enough_members_count),
        cmocka_unit_test(a_new_member_counts_a_ttl_later),
        cmocka_unit_test(groups_are_listed),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(a_member_that_finds_no_group_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
