-- serve.sql - version 11: a step locks no lane for which nothing is ready. It replaces a
-- function of version 8.

-- Hands over to the lanes that wait, those that asked last first: to those of a worker,
-- or to all. The lock of the queue is held. A lane whose row is locked is passed over:
-- its own step looks again, or it is being served. So no lane is locked when nothing is
-- left for it, nor by a push of a delayed item or a duplicate: another push would pass it
-- over, and nobody would be rung.
CREATE OR REPLACE FUNCTION @schema@.serve_lanes(st @schema@.queue_step, a_worker text,
                                     a_alone boolean)
RETURNS @schema@.queue_step
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    ln @schema@.lane;
    t @schema@.taken;
    v_reread boolean := false;
BEGIN
    LOOP
        -- It looks for an item once it has seen a lane that waits.
        SELECT * INTO ln FROM @schema@.lane AS l
        WHERE l.queue = st.queue AND l.waits_us > 0
        AND l.until_us > CASE WHEN EXISTS (
            SELECT FROM @schema@.item AS i
            WHERE i.queue = st.queue AND i.lane = 0 AND i.due_us = 0)
                              THEN st.at_us END
        AND (a_worker IS NULL OR l.worker = a_worker)
        ORDER BY l.waits_us DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        IF NOT v_reread THEN
            st := @schema@.queue_reread(st, a_alone);
            v_reread := true;
        END IF;
        t := @schema@.take_items(st, ln, ln.want, 0, 0);
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

UPDATE @schema@.meta SET version = 11;
