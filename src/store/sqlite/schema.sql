-- schema.sql - the tables of the embedded store, version 4.
--
-- party: the parties of a name (store/grant.h). Times ending
-- in _us are on the boot clock and mean nothing after a reboot. The row of the
-- empty name keeps the watermark of the store in its fence: it shares a page
-- with the leases of a small store, so that a grant writes one page.
-- meta: the era, which is the boot and the time namespace that party belongs to,
-- and how far the sweep has come.
-- value: bytes by key; until_wall_us is wall time, NULL for ever.
-- log: entries by topic; positions come from the watermark too.
-- ear: the doorbells that listen to a topic, until a time on the boot clock.
-- rate: the state of a rate limit (store/rate.h), on the boot clock.

CREATE TABLE party(
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    role INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    permits INTEGER NOT NULL,
    capacity INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    claim INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    since_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    bell TEXT NOT NULL,
    who TEXT NOT NULL,
    tell INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(name, owner)
) WITHOUT ROWID;

INSERT INTO party VALUES('', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '', 0);

CREATE TABLE meta(
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO meta VALUES('era', ''), ('swept', '');

CREATE TABLE value(
    key TEXT PRIMARY KEY NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    until_wall_us INTEGER
);

CREATE INDEX value_until ON value(until_wall_us)
    WHERE until_wall_us IS NOT NULL;

CREATE TABLE log(
    topic TEXT NOT NULL,
    position INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY(topic, position)
) WITHOUT ROWID;

CREATE TABLE ear(
    topic TEXT NOT NULL,
    bell TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY(topic, bell)
) WITHOUT ROWID;

CREATE TABLE rate(
    name TEXT PRIMARY KEY NOT NULL,
    tat_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    rest INTEGER NOT NULL,
    count INTEGER NOT NULL,
    period_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX rate_tat ON rate(tat_us);

PRAGMA application_id = 1684628083;
PRAGMA user_version = 4;
