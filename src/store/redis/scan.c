/* scan.c - all keys that begin with one of some texts.
 *
 * Every page is a step of its own, so that the server serves others meanwhile.
 * Keys that come and go between the pages may be missed. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/scan.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/redis/script.h"
#include "store/redis/wire/reply.h"
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define PAGE "500" /* keys that the server reads in one step */

/* The pause before a search of a cluster begins anew. */
#define AGAIN (100 * DIBSX_MS)

enum { TEXT_MAX = 64 << 20, CURSOR_MAX = 24 };

void dibs__names_fini(dibs__names *names)
{
    dibsx_buf_fini(&names->text);
    dibsx_free(names->name);
    *names = (dibs__names){0};
}

static dibs_status
read_page(const redisReply *reply, const char *begins, dibs__name_of *name_of,
          dibs__names *names, char cursor[CURSOR_MAX], dibs_error *err)
{
    char name[DIBS_NAME_MAX + 1], next[CURSOR_MAX];
    const redisReply *key = dibs__reply_item(reply, 0);

    if (!key || key->type != REDIS_REPLY_STRING)
        return dibs__reply_odd(err);
    dibs__reply_text(key, next, CURSOR_MAX);
    /* One that repeats itself would be asked for ever. */
    if (!next[0] || next[strspn(next, "0123456789")] ||
        (strcmp(next, "0") != 0 && strcmp(next, cursor) == 0))
        return dibs__reply_odd(err);
    memcpy(cursor, next, CURSOR_MAX);
    for (size_t i = 1; (key = dibs__reply_item(reply, i)) != NULL; i++) {
        if (key->type != REDIS_REPLY_STRING ||
            !name_of(key->str, (size_t)key->len, begins, name))
            continue;
        dibsx_buf_add(&names->text, name, strlen(name) + 1);
        names->count++;
    }
    if (!dibsx_buf_ok(&names->text))
        return dibsx_fail(err, DIBS_NOMEM,
                          "the server has too many names for one list; "
                          "ask for names with a longer beginning");
    return DIBS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static dibs_status sort_names(dibs__names *names, dibs_error *err)
{
    const char *at = dibsx_buf_text(&names->text);
    size_t kept = 0;

    names->name = dibsx_zalloc_n(names->count + 1, sizeof(*names->name));
    if (!names->name)
        return dibsx_nomem(err, "a list of names");
    for (size_t i = 0; i < names->count; i++, at += strlen(at) + 1)
        names->name[i] = at;
    qsort(names->name, names->count, sizeof(*names->name), compare_names);
    for (size_t i = 0; i < names->count; i++)
        if (i == 0 || strcmp(names->name[i], names->name[kept - 1]) != 0)
            names->name[kept++] = names->name[i];
    names->count = kept;
    return DIBS_OK;
}

/* The texts to find, and where. */
typedef struct search {
    dibs__route *rt;
    const char *const *texts;
    size_t text_count;
    const char *begins;
    dibs__name_of *name_of;
    dibsx_nsec deadline; /* of the whole, or only for beginning anew */
    bool paced;          /* each page has a deadline of its own, */
    int64_t each_ms;     /* ... so long after it is asked for */
} search;

static dibsx_nsec page_deadline(const search *sc)
{
    return sc->paced ? dibsx_after_ms(dibsx_now(), sc->each_ms) : sc->deadline;
}

/* All pages of one server. */
static dibs_status search_at(const search *sc, const dibs__endpoint *endpoint,
                             dibs__names *names, dibs_error *err)
{
    char cursor[CURSOR_MAX] = "0";
    dibs_status rc;

    do {
        redisReply *reply = NULL;
        dibs__words words;

        dibs__script_begin(&words, DIBS__SCRIPT_scan, "0");
        dibs__words_puts(&words, cursor);
        dibs__words_puts(&words, PAGE);
        for (size_t i = 0; i < sc->text_count; i++)
            dibs__words_puts(&words, sc->texts[i]);
        rc = dibs__script_run_at(sc->rt, endpoint, DIBS__SCRIPT_scan, &words,
                                 page_deadline(sc), &reply, err);
        if (rc == DIBS_OK)
            rc = read_page(reply, sc->begins, sc->name_of, names, cursor, err);
        dibs__reply_free(reply);
    } while (rc == DIBS_OK && strcmp(cursor, "0") != 0);
    return rc;
}

static void forget_names(dibs__names *names)
{
    dibs__names_fini(names);
    dibsx_buf_init(&names->text, TEXT_MAX);
}

/* All masters, as the map has them now. */
static dibs_status
search_masters(const search *sc, dibs__names *names, dibs_error *err)
{
    dibs__cluster *cl = dibs__route_cluster(sc->rt);
    dibs__topology *map = dibsx_zalloc(sizeof(*map));
    dibs_status rc = map ? dibs__cluster_learn(cl, sc->deadline, err)
                         : dibsx_nomem(err, "a map");

    if (rc == DIBS_OK)
        rc = dibs__cluster_map(cl, map, err);
    for (size_t i = 0; rc == DIBS_OK && i < map->count; i++)
        if (map->members[i].master)
            rc = search_at(sc, &map->members[i].endpoint, names, err);
    if (map)
        dibs__topology_fini(map);
    dibsx_free(map);
    return rc;
}

/* Reading changes nothing, so when a master is lost the search begins anew,
 * with the masters of the new map. */
static dibs_status
search_cluster(const search *sc, dibs__names *names, dibs_error *err)
{
    dibs_status rc;

    while ((rc = search_masters(sc, names, err)) == DIBS_UNAVAIL ||
           rc == DIBS_UNKNOWN) {
        dibsx_nsec next_at = dibsx_now() + AGAIN;

        dibs__cluster_doubt(dibs__route_cluster(sc->rt));
        if (next_at >= sc->deadline)
            break;
        (void)poll(NULL, 0, (int)dibsx_wait_ms(next_at, dibsx_now()));
        forget_names(names);
    }
    return rc;
}

static dibs_status
search_all(const search *sc, dibs__names *names, dibs_error *err)
{
    dibs_status rc;

    *names = (dibs__names){0};
    forget_names(names);
    rc = dibs__route_cluster(sc->rt) ? search_cluster(sc, names, err)
                                     : search_at(sc, NULL, names, err);
    return rc == DIBS_OK ? sort_names(names, err) : rc;
}

dibs_status
dibs__scan(dibs__route *rt, const char *const *texts, size_t text_count,
           const char *begins, dibs__name_of *name_of, dibsx_nsec deadline,
           dibs__names *names, dibs_error *err)
{
    const search sc = {rt,      texts,    text_count, begins,
                       name_of, deadline, false,      0};

    return search_all(&sc, names, err);
}

dibs_status
dibs__scan_paced(dibs__route *rt, const char *const *texts, size_t text_count,
                 const char *begins, dibs__name_of *name_of,
                 dibsx_nsec deadline, dibs__names *names, dibs_error *err)
{
    const search sc = {rt,         texts,
                       text_count, begins,
                       name_of,    deadline,
                       true,       dibsx_wait_ms(deadline, dibsx_now())};

    return search_all(&sc, names, err);
}
