-- settle.sql - version 13: a request that repeats the number of a lane, and settles in
-- another way, is another's; a purge looks after the lanes that it has locked. It replaces
-- functions of earlier versions.

-- The letters of the settlements (settle_items), as the results of a lane have them.
CREATE OR REPLACE FUNCTION @schema@.verbs(a_settle bigint[])
RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_verbs text := '';
BEGIN
    FOR n IN 1 .. coalesce(cardinality(a_settle), 0) BY 5 LOOP
        v_verbs := v_verbs || substr('andue', a_settle[n]::integer + 1, 1);
    END LOOP;
    RETURN v_verbs;
END
$$;

-- Acks many items of a lane at once, no two settlements of the same one; as settle_items.
CREATE OR REPLACE FUNCTION @schema@.ack_items(st @schema@.queue_step, a_lane bigint,
                                   a_ids bigint[], a_fences bigint[],
                                   a_attempts bigint[], a_results text[])
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_done bigint[];
    v_dedups text[];
BEGIN
    IF st.keep_done > 0 THEN
        PERFORM @schema@.keep_done(st, a_lane, a_ids, a_fences, a_attempts,
                                   a_results);
    END IF;
    WITH done AS (
        DELETE FROM @schema@.item AS i
        WHERE i.id = ANY (a_ids) AND i.queue = st.queue AND i.lane = a_lane
        AND i.fence = a_fences[array_position(a_ids, i.id)]
        AND i.attempts = a_attempts[array_position(a_ids, i.id)]
        RETURNING i.id, i.dedup)
    SELECT coalesce(array_agg(d.id), '{}'),
           array_agg(d.dedup) FILTER (WHERE d.dedup <> '')
    INTO v_done, v_dedups FROM done AS d;
    FOR n IN 1 .. cardinality(a_ids) LOOP
        st.results := st.results
            || CASE WHEN a_ids[n] = ANY (v_done) THEN 'a' ELSE 'A' END;
    END LOOP;
    st.counts[5] := st.counts[5] + cardinality(v_done);
    RETURN @schema@.drop_items(st, v_done, v_dedups);
END
$$;

-- Settles what a lane has. a_settle has verb, id, fence, attempt and ms of each
-- settlement: 0 ack, 1 nack, 2 dead, 3 unbegun, 4 extend. results has the letter of each, a
-- capital if it was lost. The lane's row is locked, so nobody else changes these items.
CREATE OR REPLACE FUNCTION @schema@.settle_items(
    st @schema@.queue_step, a_lane bigint, a_settle bigint[], a_reasons text[])
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    it @schema@.item;
    v_at integer;
    v_acks bigint[] := '{}';
    v_fences bigint[] := '{}';
    v_attempts bigint[] := '{}';
BEGIN
    FOR n IN 1 .. cardinality(a_settle) / 5 LOOP
        v_at := 5 * n - 4;
        EXIT WHEN a_settle[v_at] <> 0 OR a_settle[v_at + 1] = ANY (v_acks);
        v_acks := v_acks || a_settle[v_at + 1];
        v_fences := v_fences || a_settle[v_at + 2];
        v_attempts := v_attempts || a_settle[v_at + 3];
    END LOOP;
    IF cardinality(v_acks) > 0 THEN
        st := @schema@.ack_items(st, a_lane, v_acks, v_fences, v_attempts,
                                 a_reasons);
    END IF;
    FOR n IN cardinality(v_acks) + 1 .. cardinality(a_settle) / 5 LOOP
        v_at := 5 * n - 4;
        SELECT * INTO it FROM @schema@.item AS i
        WHERE i.id = a_settle[v_at + 1] AND i.queue = st.queue
        AND i.lane = a_lane AND i.fence = a_settle[v_at + 2]
        AND i.attempts = a_settle[v_at + 3];
        IF NOT FOUND THEN
            st.results := st.results || substr('ANDUE', a_settle[v_at]::integer + 1, 1);
        ELSIF a_settle[v_at] = 0 THEN
            st := @schema@.ack_items(st, a_lane, ARRAY[it.id], ARRAY[it.fence],
                                     ARRAY[it.attempts], ARRAY[a_reasons[n]]);
        ELSIF a_settle[v_at] = 4 THEN
            st.results := st.results || 'e';
            UPDATE @schema@.item AS i
            SET limit_us = CASE WHEN a_settle[v_at + 4] > 0
                                THEN st.at_us + a_settle[v_at + 4] * 1000
                                ELSE 0 END
            WHERE i.id = it.id;
        ELSE
            st.results := st.results || substr('andue', a_settle[v_at]::integer + 1, 1);
            st := @schema@.return_item(
                st, it, (ARRAY['nack', 'dead', 'unbegun'])[a_settle[v_at]],
                CASE WHEN a_settle[v_at] = 1 THEN a_settle[v_at + 4] * 1000
                     ELSE 0 END, a_reasons[n]);
        END IF;
    END LOOP;
    RETURN st;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.reserve(
    a_queue text, a_lane bigint, a_number bigint, a_seen bigint,
    a_span_ms bigint, a_want bigint, a_wait boolean, a_as text,
    a_hands bigint, a_limit_ms bigint, a_bell text, a_heard bigint[],
    a_settle bigint[], a_reasons text[])
RETURNS bytea[]
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step;
    ln @schema@.lane;
    e record;
    v_ids bigint[] := '{}';
    v_counts bigint[];
BEGIN
    e := @schema@.enter_lane(@schema@.queue_begin(a_queue), a_lane, a_number,
                             a_span_ms, a_as);
    st := e.st;
    ln := e.ln;
    IF a_number = ln.number AND a_number > 1
       AND lower(ln.results) <> @schema@.verbs(a_settle) THEN
        -- Nothing has changed so far, so there is nothing to count.
        RETURN ARRAY[convert_to('18 another request had this number of the '
                                'lane', 'UTF8')];
    END IF;
    st := @schema@.tidy_queue(st);
    IF ln.lane IS NULL OR a_number < ln.number THEN
        RETURN @schema@.refuse_lane(st);
    ELSIF a_number > ln.number
          AND (a_number <> ln.number + 1 OR a_seen <> ln.stamp) THEN
        RETURN @schema@.refuse_lane(@schema@.end_lane(st, ln, true));
    END IF;
    ln.hands := a_hands;
    ln.bell := a_bell;
    IF a_number = ln.number THEN
        -- A repeat: the kept answer, and what is unheard stays so.
        IF NOT e.opened THEN
            v_ids := ARRAY(SELECT i.id FROM @schema@.item AS i
                           WHERE i.queue = a_queue AND i.lane = a_lane
                           AND i.lane <> 0 AND i.told IN (0, a_number));
        END IF;
        ln.until_us := greatest(ln.until_us, st.at_us + a_span_ms * 1000);
        IF ln.waits_us > 0 THEN
            -- A push may have passed it over meanwhile: it is alone when it looks.
            PERFORM @schema@.queue_lock(a_queue, true);
            ln.waits_us := st.at_us;
            st.serves := true;
        END IF;
    ELSE
        ln.want := a_want;
        ln.limit_ms := a_limit_ms;
        e := @schema@.do_reserve(st, ln, a_wait, a_span_ms, a_heard, a_settle,
                                 a_reasons);
        st := e.st;
        ln := e.ln;
        v_ids := e.ids;
    END IF;
    PERFORM @schema@.put_lane(ln, st.counts);
    v_counts := st.counts;
    st := @schema@.serve_queue(st);
    IF st.counts <> v_counts THEN
        UPDATE @schema@.lane AS l
        SET counts = @schema@.plus(l.counts, ARRAY[0, 0, 0, st.counts[4]
                                   - v_counts[4], 0, 0, 0, 0, 0, 0]::bigint[])
        WHERE l.queue = a_queue AND l.lane = a_lane;
    END IF;
    -- The answer to a lane that has something is kept: without it the next number ends it.
    IF a_settle IS NULL AND cardinality(v_ids) = 0 AND NOT EXISTS (
           SELECT FROM @schema@.item AS i WHERE i.queue = a_queue
           AND i.lane = a_lane AND i.lane <> 0) THEN
        PERFORM @schema@.lazily();
    END IF;
    IF st.at_us % 64 = 0 THEN
        PERFORM @schema@.sweep_queues(st.at_us);
    END IF;
    RETURN @schema@.tell_lane(st, ln, v_ids);
END
$$;

-- Drops ready, delayed (later) or dead items, or those that are out, whose lanes it locks,
-- and records of done ones.
-- Answers "0 dropped".
CREATE OR REPLACE FUNCTION @schema@.queue_purge(a_queue text, a_places bigint,
                                     a_max bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step := @schema@.queue_begin(a_queue);
    v_ids bigint[] := '{}';
    v_lanes bigint[];
    v_dedups text[];
    v_dead bigint := 0;
    v_done bigint := 0;
BEGIN
    IF NOT @schema@.queue_known(a_queue) THEN
        RETURN '5';
    END IF;
    IF a_places & 1 > 0 THEN
        v_ids := ARRAY(
            SELECT i.id FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.lane = 0 AND i.due_us = 0
            LIMIT a_max FOR UPDATE SKIP LOCKED);
    END IF;
    IF a_places & 2 > 0 THEN
        v_ids := v_ids || ARRAY(
            SELECT i.id FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.due_us > 0
            LIMIT a_max - cardinality(v_ids) FOR UPDATE SKIP LOCKED);
    END IF;
    IF a_places & 4 > 0 THEN
        -- Others have got items by the time that these are locked.
        v_lanes := ARRAY(
            SELECT l.lane FROM @schema@.lane AS l WHERE l.queue = a_queue
            AND EXISTS (SELECT FROM @schema@.item AS i WHERE i.queue = a_queue
                        AND i.lane = l.lane AND i.lane <> 0)
            ORDER BY l.lane FOR UPDATE);
        -- A push may have passed one over that waits: the purge is alone when it looks.
        st.serves := EXISTS (
            SELECT FROM @schema@.lane AS l WHERE l.queue = a_queue
            AND l.lane = ANY (v_lanes) AND l.waits_us > 0);
        IF st.serves THEN
            PERFORM @schema@.queue_lock(a_queue, true);
        END IF;
        v_ids := v_ids || ARRAY(
            SELECT i.id FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.lane <> 0 AND i.lane = ANY (v_lanes)
            LIMIT a_max - cardinality(v_ids));
    END IF;
    WITH gone AS (
        DELETE FROM @schema@.item AS i
        WHERE i.id = ANY (v_ids)
        RETURNING i.id, i.dedup)
    SELECT coalesce(array_agg(g.id), '{}'), array_agg(g.dedup)
    INTO v_ids, v_dedups FROM gone AS g;
    st := @schema@.drop_items(st, v_ids, v_dedups);
    IF a_places & 8 > 0 THEN
        WITH gone AS (
            DELETE FROM @schema@.dead AS d
            WHERE d.queue = a_queue AND d.position IN (
                SELECT o.position FROM @schema@.dead AS o
                WHERE o.queue = a_queue ORDER BY o.position
                LIMIT a_max - cardinality(v_ids) FOR UPDATE SKIP LOCKED)
            RETURNING 1)
        SELECT count(*) INTO v_dead FROM gone;
    END IF;
    IF a_places & 16 > 0 THEN
        -- A record beyond the bound is not shown, and so not counted.
        PERFORM @schema@.trim_done(a_queue, st.keep_done);
        WITH gone AS (
            DELETE FROM @schema@.done AS d
            WHERE d.queue = a_queue AND d.position IN (
                SELECT o.position FROM @schema@.done AS o
                WHERE o.queue = a_queue ORDER BY o.position
                LIMIT a_max - cardinality(v_ids) - v_dead FOR UPDATE SKIP LOCKED)
            RETURNING 1)
        SELECT count(*) INTO v_done FROM gone;
    END IF;
    st.counts[2] := st.counts[2] - v_dead;
    st.counts[10] := st.counts[10] + cardinality(v_ids) + v_dead;
    st := @schema@.serve_queue(@schema@.tidy_queue(st));
    PERFORM @schema@.queue_tally(a_queue, st.counts);
    PERFORM @schema@.sweep_idle(a_queue);
    RETURN '0 ' || cardinality(v_ids) + v_dead + v_done;
END
$$;

UPDATE @schema@.meta SET version = 13;
