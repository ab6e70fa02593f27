-- 5_queues.sql - version 5: queues (src/store/queue.h).
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
-- dead: the dead letters.
-- counts of lane, pusher and tally: 1 items, 2 dead, 3 pushed, 4 delivered, 5 acked,
-- 6 nacked, 7 lost, 8 died, 9 dropped, 10 purged. A queue has the sum of all: with
-- one row for it every step would wait for the commit of the one before.

CREATE TABLE @schema@.queue(
    cap bigint NOT NULL DEFAULT 0,
    tries bigint NOT NULL DEFAULT 0,
    deads bigint NOT NULL DEFAULT 0,
    lost_max bigint NOT NULL DEFAULT 0,
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

CREATE TABLE @schema@.tally(
    id bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    counts bigint[] NOT NULL,
    PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
