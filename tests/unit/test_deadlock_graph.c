/* test_deadlock_graph.c - who is stuck for good, in graphs made by hand.
 *
 * A graph is text: a line for each name, "NAME[/CAPACITY]: HOLDERS | WAITERS". A
 * party is its agent, with ":r" for a reader or ":N" for N permits; else it is
 * exclusive. "i@1-0" is an agent "i" within the lease of the first party of the
 * first line; it is a party for itself, too. What is found is text as well: "a(x>y) b(y>x)" for an agent "a" that
 * holds x and wants y, and one "b" that holds y and wants x; a line for each
 * circle. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "core/monitor/deadlock_graph.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTIES = 64, TEXT = 64 };

typedef struct row {
    char name[TEXT];
    uint32_t capacity;
    char agents[PARTIES][TEXT];
    char owners[PARTIES][DIBS_OWNER_SIZE];
    char within[PARTIES][DIBS_OWNER_SIZE];
    dibs__wait_party parties[PARTIES];
    size_t holders;
    size_t count;
} row;

static void read_party(row *rw, const char *word, int line)
{
    size_t i = rw->count++;
    const char *kind = strchr(word, ':');
    size_t len = strcspn(word, ":@");
    dibs__wait_party *pt = &rw->parties[i];

    assert_true(i < PARTIES);
    snprintf(rw->agents[i], TEXT, "%.*s", (int)len, word);
    snprintf(rw->owners[i], DIBS_OWNER_SIZE, "%d-%zu", line, i);
    *pt = (dibs__wait_party){.agent = rw->agents[i],
                             .label = "",
                             .owner = rw->owners[i],
                             .mode = DIBS__EXCLUSIVE,
                             .permits = 1,
                             .fence = (uint64_t)line * 100 + i,
                             .age_ms = (int64_t)i};
    if (word[len] == '@') {
        snprintf(rw->within[i], DIBS_OWNER_SIZE, "%s", word + len + 1);
        pt->within = rw->within[i];
    }
    if (kind && kind[1] == 'r') {
        pt->mode = DIBS__SHARED;
    } else if (kind) {
        pt->mode = DIBS__PERMITS;
        pt->permits = (uint32_t)strtoul(kind + 1, NULL, 10);
    }
}

/* Reads a line and returns what follows it. */
static const char *read_row(const char *text, row *rw, int line)
{
    size_t len = strcspn(text, "\n");
    char copy[1024], *at = copy, *word;
    bool waiters = false;

    memset(rw, 0, sizeof(*rw));
    snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
    word = strsep(&at, " ");
    snprintf(rw->name, TEXT, "%.*s", (int)strcspn(word, "/:"), word);
    if (strchr(word, '/'))
        rw->capacity = (uint32_t)strtoul(strchr(word, '/') + 1, NULL, 10);
    while ((word = strsep(&at, " ")) != NULL) {
        if (strcmp(word, "|") == 0)
            waiters = true;
        else if (*word)
            read_party(rw, word, line);
        if (!waiters)
            rw->holders = rw->count;
    }
    return text[len] ? text + len + 1 : text + len;
}

static dibs__wait_graph *
graph_of(const char *text, const dibs__wait_graph *before)
{
    dibs__wait_graph *wt = dibs__wait_graph_new();
    int line = 0;
    row rw;

    assert_non_null(wt);
    while (*text) {
        dibs__wait_name nm;

        text = read_row(text, &rw, ++line);
        nm = (dibs__wait_name){.name = rw.name,
                               .capacity = rw.capacity,
                               .holders = rw.parties,
                               .holder_count = rw.holders,
                               .waiters = rw.parties + rw.holders,
                               .waiter_count = rw.count - rw.holders};
        assert_true(dibs__wait_graph_add(wt, &nm, before));
    }
    assert_true(dibs__wait_graph_solve(wt));
    return wt;
}

static bool note(const dibs_wait_link *links, size_t count, void *arg)
{
    dibsx_buf *out = arg;

    for (size_t i = 0; i < count; i++)
        dibsx_buf_printf(out, "%s%s(%s>%s)", i ? " " : "", links[i].who,
                         links[i].holds, links[i].wants);
    dibsx_buf_putc(out, '\n');
    return true;
}

static void expect(const char *text, const char *circles)
{
    dibs__wait_graph *wt = graph_of(text, NULL);
    dibsx_buf out;

    dibsx_buf_init(&out, 1 << 16);
    (void)dibs__wait_graph_deadlocks(wt, note, &out);
    assert_string_equal(dibsx_buf_text(&out), circles);
    dibsx_buf_fini(&out);
    dibs__wait_graph_free(wt);
}

static void waiting_alone_is_no_deadlock(void **state)
{
    (void)state;
    expect("", "");
    expect("x: a |", "");
    expect("x: a | b c", "");
    expect("x: a | b\ny: b | c\nz: c | d", "");
    expect("x: | a", "");
}

static void two_wait_for_each_other(void **state)
{
    (void)state;
    expect("x: a | b\ny: b | a", "a(x>y) b(y>x)\n");
    expect("x: b | a\ny: a | b", "a(y>x) b(x>y)\n");
}

static void three_wait_for_each_other(void **state)
{
    (void)state;
    expect("x: a | c\ny: b | a\nz: c | b", "a(x>y) b(y>z) c(z>x)\n");
}

static void one_waits_for_itself(void **state)
{
    (void)state;
    expect("x: a | a", "a(x>x)\n");
    expect("x: a:r b:r | a", "a(x>x)\n");
}

/* Each of two waits through a process of its own, inside its lease. */
static void a_wait_within_a_lease_is_its_holder_s(void **state)
{
    (void)state;
    expect("x: a | j j@2-0\ny: b | i i@1-0", "a(x>y) b(y>x)\n");
    /* ... or the one does, and within two leases. */
    expect("x: a | b\ny: b | i i@3-0 i@1-0\nz: a | u", "a(x>y) b(y>x)\n");
    /* A lease that is not there, and one that only waits. */
    expect("x: a | j\ny: b | i i@7-0", "");
    expect("x: a | j j@2-1\ny: b | i i@1-0", "");
}

/* What another process inside the lease holds, and does not wait, is released. */
static void a_process_beside_the_one_that_waits_goes_on(void **state)
{
    (void)state;
    expect("x: a | v\ny: b | i i@1-0\nz: k | b", "");
}

/* Who is behind a circle is stuck too, but is not in it. */
static void a_waiter_for_a_deadlock_is_not_in_it(void **state)
{
    (void)state;
    expect("x: a | b v w\ny: b | a\nz: w | u", "a(x>y) b(y>x)\n");
}

static void deadlocks_apart_are_shown_apart(void **state)
{
    (void)state;
    expect("x: a | b\ny: b | a\nu: c | d\nv: d | c",
           "a(x>y) b(y>x)\nc(u>v) d(v>u)\n");
}

/* A writer that waits for two readers, each of whom waits for it. */
static void each_party_of_a_deadlock_is_shown(void **state)
{
    (void)state;
    expect("x: r1:r r2:r | w\ny: w | r1 r2",
           "r1(x>y) w(y>x)\nr2(x>y) w(y>x)\n");
}

static void the_shortest_deadlock_is_shown(void **state)
{
    (void)state;
    expect("x: a | b c\ny: b | a\nz: c | d\nu: d | a",
           "a(x>y) b(y>x)\nc(z>x) a(x>u) d(u>z)\n");
}

static void readers_do_not_wait_for_readers(void **state)
{
    (void)state;
    expect("x: a:r | b:r\ny: b | a", "");
    expect("x: a | b:r\ny: b | a", "a(x>y) b(y>x)\n");
}

/* The reader b would share x with a, but stands behind the writer w. */
static void a_reader_waits_behind_a_writer(void **state)
{
    (void)state;
    expect("x: a:r | w b:r\ny: b | a", "a(x>y) b(y>x)\n");
    expect("x: a:r | b:r w\ny: b | a", "");
}

static void an_upgrade_by_two_readers_is_a_circle(void **state)
{
    (void)state;
    expect("x: a:r b:r | a b", "a(x>x)\nb(x>x)\n");
}

static void one_free_holder_is_enough_for_a_permit(void **state)
{
    (void)state;
    /* c waits for nothing, so its permit comes back. */
    expect("s/2: a:1 c:1 | b:1\ny: b | a", "");
    expect("s/1: a:1 | b:1\ny: b | a", "a(s>y) b(y>s)\n");
    /* Both holders are stuck. */
    expect("s/2: a:1 c:1 | b:1\ny: b | a c", "a(s>y) b(y>s)\nc(s>y) b(y>s)\n");
    /* One permit comes back, but two are wanted. */
    expect("s/2: a:1 c:1 | b:2\ny: b | a", "a(s>y) b(y>s)\n");
    /* A permit is free, and a large request stands before it. */
    expect("s/2: a:1 | d:2 b:1\ny: b | a", "a(s>y) b(y>s)\n");
}

/* A semaphore whose last free holder gets free by another's release. */
static void freedom_spreads(void **state)
{
    (void)state;
    expect("s/2: a:1 c:1 | b:1\ny: b | a\nz: d | c", "");
    expect("s/2: a:1 c:1 | b:1\ny: b | a\nz: d | c\nu: c | d",
           "a(s>y) b(y>s)\nc(u>z) d(z>u)\n");
}

static void who_waits_for_several_needs_one(void **state)
{
    (void)state;
    expect("x: a | b\ny: b | a\nz: c | a", "");
    expect("x: a | b\ny: b | a\nz: b | a", "a(x>y) b(y>x)\n");
}

static void a_long_deadlock_is_found(void **state)
{
    enum { LONG = 20000 };
    dibs__wait_graph *wt = dibs__wait_graph_new();

    (void)state;
    for (int i = 0; i < LONG; i++) {
        char name[16], holder[16], waiter[16], owners[2][DIBS_OWNER_SIZE];
        dibs__wait_party pts[2];
        dibs__wait_name nm = {.name = name,
                              .holders = &pts[0],
                              .holder_count = 1,
                              .waiters = &pts[1],
                              .waiter_count = 1};

        snprintf(name, sizeof(name), "n%d", i);
        snprintf(holder, sizeof(holder), "a%d", i);
        snprintf(waiter, sizeof(waiter), "a%d", (i + 1) % LONG);
        snprintf(owners[0], sizeof(owners[0]), "h%d", i);
        snprintf(owners[1], sizeof(owners[1]), "w%d", i);
        pts[0] = (dibs__wait_party){.agent = holder,
                                    .label = "",
                                    .owner = owners[0],
                                    .permits = 1};
        pts[1] = (dibs__wait_party){.agent = waiter,
                                    .label = "",
                                    .owner = owners[1],
                                    .permits = 1};
        assert_true(dibs__wait_graph_add(wt, &nm, NULL));
    }
    assert_true(dibs__wait_graph_solve(wt));
    assert_int_equal(dibs__wait_graph_deadlocks(wt, NULL, NULL), 1);
    dibs__wait_graph_free(wt);
}

/* A hard graph: all hold what all wait for. The effort is bounded, the answer a
 * circle for each. */
static void a_dense_graph_ends(void **state)
{
    enum { MANY = 400 };
    dibs__wait_graph *wt = dibs__wait_graph_new();
    dibs__wait_party *pts = dibsx_zalloc_n(2 * MANY, sizeof(*pts));
    char(*texts)[DIBS_OWNER_SIZE] = dibsx_zalloc_n(3 * MANY, sizeof(*texts));

    (void)state;
    for (int i = 0; i < MANY; i++) {
        char *agent = texts[3 * i];

        snprintf(agent, DIBS_OWNER_SIZE, "a%d", i);
        snprintf(texts[3 * i + 1], DIBS_OWNER_SIZE, "h%d", i);
        snprintf(texts[3 * i + 2], DIBS_OWNER_SIZE, "w%d", i);
        pts[i] = (dibs__wait_party){.agent = agent,
                                    .label = "",
                                    .owner = texts[3 * i + 1],
                                    .mode = DIBS__SHARED,
                                    .permits = 1};
        pts[MANY + i] = (dibs__wait_party){.agent = agent,
                                           .label = "",
                                           .owner = texts[3 * i + 2],
                                           .permits = 1};
    }
    for (int i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%d", i);
        assert_true(
            dibs__wait_graph_add(wt,
                                 &(dibs__wait_name){.name = name,
                                                    .holders = pts,
                                                    .holder_count = MANY,
                                                    .waiters = pts + MANY,
                                                    .waiter_count = MANY},
                                 NULL));
    }
    assert_true(dibs__wait_graph_solve(wt));
    assert_int_equal(dibs__wait_graph_deadlocks(wt, NULL, NULL), MANY);
    dibs__wait_graph_free(wt);
    dibsx_free(texts);
    dibsx_free(pts);
}

/* The circle seen at first is gone when it is looked at again: owners differ by
 * the line they are on. */
static void only_what_lasts_is_a_deadlock(void **state)
{
    dibs__wait_graph *before = graph_of("x: a | b\ny: b | a", NULL);
    dibs__wait_graph *same = graph_of("x: a | b\ny: b | a", before);
    dibs__wait_graph *moved = graph_of("u: |\nx: a | b\ny: b | a", before);

    (void)state;
    assert_int_equal(dibs__wait_graph_deadlocks(same, NULL, NULL), 1);
    assert_int_equal(dibs__wait_graph_deadlocks(moved, NULL, NULL), 0);
    dibs__wait_graph_free(moved);
    dibs__wait_graph_free(same);
    dibs__wait_graph_free(before);
}

static bool stop_at_one(const dibs_wait_link *links, size_t count, void *arg)
{
    assert_int_equal(count, 2);
    assert_true(links[0].fence != 0);
    ++*(int *)arg;
    return false;
}

static void stops_when_told(void **state)
{
    dibs__wait_graph *wt =
        graph_of("x: a | b\ny: b | a\nu: c | d\nv: d | c", NULL);
    int calls = 0;

    (void)state;
    assert_int_equal(dibs__wait_graph_deadlocks(wt, stop_at_one, &calls), 1);
    assert_int_equal(calls, 1);
    dibs__wait_graph_free(wt);
}

static void without_memory_it_says_so(void **state)
{
    bool failed = true;

    (void)state;
    for (unsigned long n = 1; failed; n++) {
        dibs__wait_graph *wt;
        row rw;

        (void)read_row("x: a | a b", &rw, 1);
        dibsx_alloc_fail_at(n);
        wt = dibs__wait_graph_new();
        failed =
            !wt ||
            !dibs__wait_graph_add(wt,
                                  &(dibs__wait_name){.name = rw.name,
                                                     .holders = rw.parties,
                                                     .holder_count = 1,
                                                     .waiters = rw.parties + 1,
                                                     .waiter_count = 2},
                                  NULL) ||
            !dibs__wait_graph_solve(wt);
        assert_int_equal(failed, dibsx_alloc_count() >= n);
        dibsx_alloc_fail_at(0);
        dibs__wait_graph_free(wt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_alone_is_no_deadlock),
        cmocka_unit_test(two_wait_for_each_other),
        cmocka_unit_test(three_wait_for_each_other),
        cmocka_unit_test(one_waits_for_itself),
        cmocka_unit_test(a_wait_within_a_lease_is_its_holder_s),
        cmocka_unit_test(a_process_beside_the_one_that_waits_goes_on),
        cmocka_unit_test(a_waiter_for_a_deadlock_is_not_in_it),
        cmocka_unit_test(deadlocks_apart_are_shown_apart),
        cmocka_unit_test(each_party_of_a_deadlock_is_shown),
        cmocka_unit_test(the_shortest_deadlock_is_shown),
        cmocka_unit_test(readers_do_not_wait_for_readers),
        cmocka_unit_test(a_reader_waits_behind_a_writer),
        cmocka_unit_test(an_upgrade_by_two_readers_is_a_circle),
        cmocka_unit_test(one_free_holder_is_enough_for_a_permit),
        cmocka_unit_test(freedom_spreads),
        cmocka_unit_test(who_waits_for_several_needs_one),
        cmocka_unit_test(a_long_deadlock_is_found),
        cmocka_unit_test(a_dense_graph_ends),
        cmocka_unit_test(only_what_lasts_is_a_deadlock),
        cmocka_unit_test(stops_when_told),
        cmocka_unit_test(without_memory_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
