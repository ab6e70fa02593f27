-- 7_records.sql - version 7: records of done items, and the knowledge of a step on a queue.
--
-- queue.keep_done: how many records the queue keeps. done: records of the last items that
-- were acked; now and then a step drops those beyond the bound.
--
-- Versions 5 and 6 had functions of their own, some of them with the column and the table: what
-- is there stays, and the functions go.

ALTER TABLE @schema@.queue
    ADD COLUMN IF NOT EXISTS keep_done bigint NOT NULL DEFAULT 0;

CREATE TABLE IF NOT EXISTS @schema@.done(
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

-- With them go all functions that take or answer these.
DROP TYPE IF EXISTS @schema@.queue_step, @schema@.taken CASCADE;
DROP FUNCTION IF EXISTS
    @schema@.queue_lock, @schema@.plus, @schema@.queue_sums,
    @schema@.queue_tally, @schema@.next_id, @schema@.lane_address,
    @schema@.has_items, @schema@.queue_known, @schema@.sweep_queues,
    @schema@.trim_done, @schema@.sweep_idle, @schema@.lost_delay_us,
    @schema@.pick_both, @schema@.is_held_up, @schema@.push, @schema@.is_heard,
    @schema@.put_lane, @schema@.reserve, @schema@.tend, @schema@.leave,
    @schema@.queue_set, @schema@.oldest_place, @schema@.queue_stats,
    @schema@.queue_purge, @schema@.queue_redrive, @schema@.queue_remove,
    @schema@.queue_peek, @schema@.peek_done, @schema@.queue_behind,
    @schema@.queue_list;

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
