/* list.h - a part of a list: its filter, its order, and where it goes on. Pure.
 *
 * A cursor names the last row that was shown by its rank in the order and its name,
 * so that rows which come and go meanwhile do not shift the rest. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LIST_H
#define DIBS_SERVE_LIST_H

#include <dibs/dibs.h>

enum { DIBS__SERVE_LIMIT_MAX = 1000, DIBS__SERVE_CURSOR_MAX = 640 };

typedef enum dibs__serve_order {
    DIBS__SERVE_BY_NAME,
    DIBS__SERVE_BY_WAITING,
    DIBS__SERVE_BY_AGE,
    DIBS__SERVE_BY_LEFT
} dibs__serve_order;

typedef struct dibs__serve_list {
    size_t limit;
    const char *prefix; /* "": all */
    const char *q;      /* in name, host or label; "": all */
    const char *state;  /* "held", "wanted", "stale", "permits"; "": all */
    dibs__serve_order order;
    bool falling;
    int64_t seen_ms;    /* when the rows were seen, on the wall clock */
    bool begun;         /* there is a cursor: */
    int64_t after_rank; /* ... the row before the first */
    char after_name[DIBS_NAME_MAX + 1];
} dibs__serve_list;

/* "-waiting". False: there is no such order. */
DIBS_MUST_CHECK bool
dibs__serve_list_order(dibs__serve_list *list, const char *text);
DIBS_MUST_CHECK bool
dibs__serve_list_state(dibs__serve_list *list, const char *text);

/* Reads a cursor. False: it is none of this order. */
DIBS_MUST_CHECK bool
dibs__serve_list_after(dibs__serve_list *list, const char *text);
void dibs__serve_list_cursor(const dibs__serve_list *list,
                             const dibs_lease_info *row,
                             char out[DIBS__SERVE_CURSOR_MAX]);

/* The rows that fit, in order: they are the picture's own as long as its order serves. */
typedef struct dibs__serve_pick {
    const dibs_lease_info *const *rows;
    size_t total;
    size_t first;                 /* of those that are shown */
    const dibs_lease_info **room; /* for an order of their own, or NULL */
} dibs__serve_pick;

/* From rows in the order of their names, which must outlive the pick. DIBS_NOMEM: there
 * is no room. Free with dibs__serve_pick_fini() in any case. */
DIBS_MUST_CHECK dibs_status dibs__serve_list_pick(const dibs__serve_list *list,
                                                  dibs_lease_info *const *rows,
                                                  size_t count,
                                                  dibs__serve_pick *out,
                                                  dibs_error *err);
void dibs__serve_pick_fini(dibs__serve_pick *pick);

#endif
