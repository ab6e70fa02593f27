-- hand_over.sql - version 8: how a name is handed to a waiter, and items to a lane. They
-- replace the functions of earlier versions.

-- Grants the name to a party. A waiter refreshes its place without the lock of the name
-- (wait_on), also after this step has read the clock, and believes in a claim for 3 s
-- from its last ask: so the claim lasts as long as its place does. Its row is locked before the
-- fence is drawn: an answer "queued" that it got has a watermark below that.
CREATE OR REPLACE FUNCTION @schema@.give(a_name text, a_slot integer,
                                         a_asking boolean, at_us bigint)
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

-- Hands over to the lanes that wait, those that asked last first: to those of a worker,
-- or to all. The lock of the queue is held. A lane whose row is locked is passed over:
-- its own step looks again, or it is being served. So no lane is locked when nothing is
-- left for it: the next push would pass it over, and nobody would be rung.
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
        EXIT WHEN v_reread AND NOT EXISTS (
            SELECT FROM @schema@.item AS i
            WHERE i.queue = st.queue AND i.lane = 0 AND i.due_us = 0);
        SELECT * INTO ln FROM @schema@.lane AS l
        WHERE l.queue = st.queue AND l.waits_us > 0
        AND l.until_us > st.at_us
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

UPDATE @schema@.meta SET version = 8;
