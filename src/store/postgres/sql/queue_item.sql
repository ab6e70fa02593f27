-- queue_item.sql - the ways of an item: delivered, settled, returned, handed over; as
-- src/store/deliver_item.c.

CREATE OR REPLACE FUNCTION @schema@.worker_lives(st @schema@.queue_step, a_worker text)
RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM @schema@.lane AS l WHERE l.queue = st.queue
        AND l.worker = a_worker AND l.worker <> '' AND l.until_us > st.at_us);
END
$$;

-- The items live no longer. Their dedup ids are free after their windows; until then
-- the rows are left to the sweep. Nobody else waits for these rows: the id of an item
-- that is still there is not taken by another.
CREATE OR REPLACE FUNCTION @schema@.drop_items(
    st @schema@.queue_step, a_ids bigint[], a_dedups text[])
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM @schema@.item_data AS d
    WHERE d.id = ANY (a_ids);
    IF a_dedups IS NOT NULL THEN
        DELETE FROM @schema@.dedup AS d
        WHERE d.queue = st.queue AND d.id = ANY (a_dedups)
        AND d.item = ANY (a_ids) AND d.until_us <= st.at_us;
    END IF;
    st.counts[1] := st.counts[1] - cardinality(a_ids);
    st.serves := st.serves OR st.serial;
    RETURN st;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.lost_delay_us(a_lost bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN a_lost < 2 THEN 0 WHEN a_lost > 6 THEN 60000000
                ELSE 1000000 * (1 << (a_lost - 1)::integer) END::bigint
$$;

-- Moves an item to the dead letters, and drops some of the oldest of these beyond the bound: as
-- many as the rule of src/store/deliver_item.c, so that no death takes long.
CREATE OR REPLACE FUNCTION @schema@.bury_item(st @schema@.queue_step, it @schema@.item)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_dropped bigint;
BEGIN
    INSERT INTO @schema@.dead
    SELECT @schema@.next_id(st.at_us), it.id, @schema@.now_us(), it.attempts,
           it.lost, it.tries, it.len, it.priority, it.queue, it.to_worker,
           it.dedup, it.reason, d.data
    FROM @schema@.item_data AS d WHERE d.id = it.id;
    DELETE FROM @schema@.item AS i WHERE i.id = it.id;
    st := @schema@.drop_items(st, ARRAY[it.id], ARRAY[it.dedup]);
    WITH dropped AS (
        DELETE FROM @schema@.dead AS d
        WHERE d.queue = st.queue AND d.position IN (
            SELECT o.position FROM @schema@.dead AS o
            WHERE o.queue = st.queue AND o.position <= (
                SELECT k.position FROM @schema@.dead AS k
                WHERE k.queue = st.queue
                ORDER BY k.position DESC OFFSET st.deads LIMIT 1)
            ORDER BY o.position LIMIT 64
            FOR UPDATE SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) INTO v_dropped FROM dropped;
    st.counts[2] := st.counts[2] + 1 - v_dropped;
    st.counts[8] := st.counts[8] + 1;
    st.counts[9] := st.counts[9] + v_dropped;
    RETURN st;
END
$$;

-- Ends the delivery of an item: 'nack', 'lost', 'unbegun' or 'dead'.
CREATE OR REPLACE FUNCTION @schema@.return_item(
    st @schema@.queue_step, it @schema@.item, a_how text, a_delay_us bigint,
    a_reason text)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_tries bigint := CASE WHEN it.tries > 0 THEN it.tries ELSE st.tries END;
    v_dead boolean := a_how = 'dead';
BEGIN
    st.serves := st.serves OR st.serial;
    IF a_how = 'unbegun' THEN
        it.attempts := it.attempts - 1;
    ELSE
        it.reason := a_reason;
        v_dead := v_dead OR it.attempts >= v_tries;
    END IF;
    IF a_how = 'lost' THEN
        st.counts[7] := st.counts[7] + 1;
        it.lost := it.lost + 1;
        v_dead := v_dead OR it.lost >= st.lost_max;
        a_delay_us := @schema@.lost_delay_us(it.lost);
    ELSIF a_how = 'nack' THEN
        st.counts[6] := st.counts[6] + 1;
    END IF;
    IF v_dead THEN
        RETURN @schema@.bury_item(st, it);
    ELSIF a_delay_us > 0 THEN
        it.due_us := st.at_us + a_delay_us;
        it.own := '';
        st.due_us := least(st.due_us, it.due_us);
    ELSE
        it.due_us := 0;
        it.own := CASE WHEN it.to_worker <> ''
                            AND @schema@.worker_lives(st, it.to_worker)
                       THEN it.to_worker ELSE '' END;
        st.serves := true;
    END IF;
    UPDATE @schema@.item AS i
    SET lane = 0, told = 0, limit_us = 0, attempts = it.attempts,
        lost = it.lost, reason = it.reason, due_us = it.due_us, own = it.own
    WHERE i.id = it.id;
    RETURN st;
END
$$;

-- Ends lanes and deliveries whose time is up, and makes ready what is due, a bounded
-- number of each. It leaves those that another step has locked: they are its business.
CREATE OR REPLACE FUNCTION @schema@.tidy_queue(st @schema@.queue_step)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_ended boolean;
    v_late boolean;
    v_due bigint;
    v_ids bigint[];
    ln @schema@.lane;
    it @schema@.item;
BEGIN
    SELECT EXISTS (SELECT FROM @schema@.lane AS l WHERE l.queue = st.queue
                   AND l.end_s <= st.at_us / 1000000
                   AND l.until_us <= st.at_us),
           EXISTS (SELECT FROM @schema@.item AS i WHERE i.queue = st.queue
                   AND i.limit_us > 0 AND i.limit_us <= st.at_us),
           (SELECT i.due_us FROM @schema@.item AS i WHERE i.queue = st.queue
            AND i.due_us > 0 ORDER BY i.due_us LIMIT 1)
    INTO v_ended, v_late, v_due;
    st.due_us := v_due;
    IF v_ended THEN
        FOR ln IN
            SELECT l.* FROM @schema@.lane AS l WHERE l.queue = st.queue
            AND l.end_s <= st.at_us / 1000000 AND l.until_us <= st.at_us
            ORDER BY l.end_s LIMIT 64 FOR UPDATE SKIP LOCKED
        LOOP
            st := @schema@.end_lane(st, ln, true);
        END LOOP;
    END IF;
    IF v_late THEN
        FOR it IN
            SELECT i.* FROM @schema@.item AS i
            JOIN @schema@.lane AS l ON l.queue = i.queue AND l.lane = i.lane
            WHERE i.queue = st.queue AND i.limit_us > 0
            AND i.limit_us <= st.at_us ORDER BY i.limit_us
            LIMIT 256 FOR UPDATE SKIP LOCKED
        LOOP
            st := @schema@.return_item(
                st, it, CASE WHEN it.told <> 0 THEN 'lost' ELSE 'unbegun' END,
                0, 'it was not settled within its limit');
        END LOOP;
    END IF;
    IF v_due <= st.at_us THEN
        v_ids := ARRAY(
            SELECT k.id FROM @schema@.item AS k WHERE k.queue = st.queue
            AND k.due_us > 0 AND k.due_us <= st.at_us
            ORDER BY k.due_us LIMIT 256 FOR UPDATE SKIP LOCKED);
        UPDATE @schema@.item AS i
        SET place = CASE WHEN st.serial AND i.attempts > 0 THEN i.place
                         ELSE i.due_us END,
            due_us = 0,
            own = CASE WHEN i.to_worker <> ''
                            AND @schema@.worker_lives(st, i.to_worker)
                       THEN i.to_worker ELSE '' END
        WHERE i.id = ANY (v_ids);
        st.serves := true;
    END IF;
    RETURN st;
END
$$;

-- Locks the first that are ready for everybody and for a worker, in one order. It
-- looks at more than it wants, because others may have locked some.
CREATE OR REPLACE FUNCTION @schema@.pick_both(a_queue text, a_worker text, a_want bigint)
RETURNS bigint[]
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    v_limit bigint := a_want + 16;
    v_seen bigint[];
    v_ids bigint[];
    v_id bigint;
BEGIN
    LOOP
        v_seen := ARRAY(
            SELECT o.id FROM (
                (SELECT c.id, c.priority, c.place FROM @schema@.item AS c
                 WHERE c.queue = a_queue AND c.own = ''
                 AND c.lane = 0 AND c.due_us = 0
                 ORDER BY c.priority DESC, c.place, c.id LIMIT v_limit)
                UNION ALL
                (SELECT c.id, c.priority, c.place FROM @schema@.item AS c
                 WHERE c.queue = a_queue AND c.own = a_worker
                 AND c.lane = 0 AND c.due_us = 0
                 ORDER BY c.priority DESC, c.place, c.id LIMIT v_limit)) AS o
            ORDER BY o.priority DESC, o.place, o.id LIMIT v_limit);
        v_ids := '{}';
        FOREACH v_id IN ARRAY v_seen LOOP
            PERFORM FROM @schema@.item AS k
            WHERE k.id = v_id AND k.lane = 0 AND k.due_us = 0
            FOR UPDATE SKIP LOCKED;
            IF FOUND THEN
                v_ids := v_ids || v_id;
            END IF;
            EXIT WHEN cardinality(v_ids) = a_want;
        END LOOP;
        EXIT WHEN cardinality(v_ids) > 0 OR cardinality(v_seen) < v_limit;
        v_limit := v_limit * 4;
    END LOOP;
    RETURN v_ids;
END
$$;

-- Delivers to a lane what is ready for everybody and for its worker, in one order; or
-- what is ready for a_from. a_room: the bytes up to which it takes.
CREATE OR REPLACE FUNCTION @schema@.pick_items(
    st @schema@.queue_step, ln @schema@.lane, a_from text, a_want bigint,
    a_told bigint, a_room bigint)
RETURNS @schema@.taken
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    v_ids bigint[];
    v_lens integer[];
    v_count integer := 0;
    v_base bigint;
    t @schema@.taken := ('{}', ln.last, 0, false);
BEGIN
    IF a_from IS NOT NULL OR ln.worker = '' THEN
        SELECT array_agg(o.id), array_agg(o.len), max(o.fence)
        INTO v_ids, v_lens, v_base FROM (
            SELECT k.id, k.len, k.fence FROM @schema@.item AS k
            WHERE k.queue = st.queue AND k.own = coalesce(a_from, '')
            AND k.lane = 0 AND k.due_us = 0
            ORDER BY k.priority DESC, k.place, k.id
            LIMIT a_want FOR UPDATE SKIP LOCKED) AS o;
    ELSE
        v_ids := @schema@.pick_both(st.queue, ln.worker, a_want);
        SELECT array_agg(k.len ORDER BY array_position(v_ids, k.id)),
               max(k.fence)
        INTO v_lens, v_base FROM @schema@.item AS k WHERE k.id = ANY (v_ids);
    END IF;
    IF v_lens IS NULL THEN
        RETURN t;
    END IF;
    WHILE v_count < cardinality(v_ids) AND t.bytes < a_room LOOP
        v_count := v_count + 1;
        t.bytes := t.bytes + v_lens[v_count];
    END LOOP;
    v_base := greatest(v_base, ln.last, st.last, st.at_us);
    t.cut := v_count < cardinality(v_ids);
    t.ids := v_ids[1 : v_count];
    t.last := v_base + v_count;
    UPDATE @schema@.item AS i
    SET lane = ln.lane, told = a_told, attempts = i.attempts + 1, own = '',
        limit_us = CASE WHEN ln.limit_ms > 0
                        THEN st.at_us + ln.limit_ms * 1000 ELSE 0 END,
        fence = v_base + array_position(t.ids, i.id)
    WHERE i.id = ANY (t.ids);
    RETURN t;
END
$$;

-- One is out, or was and is delayed: that holds up a serial queue.
CREATE OR REPLACE FUNCTION @schema@.is_held_up(a_queue text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM @schema@.item AS i
                   WHERE i.queue = a_queue AND i.lane <> 0)
        OR EXISTS (SELECT FROM @schema@.item AS i WHERE i.queue = a_queue
                   AND i.due_us > 0 AND i.attempts > 0);
END
$$;

-- Delivers up to a_want items to a lane, in the answer to its number or, with 0, unheard:
-- its own and everybody's, then half of what the worker with most has.
CREATE OR REPLACE FUNCTION @schema@.take_items(
    st @schema@.queue_step, ln @schema@.lane, a_want bigint, a_told bigint,
    a_bytes bigint)
RETURNS @schema@.taken
LANGUAGE plpgsql AS $$
DECLARE
    t @schema@.taken := ('{}', ln.last, 0, false);
    more @schema@.taken;
    v_room bigint := 1048576 - a_bytes;
    v_from text;
    v_count bigint;
BEGIN
    IF st.paused OR a_want <= 0 OR v_room <= 0 THEN
        RETURN t;
    ELSIF st.serial THEN
        IF @schema@.is_held_up(st.queue) THEN
            RETURN t;
        END IF;
        a_want := 1;
    END IF;
    t := @schema@.pick_items(st, ln, NULL, a_want, a_told, v_room);
    a_want := a_want - cardinality(t.ids);
    IF a_want = 0 OR t.cut OR t.bytes >= v_room THEN
        RETURN t;
    END IF;
    SELECT i.own, count(*) INTO v_from, v_count FROM @schema@.item AS i
    WHERE i.queue = st.queue AND i.own > '' AND i.lane = 0 AND i.due_us = 0
    GROUP BY i.own ORDER BY count(*) DESC, i.own LIMIT 1;
    IF v_from IS NULL THEN
        RETURN t;
    END IF;
    ln.last := t.last;
    more := @schema@.pick_items(st, ln, v_from,
                                least(a_want, (v_count + 1) / 2), a_told,
                                v_room - t.bytes);
    t.ids := t.ids || more.ids;
    t.last := more.last;
    t.bytes := t.bytes + more.bytes;
    t.cut := more.cut;
    RETURN t;
END
$$;

-- Hands over to the lanes that wait, those that asked last first: to those of a worker,
-- or to all. The lock of the queue is held. A lane whose row is locked is passed over:
-- its own step looks again, or it is being served. So no lane is locked by whoever has
-- nothing for it, as a push of a delayed item: another push would pass it over, and nobody
-- would be rung. That an item is there does not do, for a take may have it locked.
CREATE OR REPLACE FUNCTION @schema@.serve_lanes(
    st @schema@.queue_step, a_worker text, a_alone boolean)
RETURNS @schema@.queue_step
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    ln @schema@.lane;
    t @schema@.taken;
    v_own text;
BEGIN
    IF NOT EXISTS (
           SELECT FROM @schema@.lane AS l
           WHERE l.queue = st.queue AND l.waits_us > 0
           AND l.until_us > st.at_us
           AND (a_worker IS NULL OR l.worker = a_worker)) THEN
        RETURN st;
    END IF;
    st := @schema@.queue_reread(st, a_alone);
    LOOP
        EXIT WHEN st.paused OR st.serial AND @schema@.is_held_up(st.queue);
        SELECT i.own INTO v_own FROM @schema@.item AS i
        WHERE i.queue = st.queue AND i.lane = 0 AND i.due_us = 0
        ORDER BY i.own, i.priority DESC, i.place, i.id
        LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        SELECT * INTO ln FROM @schema@.lane AS l
        WHERE l.queue = st.queue AND l.waits_us > 0
        AND l.until_us > st.at_us
        AND (a_worker IS NULL OR l.worker = a_worker)
        ORDER BY l.waits_us DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        t := @schema@.take_items(st, ln, ln.want, 0, 0);
        IF cardinality(t.ids) = 0 THEN
            -- Others have locked all of the worker with most.
            t := @schema@.pick_items(st, ln, v_own, 1, 0, 1);
        END IF;
        EXIT WHEN cardinality(t.ids) = 0;
        st.counts[4] := st.counts[4] + cardinality(t.ids);
        st.last := t.last;
        UPDATE @schema@.lane AS l
        SET waits_us = 0, unheard = true, last = t.last
        WHERE l.queue = ln.queue AND l.lane = ln.lane;
        PERFORM @schema@.ring(ln.bell, @schema@.lane_address(ln.lane), 'items',
                              t.last);
    END LOOP;
    RETURN st;
END
$$;

-- The end of every step that may have made something ready.
CREATE OR REPLACE FUNCTION @schema@.serve_queue(st @schema@.queue_step)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_alone boolean := st.serial;
BEGIN
    IF st.serves THEN
        PERFORM @schema@.queue_lock(st.queue, v_alone);
        st := @schema@.serve_lanes(st, NULL, v_alone);
    END IF;
    RETURN st;
END
$$;
