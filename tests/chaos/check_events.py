#!/usr/bin/env python3
# check_events.py - looks at what the witness of an event ground has (event_witness.h).
#
#   check_events.py FOLDER     one line for each breach; 1 when there are some
#
# It knows what was published and trimmed, what each consumer got, and what each process was
# told; of the store it believes no more than the last position of the topic.
import sys

from witness_db import breaches, number, open_db, print_breaches, print_sum

# All that a group was told of: events, and the ranges of its gaps. A gap between two events of
# one turn hides what lies between them, and nothing else.
STEPS = """(SELECT grp, who, turn, number, kind, since, position,
    lag(position) OVER (PARTITION BY grp, who, turn ORDER BY number) AS before FROM got)"""

# A breach, and a query whose rows are its cases.
CHECKS = [
    ('lost: an append was answered, and a group got neither the event nor a gap with it',
     """SELECT g.grp, p.seq, p.position FROM publish p, (SELECT DISTINCT grp FROM got) g
        WHERE p.how = 1 AND NOT EXISTS (SELECT 1 FROM got e WHERE e.grp = g.grp
            AND e.kind = 0 AND e.position = p.position)
        AND NOT EXISTS (SELECT 1 FROM got e WHERE e.grp = g.grp AND e.kind = 1
            AND e.since < p.position AND e.position >= p.position)"""),
    ('passed over: between two events of a consumer there was another',
     f"""SELECT s.grp, s.who, s.before, s.position, p.position FROM {STEPS} s
        JOIN publish p ON p.how = 1 AND p.position > s.before AND p.position < s.position
        WHERE s.kind = 0"""),
    ('not in order: positions of a consumer fall within one turn',
     f"SELECT grp, who, turn, before, position FROM {STEPS} WHERE position <= before"),
    ('accepted twice: a group accepted one position from two',
     """SELECT grp, position, count(*) FROM accepted GROUP BY grp, position
        HAVING count(*) > 1"""),
    ('accepted without a delivery',
     """SELECT a.grp, a.who, a.position FROM accepted a WHERE NOT EXISTS
        (SELECT 1 FROM got e WHERE e.grp = a.grp AND e.who = a.who AND e.turn = a.turn
         AND e.kind = 0 AND e.position = a.position)"""),
    ('a gap where nothing was trimmed',
     "SELECT grp, since, position, trimmed FROM got WHERE kind = 1 AND position > trimmed"),
    ('the gap of a consumer does not begin where it was',
     f"SELECT grp, who, since, before FROM {STEPS} WHERE kind = 1 AND since <> before"),
    ('a fork: the store lost events', "SELECT grp, since, position FROM got WHERE kind = 2"),
    ('an append made two events',
     """SELECT seq, min(position), max(position) FROM got WHERE kind = 0 GROUP BY seq
        HAVING min(position) < max(position)"""),
    ('one position, two events',
     """SELECT position, min(seq), max(seq) FROM got WHERE kind = 0 GROUP BY position
        HAVING min(seq) < max(seq)"""),
    ('an append was told another position',
     """SELECT p.seq, p.position, e.position FROM publish p JOIN got e ON e.kind = 0 AND e.seq = p.seq
        WHERE p.how = 1 AND p.position <> e.position"""),
    ('an event that nobody published',
     """SELECT e.grp, e.position, e.seq FROM got e LEFT JOIN publish p ON p.seq = e.seq
        WHERE e.kind = 0 AND p.seq IS NULL"""),
    ('an append that was refused made an event',
     """SELECT p.seq, e.position FROM publish p JOIN got e ON e.kind = 0 AND e.seq = p.seq
        WHERE p.how = 2"""),
    ('appends of one process are not in order',
     """SELECT seq, position, before FROM (SELECT seq, position, lag(position) OVER
        (PARTITION BY who ORDER BY seq) AS before FROM publish WHERE how = 1)
        WHERE position <= before"""),
    ('left: a group did not come to the end',
     """SELECT g.grp, f.last FROM final f, (SELECT grp, max(position) AS at FROM got GROUP BY grp) g
        WHERE g.at < f.last"""),
    ('nothing was accepted by some group',
     "SELECT count(DISTINCT grp) FROM accepted HAVING count(DISTINCT grp) < 2"),
]

INDEXES = {'publish_position': 'publish (position)', 'got_seq': 'got (seq)',
           'got_kind': 'got (grp, kind, since)'}


def main(folder):
    db = open_db(folder, INDEXES)
    found = breaches(db, CHECKS)
    print_breaches(found)
    appends = number(db, 'SELECT count(*) FROM publish')
    got = number(db, 'SELECT count(*) FROM got WHERE kind = 0')
    again = got - number(db, 'SELECT count(*) FROM (SELECT DISTINCT grp, position FROM got WHERE kind = 0)')
    print(f'{appends} appends, of which {number(db, "SELECT count(*) FROM publish WHERE how <> 1")} without '
          f'an answer; {again} deliveries were not the first; '
          f'{number(db, "SELECT count(*) FROM got WHERE kind = 1")} gaps after '
          f'{number(db, "SELECT count(*) FROM trim")} trims; '
          f'{number(db, "SELECT count(*) FROM (SELECT DISTINCT grp, who, turn FROM got)")} turns')
    print_sum(db, found, appends + got, got)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
