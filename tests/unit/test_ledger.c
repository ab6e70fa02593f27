/* test_ledger.c - the rule of commits on a ledger that only notes what it is asked: the
 * order of decisions, and what a failure leaves. */
/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/alloc.h"
#include "check.h"
#include "store/commit_check.h"
#include "store/ledger.h"

#include <stdio.h>
#include <string.h>

enum { NOW_US = 1000, VERSION = 77, HAS = 5 };

/* A value that is there has the version HAS; its key begins with "has". */
typedef struct notes {
    dibs__ledger base;
    char text[512];
    const char *fails; /* the operation that does */
    dibs_status why;
} notes;

/* Notes an operation, and fails if it is the one. */
static dibs_status
note(dibs__ledger *lg, const char *op, const char *name, int64_t number)
{
    notes *nt = (notes *)lg;
    size_t len = strlen(nt->text);

    snprintf(nt->text + len, sizeof(nt->text) - len, "%s %s %d;", op, name,
             (int)number);
    return nt->fails && strcmp(nt->fails, op) == 0 ? nt->why : DIBS_OK;
}

static uint64_t version_of(const char *key)
{
    return strncmp(key, "has", 3) == 0 ? HAS : 0;
}

static dibs_status
find_version(dibs__ledger *lg, const char *key, uint64_t *out)
{
    *out = version_of(key);
    return note(lg, "version", key, 0);
}

static dibs_status
read_value(dibs__ledger *lg, const char *key, dibs_value *out)
{
    dibs_status rc = note(lg, "read", key, 0);

    *out = (dibs_value){0};
    if (rc != DIBS_OK || version_of(key) == 0)
        return rc == DIBS_OK ? DIBS_NOTFOUND : rc;
    *out = (dibs_value){.data = dibsx_strdup("x"), .len = 1, .version = HAS};
    return DIBS_OK;
}

static dibs_status draw_version(dibs__ledger *lg, uint64_t *version)
{
    *version = VERSION;
    return note(lg, "draw", "-", 0);
}

static dibs_status
put_value(dibs__ledger *lg, const dibs__change *change, uint64_t version)
{
    return note(lg, "put", change->key, (int64_t)version);
}

static dibs_status drop_value(dibs__ledger *lg, const char *key)
{
    return note(lg, "drop", key, 0);
}

static dibs_status
enter_index(dibs__ledger *lg, const char *index, const char *member, int64_t at)
{
    (void)member;
    return note(lg, "enter", index, at);
}

static dibs_status
leave_index(dibs__ledger *lg, const char *index, const char *member)
{
    (void)member;
    return note(lg, "leave", index, 0);
}

static dibs_status read_size(dibs__ledger *lg, const char *index, uint64_t *out)
{
    *out = 3;
    return note(lg, "size", index, 0);
}

static dibs_status
tell_topic(dibs__ledger *lg, const char *topic, uint64_t number)
{
    return note(lg, "tell", topic, (int64_t)number);
}

static const dibs__ledger_ops ops = {
    .version = find_version,
    .read = read_value,
    .draw = draw_version,
    .put = put_value,
    .drop = drop_value,
    .enter = enter_index,
    .leave = leave_index,
    .size = read_size,
    .tell = tell_topic,
};

static dibs_status
commit_on(notes *nt, dibs__commit *item, const char *fails, dibs_status why)
{
    *nt = (notes){.base = {.ops = &ops, .now_us = NOW_US},
                  .fails = fails,
                  .why = why};
    return dibs__ledger_commit(&nt->base, item);
}

static dibs__change *all_changes(void)
{
    static dibs__change changes[6];

    changes[0] = (dibs__change){.verb = DIBS__CHANGE_PUT, .key = "a"};
    changes[1] = (dibs__change){.verb = DIBS__CHANGE_DELETE, .key = "b"};
    changes[2] = (dibs__change){.verb = DIBS__CHANGE_ENTER,
                                .key = "i",
                                .member = "m",
                                .at = 10,
                                .from_now = true};
    changes[3] = (dibs__change){.verb = DIBS__CHANGE_ENTER,
                                .key = "j",
                                .member = "m",
                                .at = 10,
                                .uncounted = true};
    changes[4] = (dibs__change){.verb = DIBS__CHANGE_LEAVE, .key = "i"};
    changes[5] = (dibs__change){.verb = DIBS__CHANGE_TELL, .key = "t:t"};
    return changes;
}

static void all_changes_have_one_version_and_sizes_come_last(void **state)
{
    dibs__commit item = {.changes = all_changes(), .change_count = 6};
    notes nt;

    (void)state;
    assert_status(commit_on(&nt, &item, NULL, DIBS_OK), DIBS_OK);
    assert_status(item.rc, DIBS_OK);
    assert_string_equal(nt.text, "draw - 0;put a 77;drop b 0;enter i 1010;"
                                 "enter j 10;leave i 0;tell t:t 77;size i 0;");
    assert_int_equal(item.version, VERSION);
    assert_int_equal(item.now_us, NOW_US);
    assert_int_equal(item.changes[2].size, 3);
    assert_int_equal(item.changes[3].size, 0);
}

static void the_clock_comes_before_the_checks(void **state)
{
    dibs__check check = {.key = "has", .version = 1};
    dibs__commit item = {.checks = &check,
                         .check_count = 1,
                         .not_before_us = NOW_US + 1};
    notes nt;

    (void)state;
    assert_status(commit_on(&nt, &item, NULL, DIBS_OK), DIBS_OK);
    assert_status(item.rc, DIBS_EARLY);
    assert_string_equal(nt.text, "");
    item.not_before_us = 0;
    item.not_after_us = NOW_US - 1;
    assert_status(commit_on(&nt, &item, NULL, DIBS_OK), DIBS_OK);
    assert_status(item.rc, DIBS_LATE);
    assert_string_equal(nt.text, "");

    /* Both bounds belong to the span. */
    item.not_before_us = item.not_after_us = NOW_US;
    check.version = HAS;
    assert_status(commit_on(&nt, &item, NULL, DIBS_OK), DIBS_OK);
    assert_status(item.rc, DIBS_OK);
}

static void a_check_that_fails_ends_it_before_any_change(void **state)
{
    dibs__check checks[] = {{.key = "has", .version = HAS},
                            {.key = "none", .version = 9},
                            {.key = "never looked at", .version = 9}};
    dibs__commit item = {.checks = checks,
                         .check_count = 3,
                         .changes = all_changes(),
                         .change_count = 6};
    notes nt;

    (void)state;
    assert_status(commit_on(&nt, &item, NULL, DIBS_OK), DIBS_OK);
    assert_status(item.rc, DIBS_STALE);
    assert_string_equal(nt.text, "version has 0;version none 0;read none 0;");
    assert_int_equal(item.failed, 1);
    assert_int_equal(item.version, 0);
    checks[0].version = 0;
    assert_status(commit_on(&nt, &item, NULL, DIBS_OK), DIBS_OK);
    assert_int_equal(item.failed, 0);
    assert_string_equal(item.found.data, "x");
    dibs__commit_fini(&item, 1);
    assert_null(item.found.data);
}

/* One that has no memory for what it found does not end the others of its step. */
static void no_memory_for_the_value_found_is_its_own_rc(void **state)
{
    dibs__check check = {.key = "has", .version = 0};
    dibs__commit item = {.checks = &check, .check_count = 1};
    notes nt;

    (void)state;
    assert_status(commit_on(&nt, &item, "read", DIBS_NOMEM), DIBS_OK);
    assert_status(item.rc, DIBS_NOMEM);
    assert_status(commit_on(&nt, &item, "read", DIBS_UNAVAIL), DIBS_UNAVAIL);
}

static const char *last_note(const notes *nt)
{
    const char *from = nt->text + strlen(nt->text) - 1;

    while (from > nt->text && from[-1] != ';')
        from--;
    return from;
}

static void a_failure_of_the_store_ends_the_step(void **state)
{
    static const char *const steps[] = {"version", "draw",  "put",  "drop",
                                        "enter",   "leave", "tell", "size"};
    dibs__check check = {.key = "has", .version = HAS};
    dibs__commit item = {.checks = &check,
                         .check_count = 1,
                         .changes = all_changes(),
                         .change_count = 6};
    notes nt;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        assert_status(commit_on(&nt, &item, steps[i], DIBS_INTERNAL),
                      DIBS_INTERNAL);
        assert_memory_equal(last_note(&nt), steps[i], strlen(steps[i]));
    }
}

static void a_tag_is_what_stands_between_braces(void **state)
{
    static const struct {
        const char *name, *tag;
    } cases[] = {{"{a}", "a"},    {"x{a}y{b}", "a"}, {"x", NULL},
                 {"{}{b}", NULL}, {"x{a", NULL},     {"}x{a}", "a"},
                 {"{{a}", "{a"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t len = 9;
        const char *tag = dibs__name_tag(cases[i].name, &len);

        assert_int_equal(tag != NULL, cases[i].tag != NULL);
        if (tag) {
            assert_int_equal(len, strlen(cases[i].tag));
            assert_memory_equal(tag, cases[i].tag, len);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_changes_have_one_version_and_sizes_come_last),
        cmocka_unit_test(the_clock_comes_before_the_checks),
        cmocka_unit_test(a_check_that_fails_ends_it_before_any_change),
        cmocka_unit_test(no_memory_for_the_value_found_is_its_own_rc),
        cmocka_unit_test(a_failure_of_the_store_ends_the_step),
        cmocka_unit_test(a_tag_is_what_stands_between_braces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
