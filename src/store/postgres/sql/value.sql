-- value.sql - the changes of src/store/value.h, one function each. A version is
-- greatest(version before + 1, clock in us).

-- A version of the tree had another one.
DROP FUNCTION IF EXISTS @schema@.value_put(text, bigint, bigint, bytea);

-- a_expected: -1 any, 0 nothing there, or a version. a_shows: 1 to show the data, which are
-- printable then. Answers "0 version", or "4 version" with what was found.
CREATE OR REPLACE FUNCTION @schema@.value_put(
    a_key text, a_expected bigint, a_ttl_ms bigint, a_data bytea,
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

-- Removes some expired values. Waits for no lock.
CREATE OR REPLACE FUNCTION @schema@.value_sweep(at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.value AS v WHERE v.key IN (
        SELECT w.key FROM @schema@.value AS w WHERE w.until_us <= at_us
        ORDER BY w.until_us LIMIT 32 FOR UPDATE SKIP LOCKED);
END
$$;

-- Answers "0 sum" or "18 why". Only the one canonical form of an integer is one.
CREATE OR REPLACE FUNCTION @schema@.value_add(a_key text, a_delta bigint) RETURNS text
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
CREATE OR REPLACE FUNCTION @schema@.value_del(a_key text, a_expected bigint)
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
