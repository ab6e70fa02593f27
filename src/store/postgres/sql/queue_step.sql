-- queue_step.sql - the queue steps of clients: push, reserve, tend and leave of
-- src/store/queue.h; as src/store/deliver.c.

-- Finds out how many items there are, by the last count where that does. Bounds of up to
-- a thousand items are exact but for pushes that are under way.
CREATE OR REPLACE FUNCTION @schema@.count_items(st @schema@.queue_step, a_more bigint)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
BEGIN
    IF st.counted_us <= st.at_us - 1000000 OR st.counted_us > st.at_us
       OR st.counted + a_more + greatest(st.cap / 64, 1000) >= st.cap THEN
        st.counted := (@schema@.queue_sums(st.queue))[1] + st.counts[1];
        st.counted_us := 0;
    END IF;
    RETURN st;
END
$$;

-- Keeps a count for the others. Its row is nobody's, and no step waits for it.
CREATE OR REPLACE FUNCTION @schema@.keep_count(st @schema@.queue_step) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF st.counted_us <> 0 OR st.cap <= 1000 THEN
        RETURN;
    END IF;
    UPDATE @schema@.queue AS q SET counted = st.counted, counted_us = st.at_us
    WHERE q.name = (SELECT o.name FROM @schema@.queue AS o
                    WHERE o.name = st.queue
                    AND o.counted_us <= st.at_us - 1000000
                    FOR UPDATE SKIP LOCKED);
    IF NOT FOUND AND NOT EXISTS (SELECT FROM @schema@.queue AS q
                                 WHERE q.name = st.queue) THEN
        INSERT INTO @schema@.queue(name, counted, counted_us)
        VALUES (st.queue, st.counted, st.at_us) ON CONFLICT DO NOTHING;
    END IF;
END
$$;

-- The item that has a dedup id, or NULL. a_ids: of this push, not made yet.
CREATE OR REPLACE FUNCTION @schema@.dedup_item(
    st @schema@.queue_step, a_dedup text, a_ids bigint[])
RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT d.item FROM @schema@.dedup AS d
            WHERE d.queue = st.queue AND d.id = a_dedup
            AND (d.until_us > st.at_us OR d.item = ANY (a_ids) OR EXISTS (
                     SELECT FROM @schema@.item AS i WHERE i.id = d.item)));
END
$$;

-- Takes a dedup id for a new item. Answers the item that has it: this one, or another.
CREATE OR REPLACE FUNCTION @schema@.take_dedup(
    st @schema@.queue_step, a_dedup text, a_id bigint, a_ids bigint[],
    a_until bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_by bigint;
    v_old bigint;
BEGIN
    LOOP
        SELECT d.item INTO v_old FROM @schema@.dedup AS d
        WHERE d.queue = st.queue AND d.id = a_dedup;
        IF FOUND THEN
            v_by := @schema@.dedup_item(st, a_dedup, a_ids);
            IF v_by IS NOT NULL THEN
                RETURN v_by;
            END IF;
            UPDATE @schema@.dedup AS d SET item = a_id, until_us = a_until
            WHERE d.queue = st.queue AND d.id = a_dedup AND d.item = v_old;
        ELSE
            INSERT INTO @schema@.dedup
            VALUES (a_id, a_until, st.queue, a_dedup) ON CONFLICT DO NOTHING;
        END IF;
        IF FOUND THEN
            RETURN a_id;
        END IF;
    END LOOP;
END
$$;

-- The ids for the items of a push, in order; those of duplicates are negative. The dedup
-- ids are taken in their own order, so that no two pushes wait for each other.
CREATE OR REPLACE FUNCTION @schema@.draw_ids(
    st @schema@.queue_step, a_dedups text[], a_windows bigint[])
RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[] := '{}';
    v_own bigint[];
    v_by bigint;
    v_at bigint;
BEGIN
    FOR i IN 1 .. cardinality(a_dedups) LOOP
        v_ids := v_ids || @schema@.next_id(st.at_us);
    END LOOP;
    IF '' = ALL (a_dedups) THEN
        RETURN v_ids;
    END IF;
    v_own := v_ids;
    FOR v_at IN
        SELECT u.n FROM unnest(a_dedups) WITH ORDINALITY AS u(id, n)
        WHERE u.id <> '' ORDER BY u.id COLLATE "C", u.n
    LOOP
        v_by := @schema@.take_dedup(
            st, a_dedups[v_at], v_own[v_at], v_own,
            CASE WHEN a_windows[v_at] > 0
                 THEN st.at_us + a_windows[v_at] * 1000 ELSE 0 END);
        IF v_by <> v_own[v_at] THEN
            v_ids[v_at] := -v_by;
        END IF;
    END LOOP;
    RETURN v_ids;
END
$$;

-- Makes the items of a push.
CREATE OR REPLACE FUNCTION @schema@.make_items(
    st @schema@.queue_step, a_place bigint, a_ids bigint[], a_data bytea[],
    a_delays bigint[], a_priorities bigint[], a_tries bigint[], a_tos text[],
    a_dedups text[])
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_made bigint;
BEGIN
    INSERT INTO @schema@.item
    SELECT u.id, a_place,
           CASE WHEN u.delay > 0 THEN st.at_us + u.delay * 1000 ELSE 0 END,
           0, 0, 0, 0, length(u.data), u.priority, 0, 0, u.tries, st.queue,
           u.to_worker,
           CASE WHEN u.delay = 0 AND u.to_worker <> ''
                     AND @schema@.worker_lives(st, u.to_worker)
                THEN u.to_worker ELSE '' END,
           u.dedup, ''
    FROM unnest(a_ids, a_data, a_delays, a_priorities, a_tries, a_tos, a_dedups)
         AS u(id, data, delay, priority, tries, to_worker, dedup)
    WHERE u.id > 0;
    GET DIAGNOSTICS v_made = ROW_COUNT;
    INSERT INTO @schema@.item_data
    SELECT u.id, st.queue, u.data FROM unnest(a_ids, a_data) AS u(id, data)
    WHERE u.id > 0;
    st.counts[1] := st.counts[1] + v_made;
    st.counts[3] := st.counts[3] + v_made;
    RETURN st;
END
$$;

-- Hands over what a push has made, first to the workers that it is for. If a delayed item is
-- the next one now, a lane that waits must know.
CREATE OR REPLACE FUNCTION @schema@.serve_push(
    st @schema@.queue_step, a_ids bigint[], a_delays bigint[], a_tos text[])
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    v_alone boolean := st.serial;
    v_first bigint;
    v_to text;
BEGIN
    PERFORM @schema@.queue_lock(st.queue, v_alone);
    FOREACH v_to IN ARRAY a_tos LOOP
        IF v_to <> '' THEN
            st := @schema@.serve_lanes(st, v_to, v_alone);
        END IF;
    END LOOP;
    st := @schema@.serve_lanes(st, NULL, v_alone);
    IF 0 < ANY (a_delays) THEN
        SELECT i.id INTO v_first FROM @schema@.item AS i
        WHERE i.queue = st.queue AND i.due_us > 0
        ORDER BY i.due_us, i.id LIMIT 1;
        IF v_first = ANY (a_ids) THEN
            PERFORM @schema@.ring(w.bell, @schema@.lane_address(w.lane),
                                  'items', 0)
            FROM (SELECT l.bell, l.lane FROM @schema@.lane AS l
                  WHERE l.queue = st.queue AND l.waits_us > 0
                  AND l.until_us > st.at_us
                  ORDER BY l.waits_us DESC LIMIT 1) AS w;
        END IF;
    END IF;
    RETURN st;
END
$$;

-- Answers "0" and the ids, those of duplicates negative; "3"; "9 items cap"; or "18 why".
CREATE OR REPLACE FUNCTION @schema@.push(
    a_queue text, a_lane bigint, a_number bigint, a_data bytea[], a_delays bigint[],
    a_priorities bigint[], a_tries bigint[], a_tos text[], a_dedups text[],
    a_windows bigint[])
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step := @schema@.queue_begin(a_queue);
    p @schema@.pusher;
    v_fresh bigint;
BEGIN
    LOOP
        SELECT * INTO p FROM @schema@.pusher AS o
        WHERE o.queue = a_queue AND o.lane = a_lane FOR UPDATE;
        EXIT WHEN FOUND;
        IF a_number <> 1 THEN
            RETURN '3';
        END IF;
        INSERT INTO @schema@.pusher
        VALUES (a_lane, 0, 0, 0, 0, a_queue, '{}', '{0,0,0,0,0,0,0,0,0,0}')
        ON CONFLICT DO NOTHING;
    END LOOP;
    st.at_us := @schema@.now_us();
    IF p.number > 0 AND a_number = p.number THEN
        IF cardinality(p.ids) <> cardinality(a_data) THEN
            RETURN '18 another push had this number of the lane';
        END IF;
        RETURN CASE WHEN p.status = 9 THEN '9 ' || st.cap || ' ' || st.cap
                    ELSE '0 ' || array_to_string(p.ids, ' ') END;
    ELSIF a_number <> p.number + 1 THEN
        RETURN '3';
    END IF;
    st := @schema@.tidy_queue(st);
    IF '' = ALL (a_dedups) THEN
        v_fresh := cardinality(a_dedups);
    ELSE
        SELECT count(*) FILTER (WHERE u.id = '')
               + count(DISTINCT u.id) FILTER (
                   WHERE u.id <> ''
                   AND @schema@.dedup_item(st, u.id, '{}') IS NULL)
        INTO v_fresh FROM unnest(a_dedups) AS u(id);
    END IF;
    st := @schema@.count_items(st, v_fresh);
    IF v_fresh > 0 AND st.counted + v_fresh > st.cap THEN
        p.status := 9;
        p.ids := array_fill(0::bigint, ARRAY[cardinality(a_data)]);
        st := @schema@.serve_queue(st);
    ELSE
        p.status := 0;
        p.last := greatest(p.last + 1, st.at_us);
        p.ids := @schema@.draw_ids(st, a_dedups, a_windows);
        st := @schema@.make_items(st, p.last, p.ids, a_data, a_delays,
                                  a_priorities, a_tries, a_tos, a_dedups);
        st := @schema@.serve_push(st, p.ids, a_delays, a_tos);
    END IF;
    UPDATE @schema@.pusher AS o
    SET number = a_number, status = p.status, ids = p.ids, last = p.last,
        end_min = (st.at_us + 120000000) / 60000000,
        counts = @schema@.plus(o.counts, st.counts)
    WHERE o.queue = a_queue AND o.lane = a_lane;
    PERFORM @schema@.keep_count(st);
    IF st.at_us % 64 = 0 THEN
        PERFORM @schema@.sweep_queues(st.at_us);
    END IF;
    RETURN CASE WHEN p.status = 9 THEN '9 ' || st.counted || ' ' || st.cap
                ELSE '0 ' || array_to_string(p.ids, ' ') END;
END
$$;

-- In how many ms a lane should ask for a delayed item: each that waits looks after one.
CREATE OR REPLACE FUNCTION @schema@.due_ms(st @schema@.queue_step, a_waits boolean)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_rank bigint := 1;
    v_due bigint;
BEGIN
    IF st.due_us IS NULL THEN
        RETURN -1;
    ELSIF a_waits THEN
        SELECT greatest(count(*), 1) INTO v_rank FROM @schema@.lane AS l
        WHERE l.queue = st.queue AND l.waits_us > 0 AND l.until_us > st.at_us;
    END IF;
    SELECT i.due_us INTO v_due FROM @schema@.item AS i
    WHERE i.queue = st.queue AND i.due_us > 0
    ORDER BY i.due_us LIMIT 1 OFFSET v_rank - 1;
    RETURN CASE WHEN v_due IS NULL THEN -1
                ELSE greatest(v_due - st.at_us + 999, 0) / 1000 END;
END
$$;

-- Does a request of the next number: settles, tells what is unheard, takes. Answers the ids
-- of all that the answer has, and the lane as it is now.
CREATE OR REPLACE FUNCTION @schema@.do_reserve(
    INOUT st @schema@.queue_step, INOUT ln @schema@.lane, a_wait boolean,
    a_span_ms bigint, a_heard bigint[], a_settle bigint[], a_reasons text[],
    OUT ids bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    t @schema@.taken;
    v_until bigint := st.at_us + a_span_ms * 1000;
    v_bytes bigint := 0;
BEGIN
    ids := '{}';
    IF a_settle IS NOT NULL THEN
        st := @schema@.settle_items(st, ln.lane, a_settle, a_reasons);
    END IF;
    -- A lane is shortened only while it has nothing.
    IF v_until >= ln.until_us OR NOT EXISTS (
           SELECT FROM @schema@.item AS i WHERE i.queue = st.queue
           AND i.lane = ln.lane AND i.lane <> 0) THEN
        ln.until_us := v_until;
    END IF;
    ln.number := ln.number + 1;
    ln.last := greatest(ln.last + 1, st.at_us);
    ln.stamp := ln.last;
    ln.results := st.results;
    ln.waits_us := 0;
    IF ln.unheard THEN
        WITH told AS (
            UPDATE @schema@.item AS i SET told = ln.number
            WHERE i.queue = st.queue AND i.lane = ln.lane AND i.lane <> 0
            AND i.told = 0 RETURNING i.id, i.fence, i.attempts, i.len)
        SELECT coalesce(array_agg(o.id), '{}'), coalesce(sum(o.len), 0)
        INTO ids, v_bytes FROM told AS o
        WHERE NOT @schema@.is_heard(a_heard, o.id, o.fence, o.attempts);
        ln.unheard := false;
    END IF;
    IF st.serial AND ln.want > 0 THEN
        PERFORM @schema@.queue_lock(st.queue, true);
        st := @schema@.queue_reread(st, true);
    END IF;
    t := @schema@.take_items(st, ln, ln.want - cardinality(ids), ln.number,
                             v_bytes);
    IF a_wait AND ln.want > 0 AND cardinality(ids || t.ids) = 0 THEN
        PERFORM @schema@.queue_lock(st.queue, true);
        st := @schema@.queue_reread(st, true);
        t := @schema@.take_items(st, ln, ln.want, ln.number, 0);
        IF cardinality(t.ids) = 0 THEN
            ln.waits_us := @schema@.now_us();
        END IF;
    END IF;
    ids := ids || t.ids;
    ln.last := t.last;
    st.last := t.last;
    st.counts[4] := st.counts[4] + cardinality(t.ids);
    st.serves := st.serves OR t.cut;
END
$$;

-- Ends a request that is over, or whose lane is. It keeps what the step has counted.
CREATE OR REPLACE FUNCTION @schema@.refuse_lane(st @schema@.queue_step) RETURNS bytea[]
LANGUAGE plpgsql AS $$
BEGIN
    st := @schema@.serve_queue(st);
    PERFORM @schema@.queue_tally(st.queue, st.counts);
    RETURN ARRAY[convert_to('3', 'UTF8')];
END
$$;

CREATE OR REPLACE FUNCTION @schema@.reserve(
    a_queue text, a_lane bigint, a_number bigint, a_seen bigint, a_span_ms bigint,
    a_want bigint, a_wait boolean, a_as text, a_hands bigint, a_limit_ms bigint,
    a_bell text, a_heard bigint[], a_settle bigint[], a_reasons text[])
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

-- Writes a lane, whose row is locked.
CREATE OR REPLACE FUNCTION @schema@.put_lane(ln @schema@.lane, a_counts bigint[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE @schema@.lane AS l
    SET number = ln.number, stamp = ln.stamp, last = ln.last,
        until_us = ln.until_us, end_s = ln.until_us / 1000000,
        waits_us = ln.waits_us, want = ln.want, hands = ln.hands,
        limit_ms = ln.limit_ms, unheard = ln.unheard, bell = ln.bell,
        results = ln.results, counts = @schema@.plus(l.counts, a_counts)
    WHERE l.queue = ln.queue AND l.lane = ln.lane;
END
$$;

-- Renews lanes. Answers "0", and for each in order status, left_ms and whether something is
-- ready. All rows are locked before the locks of queues, and both in order. A lane that
-- waits may have been passed over meanwhile: it is alone when it looks.
CREATE OR REPLACE FUNCTION @schema@.tend(
    a_queues text[], a_lanes bigint[], a_spans bigint[])
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint;
    v_had boolean := false;
    v_answer text := '0';
    o record;
    st @schema@.queue_step;
BEGIN
    PERFORM FROM @schema@.lane AS l
    WHERE (l.queue, l.lane) IN (
        SELECT u.queue, u.lane FROM unnest(a_queues, a_lanes) AS u(queue, lane))
    ORDER BY l.queue, l.lane FOR UPDATE;
    at_us := @schema@.now_us();
    UPDATE @schema@.lane AS l
    SET until_us = at_us + u.span * 1000, end_s = at_us / 1000000 + u.span / 1000
    FROM unnest(a_queues, a_lanes, a_spans) AS u(queue, lane, span)
    WHERE l.queue = u.queue AND l.lane = u.lane AND l.until_us > at_us
    AND l.until_us < at_us + u.span * 1000;
    PERFORM @schema@.queue_lock(w.queue, true) FROM (
        SELECT DISTINCT l.queue, hashtextextended(l.queue, 1903519093) AS key
        FROM @schema@.lane AS l
        JOIN unnest(a_queues, a_lanes) AS u(queue, lane)
        ON l.queue = u.queue AND l.lane = u.lane
        WHERE l.waits_us > 0 ORDER BY key) AS w;
    FOR o IN
        SELECT u.queue, l.until_us, EXISTS (
                   SELECT FROM @schema@.item AS i WHERE i.queue = l.queue
                   AND i.lane = l.lane AND i.lane <> 0) AS had
        FROM unnest(a_queues, a_lanes) WITH ORDINALITY AS u(queue, lane, n)
        LEFT JOIN @schema@.lane AS l
        ON l.queue = u.queue AND l.lane = u.lane AND l.until_us > at_us
        ORDER BY u.n
    LOOP
        st := @schema@.queue_begin(o.queue);
        v_had := v_had OR o.had;
        v_answer := v_answer || CASE
            WHEN o.until_us IS NULL THEN ' 3 0 0'
            ELSE ' 0 ' || (o.until_us - at_us) / 1000 || ' '
                || (SELECT count(*) FROM (
                        SELECT FROM @schema@.item AS i
                        WHERE i.queue = o.queue AND i.lane = 0
                        AND i.due_us = 0 AND NOT st.paused
                        AND NOT (st.serial AND @schema@.is_held_up(o.queue))
                        LIMIT 1) AS f) END;
    END LOOP;
    -- A lane that has something is believed in as long as this says.
    IF NOT v_had THEN
        PERFORM @schema@.lazily();
    END IF;
    RETURN v_answer;
END
$$;

-- Ends a lane; what it had comes back uncounted. Answers "0".
CREATE OR REPLACE FUNCTION @schema@.leave(a_queue text, a_lane bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step := @schema@.queue_begin(a_queue);
    ln @schema@.lane;
BEGIN
    PERFORM @schema@.lazily();
    SELECT * INTO ln FROM @schema@.lane AS l
    WHERE l.queue = a_queue AND l.lane = a_lane FOR UPDATE;
    IF FOUND THEN
        st.at_us := @schema@.now_us();
        st := @schema@.end_lane(st, ln, ln.until_us <= st.at_us);
    END IF;
    st := @schema@.serve_queue(@schema@.tidy_queue(st));
    PERFORM @schema@.queue_tally(a_queue, st.counts);
    PERFORM @schema@.sweep_idle(a_queue);
    RETURN '0';
END
$$;
