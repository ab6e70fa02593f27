-- queue.sql - version 5: queues (src/store/queue.h). The rule is that of
-- src/store/deliver.c; here are the tables, and what the steps share. Functions in
-- queue_item.sql, queue_step.sql and queue_admin.sql follow.
--
-- queue: the settings, 0 for the default; a queue needs no row. counted, counted_us:
-- how many items it had at a time, so that not every push counts them.
-- item: one that is not dead. It is out when it has a lane, later when it is due, else
-- ready; own is the worker for whom it is ready, '' for everybody. Its fence is
-- kept when it comes back. item_data is apart, so that what changes is short.
-- lane: of clients that reserve. pusher: of clients that push, with the answer to their
-- last request: ids, those of duplicates negative. `last` is the highest number that was
-- drawn for it. end_s, end_min: a bound of its end that changes seldom, for an index.
-- dedup: ids that are taken, while their item is there, and until the end of a window.
-- dead: the dead letters. done: records of the last items that were acked, if the queue
-- keeps some; now and then a step drops those beyond the bound.
-- counts of lane, pusher and tally: 1 items, 2 dead, 3 pushed, 4 delivered, 5 acked,
-- 6 nacked, 7 lost, 8 died, 9 dropped, 10 purged. A queue has the sum of all: with
-- one row for it every step would wait for the commit of the one before.
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

CREATE TABLE @schema@.queue(
    cap bigint NOT NULL DEFAULT 0,
    tries bigint NOT NULL DEFAULT 0,
    deads bigint NOT NULL DEFAULT 0,
    lost_max bigint NOT NULL DEFAULT 0,
    keep_done bigint NOT NULL DEFAULT 0,
    counted bigint NOT NULL DEFAULT 0,
    counted_us bigint NOT NULL DEFAULT 0,
    paused boolean NOT NULL DEFAULT false,
    serial boolean NOT NULL DEFAULT false,
    name text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE SEQUENCE @schema@.item_ids;

CREATE TABLE @schema@.item(
    id bigint NOT NULL,
    place bigint NOT NULL,
    due_us bigint NOT NULL,
    lane bigint NOT NULL,
    fence bigint NOT NULL,
    told bigint NOT NULL,
    limit_us bigint NOT NULL,
    len integer NOT NULL,
    priority integer NOT NULL,
    attempts bigint NOT NULL,
    lost bigint NOT NULL,
    tries bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    to_worker text COLLATE "C" NOT NULL,
    own text COLLATE "C" NOT NULL,
    dedup text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    PRIMARY KEY (id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX item_next ON @schema@.item(queue, own, priority DESC, place, id)
    WHERE lane = 0 AND due_us = 0;
CREATE INDEX item_later ON @schema@.item(queue, due_us, id) WHERE due_us > 0;
CREATE INDEX item_retry ON @schema@.item(queue)
    WHERE due_us > 0 AND attempts > 0;
CREATE INDEX item_lane ON @schema@.item(queue, lane, fence) WHERE lane <> 0;
CREATE INDEX item_limit ON @schema@.item(queue, limit_us) WHERE limit_us > 0;

CREATE TABLE @schema@.item_data(
    id bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_threshold = 1000);

CREATE TABLE @schema@.lane(
    lane bigint NOT NULL,
    number bigint NOT NULL,
    stamp bigint NOT NULL,
    last bigint NOT NULL,
    until_us bigint NOT NULL,
    end_s bigint NOT NULL,
    waits_us bigint NOT NULL,
    want bigint NOT NULL,
    hands bigint NOT NULL,
    limit_ms bigint NOT NULL,
    unheard boolean NOT NULL,
    queue text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    bell text COLLATE "C" NOT NULL,
    results text COLLATE "C" NOT NULL,
    counts bigint[] NOT NULL,
    PRIMARY KEY (queue, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX lane_end ON @schema@.lane(end_s);
CREATE INDEX lane_wait ON @schema@.lane(queue, waits_us) WHERE waits_us > 0;
CREATE INDEX lane_worker ON @schema@.lane(queue, worker) WHERE worker <> '';

CREATE TABLE @schema@.pusher(
    lane bigint NOT NULL,
    number bigint NOT NULL,
    last bigint NOT NULL,
    end_min bigint NOT NULL,
    status bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    ids bigint[] NOT NULL,
    counts bigint[] NOT NULL,
    PRIMARY KEY (queue, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX pusher_end ON @schema@.pusher(end_min);

CREATE TABLE @schema@.dedup(
    item bigint NOT NULL,
    until_us bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX dedup_until ON @schema@.dedup(until_us) WHERE until_us > 0;

CREATE TABLE @schema@.dead(
    position bigint NOT NULL,
    id bigint NOT NULL,
    wall_us bigint NOT NULL,
    attempts bigint NOT NULL,
    lost bigint NOT NULL,
    tries bigint NOT NULL,
    len integer NOT NULL,
    priority integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    to_worker text COLLATE "C" NOT NULL,
    dedup text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (queue, position)
);

CREATE INDEX dead_item ON @schema@.dead(id);

CREATE TABLE @schema@.done(
    position bigint NOT NULL,
    id bigint NOT NULL,
    wall_us bigint NOT NULL,
    attempts bigint NOT NULL,
    lost bigint NOT NULL,
    priority integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    to_worker text COLLATE "C" NOT NULL,
    dedup text COLLATE "C" NOT NULL,
    result text COLLATE "C" NOT NULL,
    PRIMARY KEY (queue, position)
) WITH (autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE TABLE @schema@.tally(
    id bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    counts bigint[] NOT NULL,
    PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- The knowledge of a step: the settings of its queue with the defaults, what it has counted so
-- far; serves: a lane that waits may have something to get; due_us: not after the first delayed
-- item is due, NULL when there is none; results: of settlements; last: the highest fence that it
-- gave, so that those of one step rise over its lanes.
CREATE TYPE @schema@.queue_step AS (
    queue text, at_us bigint, paused boolean, serial boolean, cap bigint,
    tries bigint, deads bigint, lost_max bigint, keep_done bigint, counted bigint,
    counted_us bigint, counts bigint[], serves boolean, due_us bigint,
    results text, last bigint);

-- Items that were delivered, in order; the highest number drawn for the lane; their bytes;
-- cut: others were locked, and not taken.
CREATE TYPE @schema@.taken AS (
    ids bigint[], last bigint, bytes bigint, cut boolean);

CREATE FUNCTION @schema@.queue_begin(a_queue text)
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
CREATE FUNCTION @schema@.queue_lock(a_queue text, a_alone boolean)
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
CREATE FUNCTION @schema@.queue_reread(st @schema@.queue_step, a_alone boolean)
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

CREATE FUNCTION @schema@.plus(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4],
                 a[5] + b[5], a[6] + b[6], a[7] + b[7], a[8] + b[8],
                 a[9] + b[9], a[10] + b[10]]
$$;

-- The counts of a queue.
CREATE FUNCTION @schema@.queue_sums(a_queue text) RETURNS bigint[]
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
CREATE FUNCTION @schema@.queue_tally(a_queue text, a_counts bigint[])
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
CREATE FUNCTION @schema@.next_id(at_us bigint) RETURNS bigint
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
CREATE FUNCTION @schema@.lane_address(a_lane bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT lpad(to_hex(a_lane), 32, '0')
$$;

CREATE FUNCTION @schema@.has_items(a_queue text) RETURNS boolean
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
CREATE FUNCTION @schema@.queue_known(a_queue text) RETURNS boolean
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
CREATE FUNCTION @schema@.sweep_queues(at_us bigint) RETURNS void
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
CREATE FUNCTION @schema@.trim_done(a_queue text, a_keep bigint) RETURNS void
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
CREATE FUNCTION @schema@.sweep_idle(a_queue text) RETURNS void
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
        FOR UPDATE SKIP LOCKED);
    DELETE FROM @schema@.tally AS t WHERE t.queue = a_queue AND t.id IN (
        SELECT o.id FROM @schema@.tally AS o WHERE o.queue = a_queue
        FOR UPDATE SKIP LOCKED);
END
$$;
