-- schema.sql - the tables of the PostgreSQL store, version 1. @schema@ is the
-- schema's name, put in when this is run.
--
-- party: who holds, waits for or has left a name (src/store/grant.h), in slots.
-- Slot 0 is there as long as the name is known, "vacant" when nobody has it, and
-- whoever changes anything about a name locks it first. A name that one holds at a
-- time never needs another: its row is updated in place, without a new entry in
-- the index, and its page is tidied as it is written. Times are in microseconds of
-- clock_timestamp().
--   crowded  slot 0: the name has further slots or tombs, so the short ways do not
--            do
--   last     slot 0: the highest fence of the name so far
-- tomb: owners who have left a name while a request of theirs was unanswered. Apart
-- from the parties, for a name that is handed on quickly has many of them. A name
-- that has one is crowded.
-- meta: one row. `floor` is at least every fence of names that were swept; `swept`
-- is how far the sweep has come.
-- value: bytes by key; until_us is NULL for ever.
-- log: entries by topic.

CREATE TYPE @schema@.role AS ENUM
    ('holder', 'waiter', 'ghost', 'tomb', 'vacant');
CREATE TYPE @schema@.mode AS ENUM ('exclusive', 'shared', 'permits');

CREATE TABLE @schema@.meta(
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    floor bigint NOT NULL,
    swept text COLLATE "C" NOT NULL
);

INSERT INTO @schema@.meta VALUES (true, 1, 0, '');

CREATE TABLE @schema@.party(
    name text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    role @schema@.role NOT NULL,
    mode @schema@.mode NOT NULL DEFAULT 'exclusive',
    crowded boolean NOT NULL DEFAULT false,
    claim boolean NOT NULL DEFAULT false,
    tell boolean NOT NULL DEFAULT false,
    priority integer NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    permits bigint NOT NULL DEFAULT 1,
    capacity bigint NOT NULL DEFAULT 0,
    seq bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0,
    ttl_ms bigint NOT NULL DEFAULT 0,
    since_us bigint NOT NULL DEFAULT 0,
    until_us bigint NOT NULL DEFAULT 0,
    owner text COLLATE "C" NOT NULL DEFAULT '',
    bell text COLLATE "C" NOT NULL DEFAULT '',
    who text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (name, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE TABLE @schema@.tomb(
    name text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    until_us bigint NOT NULL,
    PRIMARY KEY (name, owner)
);

CREATE INDEX tomb_until ON @schema@.tomb(name, until_us);

CREATE TABLE @schema@.value(
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    until_us bigint,
    data bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX value_until ON @schema@.value(until_us)
    WHERE until_us IS NOT NULL;

CREATE TABLE @schema@.log(
    topic text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    wall_us bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (topic, position)
);
