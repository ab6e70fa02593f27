/* test_job_cache.c - definitions that a node keeps: by name and hash, and not too many. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/arena.h"
#include "jobs/job_cache.h"
#include "jobs/job_json.h"

#include <stdio.h>
#include <string.h>

#define HASH_A "00000000000000aa"
#define HASH_B "00000000000000bb"

/* A definition, of which the caller is the first holder. */
static dibs__job *make_job(const char *name, const char *what)
{
    dibs__job *job = NULL;
    char json[128];
    int len = snprintf(json, sizeof(json),
                       "{\"name\": \"%s\", \"description\": \"%s\", \"run\": "
                       "[\"true\"]}",
                       name, what);

    CHECK(DIBS_OK, dibs__job_from_json(json, (size_t)len, &job, err));
    return job;
}

static void add(dibs__job_cache *cache, const char *name, const char *hash,
                const char *what)
{
    dibs__job *job = make_job(name, what);

    dibs__job_cache_add(cache, job, hash);
    dibs__job_free(job);
}

/* Its description; "": it is not kept. */
static const char *
find(dibs__job_cache *cache, const char *name, const char *hash)
{
    static char text[64];
    dibs__job *job = dibs__job_cache_find(cache, name, hash);

    (void)snprintf(text, sizeof(text), "%s", job ? job->description : "");
    dibs__job_free(job);
    return text;
}

static void test_a_definition_is_found_by_name_and_hash(void **unused)
{
    dibs__job_cache *cache = dibs__job_cache_new(DIBS__JOB_CACHE_BYTES);

    (void)unused;
    add(cache, "one", HASH_A, "old");
    assert_string_equal(find(cache, "one", HASH_A), "old");
    assert_string_equal(find(cache, "one", HASH_B), "");
    assert_string_equal(find(cache, "two", HASH_A), "");
    add(cache, "one", HASH_B, "new");
    add(cache, "two", HASH_A, "other");
    assert_string_equal(find(cache, "one", HASH_A), "old");
    assert_string_equal(find(cache, "one", HASH_B), "new");
    assert_string_equal(find(cache, "two", HASH_A), "other");
    dibs__job_cache_free(cache);
}

static size_t weigh(void)
{
    dibs__job *job = make_job("weight", "w");
    size_t bytes = dibs__arena_bytes(job->arena);

    dibs__job_free(job);
    return bytes;
}

/* There is room for three. */
static void test_the_oldest_use_goes_first(void **unused)
{
    dibs__job_cache *cache =
        dibs__job_cache_new(3 * weigh() + weigh() * 9 / 10);

    (void)unused;
    add(cache, "a", HASH_A, "a");
    add(cache, "b", HASH_A, "b");
    add(cache, "c", HASH_A, "c");
    assert_string_equal(find(cache, "a", HASH_A), "a");
    add(cache, "d", HASH_A, "d");
    assert_string_equal(find(cache, "b", HASH_A), "");
    assert_string_equal(find(cache, "a", HASH_A), "a");
    assert_string_equal(find(cache, "c", HASH_A), "c");
    assert_string_equal(find(cache, "d", HASH_A), "d");
    dibs__job_cache_free(cache);
}

static void test_a_definition_outlives_the_cache(void **unused)
{
    dibs__job_cache *cache = dibs__job_cache_new(weigh() * 2);
    dibs__job *held;

    (void)unused;
    add(cache, "held", HASH_A, "held");
    held = dibs__job_cache_find(cache, "held", HASH_A);
    add(cache, "x", HASH_A, "x");
    add(cache, "y", HASH_A, "y");
    dibs__job_cache_free(cache);
    assert_non_null(held);
    assert_string_equal(held->description, "held");
    dibs__job_free(held);
}

static void test_one_that_is_too_large_is_not_kept(void **unused)
{
    dibs__job_cache *cache = dibs__job_cache_new(64);

    (void)unused;
    add(cache, "one", HASH_A, "large");
    assert_string_equal(find(cache, "one", HASH_A), "");
    dibs__job_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_definition_is_found_by_name_and_hash),
        cmocka_unit_test(test_the_oldest_use_goes_first),
        cmocka_unit_test(test_a_definition_outlives_the_cache),
        cmocka_unit_test(test_one_that_is_too_large_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
