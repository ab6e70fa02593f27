-- queue_admin.sql - the queue steps of an operator: set, stats, purge, redrive,
-- remove and list of src/store/queue_admin.h; peek is a query. Each but set and the list
-- answers "5" when there is no such queue.

-- Changes the settings of a_fields (DIBS__SET_*). It is alone: a push that did not hand
-- over, because the queue was paused, is committed before, or finds it resumed.
CREATE OR REPLACE FUNCTION @schema@.queue_set(
    a_queue text, a_fields bigint, a_paused boolean, a_serial boolean, a_cap bigint,
    a_tries bigint, a_deads bigint, a_lost_max bigint, a_keep_done bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step :=
        @schema@.tidy_queue(@schema@.queue_begin(a_queue));
BEGIN
    PERFORM @schema@.queue_lock(a_queue, true);
    LOOP
        UPDATE @schema@.queue AS q
        SET paused = CASE WHEN a_fields & 1 > 0 THEN a_paused ELSE q.paused END,
            serial = CASE WHEN a_fields & 2 > 0 THEN a_serial ELSE q.serial END,
            cap = CASE WHEN a_fields & 4 > 0 THEN a_cap ELSE q.cap END,
            tries = CASE WHEN a_fields & 8 > 0 THEN a_tries ELSE q.tries END,
            deads = CASE WHEN a_fields & 16 > 0 THEN a_deads ELSE q.deads END,
            lost_max = CASE WHEN a_fields & 32 > 0 THEN a_lost_max
                            ELSE q.lost_max END,
            keep_done = CASE WHEN a_fields & 64 > 0 THEN a_keep_done
                             ELSE q.keep_done END
        WHERE q.name = a_queue;
        EXIT WHEN FOUND;
        -- A sweep may remove the row as long as it has no settings.
        INSERT INTO @schema@.queue(name) VALUES (a_queue)
        ON CONFLICT DO NOTHING;
    END LOOP;
    IF a_fields & 64 > 0 THEN
        -- A record beyond the old bound is not shown again.
        PERFORM @schema@.trim_done(a_queue, least(st.keep_done, a_keep_done));
    END IF;
    st := @schema@.serve_lanes(st, NULL, true);
    PERFORM @schema@.queue_tally(a_queue, st.counts);
    RETURN '0';
END
$$;

-- The place of the oldest that is ready, among the first of each priority and worker.
CREATE OR REPLACE FUNCTION @schema@.oldest_place(a_queue text) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    it @schema@.item;
    v_own text := '';
    v_priority bigint := 2147483648;
    v_oldest bigint;
BEGIN
    FOR n IN 1 .. 1000 LOOP
        SELECT * INTO it FROM @schema@.item AS i
        WHERE i.queue = a_queue AND i.lane = 0 AND i.due_us = 0
        AND i.own = v_own AND i.priority < v_priority
        ORDER BY i.priority DESC, i.place LIMIT 1;
        IF NOT FOUND THEN
            SELECT * INTO it FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.lane = 0 AND i.due_us = 0
            AND i.own > v_own ORDER BY i.own, i.priority DESC, i.place LIMIT 1;
            EXIT WHEN NOT FOUND;
        END IF;
        v_own := it.own;
        v_priority := it.priority;
        v_oldest := least(v_oldest, it.place);
    END LOOP;
    RETURN v_oldest;
END
$$;

-- Tidies, so that it counts what a reserve would find. Answers "0", the seven settings, ready,
-- later, out, dead, done, lanes, those that wait, how long the first has been ready in ms, and
-- pushed to purged as in counts.
CREATE OR REPLACE FUNCTION @schema@.queue_stats(a_queue text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step := @schema@.queue_begin(a_queue);
    v_sums bigint[];
    v_later bigint;
    v_out bigint;
    v_lanes bigint;
    v_waiting bigint;
    v_first bigint;
    v_done bigint;
BEGIN
    IF NOT @schema@.queue_known(a_queue) THEN
        RETURN '5';
    END IF;
    st := @schema@.serve_queue(@schema@.tidy_queue(st));
    PERFORM @schema@.queue_tally(a_queue, st.counts);
    SELECT @schema@.queue_sums(a_queue),
           (SELECT count(*) FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.due_us > 0),
           (SELECT count(*) FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.lane <> 0),
           (SELECT count(*) FROM @schema@.lane AS l
            WHERE l.queue = a_queue AND l.until_us > st.at_us),
           (SELECT count(*) FROM @schema@.lane AS l
            WHERE l.queue = a_queue AND l.until_us > st.at_us
            AND l.waits_us > 0),
           @schema@.oldest_place(a_queue),
           (SELECT count(*) FROM (
                SELECT FROM @schema@.done AS d WHERE d.queue = a_queue
                LIMIT st.keep_done) AS o)
    INTO v_sums, v_later, v_out, v_lanes, v_waiting, v_first, v_done;
    RETURN concat_ws(' ', 0, st.paused::integer, st.serial::integer, st.cap,
                     st.tries, st.deads, st.lost_max, st.keep_done,
                     greatest(v_sums[1] - v_later - v_out, 0), v_later, v_out,
                     greatest(v_sums[2], 0), v_done, v_lanes, v_waiting,
                     coalesce(greatest(st.at_us - v_first, 0) / 1000, 0),
                     array_to_string(v_sums[3:10], ' '));
END
$$;

-- Drops ready, delayed (later) or dead items, or those that are out, whose lanes it locks,
-- and records of done ones.
-- Answers "0 dropped".
CREATE OR REPLACE FUNCTION @schema@.queue_purge(
    a_queue text, a_places bigint, a_max bigint)
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

-- Makes dead letters new items at the end: the one with a_id, or with 0 the oldest. Answers
-- "0 redriven", or "9 items cap" when there is room for none.
CREATE OR REPLACE FUNCTION @schema@.queue_redrive(a_queue text, a_id bigint, a_max bigint)
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step := @schema@.queue_begin(a_queue);
    d @schema@.dead;
    v_redriven bigint := 0;
    v_new bigint;
BEGIN
    IF NOT @schema@.queue_known(a_queue) THEN
        RETURN '5';
    END IF;
    st := @schema@.count_items(st, a_max);
    FOR d IN
        SELECT o.* FROM @schema@.dead AS o
        WHERE o.queue = a_queue AND (a_id = 0 OR o.id = a_id)
        ORDER BY o.position LIMIT CASE WHEN a_id = 0 THEN a_max
                                       ELSE least(a_max, 1) END
        FOR UPDATE SKIP LOCKED
    LOOP
        IF st.counted + v_redriven >= st.cap THEN
            IF v_redriven = 0 THEN
                RETURN '9 ' || st.counted || ' ' || st.cap;
            END IF;
            EXIT;
        END IF;
        DELETE FROM @schema@.dead AS o
        WHERE o.queue = d.queue AND o.position = d.position;
        v_new := @schema@.next_id(st.at_us);
        INSERT INTO @schema@.item
        VALUES (v_new, st.at_us, 0, 0, 0, 0, 0, d.len, d.priority, 0, 0, d.tries,
                a_queue, d.to_worker,
                CASE WHEN @schema@.worker_lives(st, d.to_worker)
                     THEN d.to_worker ELSE '' END, '', '');
        INSERT INTO @schema@.item_data VALUES (v_new, a_queue, d.data);
        v_redriven := v_redriven + 1;
    END LOOP;
    st.counts[1] := st.counts[1] + v_redriven;
    st.counts[2] := st.counts[2] - v_redriven;
    st.serves := true;
    st := @schema@.serve_queue(@schema@.tidy_queue(st));
    PERFORM @schema@.queue_tally(a_queue, st.counts);
    RETURN '0 ' || v_redriven;
END
$$;

-- Forgets a queue. Answers "0", or "1 items dead lanes". It leaves what another step has
-- locked: the queue is used again.
CREATE OR REPLACE FUNCTION @schema@.queue_remove(a_queue text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step := @schema@.queue_begin(a_queue);
    v_sums bigint[];
    v_lanes bigint;
BEGIN
    IF NOT @schema@.queue_known(a_queue) THEN
        RETURN '5';
    END IF;
    st := @schema@.serve_queue(@schema@.tidy_queue(st));
    PERFORM @schema@.queue_tally(a_queue, st.counts);
    SELECT @schema@.queue_sums(a_queue),
           (SELECT count(*) FROM @schema@.lane AS l WHERE l.queue = a_queue)
    INTO v_sums, v_lanes;
    IF v_sums[1] <> 0 OR v_sums[2] <> 0 OR v_lanes <> 0 THEN
        RETURN concat_ws(' ', 1, v_sums[1], v_sums[2], v_lanes);
    END IF;
    DELETE FROM @schema@.pusher AS p WHERE p.queue = a_queue AND p.lane IN (
        SELECT o.lane FROM @schema@.pusher AS o WHERE o.queue = a_queue
        AND NOT @schema@.has_items(a_queue) FOR UPDATE SKIP LOCKED);
    IF EXISTS (SELECT FROM @schema@.pusher AS p WHERE p.queue = a_queue) THEN
        RETURN '0';
    END IF;
    DELETE FROM @schema@.dedup AS d WHERE d.queue = a_queue AND d.id IN (
        SELECT o.id FROM @schema@.dedup AS o WHERE o.queue = a_queue
        FOR UPDATE SKIP LOCKED);
    PERFORM @schema@.trim_done(a_queue, 0);
    DELETE FROM @schema@.tally AS t WHERE t.queue = a_queue AND t.id IN (
        SELECT o.id FROM @schema@.tally AS o WHERE o.queue = a_queue
        FOR UPDATE SKIP LOCKED);
    DELETE FROM @schema@.queue AS q WHERE q.name IN (
        SELECT o.name FROM @schema@.queue AS o WHERE o.name = a_queue
        FOR UPDATE SKIP LOCKED);
    RETURN '0';
END
$$;

-- The items of a place in its order, and the bytes before each: 1 ready, 2 later, 4 out.
CREATE OR REPLACE FUNCTION @schema@.queue_peek(
    a_queue text, a_place bigint, a_max bigint, a_skip bigint, OUT id bigint,
    OUT n bigint, OUT before bigint)
RETURNS SETOF record
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_ids bigint[];
BEGIN
    v_ids := CASE a_place
        WHEN 1 THEN ARRAY(
            SELECT i.id FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.lane = 0 AND i.due_us = 0
            ORDER BY i.own, i.priority DESC, i.place, i.id
            LIMIT a_max OFFSET a_skip)
        WHEN 2 THEN ARRAY(
            SELECT i.id FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.due_us > 0
            ORDER BY i.due_us, i.id LIMIT a_max OFFSET a_skip)
        ELSE ARRAY(
            SELECT i.id FROM @schema@.item AS i
            WHERE i.queue = a_queue AND i.lane <> 0
            ORDER BY i.fence LIMIT a_max OFFSET a_skip) END;
    RETURN QUERY
    SELECT o.id, o.n, sum(o.len) OVER (ORDER BY o.n) - o.len FROM (
        SELECT i.id, i.len, array_position(v_ids, i.id)::bigint AS n
        FROM @schema@.item AS i WHERE i.id = ANY (v_ids)) AS o;
END
$$;

-- Records of done items, the last one first; those beyond the bound are not shown.
CREATE OR REPLACE FUNCTION @schema@.peek_done(
    a_queue text, a_max bigint, a_skip bigint, OUT id bigint, OUT priority bigint,
    OUT attempts bigint, OUT lost bigint, OUT wall_us bigint, OUT to_worker text,
    OUT dedup text, OUT reason text, OUT result bytea)
RETURNS SETOF record
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_keep bigint := (@schema@.queue_begin(a_queue)).keep_done;
BEGIN
    RETURN QUERY
    SELECT d.id, d.priority::bigint, d.attempts, d.lost, d.wall_us,
           d.to_worker, d.dedup, '', convert_to(d.result, 'UTF8')
    FROM @schema@.done AS d WHERE d.queue = a_queue
    ORDER BY d.position DESC
    LIMIT least(a_max, greatest(v_keep - a_skip, 0)) OFFSET a_skip;
END
$$;

-- The first queue behind a name, of those that queue_known() knows; NULL when there is none.
CREATE OR REPLACE FUNCTION @schema@.queue_behind(a_name text) RETURNS text
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT min(n.name) FROM (
            (SELECT q.name FROM @schema@.queue AS q WHERE q.name > a_name
             ORDER BY q.name LIMIT 1)
            UNION ALL
            (SELECT i.queue FROM @schema@.item AS i WHERE i.queue > a_name
             AND i.lane = 0 AND i.due_us = 0 ORDER BY i.queue LIMIT 1)
            UNION ALL
            (SELECT i.queue FROM @schema@.item AS i WHERE i.queue > a_name
             AND i.due_us > 0 ORDER BY i.queue LIMIT 1)
            UNION ALL
            (SELECT i.queue FROM @schema@.item AS i WHERE i.queue > a_name
             AND i.lane <> 0 ORDER BY i.queue LIMIT 1)
            UNION ALL
            (SELECT l.queue FROM @schema@.lane AS l WHERE l.queue > a_name
             ORDER BY l.queue LIMIT 1)
            UNION ALL
            (SELECT d.queue FROM @schema@.dead AS d WHERE d.queue > a_name
             ORDER BY d.queue LIMIT 1)
            UNION ALL
            (SELECT p.queue FROM @schema@.pusher AS p WHERE p.queue > a_name
             ORDER BY p.queue LIMIT 1)
            UNION ALL
            (SELECT t.queue FROM @schema@.tally AS t WHERE t.queue > a_name
             ORDER BY t.queue LIMIT 1)) AS n(name));
END
$$;

-- Names of queues that begin with a text, behind a name, in the order of their bytes.
CREATE OR REPLACE FUNCTION @schema@.queue_list(a_begins text, a_after text, a_max bigint)
RETURNS SETOF text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_name text := a_after;
BEGIN
    IF a_begins > a_after COLLATE "C" THEN
        v_name := a_begins;
        IF a_max > 0 AND @schema@.queue_known(a_begins) THEN
            RETURN NEXT a_begins;
            a_max := a_max - 1;
        END IF;
    END IF;
    FOR n IN 1 .. a_max LOOP
        v_name := @schema@.queue_behind(v_name);
        EXIT WHEN v_name IS NULL OR left(v_name, length(a_begins)) <> a_begins;
        RETURN NEXT v_name;
    END LOOP;
END
$$;
