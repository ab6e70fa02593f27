-- 2_rates.sql - version 2: rate limits (src/store/rate.h).
--
-- rate: the state of a limit. Not logged: a crash of the server forgets what is out,
-- which is worth one burst.
--   tat_us     when all that is out will have come back; last_us: when this was
--              written; rest: of a microsecond, in parts of 1/count
--   until_us   not before tat_us, in whole minutes: an index on a column that every
--              draw changes would keep the row from being updated in place

CREATE UNLOGGED TABLE @schema@.rate(
    name text COLLATE "C" PRIMARY KEY,
    tat_us bigint NOT NULL,
    last_us bigint NOT NULL,
    rest bigint NOT NULL,
    count bigint NOT NULL,
    period_us bigint NOT NULL,
    until_us bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX rate_until ON @schema@.rate(until_us);
