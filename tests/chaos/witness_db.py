# witness_db.py - what check_queue.py and check_events.py have in common: the database that a
# witness wrote, queries whose rows are breaches, and what is printed of them.
import sqlite3

SHOWN = 5


def open_db(folder, indexes):
    db = sqlite3.connect(f'{folder}/witness.db')
    for name, on in indexes.items():
        db.execute(f'CREATE INDEX IF NOT EXISTS {name} ON {on}')
    return db


def number(db, query):
    return db.execute(query).fetchone()[0] or 0


def breaches(db, checks):
    """[(what, rows)] of what does not hold."""
    found = [(what, db.execute(query).fetchall()) for what, query in checks]
    return [(what, rows) for what, rows in found if rows]


def print_breaches(found):
    for what, rows in found:
        print(f'{what}: {len(rows)} times, as {rows[:SHOWN]}')


def print_sum(db, found, operations, holds, lost=0):
    """The last line, of which tools/chaos.sh makes a row."""
    print(f'operations {operations}, holds {holds}, '
          f'faults {number(db, "SELECT max(faults) FROM final")}, '
          f'violations {sum(len(rows) for _, rows in found)}, not promised {lost}')
