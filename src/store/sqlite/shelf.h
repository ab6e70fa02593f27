/* shelf.h - a queue of a database as the rule of store/deliver.h sees it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_SHELF_H
#define DIBS_STORE_SQLITE_SHELF_H

#include "base/buf.h"
#include "store/deliver.h"
#include "store/sqlite/db.h"

typedef struct dibs__sqlite_shelf {
    dibs__shelf base;
    dibs__sqlite_conn *cn;
    int64_t q;        /* 0: there is no such queue */
    dibsx_buf answer; /* of each delivery the struct, then its data */
} dibs__sqlite_shelf;

/* Loads the head of a queue; makes the queue if there is none. The caller ends with
 * fini; `err` is borrowed until then. Locks: cn, as all here. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_shelf_init(dibs__sqlite_shelf *shelf,
                                                    dibs__sqlite_conn *cn,
                                                    const char *queue,
                                                    bool make, dibs_error *err);
void dibs__sqlite_shelf_fini(dibs__sqlite_shelf *shelf);

/* Writes back the head and the watermark. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_shelf_save(dibs__sqlite_shelf *shelf);

/* Reads the columns of ITEM_COLUMNS. */
void dibs__sqlite_item_read(sqlite3_stmt *stmt, dibs__item *item);

#endif
