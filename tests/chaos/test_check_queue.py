#!/usr/bin/env python3
# test_check_queue.py - a good history of two queues, and one with each breach planted.
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_queue
import witness_db

SCHEMA = """
CREATE TABLE push (seq INTEGER PRIMARY KEY, queue INTEGER, who INTEGER, how INTEGER, id INTEGER);
CREATE TABLE effect (number INTEGER PRIMARY KEY, queue INTEGER, id INTEGER, fence INTEGER,
    attempt INTEGER, seq INTEGER, who INTEGER);
CREATE TABLE told (queue INTEGER, id INTEGER, fence INTEGER, how INTEGER);
CREATE TABLE final (queue INTEGER, pushed INTEGER, acked INTEGER, ready INTEGER, later INTEGER,
    out INTEGER, dead INTEGER, faults INTEGER);
"""

# Items 1 to 3 are the pool's. The producer of 3 died before it was told, the consumer of 2 before
# it was told; 1 was lost by its first consumer. Items 4 and 5 are the line's: 5 was
# delivered twice. Nobody knows of 6 whether it was made: it was not.
GOOD = """
INSERT INTO push VALUES (1, 0, 1, 1, 11), (2, 0, 1, 1, 12), (3, 0, 1, 0, 0),
    (4, 1, 2, 1, 14), (5, 1, 2, 1, 15), (6, 1, 2, 3, 0), (7, 1, 2, 2, 0);
INSERT INTO effect VALUES (1, 0, 11, 21, 1, 1, 50), (2, 0, 11, 22, 2, 1, 51),
    (3, 0, 12, 23, 1, 2, 51), (4, 0, 13, 24, 1, 3, 51),
    (5, 1, 14, 31, 1, 4, 60), (6, 1, 15, 32, 1, 5, 60), (7, 1, 15, 33, 2, 5, 61);
INSERT INTO told VALUES (0, 11, 21, 3), (0, 11, 22, 1), (0, 13, 24, 1), (1, 14, 31, 1), (1, 15, 32, 2),
    (1, 15, 33, 1);
INSERT INTO final VALUES (0, 3, 3, 0, 0, 0, 0, 9), (1, 2, 2, 0, 0, 0, 0, 9);
"""

# What is changed, and the beginning of the breach that must be found.
PLANTED = [
    ("DELETE FROM effect WHERE id = 12", 'lost:'),
    ("INSERT INTO told VALUES (0, 11, 21, 1)", 'accepted twice'),
    ("INSERT INTO effect VALUES (8, 0, 13, 29, 2, 3, 50)", 'delivered after'),
    ("INSERT INTO effect VALUES (8, 0, 12, 23, 1, 2, 50)", 'one delivery'),
    ("DELETE FROM effect WHERE fence = 24", 'accepted without'),
    ("INSERT INTO effect VALUES (8, 0, 19, 29, 1, 2, 50)", 'a push made two'),
    ("UPDATE push SET id = 16 WHERE seq = 2", 'a push was told another'),
    ("INSERT INTO effect VALUES (8, 0, 19, 29, 1, 77, 50)", 'an item that nobody'),
    ("UPDATE effect SET queue = 1 WHERE id = 12", 'an item that nobody'),
    ("INSERT INTO effect VALUES (8, 1, 19, 39, 1, 7, 50)", 'a push that was refused'),
    ("INSERT INTO told VALUES (0, 12, 23, 2)", 'the consumer whose'),
    ("UPDATE push SET id = 10 WHERE seq = 2", 'pushes of one process'),
    ("UPDATE effect SET number = 8 WHERE fence = 31", 'the serial queue'),
    ("UPDATE final SET out = 1", 'left:'),
    ("UPDATE final SET dead = 1", 'left:'),
    ("UPDATE final SET acked = 4 WHERE queue = 0", 'the counts'),
    ("UPDATE final SET pushed = 2, acked = 2 WHERE queue = 0", 'the counts'),
    ("DELETE FROM told", 'nothing was done'),
]


def find(change=''):
    db = sqlite3.connect(':memory:')
    db.executescript(SCHEMA + GOOD + change)
    return [what for what, _ in witness_db.breaches(db, check_queue.CHECKS)]


def main():
    bad = 0
    if find():
        print(f'the good history: {find()}')
        bad = 1
    for change, breach in PLANTED:
        if not any(what.startswith(breach) for what in find(change)):
            print(f'not found: {breach!r} after {change}')
            bad = 1
    seen = {breach for _, breach in PLANTED}
    for what, _ in check_queue.CHECKS:
        if not any(what.startswith(breach) for breach in seen):
            print(f'no history for: {what}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
