-- 3_rosters.sql - version 3: rosters (src/store/roster.h).
--
-- roster: one row for each name, which a step locks first. Times are in microseconds
-- of clock_timestamp().
--   kind      0 group, 1 barrier, 2 latch
--   gen       the generation that gathers; 0: there is no roster of the name now
--   last      the highest number of the name so far, as `last` of roll
--   until_us  no seat lives longer; a latch is kept until then
--   run       of the server, at the last strict step; '' when there was none
-- seat: kind 0 not used yet, 1 has not arrived, 2 arrived in `rec`; 3 is no seat but
-- an id that a latch has counted.

CREATE TABLE @schema@.roster(
    kind bigint NOT NULL DEFAULT 0,
    gen bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    need bigint NOT NULL DEFAULT 0,
    here bigint NOT NULL DEFAULT 0,
    seats bigint NOT NULL DEFAULT 0,
    until_us bigint NOT NULL DEFAULT 0,
    name text COLLATE "C" PRIMARY KEY,
    run text COLLATE "C" NOT NULL DEFAULT '',
    broken bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE TABLE @schema@.seat(
    kind bigint NOT NULL,
    fence bigint NOT NULL,
    came_from bigint NOT NULL,
    rec bigint NOT NULL,
    counts_us bigint NOT NULL,
    until_us bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    who text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX seat_until ON @schema@.seat(name, until_us);
