-- schema.sql - the tables of the embedded store, version 1. Each of the other files
-- here adds what a later version has: log.sql, ear.sql, rate.sql, roster.sql,
-- meter.sql, queue.sql, commit.sql.
--
-- party: the parties of a name (store/grant.h). Times ending
-- in _us are on the boot clock and mean nothing after a reboot. The row of the
-- empty name keeps the watermark of the store in its fence: it shares a page
-- with the leases of a small store, so that a grant writes one page.
-- meta: the era, which is the boot and the time namespace that party belongs to,
-- and how far the sweep has come.
-- value: bytes by key; until_wall_us is wall time, NULL for ever.

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
    PRIMARY KEY(name, owner)
) WITHOUT ROWID;

INSERT INTO party VALUES('', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '');

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

PRAGMA application_id = 1684628083;
PRAGMA user_version = 1;
