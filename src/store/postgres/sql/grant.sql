-- grant.sql - the grant rule of src/store/grant.c, over the rows of one name. The
-- steps in lease.sql call these; the name is locked by then (enter), and `at_us`
-- is the time of the step. One rule is this store's own: serve waits for a waiter that
-- was cut off, or passes it over.
--
-- A fence is greatest(last + 1, clock in us), with a `last` for each name: a
-- watermark for the whole store would be one row that every grant locks until its
-- commit. That the fences of a name rise all the same:
--   (1) `last` is changed under the lock of the name, and a name keeps its row,
--       so that its grants rise whatever the clock does.
--   (2) When a row is swept, its `last` goes into meta.floor in the same
--       transaction, and a new row of the name begins at that floor (found).
--   (3) A failover that lost grants loses rows too; then the clock carries it, as
--       on every store: grants from then on are later.
-- The answer "queued" has the fence greatest(last, clock - 1): at least every fence
-- granted before it, of this name by (1) and of others by the clock, and below every
-- fence that the name grants after it.

CREATE OR REPLACE FUNCTION @schema@.now_us() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;

-- A notice is a hint. It leaves when the step is committed.
CREATE OR REPLACE FUNCTION @schema@.ring(
    a_bell text, a_owner text, a_news text, a_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF a_bell <> '' THEN
        PERFORM pg_notify('dibs_' || a_bell,
                          a_owner || ' ' || a_news || ' ' || a_fence);
    END IF;
END
$$;

-- A crash of the server may lose the change that follows: it takes nothing from any
-- client, so that the loss costs time only.
CREATE OR REPLACE FUNCTION @schema@.lazily() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
END
$$;

-- Makes a row for a name that has none. Its fences begin above those of every
-- name that was swept, so perhaps of this one: the floor is read when the row is
-- there, and a sweep that took an earlier one has been committed by then.
CREATE OR REPLACE FUNCTION @schema@.found(a_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO @schema@.roll AS r (name, last, since_us)
    VALUES (a_name, 0, @schema@.now_us()) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        UPDATE @schema@.roll AS r
        SET last = (SELECT m.floor FROM @schema@.meta AS m)
        WHERE r.name = a_name;
    END IF;
END
$$;

-- An owner that has left is granted nothing until its tombstone's time has passed.
CREATE OR REPLACE FUNCTION @schema@.put_tomb(a_name text, a_owner text, a_until bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO @schema@.tomb AS t VALUES (a_name, a_owner, a_until)
    ON CONFLICT (name, owner) DO UPDATE SET until_us = a_until;
END
$$;

-- A ghost that a tombstone follows gets it; all parties whose time has passed are
-- dropped.
CREATE OR REPLACE FUNCTION @schema@.prune(a_name text, at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.tomb AS t
    WHERE t.name = a_name AND t.until_us <= at_us;
    IF NOT EXISTS (SELECT FROM @schema@.party AS p
                   WHERE p.name = a_name AND p.until_us <= at_us) THEN
        RETURN;
    END IF;
    PERFORM @schema@.put_tomb(p.name, p.owner, p.until_us + 10000000)
    FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role = 'ghost' AND p.claim
    AND p.until_us <= at_us AND p.until_us + 10000000 > at_us;
    DELETE FROM @schema@.party AS p
    WHERE p.name = a_name AND p.until_us <= at_us;
END
$$;

-- Makes a party of the holder that has the name by its row alone; tidy undoes it.
CREATE OR REPLACE FUNCTION @schema@.unfold(r @schema@.roll, at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF r.until_us > at_us THEN
        INSERT INTO @schema@.party VALUES (
            r.name, 1, 'holder', 'exclusive', false, false, 0, 1, 0, 0, r.last,
            r.ttl_ms, r.since_us, r.until_us, r.owner, r.bell, r.who);
    END IF;
    UPDATE @schema@.roll AS q SET owner = '', crowded = true
    WHERE q.name = r.name;
END
$$;

-- Begins a step: locks the name, ends expired parties, answers the time. From then on
-- every holder and waiter of the name has a party. Answers NULL for an unknown name,
-- but makes its row first with a_make.
CREATE OR REPLACE FUNCTION @schema@.enter(a_name text, a_make boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    r @schema@.roll;
    at_us bigint;
BEGIN
    LOOP
        SELECT * INTO r FROM @schema@.roll AS q
        WHERE q.name = a_name FOR UPDATE;
        EXIT WHEN FOUND;
        IF NOT a_make THEN
            RETURN NULL;
        END IF;
        PERFORM @schema@.found(a_name);
    END LOOP;
    at_us := @schema@.now_us();
    IF r.owner <> '' THEN
        PERFORM @schema@.unfold(r, at_us);
    ELSIF r.crowded THEN
        PERFORM @schema@.prune(a_name, at_us);
    END IF;
    RETURN at_us;
END
$$;

-- The owner's party, one with the role "tomb" when it has left, or NULL.
CREATE OR REPLACE FUNCTION @schema@.find(a_name text, a_owner text)
RETURNS @schema@.party
LANGUAGE plpgsql AS $$
DECLARE
    mine @schema@.party;
BEGIN
    SELECT * INTO mine FROM @schema@.party AS p
    WHERE p.name = a_name AND p.owner = a_owner;
    IF NOT FOUND AND EXISTS (
        SELECT FROM @schema@.tomb AS t
        WHERE t.name = a_name AND t.owner = a_owner) THEN
        mine.role := 'tomb';
        mine.owner := a_owner;
    END IF;
    RETURN mine;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.drop_party(a_name text, a_slot integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.party AS p WHERE p.name = a_name AND p.slot = a_slot;
END
$$;

-- Answers the slot that it got.
CREATE OR REPLACE FUNCTION @schema@.add_party(mine @schema@.party) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
    SELECT coalesce(max(p.slot), 0) + 1 INTO mine.slot
    FROM @schema@.party AS p WHERE p.name = mine.name;
    INSERT INTO @schema@.party SELECT mine.*;
    RETURN mine.slot;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.next_fence(a_name text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_fence bigint;
BEGIN
    UPDATE @schema@.roll AS r
    SET last = greatest(r.last + 1, @schema@.now_us())
    WHERE r.name = a_name RETURNING r.last INTO v_fence;
    RETURN v_fence;
END
$$;

-- Grants the name to a party. A waiter refreshes its place without the lock of the name
-- (wait_on), also after this step has read the clock, and believes in a claim for 3 s
-- from its last ask: so the claim lasts as long as its place does. Its row is locked before the
-- fence is drawn: an answer "queued" that it got has a watermark below that.
CREATE OR REPLACE FUNCTION @schema@.give(
    a_name text, a_slot integer, a_asking boolean, at_us bigint)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    mine @schema@.party;
    v_fence bigint;
BEGIN
    SELECT * INTO mine FROM @schema@.party AS p
    WHERE p.name = a_name AND p.slot = a_slot FOR UPDATE;
    v_fence := @schema@.next_fence(a_name);
    UPDATE @schema@.party AS p
    SET role = 'holder', fence = v_fence, claim = NOT a_asking,
        since_us = at_us,
        until_us = CASE WHEN a_asking THEN at_us + p.ttl_ms * 1000
                        ELSE greatest(mine.until_us, at_us + 3000000) END
    WHERE p.name = a_name AND p.slot = a_slot;
    IF NOT a_asking THEN
        PERFORM @schema@.ring(mine.bell, mine.owner, 'granted', v_fence);
    END IF;
END
$$;

-- Whether one more could be granted now, beside all that hold.
CREATE OR REPLACE FUNCTION @schema@.fits(
    a_name text, a_mode @schema@.mode, a_permits bigint, a_capacity bigint)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_held bigint;
    v_exclusive boolean;
    v_permits bigint;
BEGIN
    SELECT count(*), coalesce(bool_or(p.mode = 'exclusive'), false),
           coalesce(sum(p.permits), 0)
    INTO v_held, v_exclusive, v_permits FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role IN ('holder', 'ghost');
    RETURN CASE a_mode
        WHEN 'permits' THEN v_permits + a_permits <= a_capacity
        WHEN 'shared' THEN NOT v_exclusive
        ELSE v_held = 0
    END;
END
$$;

-- For how long a waiter may be silent: one that lives asks at least once a second
-- (POLL_MS in src/core/machine/acquire.c), and half as long again is for the way.
CREATE OR REPLACE FUNCTION @schema@.alive_us() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 1500000::bigint
$$;

-- When a waiter asked last: its place lives 3 s from then.
CREATE OR REPLACE FUNCTION @schema@.asked_us(other @schema@.party) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT other.until_us - 3000000
$$;

-- Whether a session listens to this bell. Such a session has an advisory lock by the
-- name of the channel (doorbell.c), which the server ends with the session: at once, when
-- the client was killed. The look takes the lock and lets it go in one expression, in
-- which nothing can come between, so that many dead waiters fill no table of locks.
-- A session does not see its own lock; that of the bell has a setting for it. A
-- waiter without a bell polls, and nothing is known about it.
CREATE OR REPLACE FUNCTION @schema@.hears(a_bell text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_key bigint := hashtextextended('dibs_' || a_bell, 0);
BEGIN
    IF a_bell IN ('', coalesce(current_setting('dibs.bell', true), '')) THEN
        RETURN true;
    END IF;
    RETURN NOT CASE WHEN pg_try_advisory_lock(v_key)
                    THEN pg_advisory_unlock(v_key) ELSE false END;
END
$$;

-- Until when a waiter that does not hear is waited for. A waiter that could not ask is
-- not silent: its silence counts from the beginning of this session at the earliest,
-- and no session outlives a restart, a crash or a failover of the server.
CREATE OR REPLACE FUNCTION @schema@.awaited_us(other @schema@.party) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_since timestamptz;
BEGIN
    SELECT coalesce(s.backend_start, pg_postmaster_start_time()) INTO v_since
    FROM pg_stat_get_activity(pg_backend_pid()) AS s;
    RETURN least(other.until_us, @schema@.alive_us() + greatest(
        @schema@.asked_us(other), (date_part('epoch', v_since) * 1000000)::bigint));
END
$$;

-- Serves the queue from its head, of those with at least a priority. Answers how
-- many were served, or -1 - so many when one is left to wait for: because it does not
-- fit, or does not hear. One that does not hear gets no claim: its client
-- was killed, and a claim would keep all others waiting; or was cut off, and asks
-- again at once. So the name is kept free until it asks, or has been silent for too
-- long: then it is passed over, and keeps its place.
CREATE OR REPLACE FUNCTION @schema@.serve(
    a_name text, a_asker text, a_priority integer, at_us bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    head @schema@.party;
    v_fits boolean;
    v_deaf boolean;
    v_served integer := 0;
BEGIN
    FOR head IN SELECT * FROM @schema@.party AS p
                WHERE p.name = a_name AND p.role = 'waiter'
                AND p.priority >= a_priority
                ORDER BY p.priority DESC, p.seq
    LOOP
        v_fits := @schema@.fits(a_name, head.mode, head.permits, head.capacity);
        v_deaf := head.owner <> a_asker
            AND (v_fits OR at_us >= @schema@.asked_us(head) + @schema@.alive_us())
            AND NOT @schema@.hears(head.bell);
        CONTINUE WHEN v_deaf AND at_us >= @schema@.awaited_us(head);
        IF v_deaf OR NOT v_fits THEN
            RETURN -1 - v_served;
        END IF;
        PERFORM @schema@.give(a_name, head.slot, head.owner = a_asker, at_us);
        v_served := v_served + 1;
    END LOOP;
    RETURN v_served;
END
$$;

-- When a waiter asks again that was refused though nobody holds the name: when the
-- next of the others has been silent for too long.
CREATE OR REPLACE FUNCTION @schema@.kept_ms(a_name text, a_owner text, at_us bigint)
RETURNS bigint
LANGUAGE sql AS $$
    SELECT coalesce((min(@schema@.asked_us(p)) + @schema@.alive_us() - at_us - 1)
                    / 1000 + 1, 100)
    FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role = 'waiter' AND p.owner <> a_owner
    AND @schema@.asked_us(p) + @schema@.alive_us() > at_us
$$;

-- Serves the whole queue. Answers whether somebody was served.
CREATE OR REPLACE FUNCTION @schema@.serve_all(a_name text, at_us bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_served integer := @schema@.serve(a_name, '', -2147483648, at_us);
BEGIN
    RETURN v_served NOT IN (0, -1);
END
$$;

-- Ends a step: a holder that is alone in the name, with a plain lock, has it by the
-- name's row alone again.
CREATE OR REPLACE FUNCTION @schema@.tidy(a_name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    mine @schema@.party;
    v_count integer := 0;
    v_tombs boolean := EXISTS (SELECT FROM @schema@.tomb AS t
                               WHERE t.name = a_name);
BEGIN
    FOR mine IN SELECT * FROM @schema@.party AS p
                WHERE p.name = a_name LIMIT 2
    LOOP
        v_count := v_count + 1;
    END LOOP;
    IF v_count = 1 AND NOT v_tombs AND mine.role = 'holder'
       AND mine.mode = 'exclusive' AND NOT mine.claim AND NOT mine.tell
       AND mine.priority = 0 THEN
        UPDATE @schema@.roll AS r
        SET owner = mine.owner, bell = mine.bell, who = mine.who,
            ttl_ms = mine.ttl_ms, since_us = mine.since_us,
            until_us = mine.until_us, crowded = false
        WHERE r.name = a_name AND r.last = mine.fence;
        IF FOUND THEN
            PERFORM @schema@.drop_party(a_name, mine.slot);
            RETURN;
        END IF;
    END IF;
    UPDATE @schema@.roll AS r SET crowded = v_count > 0 OR v_tombs
    WHERE r.name = a_name AND r.crowded <> (v_count > 0 OR v_tombs);
END
$$;

-- Both. Answers whether somebody was served.
CREATE OR REPLACE FUNCTION @schema@.settle(a_name text, at_us bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_served boolean := @schema@.serve_all(a_name, at_us);
BEGIN
    PERFORM @schema@.tidy(a_name);
    RETURN v_served;
END
$$;

-- Notifies the holders that want to know of a refusal, but for one. A holder with a
-- new grant gets the notice of the grant instead.
CREATE OR REPLACE FUNCTION @schema@.tell_wanted(a_name text, a_but text, at_us bigint)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.ring(p.bell, p.owner, 'wanted', p.fence)
    FROM @schema@.party AS p
    WHERE p.name = a_name AND p.role = 'holder' AND p.tell AND p.owner <> a_but
    AND NOT (p.claim AND p.since_us = at_us);
END
$$;

-- Removes names that were unused for a minute, a few at a time; the floor keeps the
-- highest fence of all of these. Waits for no lock.
CREATE OR REPLACE FUNCTION @schema@.sweep() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    dead_us bigint := @schema@.now_us() - 60000000;
    at @schema@.meta;
    v_name text;
    v_last bigint;
    v_to text := '';
    v_seen integer := 0;
BEGIN
    SELECT * INTO at FROM @schema@.meta FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    FOR v_name IN
        SELECT r.name FROM @schema@.roll AS r WHERE r.name > at.swept
        ORDER BY r.name LIMIT 64
    LOOP
        v_to := v_name;
        v_seen := v_seen + 1;
        SELECT r.last INTO v_last FROM @schema@.roll AS r
        WHERE r.name = v_name AND r.last < dead_us AND r.since_us < dead_us
        AND (r.owner = '' OR r.until_us < dead_us)
        FOR UPDATE SKIP LOCKED;
        IF FOUND AND NOT EXISTS (
            SELECT FROM @schema@.party AS p WHERE p.name = v_name
            AND p.until_us >= dead_us) AND NOT EXISTS (
            SELECT FROM @schema@.tomb AS t WHERE t.name = v_name
            AND t.until_us >= dead_us) THEN
            DELETE FROM @schema@.tomb AS t WHERE t.name = v_name;
            DELETE FROM @schema@.party AS p WHERE p.name = v_name;
            DELETE FROM @schema@.roll AS r WHERE r.name = v_name;
            at.floor := greatest(at.floor, v_last);
        END IF;
    END LOOP;
    UPDATE @schema@.meta AS m
    SET floor = at.floor, swept = CASE WHEN v_seen < 64 THEN '' ELSE v_to END
    WHERE m.floor <> at.floor OR m.swept <> v_to;
    RETURN NULL;
END
$$;

-- One in sixteen steps that add a name sweeps, when all else is done: a step of
-- several names has locked some that look unused, and may yet wait for others, which
-- it must not do while it has locked swept names. An upgrade finds the trigger there.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgname = 'sweep'
                   AND t.tgrelid = '@schema@.roll'::regclass) THEN
        CREATE CONSTRAINT TRIGGER sweep AFTER INSERT ON @schema@.roll
        DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (new.since_us % 16 = 0)
        EXECUTE FUNCTION @schema@.sweep();
    END IF;
END
$$;
