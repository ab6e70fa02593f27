-- queue_settle.sql - the settlements of items, as a part of a reserve.

-- Keeps records of the items that an ack is about to remove; the lane's row is locked. With
-- many of them it is cheaper to look for those beyond the bound now and then.
CREATE OR REPLACE FUNCTION @schema@.keep_done(
    st @schema@.queue_step, a_lane bigint, a_ids bigint[], a_fences bigint[],
    a_attempts bigint[], a_results text[])
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO @schema@.done
    SELECT @schema@.next_id(st.at_us), o.* FROM (
        SELECT i.id, @schema@.now_us(), i.attempts, i.lost, i.priority, i.queue,
               i.to_worker, i.dedup, a_results[array_position(a_ids, i.id)]
        FROM @schema@.item AS i
        WHERE i.id = ANY (a_ids) AND i.queue = st.queue AND i.lane = a_lane
        AND i.fence = a_fences[array_position(a_ids, i.id)]
        AND i.attempts = a_attempts[array_position(a_ids, i.id)]
        ORDER BY array_position(a_ids, i.id)) AS o;
    IF random() * 64 < cardinality(a_ids) THEN
        PERFORM @schema@.trim_done(st.queue, st.keep_done);
    END IF;
END
$$;

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
CREATE OR REPLACE FUNCTION @schema@.ack_items(
    st @schema@.queue_step, a_lane bigint, a_ids bigint[], a_fences bigint[],
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

-- Whether a token (id, fence, attempt) is among those that were heard of.
CREATE OR REPLACE FUNCTION @schema@.is_heard(
    a_heard bigint[], a_id bigint, a_fence bigint, a_attempt bigint)
RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR n IN 1 .. coalesce(cardinality(a_heard), 0) BY 3 LOOP
        IF a_heard[n] = a_id AND a_heard[n + 1] = a_fence
           AND a_heard[n + 2] = a_attempt THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;
