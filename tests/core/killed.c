/* killed.c - a client that has something of everything is killed: another one sees all of
 * it end, each within the ttl and what its promise allows beyond that.
 *
 * The spans are those of docs/coordination.md, docs/queues.md and docs/guarantees.md. They
 * count from a moment at which the process is gone, so that the last renewal came before. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As long as a place in a queue of candidates lives, or longer. */
enum { TTL_MS = 3000, LONG_MS = 60000 };

/* What each promise allows beyond the ttl. A look that finds something gone is late by the
 * time of the looks before it. */
enum { LEAD_MS = 1000, BREAK_MS = 250, ITEM_MS = 1000, LOOK_MS = 250 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The same storage for every call. */
static const char *name_of(const char *base, const char *what)
{
    static char name[96];

    snprintf(name, sizeof(name), "%s-%s", base, what);
    return name;
}

static dibs_election *
candidate(dibs_client *cl, const char *name, int64_t ttl_ms,
          dibs_gained_fn *gained, void *arg)
{
    dibs_election *el = NULL;

    CHECK(DIBS_OK,
          dibs_election_new(cl, name,
                            DIBS_ELECTION_OPTS(.ttl_ms = ttl_ms,
                                               .on_gained = gained, .arg = arg),
                            &el, err));
    return el;
}

static dibs_barrier *party_of(dibs_client *cl, const char *name)
{
    dibs_barrier *barrier = NULL;

    CHECK(DIBS_OK, dibs_barrier_new(cl, name, DIBS_BARRIER_OPTS(.parties = 3),
                                    &barrier, err));
    return barrier;
}

static dibs_queue *queue_of(dibs_client *cl, const char *name)
{
    dibs_queue *q = NULL;

    CHECK(DIBS_OK, dibs_queue_new(cl, name, NULL, &q, err));
    return q;
}

/* A process of its own leads, seeks the lead elsewhere, is a member, has an item, says so
 * and waits at a barrier: URL, base of the names, ttl, descriptor. */
int core_have_all_and_wait(char **words)
{
    int64_t ttl_ms = strtol(words[2], NULL, 10);
    dibs_client *cl = NULL;
    dibs_election *led, *sought;
    dibs_member *member = NULL;
    dibs_item *item = NULL;
    dibs_barrier *barrier;
    char byte = 'r';

    CHECK(DIBS_OK,
          dibs_open(words[0],
                    DIBS_CLIENT_OPTS(.label = "mortal", .ttl_ms = ttl_ms), &cl,
                    err));
    led = candidate(cl, name_of(words[1], "led"), ttl_ms, NULL, NULL);
    CHECK(DIBS_OK, dibs_election_wait(led, pace_ms(LONG_MS), err));
    sought = candidate(cl, name_of(words[1], "sought"), ttl_ms, NULL, NULL);
    CHECK(DIBS_OK, dibs_election_campaign(sought, err));
    CHECK(DIBS_OK,
          dibs_member_join(cl, name_of(words[1], "group"), NULL, &member, err));
    CHECK(DIBS_OK, dibs_queue_reserve(queue_of(cl, name_of(words[1], "queue")),
                                      pace_ms(LONG_MS), &item, err));
    barrier = party_of(cl, name_of(words[1], "barrier"));
    if (write((int)strtol(words[3], NULL, 10), &byte, 1) != 1)
        return 1;
    CHECK(DIBS_OK, dibs_barrier_wait(barrier, NULL, err));
    return 0;
}

/* The other client, and when it saw what end; 0: not yet. */
typedef struct heir {
    dibs_client *cl;
    char base[64];
    pid_t mortal;
    dibs_election *led, *sought;
    dibs_barrier *barrier;
    dibs_queue *q;
    dibs_item *item;
    dibs_status broken_rc, item_rc;
    dibs_error broken;
    pthread_t waiter, consumer;
    _Atomic int64_t leads_at;
    int64_t broken_at, item_at, left_at, unsought_at;
} heir;

static void note_gained(dibs_election *el, uint64_t term, void *arg)
{
    heir *h = arg;

    (void)el;
    (void)term;
    if (atomic_load(&h->leads_at) == 0)
        atomic_store(&h->leads_at, now_ms());
}

static void *wait_at_barrier(void *arg)
{
    heir *h = arg;

    h->broken_rc = dibs_barrier_wait(h->barrier, NULL, &h->broken);
    h->broken_at = now_ms();
    return NULL;
}

static void *wait_for_item(void *arg)
{
    heir *h = arg;

    h->item_rc = dibs_queue_reserve(h->q, pace_ms(LONG_MS), &h->item, NULL);
    h->item_at = now_ms();
    return NULL;
}

static void begin(heir *h)
{
    *h = (heir){.cl = core_open()};
    snprintf(h->base, sizeof(h->base), "%s", core_name());
    h->sought = candidate(h->cl, name_of(h->base, "sought"), pace_ms(LONG_MS),
                          NULL, NULL);
    CHECK(DIBS_OK, dibs_election_wait(h->sought, pace_ms(LONG_MS), err));
    h->q = queue_of(h->cl, name_of(h->base, "queue"));
    CHECK(DIBS_OK, dibs_queue_push(h->q, "orphan", 6, NULL, NULL, err));
}

static void start_mortal(heir *h)
{
    char word[16], ttl[24], byte;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    snprintf(ttl, sizeof(ttl), "%lld", (long long)pace_ms(TTL_MS));
    h->mortal = child_start("has all", core_url, h->base, ttl,
                            child_fd(fds[1], word), NULL);
    assert_true(h->mortal > 0);
    close(fds[1]);
    if (read(fds[0], &byte, 1) != 1)
        fail_msg("the child has ended: %d", child_code(h->mortal));
    close(fds[0]);
}

/* So many parties wait at the barrier. */
typedef struct parties {
    const heir *h;
    uint32_t arrived;
} parties;

static bool has_arrived(void *arg)
{
    const parties *p = arg;
    dibs_barrier_state at;
    dibs_status rc = dibs_barrier_show(p->h->cl, name_of(p->h->base, "barrier"),
                                       &at, NULL, NULL, NULL);

    return rc == DIBS_OK && at.arrived == p->arrived;
}

/* -1: the store did not say. */
static int64_t count_candidates(const heir *h)
{
    dibs_leader now;
    dibs_status rc =
        dibs_leader_get(h->cl, name_of(h->base, "sought"), &now, NULL);

    return rc == DIBS_OK ? (int64_t)now.candidates : -1;
}

static bool is_sought(void *arg)
{
    return count_candidates(arg) == 1;
}

static void join_all(heir *h)
{
    core_until(is_sought, h);
    core_until(has_arrived, &(parties){h, 1});
    h->barrier = party_of(h->cl, name_of(h->base, "barrier"));
    assert_int_equal(pthread_create(&h->waiter, NULL, wait_at_barrier, h), 0);
    assert_int_equal(pthread_create(&h->consumer, NULL, wait_for_item, h), 0);
    h->led = candidate(h->cl, name_of(h->base, "led"), pace_ms(LONG_MS),
                       note_gained, h);
    CHECK(DIBS_OK, dibs_election_campaign(h->led, err));
    core_until(has_arrived, &(parties){h, 2});
}

/* What the store says of the spans of the dead. */
typedef struct estate {
    const heir *h;
    int64_t left_ms;
    int found;
} estate;

static bool note_member(const dibs_member_info *info, void *arg)
{
    estate *e = arg;

    assert_int_equal(info->pid, e->h->mortal);
    e->left_ms = info->left_ms;
    return ++e->found == 1;
}

static bool note_party(const dibs_barrier_party *party, void *arg)
{
    estate *e = arg;
    char who[48];

    snprintf(who, sizeof(who), ":%ld mortal", (long)e->h->mortal);
    if (!strstr(party->who, who))
        return true;
    e->left_ms = party->left_ms;
    e->found++;
    return false;
}

/* No span is longer than the ttl, on the clock of the store; nothing renews it. */
static void expect_spans(const heir *h)
{
    estate member = {.h = h}, party = {.h = h};
    dibs_barrier_state at;
    dibs_leader now;
    dibs_status rc =
        dibs_leader_get(h->cl, name_of(h->base, "led"), &now, NULL);

    IN_TIME(rc == DIBS_OK && now.pid == h->mortal);
    assert_true(now.left_ms <= pace_ms(TTL_MS));
    rc = dibs_members_list(h->cl, name_of(h->base, "group"), note_member,
                           &member, NULL);
    IN_TIME(rc == DIBS_OK && member.found == 1);
    assert_true(member.left_ms <= pace_ms(TTL_MS));
    rc = dibs_barrier_show(h->cl, name_of(h->base, "barrier"), &at, note_party,
                           &party, NULL);
    IN_TIME(rc == DIBS_OK && party.found == 1 && at.arrived == 2);
    assert_true(party.left_ms <= pace_ms(TTL_MS));
    IN_TIME(count_candidates(h) == 1);
}

static bool is_settled(void *arg)
{
    heir *h = arg;
    estate member = {.h = h};

    if (h->unsought_at == 0 && count_candidates(h) == 0)
        h->unsought_at = now_ms();
    if (h->left_at == 0 &&
        dibs_members_list(h->cl, name_of(h->base, "group"), note_member,
                          &member, NULL) == DIBS_NOTFOUND)
        h->left_at = now_ms();
    return h->unsought_at && h->left_at && atomic_load(&h->leads_at);
}

static void await_ends(heir *h)
{
    core_until(is_settled, h);
    pthread_join(h->waiter, NULL);
    pthread_join(h->consumer, NULL);
}

/* All of it ended, and as it should. */
static void expect_ends(heir *h)
{
    size_t len;
    char gone[48];

    assert_status(h->broken_rc, DIBS_BROKEN);
    snprintf(gone, sizeof(gone), ":%ld mortal", (long)h->mortal);
    /* A party that looked too late cannot name the dead. */
    IN_TIME(strstr(h->broken.message, ": gone: ") &&
            strstr(h->broken.message, gone));
    assert_status(h->item_rc, DIBS_OK);
    assert_memory_equal(dibs_item_data(h->item, &len), "orphan", 6);
    assert_int_equal(dibs_item_attempt(h->item), 2);
    assert_int_equal(dibs_item_losses(h->item), 1);
    CHECK(DIBS_OK, dibs_item_ack(h->item, err));
    assert_status(dibs_election_check(h->led), DIBS_OK);
}

static bool ended_within(int64_t ended_at, int64_t gone_at, int64_t slack_ms)
{
    return ended_at - gone_at <= pace_ms(TTL_MS) + pace_ms(slack_ms);
}

static void finish(heir *h)
{
    dibs_item_free(h->item);
    dibs_queue_free(h->q);
    dibs_barrier_free(h->barrier);
    dibs_election_free(h->led);
    dibs_election_free(h->sought);
    dibs_close(h->cl);
}

static void all_that_a_killed_client_has_ends_within_its_ttl(void **state)
{
    static heir h;
    int64_t gone_at;

    (void)state;
    if (strncmp(core_url, "memory:", 7) == 0)
        skip(); /* the store of one process ends with it */
    begin(&h);
    start_mortal(&h);
    join_all(&h);
    kill(h.mortal, SIGKILL);
    assert_int_equal(child_code(h.mortal), 1000 + SIGKILL);
    gone_at = now_ms();
    expect_spans(&h);
    await_ends(&h);
    expect_ends(&h);
    IN_TIME(ended_within(h.leads_at, gone_at, LEAD_MS));
    IN_TIME(ended_within(h.unsought_at, gone_at, LOOK_MS));
    IN_TIME(ended_within(h.broken_at, gone_at, BREAK_MS));
    IN_TIME(ended_within(h.left_at, gone_at, LOOK_MS));
    IN_TIME(ended_within(h.item_at, gone_at, ITEM_MS));
    finish(&h);
}

int core_killed_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_a_killed_client_has_ends_within_its_ttl),
    };

    return cmocka_run_group_tests_name("killed", tests, NULL, NULL);
}
