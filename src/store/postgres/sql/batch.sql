-- batch.sql - acquires and releases of many callers, in one transaction.
--
-- In the order of their names, so that two batches never wait for each other in a
-- circle; of one name, in the order in which they came. Flags are 1 to join the
-- queue, 2 to barge, 4 to tell; of a release, 1 for unanswered. a_ms is the ttl,
-- or how long to keep others out. Answers each as acquire and release do.
CREATE FUNCTION @schema@.batch(
    a_release boolean[], a_names text[], a_owners text[],
    a_modes @schema@.mode[], a_permits bigint[], a_capacities bigint[],
    a_flags integer[], a_priorities integer[], a_ms bigint[], a_whos text[],
    a_bell text)
RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    answers text[] := array_fill(''::text, ARRAY[array_length(a_names, 1)]);
    v_sync text := current_setting('synchronous_commit');
    v_firm boolean := false;
    v_set text;
    i integer;
BEGIN
    FOR i IN SELECT n.i FROM unnest(a_names) WITH ORDINALITY AS n(name, i)
             ORDER BY n.name COLLATE "C", n.i
    LOOP
        IF a_release[i] THEN
            answers[i] := @schema@.release(a_names[i], a_owners[i],
                                           a_flags[i] & 1 <> 0, a_ms[i]);
        ELSE
            answers[i] := @schema@.acquire(
                a_names[i], a_owners[i], a_modes[i], a_permits[i],
                a_capacities[i], a_flags[i] & 1 <> 0, a_flags[i] & 2 <> 0,
                a_flags[i] & 4 <> 0, a_priorities[i], a_ms[i], a_whos[i],
                a_bell);
        END IF;
        -- One that may be lost does not speak for the others.
        IF current_setting('synchronous_commit') = v_sync THEN
            v_firm := true;
        ELSE
            v_set := set_config('synchronous_commit', v_sync, true);
        END IF;
    END LOOP;
    IF NOT v_firm THEN
        PERFORM @schema@.lazily();
    END IF;
    RETURN answers;
END
$$;
