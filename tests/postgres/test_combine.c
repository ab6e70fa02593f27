/* test_combine.c - steps of many threads of one client, which are sent together:
 * every answer goes to who asked, and what is wrong with one is not the others'. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include <pthread.h>

enum { THREADS = 24, ROUNDS = 30 };

typedef struct crowd {
    dibs_client *cl;
    atomic_int joined;
    atomic_int wrong;
    atomic_int inside;   /* of the name that all want */
    uint64_t last_fence; /* guarded by that name's lock */
    const char *shared;  /* NULL: each has a name of its own */
} crowd;

static void
expect(crowd *all, dibs_status rc, dibs_status wanted, const dibs_error *err)
{
    if (rc == wanted)
        return;
    if (pace_explains(rc))
        MISSED("%s, not %s: %s", dibs_status_name(rc), dibs_status_name(wanted),
               err->message);
    fprintf(stderr, "%s, not %s: %s\n", dibs_status_name(rc),
            dibs_status_name(wanted), err->message);
    atomic_fetch_add(&all->wrong, 1);
}

/* The store knows the lease by owner and fence: were the answers of two mixed up,
 * neither could renew. */
static void use_own(crowd *all, dibs_lock *lock, uint64_t *last)
{
    dibs_error err = {0};

    expect(all, dibs_lock_try(lock, &err), DIBS_OK, &err);
    if (dibs_lock_fence(lock) <= *last)
        atomic_fetch_add(&all->wrong, 1);
    *last = dibs_lock_fence(lock);
    expect(all, dibs_lock_renew(lock, &err), DIBS_OK, &err);
    expect(all, dibs_lock_release(lock, &err), DIBS_OK, &err);
}

static void use_shared(crowd *all, dibs_lock *lock)
{
    dibs_error err = {0};

    expect(all, dibs_lock_acquire(lock, &err), DIBS_OK, &err);
    if (atomic_fetch_add(&all->inside, 1) != 0 ||
        dibs_lock_fence(lock) <= all->last_fence)
        atomic_fetch_add(&all->wrong, 1);
    all->last_fence = dibs_lock_fence(lock);
    /* A lease that ended while its holder did not run lets another in. */
    IN_TIME(dibs_lock_check(lock) == DIBS_OK);
    atomic_fetch_sub(&all->inside, 1);
    expect(all, dibs_lock_release(lock, &err), DIBS_OK, &err);
}

static void *work(void *arg)
{
    crowd *all = arg;
    int number = atomic_fetch_add(&all->joined, 1);
    bool shares = all->shared && number % 2;
    uint64_t last = 0;
    dibs_lock *lock;
    char own[32];

    snprintf(own, sizeof(own), "own \"%d\", {}\\", number);
    lock = world_lock(all->cl, shares ? all->shared : own,
                      DIBS_LOCK_OPTS(.wait_ms = PG_BOUND_MS,
                                     .flags = DIBS_LOCK_NO_RENEW));
    for (int i = 0; i < ROUNDS; i++) {
        if (shares)
            use_shared(all, lock);
        else
            use_own(all, lock, &last);
    }
    dibs_lock_free(lock);
    return NULL;
}

static void gather(const char *shared, const char *params)
{
    crowd all = {.shared = shared};
    pthread_t threads[THREADS];
    char url[PG_URL_MAX];

    snprintf(url, sizeof(url), "postgres://dibs@127.0.0.1:%d/postgres%s",
             world_sv.port, params);
    all.cl = world_client(url, WORLD_STEP_MS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &all), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    dibs_close(all.cl);
    assert_int_equal(atomic_load(&all.wrong), 0);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.lease"),
                     0);
}

static void every_answer_goes_to_who_asked(void **state)
{
    (void)state;
    gather(NULL, "");
}

static void those_who_wait_are_taken_along(void **state)
{
    (void)state;
    gather("wanted", "?pool=2");
}

static void it_works_without_prepared_statements(void **state)
{
    char params[64];

    (void)state;
    snprintf(params, sizeof(params), "?pooler=transaction&listen_port=%d",
             world_sv.port);
    gather("wanted", params);
}

/* The database takes every name but one, as it does where its own rules or its
 * encoding refuse a text. */
static void refuse_a_name(void)
{
    assert_true(
        pg_tell(&world_sv,
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE 'refused' USING ERRCODE = '22021'; END$$;"
                "CREATE TRIGGER refuse BEFORE INSERT ON dibs.roll FOR EACH ROW "
                "WHEN (NEW.name = 'bad name') EXECUTE FUNCTION refuse()"));
}

/* A name that the database cannot take fails alone. */
static void *ask_badly(void *arg)
{
    crowd *all = arg;
    dibs_lock *lock = world_lock(all->cl, "bad name", NULL);

    for (int i = 0; i < ROUNDS; i++) {
        dibs_error err = {0};

        expect(all, dibs_lock_try(lock, &err), DIBS_INVALID, &err);
    }
    dibs_lock_free(lock);
    return NULL;
}

static void what_is_wrong_with_one_is_not_the_others(void **state)
{
    pthread_t threads[THREADS];
    char url[PG_URL_MAX];
    crowd all = {.shared = NULL};

    (void)state;
    refuse_a_name();
    pg_url(&world_sv, url);
    all.cl = world_client(url, WORLD_STEP_MS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i % 6 ? work : ask_badly, &all),
                         0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    dibs_close(all.cl);
    assert_int_equal(atomic_load(&all.wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_goes_to_who_asked),
        cmocka_unit_test(those_who_wait_are_taken_along),
        cmocka_unit_test(it_works_without_prepared_statements),
        cmocka_unit_test(what_is_wrong_with_one_is_not_the_others),
    };

    return cmocka_run_group_tests_name("postgres combine", tests, world_begin,
                                       world_end);
}
