-- events.sql - the second part of version 7: entries of a log know the one before them,
-- and writers are remembered.
--
-- prior: the position before it in its topic; -1: the newest of its topic, which
-- was trimmed and stays for its position; -2: an entry of an older version.
-- total, nth: bytes and entries that the topic has had up to and with this one.
-- writer: the last append of a lane, on the boot clock.

ALTER TABLE log ADD COLUMN prior INTEGER NOT NULL DEFAULT -2;
ALTER TABLE log ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
ALTER TABLE log ADD COLUMN nth INTEGER NOT NULL DEFAULT 0;

CREATE TABLE writer(
    topic TEXT NOT NULL,
    lane INTEGER NOT NULL,
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY(topic, lane)
) WITHOUT ROWID;

CREATE INDEX writer_until ON writer(until_us);
