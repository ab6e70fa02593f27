-- lease.sql - the steps of src/store/lease.h, one function each. They answer text:
-- the number of a status, then what belongs to it.

-- Answers "0 fence left_ms claim", "1 fence left_ms queued ahead who", "3", or
-- "6 capacity"; "0 fence" when all of the ttl is left. a_flags: 1 to join the queue,
-- 2 to barge, 4 to tell; 8 for one of a batch.
CREATE OR REPLACE FUNCTION @schema@.acquire(
    a_name text, a_owner text, a_mode @schema@.mode, a_permits bigint,
    a_capacity bigint, a_flags integer, a_priority integer, a_ttl_ms bigint,
    a_who text, a_bell text)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF a_mode = 'exclusive' AND a_flags < 4 AND a_priority = 0 THEN
        RETURN @schema@.acquire_plain(a_name, a_owner, a_flags, a_ttl_ms, a_who,
                                      a_bell);
    END IF;
    RETURN @schema@.acquire_other(a_name, a_owner, a_mode, a_permits, a_capacity,
                                  a_flags, a_priority, a_ttl_ms, a_who, a_bell);
END
$$;

-- The short way: a plain lock on a name without holders and waiters.
CREATE OR REPLACE FUNCTION @schema@.acquire_plain(
    a_name text, a_owner text, a_flags integer, a_ttl_ms bigint, a_who text,
    a_bell text)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := date_part('epoch', clock_timestamp()) * 1000000;
    v_fence bigint;
BEGIN
    UPDATE @schema@.roll AS r
    SET last = greatest(r.last + 1, at_us), owner = a_owner, ttl_ms = a_ttl_ms,
        since_us = at_us, until_us = at_us + a_ttl_ms * 1000, bell = a_bell,
        who = a_who
    WHERE r.name = a_name AND NOT r.crowded
    AND (r.owner = '' OR r.until_us <= at_us)
    RETURNING r.last INTO v_fence;
    IF v_fence IS NULL THEN
        RETURN @schema@.acquire_other(a_name, a_owner, 'exclusive', 1, 0,
                                      a_flags, 0, a_ttl_ms, a_who, a_bell);
    END IF;
    RETURN '0 ' || v_fence;
END
$$;

-- An owner that only tries, while another holds a plain lock, is refused without
-- locking the row.
CREATE OR REPLACE FUNCTION @schema@.acquire_other(
    a_name text, a_owner text, a_mode @schema@.mode, a_permits bigint,
    a_capacity bigint, a_flags integer, a_priority integer, a_ttl_ms bigint,
    a_who text, a_bell text)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
    r @schema@.roll;
    v_answer text;
BEGIN
    IF a_flags & 1 = 0 AND a_capacity = 0 THEN
        SELECT * INTO r FROM @schema@.roll AS q WHERE q.name = a_name;
        IF r.owner <> '' AND r.owner <> a_owner AND r.until_us > at_us THEN
            RETURN '1 ' || greatest(r.last, at_us - 1) || ' ' ||
                   (r.until_us - at_us - 1) / 1000 + 1 || ' 0 0 ' || r.who;
        END IF;
    END IF;
    IF a_flags = 1 THEN
        v_answer := @schema@.wait_on(a_name, a_owner, a_mode, a_bell, at_us);
        IF v_answer IS NOT NULL THEN
            RETURN v_answer;
        END IF;
    END IF;
    RETURN @schema@.acquire_long(
        a_name, a_owner, a_mode, a_permits, a_capacity, a_flags & 1 <> 0,
        a_flags & 2 <> 0, a_flags & 4 <> 0, a_priority, a_ttl_ms, a_who,
        a_bell);
END
$$;

-- A waiter that can only go on waiting refreshes its place without a lock on the name:
-- most asks of many waiters are such, and the holder's steps would have to wait behind
-- them. NULL: it takes the long way.
--   (1) No waiter is served by this: some party holds, and no party's time has passed,
--       so the queue is as the last step left it. Only a waiter that would share the
--       name could be served by now: when another has been silent for so long that the
--       queue passes it over.
--   (2) A step that serves the party at the same time changes the same row. The second
--       of the two sees the change of the first: a party that no longer waits is not
--       refreshed.
--   (3) The row is all that the transaction has locked, and it waits for no other:
--       an ask of a batch does not come here.
--   (4) A place that was refreshed has not been served since its owner got it, so that
--       the watermark covers all earlier notices to that owner.
CREATE OR REPLACE FUNCTION @schema@.wait_on(
    a_name text, a_owner text, a_mode @schema@.mode, a_bell text, at_us bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    mine @schema@.party;
    first @schema@.party;
    v_ahead bigint;
BEGIN
    IF EXISTS (SELECT FROM @schema@.party AS p WHERE p.name = a_name
               AND (p.until_us <= at_us OR p.tell
                    OR p.role = 'waiter' AND a_mode <> 'exclusive'
                    AND @schema@.asked_us(p) + @schema@.alive_us() <= at_us)) THEN
        RETURN NULL;
    END IF;
    first := @schema@.first_to_end(a_name);
    IF first.name IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE @schema@.party AS p SET until_us = at_us + 3000000, bell = a_bell
    WHERE p.name = a_name AND p.owner = a_owner AND p.role = 'waiter'
    AND p.until_us > at_us RETURNING p.* INTO mine;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM @schema@.lazily();
    SELECT count(*) INTO v_ahead FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role = 'waiter'
    AND (p.priority > mine.priority
         OR p.priority = mine.priority AND p.seq < mine.seq);
    RETURN '1 ' || @schema@.watermark(a_name, at_us) || ' ' ||
           (first.until_us - at_us - 1) / 1000 + 1 || ' 1 ' || v_ahead || ' ' ||
           first.who;
END
$$;

-- A plain lock on a name that is not known. NULL when it is known by now. The floor
-- is read when the row is there (see found).
CREATE OR REPLACE FUNCTION @schema@.acquire_new(mine @schema@.party) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_floor bigint;
BEGIN
    INSERT INTO @schema@.roll VALUES (
        mine.since_us, mine.until_us, mine.since_us, mine.ttl_ms, false,
        mine.name, mine.owner, mine.bell, mine.who) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    mine.fence := mine.since_us;
    SELECT m.floor INTO v_floor FROM @schema@.meta AS m;
    IF v_floor >= mine.fence THEN
        mine.fence := v_floor + 1;
        UPDATE @schema@.roll AS r SET last = mine.fence
        WHERE r.name = mine.name;
    END IF;
    RETURN mine.fence;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.answer(mine @schema@.party, at_us bigint)
RETURNS text
LANGUAGE sql AS $$
    SELECT '0 ' || mine.fence || ' ' || (mine.until_us - at_us) / 1000 || ' ' ||
           mine.claim::integer
$$;

CREATE OR REPLACE FUNCTION @schema@.acquire_long(
    a_name text, a_owner text, a_mode @schema@.mode, a_permits bigint,
    a_capacity bigint, a_queue boolean, a_barge boolean, a_tell boolean,
    a_priority integer, a_ttl_ms bigint, a_who text, a_bell text)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint;
    mine @schema@.party;
    place @schema@.party;
    v_other bigint;
    v_served integer;
BEGIN
    LOOP
        at_us := @schema@.enter(
            a_name, a_mode <> 'exclusive' OR a_tell OR a_priority <> 0);
        EXIT WHEN at_us IS NOT NULL;
        at_us := @schema@.now_us();
        mine := (a_name, 0, 'holder', a_mode, false, a_tell, a_priority,
                 a_permits, a_capacity, 0, 0, a_ttl_ms, at_us,
                 at_us + a_ttl_ms * 1000, a_owner, a_bell, a_who);
        mine.fence := @schema@.acquire_new(mine);
        IF mine.fence IS NOT NULL THEN
            RETURN @schema@.answer(mine, at_us);
        END IF;
    END LOOP;

    mine := @schema@.find(a_name, a_owner);
    IF mine.role = 'holder' THEN
        PERFORM @schema@.settle(a_name, at_us);
        RETURN @schema@.answer(mine, at_us);
    ELSIF mine.role IN ('ghost', 'tomb') THEN
        PERFORM @schema@.settle(a_name, at_us);
        RETURN '3';
    END IF;
    SELECT p.capacity INTO v_other FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role IN ('holder', 'waiter', 'ghost')
    AND p.capacity <> a_capacity LIMIT 1;
    IF FOUND THEN
        IF mine.role = 'waiter' THEN
            PERFORM @schema@.drop_party(a_name, mine.slot);
        END IF;
        PERFORM @schema@.settle(a_name, at_us);
        RETURN '6 ' || v_other;
    END IF;

    IF mine.role = 'waiter' THEN
        v_served := @schema@.ask_again(mine, a_queue, a_barge, a_bell, at_us);
    ELSE
        mine := (a_name, 0, 'waiter', a_mode, false, a_tell, a_priority,
                 a_permits, a_capacity, 0, 0, a_ttl_ms, at_us,
                 at_us + 3000000, a_owner, a_bell, a_who);
        v_served := @schema@.ask_first(mine, a_queue, a_barge, at_us);
    END IF;
    place := @schema@.find(a_name, a_owner);
    IF place.role = 'holder' THEN
        PERFORM @schema@.settle(a_name, at_us);
        RETURN @schema@.answer(place, at_us);
    ELSIF place.role = 'waiter' THEN
        mine := place;
    END IF;
    RETURN @schema@.refuse(mine, a_queue, v_served, at_us);
END
$$;

-- An asker that is not in the queue comes after all of its priority. Answers how many
-- others were served.
CREATE OR REPLACE FUNCTION @schema@.ask_first(
    mine @schema@.party, a_queue boolean, a_barge boolean, at_us bigint)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_served integer := 0;
    v_fits boolean := a_barge AND @schema@.fits(
        mine.name, mine.mode, mine.permits, mine.capacity);
BEGIN
    IF NOT v_fits THEN
        v_served := @schema@.serve(mine.name, '', mine.priority, at_us);
        v_fits := v_served >= 0 AND @schema@.fits(
            mine.name, mine.mode, mine.permits, mine.capacity);
        v_served := greatest(v_served, -1 - v_served);
    END IF;
    IF v_fits THEN
        PERFORM @schema@.give(mine.name, @schema@.add_party(mine), true, at_us);
    ELSIF a_queue THEN
        SELECT coalesce(max(p.seq), 0) + 1 INTO mine.seq
        FROM @schema@.party AS p WHERE p.name = mine.name;
        PERFORM @schema@.add_party(mine);
    END IF;
    RETURN v_served;
END
$$;

-- A waiter refreshes its place, or gives it up when it does not want to wait.
CREATE OR REPLACE FUNCTION @schema@.ask_again(
    mine @schema@.party, a_queue boolean, a_barge boolean, a_bell text, at_us bigint)
RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    v_served integer;
BEGIN
    UPDATE @schema@.party AS p SET until_us = at_us + 3000000, bell = a_bell
    WHERE p.name = mine.name AND p.slot = mine.slot;
    IF a_barge AND @schema@.fits(mine.name, mine.mode, mine.permits,
                                 mine.capacity) THEN
        PERFORM @schema@.give(mine.name, mine.slot, true, at_us);
    END IF;
    v_served := @schema@.serve(mine.name, mine.owner, -2147483648, at_us);
    RETURN greatest(v_served, -1 - v_served);
END
$$;

CREATE OR REPLACE FUNCTION @schema@.first_to_end(a_name text) RETURNS @schema@.party
LANGUAGE plpgsql AS $$
DECLARE
    first @schema@.party;
BEGIN
    SELECT * INTO first FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role IN ('holder', 'ghost')
    ORDER BY p.until_us, p.fence LIMIT 1;
    RETURN first;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.watermark(a_name text, at_us bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT greatest(r.last, at_us - 1) FROM @schema@.roll AS r
            WHERE r.name = a_name);
END
$$;

-- `mine` is the place it has, or would have had: then without a seq.
CREATE OR REPLACE FUNCTION @schema@.refuse(
    mine @schema@.party, a_queue boolean, a_served integer, at_us bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    first @schema@.party;
    v_ahead bigint;
    v_served boolean;
BEGIN
    SELECT count(*) INTO v_ahead FROM @schema@.party AS p
    WHERE p.name = mine.name AND p.role = 'waiter' AND p.owner <> mine.owner
    AND (p.priority > mine.priority
         OR p.priority = mine.priority AND (mine.seq = 0 OR p.seq < mine.seq));
    IF mine.seq > 0 AND NOT a_queue THEN
        PERFORM @schema@.drop_party(mine.name, mine.slot);
    END IF;
    v_served := @schema@.serve_all(mine.name, at_us);
    PERFORM @schema@.tell_wanted(mine.name, '', at_us);
    first := @schema@.first_to_end(mine.name);
    PERFORM @schema@.tidy(mine.name);
    IF a_served = 0 AND NOT v_served THEN
        PERFORM @schema@.lazily();
    END IF;
    RETURN '1 ' || @schema@.watermark(mine.name, at_us) || ' ' ||
           coalesce((first.until_us - at_us - 1) / 1000 + 1,
                    @schema@.kept_ms(mine.name, mine.owner, at_us)) || ' ' ||
           a_queue::integer || ' ' || v_ahead || ' ' ||
           coalesce(first.who, 'others');
END
$$;

-- Renews many, in the order of their names, so that two such calls cannot deadlock.
-- Answers for each -1 when it is lost, else twice the time left in ms, plus one when a
-- waiter is in the queue.
CREATE OR REPLACE FUNCTION @schema@.renew(
    a_names text[], a_owners text[], a_fences bigint[], a_ttls bigint[], a_bell text)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    answers bigint[] := array_fill(-1::bigint, ARRAY[array_length(a_names, 1)]);
    at_us bigint;
    v_left bigint;
    i integer;
BEGIN
    FOR i IN SELECT n.i FROM unnest(a_names) WITH ORDINALITY AS n(name, i)
             ORDER BY n.name COLLATE "C"
    LOOP
        at_us := @schema@.now_us();
        UPDATE @schema@.roll AS r
        SET until_us = greatest(r.until_us, at_us + a_ttls[i] * 1000),
            bell = CASE WHEN a_bell = '' THEN r.bell ELSE a_bell END
        WHERE r.name = a_names[i] AND r.owner = a_owners[i]
        AND r.last = a_fences[i] AND r.until_us > at_us
        RETURNING (r.until_us - at_us) / 1000 INTO v_left;
        IF FOUND THEN
            answers[i] := 2 * v_left;
        ELSE
            answers[i] := @schema@.renew_long(a_names[i], a_owners[i],
                                              a_fences[i], a_ttls[i], a_bell);
        END IF;
    END LOOP;
    RETURN array_to_string(answers, ' ');
END
$$;

CREATE OR REPLACE FUNCTION @schema@.renew_long(
    a_name text, a_owner text, a_fence bigint, a_ttl_ms bigint, a_bell text)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.enter(a_name, false);
    v_left bigint;
    v_wanted boolean;
BEGIN
    IF at_us IS NULL THEN
        RETURN -1;
    END IF;
    UPDATE @schema@.party AS p
    SET until_us = greatest(p.until_us, at_us + a_ttl_ms * 1000), claim = false,
        bell = CASE WHEN a_bell = '' THEN p.bell ELSE a_bell END
    WHERE p.name = a_name AND p.owner = a_owner AND p.fence = a_fence
    AND p.role = 'holder'
    RETURNING (p.until_us - at_us) / 1000 INTO v_left;
    PERFORM @schema@.settle(a_name, at_us);
    IF v_left IS NULL THEN
        RETURN -1;
    END IF;
    v_wanted := EXISTS (SELECT FROM @schema@.party AS p
                        WHERE p.name = a_name AND p.role = 'waiter');
    RETURN 2 * v_left + v_wanted::integer;
END
$$;

-- Answers "0", or "3" when it had no lease.
CREATE OR REPLACE FUNCTION @schema@.release(
    a_name text, a_owner text, a_unanswered boolean, a_keep_ms bigint)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF a_unanswered OR a_keep_ms > 0 THEN
        RETURN @schema@.release_long(a_name, a_owner, a_unanswered, a_keep_ms);
    END IF;
    RETURN @schema@.release_plain(a_name, a_owner);
END
$$;

-- The short way. A crash of the server may lose it, as `lazily` explains.
CREATE OR REPLACE FUNCTION @schema@.release_plain(a_name text, a_owner text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := date_part('epoch', clock_timestamp()) * 1000000;
    v_set text;
BEGIN
    UPDATE @schema@.roll AS r SET owner = ''
    WHERE r.name = a_name AND r.owner = a_owner AND r.until_us > at_us
    RETURNING set_config('synchronous_commit', 'off', true) INTO v_set;
    IF v_set IS NULL THEN
        RETURN @schema@.release_long(a_name, a_owner, false, 0);
    END IF;
    RETURN '0';
END
$$;

CREATE OR REPLACE FUNCTION @schema@.release_long(
    a_name text, a_owner text, a_unanswered boolean, a_keep_ms bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.enter(a_name, a_unanswered);
    mine @schema@.party;
    v_served boolean;
BEGIN
    IF at_us IS NULL THEN
        RETURN '3';
    END IF;
    mine := @schema@.find(a_name, a_owner);
    IF mine.role = 'ghost' OR mine.role = 'holder' AND a_keep_ms > 0 THEN
        PERFORM @schema@.haunt(mine, a_unanswered, a_keep_ms, at_us);
    ELSIF a_unanswered THEN
        PERFORM @schema@.bury(mine, a_name, a_owner, at_us);
    ELSIF mine.role IN ('holder', 'waiter') THEN
        PERFORM @schema@.drop_party(a_name, mine.slot);
    END IF;
    v_served := @schema@.settle(a_name, at_us);
    IF NOT v_served AND NOT a_unanswered AND a_keep_ms = 0 THEN
        PERFORM @schema@.lazily();
    END IF;
    RETURN CASE WHEN mine.role IN ('holder', 'ghost') THEN '0' ELSE '3' END;
END
$$;

-- A ghost that is released again keeps its time.
CREATE OR REPLACE FUNCTION @schema@.haunt(
    mine @schema@.party, a_unanswered boolean, a_keep_ms bigint, at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.party AS p
    SET role = 'ghost',
        claim = a_unanswered OR p.role = 'ghost' AND p.claim,
        until_us = CASE WHEN p.role = 'ghost' THEN p.until_us
                        ELSE at_us + a_keep_ms * 1000 END
    WHERE p.name = mine.name AND p.slot = mine.slot;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.bury(
    mine @schema@.party, a_name text, a_owner text, at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF mine.slot IS NOT NULL THEN
        PERFORM @schema@.drop_party(a_name, mine.slot);
    END IF;
    PERFORM @schema@.put_tomb(a_name, a_owner, at_us + 10000000);
END
$$;

-- Answers "0 broken", "5" or "4".
CREATE OR REPLACE FUNCTION @schema@.take(a_name text, a_fence bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.enter(a_name, false);
    v_held boolean := false;
    v_broken integer := 0;
    other @schema@.party;
BEGIN
    IF at_us IS NULL THEN
        RETURN '5';
    END IF;
    FOR other IN SELECT * FROM @schema@.party AS p
                 WHERE p.name = a_name AND p.role IN ('holder', 'ghost')
    LOOP
        v_held := true;
        CONTINUE WHEN a_fence <> 0 AND other.fence <> a_fence;
        v_broken := v_broken + 1;
        IF other.role = 'holder' THEN
            PERFORM @schema@.ring(other.bell, other.owner, 'broken',
                                  other.fence);
        END IF;
        IF other.role = 'ghost' AND other.claim THEN
            PERFORM @schema@.bury(other, a_name, other.owner, at_us);
        ELSE
            PERFORM @schema@.drop_party(a_name, other.slot);
        END IF;
    END LOOP;
    PERFORM @schema@.settle(a_name, at_us);
    RETURN CASE WHEN v_broken > 0 THEN '0 ' || v_broken
                WHEN v_held THEN '4' ELSE '5' END;
END
$$;

-- Changes nothing. Answers "0 asked", "5" or "4".
CREATE OR REPLACE FUNCTION @schema@.yield(a_name text, a_fence bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
    v_held boolean := false;
    v_found boolean := false;
    v_asked integer := 0;
    other @schema@.lease;
BEGIN
    FOR other IN SELECT * FROM @schema@.lease AS p
                 WHERE p.name = a_name AND p.role IN ('holder', 'ghost')
                 AND p.until_us > at_us
    LOOP
        v_held := true;
        CONTINUE WHEN a_fence <> 0 AND other.fence <> a_fence;
        v_found := true;
        IF other.role = 'holder' AND other.bell <> '' THEN
            PERFORM @schema@.ring(other.bell, other.owner, 'yield',
                                  other.fence);
            v_asked := v_asked + 1;
        END IF;
    END LOOP;
    RETURN CASE WHEN v_found THEN '0 ' || v_asked
                WHEN v_held THEN '4' ELSE '5' END;
END
$$;
