/* query.h - the statements of this store. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_QUERY_H
#define DIBS_STORE_SQLITE_QUERY_H

/* Prepared when first used; their text is in conn.c. */
typedef enum dibs__sqlite_query {
    DIBS__SQL_BEGIN,
    DIBS__SQL_COMMIT,
    DIBS__SQL_ROLLBACK,
    DIBS__SQL_WATERMARK,
    DIBS__SQL_WATERMARK_SET,
    DIBS__SQL_META,
    DIBS__SQL_META_SET,
    DIBS__SQL_PARTY_CLEAR,
    DIBS__SQL_PARTY_ROLL,
    DIBS__SQL_PARTY_PUT,
    DIBS__SQL_PARTY_DROP,
    DIBS__SQL_PARTY_PAGE,
    DIBS__SQL_PARTY_SWEEP,
    DIBS__SQL_PARTY_SWEPT,
    DIBS__SQL_VALUE,
    DIBS__SQL_VALUE_HEAD,
    DIBS__SQL_VALUE_PUT,
    DIBS__SQL_VALUE_DROP,
    DIBS__SQL_VALUE_PAGE,
    DIBS__SQL_VALUE_SWEEP,
    DIBS__SQL_LOG_PUT,
    DIBS__SQL_LOG_TRIM,
    DIBS__SQL_LOG_PAGE,
    DIBS__SQL_EAR_PUT,
    DIBS__SQL_EAR_DROP,
    DIBS__SQL_EAR_LIST,
    DIBS__SQL_EAR_SWEEP,
    DIBS__SQL_EAR_CLEAR,
    DIBS__SQL_RATE,
    DIBS__SQL_RATE_PUT,
    DIBS__SQL_RATE_SWEEP,
    DIBS__SQL_RATE_CLEAR,
    DIBS__SQL_COUNT
} dibs__sqlite_query;

#endif
