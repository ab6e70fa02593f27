-- 6_entries.sql - version 6: indexes (src/store/commit.h).
--
-- entry: a member of an index. `at` is its number; -1 only inside a commit. The index
-- entry_at leaves that out so that it serves the looks in order alone: a member is found
-- by the primary key, whatever the server thought of the table when it made the plan.

CREATE TABLE @schema@.entry(
    at bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    member text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, member)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_threshold = 1000);

CREATE INDEX entry_at ON @schema@.entry(name, at, member) WHERE at >= 0;
