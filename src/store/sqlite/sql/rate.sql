-- rate.sql - from version 3 of the tables to version 4: the state of rate limits
-- (store/rate.h), on the boot clock.

CREATE TABLE rate(
    name TEXT PRIMARY KEY NOT NULL,
    tat_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    rest INTEGER NOT NULL,
    count INTEGER NOT NULL,
    period_us INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX rate_tat ON rate(tat_us);

PRAGMA user_version = 4;
