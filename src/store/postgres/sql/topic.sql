-- topic.sql - the steps of src/store/topic.h. Functions of value.sql tell topics too.
--
-- A step that tells a topic holds its lock in share mode until its commit, and a new
-- ear takes it alone. So every change is either committed before the ear is there,
-- or finds it: none passes unnoticed in between.

-- Notifies every doorbell that listens to a topic, when the step is committed.
CREATE OR REPLACE FUNCTION @schema@.tell(a_topic text, a_number bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(a_topic, 1701994860));
    PERFORM @schema@.ring(e.bell, e.address, 'changed', a_number)
    FROM @schema@.ear AS e WHERE e.topic = a_topic AND e.until_us > at_us;
END
$$;

-- As tell, for a change that shows a text.
CREATE OR REPLACE FUNCTION @schema@.show(a_topic text, a_number bigint, a_text text)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(a_topic, 1701994860));
    PERFORM pg_notify('dibs_' || e.bell,
                      e.address || ' changed ' || a_number || ' ' || a_text)
    FROM @schema@.ear AS e
    WHERE e.topic = a_topic AND e.bell <> '' AND e.until_us > at_us;
END
$$;

-- Tells a topic that is not of a value.
CREATE OR REPLACE FUNCTION @schema@.topic_tell(a_topic text, a_number bigint)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.tell(a_topic, a_number);
    RETURN '0';
END
$$;

-- Listens to a topic for a while; a_span_ms 0: no more. Drops some ears whose time
-- has passed. Answers "0".
CREATE OR REPLACE FUNCTION @schema@.topic_ear(
    a_topic text, a_bell text, a_address text, a_span_ms bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
    v_until bigint := at_us + a_span_ms * 1000;
BEGIN
    PERFORM @schema@.lazily();
    UPDATE @schema@.ear AS e SET until_us = v_until
    WHERE e.topic = a_topic AND e.bell = a_bell AND e.until_us > at_us;
    IF NOT FOUND THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(a_topic, 1701994860));
        INSERT INTO @schema@.ear AS e
        VALUES (a_topic, a_bell, a_address, v_until)
        ON CONFLICT (topic, bell) DO UPDATE SET until_us = v_until;
    END IF;
    DELETE FROM @schema@.ear AS e WHERE (e.topic, e.bell) IN (
        SELECT f.topic, f.bell FROM @schema@.ear AS f
        WHERE f.until_us <= at_us
        ORDER BY f.until_us LIMIT 16 FOR UPDATE SKIP LOCKED);
    RETURN '0';
END
$$;
