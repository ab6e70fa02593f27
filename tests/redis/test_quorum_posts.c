/* test_quorum_posts.c - requests that the asker sends to the nodes of a quorum itself:
 * that no thread of a node is asked for them, and what becomes of answers that come
 * after the majority. */
/* SPDX-License-Identifier: MIT */
#include "quorum_world.h"

#include "store/quorum/quorum_store.h"
#include <inttypes.h>
#include <pthread.h>

const char quorum_params[] = "longest_ttl=1h&node_timeout=5s";

enum { TTL_MS = 3600000, THREADS = 4, TURNS = 40 };

/* The steps of a node as its thread does them, counted. */
static atomic_int long_ways;
static const dibs__store_ops *node_ops;

static dibs_status count_grant(struct dibs__store *st, const dibs__voter *voter,
                               const dibs__ask *ask, uint64_t fence, bool fill,
                               dibsx_nsec deadline, dibs__answer *ans,
                               dibs__node_word *word, dibs_error *err)
{
    atomic_fetch_add(&long_ways, 1);
    return node_ops->vote->grant(st, voter, ask, fence, fill, deadline, ans,
                                 word, err);
}

/* The next release to this node is not sent, as while it is connected to again. */
static _Atomic(struct dibs__store *) refusing;

static dibs_status
count_release(struct dibs__store *st, const dibs__leave *leave,
              dibsx_nsec deadline, dibs_error *err)
{
    struct dibs__store *armed = st;

    if (atomic_compare_exchange_strong(&refusing, &armed, NULL))
        return DIBS_UNAVAIL;
    atomic_fetch_add(&long_ways, 1);
    return node_ops->lease->release(st, leave, deadline, err);
}

/* The next release that is posted to this node is lost, as with its connection: the
 * node gets another one, and its answer is none. */
static _Atomic(struct dibs__store *) lossy;
static _Atomic(const dibs__sent *) lost;

static dibs__sent *
post_release(struct dibs__store *st, const dibs__voter *voter,
             const dibs__leave *leave, dibsx_nsec deadline)
{
    static const dibs__leave nobody = {.name = "nobody's",
                                       .owner = "nobody",
                                       .alone = true};
    struct dibs__store *armed = st;
    dibs__sent *sent;

    if (atomic_load(&refusing) == st)
        return NULL;
    if (!atomic_compare_exchange_strong(&lossy, &armed, NULL))
        return node_ops->vote->post->release(st, voter, leave, deadline);
    sent = node_ops->vote->post->release(st, voter, &nobody, deadline);
    atomic_store(&lost, sent);
    return sent;
}

static dibs_status
end_vote(struct dibs__store *st, dibs__sent *sent, dibs__answer *ans,
         dibs__node_word *word, dibs_error *err)
{
    const dibs__sent *one = sent;
    bool is_lost = atomic_compare_exchange_strong(&lost, &one, NULL);
    dibs_status rc = node_ops->vote->post->end(st, sent, ans, word, err);

    return is_lost ? DIBS_UNKNOWN : rc;
}

static void count_ways(dibs__quorum *qm)
{
    static dibs__vote_post_ops post;
    static dibs__quorum_steps_ops vote;
    static dibs__lease_ops lease;
    static dibs__store_ops ops;

    node_ops = qm->nodes[0].st->ops;
    vote = *node_ops->vote;
    vote.grant = count_grant;
    post = *node_ops->vote->post;
    post.release = post_release;
    post.end = end_vote;
    vote.post = &post;
    lease = *node_ops->lease;
    lease.release = count_release;
    ops = *node_ops;
    ops.vote = &vote;
    ops.lease = &lease;
    for (size_t i = 0; i < qm->count; i++)
        qm->nodes[i].st->ops = &ops;
}

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
}

/* An owner of its own for each acquisition. */
static void next_owner(char owner[DIBS_OWNER_SIZE])
{
    static atomic_int owners;

    snprintf(owner, DIBS_OWNER_SIZE, "%032d", 1 + atomic_fetch_add(&owners, 1));
}

static dibs_status acquire(dibs__store *st, const char *name, const char *owner,
                           uint64_t *fence, dibs_error *err)
{
    const dibs__ask ask = {.name = name,
                           .owner = owner,
                           .permits = 1,
                           .ttl_ms = TTL_MS,
                           .alone = true,
                           .who = "host:1"};
    dibs__answer ans;
    dibs_status rc = st->ops->lease->acquire(st, &ask, soon(), &ans, err);

    *fence = ans.fence;
    return rc;
}

static dibs_status
release(dibs__store *st, const char *name, const char *owner, dibs_error *err)
{
    const dibs__leave leave = {.name = name, .owner = owner, .alone = true};

    return st->ops->lease->release(st, &leave, soon(), err);
}

static void pair(dibs__store *st, const char *name)
{
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    next_owner(owner);
    CHECK(DIBS_OK, acquire(st, name, owner, &fence, err));
    CHECK(DIBS_OK, release(st, name, owner, err));
}

static dibs__store *open_store(quorum *q)
{
    dibs__store *st = NULL;

    CHECK(DIBS_OK, dibs__store_open(q->url, soon(), &st, err));
    count_ways(dibs__quorum_of(st));
    return st;
}

static size_t count_late(dibs__store *st, size_t node)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    size_t count;

    pthread_mutex_lock(&qm->mutex);
    count = qm->nodes[node].queues[DIBS__REQUEST_STEP].late.count;
    pthread_mutex_unlock(&qm->mutex);
    return count;
}

/* Whether nothing is queued or late at any node. */
static bool is_quiet(dibs__store *st)
{
    dibs__quorum *qm = dibs__quorum_of(st);
    bool quiet = true;

    pthread_mutex_lock(&qm->mutex);
    for (size_t i = 0; i < qm->count; i++) {
        const dibs__node_queue *nq = &qm->nodes[i].queues[DIBS__REQUEST_STEP];

        quiet = quiet && nq->count == 0 && nq->late.count == 0;
    }
    pthread_mutex_unlock(&qm->mutex);
    return quiet;
}

static void await_quiet(dibs__store *st)
{
    dibsx_nsec end = soon();

    while (!is_quiet(st)) {
        if (dibsx_now() >= end)
            MISSED("nodes that work are asked for ever");
        world_sleep_ms(1);
    }
}

/* Pairs until one has been posted to all nodes, whose threads have nothing to do then:
 * so the next one is posted too. */
static void pair_until_posted(dibs__store *st, const char *name)
{
    dibsx_nsec end = soon();
    int before;

    do {
        if (dibsx_now() >= end)
            MISSED("each of %d steps was left to a thread",
                   atomic_load(&long_ways));
        await_quiet(st);
        before = atomic_load(&long_ways);
        pair(st, name);
        await_quiet(st);
    } while (atomic_load(&long_ways) != before);
}

static void a_pair_needs_no_thread_of_a_node(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);

    pair_until_posted(st, "a");
    quorum_await_holding(q, "a", 0);
    dibs__store_close(st);
}

/* Somebody takes the late answers of a node that works. */
static void await_answers(dibs__store *st, size_t node)
{
    dibsx_nsec end = soon();

    while (count_late(st, node) > 0) {
        if (dibsx_now() >= end)
            MISSED("nobody took the answers of the late node");
        world_sleep_ms(5);
    }
}

/* A node that stands still gets the release after the grant, also when it is asked no
 * more, and what it answers then is taken. */
static void a_late_node_ends_as_the_others(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);

    pair_until_posted(st, "a");
    server_pause(&q->fl.nodes[0].sv);
    pair(st, "a");
    IN_TIME(count_late(st, 0) > 0);
    server_resume(&q->fl.nodes[0].sv);
    quorum_await_holding(q, "a", 0);
    await_answers(st, 0);
    dibs__store_close(st);
}

/* Acquires a name while a node stands still, which then goes on. */
static void acquire_without(quorum *q, dibs__store *st, size_t node,
                            const char *name, char owner[DIBS_OWNER_SIZE])
{
    uint64_t fence;

    next_owner(owner);
    server_pause(&q->fl.nodes[node].sv);
    CHECK(DIBS_OK, acquire(st, name, owner, &fence, err));
    server_resume(&q->fl.nodes[node].sv);
}

/* A late node that could not run the short script gets the next grant the long way: the
 * lease is to be on all nodes, not on a bare majority. */
static void a_late_node_that_lacks_the_script_gets_it(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);
    char one[DIBS_OWNER_SIZE], two[DIBS_OWNER_SIZE];

    pair_until_posted(st, "a");
    assert_true(server_tell(&q->fl.nodes[0].sv, "SCRIPT", "FLUSH", NULL));
    acquire_without(q, st, 0, "a", one);
    await_answers(st, 0);
    acquire_without(q, st, 0, "b", two);
    quorum_await_holding(q, "b", QUORUM_NODES);
    CHECK(DIBS_OK, release(st, "a", one, err));
    CHECK(DIBS_OK, release(st, "b", two, err));
    dibs__store_close(st);
}

/* A lease on all nodes is given back, and one of them misses that. */
static void release_missed_by(quorum *q, dibs__store *st,
                              _Atomic(struct dibs__store *) *armed)
{
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    pair_until_posted(st, "a");
    next_owner(owner);
    CHECK(DIBS_OK, acquire(st, "a", owner, &fence, err));
    quorum_await_holding(q, "a", QUORUM_NODES);
    await_quiet(st);
    atomic_store(armed, dibs__quorum_of(st)->nodes[0].st);
    CHECK(DIBS_OK, release(st, "a", owner, err));
}

/* A release that a node never got, or never answered, is sent to it again: else the lease
 * would be there for the rest of its ttl. */
static void a_release_that_was_lost_is_sent_again(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);

    release_missed_by(q, st, &lossy);
    assert_null(atomic_load(&lossy));
    quorum_await_holding(q, "a", 0);
    dibs__store_close(st);
}

static void a_release_that_was_not_sent_is_sent(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);

    release_missed_by(q, st, &refusing);
    quorum_await_holding(q, "a", 0);
    assert_null(atomic_load(&refusing));
    dibs__store_close(st);
}

/* Late answers have a bound; then the thread of the node is asked, and all go on with
 * the others. */
static void a_node_that_stays_late_is_in_nobodys_way(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);

    pair_until_posted(st, "a");
    server_pause(&q->fl.nodes[1].sv);
    for (int i = 0; i < TURNS; i++)
        pair(st, "a");
    assert_true(count_late(st, 1) <= 16);
    server_resume(&q->fl.nodes[1].sv);
    pair_until_posted(st, "a");
    quorum_await_holding(q, "a", 0);
    dibs__store_close(st);
}

/* The store is closed while an answer is late. */
static void a_close_ends_what_is_late(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);

    pair_until_posted(st, "a");
    server_pause(&q->fl.nodes[2].sv);
    pair(st, "a");
    server_pause(&q->fl.nodes[3].sv);
    pair(st, "b");
    dibs__store_close(st);
    for (size_t i = 2; i < 4; i++)
        server_resume(&q->fl.nodes[i].sv);
    quorum_await_holding(q, "a", 0);
    quorum_await_holding(q, "b", 0);
}

/* A name that is held is asked for by the long script, whose answer names the holder. */
static void a_name_that_is_held_is_refused(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);
    char one[DIBS_OWNER_SIZE], two[DIBS_OWNER_SIZE];
    dibs_error why = {0};
    uint64_t fence, other;

    pair_until_posted(st, "a");
    next_owner(one);
    next_owner(two);
    CHECK(DIBS_OK, acquire(st, "a", one, &fence, err));
    assert_status(acquire(st, "a", two, &other, &why), DIBS_BUSY);
    assert_non_null(strstr(why.message, "host:1"));
    CHECK(DIBS_OK, release(st, "a", one, err));
    CHECK(DIBS_OK, acquire(st, "a", two, &other, err));
    assert_true(other > fence);
    CHECK(DIBS_OK, release(st, "a", two, err));
    assert_status(release(st, "a", two, NULL), DIBS_LOST);
    dibs__store_close(st);
}

/* After a restart a node is met again. */
static void a_restarted_node_is_met_again(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;

    pair_until_posted(st, "a");
    server_kill(&q->fl.nodes[4].sv);
    for (int i = 0; i < 3; i++)
        pair(st, "a");
    assert_true(fleet_restart(&q->fl.nodes[4], false));
    next_owner(owner);
    CHECK(DIBS_OK, acquire(st, "b", owner, &fence, err));
    quorum_await_holding(q, "b", QUORUM_NODES);
    CHECK(DIBS_OK, release(st, "b", owner, err));
    quorum_await_holding(q, "b", 0);
    dibs__store_close(st);
}

typedef struct crew {
    dibs__store *st;
    atomic_int holders; /* of the name that all want */
    _Atomic(uint64_t) fence;
    atomic_bool broken;
} crew;

/* Takes a name and gives it back, by `inside` between if that is not NULL; asks again
 * while it is held. Fails no test, as it runs on a thread. */
static bool
take_turn(crew *cr, const char *name, bool (*inside)(crew *, uint64_t))
{
    char owner[DIBS_OWNER_SIZE];
    dibsx_nsec end = soon();
    dibs_error why = {0};
    uint64_t fence;
    dibs_status rc;
    bool sound;

    next_owner(owner);
    do
        rc = acquire(cr->st, name, owner, &fence, &why);
    while (rc == DIBS_BUSY && dibsx_now() < end);
    if (rc == DIBS_BUSY || pace_explains(rc))
        MISSED("%s: %s", name, why.message);
    if (rc != DIBS_OK) {
        print_message("%s: %s\n", name, why.message);
        return false;
    }
    sound = !inside || inside(cr, fence);
    rc = release(cr->st, name, owner, NULL);
    /* No machine is so slow that the ttl is over. */
    IN_TIME(rc == DIBS_LOST || !pace_explains(rc));
    return rc == DIBS_OK && sound;
}

static bool hold_alone(crew *cr, uint64_t fence)
{
    bool alone = atomic_fetch_add(&cr->holders, 1) == 0 &&
                 atomic_exchange(&cr->fence, fence) < fence;

    atomic_fetch_sub(&cr->holders, 1);
    return alone;
}

/* Turns at a name of its own, then at the one that all want. */
static void *take_turns(void *arg)
{
    crew *cr = arg;
    char own[32];

    snprintf(own, sizeof(own), "own-%p", (void *)&own);
    for (int i = 0; i < TURNS && !atomic_load(&cr->broken); i++)
        if (!take_turn(cr, own, NULL) || !take_turn(cr, "shared", hold_alone))
            atomic_store(&cr->broken, true);
    return NULL;
}

/* One thread at a time polls the nodes; the others are served beside it. */
static void threads_share_the_nodes(void **state)
{
    quorum *q = *state;
    crew cr = {.st = open_store(q)};
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, &cr), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_false(atomic_load(&cr.broken));
    quorum_await_holding(q, "shared", 0);
    dibs__store_close(cr.st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(a_pair_needs_no_thread_of_a_node),
        QUORUM_TEST(a_late_node_ends_as_the_others),
        QUORUM_TEST(a_late_node_that_lacks_the_script_gets_it),
        QUORUM_TEST(a_release_that_was_lost_is_sent_again),
        QUORUM_TEST(a_release_that_was_not_sent_is_sent),
        QUORUM_TEST(a_node_that_stays_late_is_in_nobodys_way),
        QUORUM_TEST(a_close_ends_what_is_late),
        QUORUM_TEST(a_name_that_is_held_is_refused),
        QUORUM_TEST(a_restarted_node_is_met_again),
        QUORUM_TEST(threads_share_the_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
