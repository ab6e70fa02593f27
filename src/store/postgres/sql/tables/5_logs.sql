-- 5_logs.sql - version 5: entries of a log know the one before them, and writers are
-- remembered.
--
-- log.prior: the position before it in its topic; -1: the newest of its topic, which
-- was trimmed and stays for its position; -2: an entry of an older version.
-- log.total, nth: bytes and entries that the topic has had up to and with this one.
-- writer: the last append of a lane.

ALTER TABLE @schema@.log ADD COLUMN prior bigint NOT NULL DEFAULT -2;
ALTER TABLE @schema@.log ADD COLUMN total bigint NOT NULL DEFAULT 0;
ALTER TABLE @schema@.log ADD COLUMN nth bigint NOT NULL DEFAULT 0;

CREATE TABLE @schema@.writer(
    lane bigint NOT NULL,
    number bigint NOT NULL,
    position bigint NOT NULL,
    until_min bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    PRIMARY KEY (topic, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX writer_until ON @schema@.writer(until_min);
