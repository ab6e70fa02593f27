#!/usr/bin/env python3
# check_queue.py - looks at what the witness of a queue ground has (witness.h).
#
#   check_queue.py FOLDER     one line for each breach; 1 when there are some
#
# It knows what was pushed, what was done, and what each process was told; of the store
# it believes no more than the counts at the end, which have to agree with that.
import sys

from witness_db import breaches, number, open_db, print_breaches, print_sum

# `how` is what a process was told: 0 nothing, 1 yes, 2 no, 3 that nobody knows.
# A breach, and a query whose rows are its cases.
CHECKS = [
    ('lost: a push was answered, and nobody did its item',
     """SELECT seq, id FROM push WHERE how = 1 AND NOT EXISTS
        (SELECT 1 FROM effect e WHERE e.seq = push.seq)"""),
    ('accepted twice: the ack of an item was answered OK more than once',
     "SELECT queue, id, count(*) FROM told WHERE how = 1 GROUP BY queue, id HAVING count(*) > 1"),
    ('delivered after it was accepted',
     """SELECT e.queue, e.id, e.fence FROM told t JOIN effect e
        ON e.queue = t.queue AND e.id = t.id WHERE t.how = 1 AND e.fence > t.fence"""),
    ('one delivery, done twice',
     "SELECT queue, id, fence FROM effect GROUP BY queue, id, fence HAVING count(*) > 1"),
    ('accepted without an effect',
     """SELECT queue, id, fence FROM told t WHERE how = 1 AND NOT EXISTS
        (SELECT 1 FROM effect e WHERE e.queue = t.queue AND e.id = t.id AND e.fence = t.fence)"""),
    ('a push made two items',
     "SELECT seq, min(id), max(id) FROM effect GROUP BY seq HAVING min(id) < max(id)"),
    ('a push was told another id',
     """SELECT push.seq, push.id, e.id FROM push JOIN effect e ON e.seq = push.seq
        WHERE push.how = 1 AND push.id <> e.id"""),
    ('an item that nobody pushed',
     """SELECT e.queue, e.id, e.seq FROM effect e LEFT JOIN push ON push.seq = e.seq
        WHERE push.seq IS NULL OR push.queue <> e.queue"""),
    ('a push that was refused made an item',
     "SELECT push.seq, e.id FROM push JOIN effect e ON e.seq = push.seq WHERE push.how = 2"),
    # All has been accepted, and nothing is delivered after that: so the last token was it.
    ('the consumer whose ack was accepted was told that it was not',
     """SELECT t.queue, t.id, t.fence FROM told t JOIN
        (SELECT queue, id, max(fence) AS fence FROM effect GROUP BY queue, id) e
        ON e.queue = t.queue AND e.id = t.id AND e.fence = t.fence WHERE t.how = 2"""),
    ('pushes of one process are not in order',
     """SELECT seq, id, before FROM (SELECT seq, id, lag(id) OVER
        (PARTITION BY queue, who ORDER BY seq) AS before FROM push WHERE how = 1)
        WHERE id <= before"""),
    ('the serial queue was not done in order',
     """SELECT id, before FROM (SELECT id, lag(id) OVER (ORDER BY number) AS before FROM
        (SELECT id, number, row_number() OVER (PARTITION BY id ORDER BY fence DESC) AS r
         FROM effect WHERE queue = 1) WHERE r = 1) WHERE id <= before"""),
    ('left: items are in the queue at the end',
     "SELECT queue, ready, later, out, dead FROM final WHERE ready + later + out + dead > 0"),
    ('the counts of the store are not those of the witness',
     """SELECT queue, pushed, acked, done FROM (SELECT queue, pushed, acked,
        (SELECT count(DISTINCT id) FROM effect e WHERE e.queue = final.queue) AS done
        FROM final) WHERE pushed <> acked OR acked <> done"""),
    ('nothing was done', "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM told WHERE how = 1)"),
]

INDEXES = {'effect_item': 'effect (queue, id, fence)', 'effect_seq': 'effect (seq)'}


def main(folder):
    db = open_db(folder, INDEXES)
    found = breaches(db, CHECKS)
    print_breaches(found)
    pushes = number(db, 'SELECT count(*) FROM push')
    effects = number(db, 'SELECT count(*) FROM effect')
    again = effects - number(db, 'SELECT count(*) FROM (SELECT DISTINCT queue, id FROM effect)')
    print(f'{pushes} pushes, of which {number(db, "SELECT count(*) FROM push WHERE how <> 1")} without '
          f'an answer; {again} deliveries were not the first')
    print_sum(db, found, pushes + effects, effects)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
