/* test_name_table.c - statistics per name: buckets and quantiles, the table of names,
 * the text in which they are shared, and the order in which they are shown. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "core/stats/name_table.h"
#include "core/stats/ranking.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void near(uint64_t shown, uint64_t truth)
{
    uint64_t slack = truth / 8;

    assert_in_range(shown, truth - slack, truth + slack);
}

static void quantiles_are_within_an_eighth(void **state)
{
    dibs__histogram hg = {0};
    dibs_spans spans;

    (void)state;
    for (uint64_t i = 1; i <= 100000; i++)
        dibs__histogram_add(&hg, i * 17);
    dibs__histogram_show(&hg, &spans);
    assert_int_equal(spans.count, 100000);
    near(spans.p50_us, 50000 * 17);
    near(spans.p95_us, 95000 * 17);
    near(spans.p99_us, 99000 * 17);
    assert_int_equal(spans.max_us, 100000 * 17);
    assert_int_equal(spans.mean_us, 100001 * 17 / 2);
    dibs__histogram_fini(&hg);
}

/* Every single span, from nothing to beyond the last bucket. */
static void one_span_is_its_own_quantile(void **state)
{
    (void)state;
    for (uint64_t us = 0; us < UINT64_C(1) << 38; us = us * 9 / 8 + 1) {
        dibs__histogram hg = {0};
        dibs_spans spans;

        dibs__histogram_add(&hg, us);
        dibs__histogram_show(&hg, &spans);
        near(spans.p50_us, us);
        near(spans.p99_us, us);
        assert_true(spans.p99_us <= spans.max_us);
        assert_int_equal(spans.max_us, us);
        dibs__histogram_fini(&hg);
    }
}

static void extremes_stay_in_bounds(void **state)
{
    dibs__histogram hg = {0};
    dibs__histogram more = {0};
    dibs_spans spans;

    (void)state;
    dibs__histogram_show(&hg, &spans);
    assert_int_equal(spans.count, 0);
    assert_int_equal(spans.p99_us, 0);
    assert_int_equal(spans.mean_us, 0);
    dibs__histogram_add(&hg, 0);
    dibs__histogram_add(&hg, UINT64_MAX);
    dibs__histogram_add(&hg, UINT64_MAX);
    dibs__histogram_show(&hg, &spans);
    assert_int_equal(spans.max_us, UINT64_MAX);
    assert_int_equal(hg.total_us, UINT64_MAX);

    /* A bucket that is full stays full. */
    assert_int_equal(dibs__histogram_read("1 1 1 1:4294967295", &more),
                     DIBS_OK);
    dibs__histogram_add(&more, 1);
    assert_int_equal(more.cells[0].count, UINT32_MAX);
    assert_int_equal(more.count, 2);
    dibs__histogram_fini(&more);
    dibs__histogram_fini(&hg);
}

static void no_spread_has_more_cells_than_buckets(void **state)
{
    dibs__histogram hg = {0};

    (void)state;
    for (unsigned shift = 0; shift < 64; shift++)
        for (uint64_t i = 0; i < 16; i++)
            dibs__histogram_add(&hg, (16 + i) << shift >> 4);
    assert_true(hg.used <= DIBS__HISTOGRAM_BUCKETS);
    for (uint32_t i = 1; i < hg.used; i++)
        assert_true(hg.cells[i - 1].bucket < hg.cells[i].bucket);
    dibs__histogram_fini(&hg);
}

static void counts_go_where_the_status_says(void **state)
{
    dibs__counts ct = {0};
    dibs_name_stats stats;

    (void)state;
    assert_true(dibs__counts_empty(&ct));
    dibs__counts_acquired(&ct, DIBS_OK, 100, false);
    dibs__counts_acquired(&ct, DIBS_OK, 5000, true);
    dibs__counts_acquired(&ct, DIBS_BUSY, 10, false);
    dibs__counts_acquired(&ct, DIBS_TIMEOUT, 1000000, true);
    dibs__counts_acquired(&ct, DIBS_CANCELLED, 20, false);
    dibs__counts_acquired(&ct, DIBS_UNAVAIL, 30, false);
    dibs__counts_ended(&ct, false, 70000);
    dibs__counts_ended(&ct, true, 90000);
    assert_false(dibs__counts_empty(&ct));
    dibs__counts_show(&ct, 2, &stats);
    assert_int_equal(stats.size, sizeof(stats));
    assert_int_equal(stats.attempts, 8);
    assert_int_equal(stats.acquired, 2);
    assert_int_equal(stats.busy, 3);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.released, 1);
    assert_int_equal(stats.lost, 1);
    assert_int_equal(stats.contended, 3);
    assert_int_equal(stats.wait.count, 2);
    assert_int_equal(stats.wait.max_us, 5000);
    near(stats.wait.p50_us, 100);
    assert_int_equal(stats.hold.count, 2);
    near(stats.hold.p95_us, 90000);
    dibs__counts_fini(&ct);
}

static void fill(dibs__counts *ct, uint64_t seed)
{
    dibsx_prng prng = {.state = seed};

    for (int i = 0; i < 500; i++) {
        uint64_t us = dibsx_prng_next(&prng) >> dibsx_prng_below(&prng, 64);

        dibs__counts_acquired(ct, i % 7 ? DIBS_OK : DIBS_BUSY, us, i % 3 == 0);
        dibs__counts_ended(ct, i % 11 == 0, us / 2);
    }
}

static void same(const dibs__counts *a, const dibs__counts *b)
{
    dibs_name_stats one, other;

    dibs__counts_show(a, 0, &one);
    dibs__counts_show(b, 0, &other);
    assert_memory_equal(&one, &other, sizeof(one));
    assert_int_equal(a->wait.total_us, b->wait.total_us);
}

static void what_is_shared_reads_back(void **state)
{
    dibs__counts ct = {0}, back = {0};
    dibsx_buf text;

    (void)state;
    dibsx_buf_init(&text, DIBS__COUNTS_MAX);
    dibs__counts_write(&ct, &text);
    assert_int_equal(dibs__counts_read(dibsx_buf_text(&text), &back), DIBS_OK);
    assert_true(dibs__counts_empty(&back));
    fill(&ct, 7);
    dibsx_buf_reset(&text);
    dibs__counts_write(&ct, &text);
    assert_true(dibsx_buf_ok(&text));
    assert_int_equal(dibs__counts_read(dibsx_buf_text(&text), &back), DIBS_OK);
    same(&ct, &back);
    dibs__counts_fini(&back);
    dibs__counts_fini(&ct);
    dibsx_buf_fini(&text);
}

/* The fullest counts that there can be still fit their text. */
static void the_longest_text_fits(void **state)
{
    dibs__counts ct = {.acquired = UINT64_MAX, .contended = UINT64_MAX};
    dibs__counts back = {0};
    dibsx_buf line, text;

    (void)state;
    dibsx_buf_init(&line, 1 << 16);
    dibsx_buf_printf(&line, "%llu %llu %llu", ~0ULL, ~0ULL, ~0ULL);
    for (int i = 0; i < DIBS__HISTOGRAM_BUCKETS; i++)
        dibsx_buf_printf(&line, " %d:4294967295", i);
    assert_int_equal(dibs__histogram_read(dibsx_buf_text(&line), &ct.wait),
                     DIBS_OK);
    assert_int_equal(dibs__histogram_read(dibsx_buf_text(&line), &ct.hold),
                     DIBS_OK);
    dibsx_buf_init(&text, DIBS__COUNTS_MAX);
    dibs__counts_write(&ct, &text);
    assert_true(dibsx_buf_ok(&text));
    assert_int_equal(dibs__counts_read(dibsx_buf_text(&text), &back), DIBS_OK);
    same(&ct, &back);
    dibs__counts_fini(&back);
    dibs__counts_fini(&ct);
    dibsx_buf_fini(&line);
    dibsx_buf_fini(&text);
}

static void other_texts_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "dibs-stats 2\n1 1 1 1 1 1\n0 0 0\n0 0 0\n",
        "dibs-stats 1\n",
        "dibs-stats 1\n1 1 1 1 1\n0 0 0\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1 1\n0 0 0\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n0 0 0\n0 0 0",
        "dibs-stats 1\n1 1 1 1 1 1\n0 0\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n1 1 1 288:1\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n1 1 1 5:0\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n1 1 1 5\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n1 1 1 -5:1\n0 0 0\n",
        "dibs-stats 1\n1 1 1 1 1 1\n1 1 1 5:4294967296\n0 0 0\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        dibs__counts ct;

        assert_int_equal(dibs__counts_read(bad[i], &ct), DIBS_MISMATCH);
        assert_true(dibs__counts_empty(&ct));
        assert_null(ct.wait.cells);
        assert_null(ct.hold.cells);
    }
}

static void merging_is_counting_together(void **state)
{
    dibs__counts a = {0}, b = {0}, all = {0};

    (void)state;
    fill(&a, 1);
    fill(&b, 2);
    fill(&all, 1);
    fill(&all, 2);
    dibs__counts_merge(&a, &b);
    same(&a, &all);
    dibs__counts_fini(&a);
    dibs__counts_fini(&b);
    dibs__counts_fini(&all);
}

static const char *name_of(unsigned i)
{
    static char name[32];

    snprintf(name, sizeof(name), "name-%u", i);
    return name;
}

static void the_least_used_name_goes(void **state)
{
    dibs__name_table *table = dibs__name_table_new();
    dibs__name_row *first;

    (void)state;
    assert_non_null(table);
    for (unsigned i = 0; i < DIBS__NAME_TABLE_MAX; i++)
        assert_non_null(dibs__name_table_use(table, name_of(i)));
    first = dibs__name_table_use(table, name_of(0));
    assert_ptr_equal(first, table->newest);
    first->all.acquired = 5;
    assert_non_null(dibs__name_table_use(table, "one more"));
    assert_int_equal(table->count, DIBS__NAME_TABLE_MAX);
    assert_ptr_equal(dibs__name_table_find(table, name_of(0)), first);
    assert_null(dibs__name_table_find(table, name_of(1)));
    assert_non_null(dibs__name_table_find(table, name_of(2)));
    assert_string_equal(table->oldest->name, name_of(2));
    dibs__name_table_free(table);
}

/* Against a plain list: the table never holds another set of names. */
static void the_table_keeps_the_latest_names(void **state)
{
    dibs__name_table *table = dibs__name_table_new();
    unsigned used[3 * DIBS__NAME_TABLE_MAX] = {0};
    dibsx_prng prng = {.state = 3};
    unsigned now = 0, there = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        unsigned pick = (unsigned)dibsx_prng_below(&prng, COUNT_OF(used));

        assert_non_null(dibs__name_table_use(table, name_of(pick)));
        used[pick] = ++now;
    }
    for (unsigned i = 0; i < COUNT_OF(used); i++) {
        unsigned later = 0;

        for (unsigned k = 0; k < COUNT_OF(used); k++)
            later += used[k] > used[i];
        if (dibs__name_table_find(table, name_of(i))) {
            assert_true(later < DIBS__NAME_TABLE_MAX);
            there++;
        }
    }
    assert_int_equal(there, DIBS__NAME_TABLE_MAX);
    dibs__name_table_free(table);
}

static void without_memory_nothing_is_counted(void **state)
{
    dibs__name_table *table = dibs__name_table_new();
    dibs__histogram hg = {0};
    dibs_spans spans;

    (void)state;
    dibsx_alloc_fail_at(1);
    assert_null(dibs__name_table_use(table, "x"));
    dibsx_alloc_fail_at(1);
    dibs__histogram_add(&hg, 100);
    dibsx_alloc_fail_at(0);
    assert_int_equal(table->count, 0);
    dibs__histogram_show(&hg, &spans);
    assert_int_equal(spans.count, 1);
    assert_int_equal(spans.max_us, 100);
    dibs__histogram_fini(&hg);
    dibs__name_table_free(table);
    dibs__name_table_free(NULL);
}

typedef struct seen {
    char names[512];
    size_t count;
    size_t stop_at;
} seen;

static bool see(const dibs_name_stats *stats, void *arg)
{
    seen *sn = arg;
    size_t len = strlen(sn->names);

    snprintf(sn->names + len, sizeof(sn->names) - len, "%s ", stats->name);
    return ++sn->count != sn->stop_at;
}

static void rank(dibs__ranking *rk, const char *name, uint64_t contended,
                 uint64_t waited_us)
{
    dibs__counts ct = {.contended = contended};

    ct.wait.total_us = waited_us;
    assert_true(dibs__ranking_add(rk, name, &ct, 0));
}

static void the_most_contended_come_first(void **state)
{
    dibs__ranking rk = {0};
    seen sn = {0}, two = {.stop_at = 2};

    (void)state;
    rank(&rk, "quiet", 0, 9);
    rank(&rk, "b", 5, 100);
    rank(&rk, "most", 6, 1);
    rank(&rk, "a", 5, 100);
    rank(&rk, "longer", 5, 101);
    dibs__ranking_show(&rk, see, &sn);
    assert_string_equal(sn.names, "most longer a b quiet ");
    dibs__ranking_show(&rk, see, &two);
    assert_string_equal(two.names, "most longer ");
    dibs__ranking_fini(&rk);
}

static bool adds_up(const dibs_name_stats *stats, void *arg)
{
    (void)arg;
    assert_int_equal(stats->wait_counts_len, 2);
    near(stats->wait_counts[0].span_us, 100);
    assert_int_equal(stats->wait_counts[0].count, 3);
    near(stats->wait_counts[1].span_us, 70000);
    assert_int_equal(stats->wait_counts[1].count, 1);
    assert_int_equal(stats->wait_total_us, 70300);
    assert_int_equal(stats->hold_counts_len, 1);
    assert_int_equal(stats->hold_counts[0].count, 1);
    assert_int_equal(stats->hold_total_us, 5);
    return true;
}

static void a_ranking_shows_distributions(void **state)
{
    dibs__ranking rk = {0};
    dibs__counts ct = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        dibs__counts_acquired(&ct, DIBS_OK, 100, false);
    dibs__counts_acquired(&ct, DIBS_OK, 70000, true);
    dibs__counts_ended(&ct, false, 5);
    assert_true(dibs__ranking_add(&rk, "n", &ct, 0));
    /* The ranking has copies. */
    dibs__counts_fini(&ct);
    dibs__ranking_show(&rk, adds_up, NULL);
    dibs__ranking_fini(&rk);
}

static bool falls(const dibs_name_stats *stats, void *arg)
{
    uint64_t *before = arg;

    assert_int_equal(stats->contended, *before - 1);
    *before = stats->contended;
    return true;
}

static void a_long_ranking_keeps_its_top(void **state)
{
    const uint64_t total = 3 * 2 * (uint64_t)DIBS__RANKING_MAX + 5;
    dibs__ranking rk = {0};
    uint64_t before = total;

    (void)state;
    for (uint64_t i = 0; i < total; i++)
        rank(&rk, "n", i * 7 % total, 0);
    dibs__ranking_show(&rk, falls, &before);
    assert_int_equal(before, total - DIBS__RANKING_MAX);
    dibs__ranking_fini(&rk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_an_eighth),
        cmocka_unit_test(one_span_is_its_own_quantile),
        cmocka_unit_test(extremes_stay_in_bounds),
        cmocka_unit_test(no_spread_has_more_cells_than_buckets),
        cmocka_unit_test(counts_go_where_the_status_says),
        cmocka_unit_test(what_is_shared_reads_back),
        cmocka_unit_test(the_longest_text_fits),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(merging_is_counting_together),
        cmocka_unit_test(the_least_used_name_goes),
        cmocka_unit_test(the_table_keeps_the_latest_names),
        cmocka_unit_test(without_memory_nothing_is_counted),
        cmocka_unit_test(the_most_contended_come_first),
        cmocka_unit_test(a_long_ranking_keeps_its_top),
        cmocka_unit_test(a_ranking_shows_distributions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
