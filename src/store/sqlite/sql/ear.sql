-- ear.sql - from version 2 of the tables to version 3: the doorbells that listen to
-- a topic, until a time on the boot clock. Programs of version 2 tell no topics.

CREATE TABLE ear(
    topic TEXT NOT NULL,
    bell TEXT NOT NULL,
    until_us INTEGER NOT NULL,
    PRIMARY KEY(topic, bell)
) WITHOUT ROWID;

PRAGMA user_version = 3;
