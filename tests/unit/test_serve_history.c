/* test_serve_history.c - the latest holds of all locks: more than are kept, ended at once,
 * and names whose holds are in one chain. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "serve/history.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

/* A picture of `count` names, each with one holder, and all that they point to. */
typedef struct scene {
    dibs__serve_picture picture;
    dibs_lease_info *infos;
    dibs_party *parties;
    char (*names)[32];
} scene;

static void make(scene *sc, size_t count, uint64_t fence)
{
    memset(sc, 0, sizeof(*sc));
    sc->infos = dibsx_zalloc_n(count, sizeof(*sc->infos));
    sc->parties = dibsx_zalloc_n(count, sizeof(*sc->parties));
    sc->names = dibsx_zalloc_n(count, sizeof(*sc->names));
    sc->picture.rows = dibsx_zalloc_n(count, sizeof(*sc->picture.rows));
    for (size_t i = 0; i < count; i++) {
        snprintf(sc->names[i], sizeof(sc->names[i]), "name:%08zu", i);
        sc->parties[i] =
            (dibs_party){.owner = "0123456789abcdef0123456789abcdef",
                         .host = "h",
                         .label = "",
                         .mode = "exclusive",
                         .identity = "",
                         .meta = "",
                         .fence = fence + i,
                         .left_ms = 1000};
        sc->infos[i] = (dibs_lease_info){.name = sc->names[i],
                                         .holders = &sc->parties[i],
                                         .holder_count = 1};
        sc->picture.rows[i] = &sc->infos[i];
    }
    sc->picture.count = count;
    sc->picture.complete = true;
}

static void unmake(scene *sc)
{
    dibsx_free(sc->infos);
    dibsx_free(sc->parties);
    dibsx_free(sc->names);
    dibsx_free(sc->picture.rows);
}

/* How many holds of a name the answer has that ended so. */
static size_t
count_of(dibs__serve_history *history, size_t name, const char *how)
{
    char text[32], pattern[32];
    dibsx_json js;
    dibsx_buf out;
    size_t count = 0;

    snprintf(text, sizeof(text), "name:%08zu", name);
    snprintf(pattern, sizeof(pattern), "\"how\":\"%s\"", how);
    dibsx_buf_init(&out, 1 << 20);
    dibsx_json_init(&js, &out);
    dibsx_json_open(&js, '{');
    dibs__serve_history_json(history, text, DIBS__SERVE_HOLDS_SHOWN, &js);
    dibsx_json_close(&js, '}');
    for (const char *at = dibsx_buf_text(&out); (at = strstr(at, pattern));
         at++)
        count++;
    dibsx_buf_fini(&out);
    return count;
}

static void many_end_at_once(void **state)
{
    enum { MORE = 1000, ALL = DIBS__SERVE_HOLDS_MAX + MORE };
    dibs__serve_picture none = {.complete = true};
    dibs__serve_history history;
    scene sc;

    (void)state;
    assert_int_equal(dibs__serve_history_init(&history, NULL), DIBS_OK);
    make(&sc, ALL, 1);
    dibs__serve_history_seen(&history, NULL, &sc.picture);
    /* The first have given their places to the last. */
    assert_int_equal(count_of(&history, 0, "held"), 0);
    assert_int_equal(count_of(&history, MORE - 1, "held"), 0);
    assert_int_equal(count_of(&history, MORE, "held"), 1);
    assert_int_equal(count_of(&history, ALL - 1, "held"), 1);
    dibs__serve_history_seen(&history, &sc.picture, &none);
    for (size_t i = MORE; i < ALL; i += 97) {
        assert_int_equal(count_of(&history, i, "held"), 0);
        assert_int_equal(count_of(&history, i, "ended"), 1);
    }
    assert_int_equal(count_of(&history, 0, "ended"), 0);
    unmake(&sc);
    dibs__serve_history_fini(&history);
}

static void the_hold_that_ended_is_marked(void **state)
{
    enum { TIMES = 5 };
    dibs__serve_picture none = {.complete = true};
    dibs__serve_history history;
    scene sc[TIMES];

    (void)state;
    assert_int_equal(dibs__serve_history_init(&history, NULL), DIBS_OK);
    for (size_t i = 0; i < TIMES; i++) {
        make(&sc[i], 3, 100 * (i + 1));
        dibs__serve_history_seen(&history, i ? &sc[i - 1].picture : NULL,
                                 &sc[i].picture);
        assert_int_equal(count_of(&history, 1, "held"), 1);
        assert_int_equal(count_of(&history, 1, "ended"), i);
    }
    dibs__serve_history_seen(&history, &sc[TIMES - 1].picture, &none);
    assert_int_equal(count_of(&history, 1, "ended"), TIMES);
    assert_int_equal(count_of(&history, 3, "ended"), 0);
    for (size_t i = 0; i < TIMES; i++)
        unmake(&sc[i]);
    dibs__serve_history_fini(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_end_at_once),
        cmocka_unit_test(the_hold_that_ended_is_marked),
    };

    return cmocka_run_group_tests_name("serve history", tests, NULL, NULL);
}
