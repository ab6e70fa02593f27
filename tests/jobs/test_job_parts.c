/* test_job_parts.c - parts of definitions: params, patterns, and which set wins. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/job_set.h"
#include "jobs/params.h"
#include "jobs/pattern.h"

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static dibs__param listed[] = {
    {.name = "region", .initial = "eu", .pattern = "[a-z]{2}"},
    {.name = "since"},
    {.name = "who", .required = true},
};
static const dibs__param_list params = {listed, COUNT_OF(listed)};

/* ---- params */

static void references_are_filled_in(void **state)
{
    static const struct {
        const char *text;
        const char *filled;
    } rows[] = {
        {"", ""},
        {"plain $x ${", "plain $x ${"}, /* no check has passed it */
        {"${tick}", "T"},
        {"a${param.region}b${param.since}c", "aeubc"},
        {"${param.who}${param.who}", "${tick}${tick}"},
        {"$${tick} $$${tick}", "${tick} $${tick}"},
        {"$", "$"},
    };
    dibs__pair values[] = {{"region", "eu"}, {"who", "${tick}"}};
    const dibs__pairs given = {values, 2};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        dibsx_buf out;

        dibsx_buf_init(&out, 1000);
        dibs__params_expand(rows[i].text, &given, "T", &out);
        assert_string_equal(dibsx_buf_text(&out), rows[i].filled);
        dibsx_buf_fini(&out);
    }
}

static void bad_references_have_a_place(void **state)
{
    static const struct {
        const char *text;
        size_t at;
    } rows[] = {{"ab${x}", 2},      {"${tick}${", 7},
                {"${param.}", 0},   {"${param.since", 0},
                {"${param.no}", 0}, {"${param.since} ${param.9}", 15}};
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(dibs__params_check(rows[i].text, &params, &at, NULL),
                         DIBS_INVALID);
        assert_int_equal(at, rows[i].at);
    }
    CHECK(DIBS_OK, dibs__params_check("$${x} ${tick} ${param.who} $", &params,
                                      &at, err));
}

static void a_run_is_given_what_its_job_names(void **state)
{
    static const struct {
        dibs__pair given[2];
        size_t count;
        const char *message; /* NULL: it is good */
    } rows[] = {
        {{{"who", "me"}}, 1, NULL},
        {{{"who", "me"}, {"region", "us"}}, 2, NULL},
        {{{NULL, NULL}}, 0, "the param 'who' is missing; the job requires it"},
        {{{"who", "me"}, {"region", "USA"}},
         2,
         "the param 'region' is 'USA', which does not match its pattern "
         "[a-z]{2}"},
        {{{"hwo", "me"}}, 1, "the job has no param 'hwo'; did you mean 'who'?"},
        {{{"who", "me"}, {"who", "you"}}, 2, "the param 'who' is given twice"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        dibs__arena *arena = dibs__arena_new();
        dibs__pairs out;
        dibs_error err = {0};
        dibs_status rc = dibs__params_fill(&params, rows[i].given,
                                           rows[i].count, arena, &out, &err);

        assert_int_equal(rc, rows[i].message ? DIBS_INVALID : DIBS_OK);
        if (rows[i].message) {
            assert_string_equal(err.message, rows[i].message);
        } else {
            assert_int_equal(out.count, 2); /* since has no value */
            assert_string_equal(out.at[0].name, "region");
            assert_string_equal(out.at[0].value,
                                rows[i].count == 2 ? "us" : "eu");
        }
        dibs__arena_free(arena);
    }
}

static void a_param_has_a_variable(void **state)
{
    char out[DIBS__PARAM_VARIABLE_SIZE];

    (void)state;
    dibs__param_variable("since_2", out);
    assert_string_equal(out, "DIBS_PARAM_SINCE_2");
    assert_false(dibs__param_name_ok(""));
    assert_false(dibs__param_name_ok("a-b"));
    assert_false(dibs__param_name_ok("_a"));
    assert_true(dibs__param_name_ok("A1_"));
}

/* ---- patterns */

static void patterns_are_for_the_whole_text(void **state)
{
    (void)state;
    assert_true(dibs__pattern_match("[a-z]{2}", "eu"));
    assert_false(dibs__pattern_match("[a-z]{2}", "eur"));
    assert_true(dibs__pattern_match("a|bc", "bc"));
    assert_false(dibs__pattern_match("a|bc", "abc"));
    assert_false(dibs__pattern_match("a|bc", "a\nx"));
    assert_true(dibs__pattern_match(".*", ""));
}

static void hungry_patterns_are_refused(void **state)
{
    static const char *const bad[] = {
        "(",         ")(",          "[a",
        "a{2000}",   "(a{40}){40}", "(a)\\1",
        "a{1,1001}", "*{",          "(((a{9}){9}){9}){9}",
        "a)|(b",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (dibs__pattern_check(bad[i], NULL) == DIBS_OK)
            fail_msg("%s is taken", bad[i]);
    CHECK(DIBS_OK, dibs__pattern_check("[{9999}]{3}\\{(x{10}){10}", err));
    CHECK(DIBS_OK, dibs__pattern_check("[[:alpha:]_][^]{}]*", err));
}

/* ---- which set wins */

static const dibs__set_job a1_b1[] = {{"a", "1"}, {"b", "1"}};
static const dibs__set_job a2_c1[] = {{"a", "2"}, {"c", "1"}};

static const dibs__job_set stored_42 = {.name = "billing",
                                        .version = 42,
                                        .hash = "X",
                                        .origin = "h1:/etc/jobs.yaml",
                                        .by = "ann",
                                        .loaded_s = 1794700800,
                                        .jobs = a1_b1,
                                        .count = 2};

static dibs__job_set file_of(int64_t version, const char *hash)
{
    return (dibs__job_set){.name = "billing",
                           .version = version,
                           .hash = hash,
                           .origin = "h2:/srv/jobs.yaml",
                           .jobs = a2_c1,
                           .count = 2};
}

static void the_higher_version_wins(void **state)
{
    static const struct {
        int64_t version;
        const char *hash;
        bool force;
        dibs__set_verdict verdict;
    } rows[] = {
        {42, "X", false, DIBS__SET_SAME},  {41, "X", false, DIBS__SET_SAME},
        {0, "X", false, DIBS__SET_SAME},   {43, "X", false, DIBS__SET_LOAD},
        {43, "Y", false, DIBS__SET_LOAD},  {42, "Y", false, DIBS__SET_REFUSED},
        {41, "Y", false, DIBS__SET_OLDER}, {0, "Y", false, DIBS__SET_REFUSED},
        {42, "Y", true, DIBS__SET_LOAD},   {41, "Y", true, DIBS__SET_LOAD},
        {0, "Y", true, DIBS__SET_LOAD},    {42, "X", true, DIBS__SET_SAME},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const dibs__job_set file = file_of(rows[i].version, rows[i].hash);

        if (dibs__set_decide(&stored_42, &file, rows[i].force) !=
            rows[i].verdict)
            fail_msg("row %zu", i);
    }
}

static void an_edit_of_a_file_without_version_is_loaded(void **state)
{
    dibs__job_set file = file_of(0, "Y"), stored = stored_42;

    (void)state;
    assert_int_equal(dibs__set_decide(NULL, &file, false), DIBS__SET_LOAD);
    stored.version = 0;
    assert_int_equal(dibs__set_decide(&stored, &file, false),
                     DIBS__SET_REFUSED);
    file.origin = stored.origin;
    assert_int_equal(dibs__set_decide(&stored, &file, false), DIBS__SET_LOAD);
}

static void a_load_that_broke_off_is_finished(void **state)
{
    dibs__job_set file = file_of(42, "X"), stored = stored_42;

    (void)state;
    stored.loading = true;
    assert_int_equal(dibs__set_decide(&stored, &file, false), DIBS__SET_LOAD);
    file.hash = "Y";
    assert_int_equal(dibs__set_decide(&stored, &file, false),
                     DIBS__SET_REFUSED);
}

static void a_refusal_names_jobs_and_people(void **state)
{
    dibs__job_set file = file_of(42, "Y");
    dibsx_buf out;

    (void)state;
    dibsx_buf_init(&out, 1000);
    dibs__set_explain(&stored_42, &file, DIBS__SET_REFUSED, &out);
    assert_string_equal(
        dibsx_buf_text(&out),
        "the set billing has version 42 already, with other content: a, c, b "
        "differ; ann loaded it from h1:/etc/jobs.yaml at "
        "2026-11-15T00:00:00Z; raise version, or give --force");
    dibsx_buf_reset(&out);
    file.version = 0;
    dibs__set_explain(&stored_42, &file, DIBS__SET_REFUSED, &out);
    assert_non_null(strstr(dibsx_buf_text(&out),
                           "the set billing was loaded from another file: a"));
    dibsx_buf_reset(&out);
    file.version = 41;
    dibs__set_explain(&stored_42, &file, DIBS__SET_OLDER, &out);
    assert_non_null(strstr(dibsx_buf_text(&out),
                           "has version 42, and this file version 41"));
    dibsx_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_filled_in),
        cmocka_unit_test(bad_references_have_a_place),
        cmocka_unit_test(a_run_is_given_what_its_job_names),
        cmocka_unit_test(a_param_has_a_variable),
        cmocka_unit_test(patterns_are_for_the_whole_text),
        cmocka_unit_test(hungry_patterns_are_refused),
        cmocka_unit_test(the_higher_version_wins),
        cmocka_unit_test(an_edit_of_a_file_without_version_is_loaded),
        cmocka_unit_test(a_load_that_broke_off_is_finished),
        cmocka_unit_test(a_refusal_names_jobs_and_people),
    };

    return cmocka_run_group_tests_name("job_parts", tests, NULL, NULL);
}
