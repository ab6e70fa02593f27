-- value.sql - the changes of src/store/value.h and append of src/store/log.h, one
-- function each. A version is greatest(version before + 1, clock in us).

-- a_expected: -1 any, 0 nothing there, or a version. Answers "0 version", or
-- "4 version" with what was found.
CREATE FUNCTION @schema@.value_put(a_key text, a_expected bigint,
                                   a_ttl_ms bigint, a_data bytea)
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
    PERFORM @schema@.tell('value:' || a_key, v_new);
    RETURN '0 ' || v_new;
END
$$;

-- Removes some expired values. Waits for no lock.
CREATE FUNCTION @schema@.value_sweep(at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.value AS v WHERE v.key IN (
        SELECT w.key FROM @schema@.value AS w WHERE w.until_us <= at_us
        ORDER BY w.until_us LIMIT 32 FOR UPDATE SKIP LOCKED);
END
$$;

-- Answers "0 sum" or "18 why". Only the one canonical form of an integer is one.
CREATE FUNCTION @schema@.value_add(a_key text, a_delta bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.value;
    at_us bigint;
    v_text text;
    v_sum numeric;
    v_new bigint;
BEGIN
    LOOP
        SELECT * INTO old FROM @schema@.value AS v
        WHERE v.key = a_key FOR UPDATE;
        at_us := @schema@.now_us();
        v_text := CASE WHEN old.key IS NULL OR old.until_us <= at_us THEN '0'
                       ELSE encode(old.data, 'escape') END;
        IF v_text !~ '^(0|-?[1-9][0-9]{0,18})$'
           OR NOT v_text::numeric BETWEEN -9223372036854775808
                                      AND 9223372036854775807 THEN
            RETURN '18 the value is not an integer';
        END IF;
        v_sum := v_text::numeric + a_delta;
        IF NOT v_sum BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
            RETURN '18 the sum is out of range';
        END IF;
        v_new := greatest(coalesce(old.version, 0) + 1, at_us);
        IF old.key IS NOT NULL THEN
            UPDATE @schema@.value AS v
            SET version = v_new, data = convert_to(v_sum::text, 'UTF8'),
                until_us = CASE WHEN v.until_us > at_us THEN v.until_us END
            WHERE v.key = a_key;
        ELSE
            INSERT INTO @schema@.value
            VALUES (a_key, v_new, NULL, convert_to(v_sum::text, 'UTF8'))
            ON CONFLICT DO NOTHING;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    PERFORM @schema@.tell('value:' || a_key, v_new);
    RETURN '0 ' || v_sum;
END
$$;

-- Answers "0", "5", or "4 version". One that has expired goes too.
CREATE FUNCTION @schema@.value_del(a_key text, a_expected bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.value;
    v_lives boolean;
BEGIN
    SELECT * INTO old FROM @schema@.value AS v WHERE v.key = a_key FOR UPDATE;
    IF NOT FOUND THEN
        RETURN '5';
    END IF;
    v_lives := coalesce(old.until_us > @schema@.now_us(), true);
    IF v_lives AND a_expected >= 0 AND a_expected <> old.version THEN
        RETURN '4 ' || old.version;
    END IF;
    DELETE FROM @schema@.value AS v WHERE v.key = a_key;
    IF NOT v_lives THEN
        RETURN '5';
    END IF;
    PERFORM @schema@.tell('value:' || a_key, 0);
    RETURN '0';
END
$$;

-- Answers the position. Appends to a topic are one after the other up to their
-- commit, so that a reader that has seen a position misses none before it.
CREATE FUNCTION @schema@.log_append(a_topic text, a_keep bigint,
                                    a_data bytea, a_trim boolean)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint;
    v_position bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(a_topic, 1684628083));
    at_us := @schema@.now_us();
    SELECT greatest(coalesce(max(l.position), 0) + 1, at_us) INTO v_position
    FROM @schema@.log AS l WHERE l.topic = a_topic;
    INSERT INTO @schema@.log VALUES (a_topic, v_position, at_us, a_data);
    IF a_trim THEN
        DELETE FROM @schema@.log AS l
        WHERE l.topic = a_topic AND l.position <= (
            SELECT k.position FROM @schema@.log AS k WHERE k.topic = a_topic
            ORDER BY k.position DESC OFFSET a_keep LIMIT 1);
    END IF;
    RETURN v_position;
END
$$;
