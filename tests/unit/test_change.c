/* test_change.c - the difference of two pictures, of which one or both are cut. */
/* SPDX-License-Identifier: MIT */
#include "serve/change.h"
#include "serve/hub.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

enum { NAMES = 8 };

/* Each letter of `names` is a name with one holder, for which another waits. */
typedef struct scene {
    dibs__serve_picture picture;
    dibs_lease_info infos[NAMES], *rows[NAMES];
    char names[NAMES][2];
} scene;

#define PARTY(name)                                                            \
    {                                                                          \
        .owner = name, .host = "h", .label = "", .mode = "exclusive",          \
        .identity = "", .meta = "", .fence = 1, .left_ms = 1000                \
    }

static const dibs_party holder = PARTY("0123456789abcdef0123456789abcdef"),
                        waiter = PARTY("fedcba9876543210fedcba9876543210");

static void make(scene *sc, const char *names, bool complete)
{
    const size_t count = strlen(names);

    *sc = (scene){
        .picture = {.rows = sc->rows, .count = count, .complete = complete}};
    for (size_t i = 0; i < count; i++) {
        sc->names[i][0] = names[i];
        sc->infos[i] = (dibs_lease_info){.name = sc->names[i],
                                         .holders = &holder,
                                         .holder_count = 1,
                                         .waiters = &waiter,
                                         .waiter_count = 1};
        sc->rows[i] = &sc->infos[i];
    }
}

/* As dibs__serve_change_fn. */
static void note(void *arg, const dibs__serve_change *change)
{
    char *told = arg;
    const size_t len = strlen(told);

    snprintf(told + len, 256 - len, "%s %s, ", change->row->name,
             dibs__serve_change_text(change->kind));
}

static void check(const char *before, bool before_complete, const char *now,
                  bool now_complete, const char *expected)
{
    char told[256] = "";
    scene one, two;

    make(&one, before, before_complete);
    make(&two, now, now_complete);
    dibs__serve_compare(&one.picture, &two.picture, note, told);
    assert_string_equal(told, expected);
}

static void whole_pictures(void **state)
{
    char told[256] = "";
    scene sc;

    (void)state;
    check("bc", true, "bc", true, "");
    check("bc", true, "ab", true,
          "a acquired, a queued, c released, c gave_up, ");
    check("bc", true, "", true,
          "b released, b gave_up, c released, c gave_up, ");
    make(&sc, "a", true);
    dibs__serve_compare(NULL, &sc.picture, note, told);
    assert_string_equal(told, "a acquired, a queued, ");
}

/* A new name in front pushes the last one out, which is held as before. */
static void names_behind_the_end_of_a_picture(void **state)
{
    (void)state;
    check("bcd", false, "abc", false, "a acquired, a queued, ");
    check("bcd", true, "abc", false, "a acquired, a queued, ");
    /* And comes back when that one ends. */
    check("abc", false, "bcd", false, "a released, a gave_up, ");
    check("abc", false, "bcd", true, "a released, a gave_up, ");
    /* In front of the end all is known. */
    check("abd", false, "acd", false,
          "b released, b gave_up, c acquired, c queued, ");
    check("abc", false, "", false, "");
}

static void wake_nobody(void *arg)
{
    (void)arg;
}

/* As dibs__ring_each_fn. */
static void note_removed(void *arg, const char *data, size_t len)
{
    const char *removed = strstr(data, "\"removed\":[\"");

    (void)len;
    if (removed)
        strncat(arg, removed + strlen("\"removed\":[\""), 1);
}

static void removed_rows(void **state)
{
    dibs__serve_hub hub;
    scene one, two;
    char told[NAMES + 1] = "";

    (void)state;
    assert_int_equal(dibs__hub_init(&hub, "00000000", wake_nobody, NULL, NULL),
                     DIBS_OK);
    make(&one, "bcde", false);
    make(&two, "acd", false);
    dibs__hub_seen(&hub, &one.picture, &two.picture);
    dibs__ring_latest(&hub.ring, DIBS__HUB_LOCKS, NULL, NAMES, note_removed,
                      told);
    assert_string_equal(told, "b");
    dibs__hub_fini(&hub);
}

static void a_picture_tells_of_what_it_covers(void **state)
{
    const dibs_lease_info *info = NULL;
    scene sc;

    (void)state;
    make(&sc, "bd", false);
    sc.picture.seen_at = 5;
    assert_true(dibs__serve_picture_tells(&sc.picture, "b", 4, &info));
    assert_ptr_equal(info, &sc.infos[0]);
    assert_true(dibs__serve_picture_tells(&sc.picture, "c", 4, &info));
    assert_null(info);
    /* It may be held: the picture does not reach so far. */
    assert_false(dibs__serve_picture_tells(&sc.picture, "e", 4, &info));
    assert_false(dibs__serve_picture_tells(&sc.picture, "b", 5, &info));
    sc.picture.complete = true;
    assert_true(dibs__serve_picture_tells(&sc.picture, "e", 4, &info));
    sc.picture.rc = DIBS_UNAVAIL;
    assert_false(dibs__serve_picture_tells(&sc.picture, "b", 4, &info));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pictures),
        cmocka_unit_test(names_behind_the_end_of_a_picture),
        cmocka_unit_test(removed_rows),
        cmocka_unit_test(a_picture_tells_of_what_it_covers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
