-- 1_leases.sql - version 1: names with their parties, values, logs and listeners. A file of
-- this folder makes a version of the tables out of the one before it, or a part of it.
-- @schema@ is the schema's name, put in when this is run.
--
-- roll: one row for each known name. Every step that changes anything about a name
-- locks it first. A lock with a holder and no waiters is in this row alone, which is
-- updated in place: no new entry in the index, and its page is
-- tidied as it is written. Times are in microseconds of clock_timestamp().
--   last     the highest fence of the name so far; that of `owner`, if there is one
--   owner    its exclusive holder; '' when there is none, or it is crowded
--   crowded  the name has parties or tombs, so the short ways do not do
-- party: the parties of a name (src/store/grant.h), when a row of the roll cannot
-- describe them.
-- tomb: owners that have left a name while a request of theirs was unanswered. Apart
-- from the parties, because a name that changes hands quickly has many of them.
-- lease: a view, all that hold or wait.
-- meta: one row. `floor` is at least every fence of names that were swept; `swept`
-- is how far the sweep has come.
-- value: bytes by key; until_us is NULL for ever.
-- log: entries by topic.
-- ear: the doorbells that listen to a topic, and the address of the topic in their
-- notices. A crash of the server empties it, as it ends the connections that listen.

CREATE TYPE @schema@.role AS ENUM
    ('holder', 'waiter', 'ghost', 'tomb');
CREATE TYPE @schema@.mode AS ENUM ('exclusive', 'shared', 'permits');

CREATE TABLE @schema@.meta(
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    floor bigint NOT NULL,
    swept text COLLATE "C" NOT NULL
);

INSERT INTO @schema@.meta VALUES (true, 1, 0, '');

CREATE TABLE @schema@.roll(
    last bigint NOT NULL,
    until_us bigint NOT NULL DEFAULT 0,
    since_us bigint NOT NULL DEFAULT 0,
    ttl_ms bigint NOT NULL DEFAULT 0,
    crowded boolean NOT NULL DEFAULT false,
    name text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL DEFAULT '',
    bell text COLLATE "C" NOT NULL DEFAULT '',
    who text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE TABLE @schema@.party(
    name text COLLATE "C" NOT NULL,
    slot integer NOT NULL,
    role @schema@.role NOT NULL,
    mode @schema@.mode NOT NULL,
    claim boolean NOT NULL,
    tell boolean NOT NULL,
    priority integer NOT NULL,
    permits bigint NOT NULL,
    capacity bigint NOT NULL,
    seq bigint NOT NULL,
    fence bigint NOT NULL,
    ttl_ms bigint NOT NULL,
    since_us bigint NOT NULL,
    until_us bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    bell text COLLATE "C" NOT NULL,
    who text COLLATE "C" NOT NULL,
    PRIMARY KEY (name, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_threshold = 1000);

CREATE VIEW @schema@.lease AS
SELECT name, 0 AS slot, 'holder'::@schema@.role AS role,
       'exclusive'::@schema@.mode AS mode, false AS claim, 0 AS priority,
       1::bigint AS permits, 0::bigint AS capacity, 0::bigint AS seq,
       last AS fence, ttl_ms, since_us, until_us, owner, bell, who
FROM @schema@.roll WHERE owner <> ''
UNION ALL
SELECT name, slot, role, mode, claim, priority, permits, capacity, seq, fence,
       ttl_ms, since_us, until_us, owner, bell, who
FROM @schema@.party;

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

CREATE UNLOGGED TABLE @schema@.ear(
    topic text COLLATE "C" NOT NULL,
    bell text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    until_us bigint NOT NULL,
    PRIMARY KEY (topic, bell)
) WITH (fillfactor = 50);

CREATE INDEX ear_until ON @schema@.ear(until_us);
