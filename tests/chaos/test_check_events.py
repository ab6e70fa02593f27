#!/usr/bin/env python3
# test_check_events.py - a good history of a topic with two groups, and one with each breach
# planted.
import os
import sqlite3
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_events
import witness_db

SCHEMA = """
CREATE TABLE publish (seq INTEGER PRIMARY KEY, who INTEGER, how INTEGER, position INTEGER);
CREATE TABLE trim (number INTEGER PRIMARY KEY, through INTEGER);
CREATE TABLE got (number INTEGER PRIMARY KEY, grp INTEGER, who INTEGER, turn INTEGER, kind INTEGER,
    since INTEGER, position INTEGER, seq INTEGER, trimmed INTEGER);
CREATE TABLE accepted (number INTEGER PRIMARY KEY, grp INTEGER, who INTEGER, turn INTEGER,
    position INTEGER);
CREATE TABLE final (last INTEGER, faults INTEGER);
"""

# Events 1 to 6 are at 11 to 16. The publisher of 3 died before it was told; nobody knows of 7
# whether it was made: it was not; 8 was refused. Group 0 is read by consumer 50, which dies
# after 13, and by 51, which gets 13 again, is displaced, and comes back. Group 1 comes late: 11
# and 12 were trimmed.
GOOD = """
INSERT INTO publish VALUES (1, 1, 1, 11), (2, 2, 1, 12), (3, 1, 0, 0), (4, 2, 1, 14), (5, 2, 1, 15),
    (6, 2, 1, 16), (7, 2, 3, 0), (8, 2, 2, 0);
INSERT INTO trim VALUES (1, 12);
INSERT INTO got VALUES (1, 0, 50, 0, 0, 0, 11, 1, 0), (2, 0, 50, 0, 0, 0, 12, 2, 0), (3, 0, 50, 0, 0, 0, 13, 3, 0),
    (4, 0, 51, 0, 0, 0, 13, 3, 0), (5, 0, 51, 0, 0, 0, 14, 4, 0), (6, 0, 51, 0, 0, 0, 15, 5, 0),
    (7, 0, 51, 1, 0, 0, 15, 5, 0), (8, 0, 51, 1, 0, 0, 16, 6, 0),
    (9, 1, 60, 0, 1, 0, 12, 0, 12), (10, 1, 60, 0, 0, 0, 13, 3, 12), (11, 1, 60, 0, 0, 0, 14, 4, 12),
    (12, 1, 60, 0, 0, 0, 15, 5, 12), (13, 1, 60, 0, 0, 0, 16, 6, 12);
INSERT INTO accepted VALUES (1, 0, 50, 0, 11), (2, 0, 50, 0, 12), (3, 0, 51, 0, 13), (4, 0, 51, 0, 14),
    (5, 0, 51, 1, 15), (6, 0, 51, 1, 16), (7, 1, 60, 0, 13), (8, 1, 60, 0, 14);
INSERT INTO final VALUES (16, 9);
"""

# What is changed, and the beginning of the breach that must be found.
PLANTED = [
    ("DELETE FROM got WHERE grp = 0 AND position = 15", 'lost:'),
    ("DELETE FROM got WHERE kind = 1", 'lost:'),
    ("UPDATE got SET since = 11, position = 11 WHERE kind = 1", 'lost:'),
    ("DELETE FROM got WHERE number = 11", 'passed over'),
    ("DELETE FROM got WHERE number = 2; INSERT INTO got VALUES (20, 0, 70, 0, 0, 0, 12, 2, 12)", 'passed over'),
    ("UPDATE got SET number = 30 WHERE number = 10", 'not in order'),
    ("INSERT INTO got VALUES (20, 1, 60, 0, 0, 0, 16, 6, 12)", 'not in order'),
    ("INSERT INTO accepted VALUES (20, 0, 51, 1, 14)", 'accepted twice'),
    ("INSERT INTO accepted VALUES (20, 1, 61, 0, 15)", 'accepted without'),
    ("UPDATE got SET trimmed = 0 WHERE kind = 1", 'a gap where'),
    ("UPDATE got SET trimmed = 11 WHERE kind = 1", 'a gap where'),
    # What was trimmed later is no reason for a gap before.
    ("INSERT INTO trim VALUES (2, 14); DELETE FROM got WHERE number IN (10, 11); "
     "UPDATE got SET position = 14 WHERE number = 9", 'a gap where'),
    ("INSERT INTO got VALUES (20, 1, 60, 0, 1, 14, 17, 0, 12)", 'the gap of'),
    ("INSERT INTO got VALUES (20, 1, 61, 0, 2, 14, 16, 0, 12)", 'a fork'),
    ("UPDATE got SET position = 17 WHERE number = 13", 'an append made two'),
    ("UPDATE got SET seq = 3 WHERE number = 11", 'one position, two'),
    ("UPDATE publish SET position = 17 WHERE seq = 6", 'an append was told another'),
    ("UPDATE got SET seq = 99 WHERE seq = 3", 'an event that nobody'),
    ("UPDATE publish SET how = 2 WHERE seq = 3", 'an append that was refused'),
    ("UPDATE publish SET position = 10 WHERE seq = 6", 'appends of one process'),
    ("UPDATE final SET last = 17", 'left:'),
    ("DELETE FROM accepted WHERE grp = 1", 'nothing was accepted'),
]


def find(change=''):
    db = sqlite3.connect(':memory:')
    db.executescript(SCHEMA + GOOD + change)
    return [what for what, _ in witness_db.breaches(db, check_events.CHECKS)]


def main():
    bad = 0
    if find():
        print(f'the good history: {find()}')
        bad = 1
    for change, breach in PLANTED:
        if not any(what.startswith(breach) for what in find(change)):
            print(f'not found: {breach!r} after {change}: {find(change)}')
            bad = 1
    seen = {breach for _, breach in PLANTED}
    for what, _ in check_events.CHECKS:
        if not any(what.startswith(breach) for breach in seen):
            print(f'no history for: {what}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
