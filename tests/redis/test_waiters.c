/* test_waiters.c - a hundred wait for one name: they are served in the order in
 * which they came, all of them, for three commands each at most. */
/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "redis_world.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef DIBS_SANITIZED
enum { WAITERS = 30 };
#else
enum { WAITERS = 100 };
#endif
enum { PARTIES = WAITERS };
enum { CLIENTS = 10, COMMANDS_EACH = 3, BOUND_MS = 30000 };

/* Asks the server itself, with a command that no script uses. */
static void await_queue(const server *sv, size_t length)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    size_t waiting = 0;

    while (waiting != length) {
        char *text = server_ask(sv, "ZCARD", "{k}~queue", NULL);

        assert_non_null(text);
        waiting = (size_t)strtoul(text, NULL, 10);
        free(text);
        IN_TIME(dibsx_now() < end);
    }
}

/* What clients have sent: all steps are scripts. */
static long long commands_of(const server *sv)
{
    long long evalsha = server_info(sv, "commandstats", "cmdstat_evalsha");
    long long eval = server_info(sv, "commandstats", "cmdstat_eval");

    return (evalsha > 0 ? evalsha : 0) + (eval > 0 ? eval : 0);
}

/* Who was served when. */
typedef struct service {
    atomic_int served;
    int order[WAITERS];
    uint64_t fences[WAITERS];
} service;

typedef struct waiter {
    service *all;
    dibs_lock *lock;
    int number;
    pthread_t thread;
} waiter;

static void *wait_and_pass_on(void *arg)
{
    waiter *wt = arg;
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(wt->lock, &err);
    int turn;

    if (pace_explains(rc))
        MISSED("waiter %d: %s: %s", wt->number, dibs_status_name(rc),
               err.message);
    if (rc != DIBS_OK) {
        fprintf(stderr, "waiter %d: %s: %s\n", wt->number, dibs_status_name(rc),
                err.message);
        return NULL;
    }
    turn = atomic_fetch_add(&wt->all->served, 1);
    wt->all->order[turn] = wt->number;
    wt->all->fences[turn] = dibs_lock_fence(wt->lock);
    (void)dibs_lock_release(wt->lock, &err);
    return NULL;
}

static void check_order(const int *order, const uint64_t *fences)
{
    for (int i = 0; i < WAITERS; i++) {
        /* Only a waiter that is not run for seconds loses its place. */
        IN_TIME(order[i] == i);
        assert_true(fences[i] > 0);
        if (i > 0)
            assert_true(fences[i] > fences[i - 1]);
    }
}

/* Each has its scripts and its doorbell before anything is counted. */
static void open_clients(const world *w, dibs_client **clients)
{
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = world_client(w->url, 5000);
}

static void start_waiters(const world *w, dibs_client **clients,
                          waiter *waiters, service *all)
{
    for (int i = 0; i < WAITERS; i++) {
        waiter *wt = &waiters[i];

        *wt = (waiter){.all = all, .number = i};
        wt->lock = world_lock(clients[i % CLIENTS], "k",
                              DIBS_LOCK_OPTS(.wait_ms = BOUND_MS));
        assert_int_equal(pthread_create(&wt->thread, NULL, wait_and_pass_on,
                                        wt),
                         0);
        await_queue(&w->sv, (size_t)i + 1);
    }
}

static void threads_are_served_in_order(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", NULL);
    dibs_client *clients[CLIENTS];
    static waiter waiters[WAITERS];
    service all = {0};
    long long commands, polls;
    dibsx_nsec began_at;

    open_clients(w, clients);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    assert_true(server_tell(&w->sv, "CONFIG", "RESETSTAT", NULL));
    began_at = dibsx_now();
    start_waiters(w, clients, waiters, &all);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
    commands = commands_of(&w->sv);
    /* Who has waited for a second asks whether it missed something. */
    polls = world_ms_since(began_at) / 1000 * WAITERS;
    print_message("%lld commands for %d acquisitions\n", commands, WAITERS);
    assert_int_equal(atomic_load(&all.served), WAITERS);
    check_order(all.order, all.fences);
    assert_true(commands >= WAITERS);
    /* The first holder gave back meanwhile. Polls may come a little early. */
    IN_TIME(commands <= COMMANDS_EACH * (WAITERS + 1) + polls);
    for (int i = 0; i < WAITERS; i++)
        dibs_lock_free(waiters[i].lock);
    for (int i = 0; i < CLIENTS; i++)
        dibs_close(clients[i]);
    dibs_lock_free(lock);
}

/* A callback of the program that the keeper is in until it may leave. */
typedef struct gate {
    sem_t inside, leave;
} gate;

static void stay_inside(dibs_lock *lock, void *arg)
{
    gate *gt = arg;

    (void)lock;
    sem_post(&gt->inside);
    sem_wait(&gt->leave);
}

/* The keeper is not on the way from the store to a waiter. */
static void a_waiter_is_woken_while_a_callback_runs(void **state)
{
    world *w = *state;
    gate gt;
    dibs_lock *mine = world_lock(w->one, "mine",
                                 DIBS_LOCK_OPTS(.on_yield = stay_inside,
                                                .on_yield_arg = &gt));
    dibs_lock *held = world_lock(w->other, "k", NULL);
    dibs_stats stats = {.size = sizeof(stats)};
    service all = {0};
    waiter wt = {.all = &all};

    sem_init(&gt.inside, 0, 0);
    sem_init(&gt.leave, 0, 0);
    CHECK(DIBS_OK, dibs_lock_acquire(mine, err));
    CHECK(DIBS_OK, dibs_lock_acquire(held, err));
    CHECK(DIBS_OK, dibs_lease_yield(w->other, "mine", 0, NULL, err));
    sem_wait(&gt.inside);
    wt.lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.wait_ms = BOUND_MS));
    assert_int_equal(pthread_create(&wt.thread, NULL, wait_and_pass_on, &wt),
                     0);
    await_queue(&w->sv, 1);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    assert_int_equal(pthread_join(wt.thread, NULL), 0);
    dibs_stats_get(w->one, &stats);
    sem_post(&gt.leave);
    assert_int_equal(atomic_load(&all.served), 1);
    /* Without the notice it would have asked, a second later. */
    IN_TIME(stats.rings == 1);
    dibs_lock_free(wt.lock);
    dibs_lock_free(held);
    dibs_lock_free(mine);
    sem_destroy(&gt.leave);
    sem_destroy(&gt.inside);
}

/* What a process says while it holds. */
typedef struct word {
    int number;
    uint64_t fence;
} word;

/* A process of its own: waits until it is told to, then in the queue. Its words:
 * URL, number, the descriptor that tells it to, the one to say so. */
static int be_waiter(char **words)
{
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    word say = {.number = (int)strtol(words[1], NULL, 10)};
    int go_fd = (int)strtol(words[2], NULL, 10),
        say_fd = (int)strtol(words[3], NULL, 10);
    char go;

    if (read(go_fd, &go, 1) != 1)
        return 1;
    CHECK(DIBS_OK, dibs_open(words[0], NULL, &cl, err));
    CHECK(DIBS_OK, dibs_lock_new(cl, "k", DIBS_LOCK_OPTS(.wait_ms = BOUND_MS),
                                 &lock, err));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    say.fence = dibs_lock_fence(lock);
    if (write(say_fd, &say, sizeof(say)) != (ssize_t)sizeof(say))
        return 4;
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
    return 0;
}

typedef struct herd {
    server sv;
    char url[SERVER_URL_MAX];
    pid_t pids[WAITERS];
    int go[WAITERS]; /* to write to */
    int said;        /* to read from */
} herd;

static void start_processes(herd *hd)
{
    char number[16], go_fd[16], say_fd[16];
    int said[2];

    assert_int_equal(pipe(said), 0);
    hd->said = said[0];
    for (int i = 0; i < WAITERS; i++) {
        int go[2];

        assert_int_equal(pipe(go), 0);
        assert_int_equal(fcntl(go[1], F_SETFD, FD_CLOEXEC), 0);
        snprintf(number, sizeof(number), "%d", i);
        hd->pids[i] =
            child_start("waiter", hd->url, number, child_fd(go[0], go_fd),
                        child_fd(said[1], say_fd), NULL);
        assert_true(hd->pids[i] >= 0);
        close(go[0]);
        hd->go[i] = go[1];
    }
    close(said[1]);
}

static void queue_them(herd *hd)
{
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(write(hd->go[i], "g", 1), 1);
        await_queue(&hd->sv, (size_t)i + 1);
    }
}

static void listen_to_them(herd *hd)
{
    int order[WAITERS];
    uint64_t fences[WAITERS];
    word said;

    for (int i = 0; i < WAITERS; i++) {
        IN_TIME(read(hd->said, &said, sizeof(said)) == sizeof(said));
        order[i] = said.number;
        fences[i] = said.fence;
    }
    check_order(order, fences);
}

static void reap_them(herd *hd)
{
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(child_code(hd->pids[i]), 0);
        close(hd->go[i]);
    }
    close(hd->said);
}

static void processes_are_served_in_order(void **state)
{
    static herd hd;
    dibs_client *cl;
    dibs_lock *lock;

    (void)state;
    assert_true(server_start(&hd.sv, NULL));
    server_url(&hd.sv, hd.url);
    start_processes(&hd);
    cl = world_client(hd.url, 5000);
    lock = world_lock(cl, "k", NULL);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    queue_them(&hd);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    listen_to_them(&hd);
    reap_them(&hd);
    dibs_lock_free(lock);
    dibs_close(cl);
    server_stop(&hd.sv);
}

/* Waiters whose processes have died do not hold up those behind them for more
 * than the time of one place, all together. */
static void the_dead_are_skipped_together(void **state)
{
    enum { DEAD = WAITERS - 1 };
    static herd hd;
    dibs_client *cl;
    dibs_lock *lock;
    dibsx_nsec from_at;
    word said;

    (void)state;
    assert_true(server_start(&hd.sv, NULL));
    server_url(&hd.sv, hd.url);
    start_processes(&hd);
    cl = world_client(hd.url, 5000);
    lock = world_lock(cl, "k", NULL);
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    queue_them(&hd);
    for (int i = 0; i < DEAD; i++) {
        kill(hd.pids[i], SIGKILL);
        assert_int_equal(waitpid(hd.pids[i], NULL, 0), hd.pids[i]);
        close(hd.go[i]);
    }
    from_at = dibsx_now();
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    IN_TIME(read(hd.said, &said, sizeof(said)) == sizeof(said));
    print_message("served after %lld ms behind %d dead\n",
                  (long long)world_ms_since(from_at), DEAD);
    assert_int_equal(said.number, DEAD);
    IN_TIME(world_ms_since(from_at) < pace_ms(9000));
    assert_int_equal(waitpid(hd.pids[DEAD], NULL, 0), hd.pids[DEAD]);
    close(hd.go[DEAD]);
    close(hd.said);
    dibs_lock_free(lock);
    dibs_close(cl);
    server_stop(&hd.sv);
}

/* The parties of a barrier, in a few clients, generation after generation. */
typedef struct party {
    dibs_barrier *barrier;
    pthread_barrier_t *start;
    dibs_status rc;
    pthread_t thread;
} party;

static void *pass_twice(void *arg)
{
    party *p = arg;

    p->rc = dibs_barrier_wait(p->barrier, NULL, NULL);
    (void)pthread_barrier_wait(p->start);
    (void)pthread_barrier_wait(p->start);
    if (p->rc == DIBS_OK)
        p->rc = dibs_barrier_wait(p->barrier, NULL, NULL);
    return NULL;
}

/* By the tell alone all pass: no command follows it. */
static void a_generation_costs_one_command_for_each_party(void **state)
{
    world *w = *state;
    dibs_client *clients[CLIENTS];
    pthread_barrier_t start;
    party parties[PARTIES];
    long long before;

    pthread_barrier_init(&start, NULL, PARTIES + 1);
    for (size_t i = 0; i < CLIENTS; i++)
        clients[i] = world_client(w->url, 5000);
    for (size_t i = 0; i < PARTIES; i++) {
        parties[i] = (party){.start = &start};
        CHECK(DIBS_OK, dibs_barrier_new(clients[i % CLIENTS], "b",
                                        DIBS_BARRIER_OPTS(.parties = PARTIES,
                                                          .ttl_ms = 600000),
                                        &parties[i].barrier, err));
        assert_int_equal(pthread_create(&parties[i].thread, NULL, pass_twice,
                                        &parties[i]),
                         0);
    }
    (void)pthread_barrier_wait(&start);
    before = commands_of(&w->sv);
    (void)pthread_barrier_wait(&start);
    for (size_t i = 0; i < PARTIES; i++) {
        pthread_join(parties[i].thread, NULL);
        CHECK(DIBS_OK, parties[i].rc);
    }
    /* A generation that took longer than a second was asked about as well. */
    IN_TIME(commands_of(&w->sv) - before <= PARTIES + 1);
    for (size_t i = 0; i < PARTIES; i++)
        dibs_barrier_free(parties[i].barrier);
    for (size_t i = 0; i < CLIENTS; i++)
        dibs_close(clients[i]);
    pthread_barrier_destroy(&start);
}

static const child_part parts[] = {{"waiter", be_waiter}, {0}};

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_served_in_order),
        cmocka_unit_test(the_dead_are_skipped_together),
        WORLD_TEST(threads_are_served_in_order),
        WORLD_TEST(a_waiter_is_woken_while_a_callback_runs),
        WORLD_TEST(a_generation_costs_one_command_for_each_party),
    };

    child_play(argc, argv, parts);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
