-- queue.sql - from version 6 of the tables to version 7: queues (store/deliver.h).
--
-- queue: settings and counters; q is what the others call it.
-- item: one that is not dead. It is out when it has a lane, later when it is due, else
-- ready; own is the worker for whom it is ready, '' for everybody.
-- lane: of clients that reserve, on the boot clock. pusher: of clients that push, with
-- the answer to their last request.
-- dedup: ids that are taken, by an item that is alive or until the end of a window.
-- dead: the dead letters. Times ending in wall_us are wall time.

CREATE TABLE queue(
    q INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    paused INTEGER NOT NULL,
    serial INTEGER NOT NULL,
    cap INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    deads INTEGER NOT NULL,
    lost_max INTEGER NOT NULL,
    items INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    pushed INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    acked INTEGER NOT NULL,
    nacked INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    died INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    purged INTEGER NOT NULL
);

CREATE TABLE item(
    id INTEGER PRIMARY KEY,
    q INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    place INTEGER NOT NULL,
    due_wall_us INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    told INTEGER NOT NULL,
    limit_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    to_worker TEXT NOT NULL,
    own TEXT NOT NULL,
    dedup TEXT NOT NULL,
    reason TEXT NOT NULL,
    data BLOB NOT NULL
);

CREATE INDEX item_ready ON item(q, own, priority DESC, place)
    WHERE lane = 0 AND due_wall_us = 0;
CREATE INDEX item_later ON item(q, due_wall_us) WHERE due_wall_us > 0;
CREATE INDEX item_retry ON item(q) WHERE due_wall_us > 0 AND attempts > 0;
CREATE INDEX item_age ON item(q, place) WHERE lane = 0 AND due_wall_us = 0;
CREATE INDEX item_lane ON item(q, lane, fence) WHERE lane <> 0;
CREATE INDEX item_unheard ON item(q, lane, fence) WHERE lane <> 0 AND told = 0;
CREATE INDEX item_limit ON item(q, limit_us) WHERE limit_us > 0;

CREATE TABLE lane(
    q INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    number INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    waits_us INTEGER NOT NULL,
    want INTEGER NOT NULL,
    hands INTEGER NOT NULL,
    limit_ms INTEGER NOT NULL,
    worker TEXT NOT NULL,
    bell TEXT NOT NULL,
    results TEXT NOT NULL,
    PRIMARY KEY(q, lane)
) WITHOUT ROWID;

CREATE INDEX lane_until ON lane(q, until_us);
CREATE INDEX lane_waits ON lane(q, waits_us) WHERE waits_us > 0;
CREATE INDEX lane_worker ON lane(q, worker) WHERE worker <> '';

CREATE TABLE pusher(
    q INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    number INTEGER NOT NULL,
    rc INTEGER NOT NULL,
    answer BLOB NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY(q, lane)
) WITHOUT ROWID;

CREATE INDEX pusher_until ON pusher(until_us);

CREATE TABLE dedup(
    q INTEGER NOT NULL,
    id TEXT NOT NULL,
    item INTEGER NOT NULL,
    alive INTEGER NOT NULL,
    until_wall_us INTEGER NOT NULL,
    PRIMARY KEY(q, id)
) WITHOUT ROWID;

CREATE INDEX dedup_until ON dedup(until_wall_us) WHERE alive = 0;

CREATE TABLE dead(
    position INTEGER PRIMARY KEY,
    q INTEGER NOT NULL,
    id INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    to_worker TEXT NOT NULL,
    dedup TEXT NOT NULL,
    reason TEXT NOT NULL,
    data BLOB NOT NULL
);

CREATE INDEX dead_queue ON dead(q);
CREATE INDEX dead_item ON dead(id);

PRAGMA user_version = 7;
