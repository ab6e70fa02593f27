-- 4_meters.sql - version 4: the windows of meters (src/store/meter.h).
--
-- meter: calls that were counted for a version of a value. Not logged: a crash of the
-- server forgets a window, which is then counted anew.
--   cells      start_ms, good, bad, slow and marks of each cell, the newest first
--   until_us   not before the window is over, in whole minutes, as of a rate

CREATE UNLOGGED TABLE @schema@.meter(
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    cells bigint[] NOT NULL,
    until_us bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX meter_until ON @schema@.meter(until_us);
