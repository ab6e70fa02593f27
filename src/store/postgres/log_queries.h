/* log_queries.h - the statements of logs, a part of queries.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_LOG_QUERIES_H
#define DIBS_STORE_POSTGRES_LOG_QUERIES_H

#define DIBS__PG_LOG_QUERIES(X)                                                \
    X(LOG_APPEND, "SELECT @schema@.log_append($1,$2,$3,$4,$5,$6,$7,$8,$9)")    \
    X(LOG_TRIM, "SELECT @schema@.log_trim($1,$2,$3)")                          \
    X(LOG_READ, "SELECT position, wall_us, data, prior FROM @schema@.log "     \
                "WHERE topic = $1 AND position > $2 AND prior <> -1 "          \
                "ORDER BY position LIMIT $3")                                  \
    X(LOG_BOUNDS, "SELECT coalesce(h.position, 0), t.position, "               \
                  "coalesce(t.nth - h.nth + 1, 0), "                           \
                  "coalesce(t.total - h.total + length(h.data)::bigint, 0) "   \
                  "FROM (SELECT position, nth, total FROM @schema@.log "       \
                  "WHERE topic = $1 ORDER BY position DESC LIMIT 1) AS t "     \
                  "LEFT JOIN LATERAL (SELECT position, nth, total, data "      \
                  "FROM @schema@.log WHERE topic = $1 AND prior <> -1 "        \
                  "ORDER BY position LIMIT 1) AS h ON true")                   \
    X(LOGS,                                                                    \
      "WITH RECURSIVE t(topic) AS ("                                           \
      "(SELECT topic FROM @schema@.log WHERE topic >= $1 "                     \
      "ORDER BY topic LIMIT 1) UNION ALL "                                     \
      "SELECT (SELECT l.topic FROM @schema@.log AS l WHERE l.topic > t.topic " \
      "ORDER BY l.topic LIMIT 1) FROM t WHERE t.topic IS NOT NULL) "           \
      "SELECT coalesce(h.position, 0), z.position, "                           \
      "coalesce(z.nth - h.nth + 1, 0), "                                       \
      "coalesce(z.total - h.total + length(h.data)::bigint, 0), t.topic "      \
      "FROM t CROSS JOIN LATERAL (SELECT position, nth, total "                \
      "FROM @schema@.log AS l WHERE l.topic = t.topic "                        \
      "ORDER BY l.position DESC LIMIT 1) AS z "                                \
      "LEFT JOIN LATERAL (SELECT position, nth, total, data "                  \
      "FROM @schema@.log AS l WHERE l.topic = t.topic AND l.prior <> -1 "      \
      "ORDER BY l.position LIMIT 1) AS h ON true LIMIT $2::bigint")

#endif
