/* queue_queries.h - the statements of queues, a part of queries.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_QUEUE_QUERIES_H
#define DIBS_STORE_POSTGRES_QUEUE_QUERIES_H

#define DIBS__PG_QUEUE_QUERIES(X)                                              \
    X(PUSH, "SELECT @schema@.push($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)")            \
    X(RESERVE, "SELECT unnest(@schema@.reserve($1,$2,$3,$4,$5,$6,$7,$8,$9,"    \
               "$10,$11,$12,$13,$14))")                                        \
    X(TEND, "SELECT @schema@.tend($1,$2,$3)")                                  \
    X(LEAVE, "SELECT @schema@.leave($1,$2)")                                   \
    X(QUEUE_SET, "SELECT @schema@.queue_set($1,$2,$3,$4,$5,$6,$7,$8,$9)")      \
    X(QUEUE_STATS, "SELECT @schema@.queue_stats($1)")                          \
    X(QUEUE_PURGE, "SELECT @schema@.queue_purge($1,$2,$3)")                    \
    X(QUEUE_REDRIVE, "SELECT @schema@.queue_redrive($1,$2,$3)")                \
    X(QUEUE_REMOVE, "SELECT @schema@.queue_remove($1)")                        \
    X(QUEUE_LIST, "SELECT * FROM @schema@.queue_list($1,$2,$3)")               \
    X(QUEUE_KNOWN,                                                             \
      "SELECT q.known::integer::bigint FROM @schema@.queue_known($1) "         \
      "AS q(known)")                                                           \
    X(PEEK,                                                                    \
      "SELECT i.id, i.priority::bigint, i.attempts, i.lost, "                  \
      "CASE WHEN i.due_us > 0 THEN greatest(i.due_us - @schema@.now_us() + "   \
      "999, 0) / 1000 ELSE 0 END, i.lane, "                                    \
      "CASE WHEN i.lane <> 0 THEN i.fence ELSE 0 END, i.to_worker, i.dedup, "  \
      "i.reason, d.data FROM @schema@.queue_peek($1,$2,$3,$4) AS o "           \
      "JOIN @schema@.item AS i ON i.id = o.id "                                \
      "JOIN @schema@.item_data AS d ON d.id = o.id "                           \
      "WHERE o.before < 8388608 ORDER BY o.n")                                 \
    X(PEEK_DEAD,                                                               \
      "SELECT d.id, d.priority::bigint, d.attempts, d.lost, d.wall_us, "       \
      "d.to_worker, d.dedup, d.reason, d.data FROM (SELECT k.position, "       \
      "sum(k.len) OVER (ORDER BY k.position) - k.len AS before FROM (SELECT "  \
      "position, len FROM @schema@.dead WHERE queue = $1 ORDER BY position "   \
      "LIMIT $2 OFFSET $3) AS k) AS o JOIN @schema@.dead AS d ON "             \
      "d.queue = $1 AND d.position = o.position WHERE o.before < 8388608 "     \
      "ORDER BY d.position")                                                   \
    X(PEEK_DONE, "SELECT * FROM @schema@.peek_done($1,$2,$3)")

#endif
