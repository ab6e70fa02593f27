-- meter.sql - from version 5 of the tables to version 6: the windows of meters
-- (store/meter.h), on the boot clock.

CREATE TABLE meter(
    key TEXT PRIMARY KEY NOT NULL,
    cells TEXT NOT NULL,
    until_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX meter_until ON meter(until_us);

PRAGMA user_version = 6;
