-- meter.sql - the steps of src/store/meter.h.

-- Removes some windows that are over. Waits for no lock.
CREATE OR REPLACE FUNCTION @schema@.meter_sweep(at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.meter AS m WHERE m.key IN (
        SELECT n.key FROM @schema@.meter AS n WHERE n.until_us <= at_us
        ORDER BY n.until_us LIMIT 32 FOR UPDATE SKIP LOCKED);
END
$$;

-- The value of a key: version (0: none), time left in ms (-1: for ever), then the
-- number of its first bytes and each of them.
CREATE OR REPLACE FUNCTION @schema@.meter_value(
    a_key text, at_us bigint, OUT o_version bigint, OUT o_text text)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_data bytea;
    v_left bigint;
BEGIN
    SELECT v.version, coalesce((v.until_us - at_us + 999) / 1000, -1),
           substring(v.data FROM 1 FOR 31)
    INTO o_version, v_left, v_data
    FROM @schema@.value AS v
    WHERE v.key = a_key AND coalesce(v.until_us > at_us, true);
    o_version := coalesce(o_version, 0);
    v_data := coalesce(v_data, '');
    o_text := o_version || ' ' || coalesce(v_left, -1) || ' '
        || length(v_data)
        || coalesce((SELECT string_agg(' ' || get_byte(v_data, i), ''
                                       ORDER BY i)
                     FROM generate_series(0, length(v_data) - 1) AS i), '');
END
$$;

-- The cells that are in the window. After the clock was set back, those that seem to
-- begin later are not.
CREATE OR REPLACE FUNCTION @schema@.meter_live(a_cells bigint[], a_from bigint, a_to bigint)
RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_live bigint[] := '{}';
BEGIN
    FOR i IN 1 .. coalesce(array_length(a_cells, 1), 0) BY 5 LOOP
        IF a_cells[i] > a_from AND a_cells[i] <= a_to THEN
            v_live := v_live || a_cells[i : i + 4];
        END IF;
    END LOOP;
    RETURN v_live;
END
$$;

-- The sums of the cells: good, bad, slow and reporters.
CREATE OR REPLACE FUNCTION @schema@.meter_sums(a_cells bigint[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_good bigint := 0;
    v_bad bigint := 0;
    v_slow bigint := 0;
    v_marks bigint := 0;
BEGIN
    FOR i IN 1 .. coalesce(array_length(a_cells, 1), 0) BY 5 LOOP
        v_good := v_good + a_cells[i + 1];
        v_bad := v_bad + a_cells[i + 2];
        v_slow := v_slow + a_cells[i + 3];
        v_marks := v_marks | a_cells[i + 4];
    END LOOP;
    RETURN v_good || ' ' || v_bad || ' ' || v_slow || ' '
        || length(replace(v_marks::bit(32)::text, '0', ''));
END
$$;

-- The rule of src/store/meter.c. Answers "0" or, for another version, "4", then good,
-- bad, slow, reporters and what meter_value() answers.
CREATE OR REPLACE FUNCTION @schema@.meter(
    a_key text, a_version bigint, a_window bigint, a_good bigint, a_bad bigint,
    a_slow bigint, a_mark bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.meter;
    at_us bigint;
    v_ms bigint;
    v_found bigint;
    v_text text;
    v_cells bigint[];
    v_until bigint;
BEGIN
    PERFORM @schema@.lazily();
    LOOP
        SELECT * INTO old FROM @schema@.meter AS m
        WHERE m.key = a_key FOR UPDATE;
        at_us := @schema@.now_us();
        v_ms := at_us / 1000;
        SELECT o_version, o_text INTO v_found, v_text
        FROM @schema@.meter_value(a_key, at_us);
        IF v_found <> a_version THEN
            RETURN '4 0 0 0 0 ' || v_text;
        END IF;
        v_cells := CASE WHEN old.version = a_version
                        THEN @schema@.meter_live(old.cells, v_ms - a_window,
                                                 v_ms)
                        ELSE '{}' END;
        EXIT WHEN a_good = 0 AND a_bad = 0;
        IF cardinality(v_cells) = 0
           OR v_ms - v_cells[1] >= (a_window + 9) / 10 THEN
            v_cells := (ARRAY[v_ms, 0, 0, 0, 0] || v_cells)[1 : 50];
        END IF;
        v_cells[2] := v_cells[2] + a_good;
        v_cells[3] := v_cells[3] + a_bad;
        v_cells[4] := v_cells[4] + a_slow;
        IF a_bad > 0 OR a_slow > 0 THEN
            v_cells[5] := v_cells[5] | (1::bigint << a_mark::integer);
        END IF;
        v_until := ((at_us + a_window * 1000) / 60000000 + 1) * 60000000;
        IF old.key IS NOT NULL THEN
            UPDATE @schema@.meter AS m
            SET version = a_version, cells = v_cells, until_us = v_until
            WHERE m.key = a_key;
        ELSE
            INSERT INTO @schema@.meter
            VALUES (a_key, a_version, v_cells, v_until)
            ON CONFLICT DO NOTHING;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    IF at_us % 64 = 0 THEN
        PERFORM @schema@.meter_sweep(at_us);
    END IF;
    RETURN '0 ' || @schema@.meter_sums(v_cells) || ' ' || v_text;
END
$$;
