-- upgrade_ear.sql - from version 2 of the tables to version 3, in one transaction.
-- Programs of version 2 that have it open go on with it, and tell no topics.

CREATE TABLE ear(
    topic TEXT NOT NULL,
    bell TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY(topic, bell)
) WITHOUT ROWID;

PRAGMA user_version = 3;
