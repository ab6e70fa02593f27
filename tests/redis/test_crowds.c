/* test_crowds.c - thousands of parties of one roster: the commands that the server does for
 * each of them, as it counts them itself, are no more among many than among few. Calls that
 * wait ask again now and then, so that theirs have a bound that grows with the time. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

#include "store/store.h"
#include <pthread.h>

enum { FEW = 200, MANY = 2000, AT_ONCE = 25, LONG_MS = 24 * 3600 * 1000 };

/* What each party may cost in a script, with what the script itself calls; and what other
 * clients of the test do meanwhile. */
enum { EACH_MAX = 60, SLACK = 100 };

/* Several callers are in one process, and some in another one as far as the server can
 * tell. */
enum { CLIENTS = 2, STACK_SIZE = 256 * 1024 };

/* The calls in a line of INFO, "cmdstat_NAME:calls=N,...". */
static long long calls_in(const char *line)
{
    const char *at = strstr(line, ":calls=");

    return at ? strtoll(at + strlen(":calls="), NULL, 10) : 0;
}

/* All commands that the server has done, in scripts too; or those whose names begin so. */
static long long count_commands(const server *sv, const char *begins)
{
    char *text = server_ask(sv, "INFO", "commandstats", NULL);
    char *rest = text, *line;
    char wanted[64];
    long long count = 0;

    assert_non_null(text);
    snprintf(wanted, sizeof(wanted), "cmdstat_%s", begins);
    while ((line = strsep(&rest, "\r\n")) != NULL)
        if (strncmp(line, wanted, strlen(wanted)) == 0 &&
            strncmp(line, "cmdstat_info:", 13) != 0)
            count += calls_in(line);
    free(text);
    return count;
}

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(30000));
}

/* The parties of a crowd, who act one portion after the other. */
typedef struct crowd {
    dibs__store *st;
    char name[32];
    uint32_t size;
    uint64_t fences[MANY];
    char ids[MANY][16];
} crowd;

static void open_crowd(crowd *c, const world *w, uint32_t size)
{
    *c = (crowd){.size = size};
    snprintf(c->name, sizeof(c->name), "crowd-%u", (unsigned)size);
    for (uint32_t i = 0; i < size; i++)
        snprintf(c->ids[i], sizeof(c->ids[i]), "%u", (unsigned)i);
    CHECK(DIBS_OK, dibs__store_open(w->url, soon(), &c->st, err));
}

/* The next portion does what `form` has; it begins with this party. */
static void
act(crowd *c, uint32_t first, const dibs__meet *form, dibs__meet items[AT_ONCE])
{
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        items[i] = *form;
        items[i].name = c->name;
        items[i].id = c->ids[first + i];
        items[i].fence = items[i].after = c->fences[first + i];
        items[i].ttl_ms = LONG_MS;
        items[i].who = "";
        if (form->verb == DIBS__COUNT)
            items[i].after = 0;
    }
    CHECK(DIBS_OK,
          c->st->ops->roster->meet(c->st, items, AT_ONCE, soon(), err));
}

/* A seat that is not used at once ends, so that each portion goes on with its own. */
static void sit(crowd *c, uint32_t first, const dibs__meet *form)
{
    dibs__meet items[AT_ONCE];

    act(c, first, form, items);
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        assert_status(items[i].rc, DIBS_OK);
        c->fences[first + i] = items[i].number;
    }
}

static void meet_at_a_barrier(crowd *c)
{
    dibs__meet form = {.need = c->size, .flags = DIBS__MEET_FIXED};
    dibs__meet items[AT_ONCE];

    for (uint32_t first = 0; first < c->size; first += AT_ONCE) {
        form.verb = DIBS__SIT;
        sit(c, first, &form);
        form.verb = DIBS__ARRIVE;
        act(c, first, &form, items);
        for (uint32_t i = 0; i < AT_ONCE; i++)
            assert_status(items[i].rc,
                          first + i + 1 < c->size ? DIBS_BUSY : DIBS_OK);
    }
}

static void count_down_a_latch(crowd *c)
{
    dibs__meet form = {.verb = DIBS__COUNT, .need = c->size};
    dibs__meet items[AT_ONCE];

    for (uint32_t first = 0; first < c->size; first += AT_ONCE)
        act(c, first, &form, items);
    assert_status(items[AT_ONCE - 1].rc, DIBS_OK);
}

/* Members that count for nothing yet, as after a start of all at once: each asks for how
 * long there is one that counts. */
static void settle_in_a_group(crowd *c)
{
    dibs__meet form = {.need = 1, .settle_ms = LONG_MS};
    dibs__meet items[AT_ONCE];

    for (int round = 0; round < 3; round++) {
        for (uint32_t first = 0; first < c->size; first += AT_ONCE) {
            form.verb = DIBS__SIT;
            if (round == 0)
                sit(c, first, &form);
            form.verb = DIBS__KEEP;
            act(c, first, &form, items);
            for (uint32_t i = 0; i < AT_ONCE; i++) {
                assert_status(items[i].rc, DIBS_OK);
                assert_int_equal(items[i].left_ms, 0);
            }
        }
    }
}

typedef void crowd_fn(crowd *c);

static long long cost_of(const world *w, crowd_fn *fn, uint32_t size)
{
    static crowd c;
    long long before;

    open_crowd(&c, w, size);
    before = count_commands(&w->sv, "");
    fn(&c);
    dibs__store_close(c.st);
    return count_commands(&w->sv, "") - before;
}

static void expect_linear(const world *w, crowd_fn *fn)
{
    long long few = cost_of(w, fn, FEW);

    assert_in_range(few, FEW, FEW * EACH_MAX + SLACK);
    assert_in_range(cost_of(w, fn, MANY), MANY, few * (MANY / FEW) + SLACK);
    /* None of them reads all the others in one command. */
    assert_int_equal(count_commands(&w->sv, "hgetall"), 0);
    assert_int_equal(count_commands(&w->sv, "hvals"), 0);
    assert_int_equal(count_commands(&w->sv, "hkeys"), 0);
}

static void parties_of_a_barrier_cost_the_same_each(void **state)
{
    expect_linear(*state, meet_at_a_barrier);
}

static void counts_of_a_latch_cost_the_same_each(void **state)
{
    expect_linear(*state, count_down_a_latch);
}

static void members_that_settle_cost_the_same_each(void **state)
{
    expect_linear(*state, settle_in_a_group);
}

/* Calls that wait, each on a thread of its own. */
typedef struct caller {
    dibs_client *cl;
    dibs_barrier *barrier; /* NULL: it waits for a latch */
    const char *latch;
    dibs_status rc;
    pthread_t thread;
} caller;

/* A party whose seat ended before it was used is missing, and the others wait for ever. */
static void *wait_for_all(void *arg)
{
    caller *c = arg;

    c->rc = c->barrier ? dibs_barrier_wait(c->barrier, NULL, NULL)
                       : dibs_latch_wait(c->cl, c->latch, 1, -1, NULL);
    IN_TIME(c->rc != DIBS_LOST);
    return NULL;
}

static void start_callers(caller *callers, uint32_t count)
{
    pthread_attr_t attr;

    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_SIZE), 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&callers[i].thread, &attr, wait_for_all,
                                        &callers[i]),
                         0);
    pthread_attr_destroy(&attr);
}

static void join_callers(caller *callers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_status(callers[i].rc, DIBS_OK);
    }
}

/* How the server counts since then, and the time. */
typedef struct account {
    const server *sv;
    long long scripts, published;
    dibsx_nsec since_at;
} account;

static account open_account(const world *w)
{
    return (account){.sv = &w->sv,
                     .scripts = count_commands(&w->sv, "eval"),
                     .published = count_commands(&w->sv, "publish"),
                     .since_at = dibsx_now()};
}

static long long scripts_of(const account *ac)
{
    return count_commands(ac->sv, "eval") - ac->scripts;
}

/* Each asked so often for itself, and not sooner than `poll_ms` again; all of them were
 * told by one message. */
static void expect_asked(const account *ac, uint32_t count, int each,
                         int64_t poll_ms, int each_poll)
{
    int64_t polls = world_ms_since(ac->since_at) / poll_ms;

    assert_in_range(scripts_of(ac), 1,
                    count * (each + polls * each_poll) + SLACK);
    assert_int_equal(count_commands(ac->sv, "publish") - ac->published, 1);
}

/* The script is at the server then: else each that asks in the first moment would ask twice. */
static void open_clients(const world *w, dibs_client *clients[CLIENTS])
{
    dibs_latch_state at;

    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = world_client(w->url, pace_ms(30000));
        CHECK(DIBS_NOTFOUND, dibs_latch_show(clients[i], "none", &at, err));
    }
}

static void close_clients(dibs_client *clients[CLIENTS])
{
    for (int i = 0; i < CLIENTS; i++)
        dibs_close(clients[i]);
}

/* A seat and an arrival; docs/coordination.md says how often a party asks without a tell,
 * and each may look at the names of the others then. */
static void meet_at_once(const world *w, uint32_t count)
{
    static caller callers[MANY];
    int64_t poll_ms = (count < 500 ? 1000 : 2 * (int64_t)count) * 9 / 10;
    dibs_client *clients[CLIENTS];
    account ac;
    char name[32];

    snprintf(name, sizeof(name), "barrier-%u", (unsigned)count);
    open_clients(w, clients);
    for (uint32_t i = 0; i < count; i++) {
        callers[i] = (caller){.cl = clients[i % CLIENTS]};
        CHECK(DIBS_OK, dibs_barrier_new(callers[i].cl, name,
                                        DIBS_BARRIER_OPTS(.parties = count,
                                                          .ttl_ms = LONG_MS),
                                        &callers[i].barrier, err));
    }
    ac = open_account(w);
    start_callers(callers, count);
    join_callers(callers, count);
    expect_asked(&ac, count, 2, poll_ms, 2);
    for (uint32_t i = 0; i < count; i++)
        dibs_barrier_free(callers[i].barrier);
    close_clients(clients);
}

static void callers_at_a_barrier_ask_no_more_among_many(void **state)
{
    meet_at_once(*state, FEW);
    meet_at_once(*state, MANY);
}

/* A look, another one when it listens, and one after a tell that could not settle it. */
static void wait_at_once(const world *w, uint32_t count)
{
    enum { POLL_MS = 500, LOOKS = 3 };
    static caller callers[MANY];
    dibs_client *clients[CLIENTS];
    account ac;
    char name[32];

    snprintf(name, sizeof(name), "latch-%u", (unsigned)count);
    open_clients(w, clients);
    for (uint32_t i = 0; i < count; i++)
        callers[i] = (caller){.cl = clients[i % CLIENTS], .latch = name};
    ac = open_account(w);
    start_callers(callers, count);
    while (scripts_of(&ac) < 2 * (long long)count)
        world_sleep_ms(5);
    CHECK(DIBS_OK, dibs_latch_count_down(w->one, name, 1, "one", NULL, err));
    join_callers(callers, count);
    expect_asked(&ac, count, LOOKS, POLL_MS, 1);
    close_clients(clients);
}

static void waiters_for_a_latch_ask_no_more_among_many(void **state)
{
    wait_at_once(*state, FEW);
    wait_at_once(*state, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST_FORGETFUL(parties_of_a_barrier_cost_the_same_each),
        WORLD_TEST_FORGETFUL(counts_of_a_latch_cost_the_same_each),
        WORLD_TEST_FORGETFUL(members_that_settle_cost_the_same_each),
        WORLD_TEST_FORGETFUL(callers_at_a_barrier_ask_no_more_among_many),
        WORLD_TEST_FORGETFUL(waiters_for_a_latch_ask_no_more_among_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
