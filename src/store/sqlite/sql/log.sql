-- log.sql - from version 1 of the tables to version 2: entries by topic, whose
-- positions come from the watermark too, and whether a party wants a notice of its loss.
-- Programs of an older version that have it open go on: they name their columns.

ALTER TABLE party ADD COLUMN tell INTEGER NOT NULL DEFAULT 0;

CREATE TABLE log(
    topic TEXT NOT NULL,
    position INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY(topic, position)
) WITHOUT ROWID;

PRAGMA user_version = 2;
