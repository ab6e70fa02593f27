-- show.sql - version 10: a put shows its value to all that listen, if it is asked to, so that
-- they need not ask for it. It replaces a function of version 1.

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

DROP FUNCTION IF EXISTS @schema@.value_put(text, bigint, bigint, bytea);

-- a_expected: -1 any, 0 nothing there, or a version. a_shows: 1 to show the data, which are
-- printable then. Answers "0 version", or "4 version" with what was found.
CREATE OR REPLACE FUNCTION @schema@.value_put(a_key text, a_expected bigint,
                                   a_ttl_ms bigint, a_data bytea,
                                   a_shows bigint DEFAULT 0)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.value;
    at_us bigint;
    v_until bigint;
    v_found bigint;
    v_new bigint;
BEGIN
    LOOP
        SELECT * INTO old FROM @schema@.value AS v
        WHERE v.key = a_key FOR UPDATE;
        at_us := @schema@.now_us();
        v_until := CASE WHEN a_ttl_ms > 0 THEN at_us + a_ttl_ms * 1000 END;
        v_found := CASE WHEN old.until_us <= at_us THEN 0
                        ELSE coalesce(old.version, 0) END;
        IF a_expected >= 0 AND a_expected <> v_found THEN
            RETURN '4 ' || v_found;
        END IF;
        v_new := greatest(coalesce(old.version, 0) + 1, at_us);
        IF old.key IS NOT NULL THEN
            UPDATE @schema@.value AS v
            SET version = v_new, until_us = v_until, data = a_data
            WHERE v.key = a_key;
        ELSE
            INSERT INTO @schema@.value VALUES (a_key, v_new, v_until, a_data)
            ON CONFLICT DO NOTHING;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    IF v_new % 8 = 0 THEN
        PERFORM @schema@.value_sweep(at_us);
    END IF;
    IF a_shows = 1 THEN
        PERFORM @schema@.show('value:' || a_key, v_new,
                              a_ttl_ms || ' ' || convert_from(a_data, 'UTF8'));
    ELSE
        PERFORM @schema@.tell('value:' || a_key, v_new);
    END IF;
    RETURN '0 ' || v_new;
END
$$;

UPDATE @schema@.meta SET version = 10;
