-- roster.sql - from version 4 of the tables to version 5.
--
-- roster: the head of each roster (store/meet.h); kept_until_us is wall time of a
-- latch, else boot time.
-- seat: its seats, on the boot clock, and the ids that a latch has counted.

CREATE TABLE roster(
    name TEXT PRIMARY KEY NOT NULL,
    kind INTEGER NOT NULL,
    gen INTEGER NOT NULL,
    need INTEGER NOT NULL,
    here INTEGER NOT NULL,
    seats INTEGER NOT NULL,
    broken TEXT NOT NULL,
    kept_until_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE seat(
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    came_from INTEGER NOT NULL,
    rec INTEGER NOT NULL,
    counts_us INTEGER NOT NULL,
    until_us INTEGER NOT NULL,
    who TEXT NOT NULL,
    PRIMARY KEY(name, id)
) WITHOUT ROWID;

CREATE INDEX seat_until ON seat(name, until_us);

PRAGMA user_version = 5;
