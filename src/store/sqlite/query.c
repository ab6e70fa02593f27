/* query.c - the text of each statement of this store. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/query.h"

#define PARTY_COLUMNS                                                          \
    "owner, role, mode, permits, capacity, priority, seq, fence, claim, "      \
    "ttl_ms, since_us, until_us, bell, who, tell"

#define ITEM_STATE                                                             \
    "priority, place, due_wall_us, lane, fence, told, limit_us, attempts, "    \
    "lost, tries, to_worker, own, dedup, reason"
#define ITEM_COLUMNS  "id, " ITEM_STATE ", length(data)"
#define ITEM_IS_READY "q = ?1 AND lane = 0 AND due_wall_us = 0"
#define LANE_COLUMNS                                                           \
    "lane, number, stamp, until_us, waits_us, want, hands, limit_ms, worker, " \
    "bell, results"
#define QUEUE_COLUMNS                                                          \
    "paused, serial, cap, tries, deads, lost_max, keep_done, items, dead, "    \
    "done, pushed, delivered, acked, nacked, lost, died, dropped, purged"

/* The piece of the table that one sweep looks at. */
#define SWEPT_PIECE                                                            \
    "(SELECT name, owner, until_us FROM party WHERE name > ?1 "                \
    "ORDER BY name LIMIT 32)"

const char *const dibs__sqlite_query_text[DIBS__SQL_COUNT] = {
    [DIBS__SQL_BEGIN] = "BEGIN IMMEDIATE",
    [DIBS__SQL_COMMIT] = "COMMIT",
    [DIBS__SQL_ROLLBACK] = "ROLLBACK",
    [DIBS__SQL_WATERMARK] =
        "SELECT fence FROM party WHERE name = '' AND owner = ''",
    [DIBS__SQL_WATERMARK_SET] =
        "UPDATE party SET fence = ?1 WHERE name = '' AND owner = ''",
    [DIBS__SQL_META] = "SELECT value FROM meta WHERE key = ?1",
    [DIBS__SQL_META_SET] = "UPDATE meta SET value = ?2 WHERE key = ?1",
    [DIBS__SQL_PARTY_CLEAR] = "DELETE FROM party WHERE name > ''",
    [DIBS__SQL_PARTY_ROLL] =
        "SELECT " PARTY_COLUMNS " FROM party WHERE name = ?1",
    [DIBS__SQL_PARTY_PUT] =
        "INSERT OR REPLACE INTO party(name, " PARTY_COLUMNS ") VALUES(?1, ?2, "
        "?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    [DIBS__SQL_PARTY_DROP] = "DELETE FROM party WHERE name = ?1 AND owner = ?2",
    [DIBS__SQL_PARTY_PAGE] =
        "SELECT " PARTY_COLUMNS ", name FROM party "
        "WHERE (name, owner) > (?1, ?2) ORDER BY name, owner",
    [DIBS__SQL_PARTY_SWEEP] =
        "DELETE FROM party WHERE (name, owner) IN "
        "(SELECT name, owner FROM " SWEPT_PIECE " WHERE until_us < ?2)",
    [DIBS__SQL_PARTY_SWEPT] = "SELECT max(name) FROM " SWEPT_PIECE,
    [DIBS__SQL_VALUE] =
        "SELECT version, until_wall_us, data FROM value WHERE key = ?1",
    [DIBS__SQL_VALUE_HEAD] =
        "SELECT version, until_wall_us FROM value WHERE key = ?1",
    [DIBS__SQL_VALUE_PUT] =
        "INSERT INTO value(key, data, version, until_wall_us) "
        "VALUES(?1, ?2, ?3, ?4) ON CONFLICT(key) DO UPDATE SET "
        "data = excluded.data, version = excluded.version, "
        "until_wall_us = excluded.until_wall_us",
    [DIBS__SQL_VALUE_DROP] = "DELETE FROM value WHERE key = ?1",
    [DIBS__SQL_VALUE_PAGE] =
        "SELECT version, until_wall_us, length(data), key FROM value "
        "WHERE key >= ?1 ORDER BY key",
    [DIBS__SQL_VALUE_SWEEP] =
        "DELETE FROM value WHERE rowid IN (SELECT rowid FROM value "
        "WHERE until_wall_us IS NOT NULL AND until_wall_us <= ?1 LIMIT 16)",
    [DIBS__SQL_LOG_PUT] = "INSERT INTO log(topic, position, wall_us, data, "
                          "prior, total, nth) "
                          "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [DIBS__SQL_LOG_TRIM] =
        "DELETE FROM log WHERE topic = ?1 AND position <= (SELECT position "
        "FROM log WHERE topic = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)",
    [DIBS__SQL_LOG_AGED] =
        "DELETE FROM log WHERE topic = ?1 AND position IN (SELECT position "
        "FROM log WHERE topic = ?1 AND position < ?2 ORDER BY position "
        "LIMIT 8) AND (position < ?3 OR ?4 - total + length(data) > ?5)",
    [DIBS__SQL_LOG_DROP] =
        "DELETE FROM log WHERE topic = ?1 AND position IN (SELECT position "
        "FROM log WHERE topic = ?1 AND position <= ?2 AND position < ?3 "
        "ORDER BY position LIMIT ?4)",
    [DIBS__SQL_LOG_BLANK] =
        "UPDATE log SET data = x'', prior = -1 WHERE topic = ?1 AND "
        "position = ?2",
    [DIBS__SQL_LOG_HEAD] =
        "SELECT position, total, nth, length(data) FROM log "
        "WHERE topic = ?1 AND prior <> -1 ORDER BY position LIMIT 1",
    [DIBS__SQL_LOG_TAIL] = "SELECT position, total, nth, prior FROM log "
                           "WHERE topic = ?1 ORDER BY position DESC LIMIT 1",
    [DIBS__SQL_LOG_PAGE] =
        "SELECT position, wall_us, data, prior FROM log "
        "WHERE topic = ?1 AND position > ?2 AND prior <> -1 ORDER BY position",
    [DIBS__SQL_LOG_LIST] =
        "WITH RECURSIVE t(topic) AS (SELECT min(topic) FROM log "
        "WHERE topic >= ?1 UNION ALL "
        "SELECT (SELECT min(topic) FROM log WHERE topic > t.topic) FROM t "
        "WHERE t.topic IS NOT NULL) "
        "SELECT h.position, h.total, h.nth, length(h.data), "
        "z.position, z.total, z.nth, z.topic FROM t "
        "JOIN log AS z ON z.topic = t.topic AND z.position = "
        "(SELECT position FROM log WHERE topic = t.topic "
        "ORDER BY position DESC LIMIT 1) "
        "LEFT JOIN log AS h ON h.topic = t.topic AND h.position = "
        "(SELECT position FROM log WHERE topic = t.topic AND prior <> -1 "
        "ORDER BY position LIMIT 1) LIMIT ?2",
    [DIBS__SQL_WRITER] = "SELECT number, position FROM writer "
                         "WHERE topic = ?1 AND lane = ?2",
    [DIBS__SQL_WRITER_PUT] =
        "INSERT OR REPLACE INTO writer(topic, lane, number, position, "
        "until_us) VALUES(?1, ?2, ?3, ?4, ?5)",
    [DIBS__SQL_WRITER_SWEEP] =
        "DELETE FROM writer WHERE (topic, lane) IN "
        "(SELECT topic, lane FROM writer WHERE until_us <= ?1 LIMIT 16)",
    [DIBS__SQL_WRITER_CLEAR] = "DELETE FROM writer",
    [DIBS__SQL_EAR_PUT] =
        "INSERT OR REPLACE INTO ear(topic, bell, until_us) VALUES(?1, ?2, ?3)",
    [DIBS__SQL_EAR_DROP] = "DELETE FROM ear WHERE topic = ?1 AND bell = ?2",
    [DIBS__SQL_EAR_LIST] =
        "SELECT bell FROM ear WHERE topic = ?1 AND until_us > ?2",
    [DIBS__SQL_EAR_SWEEP] =
        "DELETE FROM ear WHERE (topic, bell) IN "
        "(SELECT topic, bell FROM ear WHERE until_us <= ?1 LIMIT 16)",
    [DIBS__SQL_EAR_CLEAR] = "DELETE FROM ear",
    [DIBS__SQL_RATE] = "SELECT tat_us, last_us, rest, count, period_us "
                       "FROM rate WHERE name = ?1",
    [DIBS__SQL_RATE_PUT] =
        "INSERT OR REPLACE INTO rate(name, tat_us, last_us, rest, count, "
        "period_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [DIBS__SQL_RATE_LIST] =
        "SELECT tat_us, last_us, rest, count, period_us, name FROM rate "
        "WHERE name >= ?1 AND name <> ?2 AND "
        "tat_us - max(0, last_us - ?3) >= ?3 ORDER BY name LIMIT ?4",
    [DIBS__SQL_RATE_SWEEP] =
        "DELETE FROM rate WHERE name IN "
        "(SELECT name FROM rate WHERE tat_us < ?1 LIMIT 16)",
    [DIBS__SQL_RATE_CLEAR] = "DELETE FROM rate",
    [DIBS__SQL_METER] = "SELECT cells FROM meter WHERE key = ?1",
    [DIBS__SQL_METER_PUT] =
        "INSERT OR REPLACE INTO meter(key, cells, until_us) VALUES(?1, ?2, ?3)",
    [DIBS__SQL_METER_SWEEP] =
        "DELETE FROM meter WHERE key IN "
        "(SELECT key FROM meter WHERE until_us < ?1 LIMIT 16)",
    [DIBS__SQL_METER_CLEAR] = "DELETE FROM meter",
    [DIBS__SQL_ROSTER] = "SELECT kind, gen, need, here, seats, broken, "
                         "kept_until_us FROM roster WHERE name = ?1",
    [DIBS__SQL_ROSTER_PUT] =
        "INSERT OR REPLACE INTO roster(name, kind, gen, need, here, seats, "
        "broken, kept_until_us) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [DIBS__SQL_ROSTER_DROP] = "DELETE FROM roster WHERE name = ?1",
    [DIBS__SQL_ROSTER_OLD] = "SELECT name FROM roster WHERE kept_until_us <= "
                             "CASE kind WHEN 2 THEN ?2 ELSE ?1 END LIMIT 1",
    [DIBS__SQL_ROSTER_CLEAR] = "DELETE FROM roster WHERE kind <> 2",
    [DIBS__SQL_ROSTER_LIST] =
        "SELECT name, gen, need, here, live, counts FROM (SELECT r.name, "
        "r.gen, r.need, r.here, r.kept_until_us, (SELECT count(*) FROM seat AS "
        "s WHERE s.name = r.name AND s.until_us > ?4 AND s.kind <> 3) AS live, "
        "(SELECT count(*) FROM seat AS s WHERE s.name = r.name AND "
        "s.until_us > ?4 AND s.kind IN (1, 2) AND s.counts_us <= ?4) AS counts "
        "FROM roster AS r WHERE r.name >= ?1 AND r.name <> ?2 AND "
        "r.kind = ?3) WHERE live > 0 OR ?3 = 2 AND kept_until_us > ?5 "
        "ORDER BY name LIMIT ?6",
    [DIBS__SQL_SEAT] = "SELECT kind, fence, came_from, rec, counts_us, "
                       "until_us, who FROM seat WHERE name = ?1 AND id = ?2",
    [DIBS__SQL_SEAT_PUT] =
        "INSERT OR REPLACE INTO seat(name, id, kind, fence, came_from, rec, "
        "counts_us, until_us, who) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [DIBS__SQL_SEAT_DROP] = "DELETE FROM seat WHERE name = ?1 AND id = ?2",
    [DIBS__SQL_SEAT_ENDED] =
        "SELECT count(*), coalesce(sum(kind > 0), 0) FROM seat "
        "WHERE name = ?1 AND until_us <= ?2",
    [DIBS__SQL_SEAT_END] =
        "DELETE FROM seat WHERE name = ?1 AND until_us <= ?2",
    [DIBS__SQL_SEAT_FIRST] = "SELECT until_us FROM seat WHERE name = ?1 "
                             "ORDER BY until_us LIMIT 1",
    [DIBS__SQL_SEAT_NTH] =
        "SELECT until_us FROM seat WHERE name = ?1 AND kind IN (1, 2) AND "
        "counts_us <= ?2 ORDER BY until_us DESC LIMIT 1 OFFSET ?3",
    [DIBS__SQL_SEAT_LIST] =
        "SELECT kind, fence, rec, counts_us, until_us, who, id FROM seat "
        "WHERE name = ?1 AND until_us > ?2 ORDER BY fence, id LIMIT ?3",
    [DIBS__SQL_SEAT_CLEAR] = "DELETE FROM seat WHERE kind <> 3",
    [DIBS__SQL_QUEUE] =
        "SELECT q, " QUEUE_COLUMNS " FROM queue WHERE name = ?1",
    [DIBS__SQL_QUEUE_PUT] =
        "UPDATE queue SET (" QUEUE_COLUMNS ") = (?2, ?3, ?4, ?5, ?6, ?7, ?8, "
        "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) "
        "WHERE q = ?1",
    [DIBS__SQL_QUEUE_NEW] =
        "INSERT INTO queue(q, name, " QUEUE_COLUMNS ") VALUES(?1, ?2, 0, 0, 0, "
        "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
    [DIBS__SQL_QUEUE_LIST] =
        "SELECT name FROM queue WHERE name >= ?1 AND name <> ?2 "
        "ORDER BY name LIMIT ?3",
    [DIBS__SQL_QUEUE_DROP] = "DELETE FROM queue WHERE q = ?1",
    [DIBS__SQL_QUEUE_IDLE] =
        "DELETE FROM queue WHERE q IN (SELECT q FROM queue AS idle "
        "WHERE items = 0 AND dead = 0 AND paused = 0 AND serial = 0 AND "
        "cap = 0 AND tries = 0 AND deads = 0 AND lost_max = 0 AND "
        "keep_done = 0 AND done = 0 AND NOT EXISTS "
        "(SELECT 1 FROM lane WHERE q = idle.q) AND NOT EXISTS "
        "(SELECT 1 FROM pusher WHERE q = idle.q) AND NOT EXISTS "
        "(SELECT 1 FROM dedup WHERE q = idle.q) LIMIT 4)",
    [DIBS__SQL_ITEM] = "SELECT " ITEM_COLUMNS " FROM item "
                       "WHERE id = ?2 AND q = ?1",
    [DIBS__SQL_ITEM_NEW] =
        "INSERT INTO item(id, q, " ITEM_STATE ", data) VALUES(?2, ?1, ?3, ?4, "
        "?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    [DIBS__SQL_ITEM_PUT] =
        "UPDATE item SET (" ITEM_STATE ") = (?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, ?12, ?13, ?14, ?15, ?16) WHERE id = ?2 AND q = ?1",
    [DIBS__SQL_ITEM_DROP] = "DELETE FROM item WHERE id = ?2 AND q = ?1",
    [DIBS__SQL_ITEM_READY] =
        "SELECT " ITEM_COLUMNS " FROM item WHERE " ITEM_IS_READY
        " AND own = ?2 ORDER BY priority DESC, place LIMIT 1",
    [DIBS__SQL_ITEM_HAD] =
        "SELECT " ITEM_COLUMNS " FROM item WHERE q = ?1 AND lane <> 0 AND "
        "lane = ?2 AND fence > ?3 ORDER BY fence LIMIT 1",
    [DIBS__SQL_ITEM_TOLD] = "SELECT " ITEM_COLUMNS
                            " FROM item INDEXED BY item_lane WHERE q = ?1 AND "
                            "lane <> 0 AND lane = ?2 AND told = ?3 AND fence > "
                            "?4 ORDER BY fence LIMIT 1",
    [DIBS__SQL_ITEM_UNHEARD] =
        "SELECT " ITEM_COLUMNS " FROM item INDEXED BY item_unheard WHERE "
        "q = ?1 AND lane <> 0 AND told = 0 AND lane = ?2 AND fence > ?3 "
        "ORDER BY fence LIMIT 1",
    [DIBS__SQL_ITEM_LATER] =
        "SELECT " ITEM_COLUMNS " FROM item WHERE q = ?1 AND due_wall_us > 0 "
        "ORDER BY due_wall_us LIMIT 1 OFFSET ?2",
    [DIBS__SQL_ITEM_LATE] =
        "SELECT " ITEM_COLUMNS " FROM item WHERE q = ?1 AND limit_us > 0 AND "
        "limit_us <= ?2 ORDER BY limit_us LIMIT 1",
    [DIBS__SQL_ITEM_OUT] = "SELECT " ITEM_COLUMNS " FROM item WHERE q = ?1 AND "
                           "lane <> 0 LIMIT 1",
    [DIBS__SQL_ITEM_FIRST] =
        "SELECT " ITEM_COLUMNS " FROM item WHERE " ITEM_IS_READY " LIMIT 1",
    [DIBS__SQL_ITEM_HELD_UP] =
        "SELECT EXISTS(SELECT 1 FROM item WHERE q = ?1 AND lane <> 0) OR "
        "EXISTS(SELECT 1 FROM item INDEXED BY item_retry WHERE q = ?1 AND "
        "due_wall_us > 0 AND "
        "attempts > 0)",
    [DIBS__SQL_ITEM_DATA] = "SELECT data FROM item WHERE id = ?1",
    [DIBS__SQL_ITEM_PEEK_READY] =
        "SELECT " ITEM_COLUMNS ", data FROM item WHERE " ITEM_IS_READY
        " ORDER BY own, priority DESC, place LIMIT ?3 OFFSET ?2",
    [DIBS__SQL_ITEM_PEEK_LATER] =
        "SELECT " ITEM_COLUMNS ", data FROM item WHERE q = ?1 AND "
        "due_wall_us > 0 ORDER BY due_wall_us, id LIMIT ?3 OFFSET ?2",
    [DIBS__SQL_ITEM_PEEK_OUT] =
        "SELECT " ITEM_COLUMNS ", data FROM item WHERE q = ?1 AND lane <> 0 "
        "ORDER BY fence LIMIT ?3 OFFSET ?2",
    [DIBS__SQL_ITEM_COUNTS] =
        "SELECT (SELECT count(*) FROM item WHERE q = ?1 AND due_wall_us > 0), "
        "(SELECT count(*) FROM item WHERE q = ?1 AND lane <> 0), "
        "(SELECT place FROM item INDEXED BY item_age WHERE " ITEM_IS_READY
        " ORDER BY place LIMIT 1)",
    [DIBS__SQL_ITEM_RICHEST] =
        "SELECT own, count(*) AS load FROM item WHERE " ITEM_IS_READY
        " AND own > '' GROUP BY own ORDER BY load DESC, own LIMIT 1",
    [DIBS__SQL_LANE] = "SELECT " LANE_COLUMNS " FROM lane "
                       "WHERE q = ?1 AND lane = ?2",
    [DIBS__SQL_LANE_PUT] =
        "INSERT OR REPLACE INTO lane(q, " LANE_COLUMNS ") VALUES(?1, ?2, ?3, "
        "?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    [DIBS__SQL_LANE_DROP] = "DELETE FROM lane WHERE q = ?1 AND lane = ?2",
    [DIBS__SQL_LANE_ENDED] =
        "SELECT " LANE_COLUMNS " FROM lane WHERE q = ?1 AND until_us <= ?2 AND "
        "(number < ?3 OR lane > ?4) ORDER BY until_us, lane LIMIT 1",
    [DIBS__SQL_LANE_WAITING] =
        "SELECT " LANE_COLUMNS " FROM lane WHERE q = ?1 AND waits_us > 0 AND "
        "until_us > ?2 ORDER BY waits_us DESC LIMIT 1",
    [DIBS__SQL_LANE_WAITING_AS] =
        "SELECT " LANE_COLUMNS " FROM lane WHERE q = ?1 AND waits_us > 0 AND "
        "until_us > ?2 AND worker = ?3 ORDER BY waits_us DESC LIMIT 1",
    [DIBS__SQL_LANE_COUNTS] =
        "SELECT count(*), coalesce(sum(waits_us > 0), 0) FROM lane "
        "WHERE q = ?1 AND until_us > ?2",
    [DIBS__SQL_LANE_LIVES] =
        "SELECT EXISTS(SELECT 1 FROM lane INDEXED BY lane_worker WHERE q = ?1 "
        "AND worker <> '' AND "
        "worker = ?2 AND until_us > ?3)",
    [DIBS__SQL_LANE_FORGET] = "DELETE FROM lane WHERE q = ?1",
    [DIBS__SQL_LANE_SWEEP] =
        "DELETE FROM lane WHERE (q, lane) IN (SELECT lane.q, lane.lane FROM "
        "queue JOIN lane USING(q) WHERE items = 0 AND until_us < ?1 LIMIT 16)",
    [DIBS__SQL_LANE_CLEAR] = "UPDATE lane SET until_us = 0, waits_us = 0",
    [DIBS__SQL_PUSHER] = "SELECT number, rc, answer FROM pusher "
                         "WHERE q = ?1 AND lane = ?2",
    [DIBS__SQL_PUSHER_PUT] =
        "INSERT OR REPLACE INTO pusher(q, lane, number, rc, answer, until_us) "
        "VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
    [DIBS__SQL_PUSHER_SWEEP] =
        "DELETE FROM pusher WHERE (q, lane) IN "
        "(SELECT q, lane FROM pusher WHERE until_us <= ?1 LIMIT 16)",
    [DIBS__SQL_PUSHER_CLEAR] = "DELETE FROM pusher",
    [DIBS__SQL_DEDUP] = "SELECT item, alive, until_wall_us FROM dedup "
                        "WHERE q = ?1 AND id = ?2",
    [DIBS__SQL_DEDUP_PUT] =
        "INSERT OR REPLACE INTO dedup(q, id, item, alive, until_wall_us) "
        "VALUES(?1, ?2, ?3, ?4, ?5)",
    [DIBS__SQL_DEDUP_DROP] = "DELETE FROM dedup WHERE q = ?1 AND id = ?2",
    [DIBS__SQL_DEDUP_SWEEP] =
        "DELETE FROM dedup WHERE (q, id) IN (SELECT q, id FROM dedup "
        "WHERE alive = 0 AND until_wall_us <= ?1 LIMIT 16)",
    [DIBS__SQL_DEAD_PUT] =
        "INSERT INTO dead(q, id, wall_us, priority, attempts, lost, tries, "
        "to_worker, dedup, reason, data) SELECT q, id, ?2, priority, ?3, ?4, "
        "tries, to_worker, dedup, ?5, data FROM item WHERE id = ?1",
    [DIBS__SQL_DEAD_DROP] = "DELETE FROM dead WHERE position = (SELECT "
                            "min(position) FROM dead WHERE q = ?1)",
    [DIBS__SQL_DEAD_FIRST] = "SELECT min(position) FROM dead WHERE q = ?1",
    [DIBS__SQL_DEAD_FIND] =
        "SELECT min(position) FROM dead WHERE id = ?2 AND +q = ?1",
    [DIBS__SQL_DEAD_BACK] =
        "INSERT INTO item(id, q, " ITEM_STATE ", data) SELECT ?2, q, priority, "
        "?2, 0, 0, 0, 0, 0, 0, 0, tries, to_worker, '', '', '', data "
        "FROM dead WHERE position = ?1",
    [DIBS__SQL_DEAD_FORGET] = "DELETE FROM dead WHERE position = ?1",
    [DIBS__SQL_DEAD_PEEK] =
        "SELECT id, priority, attempts, lost, wall_us, to_worker, dedup, "
        "reason, data FROM dead WHERE q = ?1 ORDER BY position LIMIT ?3 "
        "OFFSET ?2",
    [DIBS__SQL_DONE_PUT] =
        "INSERT INTO done(q, id, wall_us, priority, attempts, lost, to_worker, "
        "dedup, result) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [DIBS__SQL_DONE_DROP] = "DELETE FROM done WHERE position = (SELECT "
                            "min(position) FROM done WHERE q = ?1)",
    [DIBS__SQL_DONE_FORGET] = "DELETE FROM done WHERE q = ?1",
    [DIBS__SQL_DONE_PEEK] =
        "SELECT id, priority, attempts, lost, wall_us, to_worker, dedup, '', "
        "result FROM done WHERE q = ?1 ORDER BY position DESC LIMIT ?3 "
        "OFFSET ?2",
    [DIBS__SQL_BEGIN_READ] = "BEGIN",
    [DIBS__SQL_ENTRY] = "SELECT at FROM entry WHERE name = ?1 AND member = ?2",
    [DIBS__SQL_ENTRY_PUT] =
        "INSERT INTO entry(name, member, at) VALUES(?1, ?2, ?3) "
        "ON CONFLICT(name, member) DO UPDATE SET at = excluded.at",
    [DIBS__SQL_ENTRY_DROP] =
        "DELETE FROM entry WHERE name = ?1 AND member = ?2",
    [DIBS__SQL_ENTRY_FIRST] =
        "SELECT at, member FROM entry WHERE name = ?1 AND at >= ?2 "
        "ORDER BY at, member LIMIT ?3 OFFSET ?4",
    [DIBS__SQL_ORDERED] = "SELECT size FROM ordered WHERE name = ?1",
    [DIBS__SQL_ORDERED_MORE] =
        "INSERT INTO ordered(name, size) VALUES(?1, 1) "
        "ON CONFLICT(name) DO UPDATE SET size = size + 1",
    [DIBS__SQL_ORDERED_LESS] =
        "UPDATE ordered SET size = size - 1 WHERE name = ?1",
    [DIBS__SQL_ORDERED_DROP] =
        "DELETE FROM ordered WHERE name = ?1 AND size < 1",
};
