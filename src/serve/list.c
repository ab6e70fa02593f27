/* list.c - a part of a list: its filter, its order, and where it goes on. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/list.h"
#include "base/rand.h"
#include "base/text.h"
#include "serve/row.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The longest holder's age, or the least that a holder has left. */
static int64_t rank_of(const dibs__serve_list *list, const dibs_lease_info *row)
{
    int64_t rank = 0;

    if (list->order == DIBS__SERVE_BY_WAITING)
        return (int64_t)row->waiter_count;
    for (size_t i = 0; i < row->holder_count; i++) {
        const dibs_party *holder = &row->holders[i];

        if (list->order == DIBS__SERVE_BY_AGE && holder->age_ms > rank)
            rank = holder->age_ms;
        if (list->order == DIBS__SERVE_BY_LEFT &&
            (i == 0 || holder->left_ms < rank))
            rank = holder->left_ms;
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

static bool has_text(const dibs_party *parties, size_t count, const char *q)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(parties[i].host, q) || strcasestr(parties[i].label, q))
            return true;
    }
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
    return strncmp(row->name, list->prefix, strlen(list->prefix)) == 0 &&
           is_in_state(row, list->state) &&
           (!*list->q || strcasestr(row->name, list->q) ||
            has_text(row->holders, row->holder_count, list->q) ||
            has_text(row->waiters, row->waiter_count, list->q));
}

size_t
dibs__serve_list_pick(const dibs__serve_list *list,
                      dibs_lease_info *const *rows, size_t count,
                      const dibs_lease_info **out, size_t *total, size_t *first)
{
    size_t left;

    *total = *first = 0;
    for (size_t i = 0; i < count; i++) {
        if (fits_list(list, rows[i]))
            out[(*total)++] = rows[i];
    }
    /* Pictures are in the order of names. */
    if (list->order != DIBS__SERVE_BY_NAME || list->falling)
        qsort_r(out, *total, sizeof(out[0]), compare_rows, (void *)list);
    while (list->begun && *first < *total &&
           compare(list, out[*first], list->after_rank, list->after_name) <= 0)
        (*first)++;
    left = *total - *first;
    return left < list->limit ? left : list->limit;
}
