/* route_locks.c - locks: a list, and one at a time, also until it changes. Threads of
 * the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "http/lasting.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/list.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/row.h"
#include "serve/tree.h"
#include <stdio.h>
#include <string.h>

/* A poll for a name that the look leaves out rests a moment, and asks the store again. */
enum { POLL_MAX_MS = 55000, POLL_BLIND_MS = 1000, LOOK_WAIT_MS = 5000 };

static void
answer_row(dibs__http_exchange *ex, dibs__serve_row_fn *write, const char *name,
           const dibs_lease_info *info, int64_t since_ms)
{
    const dibs_lease_info nobody = {.name = name};
    char etag[DIBS__SERVE_ETAG_MAX];

    dibs__serve_row_etag(info, etag);
    if (!dibs__http_not_modified(ex, etag))
        write(dibs__http_answer(ex, 200), info ? info : &nobody, since_ms, 0);
}

/* A request that waits until a lock is no longer as its client knows it. */
typedef struct poll {
    dibs__serve *sv;
    dibs__serve_row_fn *write;
    char name[DIBS_NAME_MAX + 1];
    char etag[DIBS__SERVE_ETAG_MAX];
    dibsx_nsec
        shown_at; /* pictures from before say less than the client knows */
} poll;

/* As dibs__http_later.ask. */
static bool ask_poll(dibs__http_exchange *ex, void *arg, bool over)
{
    poll *pl = arg;
    dibs__serve_picture *picture = dibs__serve_look_take(&pl->sv->look, 0);
    const dibs_lease_info *info;
    char etag[DIBS__SERVE_ETAG_MAX];
    bool changed = false;

    if (picture &&
        dibs__serve_picture_tells(picture, pl->name, pl->shown_at, &info)) {
        dibs__serve_row_etag(info, etag);
        changed = strcmp(etag, pl->etag) != 0;
        if (changed)
            answer_row(ex, pl->write, pl->name, info,
                       (dibsx_now() - picture->seen_at) / DIBSX_MS);
    }
    if (!changed && over) {
        dibs__http_set(ex, "ETag", pl->etag);
        dibs__http_answer_none(ex, 304);
    }
    dibs__serve_picture_drop(picture);
    return changed || over;
}

/* A name as the store has it now. */
typedef struct shown {
    dibs__http_exchange *ex;
    dibs__serve_row_fn *write;
    const char *name;
    dibsx_nsec at;
    int64_t wait_ms;
} shown;

static void begin_poll(const shown *sh, const dibs_lease_info *info)
{
    poll *pl = dibsx_zalloc(sizeof(*pl));

    if (!pl) {
        dibs__http_refuse(sh->ex, 503, "There is no memory for the wait");
        return;
    }
    pl->sv = dibs__http_arg(sh->ex);
    pl->write = sh->write;
    pl->shown_at = sh->at;
    snprintf(pl->name, sizeof(pl->name), "%s", sh->name);
    dibs__serve_row_etag(info, pl->etag);
    dibs__http_answer_later(sh->ex,
                            &(dibs__http_later){.ask = ask_poll,
                                                .gone = dibsx_free,
                                                .arg = pl,
                                                .wait_ms = sh->wait_ms});
}

static bool knows_it(const dibs__http_exchange *ex, const dibs_lease_info *info)
{
    char etag[DIBS__SERVE_ETAG_MAX];

    dibs__serve_row_etag(info, etag);
    return dibs__http_knows(ex, etag);
}

/* Whether pictures will tell of the name. */
static bool is_looked_at(const shown *sh)
{
    dibs__serve *sv = dibs__http_arg(sh->ex);
    dibs__serve_picture *picture = dibs__serve_look_take(&sv->look, 0);
    bool covers = !picture || dibs__serve_picture_covers(picture, sh->name);

    dibs__serve_picture_drop(picture);
    return covers;
}

static bool answer_shown(const dibs_lease_info *info, void *arg)
{
    shown *sh = arg;

    if (sh->wait_ms > POLL_BLIND_MS && !is_looked_at(sh))
        sh->wait_ms = POLL_BLIND_MS;
    if (sh->wait_ms > 0 && knows_it(sh->ex, info))
        begin_poll(sh, info);
    else
        answer_row(sh->ex, sh->write, sh->name, info, 0);
    return false;
}

void dibs__serve_show_lease(dibs__http_exchange *ex, dibs__serve_row_fn *write)
{
    dibs__serve *sv = dibs__http_arg(ex);
    shown sh = {.ex = ex,
                .write = write,
                .name = dibs__serve_ask_name(ex),
                .at = dibsx_now()};
    dibs_error err = {0};
    dibs_status rc;

    if (!sh.name ||
        !dibs__serve_ask_query(ex, "wait_ms", 0, POLL_MAX_MS, &sh.wait_ms))
        return;
    rc = dibs_lease_show(sv->cl, sh.name, answer_shown, &sh, &err);
    if (rc == DIBS_NOTFOUND)
        (void)answer_shown(NULL, &sh);
    else if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
}

void dibs__serve_get_lock(dibs__http_exchange *ex)
{
    dibs__serve_show_lease(ex, dibs__serve_row_json);
}

/* False: it was refused. */
static bool
read_list(dibs__http_exchange *ex, dibs__serve_list *list, int64_t *tree_open)
{
    const char *sort = dibs__serve_ask_word(ex, "sort"),
               *after = dibs__serve_ask_word(ex, "after");
    const char *state = dibs__serve_ask_word(ex, "state"), *wrong = NULL;
    int64_t limit = 100;

    *list = (dibs__serve_list){.prefix = dibs__serve_ask_word(ex, "prefix"),
                               .q = dibs__serve_ask_word(ex, "q"),
                               .state = ""};
    if (!dibs__serve_ask_query(ex, "limit", 1, DIBS__SERVE_LIMIT_MAX, &limit) ||
        !dibs__serve_ask_query(ex, "tree", 1, DIBS__SERVE_LIMIT_MAX, tree_open))
        return false;
    list->limit = (size_t)limit;
    if (*sort && !dibs__serve_list_order(list, sort))
        wrong = "sort: it is name, waiting, age or left, or - and one of them";
    else if (*tree_open && strcmp(sort, "name") != 0 && *sort)
        wrong = "tree of this order: it goes with sort=name";
    else if (*state && !dibs__serve_list_state(list, state))
        wrong = "state: it is held, wanted, stale or permits";
    else if (*after && !dibs__serve_list_after(list, after))
        wrong = "after: it is the text of \"next\" of the last answer";
    if (wrong)
        (void)dibs__serve_refuse(ex, 400, "invalid", "There is no such ?%s",
                                 wrong);
    return !wrong;
}

/* The items of a list: where they are written, and how old they are. */
typedef struct items {
    dibsx_json *js;
    int64_t since_ms;
} items;

/* As dibs__serve_tree.row. */
static void put_row(void *arg, const dibs_lease_info *row)
{
    const items *it = arg;

    dibsx_json_open(it->js, '{');
    dibs__serve_row_json(it->js, row, it->since_ms, DIBS__SERVE_PARTIES_MAX);
    dibsx_json_close(it->js, '}');
}

/* As dibs__serve_tree.branch. */
static void put_branch(void *arg, const dibs__serve_branch *branch)
{
    const items *it = arg;

    dibsx_json_open(it->js, '{');
    dibsx_json_key(it->js, "branch");
    dibsx_json_bytes(it->js, branch->prefix, branch->prefix_len);
    dibsx_json_pair_uint(it->js, "names", branch->names);
    dibsx_json_pair_uint(it->js, "held", branch->held);
    dibsx_json_pair_uint(it->js, "waiters", branch->waiters);
    dibsx_json_pair_bool(it->js, "open", branch->open);
    dibsx_json_close(it->js, '}');
}

/* Returns how many rows are in what was put. */
static size_t
put_items(items *it, const dibs__serve_list *list, size_t tree_open,
          const dibs_lease_info *const *rows, size_t left)
{
    const dibs__serve_tree tree = {.open_max = tree_open,
                                   .branch = put_branch,
                                   .row = put_row,
                                   .arg = it};
    size_t used = left < list->limit ? left : list->limit;

    dibsx_json_key(it->js, "items");
    dibsx_json_open(it->js, '[');
    if (tree_open)
        used = dibs__serve_tree_walk(&tree, rows, left, strlen(list->prefix),
                                     list->limit);
    for (size_t i = 0; !tree_open && i < used; i++)
        put_row(it, rows[i]);
    dibsx_json_close(it->js, ']');
    return used;
}

static void put_rows(dibs__http_exchange *ex, const dibs__serve_list *list,
                     size_t tree_open, const dibs__serve_picture *picture,
                     int64_t since_ms, const dibs__serve_pick *pick)
{
    dibsx_json *js = dibs__http_answer(ex, 200);
    char cursor[DIBS__SERVE_CURSOR_MAX];
    size_t end = pick->first;
    bool more;

    end += put_items(&(items){js, since_ms}, list, tree_open,
                     pick->rows + pick->first, pick->total - pick->first);
    more = end < pick->total;
    if (more)
        dibs__serve_list_cursor(list, pick->rows[end - 1], cursor);
    dibsx_json_pair_text(js, "next", more ? cursor : NULL);
    dibs__serve_link_next(ex, more ? cursor : NULL);
    dibsx_json_pair_uint(js, "total", pick->total);
    dibsx_json_pair_text(js, "total_is",
                         picture->complete ? "exact" : "at_least");
    dibsx_json_pair_int(js, "as_of_ms", since_ms);
    dibsx_json_pair_bool(js, "complete", picture->complete);
}

dibs__serve_picture *dibs__serve_take_picture(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__serve_picture *picture =
        dibs__serve_look_take(&sv->look, LOOK_WAIT_MS);

    if (picture && picture->rc == DIBS_OK)
        return picture;
    if (picture)
        (void)dibs__serve_fail(ex, &picture->err);
    else
        (void)dibs__serve_refuse(ex, 503, "unavail",
                                 "The store has not answered yet");
    dibs__serve_picture_drop(picture);
    return NULL;
}

void dibs__serve_get_locks(dibs__http_exchange *ex)
{
    dibs__serve_picture *picture;
    dibs__serve_list list;
    dibs__serve_pick pick;
    int64_t tree_open = 0, since_ms;
    dibs_error err = {0};

    if (!read_list(ex, &list, &tree_open))
        return;
    picture = dibs__serve_take_picture(ex);
    if (!picture)
        return;
    since_ms = (dibsx_now() - picture->seen_at) / DIBSX_MS;
    list.seen_ms = dibsx_wall_us() / 1000 - since_ms;
    if (dibs__serve_list_pick(&list, picture->rows, picture->count, &pick,
                              &err) == DIBS_OK)
        put_rows(ex, &list, (size_t)tree_open, picture, since_ms, &pick);
    else
        (void)dibs__serve_fail(ex, &err);
    dibs__serve_pick_fini(&pick);
    dibs__serve_picture_drop(picture);
}
