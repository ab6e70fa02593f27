/* test_node_list.c - the list of nodes, and how often the store is asked for it. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/node_record.h"
#include "serve/node_list.h"
#include "step_count.h"

#include <dibs/client.h>
#include <dibs/lock.h>
#include <stdio.h>
#include <string.h>

#define STORE  "memory:node_list"
#define COUNTS "fault+" STORE /* the same, and its steps are counted */

enum { TEXT_MAX = 4 * 1024 * 1024, CROWD = DIBS__NODES_SHOWN_MAX + 3 };

typedef struct scene {
    dibs_client *cl, *reader;
    dibs__board board; /* of the reader */
    dibs_lock *leases[CROWD];
    size_t count;
    dibsx_buf text;
    step_counts steps; /* of the latest list */
} scene;

static void begin_scene(scene *sc, const char *board)
{
    memset(sc, 0, sizeof(*sc));
    CHECK(DIBS_OK, dibs_open(STORE, NULL, &sc->cl, err));
    CHECK(DIBS_OK, dibs_open(COUNTS, NULL, &sc->reader, err));
    CHECK(DIBS_OK, dibs__board_init(&sc->board, sc->reader, board, err));
    dibsx_buf_init(&sc->text, TEXT_MAX);
}

static void end_scene(scene *sc)
{
    while (sc->count > 0)
        dibs_lock_free(sc->leases[--sc->count]);
    dibsx_buf_fini(&sc->text);
    dibs_close(sc->reader);
    dibs_close(sc->cl);
}

static uint64_t add_lease(scene *sc, const char *id)
{
    char inner[64], key[DIBS_NAME_MAX + 1];
    dibs_lock **lock = &sc->leases[sc->count++];

    (void)snprintf(inner, sizeof(inner), "node/%s", id);
    CHECK(DIBS_OK, dibs__board_key(&sc->board, inner, key, err));
    CHECK(DIBS_OK, dibs_lock_new(sc->cl, key, NULL, lock, err));
    CHECK(DIBS_OK, dibs_lock_try(*lock, err));
    return dibs_lock_fence(*lock);
}

static void add_node(scene *sc, size_t number, bool draining)
{
    dibs__node_record rec = {.slots = number, .ttl_ms = 30000};
    bool doubt = false;
    dibs__intent in;

    (void)snprintf(rec.id, sizeof(rec.id), "%016zx", number);
    (void)snprintf(rec.host, sizeof(rec.host), "here");
    (void)snprintf(rec.version, sizeof(rec.version), "1");
    rec.fence = add_lease(sc, rec.id);
    dibs__intent_init(&in);
    dibs__node_record_keep(&rec, draining, 1, &in);
    CHECK(DIBS_OK, dibs__board_commit(&sc->board, &in, &doubt, err));
    dibs__intent_fini(&in);
}

/* Asks for the list, and counts the steps of that alone. */
static const char *ask(scene *sc, const dibs__board_live *live, size_t count)
{
    const dibs__board_picture picture = {.board = sc->board,
                                         .live = (dibs__board_live *)live,
                                         .live_count = count};
    dibsx_json js;

    dibsx_buf_reset(&sc->text);
    dibsx_json_init(&js, &sc->text);
    step_count_begin();
    CHECK(DIBS_OK, dibs__node_list_json(&picture, &js, err));
    sc->steps = step_count_end();
    return dibsx_buf_text(&sc->text);
}

/* How often a text has another in it. */
static size_t count_text(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

/* One listing, one look at those that drain, and one request for 64 records. */
static void no_node_is_asked_for_alone(void **state)
{
    enum { NODES = DIBS_GET_MANY_MAX + 6 };
    scene sc;

    (void)state;
    begin_scene(&sc, "several");
    (void)ask(&sc, NULL, 0);
    assert_int_equal(sc.steps.all, 1);
    for (size_t i = 0; i < NODES; i++)
        add_node(&sc, i, i == 7);
    assert_int_equal(count_text(ask(&sc, NULL, 0), "\"id\":"), NODES);
    assert_int_equal(sc.steps.lists, 1);
    assert_int_equal(sc.steps.firsts, 1);
    assert_int_equal(sc.steps.get_manys, 2);
    assert_int_equal(sc.steps.all, 4);
    end_scene(&sc);
}

static void each_node_has_its_own_facts(void **state)
{
    dibs__board_live live = {.run = "r", .step = "main"};
    const char *text;
    scene sc;

    (void)state;
    begin_scene(&sc, "facts");
    add_node(&sc, 1, false);
    add_node(&sc, 2, true);
    live.fence = add_lease(&sc, "without-record");
    text = ask(&sc, &live, 1);
    assert_int_equal(count_text(text, "\"state\":\"active\",\"slots\":1,"), 1);
    assert_int_equal(count_text(text, "\"state\":\"draining\",\"slots\":2,"),
                     1);
    assert_int_equal(count_text(text, "\"state\":\"active\",\"steps\":[{\"run\""
                                      ":\"r\",\"step\":\"main\"}]"),
                     1);
    assert_int_equal(count_text(text, "\"steps\":[]"), 2);
    assert_int_equal(count_text(text, "],\"total\":3,\"complete\":true"), 1);
    end_scene(&sc);
}

static void a_crowd_is_cut_and_counted(void **state)
{
    char id[32];
    scene sc;
    const char *text;

    (void)state;
    begin_scene(&sc, "crowd");
    for (size_t i = 0; i < CROWD; i++) {
        (void)snprintf(id, sizeof(id), "%zu", i);
        (void)add_lease(&sc, id);
    }
    text = ask(&sc, NULL, 0);
    assert_int_equal(count_text(text, "\"id\":"), DIBS__NODES_SHOWN_MAX);
    assert_int_equal(count_text(text, "\"total\":1027,\"complete\":false"), 1);
    end_scene(&sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_node_is_asked_for_alone),
        cmocka_unit_test(each_node_has_its_own_facts),
        cmocka_unit_test(a_crowd_is_cut_and_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
