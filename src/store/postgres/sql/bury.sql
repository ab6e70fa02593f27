-- bury.sql - version 14: what one death drops of the dead letters is bounded.

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
