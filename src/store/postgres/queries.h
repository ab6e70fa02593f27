/* queries.h - every statement of this store, with @schema@ in place of the schema. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_QUERIES_H
#define DIBS_STORE_POSTGRES_QUERIES_H

#include "store/postgres/log_queries.h"
#include "store/postgres/queue_queries.h"

/* A page of a list begins at $1, or behind it. The comparison with $1 that stands alone
 * is what the index looks up; OFFSET 0 has a view looked up name by name. */

/* The columns that inspect.c reads. */
#define DIBS__PG_PARTY                                                         \
    "name, owner, role::text, mode::text, permits, capacity, "                 \
    "priority::bigint, seq, fence, claim::integer::bigint, ttl_ms, since_us, " \
    "until_us, who, @schema@.now_us()"

#define DIBS__PG_QUERY_LIST(X)                                                 \
    X(ACQUIRE, "SELECT @schema@.acquire($1,$2,$7,$8,$9,$3,$10,$4,$5,$6)")      \
    X(ACQUIRE_PLAIN, "SELECT @schema@.acquire_plain($1,$2,$3,$4,$5,$6)")       \
    X(RENEW, "SELECT @schema@.renew($1,$2,$3,$4,$5)")                          \
    X(RELEASE, "SELECT @schema@.release($1,$2,$3,$4)")                         \
    X(RELEASE_PLAIN, "SELECT @schema@.release_plain($1,$2)")                   \
    X(FEW, "SELECT @schema@.few($1,$2,$3,$4,$5,$6)")                           \
    X(BATCHED,                                                                 \
      "SELECT unnest(@schema@.batch($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11))")     \
    X(ACQUIRE_ALL, "SELECT @schema@.acquire_all($1,$2,$3,$4,$5,$6,$7)")        \
    X(CONVERT, "SELECT @schema@.turn($1,$2,$3,$4,$5,$6)")                      \
    X(REVOKE, "SELECT @schema@.take($1,$2)")                                   \
    X(YIELD, "SELECT @schema@.yield($1,$2)")                                   \
    X(INSPECT, "SELECT " DIBS__PG_PARTY " FROM @schema@.lease "                \
               "WHERE name = $1 ORDER BY slot LIMIT 8192")                     \
    X(LIST,                                                                    \
      "SELECT " DIBS__PG_PARTY " FROM ("                                       \
      "SELECT r.name AS k FROM @schema@.roll AS r WHERE r.name >= $1 "         \
      "AND (r.name > $1 OR $2::integer = 1) AND (r.owner <> '' OR "            \
      "EXISTS (SELECT FROM @schema@.party AS p WHERE p.name = r.name)) "       \
      "ORDER BY r.name LIMIT 64) AS o CROSS JOIN LATERAL (SELECT * FROM "      \
      "@schema@.lease AS l WHERE l.name = o.k OFFSET 0) AS l "                 \
      "ORDER BY name, slot LIMIT 8192")                                        \
    X(NOW, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint") \
    X(VALUE_GET,                                                               \
      "SELECT version, coalesce((until_us - @schema@.now_us() + 999) / 1000, " \
      "-1), data FROM @schema@.value WHERE key = $1 AND "                      \
      "coalesce(until_us > @schema@.now_us(), true)")                          \
    X(VALUE_PUT, "SELECT @schema@.value_put($1,$2,$3,$4,$5)")                  \
    X(VALUE_ADD, "SELECT @schema@.value_add($1,$2)")                           \
    X(VALUE_DEL, "SELECT @schema@.value_del($1,$2)")                           \
    X(VALUE_LIST,                                                              \
      "SELECT version, coalesce((until_us - @schema@.now_us() + 999) / 1000, " \
      "-1), length(data)::bigint, key FROM @schema@.value WHERE key >= $1 "    \
      "AND (key > $1 OR $2::integer = 1) AND "                                 \
      "coalesce(until_us > @schema@.now_us(), true) ORDER BY key LIMIT 256")   \
    X(VALUE_HEADS,                                                             \
      "SELECT coalesce(v.version, 0), coalesce((v.until_us - "                 \
      "@schema@.now_us() + 999) / 1000, -1) FROM unnest($1::text[]) WITH "     \
      "ORDINALITY AS k(key, place) LEFT JOIN @schema@.value AS v ON v.key = "  \
      "k.key AND coalesce(v.until_us > @schema@.now_us(), true) "              \
      "ORDER BY k.place")                                                      \
    X(COMMIT, "SELECT unnest(@schema@.value_commit($1,$2,$3,$4,$5,$6,$7,$8,"   \
              "$9,$10,$11,$12))")                                              \
    X(GET_MANY,                                                                \
      "SELECT coalesce(v.version, 0), coalesce((v.until_us - n.at_us + 999) "  \
      "/ 1000, -1), coalesce(v.data, '') FROM (SELECT @schema@.now_us() AS "   \
      "at_us) AS n CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS k(key, "   \
      "place) LEFT JOIN @schema@.value AS v ON v.key = k.key AND "             \
      "coalesce(v.until_us > n.at_us, true) ORDER BY k.place")                 \
    X(FIRST,                                                                   \
      "SELECT l.place, coalesce(e.at, -1), n.at_us, coalesce(e.member, '') "   \
      "FROM (SELECT @schema@.now_us() AS at_us) AS n CROSS JOIN "              \
      "unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH "     \
      "ORDINALITY AS l(name, low, skip, few, place) LEFT JOIN LATERAL "        \
      "(SELECT i.at, i.member FROM @schema@.entry AS i WHERE i.name = l.name " \
      "AND i.at >= l.low AND i.at >= 0 ORDER BY i.at, i.member "               \
      "OFFSET l.skip LIMIT l.few) AS e ON true "                               \
      "ORDER BY l.place, e.at, e.member")                                      \
    X(TOPIC_EAR, "SELECT @schema@.topic_ear($1,$2,$3,$4)")                     \
    X(TOPIC_TELL, "SELECT @schema@.topic_tell($1,$2)")                         \
    X(TOPIC_SAY,                                                               \
      "SELECT coalesce(max(pg_notify('dibs_' || bell, address || "             \
      "' said ' || encode($2::bytea, 'hex'))::text), '') || '0' FROM "         \
      "@schema@.ear WHERE topic = $1 AND until_us > @schema@.now_us()")        \
    X(METER, "SELECT @schema@.meter($1,$2,$3,$4,$5,$6,$7)")                    \
    X(RATES, "SELECT r.name, n.at_us, r.tat_us, r.last_us, r.rest, r.count, "  \
             "r.period_us FROM @schema@.rate AS r "                            \
             "CROSS JOIN (SELECT @schema@.now_us() AS at_us) AS n "            \
             "WHERE r.name >= $1 AND (r.name > $1 OR $2::bigint = 1) AND "     \
             "r.tat_us - greatest(0, r.last_us - n.at_us) >= n.at_us "         \
             "ORDER BY r.name LIMIT $3::bigint")                               \
    X(RATE_DRAW, "SELECT @schema@.rate_draw($1,$2,$3,$4,$5,$6,$7)")            \
    X(MEET, "SELECT @schema@.meet($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)")        \
    X(ROLL_CALL,                                                               \
      "SELECT r.kind, r.gen, r.need, r.here, coalesce(s.fence, 0), "           \
      "(coalesce(s.kind, 0) = 3 OR coalesce(s.kind, 0) = 2 AND "               \
      "s.rec = r.gen)::integer::bigint, (coalesce(s.kind, 0) > 0 AND "         \
      "coalesce(s.counts_us, 0) <= n.at_us)::integer::bigint, "                \
      "(least(coalesce(s.until_us, 0), r.until_us) - n.at_us + 999) / 1000, "  \
      "coalesce(s.id, ''), coalesce(s.who, '') FROM @schema@.roster AS r "     \
      "CROSS JOIN (SELECT @schema@.now_us() AS at_us) AS n "                   \
      "LEFT JOIN @schema@.seat AS s ON s.name = r.name AND "                   \
      "s.until_us > n.at_us WHERE r.name = $1 AND r.gen <> 0 AND "             \
      "(r.kind <> 2 OR r.until_us > n.at_us) "                                 \
      "ORDER BY s.fence, s.id LIMIT 100000")                                   \
    X(ROSTERS,                                                                 \
      "SELECT r.gen, r.need, r.here, s.live, s.counts, r.name "                \
      "FROM @schema@.roster AS r "                                             \
      "CROSS JOIN (SELECT @schema@.now_us() AS at_us) AS n "                   \
      "CROSS JOIN LATERAL (SELECT count(*) AS live, "                          \
      "count(*) FILTER (WHERE t.kind > 0 AND t.counts_us <= n.at_us) "         \
      "AS counts FROM @schema@.seat AS t WHERE t.name = r.name AND "           \
      "t.until_us > n.at_us AND r.kind <> 2) AS s "                            \
      "WHERE r.name >= $1 AND (r.name > $1 OR $2::bigint = 1) AND "            \
      "r.kind = $3::bigint AND r.gen <> 0 AND "                                \
      "(s.live > 0 OR r.kind = 2 AND r.until_us > n.at_us) "                   \
      "ORDER BY r.name LIMIT $4::bigint")                                      \
    DIBS__PG_QUEUE_QUERIES(X)                                                  \
    DIBS__PG_LOG_QUERIES(X)                                                    \
    X(AUDIT,                                                                   \
      "SELECT current_setting('server_version'), current_user::text, "         \
      "current_setting('synchronous_commit'), current_setting('fsync'), "      \
      "current_setting('full_page_writes'), current_setting("                  \
      "'synchronous_standby_names'), (SELECT count(*) FROM "                   \
      "pg_stat_replication), pg_is_in_recovery()::integer::bigint, "           \
      "(SELECT rolsuper::integer::bigint FROM pg_roles "                       \
      "WHERE rolname = current_user), "                                        \
      "(SELECT version::bigint FROM @schema@.meta), "                          \
      "pg_encoding_to_char((SELECT encoding FROM pg_database "                 \
      "WHERE datname = current_database()))::text, "                           \
      "(SELECT coalesce(max(extract(epoch FROM clock_timestamp() - "           \
      "xact_start))::bigint, 0) FROM pg_stat_activity WHERE datname = "        \
      "current_database() AND backend_xmin IS NOT NULL)")

#endif
