/* verb_top.c - top: the locks in use, in a table that is drawn again and again.
 *
 * Looks at the store at intervals and keeps the rows of the last look, so that a key
 * or another size of the terminal needs no look. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "cli/options.h"
#include "cli/poll_verb.h"
#include "cli/print.h"
#include "cli/screen.h"
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 1000000,
    TEXT_MAX = 16 * 1024,
    DRAWING_MAX = 4 * 1024 * 1024,
    NARROWEST = 12 /* columns of a name or a party on a small screen */
};

typedef enum order { BY_WAITING, BY_LEFT, BY_HELD, BY_NAME, ORDERS } order;

static const char *const order_names[ORDERS] = {"waiting", "left", "held",
                                                "name"};

/* A holder with its name; or a name that has waiters only. */
typedef struct row {
    char
        *text; /* ours: name, holder, mode and next waiter, each with its NUL */
    int64_t held_ms; /* -1: no holder */
    int64_t left_ms;
    const char *mark; /* of what is left: "", " stale", " closed" */
    size_t waiters;
    int64_t waited_ms; /* the longest of them */
    size_t place;      /* in the order of the store, which is by name */
} row;

typedef struct top {
    const dibs__command *cmd;
    dibs__screen screen;
    bool live;
    int64_t looks_left; /* -1: without end */
    order by;
    row *rows;
    size_t count;
    size_t room;
    size_t held;
    size_t waiting;
    size_t stale;
    const char *url;
    dibs_error failure;   /* of the last look */
    dibs__report *report; /* for JSON: its list of locks is open */
    bool full;            /* there was no room for a row */
} top;

static void drop_rows(top *tp)
{
    for (size_t i = 0; i < tp->count; i++)
        dibsx_free(tp->rows[i].text);
    tp->count = tp->held = tp->waiting = tp->stale = 0;
}

static bool add_row(top *tp, row item, dibsx_buf *text)
{
    size_t room = tp->room ? tp->room * 2 : 64;
    row *rows = tp->rows;

    if (tp->count == tp->room) {
        rows =
            room <= ROWS_MAX ? dibsx_realloc_n(rows, room, sizeof(row)) : NULL;
        if (!rows)
            return false;
        tp->rows = rows;
        tp->room = room;
    }
    item.text = dibsx_buf_take(text);
    item.place = tp->count;
    if (item.text)
        rows[tp->count++] = item;
    return item.text != NULL;
}

static row row_of(const dibs_lease_info *info, const dibs_party *holder)
{
    row item = {.held_ms = -1, .mark = "", .waiters = info->waiter_count};

    if (holder) {
        item.held_ms = holder->age_ms;
        item.left_ms = holder->left_ms;
        item.mark = holder->stale ? " stale" : holder->left ? " closed" : "";
    }
    for (size_t i = 0; i < info->waiter_count; i++) {
        if (item.waited_ms < info->waiters[i].age_ms)
            item.waited_ms = info->waiters[i].age_ms;
    }
    return item;
}

static bool
add_holder(top *tp, const dibs_lease_info *info, const dibs_party *holder)
{
    dibsx_buf text;
    bool added;

    dibsx_buf_init(&text, TEXT_MAX);
    dibsx_buf_puts(&text, info->name);
    dibsx_buf_putc(&text, '\0');
    if (holder)
        dibs__party_text(&text, holder);
    dibsx_buf_putc(&text, '\0');
    if (holder)
        dibs__mode_text(&text, holder, info->capacity);
    dibsx_buf_putc(&text, '\0');
    if (info->waiter_count > 0)
        dibs__party_text(&text, &info->waiters[0]);
    added = add_row(tp, row_of(info, holder), &text);
    dibsx_buf_fini(&text);
    return added;
}

static void count_parties(top *tp, const dibs_lease_info *info)
{
    for (size_t i = 0; i < info->holder_count; i++) {
        tp->held += !info->holders[i].left;
        tp->stale += info->holders[i].stale != NULL;
    }
    tp->waiting += info->waiter_count;
}

static bool add_lease(const dibs_lease_info *info, void *arg)
{
    top *tp = arg;

    count_parties(tp, info);
    if (tp->report) {
        dibsx_json_open(&tp->report->js, '{');
        dibs__json_lease(&tp->report->js, info);
        dibsx_json_close(&tp->report->js, '}');
        return true;
    }
    if (info->holder_count == 0)
        tp->full = !add_holder(tp, info, NULL);
    for (size_t i = 0; i < info->holder_count && !tp->full; i++)
        tp->full = !add_holder(tp, info, &info->holders[i]);
    return !tp->full;
}

static dibs_status list_all(top *tp, dibs_client *cl, dibs_error *err)
{
    dibs_status rc;

    drop_rows(tp);
    tp->full = false;
    rc = dibs_lease_list(cl, dibs__operands(tp->cmd)[0], add_lease, tp, err);
    if (rc == DIBS_OK && tp->full)
        rc = dibsx_fail(err, DIBS_NOMEM,
                        "there are too many locks to show; ask for names with "
                        "a longer beginning");
    return rc;
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
    return compare((int64_t)((const row *)a)->place,
                   (int64_t)((const row *)b)->place);
}

static int by_waiting(const void *a, const void *b)
{
    int more = compare((int64_t)((const row *)b)->waiters,
                       (int64_t)((const row *)a)->waiters);

    return more ? more : by_place(a, b);
}

static int by_left(const void *a, const void *b)
{
    int less = compare(((const row *)a)->left_ms, ((const row *)b)->left_ms);

    return less ? less : by_place(a, b);
}

static int by_held(const void *a, const void *b)
{
    int more = compare(((const row *)b)->held_ms, ((const row *)a)->held_ms);

    return more ? more : by_place(a, b);
}

static void sort_rows(top *tp)
{
    static int (*const orders[ORDERS])(const void *, const void *) = {
        [BY_WAITING] = by_waiting,
        [BY_LEFT] = by_left,
        [BY_HELD] = by_held,
        [BY_NAME] = by_place,
    };

    if (tp->count > 0)
        qsort(tp->rows, tp->count, sizeof(row), orders[tp->by]);
}

/* A cell of at most so many columns. */
static void cell_cut(dibs__table *table, const char *text, size_t columns)
{
    dibsx_buf cut;

    dibsx_buf_init(&cut, TEXT_MAX);
    dibs__cut(&cut, text, columns);
    dibs__table_cell(table, dibsx_buf_text(&cut));
    dibsx_buf_fini(&cut);
}

/* One row; a name or a party takes `widest` columns at most. */
static void put_row(dibs__table *table, const row *item, size_t widest)
{
    const char *name = item->text, *holder = name + strlen(name) + 1;
    const char *mode = holder + strlen(holder) + 1;
    const char *next = mode + strlen(mode) + 1;
    char left[32] = "";

    cell_cut(table, name, widest);
    cell_cut(table, holder, widest);
    dibs__table_cell(table, mode);
    if (item->held_ms >= 0) {
        dibs__table_span(table, item->held_ms);
        dibsx_duration_text(item->left_ms, left, sizeof(left));
        dibs__table_cellf(table, "%s%s", left, item->mark);
    } else {
        dibs__table_cell(table, "");
        dibs__table_cell(table, "");
    }
    dibs__table_cellf(table, "%zu", item->waiters);
    if (item->waiters > 0)
        dibs__table_span(table, item->waited_ms);
    else
        dibs__table_cell(table, "");
    cell_cut(table, next, widest);
}

static void
make_table(const top *tp, dibs__table *table, size_t rows, size_t widest)
{
    static const char *const heads[] = {"NAME", "HOLDER",  "MODE",   "HELD",
                                        "LEFT", "WAITING", "WAITED", "NEXT"};

    dibs__table_init(table, 8, heads);
    for (size_t i = 0; i < tp->count && i < rows; i++)
        put_row(table, &tp->rows[i], widest);
}

/* The line above the table. */
static void put_summary(const top *tp, size_t columns, dibsx_buf *out)
{
    const dibs__colours *colours = dibs__colours_of(tp->cmd);
    char time[40];
    dibsx_buf line;

    dibs__wall_text(dibsx_wall_us(), time, sizeof(time));
    dibsx_buf_init(&line, TEXT_MAX);
    dibsx_buf_printf(&line, "%.8s  %zu held, %zu waiting, %zu stale  by %s  ",
                     time + strlen("2025-01-31T"), tp->held, tp->waiting,
                     tp->stale, order_names[tp->by]);
    dibsx_buf_puts(&line, "(s sorts, space looks, q quits)  ");
    dibs__clean(&line, tp->url);
    dibs__cut(out, dibsx_buf_text(&line), columns);
    dibsx_buf_reset(&line);
    dibs__clean(&line, tp->failure.message);
    dibsx_buf_printf(out, "\n%s", colours->red);
    dibs__cut(out, dibsx_buf_text(&line), columns);
    dibsx_buf_printf(out, "%s\n", colours->off);
    dibsx_buf_fini(&line);
}

/* Two lines and the heads above the rows; the last line says how many are missing. */
static bool draw(top *tp)
{
    size_t rows, columns, room;
    dibs__table table;
    dibsx_buf lines;
    bool drawn;

    dibs__screen_size(&rows, &columns);
    room = rows > 3 ? rows - 3 : 0;
    if (tp->count > room && room > 0)
        room--;
    dibsx_buf_init(&lines, DRAWING_MAX);
    put_summary(tp, columns, &lines);
    make_table(tp, &table, room,
               columns / 5 > NARROWEST ? columns / 5 : NARROWEST);
    if (dibsx_buf_ok(&table.cells))
        dibs__table_text(&table, dibs__colours_of(tp->cmd), room + 1, columns,
                         &lines);
    if (tp->count > room && rows > 4)
        dibsx_buf_printf(&lines, "and %zu more\n", tp->count - room);
    dibs__table_fini(&table);
    drawn = dibs__screen_draw(&tp->screen, dibsx_buf_text(&lines));
    dibsx_buf_fini(&lines);
    return drawn;
}

static int print_table(const top *tp)
{
    dibs__table table;
    int code;

    make_table(tp, &table, SIZE_MAX, SIZE_MAX);
    code = dibs__table_print(&table, dibs__colours_of(tp->cmd));
    dibs__table_fini(&table);
    return code;
}

static int
print_json(top *tp, dibs_client *cl, dibs__report *report, dibs_error *err)
{
    char time[40];

    dibs__wall_text(dibsx_wall_us(), time, sizeof(time));
    dibs__report_begin(report);
    dibsx_json_pair_text(&report->js, "time", time);
    dibsx_json_key(&report->js, "locks");
    dibsx_json_open(&report->js, '[');
    tp->report = report;
    if (list_all(tp, cl, err) != DIBS_OK) {
        dibsx_buf_fini(&report->buf);
        return dibs__cli_fail(tp->cmd, err);
    }
    dibsx_json_close(&report->js, ']');
    dibsx_json_pair_uint(&report->js, "held", tp->held);
    dibsx_json_pair_uint(&report->js, "waiting", tp->waiting);
    dibsx_json_pair_uint(&report->js, "stale", tp->stale);
    return dibs__report_end(report);
}

/* A store that is away leaves the rows out and says why, until it is back. */
static int look_live(top *tp, dibs_client *cl)
{
    dibs_error err = {0};

    tp->failure = err;
    if (list_all(tp, cl, &err) != DIBS_OK) {
        if (!err.retriable) {
            dibs__screen_leave(&tp->screen);
            return dibs__cli_fail(tp->cmd, &err);
        }
        drop_rows(tp);
        tp->failure = err;
    }
    sort_rows(tp);
    if (draw(tp))
        return 0;
    dibs__cli_say("cannot draw the table: the terminal does not take it");
    return DIBS__EXIT_INTERNAL;
}

static int look_plain(top *tp, dibs_client *cl)
{
    dibs__report report;
    dibs_error err = {0};

    if (dibs__opt_flag(tp->cmd, "json"))
        return print_json(tp, cl, &report, &err);
    if (list_all(tp, cl, &err) != DIBS_OK)
        return dibs__cli_fail(tp->cmd, &err);
    sort_rows(tp);
    return print_table(tp);
}

static int look(const dibs__command *cmd, dibs_client *cl, void *arg)
{
    top *tp = arg;
    int code;

    (void)cmd;
    tp->url = dibs_url(cl);
    code = tp->live ? look_live(tp, cl) : look_plain(tp, cl);
    if (!code && tp->looks_left > 0 && --tp->looks_left == 0)
        code = DIBS__POLL_ENOUGH;
    return code;
}

/* Acts on a key. 0 to go on resting, 1 to look, or DIBS__POLL_ENOUGH. */
static int take_key(top *tp, int key)
{
    if (key == 'q' || key == 'Q')
        return DIBS__POLL_ENOUGH;
    if (key == 's') {
        tp->by = (tp->by + 1) % ORDERS;
        sort_rows(tp);
        (void)draw(tp);
    }
    return key == ' ';
}

static int rest(const dibs__signals *sig, int64_t interval_ms, void *arg)
{
    top *tp = arg;
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), interval_ms);
    int value = 0, done = 0;

    if (!tp->live)
        return dibs__poll_rest(sig, interval_ms, arg);
    while (!done) {
        switch (dibs__screen_rest(&tp->screen, sig,
                                  dibsx_wait_ms(until, dibsx_now()), &value)) {
        case DIBS__SCREEN_TIME:
            return 0;
        case DIBS__SCREEN_SIGNAL:
            return value;
        case DIBS__SCREEN_DRAW:
            (void)draw(tp);
            break;
        case DIBS__SCREEN_KEY:
            done = take_key(tp, value);
            break;
        }
    }
    return done == DIBS__POLL_ENOUGH ? done : 0;
}

static order order_of(const dibs__command *cmd)
{
    order by = BY_WAITING;

    while (strcmp(order_names[by], dibs__opt_text(cmd, "sort")) != 0)
        by++;
    return by;
}

static int show_top(const dibs__command *cmd)
{
    bool plain = dibs__opt_flag(cmd, "once") || dibs__opt_flag(cmd, "json") ||
                 !dibs__screen_fit();
    top tp = {.cmd = cmd, .by = order_of(cmd), .live = !plain};
    int code;

    tp.looks_left = dibs__opt_int(cmd, "iterations");
    if (dibs__opt_flag(cmd, "once") || (plain && tp.looks_left < 0))
        tp.looks_left = 1;
    dibs__screen_init(&tp.screen);
    code = dibs__poll_verb_resting(cmd, look, rest, &tp);
    dibs__screen_fini(&tp.screen);
    drop_rows(&tp);
    dibsx_free(tp.rows);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_INTERVAL, .aliases = "delay", .letter = 'd', .initial = "1s",
     .help = "How often to look."},
    {DIBS__ROW_INT("iterations", "N", 1, INT32_MAX), .letter = 'n',
     .otherwise = "without end on a terminal, once elsewhere",
     .help = "End after this many looks."},
    {.name = "once", .help = "Print one table and end, on a terminal too."},
    {DIBS__ROW_CHOICE("sort", "BY", "waiting|left|held|name"),
     .initial = "waiting",
     .help = "The lock that comes first: the one with the most waiters, with "
             "the least left of its lease, held longest, or by name."},
};

const dibs__option_rows dibs__options_top = DIBS__OPTION_ROWS("top", options);

const dibs__verb dibs__verb_top = {
    .name = "top",
    .operands = "[PREFIX]",
    .summary = "show the locks in use in a live table",
    .about =
        "One row per holder: how long it has held, how much of its lease is "
        "left (stale: the holder seems to be gone; closed: released, and kept "
        "closed for --hold-min), the number of waiters, the longest wait, and "
        "the next in the queue. PREFIX shows only names that begin with it.\n"
        "Keys: q quits, s sorts by the next column (--sort), space looks at "
        "once. Off a terminal, and with --once, one table is printed. With "
        "--json each look is one object, with the locks in the order of their "
        "names.\n",
    .examples = "The leases that end soonest, twice a second:\n"
                "  dibs top -d 500ms --sort left\n"
                "Once, for a log:\n"
                "  dibs top --once >>locks.log\n",
    .exits = "0 ended by q, or after the last look\n"
             "128+N ended by signal N\n",
    .options = "json",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = show_top,
};
