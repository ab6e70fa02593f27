-- turn.sql - the steps convert and acquire_all of src/store/lease.h.

-- Answers "0 fence left_ms claim", "1 who" when others share it, "3", or
-- "18 why".
CREATE OR REPLACE FUNCTION @schema@.turn(
    a_name text, a_owner text, a_fence bigint, a_mode @schema@.mode, a_to text,
    a_ttl_ms bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.enter(a_name, false);
    mine @schema@.party;
    heir @schema@.party;
    v_answer text;
BEGIN
    IF at_us IS NULL THEN
        RETURN '3';
    END IF;
    mine := @schema@.find(a_name, a_owner);
    heir := @schema@.find(a_name, a_to);
    IF mine.role = 'holder' AND mine.fence = a_fence THEN
        v_answer := @schema@.check_turn(mine, heir, a_mode, at_us);
        IF v_answer IS NOT NULL THEN
            PERFORM @schema@.settle(a_name, at_us);
            RETURN v_answer;
        END IF;
        PERFORM @schema@.turn_lease(mine, a_mode, a_to, a_ttl_ms, at_us);
    ELSIF heir.role IS DISTINCT FROM 'holder' OR heir.mode <> a_mode
          OR heir.fence <= a_fence THEN
        PERFORM @schema@.settle(a_name, at_us);
        RETURN '3';
    END IF;
    v_answer := @schema@.answer(@schema@.find(a_name, a_to), at_us);
    PERFORM @schema@.settle(a_name, at_us);
    RETURN v_answer;
END
$$;

-- Why a lease cannot be converted, or NULL.
CREATE OR REPLACE FUNCTION @schema@.check_turn(
    mine @schema@.party, heir @schema@.party, a_mode @schema@.mode, at_us bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_who text;
BEGIN
    IF (mine.mode = 'permits') <> (a_mode = 'permits') THEN
        RETURN '18 a lock cannot be turned into permits, nor permits into a '
               'lock';
    ELSIF heir.role IN ('ghost', 'tomb') THEN
        RETURN '3';
    ELSIF heir.owner IS NOT NULL AND heir.owner <> mine.owner THEN
        RETURN '18 the new owner has a part in the name already';
    ELSIF a_mode = 'exclusive' THEN
        SELECT p.who INTO v_who FROM @schema@.party AS p
        WHERE p.name = mine.name AND p.role IN ('holder', 'ghost')
        AND p.slot <> mine.slot ORDER BY p.fence LIMIT 1;
        IF FOUND THEN
            PERFORM @schema@.tell_wanted(mine.name, mine.owner, at_us);
            RETURN '1 ' || v_who;
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- The client of another owner has asked nothing yet, so it has no doorbell.
CREATE OR REPLACE FUNCTION @schema@.turn_lease(
    mine @schema@.party, a_mode @schema@.mode, a_to text, a_ttl_ms bigint,
    at_us bigint)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_moved boolean := a_to <> mine.owner;
BEGIN
    IF v_moved OR mine.mode = 'shared' AND a_mode = 'exclusive' THEN
        mine.fence := @schema@.next_fence(mine.name);
        mine.since_us := at_us;
    END IF;
    UPDATE @schema@.party AS p
    SET mode = a_mode, owner = a_to, fence = mine.fence,
        since_us = mine.since_us, claim = false,
        until_us = greatest(p.until_us, at_us + a_ttl_ms * 1000),
        bell = CASE WHEN v_moved THEN '' ELSE p.bell END,
        tell = p.tell AND NOT v_moved
    WHERE p.name = mine.name AND p.slot = mine.slot;
END
$$;

-- Locks every name in order, looks at each as it was given, and grants all or
-- none. Answers "0" and for each fence left_ms claim, or why the first refused name
-- was refused: "1 which fence left_ms ahead who", "3 which" or "6 which capacity".
CREATE OR REPLACE FUNCTION @schema@.acquire_all(
    a_names text[], a_owners text[], a_priorities bigint[], a_ttls bigint[],
    a_tells bigint[], a_whos text[], a_bell text)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_answer text := '0';
    v_count integer := array_length(a_names, 1);
    v_name text;
    v_why text;
    at_us bigint;
    mine @schema@.party;
BEGIN
    FOR v_name IN SELECT n.name FROM unnest(a_names) AS n(name)
                  ORDER BY n.name COLLATE "C"
    LOOP
        PERFORM @schema@.enter(v_name, true);
    END LOOP;
    at_us := @schema@.now_us();
    FOR i IN 1 .. v_count LOOP
        PERFORM @schema@.prune(a_names[i], at_us);
        PERFORM @schema@.serve_all(a_names[i], at_us);
        v_why := coalesce(v_why, @schema@.why_not(
            i - 1, a_names[i], a_owners[i], a_priorities[i]::integer, at_us));
    END LOOP;
    FOR i IN 1 .. v_count LOOP
        IF v_why IS NULL THEN
            mine := (a_names[i], 0, 'waiter', 'exclusive', false,
                     a_tells[i] <> 0, a_priorities[i], 1, 0, 0, 0, a_ttls[i], at_us, at_us,
                     a_owners[i], a_bell, a_whos[i]);
            v_answer := v_answer || @schema@.acquire_one(mine, at_us);
        END IF;
        PERFORM @schema@.tidy(a_names[i]);
    END LOOP;
    RETURN coalesce(v_why, v_answer);
END
$$;

-- Acquires a name that is free: " fence left_ms claim".
CREATE OR REPLACE FUNCTION @schema@.acquire_one(mine @schema@.party, at_us bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.party := @schema@.find(mine.name, mine.owner);
BEGIN
    IF old.role IS DISTINCT FROM 'holder' THEN
        IF old.role IS NOT NULL THEN
            PERFORM @schema@.drop_party(mine.name, old.slot);
        END IF;
        PERFORM @schema@.give(mine.name, @schema@.add_party(mine), true, at_us);
    END IF;
    RETURN substr(@schema@.answer(@schema@.find(mine.name, mine.owner), at_us),
                  2);
END
$$;

-- Why a name cannot be acquired exclusively now, or NULL.
CREATE OR REPLACE FUNCTION @schema@.why_not(
    a_which integer, a_name text, a_owner text, a_priority integer, at_us bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    mine @schema@.party := @schema@.find(a_name, a_owner);
    first @schema@.party := @schema@.first_to_end(a_name);
    v_other bigint;
    v_ahead bigint;
BEGIN
    IF mine.role = 'holder' THEN
        RETURN NULL;
    ELSIF mine.role IN ('ghost', 'tomb') THEN
        RETURN '3 ' || a_which;
    END IF;
    SELECT p.capacity INTO v_other FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role IN ('holder', 'waiter', 'ghost')
    AND p.capacity <> 0 LIMIT 1;
    IF FOUND THEN
        RETURN '6 ' || a_which || ' ' || v_other;
    END IF;
    SELECT count(*) INTO v_ahead FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role = 'waiter' AND p.priority >= a_priority;
    IF first.role IS NULL
       AND @schema@.serve(a_name, '', a_priority, at_us) = 0 THEN
        RETURN NULL;
    END IF;
    PERFORM @schema@.tell_wanted(a_name, '', at_us);
    RETURN '1 ' || a_which || ' ' || @schema@.watermark(a_name, at_us) || ' ' ||
           coalesce((first.until_us - at_us - 1) / 1000 + 1,
                    @schema@.kept_ms(a_name, a_owner, at_us)) || ' ' ||
           v_ahead || ' ' || coalesce(first.who, 'others');
END
$$;
