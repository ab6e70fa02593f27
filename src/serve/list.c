/* list.c - a part of a list: its filter, its order, and where it goes on. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/list.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/text.h"
#include "serve/row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAME_MS = 1000 };
#define RANK_MAX (INT64_MAX / 2)

static const char *const orders[] = {"name", "waiting", "age", "left"};

bool dibs__serve_list_order(dibs__serve_list *list, const char *text)
{
    list->falling = *text == '-';
    text += list->falling;
    for (int i = DIBS__SERVE_BY_NAME; i <= DIBS__SERVE_BY_LEFT; i++) {
        if (strcmp(text, orders[i]) != 0)
            continue;
        list->order = (dibs__serve_order)i;
        return true;
    }
    return false;
}

bool dibs__serve_list_state(dibs__serve_list *list, const char *text)
{
    list->state = text;
    return strcmp(text, "held") == 0 || strcmp(text, "wanted") == 0 ||
           strcmp(text, "stale") == 0 || strcmp(text, "permits") == 0;
}

/* The grant of the longest holder, or the first end, both as moments: what is shown is a
 * span, and moves while a client reads page after page. A name without a holder is
 * before all others. */
static int64_t rank_of(const dibs__serve_list *list, const dibs_lease_info *row)
{
    bool by_age = list->order == DIBS__SERVE_BY_AGE;
    int64_t rank = -RANK_MAX;

    if (list->order == DIBS__SERVE_BY_WAITING)
        return (int64_t)row->waiter_count;
    if (list->order == DIBS__SERVE_BY_NAME)
        return 0;
    for (size_t i = 0; i < row->holder_count; i++) {
        const dibs_party *holder = &row->holders[i];
        int64_t own = by_age ? holder->age_ms - list->seen_ms
                             : holder->left_ms + list->seen_ms;

        if (i == 0 || (by_age ? own > rank : own < rank))
            rank = own;
    }
    return rank;
}

/* Names of one rank always rise. */
static int compare(const dibs__serve_list *list, const dibs_lease_info *row,
                   int64_t rank, const char *name)
{
    const int64_t own = rank_of(list, row);
    int order = own < rank ? -1 : own > rank;

    if (list->order == DIBS__SERVE_BY_NAME)
        order = strcmp(row->name, name);
    if (list->falling)
        order = -order;
    return order ? order : strcmp(row->name, name);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
    const dibs_lease_info *const *left = a;
    const dibs_lease_info *const *right = b;

    return compare(arg, *left, rank_of(arg, *right), (*right)->name);
}

bool dibs__serve_list_after(dibs__serve_list *list, const char *text)
{
    char *end;
    size_t len;

    list->after_rank = strtoll(text, &end, 10);
    if (end == text || *end != '.')
        return false;
    /* Sums with it must not overflow; no rank is out of these. */
    if (list->after_rank > RANK_MAX)
        list->after_rank = RANK_MAX;
    if (list->after_rank < -RANK_MAX)
        list->after_rank = -RANK_MAX;
    text = end + 1;
    len = strlen(text);
    if (len == 0 || len % 2 || len / 2 > DIBS_NAME_MAX)
        return false;
    for (size_t i = 0; i < len / 2; i++) {
        int high = dibsx_hex_value(text[2 * i]);
        int low = dibsx_hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0 || high + low == 0)
            return false;
        list->after_name[i] = (char)(high << 4 | low);
    }
    list->after_name[len / 2] = '\0';
    list->begun = true;
    return true;
}

void dibs__serve_list_cursor(const dibs__serve_list *list,
                             const dibs_lease_info *row,
                             char out[DIBS__SERVE_CURSOR_MAX])
{
    char name[2 * DIBS_NAME_MAX + 1];

    dibsx_hex(row->name, strnlen(row->name, DIBS_NAME_MAX), name);
    snprintf(out, DIBS__SERVE_CURSOR_MAX, "%lld.%s",
             (long long)rank_of(list, row), name);
}

/* As a log or the page names it. */
static bool is_named(const dibs_party *party, const char *q)
{
    char who[DIBS_NAME_MAX + 32];

    snprintf(who, sizeof(who), "%s:%lld", party->host, (long long)party->pid);
    return strcasestr(who, q) || strcasestr(party->label, q) ||
           (party->identity && strcasestr(party->identity, q));
}

static bool has_text(const dibs_party *parties, size_t count, const char *q)
{
    for (size_t i = 0; i < count; i++)
        if (is_named(&parties[i], q))
            return true;
    return false;
}

static bool is_in_state(const dibs_lease_info *row, const char *state)
{
    switch (*state) {
    case 'h':
        return row->holder_count > 0;
    case 'w':
        return row->waiter_count > 0;
    case 's':
        return dibs__serve_row_is_stale(row);
    case 'p':
        return row->capacity > 0;
    default:
        return true;
    }
}

static bool fits_list(const dibs__serve_list *list, const dibs_lease_info *row)
{
    return is_in_state(row, list->state) &&
           (!*list->q || strcasestr(row->name, list->q) ||
            has_text(row->holders, row->holder_count, list->q) ||
            has_text(row->waiters, row->waiter_count, list->q));
}

/* Moments of two looks differ a little, all of them alike: a row that is about where it was
 * is the place to go on behind. */
static bool
is_last_row(const dibs__serve_list *list, const dibs_lease_info *row)
{
    int64_t slack = list->order < DIBS__SERVE_BY_AGE ? 0 : SAME_MS, rank;

    if (strcmp(row->name, list->after_name) != 0)
        return false;
    rank = rank_of(list, row);
    return rank >= list->after_rank - slack && rank <= list->after_rank + slack;
}

/* Whether rows of this order are those of the picture, in which names rise. */
static bool is_natural(const dibs__serve_list *list)
{
    return list->order == DIBS__SERVE_BY_NAME && !list->falling;
}

/* The first of rows in the order of names which, in its first `len` bytes, is not before
 * this name; with `behind`, is behind it. */
static size_t find_place(const dibs_lease_info *const *rows, size_t count,
                         const char *name, size_t len, bool behind)
{
    size_t low = 0, high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strncmp(rows[middle]->name, name, len) < (behind ? 1 : 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t find_first(const dibs__serve_list *list,
                         const dibs_lease_info *const *rows, size_t count)
{
    size_t first = 0;

    if (is_natural(list))
        return find_place(rows, count, list->after_name,
                          sizeof(list->after_name), true);
    for (size_t i = 0; i < count; i++)
        if (is_last_row(list, rows[i]))
            return i + 1;
    while (first < count &&
           compare(list, rows[first], list->after_rank, list->after_name) <= 0)
        first++;
    return first;
}

/* Copies those that fit into room of their own, in order. */
static dibs_status
pick_some(const dibs__serve_list *list, dibs__serve_pick *pick, dibs_error *err)
{
    const size_t count = pick->total;

    pick->room = dibsx_zalloc_n(count + 1, sizeof(*pick->room));
    if (!pick->room)
        return dibsx_nomem(err, "the list");
    pick->total = 0;
    for (size_t i = 0; i < count; i++) {
        if (fits_list(list, pick->rows[i]))
            pick->room[pick->total++] = pick->rows[i];
    }
    if (!is_natural(list))
        qsort_r(pick->room, pick->total, sizeof(*pick->room), compare_rows,
                (void *)list);
    pick->rows = pick->room;
    return DIBS_OK;
}

dibs_status dibs__serve_list_pick(const dibs__serve_list *list,
                                  dibs_lease_info *const *rows, size_t count,
                                  dibs__serve_pick *out, dibs_error *err)
{
    const dibs_lease_info *const *all = (const dibs_lease_info *const *)rows;
    const size_t len = strlen(list->prefix);
    const size_t from = find_place(all, count, list->prefix, len, false);
    const size_t to = find_place(all, count, list->prefix, len, true);
    dibs_status rc = DIBS_OK;

    *out = (dibs__serve_pick){.rows = count > 0 ? all + from : all,
                              .total = to - from};
    if (!is_natural(list) || *list->state || *list->q)
        rc = pick_some(list, out, err);
    if (rc == DIBS_OK && list->begun)
        out->first = find_first(list, out->rows, out->total);
    return rc;
}

void dibs__serve_pick_fini(dibs__serve_pick *pick)
{
    dibsx_free(pick->room);
}
