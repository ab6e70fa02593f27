/* test_cluster_silent.c - a master that is there and does not answer, or only that it cannot
 * now: lanes and watches on the other masters go on. */
/* SPDX-License-Identifier: MIT */
#include "cluster_stage.h"

#include "base/fail.h"
#include "base/rand.h"
#include "store/store.h"
#include <pthread.h>

enum {
    SILENT = 6,
    NAMES = 12
}; /* the first of the names are on the silent master */

typedef struct scene {
    server *silent;
    char names[NAMES][48];
} scene;

/* Nothing takes over from the silent one, and the others serve what they have. */
static void set_all(const char *setting, const char *value)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        assert_true(
            server_tell(&cw.sv[i], "CONFIG", "SET", setting, value, NULL));
}

/* Names whose keys, which begin so, are on that master, or on others. */
static void pick_names(scene *sc, const char *key, const char *prefix, int node)
{
    size_t silent = 0, others = SILENT;

    for (int i = 0; silent < SILENT || others < NAMES; i++) {
        char text[128], name[48];
        bool there;

        snprintf(name, sizeof(name), "%s-%d", prefix, i);
        snprintf(text, sizeof(text), "%s%s", key, name);
        there = cluster_server_of(&cw, slot_of(text)) == node;
        if (there && silent < SILENT)
            memcpy(sc->names[silent++], name, sizeof(name));
        else if (!there && others < NAMES)
            memcpy(sc->names[others++], name, sizeof(name));
    }
}

static void set_scene(scene *sc, const char *key, const char *prefix)
{
    int node = cluster_server_of(&cw, 0);

    assert_true(node >= 0);
    set_all("cluster-require-full-coverage", "no");
    set_all("cluster-replica-no-failover", "yes");
    sc->silent = &cw.sv[node];
    pick_names(sc, key, prefix, node);
}

static void end_scene(scene *sc)
{
    server_resume(sc->silent);
    IN_TIME(cluster_await_well(&cw));
}

static dibs__store *open_store(void)
{
    dibs__store *st = NULL;

    CHECK(DIBS_OK, dibs__store_open(cw_url, dibsx_after_ms(dibsx_now(), 5000),
                                    &st, err));
    return st;
}

static void no_delivery(const dibs__delivery *delivery, void *arg)
{
    (void)delivery;
    (void)arg;
    fail_msg("the queue is not empty");
}

static void open_lane(dibs__store *st, const char *queue, dibs__tend *out)
{
    dibs__reserve ask = {.queue = queue,
                         .number = 1,
                         .span_ms = 600000,
                         .as = ""};
    uint64_t bits;

    assert_true(dibsx_random(&bits, sizeof(bits)));
    ask.lane = (bits >> 11) | 1;
    CHECK(DIBS_OK,
          st->ops->queue->reserve(st, &ask, dibsx_after_ms(dibsx_now(), 5000),
                                  no_delivery, NULL, err));
    *out = (dibs__tend){.queue = queue, .lane = ask.lane, .span_ms = 600000};
}

static void expect_tended(dibs__store *st, dibs__tend *lanes, int64_t limit_ms)
{
    CHECK(DIBS_OK,
          st->ops->queue->tend(st, lanes, NAMES,
                               dibsx_after_ms(dibsx_now(), pace_ms(limit_ms)),
                               err));
    for (size_t i = SILENT; i < NAMES; i++)
        CHECK(DIBS_OK, lanes[i].rc);
}

static void lanes_of_others_are_tended(void **state)
{
    dibs__tend lanes[NAMES];
    dibs__store *st = open_store();
    scene sc;

    (void)state;
    set_scene(&sc, "", "lane");
    for (size_t i = 0; i < NAMES; i++)
        open_lane(st, sc.names[i], &lanes[i]);
    expect_tended(st, lanes, 5000);
    lanes[NAMES - 1].lane++;
    CHECK(DIBS_OK,
          st->ops->queue->tend(st, lanes, NAMES,
                               dibsx_after_ms(dibsx_now(), 5000), err));
    assert_status(lanes[NAMES - 1].rc, DIBS_LOST);
    lanes[NAMES - 1].lane--;
    server_pause(sc.silent);
    for (int i = 0; i < 3; i++) {
        expect_tended(st, lanes, 600);
        for (size_t k = 0; k < SILENT; k++)
            assert_true(dibsx_is_away(lanes[k].rc));
    }
    assert_true(dibsx_is_away(
        st->ops->queue->tend(st, lanes, SILENT,
                             dibsx_after_ms(dibsx_now(), 200), NULL)));
    end_scene(&sc);
    dibs__store_close(st);
}

/* It answers at once that it cannot write now, and its calls are made again. */
static void lanes_beside_a_refusal_are_tended(void **state)
{
    dibs__tend lanes[NAMES];
    dibs__store *st = open_store();
    scene sc;

    (void)state;
    set_scene(&sc, "", "refused");
    for (size_t i = 0; i < NAMES; i++)
        open_lane(st, sc.names[i], &lanes[i]);
    assert_true(server_tell(sc.silent, "CONFIG", "SET", "min-replicas-to-write",
                            "9", NULL));
    for (int i = 0; i < 3; i++) {
        expect_tended(st, lanes, 600);
        for (size_t k = 0; k < SILENT; k++)
            assert_true(dibsx_is_away(lanes[k].rc));
    }
    assert_true(server_tell(sc.silent, "CONFIG", "SET", "min-replicas-to-write",
                            "0", NULL));
    end_scene(&sc);
    dibs__store_close(st);
}

static void expect_met(dibs__store *st, dibs__meet *seats, bool all)
{
    CHECK(DIBS_OK,
          st->ops->roster->meet(st, seats, NAMES,
                                dibsx_after_ms(dibsx_now(),
                                               all ? 5000 : pace_ms(600)),
                                err));
    for (size_t i = all ? 0 : SILENT; i < NAMES; i++)
        CHECK(DIBS_OK, seats[i].rc);
    for (size_t i = 0; !all && i < SILENT; i++)
        assert_true(dibsx_is_away(seats[i].rc));
}

static void seats_of_others_are_kept(void **state)
{
    dibs__meet seats[NAMES];
    dibs__store *st = open_store();
    scene sc;

    (void)state;
    set_scene(&sc, "", "seat");
    for (size_t i = 0; i < NAMES; i++)
        seats[i] = (dibs__meet){.name = sc.names[i],
                                .id = "0123456789abcdef0123456789abcdef",
                                .verb = DIBS__SIT,
                                .ttl_ms = 600000,
                                .who = ""};
    expect_met(st, seats, true);
    for (size_t i = 0; i < NAMES; i++) {
        seats[i].fence = seats[i].number;
        seats[i].verb = DIBS__KEEP;
    }
    expect_met(st, seats, true);
    server_pause(sc.silent);
    for (int i = 0; i < 3; i++)
        expect_met(st, seats, false);
    end_scene(&sc);
    dibs__store_close(st);
}

static dibs_item *take_item(dibs_queue *queue)
{
    dibs_item *item = NULL;

    CHECK(DIBS_OK, dibs_queue_push(queue, "x", 1, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_queue_reserve(queue, WORLD_BOUND_MS, &item, err));
    return item;
}

/* Over more than two spans of the lanes. */
static void items_of_others_are_kept(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    const int64_t ttl_ms = pace_ms(1800);
    dibs_queue *queues[NAMES];
    dibs_item *items[NAMES];
    dibsx_nsec end;
    scene sc;

    (void)state;
    set_scene(&sc, "", "items");
    for (size_t i = 0; i < NAMES; i++) {
        CHECK(DIBS_OK,
              dibs_queue_new(cl, sc.names[i], DIBS_QUEUE_OPTS(.ttl_ms = ttl_ms),
                             &queues[i], err));
        items[i] = take_item(queues[i]);
    }
    server_pause(sc.silent);
    end = dibsx_after_ms(dibsx_now(), ttl_ms * 5 / 2);
    while (dibsx_now() < end) {
        for (size_t i = SILENT; i < NAMES; i++)
            CHECK(DIBS_OK, dibs_item_check(items[i]));
        world_sleep_ms(20);
    }
    end_scene(&sc);
    for (size_t i = 0; i < NAMES; i++) {
        dibs_item_free(items[i]);
        dibs_queue_free(queues[i]);
    }
    dibs_close(cl);
}

static void expect_heads(dibs__store *st, const scene *sc, size_t first)
{
    const char *keys[NAMES];
    dibs__value_head heads[NAMES];
    dibs_error why = {0};

    for (size_t i = 0; i < NAMES; i++)
        keys[i] = sc->names[(first + i) % NAMES];
    CHECK(DIBS_OK,
          st->ops->value->heads(st, keys, NAMES,
                                dibsx_after_ms(dibsx_now(), pace_ms(2000)),
                                heads, &why));
    for (size_t i = 0; i < NAMES; i++) {
        if ((first + i) % NAMES < SILENT) {
            assert_true(dibsx_is_away(heads[i].rc));
            continue;
        }
        CHECK(DIBS_OK, heads[i].rc);
        assert_true(heads[i].version > 0);
    }
    assert_true(dibsx_is_away(why.status));
}

/* One on the silent master comes first once that is known to be so. */
static void heads_of_others_are_read(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs__store *st = open_store();
    scene sc;

    (void)state;
    set_scene(&sc, "dibs:value:", "head");
    for (size_t i = 0; i < NAMES; i++)
        CHECK(DIBS_OK, dibs_state_set(cl, sc.names[i], "x", 1, 0, NULL, err));
    server_pause(sc.silent);
    expect_heads(st, &sc, SILENT);
    expect_heads(st, &sc, 0);
    expect_heads(st, &sc, 1);
    end_scene(&sc);
    dibs__store_close(st);
    dibs_close(cl);
}

static void *watch_main(void *arg)
{
    dibs_watch *watch = arg;
    dibs_change change;
    dibs_status rc;

    do {
        rc = dibs_watch_next(watch, WORLD_BOUND_MS, &change, NULL);
        if (rc == DIBS_OK)
            dibs_value_free(&change.value);
    } while (rc == DIBS_OK);
    return NULL;
}

static dibs_watch *watch_value(dibs_client *cl, const char *key)
{
    dibs_watch *watch = NULL;
    dibs_change change;

    CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_watch(cl, key, &watch, err));
    CHECK(DIBS_OK, dibs_watch_next(watch, WORLD_BOUND_MS, &change, err));
    assert_true(change.value.version > 0);
    dibs_value_free(&change.value);
    return watch;
}

/* Its first look, which comes before theirs, reads the values of others along, which do
 * not come. Nothing changes for a while; and then something does. */
static void a_watch_on_another_master_looks(void **state)
{
    dibs_client *cl = world_client(cw_url, 5000);
    dibs_watch *deaf[SILENT], *watch;
    pthread_t threads[SILENT];
    dibs_change change;
    scene sc;

    (void)state;
    set_scene(&sc, "dibs:value:", "watch");
    watch = watch_value(cl, sc.names[SILENT]);
    world_sleep_ms(50); /* looks come in the order of the answers */
    for (size_t i = 0; i < SILENT; i++) {
        deaf[i] = watch_value(cl, sc.names[i]);
        assert_int_equal(pthread_create(&threads[i], NULL, watch_main, deaf[i]),
                         0);
    }
    server_pause(sc.silent);
    CHECK(DIBS_TIMEOUT, dibs_watch_next(watch, pace_ms(3000), &change, err));
    CHECK(DIBS_OK, dibs_state_set(cl, sc.names[SILENT], "y", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_watch_next(watch, WORLD_BOUND_MS, &change, err));
    assert_string_equal(change.value.data, "y");
    dibs_value_free(&change.value);
    end_scene(&sc);
    for (size_t i = 0; i < SILENT; i++) {
        dibs_watch_cancel(deaf[i]);
        pthread_join(threads[i], NULL);
        dibs_watch_free(deaf[i]);
    }
    dibs_watch_free(watch);
    dibs_close(cl);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_of_others_are_tended),
        cmocka_unit_test(lanes_beside_a_refusal_are_tended),
        cmocka_unit_test(seats_of_others_are_kept),
        cmocka_unit_test(items_of_others_are_kept),
        cmocka_unit_test(heads_of_others_are_read),
        cmocka_unit_test(a_watch_on_another_master_looks),
    };

    if (argc == 3)
        cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, cluster_stage_begin,
                                  cluster_stage_end);
}
