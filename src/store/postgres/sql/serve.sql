-- serve.sql - version 12: what the steps of queues that overlap must not take from each
-- other: a wakeup, an answer, a setting, an item. It replaces functions of earlier versions.

-- Hands over to the lanes that wait, those that asked last first: to those of a worker,
-- or to all. The lock of the queue is held. A lane whose row is locked is passed over:
-- its own step looks again, or it is being served. So no lane is locked by whoever has
-- nothing for it, as a push of a delayed item: another push would pass it over, and nobody
-- would be rung. That an item is there does not do, for a take may have it locked.
CREATE OR REPLACE FUNCTION @schema@.serve_lanes(st @schema@.queue_step, a_worker text,
                                     a_alone boolean)
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

-- Changes the settings of a_fields (DIBS__SET_*). It is alone: a push that did not hand
-- over, because the queue was paused, is committed before, or finds it resumed.
CREATE OR REPLACE FUNCTION @schema@.queue_set(
    a_queue text, a_fields bigint, a_paused boolean, a_serial boolean,
    a_cap bigint, a_tries bigint, a_deads bigint, a_lost_max bigint,
    a_keep_done bigint)
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

-- Forgets the counters of a queue of which nothing else is left, and its row if it has no
-- settings. For those who may have removed the last of the rest.
CREATE OR REPLACE FUNCTION @schema@.sweep_idle(a_queue text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF @schema@.has_items(a_queue)
       OR EXISTS (SELECT FROM @schema@.lane AS l WHERE l.queue = a_queue)
       OR EXISTS (SELECT FROM @schema@.dead AS d WHERE d.queue = a_queue)
       OR EXISTS (SELECT FROM @schema@.pusher AS p WHERE p.queue = a_queue)
       OR EXISTS (SELECT FROM @schema@.queue AS q WHERE q.name = a_queue
                  AND (q.paused OR q.serial OR q.cap <> 0 OR q.tries <> 0
                       OR q.deads <> 0 OR q.lost_max <> 0
                       OR q.keep_done <> 0)) THEN
        RETURN;
    END IF;
    PERFORM @schema@.trim_done(a_queue, 0);
    DELETE FROM @schema@.queue AS q WHERE q.name IN (
        SELECT o.name FROM @schema@.queue AS o WHERE o.name = a_queue
        -- It may have got settings since it was looked at.
        AND NOT (o.paused OR o.serial OR o.cap <> 0 OR o.tries <> 0
                 OR o.deads <> 0 OR o.lost_max <> 0 OR o.keep_done <> 0)
        FOR UPDATE SKIP LOCKED);
    DELETE FROM @schema@.tally AS t WHERE t.queue = a_queue AND t.id IN (
        SELECT o.id FROM @schema@.tally AS o WHERE o.queue = a_queue
        FOR UPDATE SKIP LOCKED);
END
$$;

UPDATE @schema@.meta SET version = 12;
