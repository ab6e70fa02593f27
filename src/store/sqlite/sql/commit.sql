-- commit.sql - from version 7 of the tables to version 8: indexes (store/commit.h).
--
-- entry: the members of indexes, each with its number.
-- ordered: how many members each index has; one without members has no row.

CREATE TABLE entry(
    name TEXT NOT NULL,
    member TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY(name, member)
) WITHOUT ROWID;

CREATE UNIQUE INDEX entry_at ON entry(name, at, member);

CREATE TABLE ordered(
    name TEXT PRIMARY KEY,
    size INTEGER NOT NULL
) WITHOUT ROWID;

PRAGMA user_version = 8;
