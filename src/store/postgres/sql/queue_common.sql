-- queue_common.sql - what the steps of queues share. The rule is that of src/store/deliver.c.
--
-- Locks, in this order: the row of the own lane or pusher; those of other lanes, of
-- items and of dedup ids; the lock of the queue (queue_lock); then nothing that
-- another transaction waits with. A step that changes an item that is out has its lane's row.
-- Lanes and items of others are passed over when they are locked. So no step
-- waits in a circle, and none locks a row of the queue.
--
-- Plans are made while the tables are empty, and kept until somebody analyses them. So
-- each condition has one index that can serve it, however long a queue is: an
-- item is found by its id alone, and no table is joined with the items of a queue.
--
-- A step that made something ready holds the lock of the queue in share mode when it
-- looks for lanes that wait; a step that found nothing takes it alone, looks again, and
-- then has its place. So one of the two sees the other.

CREATE OR REPLACE FUNCTION @schema@.queue_begin(a_queue text)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step;
BEGIN
    SELECT a_queue, @schema@.now_us(), coalesce(q.paused, false),
           coalesce(q.serial, false), coalesce(nullif(q.cap, 0), 1000000),
           coalesce(nullif(q.tries, 0), 16), coalesce(nullif(q.deads, 0), 10000),
           coalesce(nullif(q.lost_max, 0), 4), coalesce(q.keep_done, 0),
           coalesce(q.counted, 0),
           coalesce(q.counted_us, 0), '{0,0,0,0,0,0,0,0,0,0}'::bigint[], false,
           NULL::bigint, '', 0::bigint
    INTO st
    FROM (SELECT) AS one LEFT JOIN @schema@.queue AS q ON q.name = a_queue;
    RETURN st;
END
$$;

-- The last lock of a step. On a serial queue whoever delivers is alone.
CREATE OR REPLACE FUNCTION @schema@.queue_lock(a_queue text, a_alone boolean)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_key bigint := hashtextextended(a_queue, 1903519093);
BEGIN
    IF a_alone THEN
        PERFORM pg_advisory_xact_lock(v_key);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(v_key);
    END IF;
END
$$;

-- The settings as they are once the lock of the queue is held. A step that has the
-- wrong one by now begins anew.
CREATE OR REPLACE FUNCTION @schema@.queue_reread(st @schema@.queue_step, a_alone boolean)
RETURNS @schema@.queue_step
LANGUAGE plpgsql AS $$
DECLARE
    now @schema@.queue_step := @schema@.queue_begin(st.queue);
BEGIN
    IF now.serial AND NOT a_alone THEN
        RAISE EXCEPTION 'the queue has become serial'
        USING ERRCODE = 'serialization_failure';
    END IF;
    st.paused := now.paused;
    st.serial := now.serial;
    RETURN st;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.plus(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4],
                 a[5] + b[5], a[6] + b[6], a[7] + b[7], a[8] + b[8],
                 a[9] + b[9], a[10] + b[10]]
$$;

-- The counts of a queue.
CREATE OR REPLACE FUNCTION @schema@.queue_sums(a_queue text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_sums bigint[];
BEGIN
    SELECT ARRAY[sum(c.n[1]), sum(c.n[2]), sum(c.n[3]), sum(c.n[4]),
                 sum(c.n[5]), sum(c.n[6]), sum(c.n[7]), sum(c.n[8]),
                 sum(c.n[9]), sum(c.n[10])]::bigint[]
    INTO v_sums
    FROM (SELECT l.counts FROM @schema@.lane AS l WHERE l.queue = a_queue
          UNION ALL
          SELECT p.counts FROM @schema@.pusher AS p WHERE p.queue = a_queue
          UNION ALL
          SELECT t.counts FROM @schema@.tally AS t WHERE t.queue = a_queue
          UNION ALL
          SELECT '{0,0,0,0,0,0,0,0,0,0}'::bigint[]) AS c(n);
    RETURN v_sums;
END
$$;

-- Keeps what was counted by whoever has no row of its own, in as few rows as can be.
CREATE OR REPLACE FUNCTION @schema@.queue_tally(a_queue text, a_counts bigint[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_counts bigint[];
BEGIN
    IF a_counts = '{0,0,0,0,0,0,0,0,0,0}'::bigint[] THEN
        RETURN;
    END IF;
    FOR v_counts IN
        DELETE FROM @schema@.tally AS t WHERE t.queue = a_queue AND t.id IN (
            SELECT u.id FROM @schema@.tally AS u WHERE u.queue = a_queue
            LIMIT 16 FOR UPDATE SKIP LOCKED)
        RETURNING t.counts
    LOOP
        a_counts := @schema@.plus(a_counts, v_counts);
    END LOOP;
    INSERT INTO @schema@.tally
    VALUES (nextval('@schema@.item_ids'), a_queue, a_counts);
END
$$;

-- The next id. It follows the clock, so that none is used again after a failover that
-- lost some: a sequence of its own would go back with them.
CREATE OR REPLACE FUNCTION @schema@.next_id(at_us bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint := nextval('@schema@.item_ids');
BEGIN
    IF v_id < at_us - 1000000 AND pg_try_advisory_xact_lock(
           hashtextextended('@schema@.item_ids', 1903519093)) THEN
        v_id := nextval('@schema@.item_ids');
        IF v_id < at_us - 1000000 THEN
            v_id := setval('@schema@.item_ids', at_us);
        END IF;
    END IF;
    RETURN v_id;
END
$$;

-- The owner in notices for a lane.
CREATE OR REPLACE FUNCTION @schema@.lane_address(a_lane bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT lpad(to_hex(a_lane), 32, '0')
$$;

CREATE OR REPLACE FUNCTION @schema@.has_items(a_queue text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM @schema@.item AS i WHERE i.queue = a_queue
                   AND i.lane = 0 AND i.due_us = 0)
        OR EXISTS (SELECT FROM @schema@.item AS i WHERE i.queue = a_queue
                   AND i.due_us > 0)
        OR EXISTS (SELECT FROM @schema@.item AS i WHERE i.queue = a_queue
                   AND i.lane <> 0);
END
$$;

-- Whether a queue has anything: a setting, an item, a lane, a client that pushed.
CREATE OR REPLACE FUNCTION @schema@.queue_known(a_queue text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM @schema@.queue AS q WHERE q.name = a_queue)
        OR @schema@.has_items(a_queue)
        OR EXISTS (SELECT FROM @schema@.lane AS l WHERE l.queue = a_queue)
        OR EXISTS (SELECT FROM @schema@.dead AS d WHERE d.queue = a_queue)
        OR EXISTS (SELECT FROM @schema@.pusher AS p WHERE p.queue = a_queue)
        OR EXISTS (SELECT FROM @schema@.tally AS t WHERE t.queue = a_queue);
END
$$;

-- Removes some of what nobody uses any more, of any queue. Waits for no lock. A window is
-- over for a minute before its item is looked for: no step is as long.
CREATE OR REPLACE FUNCTION @schema@.sweep_queues(at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    st @schema@.queue_step;
    ln @schema@.lane;
    v_queue text;
    v_counts bigint[];
BEGIN
    FOR v_queue, v_counts IN
        DELETE FROM @schema@.pusher AS p WHERE (p.queue, p.lane) IN (
            SELECT o.queue, o.lane FROM @schema@.pusher AS o
            WHERE o.end_min < at_us / 60000000 LIMIT 16 FOR UPDATE SKIP LOCKED)
        RETURNING p.queue, p.counts
    LOOP
        PERFORM @schema@.queue_tally(v_queue, v_counts);
        PERFORM @schema@.sweep_idle(v_queue);
    END LOOP;
    FOR ln IN
        SELECT l.* FROM @schema@.lane AS l
        WHERE l.end_s < at_us / 1000000 - 60 AND l.until_us < at_us
        LIMIT 16 FOR UPDATE SKIP LOCKED
    LOOP
        -- A lane that waits would have asked: there is none to be served.
        st := @schema@.end_lane(@schema@.queue_begin(ln.queue), ln, true);
        PERFORM @schema@.queue_tally(ln.queue, st.counts);
        PERFORM @schema@.sweep_idle(ln.queue);
    END LOOP;
    WITH over AS (
        SELECT d.queue, d.id, EXISTS (
            SELECT FROM @schema@.item AS i
            WHERE i.id = d.item) AS lives
        FROM @schema@.dedup AS d
        WHERE d.until_us > 0 AND d.until_us < at_us - 60000000
        LIMIT 16 FOR UPDATE SKIP LOCKED),
    freed AS (
        DELETE FROM @schema@.dedup AS d USING over AS o
        WHERE d.queue = o.queue AND d.id = o.id AND NOT o.lives)
    UPDATE @schema@.dedup AS d SET until_us = 0 FROM over AS o
    WHERE d.queue = o.queue AND d.id = o.id AND o.lives;
END
$$;

-- Drops the oldest records of done items beyond a bound.
CREATE OR REPLACE FUNCTION @schema@.trim_done(a_queue text, a_keep bigint) RETURNS void
LANGUAGE plpgsql SET enable_sort = off AS $$
BEGIN
    DELETE FROM @schema@.done AS d
    WHERE d.queue = a_queue AND d.position IN (
        SELECT o.position FROM @schema@.done AS o
        WHERE o.queue = a_queue AND o.position <= (
            SELECT k.position FROM @schema@.done AS k WHERE k.queue = a_queue
            ORDER BY k.position DESC OFFSET a_keep LIMIT 1)
        FOR UPDATE SKIP LOCKED);
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
