#!/usr/bin/env python3
# test_check_queue.py - a good history of two queues, and one with each breach planted.
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_queue
import witness_db

SCHEMA = """
CREATE TABLE push (seq INTEGER PRIMARY KEY, queue INTEGER, who INTEGER, how INTEGER, id INTEGER,
    delay_ms INTEGER, tries INTEGER, sent_us INTEGER, told_us INTEGER);
CREATE TABLE effect (number INTEGER PRIMARY KEY, queue INTEGER, id INTEGER, fence INTEGER,
    attempt INTEGER, seq INTEGER, who INTEGER, lost INTEGER, verb INTEGER, delay_ms INTEGER,
    at_us INTEGER);
CREATE TABLE told (queue INTEGER, id INTEGER, fence INTEGER, how INTEGER, verb INTEGER,
    sent_us INTEGER);
CREATE TABLE redrive (queue INTEGER, id INTEGER, seq INTEGER, how INTEGER);
CREATE TABLE letter (queue INTEGER, id INTEGER, seq INTEGER, attempts INTEGER, lost INTEGER,
    reason INTEGER);
CREATE TABLE address (seq INTEGER PRIMARY KEY, worker INTEGER);
CREATE TABLE worker (who INTEGER PRIMARY KEY, worker INTEGER);
CREATE TABLE loss (from_us INTEGER, to_us INTEGER);
CREATE TABLE final (queue INTEGER, pushed INTEGER, acked INTEGER, ready INTEGER, later INTEGER,
    out INTEGER, dead INTEGER, faults INTEGER, nacked INTEGER, died INTEGER);
"""

# Items 1 to 3 and 21 to 25 are the pool's. The producer of 3 died before it was told, the
# consumer of 2 before it was told; 1 was lost by its first consumer. 21 was nacked with a
# delay of 100 ms, was lost, and then accepted. 22 was given up and redriven, as 222. 23 was
# given up and is dead. 24 may be tried three times: it was nacked, lost by a process that left no
# effect, and nacked again. 25 was pushed with a delay of 50 ms, and its nack had no answer: it did not
# count.
# Items 1 to 600 are for one worker each; the first was taken by 50, which is another, and then
# by its own, 51.
# Items 4, 5 and 8 are the line's: 5 was nacked once. Nobody knows of 6 whether it was
# made: it was not.
GOOD = """
INSERT INTO push VALUES (1, 0, 1, 1, 11, 0, 0, 900, 910), (2, 0, 1, 1, 12, 0, 0, 900, 910),
    (3, 0, 1, 0, 0, 0, 0, 0, 0), (4, 1, 2, 1, 14, 0, 0, 900, 910), (5, 1, 2, 1, 15, 0, 0, 920, 930),
    (6, 1, 2, 3, 0, 0, 0, 900, 910), (7, 1, 2, 2, 0, 0, 0, 900, 910), (8, 1, 2, 1, 18, 0, 0, 960, 970),
    (21, 0, 3, 1, 121, 0, 0, 900, 910), (22, 0, 3, 1, 122, 0, 0, 900, 910), (23, 0, 3, 1, 123, 0, 0, 900, 910),
    (24, 0, 3, 1, 124, 0, 3, 900, 910), (25, 0, 3, 1, 125, 50, 0, 1000000, 1000010);
INSERT INTO effect VALUES (1, 0, 11, 21, 1, 1, 50, 0, 0, 0, 1000), (2, 0, 11, 22, 2, 1, 51, 1, 0, 0, 2000),
    (3, 0, 12, 23, 1, 2, 51, 0, 0, 0, 1000), (4, 0, 13, 24, 1, 3, 51, 0, 0, 0, 1000),
    (5, 1, 14, 31, 1, 4, 60, 0, 0, 0, 1000), (6, 1, 15, 32, 1, 5, 60, 0, 1, 20, 1000),
    (7, 1, 15, 33, 2, 5, 61, 0, 0, 0, 30000), (8, 1, 18, 34, 1, 8, 61, 0, 0, 0, 31000),
    (11, 0, 121, 41, 1, 21, 50, 0, 1, 100, 1000), (12, 0, 121, 42, 2, 21, 51, 0, 0, 0, 110000),
    (13, 0, 121, 43, 3, 21, 52, 1, 0, 0, 120000),
    (14, 0, 122, 44, 1, 22, 50, 0, 2, 0, 1000), (15, 0, 222, 45, 1, 22, 50, 0, 0, 0, 2000),
    (16, 0, 123, 46, 1, 23, 50, 0, 2, 0, 1000),
    (17, 0, 124, 47, 1, 24, 50, 0, 1, 0, 1000), (18, 0, 124, 49, 3, 24, 51, 1, 1, 0, 1000),
    (19, 0, 125, 51, 1, 25, 50, 0, 1, 0, 1050000), (20, 0, 125, 52, 2, 25, 50, 1, 0, 0, 1060000);
INSERT INTO told VALUES (0, 11, 21, 3, 0, 1100), (0, 11, 22, 1, 0, 2100), (0, 13, 24, 1, 0, 1100),
    (1, 14, 31, 1, 0, 1100), (1, 15, 32, 1, 1, 1100), (1, 15, 33, 1, 0, 31000), (1, 18, 34, 1, 0, 32000),
    (0, 121, 41, 1, 1, 5000), (0, 121, 42, 2, 0, 111000), (0, 121, 43, 1, 0, 121000),
    (0, 122, 44, 1, 2, 1100), (0, 222, 45, 1, 0, 2100), (0, 123, 46, 1, 2, 1100),
    (0, 124, 47, 1, 1, 1100), (0, 124, 49, 1, 1, 1100), (0, 125, 51, 3, 1, 1051000),
    (0, 125, 52, 1, 0, 1061000);
INSERT INTO redrive VALUES (0, 122, 22, 1);
WITH RECURSIVE n(seq) AS (VALUES (1) UNION ALL SELECT seq + 1 FROM n WHERE seq < 600)
    INSERT INTO address SELECT seq, 1 + seq % 6 FROM n;
INSERT INTO worker VALUES (50, 1), (51, 2), (52, 3), (60, 0), (61, 0);
INSERT INTO letter VALUES (0, 123, 23, 1, 0, 46), (0, 124, 24, 3, 1, 49);
INSERT INTO final VALUES (0, 8, 6, 0, 0, 0, 2, 9, 3, 3), (1, 3, 3, 0, 0, 0, 0, 9, 1, 0);
"""

# A letter of an item with few tries, which was lost with its last consumer.
DIED_WITH_CONSUMER = """UPDATE letter SET reason = 0, lost = 2 WHERE id = 124;
    UPDATE told SET how = 2 WHERE fence = 49; UPDATE final SET nacked = 2 WHERE queue = 0;"""

# The same, and it had been done: its consumer died before the ack.
DIED_BEFORE_ACK = """UPDATE letter SET reason = 0, lost = 2 WHERE id = 124;
    UPDATE effect SET verb = 0 WHERE fence = 49; DELETE FROM told WHERE fence = 49;
    UPDATE final SET nacked = 2 WHERE queue = 0;"""

# What is changed, and the beginning of the breach that must be found.
PLANTED = [
    ("DELETE FROM effect WHERE id = 12", 'lost: a push'),
    ("DELETE FROM letter WHERE id = 123", 'lost: a push'),
    ("DELETE FROM effect WHERE fence = 33", 'lost: an item was nacked'),
    ("DELETE FROM letter WHERE id = 124", 'lost: an item was nacked'),
    ("DELETE FROM letter WHERE id = 123", 'lost: a dead letter'),
    ("UPDATE redrive SET how = 2", 'lost: a dead letter'),
    ("UPDATE redrive SET how = 4", 'redrive: a dead letter was not there'),
    ("INSERT INTO letter VALUES (0, 122, 22, 1, 0, 44)", 'redrive: a letter'),
    ("DELETE FROM effect WHERE id = 222", 'redrive: it made no item'),
    ("INSERT INTO told VALUES (0, 11, 21, 1, 0, 2100)", 'accepted twice'),
    ("UPDATE effect SET verb = 0 WHERE fence = 44; UPDATE told SET verb = 0 WHERE fence = 44", 'accepted twice'),
    ("INSERT INTO letter VALUES (0, 12, 2, 1, 0, 23)", 'accepted, and a dead'),
    (DIED_BEFORE_ACK + "INSERT INTO told VALUES (0, 124, 49, 1, 0, 1100)", 'accepted, and a dead'),
    ("INSERT INTO effect VALUES (80, 0, 13, 29, 2, 3, 50, 0, 0, 0, 3000)", 'delivered after'),
    ("INSERT INTO effect VALUES (80, 0, 123, 59, 2, 23, 50, 0, 0, 0, 3000)", 'delivered after'),
    ("INSERT INTO effect VALUES (80, 0, 12, 23, 1, 2, 50, 0, 0, 0, 3000)", 'one delivery'),
    ("DELETE FROM effect WHERE fence = 24", 'settled without'),
    ("DELETE FROM effect WHERE fence = 41", 'settled without'),
    ("INSERT INTO effect VALUES (80, 0, 19, 29, 1, 2, 50, 0, 0, 0, 3000)", 'a push made two'),
    ("INSERT INTO effect VALUES (80, 0, 223, 99, 1, 22, 50, 0, 0, 0, 3000)", 'a push made two'),
    ("UPDATE push SET id = 16 WHERE seq = 2", 'a push was told another'),
    ("INSERT INTO effect VALUES (80, 0, 19, 29, 1, 77, 50, 0, 0, 0, 3000)", 'an item that nobody'),
    ("UPDATE effect SET queue = 1 WHERE id = 12", 'an item that nobody'),
    ("INSERT INTO effect VALUES (80, 1, 19, 39, 1, 7, 50, 0, 0, 0, 3000)", 'a push that was refused'),
    ("INSERT INTO told VALUES (0, 12, 23, 2, 0, 1100)", 'the consumer whose'),
    ("UPDATE told SET how = 2 WHERE fence = 46", 'the consumer whose'),
    ("UPDATE letter SET reason = 0 WHERE id = 123", 'dead without a reason'),
    (DIED_WITH_CONSUMER + "UPDATE letter SET attempts = 2 WHERE id = 124", 'dead without a reason'),
    ("UPDATE effect SET verb = 1 WHERE fence = 46", 'dead without a reason'),
    ("UPDATE told SET how = 2 WHERE fence = 49", 'dead for a reason'),
    ("UPDATE letter SET attempts = 2 WHERE id = 123", 'dead: the attempts'),
    ("UPDATE effect SET id = 12 WHERE fence = 24", 'an item that two'),
    ("UPDATE effect SET attempt = 4 WHERE fence = 49", 'attempts: more'),
    ("UPDATE effect SET attempt = 1 WHERE fence = 33", 'attempts: they do not'),
    ("UPDATE effect SET attempt = 3 WHERE fence = 22", 'attempts: they do not'),
    ("UPDATE effect SET lost = 2 WHERE fence = 43", 'attempts: they do not'),
    ("UPDATE told SET how = 2 WHERE fence = 41", 'attempts: they do not'),
    ("UPDATE effect SET attempt = 1 WHERE fence = 43", 'attempts: a later'),
    ("UPDATE effect SET number = 90 WHERE fence = 21", 'a fence does not'),
    ("UPDATE effect SET at_us = 90000 WHERE fence = 42", 'early: a nacked'),
    ("UPDATE effect SET at_us = 90000 WHERE fence = 43", 'early: a nacked'),
    ("UPDATE effect SET at_us = 20000 WHERE fence = 33", 'early: a nacked'),
    ("UPDATE effect SET at_us = 1040000 WHERE fence = 51", 'early: an item'),
    ("UPDATE push SET id = 10 WHERE seq = 2", 'pushes of one process'),
    ("UPDATE effect SET number = 80 WHERE fence = 31", 'the serial queue'),
    # The retry comes behind a younger one.
    ("UPDATE effect SET number = 80 WHERE fence = 33", 'the serial queue'),
    ("UPDATE final SET out = 1", 'left: items'),
    ("UPDATE final SET dead = 1", 'left: the store'),
    ("UPDATE final SET acked = 4 WHERE queue = 0", 'the counts of the store'),
    ("UPDATE final SET pushed = 2, acked = 2 WHERE queue = 0", 'the counts of the store'),
    ("UPDATE final SET nacked = 2 WHERE queue = 0", 'the counts of nacks'),
    ("UPDATE final SET nacked = 5 WHERE queue = 0", 'the counts of nacks'),
    ("UPDATE final SET died = 2 WHERE queue = 0", 'the counts of nacks'),
    ("UPDATE address SET worker = 1; UPDATE worker SET worker = 1", 'stealing: of many addressed items none'),
    ("UPDATE address SET worker = 9", 'stealing: of many addressed items their own'),
    ("DELETE FROM told", 'nothing was done'),
]


# The last writes before 10 ms were lost, and with them what is changed: none is a breach, and
# that many cases are counted.
LOSS = "INSERT INTO loss VALUES (9000, 10000);"
EXCUSED = [
    ("DELETE FROM effect WHERE id = 12", 2),                # a push, and the counts
    ("DELETE FROM letter WHERE id = 123; UPDATE final SET dead = 1 WHERE queue = 0", 3),
    # The ack of 11 is undone, and another one accepted.
    ("INSERT INTO effect VALUES (80, 0, 11, 29, 2, 1, 50, 1, 0, 0, 12000); INSERT INTO told VALUES (0, 11, 29, 1, 0, 13000)", 2),
    # The nack of 21 is undone: it comes back as it was, and too early.
    ("UPDATE effect SET attempt = 1, at_us = 12000 WHERE fence = 42", 2),
    # The line goes back to 14 when 18 has been done.
    ("UPDATE effect SET at_us = 2000 WHERE fence = 34; "
     "INSERT INTO effect VALUES (80, 1, 14, 39, 2, 4, 60, 1, 0, 0, 12000)", 2),
]

# Nor does a loss excuse what was before it or after it, or what it cannot have made.
NOT_EXCUSED = [
    ("INSERT INTO effect VALUES (80, 0, 13, 29, 2, 3, 50, 1, 0, 0, 3000)", 'delivered after'),
    ("UPDATE push SET sent_us = 20000 WHERE seq = 2; DELETE FROM effect WHERE id = 12", 'lost: a push'),
    ("UPDATE effect SET at_us = 90000 WHERE fence = 43; UPDATE told SET sent_us = 12000 WHERE fence = 41",
     'early: a nacked'),
    ("UPDATE effect SET number = 90 WHERE fence = 21", 'a fence does not'),
    ("INSERT INTO effect VALUES (80, 0, 12, 23, 1, 2, 50, 0, 0, 0, 12000)", 'one delivery'),
    ("UPDATE push SET id = 10 WHERE seq = 2", 'pushes of one process'),
    ("UPDATE effect SET id = 12 WHERE fence = 24", 'an item that two'),
    ("UPDATE final SET out = 1", 'left: items'),
]


# The push of 4 had no answer yet when that of 8 was sent.
OVERLAPPED = 'UPDATE push SET told_us = 965 WHERE seq = 4; UPDATE effect SET number = 80 WHERE fence = 31'


def judge(change=''):
    db = sqlite3.connect(':memory:')
    db.executescript(SCHEMA + GOOD + change)
    return check_queue.judge(check_queue.prepare(db))


def find(change=''):
    return [what for what, _ in judge(change)[0]]


def find_excused():
    """Whether those that a loss excuses are counted, and no others."""
    bad = 0
    for change, cases in EXCUSED:
        found, lost = judge(LOSS + change)
        if found or sum(len(rows) for _, rows in lost) != cases:
            print(f'after a loss and {change}: {found}, and {lost}, not {cases} cases')
            bad = 1
        if not find(change):
            print(f'without the loss not found: {change}')
            bad = 1
    for change, breach in NOT_EXCUSED:
        if not any(what.startswith(breach) for what in find(LOSS + change)):
            print(f'excused by a loss: {breach!r} after {change}')
            bad = 1
    return bad


def main():
    bad = find_excused()
    for change in ('', DIED_WITH_CONSUMER, DIED_BEFORE_ACK, OVERLAPPED):
        if find(change):
            print(f'a good history: {find(change)} after {change!r}')
            bad = 1
    for change, breach in PLANTED:
        if not any(what.startswith(breach) for what in find(change)):
            print(f'not found: {breach!r} after {change}')
            bad = 1
    seen = {breach for _, breach in PLANTED}
    for what, _ in check_queue.CHECKS + check_queue.LOSABLE:
        if not any(what.startswith(breach) for breach in seen):
            print(f'no history for: {what}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
