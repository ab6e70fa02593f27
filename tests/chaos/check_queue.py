#!/usr/bin/env python3
# check_queue.py - looks at what the witness of a queue ground has (witness.h).
#
#   check_queue.py FOLDER     one line for each breach; 1 when there are some
#
# It knows what was pushed, what was done, and what each process was told; of the store
# it believes no more than the counts and the dead letters at the end, which have to agree
# with that.
import sys

from witness_db import breaches, number, open_db, print_breaches, print_sum

# `how` is what a process was told: 0 nothing, 1 yes, 2 no, 3 that nobody knows; of a redrive
# 4: there is no such letter. `verb` is how a delivery was to end: 0 ack, 1 nack, 2 dead.
# `ended` has the last delivery of each item, `accepted` those with an ack, but not where the
# item is dead because its attempts were used up and its consumer died before the ack.
# `item` has all items that anybody saw, `chain` those of each push: more than one only by
# redrives. `stolen` has the deliveries of addressed items to other workers.
PREPARE = """
CREATE TEMP TABLE ended AS SELECT queue, id, seq, fence, attempt, verb, at_us FROM
    (SELECT *, row_number() OVER (PARTITION BY queue, id ORDER BY fence DESC) AS r FROM effect)
    WHERE r = 1;
CREATE INDEX temp.ended_item ON ended (queue, id);
CREATE INDEX temp.ended_seq ON ended (seq);
CREATE TEMP TABLE accepted AS SELECT * FROM ended e WHERE verb = 0 AND NOT EXISTS
    (SELECT 1 FROM letter l WHERE l.queue = e.queue AND l.id = e.id AND l.reason <> e.fence AND NOT EXISTS
        (SELECT 1 FROM told t WHERE t.queue = e.queue AND t.id = e.id AND t.fence = e.fence AND t.how = 1));
CREATE TEMP TABLE item AS SELECT queue, id, seq FROM ended UNION SELECT queue, id, seq FROM letter;
CREATE TEMP TABLE chain AS SELECT item.seq, min(item.id) AS first, max(item.id) AS last, count(*) AS items,
    (SELECT count(*) FROM redrive r WHERE r.seq = item.seq AND r.how = 1) AS certain,
    (SELECT count(*) FROM redrive r WHERE r.seq = item.seq AND r.how IN (0, 1, 3)) AS possible,
    (SELECT sent_us FROM push WHERE push.seq = item.seq) AS from_us
    FROM item GROUP BY item.seq;
CREATE INDEX temp.chain_seq ON chain (seq);
CREATE TEMP TABLE stolen AS SELECT e.queue, e.id, e.fence FROM effect e JOIN address a ON a.seq = e.seq
    JOIN worker w ON w.who = e.who WHERE w.worker <> a.worker;
"""

# A timer of a store may count milliseconds.
ROUND_US = 1000

END = 1 << 62

# A breach, and a query whose rows are its cases. What the store was told may be gone after it
# lost its last writes: such a case is none if a loss lies in the span with which its row ends.
LOSABLE = [
    ('lost: a push was answered, and its item was neither accepted nor is it dead',
     f"""SELECT seq, id, sent_us, {END} FROM push WHERE how = 1
        AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.seq = push.seq AND e.verb = 0)
        AND NOT EXISTS (SELECT 1 FROM letter l WHERE l.seq = push.seq)"""),
    ('lost: an item was nacked, and did not come back',
     f"""SELECT queue, id, fence, at_us, {END} FROM ended e WHERE verb = 1
        AND NOT EXISTS (SELECT 1 FROM letter l WHERE l.queue = e.queue AND l.id = e.id)"""),
    ('lost: a dead letter is gone, and nobody has redriven it',
     f"""SELECT queue, id, fence, at_us, {END} FROM ended e WHERE verb = 2
        AND NOT EXISTS (SELECT 1 FROM letter l WHERE l.queue = e.queue AND l.id = e.id)
        AND NOT EXISTS (SELECT 1 FROM redrive r WHERE r.queue = e.queue AND r.id = e.id AND r.how IN (0, 1, 3))"""),
    ('redrive: a dead letter was not there', f"""SELECT r.queue, r.id, r.seq, e.at_us, {END} FROM redrive r JOIN ended e
        ON e.queue = r.queue AND e.id = r.id WHERE r.how = 4"""),
    ('redrive: a letter was redriven, and is dead as before',
     f"""SELECT r.queue, r.id, r.seq, e.at_us, {END} FROM redrive r
        JOIN letter l ON l.queue = r.queue AND l.id = r.id
        JOIN ended e ON e.queue = r.queue AND e.id = r.id WHERE r.how = 1"""),
    ('redrive: it made no item', f"""SELECT seq, first, items, certain, from_us, {END} FROM chain WHERE items < 1 + certain"""),
    ('accepted twice: acks of one push were answered OK more than once',
     """SELECT e.seq, count(*), min(t.sent_us), max(t.sent_us) FROM told t JOIN effect e
        ON e.queue = t.queue AND e.id = t.id AND e.fence = t.fence
        WHERE t.how = 1 AND t.verb = 0 GROUP BY e.seq HAVING count(*) > 1"""),
    ('accepted, and a dead letter too',
     f"""SELECT l.seq, e.id, l.id, chain.from_us, {END} FROM letter l JOIN accepted e ON e.seq = l.seq
        JOIN chain ON chain.seq = l.seq"""),
    ('delivered after it was accepted or dead',
     """SELECT e.queue, e.id, e.fence, t.sent_us, e.at_us FROM told t JOIN effect e ON e.queue = t.queue
        AND e.id = t.id WHERE t.how = 1 AND t.verb IN (0, 2) AND e.fence > t.fence"""),
    ('a push made two items', f"""SELECT seq, first, last, from_us, {END} FROM chain WHERE items > 1 + possible"""),
    ('a push was told another id',
     f"""SELECT push.seq, push.id, first, from_us, {END} FROM push JOIN chain ON chain.seq = push.seq
        WHERE push.how = 1 AND push.id <> first"""),
    # Nothing is delivered after the end of an item: so its last token was accepted, but for
    # an item that died with its consumer.
    ('the consumer whose word was accepted was told that it was not',
     f"""SELECT t.queue, t.id, t.fence, e.at_us, {END} FROM told t JOIN ended e ON e.queue = t.queue AND e.id = t.id
        AND e.fence = t.fence WHERE t.how = 2 AND NOT EXISTS (SELECT 1 FROM letter l
        WHERE l.queue = t.queue AND l.id = t.id AND l.reason <> t.fence)"""),
    # Those that were lost are counted apart.
    ('attempts: they do not count the nacks',
     """SELECT queue, id, fence, attempt, lost, certain, possible, from_us, at_us FROM (SELECT e.*,
        (SELECT min(at_us) FROM effect n WHERE n.queue = e.queue AND n.id = e.id) AS from_us,
        (SELECT count(*) FROM told t WHERE t.queue = e.queue AND t.id = e.id AND t.fence < e.fence
            AND t.how = 1 AND t.verb = 1) AS certain,
        (SELECT count(*) FROM effect n WHERE n.queue = e.queue AND n.id = e.id AND n.fence < e.fence
            AND n.verb = 1 AND NOT EXISTS (SELECT 1 FROM told t WHERE t.queue = n.queue
            AND t.id = n.id AND t.fence = n.fence AND t.how = 2)) AS possible FROM effect e)
        WHERE attempt - lost - 1 < certain OR attempt - lost - 1 > possible"""),
    ('attempts: a later delivery has a lower number',
     """SELECT queue, id, fence, attempt, before, from_us, at_us FROM (SELECT *, lag(attempt) OVER item AS before,
        lag(at_us) OVER item AS from_us FROM effect WINDOW item AS (PARTITION BY queue, id ORDER BY fence))
        WHERE attempt < before"""),
    ('early: a nacked item came back before its delay',
     f"""SELECT e.queue, e.id, n.fence, t.sent_us + e.delay_ms * 1000 - n.at_us AS early_us, t.sent_us, n.at_us
        FROM told t JOIN effect e ON e.queue = t.queue AND e.id = t.id AND e.fence = t.fence
        JOIN effect n ON n.queue = e.queue AND n.id = e.id AND n.fence > e.fence
        WHERE t.how = 1 AND e.verb = 1 AND n.at_us < t.sent_us + e.delay_ms * 1000 - {ROUND_US}"""),
    # A retry, delayed or not, holds up the line; what is redriven is a new item at the end. Of two
    # pushes that overlapped either may be first, whatever their ids.
    ('the serial queue was not done in order',
     """SELECT id, before, min(from_us, at_us) AS since, max(from_us, at_us) FROM (SELECT id, seq, attempt, at_us,
        lag(id) OVER line AS before, lag(seq) OVER line AS seq_before,
        lag(at_us) OVER line AS from_us FROM effect WHERE queue = 1 WINDOW line AS (ORDER BY number)) AS o
        WHERE id < before AND NOT (attempt = 1 AND EXISTS (SELECT 1 FROM push one, push other
        WHERE one.seq = o.seq AND other.seq = o.seq_before AND other.sent_us < one.told_us))"""),
    ('the counts of the store are not those of the witness',
     f"""SELECT queue, pushed, acked, made, done, 0, {END} FROM (SELECT queue, pushed, acked,
        (SELECT count(DISTINCT seq) FROM item WHERE item.queue = final.queue) AS made,
        (SELECT count(*) FROM accepted e WHERE e.queue = final.queue) AS done
        FROM final) WHERE pushed <> made OR acked <> done"""),
    ('the counts of nacks and deaths are not those of the witness',
     f"""SELECT queue, nacked, nacks, died, deaths, 0, {END} FROM (SELECT queue, nacked, died, dead,
        (SELECT count(*) FROM told t WHERE t.queue = final.queue AND t.how = 1 AND t.verb = 1) AS nacks,
        (SELECT count(*) FROM effect e WHERE e.queue = final.queue AND e.verb = 1) AS wanted,
        dead + (SELECT count(*) FROM redrive r WHERE r.queue = final.queue AND r.how = 1) AS deaths,
        dead + (SELECT count(*) FROM redrive r WHERE r.queue = final.queue AND r.how IN (0, 1, 3)) AS most
        FROM final) WHERE nacked NOT BETWEEN nacks AND wanted OR died NOT BETWEEN deaths AND most"""),
]

# Cases that no loss excuses.
CHECKS = [
    ('one delivery, done twice',
     "SELECT queue, id, fence FROM effect GROUP BY queue, id, fence HAVING count(*) > 1"),
    ('settled without an effect',
     """SELECT queue, id, fence FROM told t WHERE how = 1 AND NOT EXISTS
        (SELECT 1 FROM effect e WHERE e.queue = t.queue AND e.id = t.id AND e.fence = t.fence)"""),
    ('an item that nobody pushed',
     """SELECT item.queue, item.id, item.seq FROM item LEFT JOIN push ON push.seq = item.seq
        WHERE push.seq IS NULL OR push.queue <> item.queue"""),
    ('a push that was refused made an item',
     "SELECT push.seq, first FROM push JOIN chain ON chain.seq = push.seq WHERE push.how = 2"),
    ('dead without a reason: no consumer gave it up, and it had attempts left',
     """SELECT l.queue, l.id, l.attempts FROM letter l JOIN push ON push.seq = l.seq
        WHERE (push.tries = 0 OR l.attempts <> push.tries) AND NOT EXISTS (SELECT 1 FROM effect e
        WHERE e.queue = l.queue AND e.id = l.id AND e.fence = l.reason AND e.verb = 2)"""),
    ('dead for a reason that its consumer was not told',
     """SELECT l.queue, l.id, l.reason FROM letter l JOIN told t ON t.queue = l.queue
        AND t.id = l.id AND t.fence = l.reason WHERE t.how = 2"""),
    ('dead: the attempts of the letter are not those of its last delivery',
     """SELECT l.queue, l.id, l.attempts, e.attempt FROM letter l JOIN effect e
        ON e.queue = l.queue AND e.id = l.id AND e.fence = l.reason WHERE l.attempts <> e.attempt"""),
    ('attempts: more than the item may have',
     """SELECT e.queue, e.id, e.attempt FROM effect e JOIN push ON push.seq = e.seq
        WHERE push.tries > 0 AND e.attempt > push.tries"""),
    ('a fence does not rise: a delivery was worked on after a later one',
     """SELECT queue, id, fence, before FROM (SELECT queue, id, fence, lag(fence)
        OVER (PARTITION BY queue, id ORDER BY number) AS before FROM effect) WHERE fence < before"""),
    ('early: an item was delivered before the delay of its push',
     f"""SELECT e.queue, e.id, e.fence FROM push JOIN effect e ON e.seq = push.seq WHERE push.how = 1
        AND push.delay_ms > 0 AND e.at_us < push.sent_us + push.delay_ms * 1000 - {ROUND_US}"""),
    ('pushes of one process are not in order',
     """SELECT seq, id, before FROM (SELECT seq, id, lag(id) OVER
        (PARTITION BY queue, who ORDER BY seq) AS before FROM push WHERE how = 1)
        WHERE id <= before"""),
    ('left: items are in the queue at the end',
     "SELECT queue, ready, later, out FROM final WHERE ready + later + out > 0"),
    ('left: the store counts other dead letters than it shows',
     """SELECT queue, dead FROM final
        WHERE dead <> (SELECT count(*) FROM letter l WHERE l.queue = final.queue)"""),
    ('an item that two pushes made',
     "SELECT queue, id, min(seq), max(seq) FROM effect GROUP BY queue, id HAVING min(seq) < max(seq)"),
    # An item of a worker that there is not is stolen, or stays in the queue.
    ('stealing: of many addressed items none was stolen',
     """SELECT count(*) FROM address HAVING count(*) > 500 AND NOT EXISTS (SELECT 1 FROM stolen)"""),
    ('stealing: of many addressed items their own workers had none',
     """SELECT count(*) FROM address HAVING count(*) > 500 AND NOT EXISTS (SELECT 1 FROM effect e
        JOIN address a ON a.seq = e.seq JOIN worker w ON w.who = e.who WHERE w.worker = a.worker)"""),
    ('nothing was done', "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM told WHERE how = 1)"),
]

INDEXES = {'effect_item': 'effect (queue, id, fence)', 'effect_seq': 'effect (seq)',
           'told_item': 'told (queue, id, fence)', 'redrive_seq': 'redrive (seq)',
           'letter_seq': 'letter (seq)', 'letter_item': 'letter (queue, id)'}


def prepare(db):
    db.executescript(PREPARE)
    return db


def judge(db):
    """The breaches, and what was lost as it may be, both as [(what, rows)]."""
    losses = db.execute('SELECT from_us, to_us FROM loss').fetchall()
    found, lost = breaches(db, CHECKS), []
    for what, rows in breaches(db, LOSABLE):
        excused = [row for row in rows if any(row[-2] <= to and row[-1] >= since for since, to in losses)]
        if excused:
            lost.append((what, excused))
        if len(excused) < len(rows):
            found.append((what, [row for row in rows if row not in excused]))
    return found, lost


def print_losses(db, lost):
    """What the store lost, which nobody promised otherwise."""
    print(f'{number(db, "SELECT count(*) FROM loss")} losses; of deliveries '
          f'{number(db, "SELECT count(*) FROM told WHERE how = 2")} were told lost, '
          f'{number(db, "SELECT count(*) FROM told WHERE how = 3")} in doubt')
    for what, rows in lost:
        print(f'  not promised: {what}: {len(rows)} times')


def main(folder):
    db = prepare(open_db(folder, INDEXES))
    found, lost = judge(db)
    print_breaches(found)
    if number(db, 'SELECT count(*) FROM loss'):
        print_losses(db, lost)
    pushes = number(db, 'SELECT count(*) FROM push')
    effects = number(db, 'SELECT count(*) FROM effect')
    again = effects - number(db, 'SELECT count(*) FROM ended')
    print(f'{pushes} pushes, of which {number(db, "SELECT count(*) FROM push WHERE how <> 1")} without '
          f'an answer; {again} deliveries were not the first')
    print(f'{number(db, "SELECT sum(nacked) FROM final")} nacks, '
          f'{number(db, "SELECT sum(died) FROM final")} deaths, '
          f'{number(db, "SELECT count(*) FROM redrive WHERE how = 1")} redrives, '
          f'{number(db, "SELECT count(*) FROM push WHERE delay_ms > 0")} delayed pushes')
    print(f'{number(db, "SELECT count(*) FROM address")} items for one worker, '
          f'{number(db, "SELECT count(*) FROM stolen")} deliveries of them to another')
    print_sum(db, found, pushes + effects, effects, sum(len(rows) for _, rows in lost))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
