-- log.sql - the changes of src/store/log.h, one function each. Appends tell their topic.

-- A version of the tree had another one.
DROP FUNCTION IF EXISTS @schema@.log_append(text, bigint, bytea, boolean);

-- Answers "0 position", or "3": the lane has done a later number. Appends to a topic are
-- one after the other up to their commit, so that a reader that has seen a position
-- misses none before it. a_trim: count what is kept, and sweep; one append in many.
CREATE OR REPLACE FUNCTION @schema@.log_append(
    a_topic text, a_lane bigint, a_number bigint, a_repeat_ms bigint, a_keep bigint,
    a_keep_bytes bigint, a_keep_ms bigint, a_data bytea, a_trim boolean)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint;
    v_number bigint := 0;
    v_position bigint;
    v_total bigint;
    tail @schema@.log;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(a_topic, 1684628083));
    at_us := @schema@.now_us();
    IF a_lane <> 0 THEN
        SELECT w.number, w.position INTO v_number, v_position
        FROM @schema@.writer AS w WHERE w.topic = a_topic AND w.lane = a_lane;
        IF v_number = a_number THEN
            RETURN '0 ' || v_position;
        ELSIF v_number > a_number THEN
            RETURN '3';
        END IF;
    END IF;
    SELECT * INTO tail FROM @schema@.log AS l WHERE l.topic = a_topic
    ORDER BY l.position DESC LIMIT 1;
    v_position := greatest(coalesce(tail.position, 0) + 1, at_us);
    v_total := coalesce(tail.total, 0) + length(a_data);
    INSERT INTO @schema@.log
    VALUES (a_topic, v_position, at_us, a_data, coalesce(tail.position, 0),
            v_total, coalesce(tail.nth, 0) + 1);
    IF a_lane <> 0 THEN
        -- In minutes, so that the index changes seldom.
        INSERT INTO @schema@.writer AS w
        VALUES (a_lane, a_number, v_position,
                (at_us + a_repeat_ms * 1000) / 60000000 + 1, a_topic)
        ON CONFLICT (topic, lane) DO UPDATE SET number = excluded.number,
            position = excluded.position, until_min = excluded.until_min;
    END IF;
    PERFORM @schema@.log_limit(a_topic, a_keep, a_keep_bytes,
                               at_us - a_keep_ms * 1000, v_position, v_total,
                               a_trim, a_keep_ms > 0);
    IF a_trim THEN
        DELETE FROM @schema@.writer AS w WHERE (w.topic, w.lane) IN (
            SELECT o.topic, o.lane FROM @schema@.writer AS o
            WHERE o.until_min < at_us / 60000000
            ORDER BY o.until_min LIMIT 64 FOR UPDATE SKIP LOCKED);
    END IF;
    PERFORM @schema@.tell('log:' || a_topic, v_position);
    RETURN '0 ' || v_position;
END
$$;

-- Removes entries beyond the limits, but never the newest.
CREATE OR REPLACE FUNCTION @schema@.log_limit(
    a_topic text, a_keep bigint, a_keep_bytes bigint, a_oldest_us bigint,
    a_last bigint, a_total bigint, a_count boolean, a_aged boolean)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF a_count THEN
        DELETE FROM @schema@.log AS l
        WHERE l.topic = a_topic AND l.position <= (
            SELECT k.position FROM @schema@.log AS k WHERE k.topic = a_topic
            ORDER BY k.position DESC OFFSET a_keep LIMIT 1);
    END IF;
    IF a_aged OR a_keep_bytes > 0 THEN
        DELETE FROM @schema@.log AS l
        WHERE l.topic = a_topic AND l.position IN (
            SELECT o.position FROM (
                SELECT k.position, k.total, k.data FROM @schema@.log AS k
                WHERE k.topic = a_topic AND k.position < a_last
                ORDER BY k.position LIMIT 8) AS o
            WHERE a_aged AND o.position < a_oldest_us OR a_keep_bytes > 0
                AND a_total - o.total + length(o.data) > a_keep_bytes);
    END IF;
END
$$;

-- Removes the oldest entries up to and with a position. The newest stays without its
-- data, for the entry that follows it. Answers "0 gone".
CREATE OR REPLACE FUNCTION @schema@.log_trim(
    a_topic text, a_through bigint, a_max bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
    v_gone bigint := 0;
    v_some bigint := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(a_topic, 1684628083));
    SELECT l.position INTO v_last FROM @schema@.log AS l
    WHERE l.topic = a_topic ORDER BY l.position DESC LIMIT 1;
    WITH gone AS (
        DELETE FROM @schema@.log AS l
        WHERE l.topic = a_topic AND l.position IN (
            SELECT k.position FROM @schema@.log AS k
            WHERE k.topic = a_topic AND k.position <= a_through
                AND k.position < v_last
            ORDER BY k.position LIMIT a_max - 1)
        RETURNING l.prior)
    SELECT count(*) FILTER (WHERE g.prior <> -1) INTO v_gone FROM gone AS g;
    IF v_last <= a_through AND NOT EXISTS (
        SELECT 1 FROM @schema@.log AS k
        WHERE k.topic = a_topic AND k.position < v_last) THEN
        UPDATE @schema@.log AS l SET data = '', prior = -1
        WHERE l.topic = a_topic AND l.position = v_last AND l.prior <> -1;
        GET DIAGNOSTICS v_some = ROW_COUNT;
    END IF;
    RETURN '0 ' || v_gone + v_some;
END
$$;
