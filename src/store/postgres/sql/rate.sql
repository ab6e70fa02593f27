-- rate.sql - the steps of src/store/rate.h. The rule is that of src/store/rate.c.

-- The tokens that are out at a moment, in parts of 1/count of a microsecond. The tokens that are
-- out stay as many when the rate changes.
CREATE OR REPLACE FUNCTION @schema@.rate_used(
    old @schema@.rate, a_count bigint, a_period bigint, at_us bigint)
RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_tat bigint := old.tat_us - greatest(0, old.last_us - at_us);
    v_used numeric;
BEGIN
    IF old.name IS NULL OR v_tat < at_us THEN
        RETURN 0;
    END IF;
    v_used := (v_tat - at_us)::numeric * old.count + old.rest;
    IF old.count <> a_count OR old.period_us <> a_period THEN
        v_used := ceil(v_used * a_period / old.period_us);
    END IF;
    RETURN least(v_used, 9007199254740991);
END
$$;

-- Removes some limits that nothing is out of. Waits for no lock.
CREATE OR REPLACE FUNCTION @schema@.rate_sweep(at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.rate AS r WHERE r.name IN (
        SELECT s.name FROM @schema@.rate AS s WHERE s.until_us <= at_us
        ORDER BY s.until_us LIMIT 32 FOR UPDATE SKIP LOCKED);
END
$$;

-- The rule of src/store/rate.c. Answers "0 granted wait_us remaining", or "1 0
-- wait_us remaining" when it refuses.
CREATE OR REPLACE FUNCTION @schema@.rate_draw(
    a_name text, a_cost bigint, a_least bigint, a_count bigint, a_period bigint,
    a_burst bigint, a_wait bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.rate;
    at_us bigint;
    v_used bigint;
    v_room bigint;
    v_granted bigint;
    v_tat bigint;
    v_until bigint;
BEGIN
    PERFORM @schema@.lazily();
    LOOP
        SELECT * INTO old FROM @schema@.rate AS r
        WHERE r.name = a_name FOR UPDATE;
        at_us := @schema@.now_us();
        v_used := @schema@.rate_used(old, a_count, a_period, at_us);
        v_room := a_burst * a_period - v_used;
        v_granted := least(a_cost,
                           greatest(0, v_room + a_wait * a_count) / a_period);
        IF v_granted < a_least THEN
            -- The clock was set back, and the rate with it: else nothing would come
            -- back before the old time.
            UPDATE @schema@.rate AS r
            SET tat_us = r.tat_us - (r.last_us - at_us), last_us = at_us
            WHERE r.name = a_name AND r.last_us > at_us;
            RETURN '1 0 '
                || (a_least * a_period - v_room + a_count - 1) / a_count
                || ' ' || greatest(0, v_room) / a_period;
        END IF;
        v_used := v_used + v_granted * a_period;
        v_tat := at_us + v_used / a_count;
        v_until := (v_tat / 60000000 + 1) * 60000000;
        IF old.name IS NOT NULL THEN
            UPDATE @schema@.rate AS r
            SET tat_us = v_tat, last_us = at_us, rest = v_used % a_count,
                count = a_count, period_us = a_period, until_us = v_until
            WHERE r.name = a_name;
        ELSE
            INSERT INTO @schema@.rate
            VALUES (a_name, v_tat, at_us, v_used % a_count, a_count, a_period,
                    v_until)
            ON CONFLICT DO NOTHING;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    IF at_us % 64 = 0 THEN
        PERFORM @schema@.rate_sweep(at_us);
    END IF;
    v_room := v_room - v_granted * a_period;
    RETURN '0 ' || v_granted || ' '
        || (greatest(0, -v_room) + a_count - 1) / a_count
        || ' ' || greatest(0, v_room) / a_period;
END
$$;
