-- done.sql - from version 8 of the tables to version 9: records of items that were acked,
-- for queues that keep some.

ALTER TABLE queue ADD COLUMN keep_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queue ADD COLUMN done INTEGER NOT NULL DEFAULT 0;

CREATE TABLE done(
    position INTEGER PRIMARY KEY,
    q INTEGER NOT NULL,
    id INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    to_worker TEXT NOT NULL,
    dedup TEXT NOT NULL,
    result BLOB NOT NULL
);

CREATE INDEX done_queue ON done(q);

PRAGMA user_version = 9;
