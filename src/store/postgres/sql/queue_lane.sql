-- queue_lane.sql - a lane of a client that reserves: how it is found, told and ended, and what
-- was ready for its worker becomes everybody's, some in each step.

-- The number of a lane that has ended, and is kept until all that was ready for its
-- worker is everybody's; its time is up.
CREATE OR REPLACE FUNCTION @schema@.ended() RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT 9223372036854775807
$$;

-- Makes everybody's what is ready for a worker that is gone, in its order: up to 256 for a
-- lane that ends or is found over, as many as one request takes at least. So what is left is
-- behind what the step delivers. Answers whether something is left: it is more, or others
-- have it locked.
CREATE OR REPLACE FUNCTION @schema@.free_worker(st @schema@.queue_step, a_worker text)
RETURNS boolean
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    v_ids bigint[];
BEGIN
    IF @schema@.worker_lives(st, a_worker) THEN
        RETURN false;
    END IF;
    v_ids := ARRAY(
        SELECT k.id FROM @schema@.item AS k
        WHERE k.queue = st.queue AND k.own = a_worker AND k.lane = 0
        AND k.due_us = 0 ORDER BY k.priority DESC, k.place, k.id
        LIMIT 256 FOR UPDATE SKIP LOCKED);
    UPDATE @schema@.item AS i SET own = '' WHERE i.id = ANY (v_ids);
    RETURN EXISTS (SELECT FROM @schema@.item AS k
                   WHERE k.queue = st.queue AND k.own = a_worker
                   AND k.lane = 0 AND k.due_us = 0);
END
$$;

-- Ends a lane, whose row is locked. All that it had comes back, at its old place. A lane
-- that died is charged with as many losses as it has hands, lowest fences first; all
-- else was not begun. The row of a worker's lane is kept while something is left that was
-- ready for the worker: the next steps end it again. One that is there again keeps the
-- rest.
CREATE OR REPLACE FUNCTION @schema@.end_lane(
    st @schema@.queue_step, ln @schema@.lane, a_died boolean)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    it @schema@.item;
    v_returned bigint;
BEGIN
    IF ln.worker = '' THEN
        DELETE FROM @schema@.lane AS l
        WHERE l.queue = ln.queue AND l.lane = ln.lane;
    ELSE
        UPDATE @schema@.lane AS l
        SET number = @schema@.ended(), until_us = least(l.until_us, st.at_us),
            end_s = st.at_us / 1000000, waits_us = 0, unheard = false,
            results = '', counts = '{0,0,0,0,0,0,0,0,0,0}'
        WHERE l.queue = ln.queue AND l.lane = ln.lane;
    END IF;
    st.counts := @schema@.plus(st.counts, ln.counts);
    IF a_died THEN
        FOR it IN
            SELECT i.* FROM @schema@.item AS i
            WHERE i.queue = ln.queue AND i.lane = ln.lane AND i.lane <> 0
            AND i.told <> 0 ORDER BY i.fence
            LIMIT CASE WHEN ln.hands > 0 THEN ln.hands END
        LOOP
            st := @schema@.return_item(st, it, 'lost', 0,
                                       'its client was lost');
        END LOOP;
    END IF;
    UPDATE @schema@.item AS i
    SET lane = 0, told = 0, limit_us = 0, attempts = i.attempts - 1,
        own = CASE WHEN i.to_worker <> ''
                        AND @schema@.worker_lives(st, i.to_worker)
                   THEN i.to_worker ELSE '' END
    WHERE i.queue = ln.queue AND i.lane = ln.lane AND i.lane <> 0;
    GET DIAGNOSTICS v_returned = ROW_COUNT;
    st.serves := st.serves OR v_returned > 0;
    IF ln.worker <> '' AND NOT @schema@.free_worker(st, ln.worker) THEN
        DELETE FROM @schema@.lane AS l
        WHERE l.queue = ln.queue AND l.lane = ln.lane;
    END IF;
    RETURN st;
END
$$;

-- Finds and locks a lane, or opens it with number 1. A lane whose time is up has ended.
-- Answers NULL when there is none, or when the lane that ended is kept.
CREATE OR REPLACE FUNCTION @schema@.enter_lane(
    INOUT st @schema@.queue_step, a_lane bigint, a_number bigint, a_span_ms bigint,
    a_as text, OUT ln @schema@.lane, OUT opened boolean)
LANGUAGE plpgsql AS $$
BEGIN
    opened := false;
    LOOP
        SELECT * INTO ln FROM @schema@.lane AS l
        WHERE l.queue = st.queue AND l.lane = a_lane FOR UPDATE;
        IF FOUND THEN
            st.at_us := @schema@.now_us();
            EXIT WHEN ln.until_us > st.at_us;
            st := @schema@.end_lane(st, ln, true);
        END IF;
        IF a_number <> 1 OR EXISTS (
               SELECT FROM @schema@.lane AS l WHERE l.queue = st.queue
               AND l.lane = a_lane AND l.number = @schema@.ended()) THEN
            ln := NULL;
            EXIT;
        END IF;
        INSERT INTO @schema@.lane
        VALUES (a_lane, 1, st.at_us, st.at_us, st.at_us + a_span_ms * 1000,
                st.at_us / 1000000 + a_span_ms / 1000, 0, 0, 0, 0, false,
                st.queue, a_as, '', '', '{0,0,0,0,0,0,0,0,0,0}')
        ON CONFLICT DO NOTHING RETURNING * INTO ln;
        opened := FOUND;
        EXIT WHEN opened;
    END LOOP;
END
$$;

-- The answer to a request: "0 stamp due_ms", and of each delivery id, fence, attempt, lost,
-- priority and limit_ms; then the results of the settlements, and the data of each. A
-- limit that is over has 1 ms: 0 is none.
CREATE OR REPLACE FUNCTION @schema@.tell_lane(
    st @schema@.queue_step, ln @schema@.lane, a_ids bigint[])
RETURNS bytea[]
LANGUAGE plpgsql AS $$
DECLARE
    v_words text := '';
    v_data bytea[] := '{}';
BEGIN
    IF cardinality(a_ids) > 0 THEN
        SELECT string_agg(concat(' ', i.id, ' ', i.fence, ' ', i.attempts, ' ',
                                 i.lost, ' ', i.priority, ' ',
                                 CASE WHEN i.limit_us > 0 THEN
                                 (greatest(i.limit_us - st.at_us, 1) + 999)
                                 / 1000 ELSE 0 END), '' ORDER BY i.fence),
               array_agg(i.id ORDER BY i.fence)
        INTO v_words, a_ids
        FROM @schema@.item AS i WHERE i.id = ANY (a_ids);
        SELECT array_agg(d.data ORDER BY array_position(a_ids, d.id))
        INTO v_data FROM @schema@.item_data AS d WHERE d.id = ANY (a_ids);
    END IF;
    RETURN ARRAY[convert_to('0 ' || ln.stamp || ' '
                            || @schema@.due_ms(st, ln.waits_us > 0) || v_words,
                            'UTF8'), convert_to(ln.results, 'UTF8')] || v_data;
END
$$;
